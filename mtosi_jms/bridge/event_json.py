"""Structured events as JSON, for people and pipes: what `mtosi-jms channel` prints and reads.

Values whose type JSON implies are plain: null, booleans, a long as a whole number, a double as another number, a string
as text, an AnySeq as an array. Any other value has its type with it: `{"type": "short", "value": 3}`; `octets` are in
hexadecimal digits, `properties` are an object. For a constructed type, `value` is for readers and `cdr` is the value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any as Json
from typing import Final

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.bridge.cdr import decode_any, encode_any
from mtosi_jms.bridge.events import (
    ANY_SEQ,
    DEPTH,
    NULL,
    OCTET_SEQ,
    PROPERTY_SEQ,
    Any,
    ObjectReference,
    Property,
    StructuredEvent,
    TCKind,
    TypeCode,
    Union,
    Value,
    any_of,
)
from mtosi_jms.errors import EventError

__all__ = ["event_from_json", "event_to_json", "readable"]

_TEXTS: Final = ("domain_name", "type_name", "event_name")
_BODY: Final = "remainder_of_body"
_BASIC: Final = {
    kind.name: TypeCode.of(kind)
    for kind in (
        *(TCKind.boolean, TCKind.octet, TCKind.short, TCKind.ushort, TCKind.long, TCKind.ulong, TCKind.longlong),
        *(TCKind.ulonglong, TCKind.float, TCKind.double, TCKind.char, TCKind.wchar, TCKind.string, TCKind.wstring),
    )
}
_MOST: Final = BOUNDS.event_depth
"""Most levels of nested arrays and properties."""


def event_to_json(event: StructuredEvent) -> dict[str, Json]:
    """Turn an event into values that `json.dumps` takes, without empty parts. Raises EventError: a value does not match
    its type."""
    found: dict[str, Json] = {name: getattr(event, name) for name in _TEXTS if getattr(event, name)}
    for name in ("variable_header", "filterable_data"):
        listed: tuple[Property, ...] = getattr(event, name)
        if listed:
            found[name] = _properties(tuple((one.name, one.value) for one in listed), 0)
    if event.remainder_of_body.type.kind is not TCKind.null:
        found[_BODY] = _any(event.remainder_of_body, 0)
    return found


def event_from_json(found: object) -> StructuredEvent:
    """Make an event from the result of `json.loads`. Raises EventError: it is not an event; with the path."""
    if not isinstance(found, dict):
        raise EventError("an event is an object")
    known = {*_TEXTS, "variable_header", "filterable_data", _BODY}
    if unknown := [name for name in found if name not in known]:
        raise EventError(f"an event has {', '.join(sorted(known))}", str(unknown[0]))
    texts = [found.get(name, "") for name in _TEXTS]
    for name, text in zip(_TEXTS, texts, strict=True):
        if not isinstance(text, str):
            raise EventError("a text is needed", name)
    header, data = (
        tuple(Property(*one) for one in _read_properties(found.get(name, {}), name, 0))
        for name in ("variable_header", "filterable_data")
    )
    body = _read(found.get(_BODY), _BODY, 0)
    return StructuredEvent(texts[0], texts[1], texts[2], header, data, body)


def _properties(listed: tuple[tuple[str, Any], ...], depth: int) -> Json:
    """An object, or an array of pairs if a name occurs twice."""
    pairs = [(name, _any(value, depth + 1)) for name, value in listed]
    named = dict(pairs)
    return named if len(named) == len(pairs) else [list(pair) for pair in pairs]


def _any(any: Any, depth: int) -> Json:
    kind, value = any.type.kind, any.value
    if kind in (TCKind.null, TCKind.boolean, TCKind.long, TCKind.string) and any.type == TypeCode.of(kind):
        return value
    if (
        kind is TCKind.wstring
        and isinstance(value, str)
        and any.type == TypeCode.of(kind)
        and max(value, default="") > "\xff"
    ):
        return value
    if kind is TCKind.double and isinstance(value, float) and math.isfinite(value):
        return value
    if depth < _MOST:
        if any.type == ANY_SEQ and isinstance(value, tuple):
            return [_any(one, depth + 1) for one in value if isinstance(one, Any)]
        if any.type == PROPERTY_SEQ and isinstance(value, tuple):
            return {"type": "properties", "value": _properties(value, depth)}  # type: ignore[arg-type]
    if any.type == OCTET_SEQ and isinstance(value, bytes):
        return {"type": "octets", "value": value.hex()}
    if any.type == _BASIC.get(kind.name) and not (isinstance(value, float) and not math.isfinite(value)):
        return {"type": kind.name, "value": value}
    return {
        "type": any.type.repository_id or kind.name,
        "value": readable(any.type, value),
        "cdr": encode_any(any).hex(),
    }


def readable(type: TypeCode, value: Value, depth: int = DEPTH) -> Json:
    """A value as `json.dumps` takes it, for readers: with the names that its type has, and without other types.
    `depth`: most levels; "..." stands for what is deeper."""
    plain = type.plain
    match value:
        case _ if depth == 0:
            return "..."
        case Any():
            return readable(value.type, value.value, depth - 1)
        case Union():
            chosen = next((one.type for one in plain.members if one.label == value.discriminator), None)
            return {
                "discriminator": value.discriminator,
                "value": readable(chosen or NULL.type, value.value, depth - 1),
            }
        case tuple() if plain.kind in (TCKind.struct, TCKind.except_) and len(plain.members) == len(value):
            pairs = zip(plain.members, value, strict=True)
            return {one.name: readable(one.type or NULL.type, part, depth - 1) for one, part in pairs}
        case tuple():
            return [readable(plain.content or NULL.type, part, depth - 1) for part in value]
        case bytes():
            return value.hex()
        case TypeCode():
            return value.repository_id or value.name or value.kind.name
        case ObjectReference():
            return value.ior
        case Decimal() | float() if not math.isfinite(value) or isinstance(value, Decimal):
            return str(value)
        case _:
            return value


def _read(found: object, path: str, depth: int) -> Any:
    if depth > _MOST:
        raise EventError(f"nested deeper than {_MOST}", path)
    if isinstance(found, list):
        return Any(ANY_SEQ, tuple(_read(one, f"{path}[{index}]", depth + 1) for index, one in enumerate(found)))
    if isinstance(found, Mapping):
        return _read_typed(found, path, depth)
    if found is None or isinstance(found, bool | int | float | str):
        try:
            return any_of(found)
        except EventError as error:
            raise EventError(f'{error.message}; another type is {{"type": "longlong", "value": ...}}', path) from None
    raise EventError(f"{type(found).__name__} is not a value", path)


def _read_typed(found: Mapping[str, object], path: str, depth: int) -> Any:
    kind, value = found.get("type"), found.get("value")
    try:
        if isinstance(found.get("cdr"), str):
            return decode_any(bytes.fromhex(str(found["cdr"])))
        if kind == "octets":
            return Any(OCTET_SEQ, bytes.fromhex(str(value)))
    except EventError as error:
        raise error.inside(path) from None
    except ValueError:
        raise EventError("hexadecimal digits are needed", path) from None
    if kind == "properties":
        return Any(PROPERTY_SEQ, tuple(_read_properties(value, path, depth)))
    if kind not in _BASIC or "value" not in found:
        raise EventError(f"a value with a type has type and value; types are {', '.join(_BASIC)}", path)
    made = Any(_BASIC[str(kind)], value)  # type: ignore[arg-type]
    try:
        encode_any(made)
    except EventError as error:
        raise error.inside(path) from None
    return made


def _read_properties(found: object, path: str, depth: int) -> list[tuple[str, Any]]:
    pairs = list(map(list, found.items())) if isinstance(found, Mapping) else found
    if not isinstance(pairs, list):
        raise EventError("an object of names and values is needed", path)
    listed: list[tuple[str, Any]] = []
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise EventError("pairs of name and value are needed", path)
        listed.append((pair[0], _read(pair[1], f"{path}.{pair[0]}", depth + 1)))
    return listed
