"""Messages of JMS as IBM MQ keeps them: an MQMD, an MQRFH2 with the JMS headers and properties, and the body.

`read_mq` reads a message that a tool took from a queue, `write_mq` writes one for a tool to put there. Neither talks to
a queue manager: the transport `jvm:` with IBM's client does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from xml.sax.saxutils import escape

from lxml import etree

from mtosi_jms.binding.table2 import restore
from mtosi_jms.errors import DecodeError, EncodeError, MqFormatError, XmlError
from mtosi_jms.jms import Destination, JmsMessage, MessageType, Queue, Topic
from mtosi_jms.jms.message import Content, DeliveryMode, PropertyValue, is_property_name
from mtosi_jms.jms.typed import OnInvalid, read_content, read_value, write_content, write_value
from mtosi_jms.mq._structures import (
    BODIES,
    FORMAT_NONE,
    FORMAT_RFH2,
    FORMAT_STRING,
    HEADERS,
    ByteOrder,
    Header,
    Mqmd,
    Rfh2,
    codec_of,
    encoding_of,
    inherited,
    order_of,
)
from mtosi_jms.mq.mcd import Mcd, read_mcd
from mtosi_jms.xmlbind import parse_xml

__all__ = ["DEAD_LETTER", "KEPT", "ByteOrder", "read_mq", "write_mq"]

KEPT: Final = "MTOSIX_rfh2_"
"""KEPT and a folder's name: a property with what JMS does not have of the folder, as XML; `write_mq` puts it back."""

DEAD_LETTER: Final = "MTOSIX_dlh_Reason"
"""The property with the reason of a message from a dead-letter queue, an MQRC or MQFB."""
_XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
_DECLARED: Final = f' xmlns:xsi="{_XSI}"'
"""IBM's clients write `xsi:nil` and declare no prefix."""
_NIL: Final = f"{{{_XSI}}}nil"
_XML_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_KINDS: Final = {
    "jms_none": MessageType.MESSAGE,
    "jms_text": MessageType.TEXT,
    "jms_bytes": MessageType.BYTES,
    "jms_byte": MessageType.BYTES,
    "jms_map": MessageType.MAP,
    "jms_stream": MessageType.STREAM,
    "jms_object": MessageType.OBJECT,
}
_MSD: Final = {kind: name for name, kind in reversed(_KINDS.items())} | {MessageType.BYTES: "jms_bytes"}
_STRINGS: Final = frozenset({MessageType.TEXT, MessageType.MAP, MessageType.STREAM})
_OF_MQMD: Final = {"JMSXUserID": "user_identifier", "JMSXAppID": "put_appl_name"}
_GROUP: Final = {"Gid": "JMSXGroupID", "Seq": "JMSXGroupSeq"}
_LONGEST: Final = 999_999_999
"""Tenths of a second that an expiry may be; more is without end."""
_ID: Final = re.compile(r"ID:([0-9a-fA-F]{48})")


def read_mq(data: bytes, *, on_invalid: OnInvalid = "fail") -> JmsMessage:
    """The message that these octets are.

    Args:
        data: an MQMD or none, then any number of MQRFH2 and other headers of MQ, then the body.
        on_invalid: what becomes of a property, or of a value in a map or stream, whose text its `dt` does not have.

    Returns:
        The message. A property of `usr` without `dt` is a String, those of Table 2 apart, which have their types by
        name (R15). What folders hold and JMS does not is in properties that begin with `KEPT`. Of the other headers
        (dead letters, CICS, IMS, MQRFH, MQMDE and others) only the reason of a dead letter is kept, in `DEAD_LETTER`.

    Raises:
        MqFormatError: lengths that do not add up, an unknown version, character set, byte order or header, a folder
            that is not well-formed, a body that its kind does not have; with the offset.
    """
    at, mqmd, found = 0, None, _Found(on_invalid)
    if data[:4] == Mqmd.ID:
        mqmd, at = Mqmd.read(data)
        following, order = mqmd.format, order_of(mqmd.encoding, 24)
        ccsid = mqmd.coded_char_set_id
    elif data[:4] == Rfh2.ID:
        following, order, ccsid = FORMAT_RFH2, None, 1208
    elif (known := next((name for name, one in HEADERS.items() if data[:4] == one.ID), None)) is not None:
        following, order, ccsid = known, None, 1208
    else:
        raise MqFormatError("neither an MQMD nor an MQRFH2 begins here", 0)
    while following == FORMAT_RFH2 or following in HEADERS:
        start = at
        header: Header | Rfh2
        if following == FORMAT_RFH2:
            header, at = Rfh2.read(data, start, order)
            for folder in header.folders:
                found.read(folder, start)
        else:
            header, at = Header.read(data, start, following, order)
            if header.reason is not None:
                found.properties.setdefault(DEAD_LETTER, header.reason)
        following, ccsid = header.format, inherited(header.coded_char_set_id, ccsid)
        if header.encoding or isinstance(header, Rfh2):  # the initial value of a dead letter's is 0
            order = order_of(header.encoding, start + 12)
        else:
            order = header.order
    if following.startswith("MQ") and following not in BODIES:
        raise MqFormatError(f"a structure of format {following} is not known", at)
    return found.message(mqmd, data[at:], at, following, ccsid, order or "big")


@dataclass(slots=True)
class _Found:
    """What the folders of a message say."""

    on_invalid: OnInvalid
    mcd: dict[str, str] = field(default_factory=dict)
    jms: dict[str, str] = field(default_factory=dict)
    properties: dict[str, PropertyValue] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)

    def read(self, text: str, start: int) -> None:
        """Adds the folders in a text. Raises MqFormatError: it is not well-formed, or holds a value that it may not."""
        try:
            root = parse_xml(f"<_{_DECLARED}>{text}</_>")
        except XmlError as error:
            raise MqFormatError(f"a folder is not well-formed: {error}", start) from None
        if "".join([root.text or "", *(one.tail or "" for one in root)]).strip():
            raise MqFormatError("text stands outside of the folders", start)
        for folder in root.iterchildren(tag=etree.Element):
            name = etree.QName(folder).localname
            self._keep(name, folder.text)
            known = {"mcd": self._of_mcd, "jms": self._of_jms, "usr": self._of_usr}.get(name)
            for element in folder.iterchildren(tag=etree.Element):
                if known is None or len(element) or not known(str(element.tag), element, start):
                    kept = etree.tostring(element, encoding="unicode", with_tail=False).replace(_DECLARED, "")
                    self.kept[name] = self.kept.get(name, "") + kept
                self._keep(name, element.tail)

    def _keep(self, name: str, text: str | None) -> None:
        """Keeps a text that stands in a folder and in none of its elements."""
        if text and text.strip():
            self.kept[name] = self.kept.get(name, "") + escape(text)

    def _of_mcd(self, name: str, element: etree._Element, start: int) -> bool:
        return self._once(self.mcd, name in ("Msd", "Set", "Type", "Fmt"), name, element)

    def _of_jms(self, name: str, element: etree._Element, start: int) -> bool:
        return self._once(self.jms, name in _JMS, name, element)

    @staticmethod
    def _once(found: dict[str, str], known: bool, name: str, element: etree._Element) -> bool:
        if known and name not in found:
            found[name] = element.text or ""
            return True
        return False

    def _of_usr(self, name: str, element: etree._Element, start: int) -> bool:
        if element.get(_NIL) in ("true", "1") or not is_property_name(name) or name in self.properties:
            return False
        dt, text = element.get("dt", ""), element.text or ""
        try:
            value = read_value(dt, text, on_invalid=self.on_invalid, name=f"property {name}")
        except DecodeError as error:
            raise MqFormatError(f"property {name}: {error}", start) from None
        if value is None or isinstance(value, bytes):
            return False  # no property of JMS has octets
        self.properties[name] = restore(name, value) if not dt else str(value) if dt.lower() == "char" else value
        return True

    def message(
        self, mqmd: Mqmd | None, body: bytes, at: int, following: str, ccsid: int, order: ByteOrder
    ) -> JmsMessage:
        """The message. Raises MqFormatError: a header or body that cannot be."""
        about = mqmd or Mqmd()
        declared = _KINDS.get(self.mcd.get("Msd", ""))
        kind = declared or (MessageType.TEXT if following == FORMAT_STRING else MessageType.BYTES)
        content: Content = ()
        if kind in _STRINGS:
            body = _decoded(body, ccsid, order, at)
            if kind is not MessageType.TEXT:
                try:
                    body, content = b"", read_content(body, on_invalid=self.on_invalid)
                except XmlError as error:
                    raise MqFormatError(f"the body is not a {kind.value}: {error}", at) from None
        properties = dict(self.properties)
        for name, value in self.kept.items():
            if is_property_name(f"{KEPT}{name}"):
                properties[f"{KEPT}{name}"] = value
        if "Gid" in self.jms:
            properties["JMSXGroupID"] = self.jms["Gid"]
        if "Seq" in self.jms:
            properties["JMSXGroupSeq"] = self._number("Seq", at)
        for name, of_mqmd in _OF_MQMD.items():
            if text := getattr(about, of_mqmd):
                properties[name] = text
        timestamp = self._number("Tms", at) if "Tms" in self.jms else _put_time(about)
        expiration = self._number("Exp", at) if "Exp" in self.jms else 0
        if not expiration and about.expiry > 0 and timestamp is not None:
            expiration = timestamp + about.expiry * 100
        reply_to = _destination(self._text("Rto")) or _queue(about.reply_to_q, about.reply_to_q_mgr)
        try:
            return JmsMessage(
                body=body,
                message_type=kind,
                content=content,
                properties=properties,
                destination=_destination(self._text("Dst")),
                reply_to=reply_to,
                correlation_id=self._text("Cid") or _id(about.correl_id),
                jms_type=self._jms_type(),
                delivery_mode=DeliveryMode(self._number("Dlv", at)) if "Dlv" in self.jms else _mode(about),
                priority=self._number("Pri", at) if "Pri" in self.jms else about.priority if about.priority >= 0 else 4,
                message_id=_id(about.msg_id),
                timestamp_ms=timestamp,
                expiration_ms=expiration,
                redelivered=about.backout_count > 0,
                delivery_count=about.backout_count + 1,
            )
        except ValueError as error:  # MtosiError's ConfigError is one, as is a delivery mode that there is not
            raise MqFormatError(f"no message of JMS: {error}", at) from None

    def _text(self, name: str) -> str:
        """A header of JMS; blanks alone are none."""
        text = self.jms.get(name, "")
        return text if text.strip() else ""

    def _number(self, name: str, at: int) -> int:
        text = self.jms[name].strip()
        if not re.fullmatch(r"-?[0-9]{1,19}", text):
            raise MqFormatError(f"jms.{name}: {text!r:.40} is not a whole number", at)
        return int(text)

    def _jms_type(self) -> str | None:
        domain = self.mcd.get("Msd", "")
        kind = self.mcd.get("Type")
        if domain and domain not in _KINDS:
            return Mcd(domain, self.mcd.get("Set", ""), kind or "", self.mcd.get("Fmt", "")).uri
        return kind


_JMS: Final = frozenset({"Dst", "Rto", "Tms", "Cid", "Exp", "Pri", "Dlv", *_GROUP})


def _decoded(body: bytes, ccsid: int, order: ByteOrder, at: int) -> bytes:
    codec = codec_of(ccsid, order, at)
    try:
        return body.decode(codec).encode()
    except UnicodeError as error:
        raise MqFormatError(f"the text is not in CCSID {ccsid}", at + getattr(error, "start", 0)) from None


def _id(octets: bytes) -> str | None:
    return f"ID:{octets.hex()}" if any(octets) else None


def _mode(mqmd: Mqmd) -> DeliveryMode:
    return DeliveryMode.NON_PERSISTENT if mqmd.persistence == 0 else DeliveryMode.PERSISTENT


def _put_time(mqmd: Mqmd) -> int | None:
    """When the message was put, milliseconds since 1970; None where the MQMD does not say it."""
    if not re.fullmatch("[0-9]{16}", mqmd.put_date + mqmd.put_time):
        return None
    try:
        put = datetime.strptime(mqmd.put_date + mqmd.put_time[:6], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(put.timestamp()) * 1_000 + int(mqmd.put_time[6:]) * 10


def _destination(text: str) -> Destination | None:
    """The destination that an IBM URI names; a queue manager or options stay in its name: IBM's client takes that."""
    if not text:
        return None
    for kind, scheme in ((Queue, "queue:///"), (Topic, "topic://")):
        if text.startswith(scheme) and "?" not in text and len(text) > len(scheme):
            return kind(text.removeprefix(scheme))
    return Topic(text) if text.startswith("topic:") else Queue(text)


def _queue(name: str, manager: str) -> Destination | None:
    if not name:
        return None
    return Queue(f"queue://{manager}/{name}") if manager else Queue(name)


def _uri(destination: Destination) -> str:
    if destination.name.startswith(("queue:", "topic:")):
        return destination.name
    return f"{'topic://' if destination.is_topic else 'queue:///'}{destination.name}"


def write_mq(
    message: JmsMessage, *, with_mqmd: bool = False, byte_order: ByteOrder = "big", ccsid: int = 1208
) -> bytes:
    """A message as octets: an MQMD or none, an MQRFH2, the body. `byte_order`: of numbers. `ccsid`: the character set
    of a text: 1208 UTF-8, 1200 UTF-16, 819 Latin-1. Folders are UTF-8. Raises MqFormatError: a name that no folder can
    hold, a text that the character set does not have, or a value that is too long for its field."""
    kind = message.message_type
    body = message.body if kind not in (MessageType.MAP, MessageType.STREAM) else write_content(message.content)
    if kind in _STRINGS:
        codec = codec_of(ccsid, byte_order, 0)
        try:
            body = body.decode().encode(codec)
        except UnicodeError:
            raise MqFormatError(f"the text does not fit CCSID {ccsid}", 0) from None
    header = Rfh2(
        encoding=encoding_of(byte_order),
        coded_char_set_id=ccsid,
        format=FORMAT_STRING if kind in _STRINGS else FORMAT_NONE,
        folders=_folders(message),
        order=byte_order,
    )
    mqmd = _mqmd_of(message, byte_order).write(byte_order) if with_mqmd else b""
    return mqmd + header.write() + body


def _folders(message: JmsMessage) -> tuple[str, ...]:
    parsed = read_mcd(message.jms_type)
    mcd: list[tuple[str, str]] = [("Msd", _MSD[message.message_type])]
    if parsed is not None:
        mcd = [("Msd", parsed.domain), ("Set", parsed.set), ("Type", parsed.type), ("Fmt", parsed.format)]
    elif message.jms_type is not None:
        mcd.append(("Type", message.jms_type))
    jms: list[tuple[str, object]] = [
        ("Dst", None if message.destination is None else _uri(message.destination)),
        ("Rto", None if message.reply_to is None else _uri(message.reply_to)),
        ("Tms", message.timestamp_ms),
        ("Exp", message.expiration_ms or None),
        ("Cid", message.correlation_id),
        ("Pri", message.priority),
        ("Dlv", int(message.delivery_mode)),
        ("Gid", message.properties.get("JMSXGroupID")),
        ("Seq", _whole(message.properties.get("JMSXGroupSeq"))),
    ]
    usr = [
        (name, value)
        for name, value in message.properties.items()
        if not name.startswith(KEPT) and name not in _OF_MQMD and name not in _GROUP.values()
    ]
    kept = {name.removeprefix(KEPT): str(value) for name, value in message.properties.items() if name.startswith(KEPT)}
    folders = [
        _folder("mcd", [(name, text) for name, text in mcd if text], kept),
        _folder("jms", [(name, str(value)) for name, value in jms if value is not None], kept),
        _folder("usr", usr, kept),
        *(_folder(name, (), {name: inner}) for name, inner in kept.items() if name not in ("mcd", "jms", "usr")),
    ]
    return tuple(one for one in folders if one)


def _whole(value: PropertyValue | None) -> PropertyValue | None:
    """An integer without its JMS type, which its text would have."""
    return int(value) if isinstance(value, int) else value


def _folder(name: str, values: Iterable[tuple[str, PropertyValue]], kept: Mapping[str, str]) -> str:
    """A folder as text, empty where nothing is in it. Raises MqFormatError: a name or character that XML does not
    have."""
    inner = ""
    for key, value in values:
        if not _XML_NAME.fullmatch(key):
            raise MqFormatError(f"property {key}: no folder of an MQRFH2 can have this name", 0)
        element = etree.Element(key)
        try:
            dt, element.text = ("", str(value)) if name != "usr" else write_value(value)
        except (EncodeError, ValueError) as error:
            raise MqFormatError(f"{name}.{key}: {error}", 0) from None
        if dt:
            element.set("dt", dt)
        inner += etree.tostring(element, encoding="unicode")
    inner += kept.get(name, "")
    return f"<{name}>{inner}</{name}>" if inner else ""


def _mqmd_of(message: JmsMessage, order: ByteOrder) -> Mqmd:
    user, application = (str(message.properties.get(name, "")) for name in _OF_MQMD)
    reply_to = "" if message.reply_to is None or message.reply_to.is_topic else message.reply_to.name
    manager = ""
    if reply_to.startswith("queue://"):
        manager, _, reply_to = reply_to.removeprefix("queue://").partition("?")[0].rpartition("/")
    try:
        put = None if message.timestamp_ms is None else datetime.fromtimestamp(message.timestamp_ms / 1_000, UTC)
    except (ValueError, OverflowError, OSError):
        raise MqFormatError(f"put_date: {message.timestamp_ms} is beyond the year 9999", 0) from None
    return Mqmd(
        encoding=encoding_of(order),
        coded_char_set_id=1208,
        format=FORMAT_RFH2,
        expiry=tenths if 0 < (tenths := -(-message.time_to_live_ms // 100)) <= _LONGEST else -1,
        priority=message.priority,
        persistence=int(message.delivery_mode is DeliveryMode.PERSISTENT),
        msg_id=_octets_of(message.message_id),
        correl_id=_octets_of(message.correlation_id, any_text=True),
        backout_count=min(max(message.delivery_count - 1, 0), 2**31 - 1),
        reply_to_q=reply_to,
        reply_to_q_mgr=manager,
        put_date="" if put is None else put.strftime("%Y%m%d"),
        put_time="" if put is None else f"{put:%H%M%S}{put.microsecond // 10_000:02}",
        user_identifier=user,
        put_appl_name=application,
    )


def _octets_of(text: str | None, *, any_text: bool = False) -> bytes:
    """The 24 octets of an id; of a text that is none, its first ones where that is allowed, else none."""
    match = _ID.fullmatch(text or "")
    if match is not None:
        return bytes.fromhex(match[1])
    return (text or "").encode()[:24].ljust(24, b"\0") if any_text else b"\0" * 24
