"""Constraints in the Extended Trader Constraint Language, as far as a channel for tests needs them.

A constraint becomes a selector: the operators of ETCL have counterparts there. What has none is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.errors import EventError, SelectorError
from mtosi_jms.jms.selector import parse

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*')|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<field>\$\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*|\([^)]*\))*)
    |(?P<word>[A-Za-z_]+)|(?P<sign>==|!=|<=|>=|[<>~()+\-*/]))""",
    re.VERBOSE,
)
_SIGNS: Final = {"==": "=", "!=": "<>"}
_WORDS: Final = {"and": "AND", "or": "OR", "not": "NOT", "TRUE": "TRUE", "FALSE": "FALSE"}
_HEADER: Final = {
    "$domain_name": "domain_name",
    "$.header.fixed_header.event_type.domain_name": "domain_name",
    "$type_name": "type_name",
    "$.header.fixed_header.event_type.type_name": "type_name",
    "$event_name": "event_name",
    "$.header.fixed_header.event_name": "event_name",
}
_NAMED: Final = re.compile(r"\$(?:\.filterable_data\((?P<listed>[^)]*)\)|(?P<plain>[A-Za-z_][A-Za-z0-9_]*))")


def constraint_of(text: str) -> Callable[[StructuredEvent], bool]:
    """What tells whether an event passes a constraint. Raises EventError: the text is not a constraint, or one that is
    not known here."""
    fields: list[str] = []
    try:
        selector = parse(_translated(text, fields))
    except SelectorError as error:
        raise EventError(f"the channel refuses the constraint {text!r}: {error}") from None
    return lambda event: selector.matches({f"f{at}": _value(event, name) for at, name in enumerate(fields)}) is True


def _translated(text: str, fields: list[str]) -> str:
    out: list[str] = []
    at = 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise EventError(f"the channel refuses the constraint {text!r}: character {at + 1}")
        at = match.end()
        out.append(_token(match, text, fields))
    found = " ".join(out)
    found = re.sub(r"\bEXIST (f\d+)", r"(\1 IS NOT NULL)", found)
    return re.sub(r"'([^'%_]*)' ~ (f\d+)", r"(\2 LIKE '%\1%')", found)


def _token(match: re.Match[str], text: str, fields: list[str]) -> str:
    if match["field"]:
        if match["field"] not in fields:
            fields.append(match["field"])
        return f"f{fields.index(match['field'])}"
    if match["text"]:
        return "'" + re.sub(r"\\(.)", r"\1", match["text"][1:-1]).replace("'", "''") + "'"
    if match["word"]:
        if match["word"] == "exist":
            return "EXIST"
        if match["word"] not in _WORDS:
            raise EventError(f"the channel refuses the constraint {text!r}: {match['word']} is not known")
        return _WORDS[match["word"]]
    return match["number"] or _SIGNS.get(match["sign"], match["sign"])


def _value(event: StructuredEvent, field: str) -> object:
    if field in _HEADER:
        return getattr(event, _HEADER[field])
    named = _NAMED.fullmatch(field)
    if named is None:
        return None
    name = named["listed"] or named["plain"]
    found = (event.header(name) if named["plain"] else None) or event.get(name)
    value = None if found is None else found.value
    return value if isinstance(value, str | bool | int | float) else None
