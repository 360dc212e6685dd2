"""The requestor: sends requests and hands out replies, one or many, to any number of threads (R3, R4, R6).

It has no thread of its own. Whoever waits for a reply receives for all: one caller at a time pumps the reply
destination and gives each reply to the exchange it belongs to. So nothing is taken from the provider before somebody
wants it, and a failure surfaces where somebody waits.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

from mtosi_jms.errors import ConfigError, HeaderError, ProtocolError
from mtosi_jms.jms import BindingProfile, DeliveryMode, Destination, JmsMessage
from mtosi_jms.jms.binding import DEFAULT_PROFILE, to_jms
from mtosi_jms.patterns import BatchAssembler, BatchRules, Limits, PendingExchanges, SimpleExchange
from mtosi_jms.replies import Landing, Orphans, ReplyPump, Ticket
from mtosi_jms.service import CallOptions, OperationInfo, ServiceInfo
from mtosi_jms.soap import Envelope, Header, parse
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType, MessageTypeType
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import XmlObject

log = logging.getLogger(__name__)

DUPLICATE_ID = "MTOSIX_messageId"
"""Property by which a resent PERSISTENT message can be told from a new one; ours, in no MTOSI header."""


class Requestor:
    """A requestor OS on one connection; threads may share it.

    Args:
        connection: an open connection; the requestor starts it and does not close it.
        sender_uri: the OS's logical name, the header's senderURI. By R16 it also names the destination of replies.
        reply_to: name of another destination for replies, the header's replyToURI.
        failure_reply_to: name of a destination for failures, the header's failureReplytoURI (P29); consumed too.
        temporary_reply: receive replies on a temporary queue of the connection instead (R2b, R2e, C15).
        profile: the switches of the binding.
        limits: how long exchanges wait; a call may set its own time.
        landing: keeps each received message durably before it is acknowledged.
        on_orphan: called with each reply that belongs to no exchange.
        new_id: makes correlation ids.
        clock: seconds, not running backwards.

    Raises:
        NamingError: the reply destination cannot be resolved.
        TransportError: the provider failed.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        sender_uri: str,
        reply_to: str | None = None,
        failure_reply_to: str | None = None,
        temporary_reply: bool = False,
        profile: BindingProfile = DEFAULT_PROFILE,
        limits: Limits | None = None,
        landing: Landing | None = None,
        on_orphan: Orphans | None = None,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not sender_uri.strip():
            raise HeaderError("senderURI", "a requestor needs a logical name")
        if temporary_reply and reply_to:
            raise ConfigError("give reply_to or temporary_reply, not both")
        self.connection = connection
        self.sender_uri = sender_uri
        self.profile = profile
        self.limits = limits or Limits()
        self._reply_to = reply_to
        self._failure_reply_to = failure_reply_to
        self._new_id = new_id
        self._clock = clock
        self._sending = threading.Lock()
        self._session = connection.session()
        receiving = connection.session()
        destinations = self._destinations(receiving.temporary_queue if temporary_reply else None)
        self._reply_destination: Destination | None = destinations[0] if temporary_reply else None
        pending: PendingExchanges[Ticket, Any] = PendingExchanges(_strategy(profile), on_orphan=on_orphan)
        strict = profile.validation == "strict"
        self._pump = ReplyPump(receiving, destinations, pending, landing=landing, clock=clock, strict=strict)
        connection.start()

    def _destinations(self, temporary: Callable[[], Destination] | None) -> list[Destination]:
        names = self.connection.names
        first = temporary() if temporary else names.lookup(self._reply_to or self.sender_uri)
        others = [names.lookup(self._failure_reply_to)] if self._failure_reply_to else []
        return [first, *(other for other in others if other != first)]

    @property
    def orphans(self) -> int:
        """How many replies belonged to no exchange."""
        return self._pump.orphans

    def call(
        self, service: ServiceInfo, operation: OperationInfo, destination: Any, request: XmlObject, options: CallOptions
    ) -> Any:
        """Carry out one call in the pattern SimpleResponse; see `mtosi_jms.service.Caller`.

        Raises:
            MtosiFault: the supplier answered with a fault.
            ReplyTimeoutError: no answer in time; whether the supplier got the request is unknown.
            HeaderError, NamingError, EncodeError: the request cannot be sent; nothing was.
            TransportError: the provider failed.
        """
        if operation.mep == "one-way":
            self._send_one_way(operation, destination, request, options)
            return None
        with self._exchange(service, operation, destination, request, None, options) as ticket:
            for envelope in ticket.replies(self._pump):
                return _body(envelope, service, operation)
        raise ProtocolError("the exchange ended without an answer", ticket.correlation_id)

    def call_batches(
        self,
        service: ServiceInfo,
        operation: OperationInfo,
        destination: Any,
        request: XmlObject,
        batch_size: int,
        options: CallOptions,
    ) -> Batches:
        """Carry out one call in the pattern MultipleBatchResponse; the request is sent before this returns.

        Raises:
            HeaderError, NamingError, EncodeError: the request cannot be sent; nothing was.
            TransportError: the provider failed.
        """
        if operation.mep == "one-way":
            raise ConfigError(f"{operation.name} is one-way: it has no batches")
        ticket = self._exchange(service, operation, destination, request, batch_size, options)
        return Batches(ticket, self._pump, service, operation)

    def _exchange(
        self,
        service: ServiceInfo,
        operation: OperationInfo,
        destination: Any,
        request: XmlObject,
        batch_size: int | None,
        options: CallOptions,
    ) -> Ticket:
        """Send a request whose replies will be waited for."""
        header = self._header(operation, destination, batch_size, options)
        message = self._message(header, request, options)
        correlation_id = str(header.correlation_id)
        limits = self._limits(options)
        now = self._clock()
        rules = BatchRules(first=self.profile.first_batch, strict=self.profile.validation == "strict")
        exchange: Any = (
            SimpleExchange(correlation_id, started=now, limits=limits)
            if batch_size is None
            else BatchAssembler(correlation_id, started=now, limits=limits, rules=rules)
        )
        ticket = Ticket(exchange, self._pump, service.root)
        self._pump.open(ticket)
        try:
            sent = self._send(destination, message)
        except BaseException:
            self._pump.close_ticket(ticket)
            raise
        self._pump.sent(ticket, sent.message_id)
        return ticket

    def _send_one_way(
        self, operation: OperationInfo, destination: Any, request: XmlObject, options: CallOptions
    ) -> None:
        header = self._header(operation, destination, None, options)
        header.communication_pattern = CommunicationPatternType.Notification
        header.msg_type = MessageTypeType.NOTIFICATION
        self._send(destination, self._message(header, request, options, one_way=True))

    def _header(
        self, operation: OperationInfo, destination: Any, batch_size: int | None, options: CallOptions
    ) -> Header:
        pattern = CommunicationPatternType.SimpleResponse
        if batch_size is not None:
            pattern = CommunicationPatternType.MultipleBatchResponse
        fields: dict[str, Any] = {
            "activity_name": operation.name,
            "msg_name": operation.request_message or f"{operation.name}Request",
            "msg_type": MessageTypeType.REQUEST,
            "sender_uri": self.sender_uri,
            "destination_uri": str(destination),
            "reply_to_uri": self._reply_to,
            "failure_replyto_uri": self._failure_reply_to,
            "correlation_id": options.correlation_id or self._new_id(),
            "priority": None if options.priority is None else str(options.priority),
            "communication_pattern": pattern,
            "communication_style": CommunicationStyleType.MSG,
            "requested_batch_size": batch_size,
            "timestamp": dt.datetime.now(dt.UTC).replace(microsecond=0),
        }
        try:
            return Header(**{**fields, **options.header})
        except TypeError as error:
            raise ConfigError(f"header: {error}") from None

    def _message(
        self, header: Header, request: XmlObject, options: CallOptions, *, one_way: bool = False
    ) -> JmsMessage:
        message = to_jms(
            header,
            Envelope(header=header, body=request),
            self.profile,
            names=self.connection.names,
            reply_to=self._reply_destination,
            one_way=one_way,
        )
        return stamped(message, options.persistent, options.time_to_live)

    def _send(self, destination: Any, message: JmsMessage) -> JmsMessage:
        target = self.connection.names.lookup(destination)
        with self._sending:
            return self._session.send(target, message)

    def _limits(self, options: CallOptions) -> Limits:
        changes: dict[str, Any] = {}
        if options.timeout is not None:
            changes |= {"total": options.timeout, "first_reply": options.timeout}
        if options.gap_timeout is not None:
            changes["gap"] = options.gap_timeout
        return dataclasses.replace(self.limits, **changes)

    def close(self) -> None:
        """Ends the sessions; callers that wait get a TransportError. The connection stays open."""
        self._pump.close()
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Batches(Iterator[Any]):
    """The responses of one MultipleBatchResponse call: in order, each once, as soon as order allows.

    Iteration raises, when the turn of the fault has come, `MtosiFault` (C59), `IncompleteBatchError` with the missing
    numbers (P32), `ReplyTimeoutError`, or the `XmlError` of a reply that cannot be read.

    Attributes:
        correlation_id: the request's correlationId.
    """

    def __init__(self, ticket: Ticket, pump: ReplyPump, service: ServiceInfo, operation: OperationInfo) -> None:
        self.correlation_id = ticket.correlation_id
        self._ticket = ticket
        self._replies = ticket.replies(pump)
        self._service = service
        self._operation = operation

    def __next__(self) -> Any:
        try:
            return _body(next(self._replies), self._service, self._operation)
        except BaseException:
            self.close()
            raise

    @property
    def counts(self) -> Any:
        """What came so far: replies, released, duplicates, conflicts, strays."""
        exchange: Any = self._ticket.exchange
        return exchange.counts

    def close(self) -> None:
        """Give up what has not come; its replies will be orphans."""
        self._ticket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def stamped(message: JmsMessage, persistent: bool | None, time_to_live: float | None) -> JmsMessage:
    """A message with its delivery mode and life time as one call wants them.

    Args:
        message: as the binding made it.
        persistent: whether the provider must store it; None leaves the profile's mode.
        time_to_live: seconds, None leaves the profile's.
    """
    changes: dict[str, Any] = {}
    if persistent is not None:
        changes["delivery_mode"] = DeliveryMode.PERSISTENT if persistent else DeliveryMode.NON_PERSISTENT
    if time_to_live is not None:
        changes["time_to_live_ms"] = int(time_to_live * 1000)
    if changes.get("delivery_mode", message.delivery_mode) is DeliveryMode.PERSISTENT:
        changes["properties"] = {**message.properties, DUPLICATE_ID: str(uuid.uuid4())}
    return dataclasses.replace(message, **changes) if changes else message


def _strategy(profile: BindingProfile) -> str:
    return {"jms": "message-id"}.get(profile.correlation, profile.correlation)


def _body(envelope: Envelope, service: ServiceInfo, operation: OperationInfo) -> Any:
    """The response object of an envelope.

    Raises:
        ProtocolError: the body is not the operation's response.
    """
    expected = service.load(operation.response)
    body = envelope.body
    if not isinstance(body, expected) and getattr(type(body), "__xml__", expected.__xml__).tag == expected.__xml__.tag:
        body = parse(envelope.to_bytes(), package=service.root).body  # read with another package's classes
    if isinstance(body, expected):
        return body
    got = type(envelope.body).__name__ if envelope.body is not None else "an empty body"
    header = envelope.header
    raise ProtocolError(
        f"{operation.name}: {expected.__name__} was expected, {got} came", str(header.correlation_id if header else "")
    )
