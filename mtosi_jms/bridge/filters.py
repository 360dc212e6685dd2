"""Filters of events: JMS selectors, evaluated here, or translated to the channel's own language (003-4).

A selector may name fields of an event's filterable data (`perceivedSeverity`), the properties that they become
(`$fd_perceivedSeverity`), and headers of JMS (`JMSPriority`, `JMSDeliveryMode`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mtosi_jms.bridge.events import Any, StructuredEvent
from mtosi_jms.bridge.omg import BridgeRules, event_value, field_name, is_from_jms, message_of
from mtosi_jms.errors import SelectorError
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.jms.selector import Selector
from mtosi_jms.jms.selector.nodes import (
    Arithmetic,
    Between,
    Comparison,
    Identifier,
    In,
    IsNull,
    Junction,
    Like,
    Literal,
    Node,
    Not,
    Sign,
)

__all__ = ["accepts_event", "to_etcl"]

_RULES: Final = BridgeRules()


def accepts_event(selector: Selector, event: StructuredEvent, rules: BridgeRules = _RULES) -> bool:
    """Whether a selector accepts an event: the same result as for the message that the event becomes. `selector`: names
    properties, headers or fields. Raises EventError: a value that the selector names does not match its TypeCode."""
    fields: Mapping[str, Any] = {one.name: one.value for one in reversed(event.filterable_data)}
    found: dict[str, object] = {}
    message: JmsMessage | None = None
    for name in selector.identifiers:
        if name in fields and (is_from_jms(event) or not name.startswith(("$", "JMS"))):
            found[name] = event_value(fields[name])
        elif message is None:
            message = message_of(event, rules, now_ms=0)
    if message is not None:
        made = message
        found = {name: made.properties.get(name) for name in selector.identifiers if name not in found} | found
        found |= _headers(made, selector)
    return selector.matches(found) is True


def _headers(message: JmsMessage, selector: Selector) -> dict[str, object]:
    headers = {
        "JMSDeliveryMode": message.delivery_mode.name,
        "JMSPriority": message.priority,
        "JMSMessageID": message.message_id,
        "JMSTimestamp": message.timestamp_ms,
        "JMSCorrelationID": message.correlation_id,
        "JMSType": message.jms_type,
    }
    return {name: headers[name] for name in selector.identifiers & headers.keys()}


def to_etcl(selector: Selector) -> str:
    """Translate a selector to Extended TCL, for a filter at the channel. An empty selector gives an empty constraint.

    Missing fields behave as in SQL: a comparison with them is unknown, and so is its negation. The types of fields are
    not checked: a channel may compare a number with a text in another way than JMS.

    Raises:
        SelectorError: the language cannot express the selector: LIKE, except `'%text%'` and texts without wildcards;
            division, which it does not truncate; `JMSDeliveryMode`, except its two values. It has the position.
    """
    return "" if selector.tree is None else _true(selector.tree)


_HEADERS: Final = {
    "JMSPriority": "$Priority",
    "$domain_type": "$domain_name",
    "$domain_name": "$domain_name",
    "$type_name": "$type_name",
    "$event_name": "$event_name",
}
_SIGNS: Final = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_OPPOSITES: Final = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_ALWAYS: Final = frozenset({"$domain_name", "$type_name", "$event_name"})
_RESERVED: Final = frozenset({"curtime", "domain_name", "type_name", "event_name", "header", "filterable_data"})
_MODES: Final = {"PERSISTENT": 1, "NON_PERSISTENT": 0}
_MODE: Final = "JMSDeliveryMode"


def _true(node: Node) -> str:
    """A constraint that holds if the node is true."""
    return _constraint(node, holds=True)


def _constraint(node: Node, *, holds: bool) -> str:
    """A constraint that holds if the node is true, or with `holds=False` if it is false; never if it is unknown."""
    match node:
        case Not(operand):
            return _constraint(operand, holds=not holds)
        case Junction(word, terms):
            joined = " and " if (word == "AND") is holds else " or "
            return f"({joined.join(_constraint(term, holds=holds) for term in terms)})"
        case Comparison():
            return _comparison(node, holds)
        case Between(operand, low, high, negated):
            inside = holds is not negated
            first, second = (">=", "<=") if inside else ("<", ">")
            limits = f"{_operand(operand)} {first} {_operand(low)}", f"{_operand(operand)} {second} {_operand(high)}"
            return _guarded([operand, low, high], f"({(' and ' if inside else ' or ').join(limits)})")
        case In(identifier, values, negated):
            inside = holds is not negated
            name, sign = _name(identifier), "==" if inside else "!="
            terms_of = [f"{name} {sign} {_text(one)}" for one in values]
            return _guarded([identifier], f"({(' or ' if inside else ' and ').join(terms_of)})")
        case Like():
            return _like(node, holds is not node.negated)
        case IsNull(identifier, negated):
            name = _name(identifier)
            there = holds is negated
            if name in _ALWAYS:
                return "TRUE" if there else "FALSE"
            return f"(exist {name})" if there else f"(not (exist {name}))"
        case Identifier():
            return _guarded([node], f"{_name(node)} == {'TRUE' if holds else 'FALSE'}")
        case Literal(value):
            return "TRUE" if (value is True) is holds else "FALSE"
        case _:
            raise SelectorError("this is not a condition", node.position)


def _comparison(node: Comparison, holds: bool) -> str:
    sign = node.sign if holds else _OPPOSITES[node.sign]
    left, right = node.left, node.right
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Identifier) and one.name == _MODE:
            mode = _MODES.get(other.value) if isinstance(other, Literal) and isinstance(other.value, str) else None
            if mode is None or sign not in ("=", "<>"):
                raise SelectorError("a channel knows JMSDeliveryMode = 'PERSISTENT' or 'NON_PERSISTENT'", one.position)
            return f"(exist $EventReliability and $EventReliability {_SIGNS[sign]} {mode})"
    return _guarded([left, right], f"{_operand(left)} {_SIGNS[sign]} {_operand(right)}")


def _guarded(operands: list[Node], constraint: str) -> str:
    """The constraint, which holds only if all names in the operands exist."""
    names: dict[str, None] = {}
    for operand in operands:
        names.update(dict.fromkeys(_names(operand)))
    return f"({' and '.join([f'exist {name}' for name in names if name not in _ALWAYS] + [constraint])})"


def _names(node: Node) -> list[str]:
    match node:
        case Identifier():
            return [_name(node)]
        case Sign(_, operand):
            return _names(operand)
        case Arithmetic(_, left, right):
            return _names(left) + _names(right)
        case _:
            return []


def _operand(node: Node) -> str:
    match node:
        case Identifier():
            return _name(node)
        case Literal(bool() as value):
            return "TRUE" if value else "FALSE"
        case Literal(str() as value):
            return _text(value)
        case Literal(value):
            return repr(value) if isinstance(value, float) else str(int(value))
        case Sign(sign, operand):
            return f"({sign}{_operand(operand)})"
        case Arithmetic(sign, left, right) if sign != "/":
            return f"({_operand(left)} {sign} {_operand(right)})"
        case Arithmetic():
            raise SelectorError("a channel's division does not cut off as that of JMS", node.position)
        case _:
            raise SelectorError("a channel compares no conditions", node.position)


def _like(node: Like, holds: bool) -> str:
    segments = node.pattern.segments()
    texts = ["".join(one or "" for one in segment) for segment in segments]
    if any(None in segment for segment in segments):
        raise SelectorError("a channel has no pattern with `_`", node.position)
    name = _name(node.identifier)
    if len(texts) == 1:
        found = f"{name} == {_text(texts[0])}"
    elif len(texts) == 3 and not texts[0] and not texts[2]:
        found = f"{_text(texts[1])} ~ {name}"
    else:
        raise SelectorError("of patterns a channel has '%text%' alone", node.position)
    return _guarded([node.identifier], found if holds else f"not ({found})")


def _name(identifier: Identifier) -> str:
    name = identifier.name
    known = _HEADERS.get(name)
    if known is not None:
        return known
    if name.startswith("$fd_"):
        name = field_name(name[4:])
    elif name.startswith("$ohf_"):
        return _associated("$.header.variable_header", field_name(name[5:]))
    if name.isascii() and name.replace("_", "a").isalnum() and name not in _RESERVED:
        return f"${name}"
    return _associated("$.filterable_data", name)


def _associated(where: str, name: str) -> str:
    if not name.isascii() or not name.replace("_", "a").replace("$", "a").isalnum():
        raise SelectorError(f"a channel has no name {name!r:.60}")
    return f"{where}({name})"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
