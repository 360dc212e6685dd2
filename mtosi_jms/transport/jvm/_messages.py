"""Converts JMS messages to Java's and back. Types are kept. Objects that a peer serialised are not deserialised.

A call to Java costs more than its work, so a message is passed in a single one, to `java/Crossing.java`. The head goes
there as a sequence of fields, and comes back as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from struct import Struct
from typing import Any, Final

from mtosi_jms.errors import ConfigError
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
from mtosi_jms.transport._text import CONTROL_CHARACTERS, check_body
from mtosi_jms.transport.jvm import machine
from mtosi_jms.transport.jvm._api import error_of

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
