"""The binding: maps an MTOSI header to JMS headers and properties, and back (Table 2, R11 to R18, C01 to C25).

Sending is strict: a header that must not be sent raises a `HeaderError` before anything is sent. Reading is lenient:
breaches of rules are warnings. Of a message's body only the envelope is read (P37).
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.events import event_values, events_of, shared_name
from mtosi_jms.binding.profile import BodyCheck
from mtosi_jms.binding.soap_jms import document_of, is_soap_jms, says_fault
from mtosi_jms.binding.table2 import BY_PROPERTY, MAX_INTEGER, NEVER_MAPPED, ROWS, restore, row_of, whole_number
from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import ConfigError, EncodeError, HeaderError, MtosiFault
from mtosi_jms.header import HeaderField
from mtosi_jms.jms import Destination, NamingContext
from mtosi_jms.jms.ids import random_id
from mtosi_jms.jms.message import JmsMessage, MessageType, Properties, PropertyValue
from mtosi_jms.masking import is_secret
from mtosi_jms.soap import (
    FIELD_NAMES,
    Envelope,
    header_text,
    header_texts,
    missing_fields,
    parse,
    soap_prefix,
    start_tag,
)
from mtosi_jms.stubs.fmw.hdr import (
    ActivityStatusEnumType,
    ActivityStatusType,
    CommunicationPatternType,
    CommunicationStyleType,
    Header,
    MessageTypeType,
)
from mtosi_jms.xmlbind import (
    DECLARATION,
    RawXml,
    Writer,
    XmlObject,
    XmlWarning,
    format_date_time,
    in_utf8,
    known_prefix,
    to_element,
)

__all__ = [
    "DEFAULT_PROFILE",
    "MAX_EXTENSION",
    "HeaderMapping",
    "HeaderTemplates",
    "from_jms",
    "is_notification",
    "judge_body",
    "map_header",
    "sender_of",
    "to_jms",
]

DEFAULT_PROFILE: Final = BindingProfile()
MAX_EXTENSION: Final = BOUNDS.extension_length
"""Maximum length of MTOSI_vendorExtension in characters, because brokers limit the size of headers (C07)."""

_BESIDE: Final = ("replyToURI", "correlationId", "priority")
"""Header fields that the rules need but that do not become properties."""


@dataclass(slots=True)
class HeaderMapping:
    """The JMS headers and properties for a header, before names are resolved.

    Attributes:
        properties: Table 2 properties in the order of the table.
        warnings: breaches of the rules, if the mapping was lenient.
    """

    properties: dict[str, PropertyValue] = field(default_factory=dict)
    reply_to_uri: str | None = None
    priority: int = 4
    time_to_live_ms: int = 0
    warnings: list[XmlWarning] = field(default_factory=list)


class _Breaches:
    """Handles breaches of rules: adds them to warnings, or raises them as errors."""

    def __init__(self, warnings: list[XmlWarning] | None) -> None:
        self._warnings = warnings

    def add(self, rule: str, header_field: str, reason: str, instead: str = "") -> None:
        """Report a breach. `instead` says in a warning what was done about it; an error does not need it."""
        if self._warnings is None:
            raise HeaderError(header_field, f"{reason} ({rule})")
        words = f"{header_field}: {reason}: {instead}" if instead else f"{header_field}: {reason}"
        self._warnings.append(XmlWarning(rule, words, f"header/{header_field}"))


def map_header(
    header: Header,
    profile: BindingProfile = DEFAULT_PROFILE,
    *,
    body: Any = None,
    strict: bool = False,
    filters: Iterable[str] = (),
    has_reply_to: bool = False,
    one_way: bool = False,
) -> HeaderMapping:
    """Map a header by Table 2.

    Args:
        body: the message's body; only notifications need it, for their time to live and the attributes of Table 4.
        filters: attributes of Table 4 to map (R19, R20).
        has_reply_to: a reply destination is given separately from the header (C15).
        one_way: the operation has no response, so no reply address is needed (C14).

    Raises:
        HeaderError: in strict mode, the header must not be sent.
    """
    _check_header(header)
    mapping = HeaderMapping()
    breaches = _Breaches(None if strict else mapping.warnings)
    texts = header_texts(header, _fields_needed(profile.optional_fields))
    message_type = texts.get("msgType", "")
    _reply_to(texts, profile, mapping, message_type)
    _properties(header, texts, profile, mapping, breaches)
    _rules(texts, mapping, breaches, message_type, needs_reply=not (has_reply_to or one_way))
    # A fault must reach the requestor; and of what was received, the reader has warned.
    if strict and type(header) is not Header and message_type != "ERROR":
        for name in missing_fields(header):
            breaches.add("header", name, "required in a header of MTOSI 1.x")
    mapping.priority = _priority(texts.get("priority"), profile, breaches)
    event = ""
    if is_notification(message_type, texts.get("communicationPattern")):
        events = events_of(body)
        event = shared_name(events)
        mapping.properties.update(event_values(events, filters, profile))
    mapping.time_to_live_ms = profile.time_to_live_ms(message_type, event)
    return mapping


def _check_header(header: object) -> None:
    if not isinstance(header, XmlObject) or not hasattr(header, "msg_type"):
        raise ConfigError(f"an MTOSI header is needed, not {type(header).__name__}")


def is_notification(message_type: str | None, pattern: str | None) -> bool:
    """Whether a header belongs to a notification.

    Several of TM Forum's own samples say so only in communicationPattern, and have msgType REQUEST.
    """
    return message_type == "NOTIFICATION" or pattern == "Notification"


def _reply_to(texts: Mapping[str, str], profile: BindingProfile, mapping: HeaderMapping, message_type: str) -> None:
    """R16: JMSReplyTo is the destination of replyToURI, else of senderURI; only on requests unless the profile says."""
    if profile.reply_to_on == "request" and message_type not in ("REQUEST", ""):
        return
    mapping.reply_to_uri = texts.get("replyToURI") or texts.get("senderURI")


def _properties(
    header: Header, texts: Mapping[str, str], profile: BindingProfile, mapping: HeaderMapping, breaches: _Breaches
) -> None:
    for row in _mapped(profile.optional_fields):
        text = texts.get(row.name)
        if row.name == "vendorExtensions":
            value: PropertyValue | None = _extension_text(header, breaches)
        elif text is None or (row.name == "senderURI" and not _shows_sender(texts, profile, mapping)):
            continue
        else:
            value = text if row.kind is str else _value(text, row, breaches)
        if value is not None:
            mapping.properties[row.property] = value


@lru_cache(64)
def _mapped(optional_fields: frozenset[str]) -> tuple[HeaderField, ...]:
    return tuple(row for row in ROWS if row.mandatory or row.name in optional_fields)


@lru_cache(64)
def _fields_needed(optional_fields: frozenset[str]) -> tuple[str, ...]:
    return (*(row.name for row in _mapped(optional_fields)), *_BESIDE)


def _shows_sender(texts: Mapping[str, str], profile: BindingProfile, mapping: HeaderMapping) -> bool:
    """Whether MTOSI_senderURI is set: when JMSReplyTo comes from replyToURI, and without a JMSReplyTo (C01, C13)."""
    if profile.sender_uri == "always" or mapping.reply_to_uri is None:
        return True
    return "replyToURI" in texts


def _value(text: str, row: HeaderField, breaches: _Breaches) -> PropertyValue | None:
    if row.kind is bool:
        value = restore(row.property, text)
        if type(value) is not bool:
            breaches.add("R15d", row.name, "neither true nor false", "not mapped")
            return None
        return value
    return _integer(text, row.name, breaches)


def _integer(text: str, name: str, breaches: _Breaches) -> int | None:
    number = whole_number(text)
    if number is None:
        breaches.add("R15c", name, "not an unsigned integer", "not mapped")
    elif number > MAX_INTEGER:
        breaches.add("C25", name, "larger than a JMS Integer", "not mapped")
        return None
    return number


def _extension_text(header: Header, breaches: _Breaches) -> str | None:
    extensions = header.vendor_extensions
    if not isinstance(extensions, XmlObject):
        return None
    items = getattr(extensions, "any_", [])
    parts = [item if isinstance(item, RawXml) else RawXml.from_element(to_element(item)) for item in items]
    allowed = (part for part in parts if part.tag.rpartition("}")[2] not in NEVER_MAPPED)
    text = "".join(part.xml.decode("utf-8") for part in allowed)
    if len(text) > MAX_EXTENSION:
        breaches.add("C07", "vendorExtensions", f"longer than {MAX_EXTENSION} characters", "not mapped")
        return None
    return text or None


def _rules(
    texts: Mapping[str, str], mapping: HeaderMapping, breaches: _Breaches, message_type: str, *, needs_reply: bool
) -> None:
    pattern = texts.get("communicationPattern")
    batches = pattern in ("MultipleBatchResponse", "MultipleResponse")
    if pattern == "MultipleResponse":
        breaches.add(
            "C51", "communicationPattern", "MultipleResponse is read as MultipleBatchResponse, which is its name"
        )
    if not message_type:
        breaches.add("R13a", "msgType", "absent: what kind of message is this?")
    if message_type == "REQUEST":
        if batches and "requestedBatchSize" not in texts:
            breaches.add("R4a", "requestedBatchSize", "required with MultipleBatchResponse")
        if needs_reply and mapping.reply_to_uri is None:
            breaches.add("C14", "senderURI", "neither senderURI nor replyToURI: no response could be sent")
    if message_type == "RESPONSE" and batches:
        for name in ("batchSequenceNumber", "batchSequenceEndOfReply"):
            if name not in texts:
                breaches.add("R5a", name, "required in each response of MultipleBatchResponse")
    if message_type in ("REQUEST", "RESPONSE") and texts.get("communicationStyle") != "RPC":
        rule = "R3b" if message_type == "REQUEST" else "R3c"
        if "correlationId" not in texts:
            breaches.add(rule, "correlationId", "required in the MSG style, and never empty")


def _priority(text: str | None, profile: BindingProfile, breaches: _Breaches) -> int:
    if text is None:
        return profile.priority
    if len(text) == 1 and text.isascii() and text.isdigit():
        return int(text)
    breaches.add("R15c", "priority", f"{text[:20]!r} is not a JMS priority, 0 to 9", f"{profile.priority} is taken")
    return profile.priority


def to_jms(
    header: Header,
    body: Any,
    profile: BindingProfile = DEFAULT_PROFILE,
    *,
    names: NamingContext | None = None,
    reply_to: Destination | None = None,
    correlation_id: str | None = None,
    filters: Iterable[str] = (),
    one_way: bool = False,
) -> JmsMessage:
    """Return the JMS message of a header and a body, ready to be sent.

    Args:
        body: the object of the body's element, `RawXml`, or a whole `Envelope`. With msgType ERROR the object is the
            operation's exception and becomes the detail of a fault.
        names: resolves replyToURI or senderURI (R16c). Without it a URI must state its kind, as in `queue:X`.
        reply_to: the destination of JMSReplyTo, such as a temporary queue, in place of the URIs (C15).
        correlation_id: JMSCorrelationID (O13).
        filters: attributes of Table 4 to map (R19).

    Raises:
        HeaderError: the header must not be sent (R3b, R4a, R5a, C14, C25).
        NamingError: the reply URI has no destination (R16c).
        EncodeError: the body cannot be encoded as valid XML.
    """
    _check_header(header)
    envelope = body if isinstance(body, Envelope) else _envelope(header, body)
    mapping = map_header(
        header,
        profile,
        body=envelope.body,
        strict=True,
        filters=filters,
        has_reply_to=reply_to is not None,
        one_way=one_way,
    )
    properties = Properties.trusted(mapping.properties)  # names of the tables, values of their types
    if reply_to is None:
        reply_to = _reply_destination(mapping, names)
    return _message_of(mapping, properties, in_utf8(envelope.to_bytes()), profile, reply_to, correlation_id)


def _reply_destination(mapping: HeaderMapping, names: NamingContext | None) -> Destination | None:
    """Return the destination of JMSReplyTo by a header's URIs. Raises NamingError: the reply URI has no destination
    (R16c)."""
    uri = mapping.reply_to_uri
    return None if uri is None else (NamingContext() if names is None else names).lookup(uri)


def _message_of(
    mapping: HeaderMapping,
    properties: Properties,
    document: bytes,
    profile: BindingProfile,
    reply_to: Destination | None,
    correlation_id: str | None,
) -> JmsMessage:
    return JmsMessage(
        body=document,
        properties=properties,
        reply_to=reply_to,
        correlation_id=correlation_id,
        delivery_mode=profile.delivery_mode,
        priority=mapping.priority,
        time_to_live_ms=mapping.time_to_live_ms,
    )


def _envelope(header: Header, body: Any) -> Envelope:
    if header_text(header, "msgType") != "ERROR":
        return Envelope(header=header, body=body)
    return Envelope(header=header, body=body, fault=MtosiFault(fault_code="Server"))


def from_jms(message: JmsMessage, *, strict: bool = False, package: str | None = None, header: str = "") -> Envelope:
    """Return the envelope in a JMS message.

    Properties that differ from the XML header, and breaches of the transport's rules, are added to the envelope's
    warnings. The XML header counts.

    Args:
        package: generated package whose classes come before those of all others.
        header: the profile's `header`: a vendor's header element is read beside those of MTOSI.

    Raises:
        MalformedXmlError, ForbiddenXmlError, EnvelopeError: the body is not an envelope.
        DecodeError: in strict mode, the envelope is not valid.
    """
    soap_jms = is_soap_jms(message)
    document, odd = document_of(message)
    envelope = parse(document, strict=strict, package=package, needs_header=not soap_jms, header=header)
    if odd:
        envelope.warnings.append(XmlWarning("W3C" if soap_jms else "encoding", odd))
    if soap_jms:
        if says_fault(message) not in (None, envelope.fault is not None):
            envelope.warnings.append(XmlWarning("W3C", "SOAPJMS_isFault says otherwise than the body"))
    elif message.message_type is not MessageType.TEXT:
        envelope.warnings.append(XmlWarning("O1", f"the message is a {message.message_type.value}, not a TextMessage"))
    if envelope.header is not None:
        _compare(message, envelope.header, envelope.warnings)
    return envelope


def judge_body(check: BodyCheck | None, message: JmsMessage, envelope: Envelope) -> None:
    """Check the body of an envelope against schemas, and add what is wrong to the envelope's warnings (001-S12). Raises
    DecodeError: the check refuses the body."""
    if check is not None:
        envelope.warnings += check.check(document_of(message)[0])


_PLACES: Final = {name: at for at, name in enumerate(BY_PROPERTY)}
_MAPPED: Final = attrgetter(*(FIELD_NAMES[row.name] for row in BY_PROPERTY.values()))
"""Returns the values of the header's fields that become properties, each at the property's place in `_PLACES`."""


def _compare(message: JmsMessage, header: Header, warnings: list[XmlWarning]) -> None:
    values = _MAPPED(header)
    for name, raw in message.properties.items():
        at = _PLACES.get(name)
        if at is not None:
            value = values[at]
            if value.__class__ is ActivityStatusType and value.extras is None:
                value = value.value
            # The usual cases: equal texts, numbers and booleans. An enumeration is a text, but True is no 1.
            if raw == value and (raw.__class__ is str or raw.__class__ is value.__class__):
                continue
        row = row_of(name)
        if row is None or row.name == "vendorExtensions":
            continue
        text = header_text(header, row.name)
        if name not in BY_PROPERTY:
            warnings.append(XmlWarning("R14", f"property {name} is spelled {row.property}"))
        expected = restore(row.property, text) if text is not None else None
        if expected is not None and restore(row.property, raw) != expected:
            shown = "" if is_secret(row.name) else f": {raw!r} against {text!r}"
            warnings.append(XmlWarning("R13", f"property {name} differs from the header{shown}"))


def sender_of(message: JmsMessage, header: Header) -> str | None:
    """Return the sender of a message: MTOSI_senderURI if it is there, else the header's senderURI (C01)."""
    for name, value in message.properties.items():
        row = row_of(name)
        if row is not None and row.name == "senderURI":
            return str(value)
    return header_text(header, "senderURI")


_MOST_TEMPLATES: Final = 256
"""Maximum number of templates, because peers may choose the values of their keys."""
_LONGEST_KEY: Final = 2_000
"""Maximum length of a template's key, in characters."""
_MARKED_TIME: Final = dt.datetime(9876, 5, 4, 3, 2, 1, tzinfo=dt.UTC)
_TEMPLATE_TYPES: Final = (MessageTypeType.REQUEST, MessageTypeType.RESPONSE)
"""Kinds of message whose JMS headers and properties do not depend on the body."""
_PLAIN: Final = frozenset(
    {type(None), str, MessageTypeType, CommunicationPatternType, CommunicationStyleType, ActivityStatusEnumType}
)
"""Types whose equal values are encoded the same."""


class HeaderTemplates:
    """Makes the messages of one sender that repeats the same header: a requestor's requests, a supplier's responses.

    For headers that differ only in correlationId and timestamp, the properties and the XML around the two are made
    once. The messages equal those of `to_jms`.
    """

    def __init__(self, profile: BindingProfile) -> None:
        self.profile = profile
        self._seen: set[tuple[object, ...]] = set()
        self._made: dict[tuple[object, ...], _Template | None] = {}

    def __len__(self) -> int:
        return len(self._made)

    def to_jms(
        self,
        header: Header,
        body: Any,
        version: str = "1.1",
        *,
        names: NamingContext,
        reply_to: Destination | None = None,
        correlation_id: str | None = None,
        key: tuple[object, ...] | None = None,
    ) -> JmsMessage:
        """Return the JMS message of a header and a body. Arguments and errors are those of the function `to_jms`.

        `key`: of which the caller makes the same header each time, but for correlationId and timestamp; see `again`."""
        template = None
        if isinstance(body, XmlObject) and _has_plain_marks(header):
            template = self._template(header, version, has_reply_to=reply_to is not None)
            if template is not None and key is not None:
                self._made[key] = template
        if template is None:
            envelope = Envelope(header=header, body=body, version=version)
            return to_jms(header, envelope, self.profile, names=names, reply_to=reply_to, correlation_id=correlation_id)
        identifier, time = str(header.correlation_id), header.timestamp
        return self._message(template, body, identifier, time, names, reply_to, correlation_id)

    def again(
        self,
        key: tuple[object, ...],
        body: Any,
        identifier: str,
        time: dt.datetime,
        *,
        names: NamingContext,
        reply_to: Destination | None = None,
        correlation_id: str | None = None,
    ) -> JmsMessage | None:
        """Return what `to_jms` makes of the header of a key; None: it has to be asked. `identifier`: the header's
        correlationId. `time`: its timestamp, in UTC. Raises EncodeError, NamingError: as `to_jms`."""
        template = self._made.get(key)
        if template is None or not isinstance(body, XmlObject) or not _is_plain(identifier):
            return None
        return self._message(template, body, identifier, time, names, reply_to, correlation_id)

    def _message(
        self,
        template: _Template,
        body: XmlObject,
        identifier: str,
        time: dt.datetime | None,
        names: NamingContext,
        reply_to: Destination | None,
        correlation_id: str | None,
    ) -> JmsMessage:
        if reply_to is None:
            reply_to = _reply_destination(template.mapping, names)
        document = template.document(identifier, time, body)
        return _message_of(template.mapping, template.properties, document, self.profile, reply_to, correlation_id)

    def _template(self, header: Header, version: str, *, has_reply_to: bool) -> _Template | None:
        """Return the template of a header, from the second use of such a header on; else None."""
        cls: Any = type(header)
        values = [value if value.__class__ in _PLAIN else _key_part(value) for value in _distinguishing(cls)(header)]
        key = (cls, version, has_reply_to, *values)
        try:
            template = self._made.get(key)
        except TypeError:  # a value that is not hashable, such as Nil with attributes
            return None
        if template is not None or key in self._made:
            return template
        if sum(len(part) for part in key if isinstance(part, str)) > _LONGEST_KEY:
            return None
        if len(self._seen) >= _MOST_TEMPLATES:
            self._seen.clear()
            self._made.clear()
        if key not in self._seen:
            self._seen.add(key)
            return None
        try:
            template = _Template(header, self.profile, version, has_reply_to=has_reply_to)
        except (HeaderError, EncodeError, ValueError):  # `to_jms` raises the error
            template = None
        self._made[key] = template
        return template


class _Template:
    """A header with gaps for correlationId and timestamp. Raises ValueError: the two values occur in the message also
    outside of the gaps."""

    __slots__ = ("_format", "_needed", "_pieces", "_version", "mapping", "properties")

    def __init__(self, header: Header, profile: BindingProfile, version: str, *, has_reply_to: bool) -> None:
        time = header.__xml__.field("timestamp").simple()
        self._format = time.format if time is not None else format_date_time
        mark, marked_time = random_id(), self._format(_MARKED_TIME)
        marked = dataclasses.replace(header, correlation_id=mark, timestamp=_MARKED_TIME)
        self.mapping = map_header(marked, profile, strict=True, has_reply_to=has_reply_to)
        self.properties = Properties.trusted(self.mapping.properties)
        self._version = version
        writer = Writer()
        writer.root(marked)
        self._needed = writer.names
        before, _, rest = writer.content().decode().partition(mark)
        between, _, after = rest.partition(marked_time)
        shown = [before, between, after, *map(str, self.properties.values())]
        own = all(map(known_prefix, self._needed.namespaces))
        if not after or not own or any(mark in text or marked_time in text for text in shown):
            raise ValueError("not a header with two gaps")
        soap = soap_prefix(version)
        start, end = f"<{soap}:Header>{before}", f"{after}</{soap}:Header><{soap}:Body>"
        self._pieces = [piece.encode() for piece in (start, between, end, f"</{soap}:Body></{soap}:Envelope>")]

    def document(self, identifier: str, time: Any, body: XmlObject) -> bytes:
        writer = Writer()
        writer.names.plans |= self._needed.plans
        writer.names.namespaces |= self._needed.namespaces
        writer.root(body)
        content = writer.content()
        head = start_tag(self._version, writer.names).encode()
        before, between, after, end = self._pieces
        marks = identifier.encode(), _written(self._format, time)
        return b"".join((DECLARATION, head, before, marks[0], between, marks[1], after, content, end))


def _has_plain_marks(header: Header) -> bool:
    """Whether correlationId and timestamp of a header can go into the gaps of a template: a request or response whose
    id has only ASCII letters, digits and hyphens, and whose time is in UTC."""
    identifier, time = header.correlation_id, header.timestamp
    if header.extras is not None or header.msg_type not in _TEMPLATE_TYPES:
        return False
    return _is_plain(identifier) and type(time) is dt.datetime and time.tzinfo is dt.UTC


def _is_plain(identifier: object) -> bool:
    return type(identifier) is str and identifier.isascii() and identifier.replace("-", "").isalnum()


def _key_part(value: object) -> object:
    """Return a value as a part of a key. Values with equal parts are encoded the same."""
    if isinstance(value, XmlObject):
        cls: Any = type(value)
        return cls, *[item if item.__class__ in _PLAIN else _key_part(item) for item in _fields_of(cls)(value)]
    if isinstance(value, list):
        return list, *map(_key_part, value)
    return type(value), value


@lru_cache(64)
def _fields_of(cls: Any) -> Callable[[XmlObject], tuple[object, ...]]:
    return attrgetter("extras", *(one.name for one in cls.__xml__.fields))


@lru_cache(64)
def _distinguishing(cls: Any) -> Callable[[XmlObject], tuple[object, ...]]:
    """Return what gets all fields of a header but correlationId and timestamp: the key of a template. No field can be
    forgotten."""
    names = (one.name for one in cls.__xml__.fields)
    return attrgetter(*(name for name in names if name not in ("correlation_id", "timestamp")))


@lru_cache(4)
def _written(format_: Callable[[dt.datetime], str], time: dt.datetime) -> bytes:
    return format_(time).encode()
