"""JMS messages as Java has them, and back. Types stay as they are; no object that a peer serialised is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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
from mtosi_jms.transport.jvm import _machine as machine
from mtosi_jms.transport.jvm._api import Api

_SETTERS: Final[Mapping[type[PropertyValue], str]] = {
    str: "setStringProperty",
    bool: "setBooleanProperty",
    Byte: "setByteProperty",
    Short: "setShortProperty",
    int: "setIntProperty",
    Long: "setLongProperty",
    Float: "setFloatProperty",
    float: "setDoubleProperty",
}
_OF_CONTENT: Final[Mapping[type, str]] = {
    str: "String",
    bool: "Boolean",
    Byte: "Byte",
    Short: "Short",
    int: "Int",
    Long: "Long",
    Float: "Float",
    float: "Double",
    Char: "Char",
    bytes: "Bytes",
    type(None): "String",
}
"""How the methods of maps and streams end that write a value."""
_COUNT: Final = "JMSXDeliveryCount"
_UTF_8: Final = "UTF-8"
_BEYOND_BMP: Final = re.compile("[\U00010000-\U0010ffff]")


class Messages:
    """Makes Java's messages of ours, and ours of Java's, for one provider.

    Args:
        api: the provider's.
        damages_text: whether its client writes U+0000 in texts, and what lies beyond the BMP in headers, so that nobody
            can read it again.
    """

    def __init__(self, api: Api, *, damages_text: bool = False) -> None:
        self._api = api
        self._damages_text = damages_text
        java = machine.jpype
        self._list = java.JClass("java.util.Collections").list
        self._string = java.JClass("java.lang.String")
        self._bytes = java.JArray(java.JByte)
        self._boxed_char = java.JClass("java.lang.Character")
        self._of_content: dict[type, Callable[[Any], Any]] = {
            str: self.java_text,
            Byte: java.JByte,
            Short: java.JShort,
            int: java.JInt,
            Long: java.JLong,
            Float: java.JFloat,
            Char: lambda value: java.JChar(str(value)),
            bytes: self._bytes,
        }
        narrow = {"setByteProperty": java.JByte, "setShortProperty": java.JShort, "setFloatProperty": java.JFloat}
        self._narrow: dict[str, Callable[[Any], Any]] = narrow
        boxed: dict[str, Callable[[Any], PropertyValue]] = {
            "String": self._python_text,
            "Boolean": bool,
            "Byte": Byte,
            "Short": Short,
            "Integer": int,
            "Long": Long,
            "Float": Float,
            "Double": float,
        }
        self._values: dict[Any, Callable[[Any], PropertyValue]] = {
            java.JClass(f"java.lang.{name}"): read for name, read in boxed.items()
        } | {str: str, bool: bool}  # what a machine of the application's, that converts texts, returns

    def to_java(self, session: Any, message: JmsMessage, reply_to: Any) -> Any:
        """A message of a Java session's, ready to be sent.

        Args:
            session: makes it.
            message: ours.
            reply_to: the Java destination of its JMSReplyTo; None: it has none.

        Raises:
            ConfigError: a body that is not UTF-8, in a text message; or an ObjectMessage, which only comes in.
        """
        made = self._with_body(session, message)
        for name, value in message.properties.items():
            setter = _SETTERS[type(value)]
            convert = self._narrow.get(setter)
            if isinstance(value, str):
                made.setStringProperty(name, self.java_text(value))
            else:
                getattr(made, setter)(name, value if convert is None else convert(value))
        if message.correlation_id is not None:
            made.setJMSCorrelationID(self.java_text(message.correlation_id))
        if message.jms_type is not None:
            made.setJMSType(self.java_text(message.jms_type))
        if reply_to is not None:
            made.setJMSReplyTo(reply_to)
        return made

    def _with_body(self, session: Any, message: JmsMessage) -> Any:
        kind, content = message.message_type, message.content
        if kind is MessageType.TEXT:
            if self._damages_text:
                check_body(message.body)
            return session.createTextMessage(self._text(message.body))
        if kind is MessageType.BYTES:
            made = session.createBytesMessage()
            made.writeBytes(self._bytes(message.body))
        elif isinstance(content, Mapping):
            made = session.createMapMessage()
            for name, value in content.items():
                getattr(made, f"set{_OF_CONTENT[type(value)]}")(self.java_text(name), self._java_value(value))
        elif kind is MessageType.STREAM:
            made = session.createStreamMessage()
            for value in content:
                getattr(made, f"write{_OF_CONTENT[type(value)]}")(self._java_value(value))
        elif kind is MessageType.MESSAGE:
            made = session.createMessage()
        else:
            raise ConfigError("an ObjectMessage cannot be sent: no object is made of what it holds")
        return made

    def java_text(self, text: str) -> Any:
        """A text for Java: JPype itself damages U+0000 and what lies beyond the BMP.

        Raises:
            ConfigError: half a surrogate pair, or what the provider's client damages.
        """
        if self._damages_text and (found := CONTROL_CHARACTERS.search(text) or _BEYOND_BMP.search(text)):
            raise ConfigError(f"a header or property holds {found[0]!r}, which the provider's client would damage")
        if text.isascii() and "\0" not in text:
            return text
        try:
            return self._string(self._bytes(text.encode()), _UTF_8)
        except UnicodeEncodeError:
            raise ConfigError("a text holds half a surrogate pair, which is no character") from None

    def _python_text(self, text: Any) -> str:
        found = str(text)
        return found if found.isascii() else bytes(self._string(text).getBytes(_UTF_8)).decode()

    def _text(self, body: bytes) -> Any:
        try:
            body.decode()
        except UnicodeDecodeError as error:
            raise ConfigError(f"the body is not UTF-8 at byte {error.start}; send it as a BytesMessage") from None
        return self._string(self._bytes(body), _UTF_8)

    def sent(self, java: Any, message: JmsMessage, destination: Destination) -> JmsMessage:
        """Our message as it was sent, with what the provider has set."""
        message_id, stamp = java.getJMSMessageID(), int(java.getJMSTimestamp())
        return message.stamped(
            destination, message_id=None if message_id is None else str(message_id), timestamp_ms=stamp
        )

    def from_java(
        self, java: Any, consumed: Destination | None, destination_of: Callable[[Any], Destination | None]
    ) -> JmsMessage:
        """Our message of one that was received.

        Args:
            java: the Java message.
            consumed: where it was received from; None: where it says.
            destination_of: our destination of a Java destination.
        """
        kind, body, content = self._content(java)
        properties, count = self._properties(java)
        expiration, stamp = int(java.getJMSExpiration()), int(java.getJMSTimestamp())
        redelivered = bool(java.getJMSRedelivered())
        message_id, correlation_id, jms_type = (
            java.getJMSMessageID(), java.getJMSCorrelationID(), java.getJMSType()
        )  # fmt: skip
        reply_to = java.getJMSReplyTo()
        return from_text(
            JmsMessage(
                body=body,
                message_type=kind,
                content=content,
                properties=properties,
                destination=consumed if consumed is not None else destination_of(java.getJMSDestination()),
                reply_to=None if reply_to is None else destination_of(reply_to),
                delivery_mode=_MODES.get(int(java.getJMSDeliveryMode()), DeliveryMode.PERSISTENT),
                priority=min(max(int(java.getJMSPriority()), 0), 9),
                time_to_live_ms=max(expiration - stamp, 0) if expiration and stamp else 0,
                message_id=None if message_id is None else str(message_id),
                timestamp_ms=stamp or None,
                expiration_ms=expiration,
                correlation_id=None if correlation_id is None else self._python_text(correlation_id),
                jms_type=None if jms_type is None else self._python_text(jms_type),
                redelivered=redelivered or count > 1,
                delivery_count=max(count, 2 if redelivered else 1),
            )
        )

    def _content(self, java: Any) -> tuple[MessageType, bytes, Content]:
        api = self._api
        if isinstance(java, api.TextMessage):
            text = java.getText()
            if text is None:
                return MessageType.TEXT, b"", ()
            if isinstance(text, str):  # see `_values`
                return MessageType.TEXT, text.encode("utf-8", "surrogatepass"), ()
            return MessageType.TEXT, bytes(text.getBytes(_UTF_8)), ()
        if isinstance(java, api.BytesMessage):
            length = int(java.getBodyLength())
            content = self._bytes(length)
            if length:
                java.reset()
                java.readBytes(content)
            return MessageType.BYTES, bytes(content), ()
        if isinstance(java, api.MapMessage):
            names = self._list(java.getMapNames()).toArray()
            return MessageType.MAP, b"", {self._python_text(n): self._value(java.getObject(n)) for n in names if str(n)}
        if isinstance(java, api.StreamMessage):
            return MessageType.STREAM, b"", self._stream(java)
        return (MessageType.OBJECT if isinstance(java, api.ObjectMessage) else MessageType.MESSAGE), b"", ()

    def _stream(self, java: Any) -> Content:
        found: list[BodyValue] = []
        java.reset()
        while True:
            try:
                found.append(self._value(java.readObject()))
            except self._api.MessageEOFException:
                return found

    def _value(self, value: Any) -> BodyValue:
        if value is None:
            return None
        read = self._values.get(type(value))
        if read is not None:
            return read(value)
        text = str(value) if isinstance(value, self._boxed_char) else ""
        return Char(text) if text else bytes(value)

    def _java_value(self, value: BodyValue) -> Any:
        convert = self._of_content.get(type(value))
        return value if convert is None else convert(value)

    def _properties(self, java: Any) -> tuple[Properties, int]:
        """The properties that a message of ours can hold, and how often the message was delivered."""
        found: dict[str, PropertyValue] = {}
        count = 0
        for given in self._list(java.getPropertyNames()).toArray():
            value = java.getObjectProperty(given)
            name = str(given)
            if name == _COUNT:
                count = int(value)
                continue
            read = self._values.get(type(value))
            if read is not None and is_property_name(name):
                found[name] = read(value)
        return Properties.trusted(found), count


_MODES: Final = {int(mode): mode for mode in DeliveryMode}
