"""Patterns that prove of a text, without making anything, that all values in it can be made.

Of a simple type such a pattern finds texts as we would write them; of a shape it finds the elements whose values all
have such a pattern.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import takewhile
from typing import Any, Final

from mtosi_jms.xmlbind import simpletypes as types
from mtosi_jms.xmlbind.plan import STRING, Slot, plan_of
from mtosi_jms.xmlbind.scanplan import CONTENT, ISLAND, Cell, Shape
from mtosi_jms.xmlbind.simpletypes import EnumType, SimpleType

_MARKUP: Final = re.compile("[&<\r]")
_DIGITS: Final = 30

_YEAR: Final = "(?!0000)[0-9]{4}"
_LEAP_YEAR: Final = (
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"  # the year 0000 is none
)
_DATE: Final = (
    f"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_TIME: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{0,5}[1-9])?"
_ZONE: Final = "(?:Z|[+-](?!00:00)(?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
_COLLAPSED: Final = "(?:[^< \t\n]++(?: [^< \t\n]++)*+)?+"


def _integers(least: int | None, most: int | None) -> str:
    """The integers between two bounds, both of them at or beyond 1, -1 or nought."""
    below = "" if least is not None and least >= 0 else f"-{_up_to(least)}"
    above = "" if most is not None and most <= 0 else _up_to(most)
    zero = "" if (least or 0) > 0 or (most or 0) < 0 else "0"
    return "|".join(filter(None, (zero, above, below)))


def _up_to(bound: int | None) -> str:
    """The numbers from 1 to a bound, whatever its sign; to one of many digits where there is none."""
    if bound is None:
        return f"[1-9][0-9]{{0,{_DIGITS}}}"
    digits = str(abs(bound))
    ways = [f"[1-9][0-9]{{0,{len(digits) - 2}}}"] if len(digits) > 1 else []
    for at, digit in enumerate(digits):
        lowest = 0 if at else 1
        if int(digit) > lowest:
            ways.append(f"{digits[:at]}[{lowest}-{int(digit) - 1}][0-9]{{{len(digits) - at - 1}}}")
    return f"(?:{'|'.join([*ways, digits])})"


_FORMS: Final = {
    types.BOOLEAN: "true|false",
    types.DATE: _DATE,
    types.DATE_TIME: f"{_DATE}T{_TIME}{_ZONE}",
    types.DECIMAL: rf"-?(?:0|[1-9][0-9]{{0,{_DIGITS}}})(?:\.[0-9]{{1,{_DIGITS}}})?",
    types.ANY_URI: _COLLAPSED,
    types.TOKEN: _COLLAPSED,
    **{
        kind: _integers(kind.facets.minimum, kind.facets.maximum) if kind.facets else _integers(None, None)
        for kind in (
            types.INTEGER,
            types.NON_POSITIVE_INTEGER,
            types.NEGATIVE_INTEGER,
            types.NON_NEGATIVE_INTEGER,
            types.POSITIVE_INTEGER,
            types.LONG,
            types.INT,
            types.SHORT,
            types.BYTE,
            types.UNSIGNED_LONG,
            types.UNSIGNED_INT,
            types.UNSIGNED_SHORT,
            types.UNSIGNED_BYTE,
        )
    },
}

_MAKERS: Final[Mapping[SimpleType, Callable[[str], Any] | None]] = {
    types.DATE: dt.date.fromisoformat,
    types.DATE_TIME: dt.datetime.fromisoformat,
    types.DECIMAL: Decimal,
    types.ANY_URI: None,
    types.TOKEN: None,
}


def form_of(kind: SimpleType) -> str | None:
    """A pattern that finds texts of a type in their element, and no others; None where no pattern can tell.

    `exact` of the type takes every text that it finds, once references are resolved. There may be more such texts. The
    pattern is for documents whose octets stand as characters.
    """
    if isinstance(kind, EnumType):
        texts = sorted(text.encode().decode("latin-1") for text in kind.known if text and not _MARKUP.search(text))
        return _branches(texts) if texts else None
    return f"(?:{_FORMS[kind]})" if kind in _FORMS else None


def maker_of(kind: SimpleType) -> Mapping[str, Any] | Callable[[str], Any] | None:
    """What makes the value of a text that the form of a type has found, its references resolved.

    Returns:
        The values by their texts, or a function of the text; None where the text is the value.
    """
    return {text: value for text, value in kind.known.items() if text} or _MAKERS.get(kind, int)


def _branches(texts: list[str]) -> str:
    """Texts as a tree by their beginnings, so that each character is looked at once."""
    firsts: dict[str, list[str]] = {}
    for text in filter(None, texts):
        firsts.setdefault(text[0], []).append(text)
    ways = []
    for group in firsts.values():
        columns = takewhile(lambda letters: len(set(letters)) == 1, zip(*group, strict=False))
        start = "".join(letters[0] for letters in columns)
        ways.append(re.escape(start) + _branches([text[len(start) :] for text in group]))
    if "" in texts:
        return f"(?:{'|'.join(ways)})?+" if ways else ""
    return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"


def leaf_of(cell: Cell) -> Slot:
    """Where the text of a cell goes: into its own field, or into that of the object of simple content."""
    content = plan_of(cell.slot.target).text if cell.kind == CONTENT else None
    return content or cell.slot


def proof_of(shape: Shape, blank: str) -> str | None:
    """A pattern without groups that proves an object, None where there is none.

    It is for documents whose octets stand as characters, and does without the optional elements that have no proof.

    Args:
        shape: what the object looks like.
        blank: the pattern of what may stand between tags.
    """
    parts = [f"<{shape.tag}>{blank}" if shape.tag else blank]
    for cell in shape.cells:
        one = proof_of_cell(cell, blank)
        if one is not None:
            if cell.slot.many:
                parts.append(f"(?:{one}){'++' if cell.required else '*+'}")
            else:
                parts.append(one if cell.required else f"(?:{one}|)")  # sooner done than by a quantifier
        elif cell.required:
            return None
    return "".join(parts) + (f"</{shape.tag}>{blank}" if shape.tag else "")


def proof_of_cell(cell: Cell, blank: str) -> str | None:
    """The same of one element of a field."""
    if cell.inner is not None:
        return proof_of(cell.inner, blank)
    if cell.kind == ISLAND:
        return None
    leaf = leaf_of(cell)
    form = "[^<]*+" if leaf.kind == STRING else form_of(leaf.target)
    return f"<{cell.tag}>{form}</{cell.tag}>{blank}" if form is not None else None
