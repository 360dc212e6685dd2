"""Table 2: which MTOSI header fields become JMS properties, with which names and types (R11-R15).

The list is closed: a field that is not in it is never mapped (R11, C47). Two fields are never mapped in any way (R18,
C46).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from mtosi_jms.header import FIELDS, HeaderField
from mtosi_jms.jms.message import PropertyValue

__all__ = [
    "BY_PROPERTY",
    "MAX_INTEGER",
    "NEVER_MAPPED",
    "ROWS",
    "restore",
    "row_of",
    "whole_number",
]


ROWS: Final = tuple(field for field in FIELDS if field.property)
"""Its rows. Missing are replyToURI (JMSReplyTo) and priority (JMSPriority), which become JMS headers."""

BY_PROPERTY: Final = {row.property: row for row in ROWS}
_BY_FOLDED: Final = {row.property.casefold(): row for row in ROWS}
NEVER_MAPPED: Final = frozenset({"languageCode", "countryCode"})
"""Fields that never become a property, neither as header fields of a later schema nor as extensions (R18)."""
MAX_INTEGER: Final = 2**31 - 1
_TABLE4_BOOLEANS: Final = frozenset({"MTOSI_isEdgePointRelated", "MTOSI_rootCauseAlarmIndication"})
"""The properties of Table 4 that are Booleans in every profile."""
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


def row_of(name: str) -> HeaderField | None:
    """Return the row of a received property; letter case does not count (C06)."""
    return BY_PROPERTY.get(name) or _BY_FOLDED.get(name.casefold())


def restore(name: str, value: PropertyValue) -> PropertyValue:
    """Return the value of a received property in the type that R15 gives it; unchanged if that is impossible (C62).

    Some protocols, such as STOMP, carry only text, so the name tells which properties are numbers and booleans.
    """
    kind = _kind(name)
    if kind is str or type(value) is kind:
        return value
    text = str(value).strip()
    if kind is bool:
        return _BOOLEANS.get(text.lower(), value)
    number = whole_number(text)
    return value if number is None or number > MAX_INTEGER else number


@lru_cache(1024)
def _kind(name: str) -> type[PropertyValue]:
    if name in _TABLE4_BOOLEANS:
        return bool
    row = row_of(name)
    return str if row is None else row.kind


def whole_number(text: str) -> int | None:
    """Return the number in the text of an unsigned integer, with a sign as XML allows it; None for other texts.

    For more digits than any JMS integer has, the result is another number that is also too large.
    """
    digits = text[1:] if text.startswith("+") or text.strip("0") == "-" else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits.lstrip("0")[:20] or "0")
