"""Helpers of requestor, supplier and publisher for single messages: they complete requests and read replies."""

from __future__ import annotations

import dataclasses
import datetime as dt
import logging
import math
import re
import time
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple

from mtosi_jms.binding.mapping import from_jms, judge_body
from mtosi_jms.binding.profile import BodyCheck
from mtosi_jms.binding.table2 import ROWS
from mtosi_jms.errors import DecodeError, MtosiError
from mtosi_jms.jms import DUPLICATE_ID, RUN_ID, DeliveryMode, Destination, JmsMessage, JmsUri, NamingContext, is_jms_uri
from mtosi_jms.jms.ids import random_id
from mtosi_jms.patterns import Place, Reply, ReplyType, read_place
from mtosi_jms.service import CallOptions
from mtosi_jms.soap import Envelope, Header, correlation_id, header_text, header_texts, parse
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType
from mtosi_jms.telemetry import of_message
from mtosi_jms.xmlbind import XmlWarning

__all__ = ["Target", "in_package", "moment", "read_reply", "stamped", "target_of", "warn", "whole_number"]

log = logging.getLogger(__package__)

_PLACED: Final = Place.FIELDS[:2]
_PROPERTIES: Final = {
    name: row.name for row in ROWS if row.name in Place.FIELDS for name in (row.property, row.property.casefold())
}
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_PATTERN: Final = "MTOSI_communicationPattern"
_TOO_LARGE: Final = 2**32
_NOWHERE: Final = Place(None, None)
_BODY: Final = re.compile(rb"<(?:[\w.-]+:)?Body[\s/>]")


class Target(NamedTuple):
    """Where a call goes, with the header's destinationURI, and its options, completed from its address. `reply_to`: the
    name that the address gives for replies."""

    destination: Destination
    uri: str
    options: CallOptions
    reply_to: str | None = None


def target_of(names: NamingContext, address: str | Destination, options: CallOptions) -> Target:
    """Return the target of a call. Its address is a name, a destination, or a JMS URI with parameters. Raises
    NamingError: the address cannot be resolved, or has a wrong parameter."""
    destination, uri = names.lookup(address), names.uri_of(address)
    if not isinstance(address, str) or uri == address or not is_jms_uri(address):
        return Target(destination, uri, options)
    parsed = JmsUri.parse(address)
    changes: dict[str, Any] = {}
    if options.priority is None:
        changes["priority"] = parsed.priority
    if options.time_to_live is None and parsed.time_to_live_ms is not None:
        changes["time_to_live"] = parsed.time_to_live_ms / 1000
    if options.persistent is None and parsed.delivery_mode is not None:
        changes["persistent"] = parsed.delivery_mode is DeliveryMode.PERSISTENT
    return Target(destination, uri, dataclasses.replace(options, **changes), parsed.reply_to)


def moment() -> dt.datetime:
    """Return the present time for a header, in whole seconds."""
    return dt.datetime.fromtimestamp(int(time.time()), dt.UTC)


def stamped(
    message: JmsMessage, persistent: bool | None, time_to_live: float | None, wanted: float | None = None
) -> JmsMessage:
    """Return a message with the delivery mode and the time to live (seconds) of one call; None keeps the profile's. A
    PERSISTENT one gets a duplicate id.

    `wanted`: seconds after which nobody wants the message any more: without `time_to_live` it lives no longer."""
    changes: dict[str, Any] = {}
    if persistent is not None:
        changes["delivery_mode"] = DeliveryMode.PERSISTENT if persistent else DeliveryMode.NON_PERSISTENT
    if time_to_live is not None:
        # Round up, as 0 means that the message never expires. Decimal, because 16.1 * 1000 is more than 16100.
        changes["time_to_live_ms"] = math.ceil(Decimal(repr(time_to_live)) * 1000)
    if changes.get("delivery_mode", message.delivery_mode) is DeliveryMode.PERSISTENT:
        changes["properties"] = {**message.properties, DUPLICATE_ID: random_id()}
    made = dataclasses.replace(message, **changes) if changes else message
    if wanted is not None and time_to_live is None:
        made.shorten_life(wanted)
    return made


def read_reply(
    message: JmsMessage,
    *,
    strict: bool = False,
    package: str | None = None,
    check: BodyCheck | None = None,
    vendors: str = "",
) -> Reply[Any]:
    """Return the reply in a message, as correlation and the patterns need it, with the envelope as payload. If it
    cannot be read, the error is the payload of a reply of type ERROR, to be matched by JMSCorrelationID.

    `package`: generated package whose classes come before those of all others. `vendors`: the profile's `header`."""
    try:
        envelope = from_jms(message, strict=strict, package=package, header=vendors)
    except MtosiError as error:
        text = "a reply that cannot be read, message %s, JMSCorrelationID %s: %s: %s"
        ids = message.message_id, message.correlation_id
        log.warning(text, *ids, type(error).__name__, error, extra=of_message(message))
        return Reply(payload=error, jms_correlation_id=message.correlation_id, message_type=ReplyType.ERROR)
    header = envelope.header
    try:
        judge_body(check, message, envelope)
    except DecodeError as error:
        return Reply(
            payload=error,
            correlation_id=correlation_id(header),
            jms_correlation_id=message.correlation_id,
            message_type=ReplyType.ERROR,
        )
    kind = header_text(header, "msgType") if header is not None else None
    failed = envelope.fault is not None or kind == "ERROR"
    if kind in ("REQUEST", "NOTIFICATION"):
        warn(envelope, "R13a", f"msgType is {kind}: read as an answer")
    place, wire = _place_of(message, envelope), envelope.origin.wire if envelope.origin is not None else b""
    return Reply(
        payload=envelope,
        correlation_id=correlation_id(header),
        jms_correlation_id=message.correlation_id,
        message_type=ReplyType.ERROR if failed else ReplyType.RESPONSE,
        batch_number=place.number,
        end_of_reply=place.end,
        contradiction=place.contradiction,
        body_digest=b"" if place.number is None else _body_digest(wire),  # only batches are compared
        has_body=envelope.body is not None or envelope.fault is not None,
        by_iterator=header is not None and header_text(header, "iteratorReferenceURI") is not None,
        run=run if isinstance(run := message.properties.get(RUN_ID), str) else "",
    )


def _place_of(message: JmsMessage, envelope: Envelope) -> Place:
    """Return what header and properties say of a reply's place. The header gets it all, so that hooks and the gateway
    know it."""
    header = envelope.header
    if header is not None and (plain := _plain_place(message.properties, header)) is not None:
        return plain
    said = header_texts(header, Place.FIELDS) if header is not None else {}
    mapped = _mapped(message)
    place = read_place(said, *mapped)
    added = [name for name in _PLACED if name in mapped[0] and name not in said]
    if added and place.number is not None and not place.contradiction:
        header = envelope.header = header if header is not None else Header()
        header.batch_sequence_number, header.batch_sequence_end_of_reply = place.number, place.end
        warn(envelope, "R5a", f"{' and '.join(added)}: only the properties have it")
    return place


def _plain_place(properties: Mapping[str, object], header: Header) -> Place | None:
    """Return the place if header and properties say the same in the usual way, else None: a tenth of the full time."""
    if header.extras is not None:
        return None
    number, end = header.batch_sequence_number, header.batch_sequence_end_of_reply
    if number is None and end is None:
        is_simple = header.communication_pattern is CommunicationPatternType.SimpleResponse
        is_said = is_simple and properties.get(_PATTERN) == "SimpleResponse"
        return _NOWHERE if is_said and not _batch_fields(*properties) else None
    said = properties.get("MTOSI_batchSequenceNumber"), properties.get("MTOSI_batchSequenceEndOfReply")
    if type(number) is int and type(end) is bool and _batch_fields(*properties) == 2:
        same = type(said[0]) is int and said[0] == number and said[1] is end
        return Place(number, end) if same and 0 <= number < _TOO_LARGE else None
    return None


@lru_cache(16)  # a peer sends the same names again and again
def _batch_fields(*names: str) -> int:
    return "".join(names).casefold().count("batchsequence")


def _mapped(message: JmsMessage) -> list[dict[str, object]]:
    """Return the fields of `Place` that a message has as properties; letter case does not count (C06). Where two
    spellings of a name disagree, the second one stands in a further dictionary."""
    first: dict[str, object] = {}
    others: list[dict[str, object]] = []
    for name, value in message.properties.items():
        field = _PROPERTIES.get(name) or _PROPERTIES.get(name.casefold())
        if field is not None and first.setdefault(field, value) != value:
            others.append({field: value})
    return [first, *others]


def whole_number(value: object) -> int | None:
    """Return a number from a received header; None if it is absent, nil or not a number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _body_digest(document: bytes) -> bytes:
    """Return a digest of the SOAP body only, because a repeated answer has another time in its header. It is the
    interpreter's keyed hash: five times as fast as others, and valid in this process alone."""
    if document[:2] in _UTF16:
        document = document.decode("utf-16", "replace").encode()
    body = _BODY.search(document)
    return hash(memoryview(document)[body.start() if body else 0 :]).to_bytes(8, "little", signed=True)


def in_package(envelope: Envelope, package: str) -> Envelope:
    """Return an envelope whose body or fault is of the classes of a package.

    Several packages may know the same elements, such as the SDK's stubs and those of a vendor's release. What was read
    with one before the service was known is read again; a service without classes takes it as it is."""
    seen = envelope.fault if envelope.fault is not None else envelope.body
    if not package or type(seen).__module__.startswith(f"{package}."):
        return envelope
    vendors = envelope.origin.vendors if envelope.origin is not None else ""
    again = parse(envelope.to_bytes(), package=package, header=vendors)
    again.warnings = envelope.warnings
    return again


def warn(payload: Any, rule: str, reason: str) -> None:
    """Add a breach of a rule to the warnings of an envelope. Do nothing for any other payload."""
    if isinstance(payload, Envelope):
        payload.warnings.append(XmlWarning(rule, reason))
