"""Maps JMS messages to structured events and back, by formal/04-10-09, sections 2.4 and 2.5.

A message becomes an event of a type such as `%TextMessage`: headers and properties become filterable data, the body
becomes the remainder of the body. An event becomes a message with properties `$type_name`, `$ohf_...` and `$fd_...`.
Both round trips are lossless: the type of an event shows that it came from JMS, and the property `MTOSIX_event` holds
what Java's types and JMS's names cannot express.

Exceptions, which JMS does not allow to restore:

- an ObjectMessage comes back as a BytesMessage with what Java serialised;
- the provider sets JMSMessageID and the other headers of its own; the id that the message had first is the property
  `$fd_JMSMessageID`;
- the time to live is what is left of it, in whole milliseconds.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any as Json
from typing import Final, Literal, NamedTuple, TypeAlias, get_args, get_type_hints

from mtosi_jms.bridge.cdr import decode_any, decode_typecode, encode_any, encode_typecode
from mtosi_jms.bridge.events import (
    ANY_SEQ,
    NULL,
    OCTET_SEQ,
    PROPERTY,
    PROPERTY_SEQ,
    Any,
    Property,
    StructuredEvent,
    TCKind,
    TypeCode,
    Value,
    any_of,
)
from mtosi_jms.bridge.qos import BEST_EFFORT, EVENT_RELIABILITY, PERSISTENT, UTC, priority_to_jms
from mtosi_jms.errors import ConfigError, EventError
from mtosi_jms.jms import KINDS, Destination
from mtosi_jms.jms.message import (
    LONG_MAX,
    NO_PROPERTIES,
    BodyValue,
    Byte,
    Char,
    Content,
    DeliveryMode,
    Float,
    JmsMessage,
    Long,
    MessageType,
    Properties,
    PropertyValue,
    Short,
    is_property_name,
)

__all__ = [
    "EVENT_HINT",
    "JMS_TYPE",
    "BridgeRules",
    "event_of",
    "event_value",
    "field_name",
    "is_from_jms",
    "message_of",
    "property_name",
]

JMS_TYPE: Final = "Structured Event"
"""JMSType of a message that was an event (000-EJ9)."""

EVENT_HINT: Final = "MTOSIX_event"
"""Property with what is needed to make the same event again: the order and names of its fields, and types that Java
does not have, as JSON."""

_TICKS: Final = 10_000
"""Units of 100 ns in a millisecond."""
_TIME_ZERO_MS: Final = -12_219_292_800_000
"""15 October 1582, the epoch of CORBA's times, in milliseconds since 1970."""
_OHF: Final = "$ohf_"
_FD: Final = "$fd_"
_REPLY_TO: Final = "JMSreplyTo"
_COUNT: Final = "JMSXDeliveryCount"
_MESSAGE_ID: Final = f"{_FD}JMSMessageID"
_FIXED: Final = ("$domain_type", "$type_name", "$event_name")
_DOMAIN_NAME: Final = "$domain_name"


@dataclass(frozen=True, slots=True)
class BridgeRules:
    """The switches of the mapping, for choices and contradictions in the specification.

    Attributes:
        compat: "selector": names are identifiers of selectors, with `_` between a struct and its member and `$uXXXX`
            for what an identifier does not have; "spec": with a `.` there, which no selector can name (000-X2).
        event_name: whether an event's `event_name` is the name of the message's destination (000-JE4).
        keep_nil: whether JMS headers without a value are fields with a null value; else they are left out (000-JE9).
        expiry: whether an expiration becomes a Timeout, relative, or a StopTime, absolute (000-X4).
        no_body: what an event without remainder becomes: a Message without body, or an empty TextMessage (000-X18).
        profile: "omg": an event without EventReliability is PERSISTENT; "mtosi": NON_PERSISTENT, MTOSI's default
            (000-X19).

    Raises:
        ConfigError: a switch that has no such setting.
    """

    compat: Literal["selector", "spec"] = "selector"
    event_name: bool = False
    keep_nil: bool = False
    expiry: Literal["Timeout", "StopTime"] = "Timeout"
    no_body: Literal["message", "text"] = "message"
    profile: Literal["omg", "mtosi"] = "omg"

    def __post_init__(self) -> None:
        for name, settings in _SETTINGS.items():
            found = getattr(self, name)
            if found not in settings:
                raise ConfigError(f"{name}={found!r}: {' or '.join(map(repr, settings))} is needed")


_SETTINGS: Final[Mapping[str, tuple[object, ...]]] = {
    name: get_args(kind) or (True, False) for name, kind in get_type_hints(BridgeRules).items()
}
_RULES: Final = BridgeRules()


def is_from_jms(event: StructuredEvent) -> bool:
    """Whether the event came from JMS: no domain, and a type such as `%TextMessage` (000-JE2, 000-JE3)."""
    return not event.domain_name and event.type_name[1:] in _KINDS and event.type_name.startswith("%")


def _is_from_event(message: JmsMessage) -> bool:
    """Whether the message was an event: JMSType and `$type_name` say so (000-EJ4, 000-EJ9)."""
    return message.jms_type == JMS_TYPE and "$type_name" in message.properties


_KINDS: Final = {kind.value: kind for kind in MessageType}


# JMS to events


def event_of(message: JmsMessage, rules: BridgeRules = _RULES, *, now_ms: int | None = None) -> StructuredEvent | None:
    """Turn a message into an event. `now_ms`: the time, milliseconds since 1970 UTC; None: now. Returns the event; None
    if the message has expired: nobody may see it (000-JE6). Raises EventError: a text is not UTF-8."""
    left = _left_of(message, now_ms)
    if left is not None and left <= 0:
        return None
    if _is_from_event(message):
        return _rebuilt(message, left)
    return StructuredEvent(
        type_name=f"%{message.message_type.value}",
        event_name=message.destination.name if rules.event_name and message.destination is not None else "",
        variable_header=_header_of(message, rules, left, now_ms),
        filterable_data=(
            *(Property(name, any_of(value)) for name, value in _headers_of(message, keep_nil=rules.keep_nil)),
            *(Property(name, any_of(value)) for name, value in message.properties.items()),
        ),
        remainder_of_body=_remainder_of(message),
    )


def _left_of(message: JmsMessage, now_ms: int | None) -> int | None:
    """The remaining time to live, in milliseconds; None for ever."""
    if message.expiration_ms:
        return message.expiration_ms - (_now() if now_ms is None else now_ms)
    return message.time_to_live_ms or None


def _now() -> int:
    return time.time_ns() // 1_000_000


def _header_of(message: JmsMessage, rules: BridgeRules, left: int | None, now_ms: int | None) -> tuple[Property, ...]:
    persistent = message.delivery_mode is DeliveryMode.PERSISTENT
    found = (_RELIABLE if persistent else _UNRELIABLE, _PRIORITIES[message.priority])
    if left is None:
        return found
    if rules.expiry == "Timeout":
        return (*found, _timeout(left))
    stop = (_now() if now_ms is None else now_ms) + left - _TIME_ZERO_MS
    return (*found, Property("StopTime", Any(UTC, (stop * _TICKS, 0, 0, 0))))


def _timeout(left: int) -> Property:
    return Property("Timeout", Any(_TIME, min(left * _TICKS, 2**64 - 1)))


_TIME: Final = TypeCode.of(TCKind.ulonglong)
_SHORT: Final = TypeCode.of(TCKind.short)
_RELIABLE: Final = Property("EventReliability", Any(_SHORT, PERSISTENT))
_UNRELIABLE: Final = Property("EventReliability", Any(_SHORT, BEST_EFFORT))
_PRIORITIES: Final = tuple(Property("Priority", Any(_SHORT, one)) for one in range(10))  # table 2-5 (000-Q4)


def _headers_of(message: JmsMessage, *, keep_nil: bool) -> list[tuple[str, PropertyValue | None]]:
    """The headers that are filterable data (000-JE8, 000-JE11)."""
    destination, reply_to = message.destination, message.reply_to
    found: list[tuple[str, PropertyValue | None]] = [
        ("JMSType", message.jms_type),
        ("JMSMessageID", message.message_id),
        ("JMSTimestamp", None if message.timestamp_ms is None else Long(message.timestamp_ms)),
        (_REPLY_TO, None if reply_to is None else str(reply_to)),
        ("JMSCorrelationID", message.correlation_id),
        ("JMSDestination", None if destination is None else str(destination)),
        ("JMSRedelivered", message.redelivered),
        (_COUNT, message.delivery_count),
    ]
    return found if keep_nil else [one for one in found if one[1] is not None]


def _remainder_of(message: JmsMessage) -> Any:
    """The body, by the type of the message (000-JE15 to 000-JE19)."""
    kind, content = message.message_type, message.content
    if kind is MessageType.TEXT:
        try:
            return any_of(message.body.decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError as exc:
            raise EventError(f"the text is not UTF-8 at byte {exc.start}", "body") from None
    if isinstance(content, Mapping):
        return Any(PROPERTY_SEQ, tuple((name, any_of(value)) for name, value in content.items()))
    if kind is MessageType.STREAM:
        return Any(ANY_SEQ, tuple(any_of(value) for value in content))
    return NULL if kind is MessageType.MESSAGE else Any(OCTET_SEQ, message.body)


# Events to JMS


class _Body(NamedTuple):
    kind: MessageType
    body: bytes
    content: Content
    hint: Json
    """The hint that restores the same value; None if none is needed."""


def message_of(event: StructuredEvent, rules: BridgeRules = _RULES, *, now_ms: int | None = None) -> JmsMessage | None:
    """Turn an event into a message; the provider that sends it sets the other headers (000-EJ9). `now_ms`: the time,
    milliseconds since 1970 UTC; None: now. Returns the message; None if the event's StopTime has passed: nobody may see
    it (000-X4). Raises EventError: a value does not match its TypeCode, or its kind is refused; with its name."""
    header = {one.name: one.value for one in reversed(event.variable_header)}
    left = _life_of(header, now_ms)
    if left is not None and left <= 0:
        return None
    if is_from_jms(event):
        return _restored(event, rules, header, left, now_ms)
    found: dict[str, PropertyValue] = dict(
        zip(_FIXED, (event.domain_name, event.type_name, event.event_name), strict=True)
    )
    hints = {
        "h": [_put_header(found, one, header, rules) for one in event.variable_header],
        "f": [_put(found, _FD, one, rules) for one in event.filterable_data],
    }
    body = _body_of(event.remainder_of_body, rules)
    if body.hint is not None:
        hints["b"] = body.hint
    found[EVENT_HINT] = json.dumps(hints, separators=(",", ":"))
    return JmsMessage(
        message_type=body.kind,
        body=body.body,
        content=body.content,
        properties=Properties.trusted(found),
        delivery_mode=_mode_of(header, rules),
        priority=_priority_of(header),
        time_to_live_ms=left or 0,
        jms_type=JMS_TYPE,
    )


def _integer(header: Mapping[str, Any], name: str) -> int | None:
    """A field of the variable header as a whole number, whatever its type; None if there is none."""
    found = header.get(name)
    if found is None:
        return None
    if isinstance(found.value, bool) or not isinstance(found.value, int):
        raise EventError(f"a {found.type.plain.kind.name} is not a whole number", name)
    return found.value


def _mode_of(header: Mapping[str, Any], rules: BridgeRules) -> DeliveryMode:
    found = _integer(header, "EventReliability")
    if found is None:
        return DeliveryMode.PERSISTENT if rules.profile == "omg" else DeliveryMode.NON_PERSISTENT
    mode = EVENT_RELIABILITY.get(found)
    if mode is None:
        raise EventError(f"{found} is neither BestEffort (0) nor Persistent (1)", "EventReliability")
    return mode


def _priority_of(header: Mapping[str, Any]) -> int:
    found = _integer(header, "Priority")
    return 4 if found is None else priority_to_jms(found)


def _life_of(header: Mapping[str, Any], now_ms: int | None) -> int | None:
    """Milliseconds to live, rounded up: the earlier of Timeout and StopTime; None for ever."""
    lives = []
    timeout = _integer(header, "Timeout")
    if timeout is not None and timeout > 0:
        lives.append(-(-timeout // _TICKS))
    stop = header.get("StopTime")
    if stop is not None:
        moment = stop.value[0] if isinstance(stop.value, tuple) and stop.value else None
        if not isinstance(moment, int):
            raise EventError("a TimeBase::UtcT is needed", "StopTime")
        lives.append(-(-moment // _TICKS) + _TIME_ZERO_MS - (_now() if now_ms is None else now_ms))
    return min(lives[0], lives[-1], LONG_MAX) if lives else None


def _put_header(found: dict[str, PropertyValue], one: Property, header: Mapping[str, Any], rules: BridgeRules) -> Json:
    """Stores a field of the variable header in the message, and returns the hint that restores it."""
    if one.name not in _STANDARD:
        return _put(found, _OHF, one, rules)
    if one.value is not header[one.name]:
        return _in_full(one)  # only the first of a name is used
    derived = _DERIVED.get(one.name)
    if derived is not None and one.value.type.kind is derived.kind and _is_expressed(one, header):
        return one.name
    ages = one.name == "Timeout" and "StopTime" not in header
    return [*_in_full(one)[:2], 2] if ages else _in_full(one)


def _is_expressed(one: Property, header: Mapping[str, Any]) -> bool:
    """Whether the message's headers fully express a field of the variable header."""
    value = one.value.value
    if not isinstance(value, int) or one.name == "EventReliability":
        return True
    if one.name == "Priority":
        return 0 <= value <= 9
    return value > 0 and value % _TICKS == 0 and "StopTime" not in header


_DERIVED: Final = {"EventReliability": _SHORT, "Priority": _SHORT, "Timeout": _TIME}
_STANDARD: Final = frozenset({*_DERIVED, "StopTime"})


def _in_full(one: Property) -> Json:
    try:
        return [one.name, b64encode(encode_any(one.value)).decode(), 1]
    except EventError as exc:
        raise exc.inside(one.name) from None


def _put(found: dict[str, PropertyValue], prefix: str, one: Property, rules: BridgeRules) -> Json:
    """Stores a field as a property, and returns the hint that restores it.

    A name alone: the property's type is enough. [name, type]: the property has the value, but not the type.
    [name, octets, 1]: the octets are the value. [name, octets, 2]: the octets are a Timeout, of which time may have
    passed. [name, 0]: the property holds the value's octets.
    """
    name, code, value = one.name, one.value.type, one.value.value
    key = property_name(prefix, name)
    try:
        made = _java(code, value)
        if made is not None and key not in found:
            found[key] = made
            return name if _is_default(code, value) else [name, _word(code)]
        plain = code.plain
        if made is None and plain.kind is TCKind.struct and _expands(plain):
            _linearise(found, key, plain, value, rules)
        elif made is None and plain.kind not in _NOTHING and key not in found:
            found[key] = b64encode(encode_any(one.value)).decode()
            return [name, 0]
        return _in_full(one)
    except EventError as exc:
        raise (exc if exc.path.startswith(name) else exc.inside(name)) from None


_NOTHING: Final = (TCKind.null, TCKind.void)


def event_value(value: Any) -> PropertyValue | None:
    """The value of a field as a property; None if Java has no primitive for it. Raises EventError: the value does not
    match its TypeCode."""
    return _java(value.type, value.value)


def _java(code: TypeCode, value: Value) -> PropertyValue | None:
    convert = _TO_JAVA.get(code.kind)
    if convert is not None:
        return convert(value)
    plain = code.plain
    if plain is not code:
        return _java(plain, value)
    if plain.kind is not TCKind.enum:
        return None
    if isinstance(value, str) and any(member.name == value for member in code.members):
        return value
    raise EventError(f"{value!r:.60} is not a member of {code.name or 'the enumeration'}")


def _expands(code: TypeCode) -> bool:
    """Whether a struct is linearised: each of its members is a struct or a primitive (000-EJ7)."""
    plains = [member.type.plain for member in code.members if member.type is not None]
    return all(plain.kind is TCKind.struct or plain.kind in _TO_JAVA or plain.kind is TCKind.enum for plain in plains)


def _linearise(found: dict[str, PropertyValue], key: str, code: TypeCode, value: Value, rules: BridgeRules) -> None:
    if not isinstance(value, tuple) or len(value) != len(code.members):
        raise EventError(f"{code.name or 'the struct'} has {len(code.members)} members")
    for member, one in zip(code.members, value, strict=True):
        if member.type is None:
            raise EventError(f"{member.name} has no type")
        joined = key + (f".{_escaped(member.name)}" if rules.compat == "spec" else f"_{_escaped(member.name)}")
        plain = member.type.plain
        made = _java(plain, one)
        if made is None and plain.kind is TCKind.struct and _expands(plain):
            _linearise(found, joined, plain, one, rules)
        elif joined not in found:
            found[joined] = b64encode(encode_any(Any(member.type, one))).decode() if made is None else made


def property_name(prefix: str, name: str) -> str:
    """The name of the property that a field becomes: a valid identifier of selectors (000-EJ6). `name`: name of the
    field, with any characters."""
    return prefix + _escaped(name)


@lru_cache(4096)
def _escaped(name: str) -> str:
    if name.isascii() and name.replace("_", "a").isalnum():
        return name
    return "".join(one if one == "_" or _is_letter(one) else _units(one) for one in name)


def _is_letter(character: str) -> bool:
    return character.isalnum() and f"_{character}".isidentifier()


def _units(character: str) -> str:
    octets = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"$u{octets[at : at + 2].hex().upper()}" for at in range(0, len(octets), 2))


@lru_cache(4096)
def field_name(escaped: str) -> str:
    """The name of a field, from the name of its property without the prefix."""
    if "$u" not in escaped:
        return escaped
    pieces = escaped.split("$u")
    units = pieces[0].encode("utf-16-be", "surrogatepass")
    for piece in pieces[1:]:
        try:
            units += bytes.fromhex(piece[:4]) if len(piece) >= 4 else b""
        except ValueError:
            return escaped
        units += piece[4:].encode("utf-16-be", "surrogatepass")
    return units.decode("utf-16-be", "surrogatepass") if all(len(one) >= 4 for one in pieces[1:]) else escaped


def _whole(bits: int, signed: bool, kind: type[int]) -> Callable[[Value], PropertyValue]:
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
    half, whole = 2 ** (bits - 1), 2**bits

    def convert(value: Value) -> PropertyValue:
        if not isinstance(value, int) or value is True or value is False or not least <= value < most:
            raise EventError(f"{value!r:.60} is not a whole number of {bits} bits")
        return kind(value - whole if value >= half else value)

    return convert


def _boolean(value: Value) -> PropertyValue:
    if value is True or value is False:
        return value
    raise EventError(f"{value!r:.60} is not a boolean")


def _double(value: Value) -> PropertyValue:
    if isinstance(value, float):
        return float(value)
    raise EventError(f"{value!r:.60} is not a floating-point number")


def _single(value: Value) -> PropertyValue:
    return Float(_double(value))


def _text(value: Value) -> PropertyValue:
    if isinstance(value, str):
        return value
    raise EventError(f"{value!r:.60} is not text")


_TO_JAVA: Final[Mapping[TCKind, Callable[[Value], PropertyValue]]] = {
    TCKind.boolean: _boolean,
    TCKind.octet: _whole(8, False, Byte),
    TCKind.short: _whole(16, True, Short),
    TCKind.ushort: _whole(16, False, Short),
    TCKind.long: _whole(32, True, int),
    TCKind.ulong: _whole(32, False, int),
    TCKind.longlong: _whole(64, True, Long),
    TCKind.ulonglong: _whole(64, False, Long),
    TCKind.float: _single,
    TCKind.double: _double,
    TCKind.char: _text,
    TCKind.wchar: _text,
    TCKind.string: _text,
    TCKind.wstring: _text,
}
"""IDL to Java, by the standard mapping. Properties cannot be a Java char, so a character is a String (000-EJ5)."""

_UNSIGNED: Final = {TCKind.octet: 0xFF, TCKind.ushort: 0xFFFF, TCKind.ulong: 2**32 - 1, TCKind.ulonglong: 2**64 - 1}
_EXACT: Final = {
    kind: TypeCode.of(kind)
    for kind in (
        *(TCKind.boolean, TCKind.octet, TCKind.short, TCKind.long, TCKind.longlong, TCKind.float, TCKind.double),
        TCKind.null,
    )
}


def _is_default(code: TypeCode, value: Value) -> bool:
    """Whether the standard mapping of Java to IDL restores the same type from the Java value."""
    kind = code.kind
    if kind is TCKind.string or kind is TCKind.wstring:
        latin = isinstance(value, str) and (value.isascii() or max(value) <= "\xff")
        return not code.length and latin is (kind is TCKind.string)
    return kind in _EXACT


@lru_cache(1024)
def _word(code: TypeCode) -> str:
    """A TypeCode as text: the name of a kind without parameters, or octets."""
    try:
        if TypeCode.of(code.kind) == code:
            return code.kind.name
    except EventError:
        pass
    return f"={b64encode(encode_typecode(code)).decode()}"


@lru_cache(1024)
def _code(word: str) -> TypeCode:
    return decode_typecode(b64decode(word[1:])) if word.startswith("=") else TypeCode.of(TCKind[word])


def _body_of(remainder: Any, rules: BridgeRules) -> _Body:
    """The remainder of the body as the body of a message (000-EJ10 to 000-EJ13)."""
    code, value = remainder.type, remainder.value
    plain = code.plain
    kind = plain.kind
    try:
        if kind in _NOTHING:
            empty = MessageType.MESSAGE if rules.no_body == "message" else MessageType.TEXT
            plainly = code == NULL.type and empty is MessageType.MESSAGE
            return _Body(empty, b"", (), None if plainly else {"t": _word(code)})
        if kind is TCKind.string or kind is TCKind.wstring:
            text = str(_text(value)).encode("utf-8", "surrogatepass")
            return _Body(MessageType.TEXT, text, (), None if _is_default(code, value) else {"t": _word(code)})
        if kind in _TO_JAVA:
            return _Body(MessageType.STREAM, b"", (_element(plain, value),), {"t": _word(code)})
        if kind in (TCKind.sequence, TCKind.array) and plain.content is not None:
            found = _sequence_of(code, plain.content.plain, value)
            if found is not None:
                return found
        return _Body(MessageType.BYTES, encode_any(remainder), (), {"c": 1})
    except EventError as exc:
        raise exc.inside("remainder_of_body") from None


def _sequence_of(code: TypeCode, content: TypeCode, value: Value) -> _Body | None:
    """A sequence as a body; None if messages have no body of its type."""
    if content.kind is TCKind.octet:
        if not isinstance(value, bytes):
            raise EventError("bytes are needed")
        return _Body(MessageType.BYTES, value, (), None if code == OCTET_SEQ else {"t": _word(code)})
    if not isinstance(value, tuple):
        raise EventError("a tuple is needed")
    if content.kind in _TO_JAVA:
        made = tuple(_element(content, one) for one in value)
        return _Body(MessageType.STREAM, b"", made, {"t": _word(code)})
    if content.kind is TCKind.any:
        return _typed(MessageType.STREAM, code, None, value)
    if content.repository_id == PROPERTY.repository_id and content.kind is TCKind.struct:
        names = [one[0] for one in value if isinstance(one, tuple) and len(one) == 2]
        if len(names) == len(value) == len({name for name in names if isinstance(name, str) and name}):
            return _typed(MessageType.MAP, code, names, tuple(one[1] for one in value))  # type: ignore[index]
    return None


def _typed(kind: MessageType, code: TypeCode, names: list[Value] | None, values: tuple[Value, ...]) -> _Body | None:
    """Anys as the content of a map or stream; None if one is not a primitive."""
    made: list[BodyValue] = []
    words = {}
    for number, one in enumerate(values):
        if not isinstance(one, Any) or not _is_element(one.type.plain):
            return None
        made.append(_element(one.type.plain, one.value))
        if not (_is_default(one.type, one.value) or any_of(made[-1]).type == one.type):
            words[str(number)] = _word(one.type)
    default = ANY_SEQ if names is None else PROPERTY_SEQ
    hint: dict[str, Json] = {} if code == default else {"t": _word(code)}
    if words:
        hint["e"] = words
    content: Content = tuple(made) if names is None else dict(zip(map(str, names), made, strict=True))
    return _Body(kind, b"", content, hint or None)


def _is_element(plain: TypeCode) -> bool:
    octets = plain.kind is TCKind.sequence and plain.content is not None and plain.content.plain.kind is TCKind.octet
    return plain.kind in _TO_JAVA or plain.kind in _NOTHING or octets


def _element(plain: TypeCode, value: Value) -> BodyValue:
    if plain.kind in _NOTHING:
        return None
    if plain.kind is TCKind.sequence:
        if isinstance(value, bytes):
            return value
        raise EventError("bytes are needed")
    made = _TO_JAVA[plain.kind](value)
    if plain.kind in (TCKind.char, TCKind.wchar) and isinstance(made, str):
        if len(made) != 1 or made > "\uffff":
            raise EventError(f"{made!r:.60} is not a character of Java")
        return Char(made)
    return made


# What JMS made, again as a message


_HEADERS: Final[Mapping[str, type]] = {
    "JMSType": str,
    "JMSMessageID": str,
    "JMSTimestamp": int,
    _REPLY_TO: str,
    "JMSReplyTo": str,
    "JMSCorrelationID": str,
    "JMSDestination": str,
    "JMSRedelivered": bool,
    _COUNT: int,
}


def _restored(
    event: StructuredEvent, rules: BridgeRules, header: Mapping[str, Any], left: int | None, now_ms: int | None
) -> JmsMessage:
    headers: dict[str, Value] = {}
    properties: dict[str, PropertyValue] = {}
    for one in event.filterable_data:
        kind = _HEADERS.get(one.name)
        value = one.value.value
        if kind is not None and (value is None or type(value) is kind):
            headers.setdefault(one.name, value)
        elif is_property_name(one.name) and (made := _java(one.value.type, value)) is not None:
            properties.setdefault(one.name, made)
        else:
            _put(properties, _FD, one, rules)
    message_id, stamp = headers.get("JMSMessageID"), headers.get("JMSTimestamp")
    if isinstance(message_id, str):
        properties.setdefault(_MESSAGE_ID, message_id)
    for one in event.variable_header:
        if one.name not in _STANDARD:
            _put(properties, _OHF, one, rules)
    body = _body_of(event.remainder_of_body, rules)
    if event.remainder_of_body.type.plain.kind in _NOTHING and event.type_name == "%Message":
        body = _Body(MessageType.MESSAGE, b"", (), None)
    expires = left is not None and isinstance(stamp, int)
    count = headers.get(_COUNT, 1)
    return JmsMessage(
        message_type=body.kind,
        body=body.body,
        content=body.content,
        properties=Properties.trusted(properties) if properties else NO_PROPERTIES,
        destination=_destination(headers.get("JMSDestination")),
        reply_to=_destination(headers.get(_REPLY_TO, headers.get("JMSReplyTo"))),
        delivery_mode=_mode_of(header, rules),
        priority=_priority_of(header),
        time_to_live_ms=left or 0,
        message_id=message_id,  # type: ignore[arg-type]
        timestamp_ms=stamp,  # type: ignore[arg-type]
        expiration_ms=(_now() if now_ms is None else now_ms) + left if expires and left is not None else 0,
        correlation_id=headers.get("JMSCorrelationID"),  # type: ignore[arg-type]
        jms_type=headers.get("JMSType"),  # type: ignore[arg-type]
        redelivered=headers.get("JMSRedelivered") is True,
        delivery_count=count if isinstance(count, int) else 1,
    )


def _destination(text: Value) -> Destination | None:
    """A destination from its text; None if there is none, or the text is not one."""
    kind, _, name = text.partition(":") if isinstance(text, str) else ("", "", "")
    try:
        return KINDS[kind](name)
    except (KeyError, ConfigError):
        return None


# What a channel made, again as an event


def _rebuilt(message: JmsMessage, left: int | None) -> StructuredEvent:
    try:
        hints = json.loads(str(message.properties[EVENT_HINT]))
        return _by_hints(message, left, hints)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):  # EventError is a ValueError
        return _by_names(message, left)


def _fixed(message: JmsMessage) -> tuple[str, str, str]:
    found = message.properties
    domain = found.get("$domain_type", found.get(_DOMAIN_NAME, ""))
    return str(domain), str(found.get("$type_name", "")), str(found.get("$event_name", ""))


def _standard(message: JmsMessage, left: int | None) -> dict[str, Any]:
    """The fields of the variable header that follow from the message's headers."""
    persistent = message.delivery_mode is DeliveryMode.PERSISTENT
    found = {one.name: one.value for one in (_RELIABLE if persistent else _UNRELIABLE, _PRIORITIES[message.priority])}
    if left is not None:
        found["Timeout"] = _timeout(left).value
    return found


def _by_names(message: JmsMessage, left: int | None) -> StructuredEvent:
    """Restores an event without hints, from the names of the properties."""
    header = [Property(name, value) for name, value in _standard(message, left).items()]
    data = []
    for name, value in message.properties.items():
        if name.startswith(_OHF):
            header.append(Property(field_name(name[len(_OHF) :]), any_of(value)))
        elif name.startswith(_FD):
            data.append(Property(field_name(name[len(_FD) :]), any_of(value)))
        elif name not in _FIXED and name not in (_DOMAIN_NAME, EVENT_HINT):
            data.append(Property(name, any_of(value)))
    return StructuredEvent(*_fixed(message), tuple(header), tuple(data), _remainder_of(message))


def _by_hints(message: JmsMessage, left: int | None, hints: Json) -> StructuredEvent:
    standard, seen = _standard(message, left), {*_FIXED, EVENT_HINT}
    header = tuple(_field(_OHF, one, message.properties, standard, seen) for one in hints["h"])
    data = [_field(_FD, one, message.properties, {}, seen) for one in hints["f"]]
    data += [
        Property(name, any_of(value))
        for name, value in message.properties.items()
        if name not in seen and not name.startswith((_OHF, _FD))
    ]
    return StructuredEvent(*_fixed(message), header, tuple(data), _remainder_by(message, hints.get("b")))


def _field(
    prefix: str, hint: Json, properties: Mapping[str, PropertyValue], standard: Mapping[str, Any], seen: set[str]
) -> Property:
    """Restores a field from the hint that `_put` returned."""
    name, *rest = [hint] if isinstance(hint, str) else hint
    if len(rest) == 2:
        value = decode_any(b64decode(rest[0]))
        return Property(name, _still(value, standard.get(name)) if rest[1] == 2 else value)
    if name in standard and not rest:
        return Property(name, standard[name])
    key = property_name(prefix, name)
    seen.add(key)
    found = properties[key]
    if not rest:
        return Property(name, any_of(found))
    if rest[0] == 0:
        return Property(name, decode_any(b64decode(str(found))))
    code = _code(rest[0])
    return Property(name, Any(code, _idl(code, found)))


def _still(value: Any, left: Any | None) -> Any:
    """A Timeout with fractions of milliseconds, unless time has passed since."""
    if left is None or not isinstance(value.value, int) or not isinstance(left.value, int):
        return value
    return value if -(-value.value // _TICKS) * _TICKS == left.value else left


def _idl(code: TypeCode, value: BodyValue) -> Value:
    kind = code.plain.kind
    mask = _UNSIGNED.get(kind)
    if mask is not None:
        return int(value) & mask  # type: ignore[arg-type]
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool) or value is None or isinstance(value, bytes):
        return value
    return float(value) if isinstance(value, float) else int(value)


_Sequence: TypeAlias = tuple[Any, ...]


def _remainder_by(message: JmsMessage, hint: Json) -> Any:
    """Restores the remainder of the body from the hint that `_body_of` returned."""
    if hint is None:
        return _remainder_of(message)
    if "c" in hint:
        return decode_any(message.body)
    code = _code(hint["t"]) if "t" in hint else None
    if message.message_type is MessageType.TEXT:
        body = (
            None if code is not None and code.plain.kind in _NOTHING else message.body.decode("utf-8", "surrogatepass")
        )
        return Any(code or NULL.type, body)
    if message.message_type is MessageType.BYTES:
        return Any(code or OCTET_SEQ, message.body)
    if message.message_type is MessageType.MESSAGE:
        return Any(code or NULL.type)
    words, content = hint.get("e", {}), message.content
    if isinstance(content, Mapping):
        pairs = zip(content, _anys(list(content.values()), words), strict=True)
        return Any(code or PROPERTY_SEQ, tuple(pairs))
    if code is None:
        return Any(ANY_SEQ, _anys(list(content), words))
    plain = code.plain
    if plain.content is None:
        return Any(code, _idl(code, content[0]))
    if plain.content.plain.kind is TCKind.any:
        return Any(code, _anys(list(content), words))
    return Any(code, tuple(_idl(plain.content, one) for one in content))


def _anys(values: list[BodyValue], words: Mapping[str, str]) -> _Sequence:
    found = []
    for number, value in enumerate(values):
        word = words.get(str(number))
        code = None if word is None else _code(word)
        found.append(any_of(value) if code is None else Any(code, _idl(code, value)))
    return tuple(found)
