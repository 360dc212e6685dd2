"""JMS messages as STOMP frames, and back. Properties lose their types; `retype` gives back those that their names tell
(C62).

ActiveMQ Classic stores the bytes of a TextMessage unchanged, and Java clients decode them as CESU-8, which encodes a
character beyond U+FFFF as two surrogates. The four bytes of UTF-8 make `getText()` throw. So we send such characters as
XML character references, and convert both forms back when we receive them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from mtosi_jms.errors import ConfigError, EncodeError
from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import DeliveryMode, JmsMessage, MessageType, Properties, PropertyValue, is_property_name
from mtosi_jms.jms.typed import Retype, as_text, from_text
from mtosi_jms.transport._descriptor import CONTROL_CHARACTERS, ORIGINAL_DESTINATION, check_body
from mtosi_jms.transport.stomp._dialect import Dialect
from mtosi_jms.transport.stomp._frames import escaped

RESERVED: Final = frozenset(
    {
        *("ack", "browser", "destination", "expires", "id", "persistent", "priority", "receipt", "redelivered"),
        *("selector", "subscription", "timestamp", "transaction", "transformation", "type", "originalDestination"),
        *("amqMessageId", "breadcrumbId"),
    }
)
"""STOMP and broker headers whose names are also valid JMS property names."""

_INTERNAL: Final = ("_AMQ_", "__AMQ_", "__HDR_")
"""Prefixes of the headers that Artemis adds to a message for its own use."""
_SURROGATES: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_BEYOND_BMP: Final = re.compile(rb"[\xf0-\xf4][\x80-\xbf]{3}")
_REFERENCE: Final = re.compile(rb"&#x(10[0-9A-F]{4}|[1-9A-F][0-9A-F]{4});")
_SET_APART: Final = re.compile(rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)", re.DOTALL)
_BEYOND_BMP_IN_NAME: Final = re.compile(
    rb"<[^<>\"'\xf0-\xf4]*(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"'\xf0-\xf4]*)*[\xf0-\xf4]"
)
"""A character beyond the BMP in a tag, outside the values of attributes."""
_SPECIAL: Final = bytes([*range(9), 11, 12, *range(14, 32), *range(0xF0, 0xF5)])
_SPECIALS: Final = tuple(bytes([one]) for one in _SPECIAL)
_PIECE: Final = 16_384
_PLAIN_KINDS: Final = frozenset({MessageType.TEXT, MessageType.BYTES})
_PRIORITIES: Final = {str(priority): priority for priority in range(10)}


def outgoing(
    dialect: Dialect, address: str, sent: JmsMessage, reply_address: str | None
) -> tuple[dict[str, str], bytes]:
    """Build the headers and body of the SEND frame for a message whose JMS headers are set.

    Raises ConfigError: STOMP cannot carry it. It is an ObjectMessage, or has no destination, control characters, a
    property with a reserved name, too many headers, a header that is too long, or a text body that is not UTF-8."""
    sent = _as_text(sent)
    headers = {"destination": address, **dialect.sending(_destination(sent))}
    body = sent.body
    if sent.message_type is MessageType.TEXT and not is_plain(body):
        check_body(body)
        if dialect.references:
            body = to_references(body)
    headers.update(dialect.kind_of_body(sent.message_type, len(body)))
    if sent.delivery_mode is DeliveryMode.PERSISTENT:
        headers["persistent"] = "true"
    if sent.priority != 4:
        headers["priority"] = str(sent.priority)
    if sent.expiration_ms:
        headers["expires"] = str(sent.expiration_ms)
    if sent.correlation_id is not None:
        headers["correlation-id"] = sent.correlation_id
    if sent.jms_type is not None:
        headers["type"] = sent.jms_type
    if reply_address is not None:
        headers["reply-to"] = reply_address
    for name, value in sent.properties.items():
        if name in RESERVED:
            raise ConfigError(f"property {name}: over STOMP a header of the frame has this name")
        headers[name] = _written(value)
    if not _are_short_and_plain(dialect, headers):
        _check_headers(dialect, headers)
    return headers, body


def _as_text(sent: JmsMessage) -> JmsMessage:
    """A map or stream as the text that stands for it; other messages as they are."""
    if sent.message_type in _PLAIN_KINDS:
        return sent
    try:
        made = as_text(sent)
    except EncodeError as exc:
        raise ConfigError(f"a {sent.message_type.value} goes over STOMP as XML: {exc}") from None
    if made is sent:
        raise ConfigError(f"a {sent.message_type.value} cannot be sent over STOMP")
    return made


def incoming(
    dialect: Dialect,
    headers: Mapping[str, str],
    body: bytes,
    consumed: Destination,
    resolve: Callable[[str], Destination | None],
    retype: Retype,
) -> JmsMessage:
    """Build the JMS message from a MESSAGE frame. Values that make no sense are ignored: one sender's bad message must
    not stop those of others. `resolve` maps a `reply-to` header to one of our own temporary destinations."""
    message_type = dialect.message_type(headers)
    if message_type is MessageType.TEXT:
        body = from_wire(body, references=dialect.references)
    expires, stamp = _number(headers.get("expires")), _number(headers.get("timestamp"))
    reply_to = headers.get("reply-to")
    redelivered = headers.get("redelivered") == "true"
    return from_text(
        JmsMessage(
            body=body,
            message_type=message_type,
            properties=_properties(headers, retype, dialect.origin(headers)),
            destination=consumed,
            reply_to=None if reply_to is None else resolve(reply_to) or dialect.destination(reply_to, {}),
            delivery_mode=DeliveryMode.PERSISTENT
            if headers.get("persistent") == "true"
            else DeliveryMode.NON_PERSISTENT,
            priority=_PRIORITIES.get(headers.get("priority", ""), 4),
            time_to_live_ms=max(expires - stamp, 0) if expires and stamp else 0,
            message_id=dialect.message_id(headers),
            timestamp_ms=stamp,
            expiration_ms=expires or 0,
            correlation_id=headers.get("correlation-id"),
            jms_type=headers.get("type"),
            redelivered=redelivered,
            delivery_count=2 if redelivered else 1,
        )
    )


def _properties(headers: Mapping[str, str], retype: Retype, origin: Destination | None) -> Properties:
    found = {name: retype(name, value) for name, value in headers.items() if _is_property(name)}
    if origin is not None:
        found[ORIGINAL_DESTINATION] = str(origin)
    return Properties.trusted(found)


@lru_cache(1024)
def _is_property(name: str) -> bool:
    return name not in RESERVED and is_property_name(name) and not name.startswith(_INTERNAL)


def _destination(sent: JmsMessage) -> Destination:
    if sent.destination is None:
        raise ConfigError("the message has no destination")
    return sent.destination


def _written(value: PropertyValue) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(float(value)) if isinstance(value, float) else str(int(value))


def _are_short_and_plain(dialect: Dialect, headers: Mapping[str, str]) -> bool:
    """Whether all headers are surely valid. Escaping at most doubles printable ASCII, hence the factor 2."""
    text = "".join(headers.values())
    names = "".join(headers)
    return (
        text.isascii()
        and text.isprintable()
        and names.isascii()
        and (dialect.max_header is None or 2 * (len(text) + len(names)) <= dialect.max_header)
        and (dialect.max_headers is None or len(headers) < dialect.max_headers)
    )


def _check_headers(dialect: Dialect, headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if found := CONTROL_CHARACTERS.search(value):
            raise ConfigError(f"{name} has the control character {ord(found[0]):#04x}")
        try:
            size = len(escaped(name).encode()) + len(escaped(value).encode())
        except UnicodeEncodeError as error:
            raise ConfigError(f"{name} has half of a character, {error.object[error.start]!r}") from None
        if dialect.max_header is not None and size > dialect.max_header:
            raise ConfigError(
                f"{name}: {size:,} bytes; {dialect.provider} takes {dialect.max_header:,} in a header of STOMP"
            )
    if dialect.max_headers is not None and len(headers) >= dialect.max_headers:
        raise ConfigError(f"{len(headers):,} headers; {dialect.provider} takes {dialect.max_headers:,} in a frame")


def _number(text: str | None) -> int | None:
    return int(text) if text and len(text) < 20 and text.isdigit() and text.isascii() else None


def is_plain(body: bytes) -> bool:
    """Whether a body is UTF-8 without control characters and without characters beyond the BMP.

    One pass is fastest for a small body; a large one is searched for each special byte, and decoded in pieces that fit
    into the CPU cache."""
    try:
        if len(body) <= _PIECE:
            body.decode()
            return len(body.translate(None, _SPECIAL)) == len(body)
        if not body.isascii():
            decoder = codecs.getincrementaldecoder("utf-8")()
            view = memoryview(body)
            for start in range(0, len(body), _PIECE):
                decoder.decode(view[start : start + _PIECE])
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return not any(one in body for one in _SPECIALS)


def to_references(body: bytes) -> bytes:
    """Replace the characters beyond the BMP in an XML document (UTF-8) by character references.

    XML resolves none in comments and processing instructions, where they become U+FFFD, and in CDATA sections, which
    end before the reference and start again after it. Raises ConfigError: a name has such a character."""
    if not _BEYOND_BMP.search(body):
        return body
    return b"".join(_referenced(piece, apart) for piece, apart in _pieces(body))


def from_wire(body: bytes, *, references: bool) -> bytes:
    """Convert a received body from CESU-8 to UTF-8, and with `references` back what `to_references` did. One in another
    encoding stays: the XML parser reports it."""
    if b"\xed" in body and _SURROGATES.search(body):
        try:
            text = body.decode("utf-8", "surrogatepass")
            body = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le").encode()
        except UnicodeError:
            return body
    if references and b"#" in body and _REFERENCE.search(body):
        body = b"".join(piece if apart else _REFERENCE.sub(_character, piece) for piece, apart in _pieces(body))
    return body


def _pieces(body: bytes) -> list[tuple[bytes, bool]]:
    """Split a document; True with a CDATA section, comment or processing instruction, which have no references."""
    pieces: list[tuple[bytes, bool]] = []
    end = 0
    for found in _SET_APART.finditer(body):
        pieces += [(body[end : found.start()], False), (found[0], True)]
        end = found.end()
    return [*pieces, (body[end:], False)]


def _referenced(piece: bytes, apart: bool) -> bytes:
    if not apart:
        if _BEYOND_BMP_IN_NAME.search(piece):
            raise ConfigError("a name in the body has a character beyond U+FFFF: ActiveMQ cannot carry it as text")
        return _BEYOND_BMP.sub(_reference, piece)
    if piece.startswith(b"<![CDATA["):
        return _BEYOND_BMP.sub(lambda found: b"]]>" + _reference(found) + b"<![CDATA[", piece)
    return _BEYOND_BMP.sub("\ufffd".encode(), piece)


def _reference(found: re.Match[bytes]) -> bytes:
    return b"&#x%X;" % ord(found[0].decode())


def _character(found: re.Match[bytes]) -> bytes:
    return chr(int(found[1], 16)).encode()
