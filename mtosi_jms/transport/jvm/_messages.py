"""Converts JMS messages to Java's and back, and Java's exceptions to errors. Types are kept. Objects that a peer
serialised are not deserialised.

A call to Java costs more than its work, so a message is passed in a single one, to `java/Crossing.java`. The head goes
there as a sequence of fields, and comes back as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from struct import Struct
from types import TracebackType
from typing import Any, Final

from mtosi_jms.errors import (
    AuthenticationError,
    ClientIdInUseError,
    ConfigError,
    IllegalStateError,
    InvalidDestinationError,
    LoginRefusedError,
    MessageRefusedError,
    MtosiError,
    NamingError,
    ResourceLimitError,
    SelectorError,
    TransportError,
)
from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import (
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
from mtosi_jms.jms.typed import from_text
from mtosi_jms.transport._descriptor import CONTROL_CHARACTERS, check_body
from mtosi_jms.transport.jvm import machine

_PACKAGES: Final = ("jakarta.jms", "javax.jms")
_INDIVIDUAL: Final = (("org.apache.activemq.artemis.", 101), ("org.apache.activemq.", 4), ("org.apache.qpid.jms.", 101))
"""The acknowledgement mode for single messages, by the package of each provider's classes. There is no general number:
4 is such a mode for ActiveMQ, but means "no acknowledgement" to WebLogic."""
_CLIENT_ACKNOWLEDGE: Final = 2
_MOST_CAUSES: Final = 8


class Api:
    """One JMS API. `individual`: single messages can be acknowledged. Raises ConfigError: no JMS connection factory."""

    def __init__(self, loader: Any, factory: Any) -> None:
        self.loader = loader
        self._package = ""
        for package in _PACKAGES:
            interface = machine.find_class(f"{package}.ConnectionFactory", loader)
            if interface is not None and isinstance(factory, interface):
                self._package = package
        if not self._package:
            known = ", ".join(f"{package}.ConnectionFactory" for package in _PACKAGES)
            raise ConfigError(
                f"{class_name(factory)} is not a connection factory ({known}); are the jars of javax.jms and of "
                "jakarta.jms mixed on the classpath?"
            )
        self.Crossing = machine.find_class(f"mtosi_jms.{self._package.partition('.')[0]}.Crossing", loader)
        self.Topic = self._class("Topic")
        self.Queue = self._class("Queue")
        self.TemporaryQueue = self._class("TemporaryQueue")
        self.TemporaryTopic = self._class("TemporaryTopic")
        self.ack_mode, self.individual = _CLIENT_ACKNOWLEDGE, False
        for prefix, number in _INDIVIDUAL:
            if class_name(factory).startswith(prefix):
                self.ack_mode, self.individual = number, True
                break

    def _class(self, name: str) -> Any:
        return machine.find_class(f"{self._package}.{name}", self.loader)


def class_name(thing: Any) -> str:
    return str(thing.getClass().getName())


class translated:  # noqa: N801 - used like a function
    """Turns Java exceptions of the block into errors of the SDK, with `what` before Java's own text."""

    __slots__ = ("_what",)

    def __init__(self, what: str = "") -> None:
        self._what = what

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and isinstance(error, machine.jpype.JException):
            raise error_of(error, self._what) from None  # its traceback is Java's, and may show a credential


def error_of(error: Any, what: str = "") -> MtosiError:
    """Return the SDK's error for a Java exception, by the first of its causes whose class is known."""
    chain = list(_causes(error))
    texts: list[str] = []
    for one in chain:
        message = one.getMessage()
        if message is None or not any(str(message) in before for before in texts):  # causes repeat each other
            texts.append(_text(one))
    if any("/jms/" in one or ".jms." in one for one in texts if one.startswith(_LACKING)):
        texts.append("a jar of the JMS API is missing: the client needs its own of javax.jms and jakarta.jms, two APIs")
    text = ": ".join([*([what] if what else []), *texts])
    names = [class_name(one).rpartition(".")[2] for one in chain]
    for name in names:
        if name in _ERRORS:
            return _ERRORS[name](text)
        if name == "InvalidSelectorException":
            return SelectorError(text)
    if any(name in _NAMING for name in names):
        return NamingError(what or "JNDI", ": ".join(texts))
    return TransportError(text)


def _causes(error: Any) -> Iterator[Any]:
    """Yield the exception, its linked exceptions and its causes, each once."""
    left, seen = [error], 0
    while left and seen < _MOST_CAUSES:
        one = left.pop(0)
        seen += 1
        yield one
        linked = one.getLinkedException() if hasattr(one, "getLinkedException") else None
        for below in (linked, one.getCause()):
            if below is not None and not any(below.equals(other) for other in left):
                left.append(below)


def _text(error: Any) -> str:
    name, message = class_name(error).rpartition(".")[2], error.getMessage()
    return f"{name}: {message}" if message is not None else name


_LACKING: Final = ("ClassNotFoundException: ", "NoClassDefFoundError: ")
_ERRORS: Final[dict[str, type[MtosiError]]] = {
    "JMSSecurityException": AuthenticationError,
    "JMSSecuritySaslException": AuthenticationError,
    "ActiveMQSecurityException": AuthenticationError,
    "InvalidClientIDException": ClientIdInUseError,
    "InvalidDestinationException": InvalidDestinationError,
    "DestinationDoesNotExistException": InvalidDestinationError,
    "ResourceAllocationException": ResourceLimitError,
    "MessageFormatException": MessageRefusedError,
    "IllegalStateException": IllegalStateError,
    "ClassNotFoundException": ConfigError,
    "NoClassDefFoundError": ConfigError,
    "UnsupportedClassVersionError": ConfigError,
    "NoInitialContextException": ConfigError,
    "ConfigurationException": ConfigError,
    "AuthenticationException": AuthenticationError,
    "NoPermissionException": AuthenticationError,
}
_NAMING: Final = frozenset({"NamingException", "NameNotFoundException", "InvalidNameException", "NotContextException"})


def refused_login(error: MtosiError) -> MtosiError:
    """Return an error of connecting, with an AuthenticationError as LoginRefusedError."""
    return LoginRefusedError(str(error)) if isinstance(error, AuthenticationError) else error


_ABSENT: Final = -1
_TEXT: Final = Struct(">i")
_FIRST: Final = Struct(">cbbqq")
_PROPERTY: Final = Struct(">ci")
_NUMBERS: Final[Mapping[type[PropertyValue], tuple[bytes, Struct]]] = {
    kind: (letter.encode(), Struct(f">{letter}"))
    for kind, letter in {bool: "?", Byte: "b", Short: "h", int: "i", Long: "q", Float: "f", float: "d"}.items()
}
_BODIES: Final = {
    MessageType.TEXT: b"T",
    MessageType.BYTES: b"B",
    MessageType.MAP: b"M",
    MessageType.STREAM: b"S",
    MessageType.MESSAGE: b"N",
}
_VALUES: Final[Mapping[int, tuple[Callable[[Any], BodyValue], Struct]]] = {
    letter[0]: (kind, number) for kind, (letter, number) in _NUMBERS.items()
}
_KINDS: Final[Mapping[str, Callable[[Any], PropertyValue]]] = {
    "Byte": Byte,
    "Short": Short,
    "Long": Long,
    "Float": Float,
}
_MODES: Final = {int(mode): mode for mode in DeliveryMode}
_BEYOND_BMP: Final = re.compile("[\U00010000-\U0010ffff]")


class Messages:
    """Converts our messages to Java's and back. `damages_text`: the provider's client damages U+0000 in texts, and
    characters beyond U+FFFF in headers."""

    def __init__(self, crossing: Any, *, modern: bool, damages_text: bool = False) -> None:
        self._crossing = crossing
        self._modern = modern
        self._damages_text = damages_text
        self._bytes = machine.jpype.JArray(machine.jpype.JByte)

    def packed(self, message: JmsMessage) -> tuple[Any, Any]:
        """Return head and body of a message, as `send` passes them to Java. Raises ConfigError: a body that is not
        UTF-8, an ObjectMessage, half a surrogate pair, or a character that the client damages."""
        letter, body = _BODIES.get(message.message_type), message.body
        if message.message_type is MessageType.TEXT:
            check_body(message.body, controls=not self._damages_text)
        elif letter is None:
            raise ConfigError("an ObjectMessage cannot be sent: no object is made of what it holds")
        elif message.content:
            body = self._packed_content(message.content)
        life, delay = message.time_to_live_ms, message.delivery_delay_ms
        parts = [_FIRST.pack(letter, message.delivery_mode, message.priority, life, delay)]
        for text in (message.correlation_id, message.jms_type):
            if text is None:
                parts.append(_TEXT.pack(_ABSENT))
            else:
                encoded = self._encoded(text)
                parts += _TEXT.pack(len(encoded)), encoded
        for name, value in message.properties.items():
            if type(value) is str:
                encoded = self._encoded(value)
                parts += _named(b"S", name), _TEXT.pack(len(encoded)), encoded
            else:
                letter, number = _NUMBERS[type(value)]
                parts += _named(letter, name), number.pack(value)
        return self._bytes(b"".join(parts)), self._bytes(body)

    def _packed_content(self, content: Content) -> bytes:
        """Return the values of a map, each after its name, or those of a stream."""
        if not isinstance(content, Mapping):
            return b"".join(self._packed_value(value) for value in content)
        return b"".join(self._packed_value(name) + self._packed_value(value) for name, value in content.items())

    def _packed_value(self, value: BodyValue) -> bytes:
        if value is None:
            return b"S" + _TEXT.pack(_ABSENT)
        if isinstance(value, bytes):
            return b"x" + _TEXT.pack(len(value)) + value
        if isinstance(value, Char):
            return b"c" + value.encode("utf-16-be", "surrogatepass")
        if isinstance(value, str):
            encoded = self._encoded(value)
            return b"S" + _TEXT.pack(len(encoded)) + encoded
        letter, number = _NUMBERS[type(value)]
        return letter + number.pack(value)

    def _encoded(self, text: str) -> bytes:
        if self._damages_text and (found := CONTROL_CHARACTERS.search(text) or _BEYOND_BMP.search(text)):
            raise ConfigError(f"a header or property holds {found[0]!r}, which the provider's client would damage")
        try:
            return text.encode()
        except UnicodeEncodeError:
            raise ConfigError("a text holds half a surrogate pair, which is not a character") from None

    def send(self, session: Any, producer: Any, target: Any, reply_to: Any, packed: tuple[Any, Any]) -> Any:
        """Makes a message of Java's and sends it. Returns the argument for `stamps`."""
        return self._crossing.send(session, producer, target, reply_to, *packed)

    def send_async(
        self, session: Any, producer: Any, target: Any, reply_to: Any, packed: tuple[Any, Any], events: Any, number: int
    ) -> None:
        """The same by JMS 2.0. Java's queue `events` gets the number with the argument for `stamps` or an exception."""
        self._crossing.send(session, producer, target, reply_to, *packed, events, number)

    def receive(self, consumer: Any, seconds: float) -> Any:
        """Receives a message, as an argument for `read`; None: there is none. Waits `seconds` at most."""
        return self._crossing.receive(consumer, max(int(seconds * 1_000), 1) if seconds else 0, self._modern)

    def browse(self, waiting: Any) -> Any:
        """Return the next of what a browser enumerates, as arguments for `read`: some MiB at most, or none."""
        return self._crossing.browse(waiting, self._modern)

    def read(
        self, received: Any, consumed: Destination, destination_of: Callable[[str, Any], Destination | None]
    ) -> tuple[JmsMessage, Any]:
        """Convert a received message; returns ours and the Java message. `destination_of`: returns our destination for
        a mark, or by the Java destination that its second argument returns. Raises MtosiError: it could not be read."""
        if len(received) == 1:
            raise error_of(received[0])
        java, head, body = received[0], received[1], received[2]
        (
            kind, message_id, correlation_id, jms_type, reply_to, mode, priority, stamp, expiration, due,
            redelivered, properties, count,
        ) = json.loads(bytes(head))  # fmt: skip
        octets = bytes(body)
        content: Content = ()
        if kind in ("MAP", "STREAM"):
            content, octets = _content(octets, named=kind == "MAP"), b""
        message = JmsMessage(
            body=octets,
            message_type=MessageType[kind],
            content=content,
            properties=_properties(properties),
            destination=consumed,
            reply_to=None if reply_to is None else destination_of(reply_to, java.getJMSReplyTo),
            delivery_mode=_MODES.get(mode, DeliveryMode.PERSISTENT),
            priority=min(max(priority, 0), 9),
            time_to_live_ms=max(expiration - stamp, 0) if expiration and stamp else 0,
            message_id=message_id,
            timestamp_ms=stamp or None,
            expiration_ms=expiration,
            delivery_time_ms=due,
            correlation_id=correlation_id,
            jms_type=jms_type,
            redelivered=redelivered or count > 1,
            delivery_count=max(count, 2 if redelivered else 1),
        )
        return from_text(message), java


def stamps(sent: Any) -> tuple[int, str]:
    """Return timestamp and message id of a sent message; an empty id if the provider gave none."""
    stamp, _, message_id = str(sent).partition(" ")
    return int(stamp), message_id


@lru_cache(4096)
def _named(letter: bytes, name: str) -> bytes:
    encoded = name.encode()
    return _PROPERTY.pack(letter, len(encoded)) + encoded


def _content(octets: bytes, *, named: bool) -> Content:
    """Return the values of a map, if they are named, or those of a stream; see `Messages.packed`."""
    names: list[str] = []
    values: list[BodyValue] = []
    at = 0

    def value() -> BodyValue:
        nonlocal at
        letter = octets[at]
        at += 1
        if letter in _VALUES:
            kind, number = _VALUES[letter]
            at += number.size
            return kind(number.unpack_from(octets, at - number.size)[0])
        if letter == ord("c"):
            at += 2
            return Char(octets[at - 2 : at].decode("utf-16-be", "surrogatepass"))
        (length,) = _TEXT.unpack_from(octets, at)
        at += _TEXT.size + max(length, 0)
        if length == _ABSENT:
            return None
        found = octets[at - length : at]
        return found if letter == ord("x") else found.decode()

    while at < len(octets):
        if named:
            names.append(str(value()))
        values.append(value())
    return {name: value for name, value in zip(names, values, strict=True) if name} if named else values


def _properties(found: dict[str, Any]) -> Properties:
    return Properties.trusted(
        {
            name: _KINDS[value[0]](value[1]) if type(value) is list else value
            for name, value in found.items()
            if is_property_name(name)
        }
    )
