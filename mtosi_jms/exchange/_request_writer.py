"""The request writer: makes requests and sends them, for threads and for event loops (R3, R6, R16, C13, C15)."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import HeaderTemplates, to_jms
from mtosi_jms.binding.soap_jms import as_request, chooses
from mtosi_jms.bulk import BulkTerms
from mtosi_jms.errors import ConfigError, HeaderError, TransportError, UnknownOutcomeError
from mtosi_jms.exchange._pending import PendingExchange, PreparedRequest, RequestInfo
from mtosi_jms.exchange._receiver import Receiver
from mtosi_jms.exchange.messages import Target, moment, stamped, target_of
from mtosi_jms.exchange.sending import TimedSender, unanswered
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.jms.ids import random_id
from mtosi_jms.namespaces import split_clark
from mtosi_jms.patterns import BatchAssembler, BatchRules, Exchange, SimpleExchange, Timeouts
from mtosi_jms.service import Call, CallOptions, OperationInfo
from mtosi_jms.soap import Envelope, Header, as_dialect, header_text, stubs_header, tag_of
from mtosi_jms.spool import OutgoingJournal
from mtosi_jms.stubs.fmw.hdr import (
    CommunicationPatternType,
    CommunicationStyleType,
    CompressionEnumType,
    CompressionTypeType,
    MessageTypeType,
    PackingEnumType,
    PackingTypeType,
)
from mtosi_jms.transport import Capability, Connection, Session

log = logging.getLogger(__package__)

_CLOCKS: Final = 0.25
"""Seconds that a request lives longer than its caller waits, because a provider's clock may be ahead."""
_MANY: Final = 32
"""If at least so many exchanges are in flight, a request may share a write with later messages."""


SIMPLE: Final[Mapping[str, object]] = {"communication_pattern": CommunicationPatternType.SimpleResponse}
"""The header fields of a request for one response (P2, O8)."""


def batch_pattern(operation: OperationInfo, batch_size: int) -> Mapping[str, object]:
    """Return the fields for several responses (MultipleBatchResponse). Raises ConfigError: the operation is one-way."""
    if operation.mep == "one-way":
        raise ConfigError(f"{operation.name} is one-way: it has no batches")
    pattern = CommunicationPatternType.MultipleBatchResponse
    return {"communication_pattern": pattern, "requested_batch_size": batch_size}


def bulk_pattern(operation: OperationInfo, terms: BulkTerms) -> Mapping[str, object]:
    """Return the fields for one response with the data in a file (BulkResponse). Raises ConfigError: it is one-way."""
    if operation.mep == "one-way":
        raise ConfigError(f"{operation.name} is one-way: it has no bulk response")
    return {
        "communication_pattern": CommunicationPatternType.BulkResponse,
        "requested_batch_size": terms.batch_size,
        "file_location_uri": terms.file_location_uri,
        "compression_type": CompressionTypeType(value=CompressionEnumType(terms.compression)),
        "packing_type": PackingTypeType(value=PackingEnumType(terms.packing)),
    }


def has_batches(pattern: Mapping[str, object]) -> bool:
    return pattern["communication_pattern"] is CommunicationPatternType.MultipleBatchResponse


@dataclass(kw_only=True, eq=False, repr=False)
class RequestWriter:
    """Makes the requests of one requestor, opens their exchanges at the receiver, and sends them one at a time."""

    connection: Connection
    session: Session
    receiver: Receiver
    replies: list[Destination]
    temporary: Destination | None
    sender_uri: str
    reply_to_uri: str | None
    failure_reply_to_uri: str | None
    profile: BindingProfile
    timeouts: Timeouts
    rules: BatchRules
    persistent: bool | None
    outbox: OutgoingJournal | None
    new_id: Callable[[], str]
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        connection = self.connection
        self._names = connection.names
        self._templates = HeaderTemplates(self.profile)
        self._telemetry = connection.telemetry
        self._has_message_ids = Capability.MESSAGE_IDS in connection.capabilities
        self._consumers = connection.consumers if connection.consumers(self.replies[0]) is not None else None
        self._sending = threading.Lock()

    def prepare(self, call: Call, pattern: Mapping[str, object], *, of_iterator: bool = False) -> PreparedRequest:
        """Make a request and open its exchange, without waiting. `of_iterator`: the one reply may say that there are
        more. Raises ConfigError: the request is not one of the operation."""
        call.check()
        now = self.clock()
        target = self._target(call)
        # If the provider's message id will never be known, the peer may return this id as JMSCorrelationID instead.
        own_id = None if self._has_message_ids else random_id()
        options = target.options
        identifier = self.new_id() if options.correlation_id is None else options.correlation_id
        timeouts, simple = self._timeouts_of(options), not has_batches(pattern)
        wanted, soap_jms = _patience(timeouts, simple=simple), chooses(self.profile, call.service.transport)
        key = _key(call, target) if pattern is SIMPLE and not soap_jms else None
        message = self._again(key, call, target, identifier, own_id, wanted) if key is not None else None
        if message is None:
            header = self._header(call, target, pattern, identifier)
            header, message = self._message(header, call, target, own_id=own_id, wanted=wanted, key=key)
            identifier = str(header.correlation_id)
        exchange = self._exchange(identifier, now, target, timeouts, simple=simple, of_iterator=of_iterator)
        request = RequestInfo(call.operation.name, target.destination, self.replies, self._consumers, soap_jms)
        pending = self.receiver.open(exchange, request, call.service.root, now, own_id=own_id)
        if self._telemetry is not None:
            name, identifier = call.operation.name, pending.correlation_id
            pending.publication = self._telemetry.publish(message, target.destination, name, identifier, call=True)
            message = pending.publication.message
        return PreparedRequest(pending, target.destination, message)

    def send(self, prepared: PreparedRequest) -> PendingExchange:
        """Send a request; on failure the exchange is closed. Raises ReplyTimeoutError: its time is over;
        TransportError."""
        pending = prepared.pending
        sender = TimedSender(self.session, self._sending, pending.time_left(self.clock()))
        try:
            if sender.seconds == 0:
                raise pending.late("the request was not sent: others were before it")
            with sender:
                sent = self._send(sender, prepared.destination, self._in_time(prepared))
        except BaseException as error:
            late = None
            if isinstance(error, TransportError) and sender.is_over():
                doubtful = isinstance(error, UnknownOutcomeError)
                became = "whether the request was sent is unknown" if doubtful else "the request was not sent"
                late = pending.late(f"{became}: {error}")
            self._not_sent(pending, late or error)
            if late is not None:
                raise late from error
            raise
        self.receiver.sent(pending, sent.message_id)
        return pending

    def _in_time(self, prepared: PreparedRequest) -> JmsMessage:
        """Return the message, to live no longer than its caller still waits: others may have been sent before it."""
        message, total = prepared.message, prepared.pending.state.timeouts.total
        if total is None or not 0 < message.time_to_live_ms <= (total + _CLOCKS) * 1000 + 1:
            return message  # the call says how long it lives
        left = prepared.pending.time_left(self.clock())
        if left is not None:
            message.shorten_life(left + _CLOCKS)
        return message

    def send_soon(self, prepared: PreparedRequest) -> bool:
        """Send a request without waiting for anything. False if that is not possible: then nothing was sent."""
        if not self._sending.acquire(blocking=False):
            return False
        try:
            sent = self.session.send_soon(prepared.destination, prepared.message, can_wait=self._has_company())
        except BaseException as error:
            self._not_sent(prepared.pending, error)
            raise
        finally:
            self._sending.release()
        if sent is not None:
            self.receiver.sent(prepared.pending, sent.message_id)
        return sent is not None

    def _not_sent(self, pending: PendingExchange, error: BaseException) -> None:
        pending.report(type(error).__name__, self.clock(), error)
        self.receiver.close_exchange(pending)

    def send_one_way(self, call: Call) -> None:
        """Send a request that nobody answers. Raises ConfigError: it is not one of the operation; TransportError: the
        provider failed, or the time is over."""
        call.check()
        operation, target = call.operation, self._target(call)
        options = target.options
        header = self._header(call, target, {}, options.correlation_id)
        _, message = self._message(header, call, target, one_way=True)
        sender = TimedSender(self.session, self._sending, self.seconds_of(options))
        asked, identifier = (operation.name, target.destination), options.correlation_id or ""
        with unanswered(log, self._telemetry, *asked, message, identifier) as publication:
            with sender.in_time(f"{operation.name} to {target.destination}"):
                if self.outbox is None or target.destination.is_temporary:
                    sent = self._send(sender, target.destination, publication.message)
                else:
                    sent = self.outbox.send(sender, target.destination, publication.message)
            publication.sent(sent.message_id)

    def seconds_of(self, options: CallOptions) -> float | None:
        return self._timeouts_of(options).total

    def _timeouts_of(self, options: CallOptions) -> Timeouts:
        changes: dict[str, Any] = {}
        if options.timeout is not None:
            changes |= {"total": options.timeout, "first_reply": options.timeout}
        if options.gap_timeout is not None:
            changes["gap"] = options.gap_timeout
        return dataclasses.replace(self.timeouts, **changes) if changes else self.timeouts

    def _target(self, call: Call) -> Target:
        """Return where a call goes, with the options of the call, else of its address, the requestor and the WSDL."""
        target = target_of(self._names, call.destination, call.options)
        settings = dict(call.service.delivery)
        if self.persistent is not None:
            settings["persistent"] = self.persistent
        unset = {name: value for name, value in settings.items() if getattr(target.options, name) is None}
        return target._replace(options=dataclasses.replace(target.options, **unset)) if unset else target

    def _exchange(
        self, identifier: str, now: float, target: Target, timeouts: Timeouts, *, simple: bool, of_iterator: bool
    ) -> Exchange[Any]:
        if simple:
            acknowledged = self.rules.expect_ack
            return SimpleExchange(
                identifier, started=now, timeouts=timeouts, expect_ack=acknowledged, of_iterator=of_iterator
            )
        rules = dataclasses.replace(
            self.rules,
            first=self.profile.first_batch,
            strict=self.profile.validation == "strict",
            on_conflict=target.options.on_conflict or self.rules.on_conflict,
        )
        return BatchAssembler(
            identifier,
            started=now,
            timeouts=timeouts,
            rules=rules,
            supplier=str(target.destination),
            from_zero=self.receiver.from_zero,
        )

    def _reply_name(self, target: Target) -> str | None:
        """Return the header's replyToURI: that of the call's address, else the requestor's. Raises ConfigError: this
        requestor does not receive there."""
        name = target.reply_to
        if name is not None and self._names.lookup(name) not in self.replies:
            raise ConfigError(f"the address has replies sent to {name}, where this requestor does not receive")
        return name or self.reply_to_uri

    def _header(self, call: Call, target: Target, pattern: Mapping[str, object], identifier: str | None) -> Header:
        operation, options = call.operation, target.options
        fields: dict[str, Any] = {
            "activity_name": operation.name,
            "msg_name": operation.request_message or f"{operation.name}Request",
            "sender_uri": self.sender_uri,
            "destination_uri": target.uri,
            "priority": None if options.priority is None else str(options.priority),
            "communication_style": CommunicationStyleType.MSG,
            "correlation_id": identifier,
            "timestamp": moment(),
        }
        if operation.mep == "one-way":  # nobody answers, so there is no reply address (C13)
            fields |= {
                "msg_type": MessageTypeType.NOTIFICATION,
                "communication_pattern": CommunicationPatternType.Notification,
            }
        else:
            fields |= {
                "msg_type": MessageTypeType.REQUEST,
                "reply_to_uri": self._reply_name(target),
                "failure_replyto_uri": self.failure_reply_to_uri,
                **pattern,
            }
        fields.update(options.header)
        try:
            namespace = split_clark(tag_of(call.request))[0]
            cls = stubs_header(call.service.root, namespace, self.profile.header)
            # The requestor's own objects, such as those of BulkResponse, are of 2.x. A caller's may be of any dialect.
            header = cls(**fields) if cls is Header and not options.header else as_dialect(cls, fields)
        except TypeError as error:
            raise ConfigError(f"header: {error}") from None
        if (uri := header.destination_uri) != target.uri:
            log.warning("C53: the header's destinationURI is %s, the request goes to %s", uri, target.uri)
        return header

    def _again(
        self,
        key: tuple[object, ...],
        call: Call,
        target: Target,
        identifier: str,
        own_id: str | None,
        wanted: float | None,
    ) -> JmsMessage | None:
        message = self._templates.again(
            key,
            call.request,
            identifier,
            moment(),
            names=self._names,
            reply_to=self.temporary,
            correlation_id=own_id,
        )
        options = target.options
        return message and stamped(message, options.persistent, options.time_to_live, wanted)

    def _message(
        self,
        header: Header,
        call: Call,
        target: Target,
        *,
        own_id: str | None = None,
        one_way: bool = False,
        wanted: float | None = None,
        key: tuple[object, ...] | None = None,
    ) -> tuple[Header, JmsMessage]:
        """Return the message of a request, and its header after the `on_request` hook. `wanted`: seconds until nobody
        waits for the answer any more."""
        names, options, version, body = self._names, target.options, call.service.soap_version, call.request
        envelope = Envelope(header=header, body=body, version=version)
        if options.on_request is not None:
            envelope = options.on_request(envelope)
            header, body, version = _header_in(envelope), envelope.body, envelope.version
        if one_way or not envelope.is_bare:
            reply_to = None if one_way else self.temporary
            message = to_jms(
                header, envelope, self.profile, names=names, reply_to=reply_to, correlation_id=own_id, one_way=one_way
            )
        else:
            message = self._templates.to_jms(
                header, body, version, names=names, reply_to=self.temporary, correlation_id=own_id, key=key
            )
        if chooses(self.profile, call.service.transport):
            address, action = call.destination, call.operation.soap_action
            message = as_request(message, address, target.destination, action=action, version=version)
        if not one_way and header_text(header, "correlationId") is None:
            raise HeaderError("correlationId", "required: replies could not be told apart (R3b)")
        return header, stamped(message, options.persistent, options.time_to_live, wanted)

    def _has_company(self) -> bool:
        """Whether so many exchanges are in flight that more messages will follow soon and can share one write."""
        return self.receiver.in_flight >= _MANY

    def _send(self, sender: TimedSender, target: Destination, message: JmsMessage) -> JmsMessage:
        soon = self.session.send_soon(target, message, can_wait=True) if self._has_company() else None
        return sender.send(target, message) if soon is None else soon


def _key(call: Call, target: Target) -> tuple[object, ...] | None:
    """Return all that the header of a SimpleResponse request depends on, but for correlationId and timestamp; None: it
    has the caller's own fields."""
    options, operation = target.options, call.operation
    if options.header or options.on_request is not None:
        return None
    service = call.service.root, call.service.soap_version
    names = operation.name, operation.request_message, target.uri, target.reply_to
    return *service, *names, type(call.request), options.priority


def _patience(timeouts: Timeouts, *, simple: bool) -> float | None:
    """Return the seconds for which a request may be wanted: while its caller waits for the answer; None: no limit.

    Nobody waits while batches are not asked for: only the limit of the whole exchange counts for them.
    """
    total, first = timeouts.total, timeouts.first_reply if simple else None
    if total is None or first is None:
        left = first if total is None else total
        return None if left is None else left + _CLOCKS
    return min(total, first) + _CLOCKS


def _header_in(envelope: object) -> Header:
    """Return the header of the envelope that a call's `on_request` hook returned. Raises ConfigError: the hook did not
    return an envelope with a header."""
    header = envelope.header if isinstance(envelope, Envelope) else None
    if header is None:
        what = "an envelope without a header" if isinstance(envelope, Envelope) else type(envelope).__name__
        raise ConfigError(f"on_request: return the envelope to send, not {what}")
    return header
