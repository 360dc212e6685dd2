"""A JMS message as one XML document, in the layout of IBM's brokers: to view, edit and store; see docs/ibm.md.

`Header_Values` has the ten headers, whose types are known. Properties are in `Application_Properties`,
`Provider_Properties` (`JMS_...`) and `Standard_Properties` (`JMSX...`), with their types in `dt`. Empty folders are
left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from lxml import etree

from mtosi_jms.errors import ConfigError, DecodeError, EncodeError
from mtosi_jms.jms import KINDS, Destination
from mtosi_jms.jms.message import BodyValue, Content, JmsMessage, MessageType
from mtosi_jms.jms.typed import OnInvalid, read_content, read_value, write_content
from mtosi_jms.xmlbind import XmlLimits, parse_xml

__all__ = ["PAYLOAD_TYPES", "folder_of", "from_tree", "to_tree"]

PAYLOAD_TYPES: Final[Mapping[MessageType, str]] = {
    MessageType.MESSAGE: "jms_none",
    MessageType.TEXT: "jms_text",
    MessageType.BYTES: "jms_byte",
    MessageType.MAP: "jms_map",
    MessageType.STREAM: "jms_stream",
    MessageType.OBJECT: "jms_object",
}
"""The `PayloadType` of each kind of message."""

_APPLICATION: Final = "Application_Properties"
_PROVIDER: Final = "Provider_Properties"
_STANDARD: Final = "Standard_Properties"
_FOLDERS: Final = (_APPLICATION, _PROVIDER, _STANDARD)
_NIL: Final = "{http://www.w3.org/2001/XMLSchema-instance}nil"
_LIMITS: Final = XmlLimits(huge=True)
"""A body may be one text of more than 10 MB."""
_NOT_IN_CDATA: Final = re.compile(r"\r|\]\]>")


class _Field(NamedTuple):
    """A value of a message that becomes an element. `attribute`: attribute of `JmsMessage`. `dt`: type by which the
    text is read, or `destination`. `unset`: the value for which the element is left out; the ten headers are always
    written."""

    name: str
    attribute: str
    dt: str
    unset: object = ...


_HEADERS: Final = (
    _Field("JMSDestination", "destination", "destination"),
    _Field("JMSDeliveryMode", "delivery_mode", "i4"),
    _Field("JMSMessageID", "message_id", "string"),
    _Field("JMSTimestamp", "timestamp_ms", "i8"),
    _Field("JMSExpiration", "expiration_ms", "i8"),
    _Field("JMSRedelivered", "redelivered", "boolean"),
    _Field("JMSPriority", "priority", "i4"),
    _Field("JMSReplyTo", "reply_to", "destination"),
    _Field("JMSCorrelationID", "correlation_id", "string"),
    _Field("JMSType", "jms_type", "string"),
    _Field("JMSDeliveryTime", "delivery_time_ms", "i8", 0),  # JMS 2.0
)
_METADATA: Final = (
    _Field("JMSTimeToLive", "time_to_live_ms", "i8", 0),
    _Field("JMSDeliveryDelay", "delivery_delay_ms", "i8", 0),
    _Field("JMSXDeliveryCount", "delivery_count", "i4", 1),
)
"""Values of a message that are not JMS headers."""


def folder_of(name: str) -> str:
    """Return the folder of a property: that of the provider, the standard or the application (001-J2)."""
    return _STANDARD if name.startswith("JMSX") else _PROVIDER if name.startswith("JMS_") else _APPLICATION


def to_tree(message: JmsMessage) -> bytes:
    """Return the document of a message, in UTF-8. `from_tree` makes an equal message from it.

    A text stays readable. A text that is not UTF-8, or has characters that XML does not allow, is written in
    hexadecimal (`bin.hex`), as are BytesMessages and ObjectMessages.

    Raises:
        EncodeError: a header, property or value has a character that XML does not allow, or is a number out of the
            range of its `dt`. The error names it.
    """
    root = etree.Element("Root")
    transport = etree.SubElement(root, "JMSTransport")
    about = etree.SubElement(transport, "Message_MetaData")
    etree.SubElement(about, "PayloadType").text = PAYLOAD_TYPES[message.message_type]
    _write_fields(about, _METADATA, message)
    _write_fields(etree.SubElement(transport, "Header_Values"), _HEADERS, message)
    for folder in _FOLDERS:
        values = {name: value for name, value in message.properties.items() if folder_of(name) == folder}
        if values:
            element = _element(values)
            element.tag = folder
            transport.append(element)
    etree.indent(root)
    root.append(_body(message))
    transport.tail, root[-1].tail = "\n  ", "\n"
    return bytes(etree.tostring(root, encoding="utf-8"))


def _write_fields(parent: etree._Element, fields: tuple[_Field, ...], message: JmsMessage) -> None:
    for one in fields:
        value = getattr(message, one.attribute)
        if one.unset is not ... and value == one.unset:
            continue
        element = etree.SubElement(parent, one.name)
        if value is None:
            element.set(_NIL, "true")
            continue
        try:
            element.text = str(value if isinstance(value, (str, Destination)) else int(value))
        except ValueError:
            raise EncodeError("a character that XML does not have", one.name) from None


def _element(content: Content) -> etree._Element:
    return etree.fromstring(write_content(content), etree.XMLParser(huge_tree=True, resolve_entities=False))


def _body(message: JmsMessage) -> etree._Element:
    body = etree.Element("Body")
    if message.message_type in (MessageType.MAP, MessageType.STREAM):
        body.append(_element(message.content))
    elif message.message_type is MessageType.TEXT and _set_text(body, message.body):
        pass
    elif message.body or message.message_type in (MessageType.BYTES, MessageType.OBJECT):
        body.set("dt", "bin.hex")
        body.text = message.body.hex()
    return body


def _set_text(body: etree._Element, octets: bytes) -> bool:
    try:
        text = octets.decode()
        body.text = text if not text or _NOT_IN_CDATA.search(text) else etree.CDATA(text)
    except ValueError:  # UnicodeDecodeError, or lxml's of a character
        return False
    return True


def from_tree(document: bytes | str, *, on_invalid: OnInvalid = "fail") -> JmsMessage:
    """Return the message of a document.

    Without `Message_MetaData` it is a BytesMessage, as with IBM's brokers (001-I5). A missing header has its default.

    Args:
        document: a document of `to_tree`, or of another program in that form.
        on_invalid: what to do with a property, or a value in a map or stream, whose text is invalid for its `dt`.

    Raises:
        XmlError: the document is not well-formed, or too large.
        DecodeError: an element is in a wrong place or has a wrong name, or a value is invalid. The error names the
            line.
    """
    root = parse_xml(document, limits=_LIMITS)
    parts = _children(root, "Root", ("JMSTransport", "Body"))
    if "JMSTransport" not in parts or root[-1] is not parts.get("Body"):
        raise DecodeError("JMSTransport and then Body are needed in Root", line=root.sourceline)
    folders = _children(parts["JMSTransport"], "JMSTransport", ("Message_MetaData", "Header_Values", *_FOLDERS))
    if "Header_Values" not in folders:
        raise DecodeError("JMSTransport has no Header_Values", line=parts["JMSTransport"].sourceline)
    about = folders.get("Message_MetaData")
    kind = MessageType.BYTES
    values: dict[str, Any] = {}
    if about is not None:
        values = dict(_fields(about, _METADATA, ("PayloadType",)))
        kind = _kind(about)
    values |= _fields(folders["Header_Values"], _HEADERS)
    properties: dict[str, BodyValue] = {}
    for name in _FOLDERS:
        if (folder := folders.get(name)) is not None:
            properties |= _content(folder, "map", on_invalid)
    body, content = _read_body(parts["Body"], kind, on_invalid)
    try:
        return JmsMessage(message_type=kind, body=body, content=content, properties=properties, **values)  # type: ignore[arg-type]
    except ConfigError as error:
        raise DecodeError(f"no message of JMS: {error}", line=root.sourceline) from None


def _children(parent: etree._Element, name: str, known: tuple[str, ...]) -> dict[str, etree._Element]:
    """Return the child elements by name; each may occur once. Raises DecodeError: the parent has another name, or a
    child is unknown or repeated."""
    if parent.tag != name:
        raise DecodeError(f"{parent.tag!r:.60} where {name} is needed", line=parent.sourceline)
    found: dict[str, etree._Element] = {}
    for child in parent.iterchildren(tag=etree.Element):
        if child.tag not in known or child.tag in found:
            raise DecodeError(f"{child.tag!r:.60} cannot be here, or not twice", line=child.sourceline, path=name)
        found[str(child.tag)] = child
    return found


def _fields(
    parent: etree._Element, fields: tuple[_Field, ...], others: tuple[str, ...] = ()
) -> Iterator[tuple[str, Any]]:
    known = {one.name: one for one in fields}
    for name, element in _children(parent, str(parent.tag), (*known, *others)).items():
        if name in known and element.get(_NIL) not in ("true", "1"):
            one = known[name]
            try:
                yield one.attribute, _READERS.get(one.dt, read_value)(one.dt, element.text or "")
            except ValueError as error:  # DecodeError is one
                message = getattr(error, "message", error)
                raise DecodeError(f"{message}", line=element.sourceline, path=name) from None


def _destination(dt: str, text: str) -> Destination:
    kind, colon, name = text.partition(":")
    if not colon or kind not in KINDS:
        raise ValueError(f"{text!r:.60} is not a destination: {' or '.join(f'{one}:NAME' for one in KINDS)}")
    return KINDS[kind](name)


_READERS: Final[Mapping[str, Callable[[str, str], object]]] = {"destination": _destination}


def _kind(about: etree._Element) -> MessageType:
    (element,) = about.findall("PayloadType") or [None]
    text = "" if element is None else element.text or ""
    for kind, name in PAYLOAD_TYPES.items():
        if name == text.strip():
            return kind
    raise DecodeError(
        f"PayloadType {text!r:.40}: it is one of {', '.join(PAYLOAD_TYPES.values())}", line=about.sourceline
    )


def _content(element: etree._Element, name: str, on_invalid: OnInvalid) -> Any:
    """Return the content of a folder, or of a map or stream in the body, as `read_content` does. Raises DecodeError: a
    value is invalid. The error names the line in the document."""
    before = (element.sourceline or 1) - 1
    element.tag, element.tail = name, None
    try:
        return read_content(etree.tostring(element, encoding="utf-8"), on_invalid=on_invalid)
    except DecodeError as error:
        raise DecodeError(error.message, line=before + (error.line or 1), path=error.path) from None


def _read_body(body: etree._Element, kind: MessageType, on_invalid: OnInvalid) -> tuple[bytes, Content]:
    inner = list(body.iterchildren(tag=etree.Element))
    if kind in (MessageType.MAP, MessageType.STREAM):
        name = "map" if kind is MessageType.MAP else "stream"
        if len(inner) != 1 or inner[0].tag != name:
            raise DecodeError(f"the body of a {kind.value} is one {name}", line=body.sourceline)
        return b"", _content(inner[0], name, on_invalid)
    if inner:
        raise DecodeError(f"the body of a {kind.value} has no elements", line=body.sourceline)
    dt, text = body.get("dt", ""), body.text or ""
    if kind not in (MessageType.TEXT, MessageType.MESSAGE) and not dt:
        dt = "bin.hex"
    try:
        value = read_value(dt, text)
    except DecodeError as error:
        raise DecodeError(error.message, line=body.sourceline, path="Body") from None
    if isinstance(value, bytes):
        return value, ()
    if kind is MessageType.MESSAGE and not text.strip():
        return b"", ()
    return str(text).encode(), ()
