"""Selectors on MTOSI's messages: `P` builds them by the names of Tables 2 and 4, `lint` finds mistakes (R20c, C34).

    (P.EventType.in_("ObjectCreation", "ObjectDeletion") & P.objectName.startswith("MD=EMS1/")) | (P.JMSPriority > 6)

A selector on a property that does not exist is unknown for every message: the subscriber waits for ever, without any
error. So names are checked against Table 4, Table 2 and the six JMS headers, and the compared values against the type
and the values of the property.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias
from typing import Literal as OneOf

from mtosi_jms.binding import BindingProfile, table2
from mtosi_jms.binding.events import EVENT_NAMES, SEVERITIES
from mtosi_jms.binding.profile import ATTRIBUTE_FORMS, FILTER_ATTRIBUTES, OPTIONAL_FIELDS
from mtosi_jms.errors import ConfigError
from mtosi_jms.jms.message import DeliveryMode
from mtosi_jms.jms.selector import HEADERS, PropertyNames, Selector, parse
from mtosi_jms.jms.selector.nodes import (
    EQUALITY,
    Arithmetic,
    Between,
    Comparison,
    Identifier,
    In,
    IsNull,
    Junction,
    Kind,
    Like,
    Literal,
    Node,
    Not,
    Sign,
)
from mtosi_jms.stubs.fmw import hdr
from mtosi_jms.stubs.nra.com import AcknowledgeIndicationType

__all__ = ["Finding", "Level", "Mode", "P", "lint"]

Mode: TypeAlias = OneOf["lenient", "strict"]
Level: TypeAlias = OneOf["error", "warning"]

_PREFIX: Final = "MTOSI_"
_NAMES: Final = {
    **{name: _PREFIX + name for name in FILTER_ATTRIBUTES},
    **{row.name: row.property for row in table2.ROWS},
    **{row.property.removeprefix(_PREFIX): row.property for row in table2.ROWS},
}
P: Final = PropertyNames(_NAMES, "Table 2 or Table 4")
"""The properties of MTOSI's messages. `P.name` takes names of Table 4 and Table 2, with or without the prefix `MTOSI_`,
and the six headers; `P["name"]` takes any name as it is."""

_TABLE_4: Final = frozenset(_PREFIX + name for name in FILTER_ATTRIBUTES)
_TIMES: Final = frozenset(_PREFIX + name for name, form in ATTRIBUTE_FORMS.items() if form == "time")
_KINDS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(_TABLE_4 | HEADERS, Kind.STRING),
    **{row.property: {int: Kind.NUMBER, bool: Kind.BOOLEAN}.get(row.kind, Kind.STRING) for row in table2.ROWS},
    **{_PREFIX + name: Kind.BOOLEAN for name, form in ATTRIBUTE_FORMS.items() if form == "boolean"},
    "JMSPriority": Kind.NUMBER,
    "JMSTimestamp": Kind.NUMBER,
}
_TYPES: Final = {Kind.STRING: "a String", Kind.NUMBER: "a number", Kind.BOOLEAN: "a Boolean"}
_VALUES: Final[Mapping[str, frozenset[str]]] = {
    "MTOSI_EventType": EVENT_NAMES,
    "MTOSI_perceivedSeverity": frozenset(SEVERITIES),
    "MTOSI_acknowledgeIndication": frozenset(map(str, AcknowledgeIndicationType)),
    "MTOSI_msgType": frozenset(map(str, hdr.MessageTypeType)),
    "MTOSI_activityStatus": frozenset(map(str, hdr.ActivityStatusEnumType)),
    "MTOSI_communicationPattern": frozenset(map(str, hdr.CommunicationPatternType)),
    "MTOSI_communicationStyle": frozenset(map(str, hdr.CommunicationStyleType)),
    "JMSDeliveryMode": frozenset(mode.name for mode in DeliveryMode),
}
_ELSEWHERE: Final = {
    "priority": ("the header field priority is JMSPriority", "JMSPriority"),
    "replyToURI": ("the header field replyToURI is JMSReplyTo, which selectors cannot name", ""),
    "correlationId": ("the header field correlationId is never a property (R3d)", ""),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake in a selector.

    Attributes:
        position: offset of the name in the text, from 0.
        near: the name or value that was probably meant; empty if none is similar.
        level: `error`: the name must not be used (R20c); `warning`: this part of the selector can never be true.
    """

    identifier: str
    position: int
    reason: str
    near: str = ""
    level: Level = "error"

    def __str__(self) -> str:
        hint = f"; did you mean {self.near}?" if self.near else ""
        return f"{self.level}: {self.identifier} at position {self.position}: {self.reason}{hint}"


def lint(
    selector: Selector | str, *, mode: Mode = "lenient", filters: Collection[str] | BindingProfile | None = None
) -> list[Finding]:
    """Return the mistakes in a selector, in the order of its text.

    Args:
        mode: `lenient`: names of Table 4, of Table 2 and the six JMS headers are allowed (C34); `strict`: only names of
            Table 4.
        filters: the attributes of Table 4 that publishers map, without prefix (R9). Or a profile, which also tells
            which optional fields are mapped and in which forms events, severities and times appear. None: all
            attributes may be mapped.

    Raises:
        SelectorError: the text is not a selector.
        ConfigError: `mode` is unknown, or `filters` has a name that is not in Table 4.
    """
    if mode not in ("lenient", "strict"):
        raise ConfigError(f"mode {mode!r}: must be lenient or strict")
    if isinstance(filters, BindingProfile):
        profile, mapped = filters, filters.filter_properties
    else:
        profile, mapped = None, FILTER_ATTRIBUTES if filters is None else frozenset(filters)
    if unknown := mapped - FILTER_ATTRIBUTES:
        raise ConfigError(f"Table 4 has no {', '.join(sorted(unknown))}; it has {', '.join(sorted(FILTER_ATTRIBUTES))}")
    tree = (parse(selector) if isinstance(selector, str) else selector).tree
    rules = _Rules(mode, mapped, profile)
    found = [finding for use in _uses(tree, Kind.BOOLEAN) for finding in rules.check(use)] if tree else []
    return sorted(found, key=lambda finding: finding.position)


@dataclass(frozen=True, slots=True)
class _Use:
    """How a selector uses a name: as which kind of value (ANY if unknown), whether by order, and with which texts."""

    identifier: Identifier
    kind: Kind
    ordered: bool = False
    texts: tuple[str, ...] = ()


def _uses(node: Node, kind: Kind) -> Iterator[_Use]:
    """Yield all uses of names in a node; `kind` is what its place in the tree requires."""
    match node:
        case Identifier():
            yield _Use(node, kind)
        case Like() | In() | IsNull():
            yield _predicate(node)
        case Comparison():
            yield from _compared(node)
        case Between(operand, low, high):
            for part in (operand, low, high):
                yield from _ordered(part)
        case Junction(_, terms):
            for term in terms:
                yield from _uses(term, Kind.BOOLEAN)
        case Not(operand):
            yield from _uses(operand, Kind.BOOLEAN)
        case Sign(_, operand):
            yield from _uses(operand, Kind.NUMBER)
        case Arithmetic(_, left, right):
            yield from _uses(left, Kind.NUMBER)
            yield from _uses(right, Kind.NUMBER)


def _predicate(node: Like | In | IsNull) -> _Use:
    if isinstance(node, IsNull):
        return _Use(node.identifier, Kind.ANY)
    return _Use(node.identifier, Kind.STRING, texts=node.values if isinstance(node, In) else ())


def _ordered(node: Node) -> Iterator[_Use]:
    if isinstance(node, Identifier):
        yield _Use(node, Kind.NUMBER, ordered=True)
    else:
        yield from _uses(node, Kind.NUMBER)


def _compared(node: Comparison) -> Iterator[_Use]:
    for operand, other in ((node.left, node.right), (node.right, node.left)):
        if node.sign not in EQUALITY:
            yield from _ordered(operand)
        elif isinstance(operand, Identifier) and isinstance(other, Literal):
            texts = (str(other.value),) if other.kind is Kind.STRING else ()
            yield _Use(operand, other.kind, texts=texts)
        else:
            yield from _uses(operand, other.kind)


class _Rules:
    def __init__(self, mode: Mode, mapped: frozenset[str], profile: BindingProfile | None) -> None:
        self._allowed = _TABLE_4 if mode == "strict" else frozenset(_KINDS)
        self._mapped = mapped
        self._kinds = dict(_KINDS)
        self._values = dict(_VALUES)
        self._unmapped: frozenset[str] = frozenset()
        if profile is not None:
            self._follow(profile)

    def _follow(self, profile: BindingProfile) -> None:
        self._unmapped = OPTIONAL_FIELDS - profile.optional_fields
        self._values["MTOSI_EventType"] = frozenset(map(profile.event_name, EVENT_NAMES))
        if profile.severity_form == "code":
            self._values["MTOSI_perceivedSeverity"] = frozenset(map(str, range(len(SEVERITIES))))
        if profile.time_form == "millis":
            self._kinds.update(dict.fromkeys(_TIMES, Kind.NUMBER))

    def check(self, use: _Use) -> Iterator[Finding]:
        name, position = use.identifier.name, use.identifier.position
        if name not in self._allowed:
            yield self._stranger(name, position)
            return
        if reason := self._absent(name):
            yield Finding(name, position, reason, level="warning")
        if reason := self._misused(name, use):
            yield Finding(name, position, reason, level="warning")
            return
        known = self._values.get(name)
        for text in use.texts if known else ():
            if known and text not in known:
                reason = f"{text[:60]!r} is not one of its known values: {', '.join(sorted(known))}"
                yield Finding(name, position, reason, _near(text, known), "warning")

    def _stranger(self, name: str, position: int) -> Finding:
        if name in _KINDS:
            return Finding(name, position, "strict: filtering is by the attributes of Table 4 alone (R20c)")
        bare = name.removeprefix(_PREFIX)
        if bare in _ELSEWHERE:
            reason, near = _ELSEWHERE[bare]
            return Finding(name, position, reason, near)
        if bare in _NAMES:
            return Finding(name, position, "the property's name differs", _NAMES[bare])
        near = _near(name, self._allowed) or _near(_PREFIX + name, self._allowed)
        if near and near.casefold() == name.casefold():
            return Finding(name, position, "wrong letter case", near)
        return Finding(name, position, "neither in Table 4 nor in Table 2 nor a header that selectors know", near)

    def _absent(self, name: str) -> str:
        """Return why no message has the property although it is allowed; empty if messages have it."""
        if name in _TABLE_4 and name.removeprefix(_PREFIX) not in self._mapped:
            return "the publishers do not map this attribute, so that it is NULL in every message (R9)"
        row = table2.BY_PROPERTY.get(name)
        if row is not None and row.name in self._unmapped:
            return "the profile does not map this optional field, so that it is NULL in every message (R13b)"
        return ""

    def _misused(self, name: str, use: _Use) -> str:
        """Return why the use does not fit the type of the property; empty if it does."""
        own = self._kinds[name]
        if use.kind in (own, Kind.ANY):
            return ""
        if use.ordered and own is Kind.STRING:
            times = "; times can be compared where the profile has time_form='millis'" if name in _TIMES else ""
            return f"it is a String, and Strings have no order in selectors (C33){times}"
        return f"it is {_TYPES[own]} and is used like {_TYPES[use.kind]}, which is never true"


def _near(name: str, known: Collection[str]) -> str:
    """Return the known name that was probably meant: one that differs only in letter case, else a similar one."""
    by_case = {one.casefold(): one for one in sorted(known)}
    if name.casefold() in by_case:
        return by_case[name.casefold()]
    close = difflib.get_close_matches(name.casefold(), by_case, 1, 0.75)
    return by_case[close[0]] if close else ""
