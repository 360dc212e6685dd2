"""JMS values as text that keeps their types: for protocols that have only text, and for people.

The type is in an attribute `dt`, as IBM's clients write it: `<count dt="i4">17</count>` in a map,
`<elt dt="r8">0.5</elt>` in a stream. A value without `dt` is a String.
"""

from __future__ import annotations

import logging
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from lxml import etree

from mtosi_jms.errors import DecodeError, EncodeError, XmlError
from mtosi_jms.jms.message import (
    BodyValue,
    Byte,
    Char,
    Content,
    Float,
    JmsMessage,
    Long,
    MessageType,
    PropertyValue,
    Short,
)
from mtosi_jms.xmlbind import parse_xml

__all__ = [
    "BODY_TYPE",
    "OnInvalid",
    "Retype",
    "as_text",
    "from_text",
    "read_content",
    "read_value",
    "write_content",
    "write_value",
]

OnInvalid: TypeAlias = Literal["ignore", "warn", "fail"]
"""What to do with a value whose text is invalid for its `dt`: make it a String, make it a String and warn, or fail."""

Retype: TypeAlias = Callable[[str, PropertyValue], PropertyValue]
"""Gives the value of a property, by its name, the type that a wire of text has lost; what does not fit stays text."""

BODY_TYPE: Final = "MTOSIX_messageType"
"""Property that names the kind of message that a TextMessage stands for: `MapMessage`, `StreamMessage`, `Message`."""

_log = logging.getLogger(__package__)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")
_RANGES: Final[Mapping[str, tuple[type[int], int]]] = {
    "i1": (Byte, 7),
    "i2": (Short, 15),
    "i4": (int, 31),
    "i8": (Long, 63),
    "int": (Long, 63),
    "r1": (Byte, 7),
}
_MAGNITUDES: Final[Mapping[str, tuple[type[float], float, float]]] = {
    "r4": (Float, 1.175e-37, 3.40282347e38),
    "r8": (float, 2.225e-307, 1.7976931348623158e308),
}
_ITEM: Final = "elt"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NIL: Final = "{http://www.w3.org/2001/XMLSchema-instance}nil"
_TYPES: Final[Mapping[type, str]] = {Byte: "i1", Short: "i2", int: "i4", Long: "i8", Float: "r4", float: "r8"}


def write_value(value: BodyValue) -> tuple[str, str]:
    """Return the `dt` of a value, which is empty for a String, and its text. Raises EncodeError: a floating-point
    number is out of the range of its `dt`: infinite, NaN, or too small."""
    if isinstance(value, Char):
        return "char", str(value)
    if isinstance(value, str):
        return "", str(value)
    if isinstance(value, bool):
        return "boolean", "1" if value else "0"
    if isinstance(value, bytes):
        return "bin.hex", value.hex()
    if value is None:
        raise EncodeError("null has no text")
    dt = _TYPES[type(value)]
    if dt in _MAGNITUDES:
        _, least, most = _MAGNITUDES[dt]
        if value != 0 and not least <= abs(value) <= most:
            raise EncodeError(f"{float(value)} is beyond the range of {dt}")
        return dt, repr(float(value))
    return dt, str(int(value))


def read_value(dt: str, text: str, *, on_invalid: OnInvalid = "fail", name: str = "value") -> BodyValue:
    """Return the value of a text. `on_invalid`: what to do if `dt` is unknown or the text is invalid for it. Raises
    DecodeError: `dt` is unknown or the text is invalid for it, and `on_invalid` is `fail`."""
    reader = _READERS.get(dt.lower())
    try:
        if reader is None:
            raise DecodeError(f"dt={dt!r:.40} is not known")
        try:
            return reader(dt.lower(), text)
        except ValueError as exc:
            raise DecodeError(f"{text!r:.60} is not of type {dt.lower()}: {exc}") from None
    except DecodeError as error:
        if on_invalid == "fail":
            raise
        if on_invalid == "warn":
            _log.warning("%s is kept as text: %s: %s", name, type(error).__name__, error)
        return text


def _string(dt: str, text: str) -> BodyValue:
    return text


def _boolean(dt: str, text: str) -> BodyValue:
    if text not in ("0", "1"):
        raise ValueError("0 or 1 is needed")
    return text == "1"


def _octets(dt: str, text: str) -> BodyValue:
    if not re.fullmatch("([0-9A-Fa-f]{2})*", text):
        raise ValueError("pairs of hexadecimal digits are needed")
    return bytes.fromhex(text)


def _char(dt: str, text: str) -> BodyValue:
    if len(text) != 1 or text > "\uffff":
        raise ValueError("one character is needed")
    return Char(text)


def _integer(dt: str, text: str) -> BodyValue:
    kind, bits = _RANGES[dt]
    if not _INTEGER.fullmatch(text):
        raise ValueError("digits with an optional sign are needed")
    number = int(text)
    if not -(2**bits) <= number < 2**bits:
        raise ValueError("it is out of range")
    return kind(number)


def _number(dt: str, text: str) -> BodyValue:
    kind, least, most = _MAGNITUDES[dt]
    if not _NUMBER.fullmatch(text):
        raise ValueError("a decimal number is needed")
    number = float(text)
    if number != 0 and not least <= abs(number) <= most:
        raise ValueError("it is out of range")
    return kind(struct.unpack(">f", struct.pack(">f", number))[0] if kind is Float else number)


_READERS: Final[Mapping[str, Callable[[str, str], BodyValue]]] = (
    {"": _string, "string": _string, "boolean": _boolean, "bin.hex": _octets, "char": _char}
    | dict.fromkeys(_RANGES, _integer)
    | dict.fromkeys(_MAGNITUDES, _number)
)


def write_content(content: Content) -> bytes:
    """Return a map as `<map>`, a stream as `<stream>`, in UTF-8. A name that is not an XML name goes into an attribute.
    Raises EncodeError: a value has a character that XML does not allow, or `write_value` refuses it. The error gives
    the name or number of the value."""
    if isinstance(content, Mapping):
        root, items = etree.Element("map"), list(content.items())
    else:
        root, items = etree.Element("stream"), [(_ITEM, value) for value in content]
    for number, (name, value) in enumerate(items, 1):
        try:
            element = etree.SubElement(root, name if _NAME.fullmatch(name) else _ITEM)
            if element.tag != name:
                element.set("name", name)
            _fill(element, value)
        except ValueError as exc:  # EncodeError, or lxml's of a character
            place = name if isinstance(content, Mapping) else f"value {number}"
            raise EncodeError(getattr(exc, "message", "a character that XML does not have"), place) from None
    return bytes(etree.tostring(root, encoding="utf-8"))


def _fill(element: etree._Element, value: BodyValue) -> None:
    if value is None:
        element.set(_NIL, "true")
        return
    dt, element.text = write_value(value)
    if dt:
        element.set("dt", dt)


def read_content(document: bytes, *, on_invalid: OnInvalid = "fail") -> Content:
    """Return the content of a `<map>` or `<stream>`. Raises XmlError: the document is not well-formed; DecodeError: the
    root element has another name, a name comes twice, or, with `fail`, a value is invalid."""
    root = parse_xml(document)
    if root.tag == "stream":
        return tuple(_value(element, on_invalid) for element in root.iterchildren(tag=etree.Element))
    if root.tag != "map":
        raise DecodeError(f"{root.tag!r:.60} is neither map nor stream", line=root.sourceline)
    found: dict[str, BodyValue] = {}
    for element in root.iterchildren(tag=etree.Element):
        name = element.get("name") or str(element.tag)
        if name in found:
            raise DecodeError(f"the name {name!r:.60} comes twice", line=element.sourceline)
        found[name] = _value(element, on_invalid)
    return found


def _value(element: etree._Element, on_invalid: OnInvalid) -> BodyValue:
    if len(element):
        raise DecodeError("a value has no elements in it", line=element.sourceline, path=str(element.tag))
    if element.get(_NIL) in ("true", "1"):
        return None
    try:
        name = element.get("name") or str(element.tag)
        return read_value(element.get("dt", ""), element.text or "", on_invalid=on_invalid, name=name)
    except DecodeError as exc:
        raise DecodeError(exc.message, line=element.sourceline, path=str(element.tag)) from None


def as_text(message: JmsMessage) -> JmsMessage:
    """Return the TextMessage that stands for a MapMessage, StreamMessage or Message; other messages unchanged. Raises
    EncodeError: see `write_content`."""
    kind = message.message_type
    if kind not in (MessageType.MAP, MessageType.STREAM, MessageType.MESSAGE):
        return message
    body = b"" if kind is MessageType.MESSAGE else write_content(message.content)
    marked = {**message.properties, BODY_TYPE: kind.value}
    return replace(message, body=body, content=(), message_type=MessageType.TEXT, properties=marked)


def from_text(message: JmsMessage) -> JmsMessage:
    """Return the message from which `as_text` made a text. Other messages, and invalid such texts, are unchanged."""
    body_type = message.properties.get(BODY_TYPE)
    if body_type is None or message.message_type is not MessageType.TEXT:
        return message
    properties = {name: value for name, value in message.properties.items() if name != BODY_TYPE}
    if body_type == MessageType.MESSAGE.value and not message.body:
        return replace(message, message_type=MessageType.MESSAGE, properties=properties)
    try:
        content = read_content(message.body)
    except XmlError:
        return message
    kind = MessageType.MAP if isinstance(content, Mapping) else MessageType.STREAM
    if body_type != kind.value:
        return message
    return replace(message, message_type=kind, body=b"", content=content, properties=properties)
