"""The JMS message: headers, typed properties, and a body that this module does not read (P14, P37).

Messages are immutable. One class holds both what a sender asks for (delivery mode, priority, time to live) and what a
provider sets on sending (message id, timestamp, expiration). Sending returns a copy with the provider's values, in
place of any that the sender had set (C45).
"""

from __future__ import annotations

import enum
import math
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field, fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, TypeAlias, TypeVar, overload

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms._destinations import Destination
from mtosi_jms.masking import MASK, is_secret, shown_half_made, without_login

__all__ = [
    "DUPLICATE_ID",
    "INT_MAX",
    "INT_MIN",
    "LONG_MAX",
    "LONG_MIN",
    "NO_PROPERTIES",
    "RESERVED_WORDS",
    "RUN_ID",
    "BodyValue",
    "Byte",
    "Char",
    "Content",
    "DeliveryMode",
    "Float",
    "JmsMessage",
    "Long",
    "MessageType",
    "Properties",
    "PropertyValue",
    "Short",
    "is_property_name",
    "jms_type_name",
]

INT_MIN: Final = -(2**31)
INT_MAX: Final = 2**31 - 1
LONG_MIN: Final = -(2**63)
LONG_MAX: Final = 2**63 - 1

RESERVED_WORDS: Final = frozenset(
    {"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"}
)
"""The reserved words of selectors, in any letter case. A property must not have such a name."""

DUPLICATE_ID: Final = "MTOSIX_messageId"
"""Property that tells a resent PERSISTENT message from a new one. It is this project's own, not part of MTOSI."""

RUN_ID: Final = "MTOSIX_runId"
"""Property that all partial responses of one answer share. If the request is delivered again, its value differs."""

_BODY_SHOWN: Final = 24

E = TypeVar("E", bound=enum.Enum)
K = TypeVar("K")
V_co = TypeVar("V_co", covariant=True)
T = TypeVar("T")


class _Typed:
    """A value that shows its JMS type."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()})"


class Long(_Typed, int):
    """An integer that travels as a JMS Long; a plain int is a JMS Integer of 32 bits."""

    __slots__ = ()


class Byte(_Typed, int):
    """An integer that travels as a JMS Byte, of 8 bits."""

    __slots__ = ()


class Short(_Typed, int):
    """An integer that travels as a JMS Short, of 16 bits."""

    __slots__ = ()


class Float(_Typed, float):
    """A number that travels as a JMS Float, of 32 bits; a plain float is a Double."""

    __slots__ = ()


class Char(_Typed, str):
    """A Java char, one character up to U+FFFF: a value in a MapMessage or StreamMessage, never of a property."""

    __slots__ = ()


PropertyValue: TypeAlias = str | int | bool | float
BodyValue: TypeAlias = PropertyValue | Char | bytes | None
"""A value in a MapMessage or StreamMessage: of a property's type, or a Char, bytes or null."""
Content: TypeAlias = Mapping[str, BodyValue] | Sequence[BodyValue]
"""The values of a MapMessage by name, or those of a StreamMessage in order."""
_BITS: Final[Mapping[type[int], int]] = {Byte: 8, Short: 16, int: 32, Long: 64}


class MessageType(enum.Enum):
    """The kinds of message. TEXT and BYTES carry an envelope; MTOSI sends TEXT (O1).

    MAP and STREAM carry values (`JmsMessage.content`), MESSAGE carries nothing. The serialised Java object of an OBJECT
    is never read: such a message arrives from Java empty, and cannot be sent to Java.
    """

    TEXT = "TextMessage"
    BYTES = "BytesMessage"
    MAP = "MapMessage"
    STREAM = "StreamMessage"
    OBJECT = "ObjectMessage"
    MESSAGE = "Message"


class DeliveryMode(enum.IntEnum):
    """JMSDeliveryMode, with the numbers of the JMS API."""

    NON_PERSISTENT = 1
    PERSISTENT = 2


@lru_cache(4096)
def is_property_name(name: str) -> bool:
    """Whether JMS allows the name for a property: a Java identifier, not a word of selectors, not a header's name.

    Transports use it to leave out names from a peer that a message cannot hold. `JMSX...` and `JMS_...` are allowed:
    the properties of the standard and of the provider.
    """
    if not name.replace("$", "_").isidentifier() or name.upper() in RESERVED_WORDS:
        return False
    return not name.startswith("JMS") or name.startswith(("JMSX", "JMS_"))


def jms_type_name(value: PropertyValue) -> str:
    """Return the JMS type of a property value: String, Boolean, Byte, Short, Integer, Long, Float or Double."""
    return _TYPE_NAMES[type(value)]


_TYPE_NAMES: Final[Mapping[type[PropertyValue], str]] = {
    str: "String",
    bool: "Boolean",
    Byte: "Byte",
    Short: "Short",
    int: "Integer",
    Long: "Long",
    Float: "Float",
    float: "Double",
}


def _checked(name: object, value: object) -> PropertyValue:
    """Return the value as one of the eight exact types, or raise ConfigError. The error never shows the value."""
    if not isinstance(name, str) or not is_property_name(name):
        raise ConfigError(f"property {name!r}: not a name that JMS allows for a property")
    kind: type[Any] = type(value)
    if kind is str or kind is bool or kind is float:
        return value  # type: ignore[return-value]
    if isinstance(value, str):  # such as a member of a string enum: selectors and transports need the plain text
        return str.__str__(value)
    if isinstance(value, int):
        exact: type[int] = kind if kind in _BITS else Long if isinstance(value, Long) else int
        most = 2 ** (_BITS[exact] - 1)
        if not -most <= value < most:
            more = "; use Long for more" if exact is int else ""
            raise ConfigError(f"property {name}: a JMS {_TYPE_NAMES[exact]} has {_BITS[exact]} bits{more}")
        return value if kind is exact else exact(value)
    if kind is Float:
        return value  # type: ignore[return-value]
    if isinstance(value, float):
        return float(value)
    raise ConfigError(
        f"property {name}: {type(value).__name__} is not a property type; str, int, bool, float, "
        "Long, Byte, Short, Float are"
    )


class FrozenMap(Mapping[K, V_co]):
    """A mapping that cannot change, for the fields of frozen dataclasses.

    A `MappingProxyType` still changes with its dict, and can be neither hashed nor sent to another process.
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V_co] | Iterable[tuple[K, V_co]] = ()) -> None:
        self._items: dict[K, V_co] = dict(items)

    def __getitem__(self, key: K) -> V_co:
        return self._items[key]

    @overload
    def get(self, key: K, /) -> V_co | None: ...
    @overload
    def get(self, key: K, /, default: V_co | T) -> V_co | T: ...
    def get(self, key: K, /, default: Any = None) -> Any:
        """Return the value of a key, or the default. Faster than `Mapping.get`, which catches a KeyError."""
        return self._items.get(key, default)

    # The methods that Mapping has are slower: they go through the items one by one.

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def keys(self) -> KeysView[K]:
        return self._items.keys()

    def values(self) -> ValuesView[V_co]:
        return self._items.values()

    def items(self) -> ItemsView[K, V_co]:
        return self._items.items()

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._items,)

    @shown_half_made
    def __repr__(self) -> str:
        return repr(self._items)


class Properties(FrozenMap[str, PropertyValue]):
    """The typed properties of a message: immutable, checked by the rules of JMS, with secrets masked in `repr`.

    Values have a JMS type: str is a String, bool a Boolean, int an Integer, float a Double; Byte, Short, Long and Float
    are the types of these names. Other subclasses of str, int and float become the plain type. Raises ConfigError: JMS
    does not allow a name, a value has another type, or an integer is too large for its type."""

    __slots__ = ()

    def __init__(self, items: Mapping[str, PropertyValue] | Iterable[tuple[str, PropertyValue]] = ()) -> None:
        try:
            given = dict(items)
        except (TypeError, ValueError):
            raise ConfigError(f"properties are a mapping of names to values, not {type(items).__name__}") from None
        self._items = {name: _checked(name, value) for name, value in given.items()}

    @classmethod
    def trusted(cls, items: dict[str, PropertyValue]) -> Properties:
        """Make properties whose names and values are already checked. The dict is not copied: do not change it."""
        made = cls.__new__(cls)
        made._items = items
        return made

    @shown_half_made
    def __repr__(self) -> str:
        shown = (f"{name!r}: {MASK if is_secret(name) else without_login(repr(value))}" for name, value in self.items())
        return f"{{{', '.join(shown)}}}"


def _checked_value(place: str, value: object) -> BodyValue:
    """Return the value of a map or stream as one of the exact types, or raise ConfigError."""
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, Char):
        if len(value) != 1 or value > "\uffff":
            raise ConfigError(f"{place}: a JMS Char is one character up to U+FFFF")
        return value
    if isinstance(value, (str, int, float)):
        return _checked("value", value)
    raise ConfigError(f"{place}: {type(value).__name__} is not a value of maps and streams")


def _checked_content(kind: MessageType, content: object) -> Content:
    """Return the content of a message of this kind, immutable, or raise ConfigError."""
    if kind is MessageType.MAP:
        if not isinstance(content, Mapping):
            if content != ():
                raise ConfigError("the content of a MapMessage is a mapping of names to values")
            content = {}
        if not all(isinstance(name, str) and name for name in content):
            raise ConfigError("a name in a MapMessage is a text that is not empty")
        return FrozenMap({str(name): _checked_value(repr(name), value) for name, value in content.items()})
    if isinstance(content, (str, bytes)) or not isinstance(content, Sequence):
        raise ConfigError("the content of a StreamMessage is a sequence of values")
    if kind is not MessageType.STREAM and content:
        raise ConfigError(f"a {kind.value} has a body and no content")
    return tuple(_checked_value(f"value {number}", value) for number, value in enumerate(content, 1))


def _one_of(kind: type[E], value: object) -> E:
    """Return the member of an enumeration by its value, or raise ConfigError."""
    try:
        return kind(value)
    except (ArithmeticError, TypeError, ValueError):
        names = " or ".join(member.name for member in kind)
        raise ConfigError(f"{kind.__name__} {value!r:.60}: {names} is needed") from None


def _is_duration(value: int) -> bool:
    return (type(value) is int or type(value) is Long) and 0 <= value <= LONG_MAX


NO_PROPERTIES: Final = Properties()
_WITHOUT_BODY: Final = (MessageType.MAP, MessageType.STREAM)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, weakref_slot=True)
class JmsMessage:
    """One JMS message, to be sent or received.

    Attributes:
        body: the envelope's bytes, not parsed here; any bytes-like object is accepted.
        message_type: the kind of message; TEXT unless the peer sent bytes (O1).
        content: the values of a MAP by name, or those of a STREAM in order; both have no body. Empty for other kinds.
        properties: application properties with their JMS types; any mapping is accepted and copied.
        destination: where the message goes; the provider sets it on sending (C45).
        reply_to: JMSReplyTo, a destination and not its name (R15b); None: no answer is wanted.
        delivery_mode: asked for on sending; NON_PERSISTENT unless set (O6b, C20).
        priority: asked for on sending; 0 to 9 (O7c).
        time_to_live_ms: asked for on sending; milliseconds, 0: never expires (P13).
        delivery_delay_ms: asked for on sending; milliseconds that the provider holds the message back. JMS 2.0, and
            only if the transport has DELIVERY_DELAY.
        message_id: JMSMessageID, `ID:...`, set by the provider.
        timestamp_ms: JMSTimestamp, milliseconds since 1970 UTC, set by the provider.
        expiration_ms: JMSExpiration, milliseconds since 1970 UTC, set by the provider; 0: never.
        delivery_time_ms: JMSDeliveryTime, milliseconds since 1970 UTC, set by a provider of JMS 2.0; 0: not set.
        correlation_id: JMSCorrelationID; for a reply, the message id of its request (O13c).
        jms_type: JMSType; MTOSI does not use it.
        redelivered: JMSRedelivered: the message was probably delivered before, and not acknowledged.
        delivery_count: how often the message was delivered, this time included.

    Raises:
        ConfigError: a value out of its range or of the wrong type.
    """

    body: bytes = b""
    message_type: MessageType = MessageType.TEXT
    content: Content = ()
    properties: Mapping[str, PropertyValue] = field(default=NO_PROPERTIES)
    destination: Destination | None = None
    reply_to: Destination | None = None
    delivery_mode: DeliveryMode = DeliveryMode.NON_PERSISTENT
    priority: int = 4
    time_to_live_ms: int = 0
    delivery_delay_ms: int = 0
    message_id: str | None = None
    timestamp_ms: int | None = None
    expiration_ms: int = 0
    delivery_time_ms: int = 0
    correlation_id: str | None = None
    jms_type: str | None = None
    redelivered: bool = False
    delivery_count: int = 1

    def __post_init__(self) -> None:
        if type(self.body) is not bytes:
            if not isinstance(self.body, (bytes, bytearray, memoryview)):
                raise ConfigError(f"the body of a message is bytes, not {type(self.body).__name__}")
            object.__setattr__(self, "body", bytes(self.body))
        if type(self.properties) is not Properties:
            object.__setattr__(self, "properties", Properties(self.properties))
        if type(self.message_type) is not MessageType:
            object.__setattr__(self, "message_type", _one_of(MessageType, self.message_type))
        if self.content != () or self.message_type is MessageType.MAP:
            object.__setattr__(self, "content", _checked_content(self.message_type, self.content))
        if self.body and self.message_type in _WITHOUT_BODY:
            raise ConfigError(f"a {self.message_type.value} has no body: its values are its content")
        self._check_settings()
        if type(self.delivery_mode) is not DeliveryMode:
            object.__setattr__(self, "delivery_mode", _one_of(DeliveryMode, self.delivery_mode))
        for destination in (self.destination, self.reply_to):
            if destination is not None and not isinstance(destination, Destination):
                raise ConfigError(f"{destination!r} is a name, not a destination: look it up first (R15b)")

    def _check_settings(self) -> None:
        if type(self.priority) is not int or not 0 <= self.priority <= 9:
            raise ConfigError(f"priority {self.priority!r}: JMS has 0 to 9")
        if not _is_duration(self.time_to_live_ms):
            raise ConfigError(f"time to live {self.time_to_live_ms!r}: whole milliseconds, not negative, 0 for ever")
        if not _is_duration(self.delivery_delay_ms):
            raise ConfigError(f"delivery delay {self.delivery_delay_ms!r}: whole milliseconds, not negative")

    @shown_half_made
    def __repr__(self) -> str:
        shown = f"{self.body[:_BODY_SHOWN]!r}{'...' if len(self.body) > _BODY_SHOWN else ''} ({len(self.body)} bytes)"
        facts = [self.message_type.value, f"body={shown}", f"properties={self.properties!r}"]
        if self.content:
            facts.append(f"content={len(self.content)} values")
        facts += [f"{name}={value}" for name, value in self._routing() if value is not None]
        if self.redelivered:
            facts.append(f"redelivered, delivery {self.delivery_count}")
        return f"JmsMessage({', '.join(facts)})"

    def stamped(self, destination: Destination, *, message_id: str | None, timestamp_ms: int) -> JmsMessage:
        """Return the message as a provider sends it at a time, in milliseconds since 1970 UTC: with the provider's
        headers in place of the sender's (C45), and the expiration (T1.5)."""
        return self._with(
            destination=destination,
            message_id=message_id,
            timestamp_ms=timestamp_ms,
            expiration_ms=timestamp_ms + self.time_to_live_ms if self.time_to_live_ms else 0,
            delivery_time_ms=timestamp_ms + self.delivery_delay_ms if self.delivery_delay_ms else 0,
            redelivered=False,
            delivery_count=1,
        )

    def with_property(self, name: str, value: PropertyValue) -> JmsMessage:
        """Return the message with one property added or changed. Raises ConfigError: JMS does not allow the name or the
        value."""
        items = {**self.properties, name: _checked(name, value)}
        return self._with(properties=Properties.trusted(items))

    def shorten_life(self, at_most: float) -> None:
        """Lower the time to live to some seconds, in place: for who made the message, before anybody else has it."""
        longest = max(1, math.ceil(round(at_most * 1000, 3)))  # rounded first, because 16.1 * 1000 is more than 16100
        if not 0 < self.time_to_live_ms <= longest:
            _SETTERS["time_to_live_ms"](self, longest)

    def again(self) -> JmsMessage:
        """Return the message as it is redelivered, after a delivery that was not acknowledged (T1.10)."""
        return self._with(redelivered=True, delivery_count=self.delivery_count + 1)

    def _with(self, **changes: object) -> JmsMessage:
        copy = object.__new__(JmsMessage)  # the changes need no checks, and this is ten times as fast as `replace`
        for setter, value in zip(_SETTERS.values(), _values(self), strict=True):
            setter(copy, value)
        for name, value in changes.items():
            _SETTERS[name](copy, value)
        return copy

    def _routing(self) -> tuple[tuple[str, object], ...]:
        return (
            ("message_id", self.message_id),
            ("destination", self.destination),
            ("reply_to", self.reply_to),
            ("correlation_id", self.correlation_id),
            ("priority", self.priority),
        )


_SETTERS: Final = {one.name: getattr(JmsMessage, one.name).__set__ for one in fields(JmsMessage)}
_values: Final = attrgetter(*_SETTERS)
