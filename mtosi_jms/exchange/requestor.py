"""The requestor: sends requests and hands out replies, one or many, to any number of threads (R3, R4, R6).

It has no thread of its own. Whoever waits for a reply receives for all: one caller at a time pumps the reply
destination and gives each reply to the exchange it belongs to. So nothing is taken from the provider before somebody
wants it, and a failure surfaces where somebody waits. For callers on event loops there is `Requestor.aio`.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from mtosi_jms.bulk import BulkReply, BulkTerms
from mtosi_jms.errors import (
    ConfigError,
    HeaderError,
    IllegalStateError,
    ReplyTimeoutError,
    ResourceLimitError,
    TransportError,
    UnknownOutcomeError,
)
from mtosi_jms.exchange._incoming import Orphans
from mtosi_jms.exchange._pattern_header import SIMPLE, batch_shape, bulk_shape, has_batches
from mtosi_jms.exchange._pending import Asked, OpenedExchange, Ticket
from mtosi_jms.exchange._receiver import ReplyPump
from mtosi_jms.exchange._result import Batches, bulk_reply, heard, only_reply
from mtosi_jms.exchange.messages import Target, moment, stamped, target_of
from mtosi_jms.jms import BindingProfile, Destination, JmsMessage
from mtosi_jms.jms.binding import DEFAULT_PROFILE, to_jms
from mtosi_jms.jms.ids import random_id
from mtosi_jms.jms.templates import HeaderForms, fits
from mtosi_jms.patterns import (
    BatchAssembler,
    BatchRules,
    Exchange,
    Limits,
    OnConflict,
    SimpleExchange,
    Strategy,
    rounded,
)
from mtosi_jms.service import CallOptions, OperationInfo, ServiceInfo
from mtosi_jms.soap import Envelope, Header, correlation_id, header_text
from mtosi_jms.spool.journal import Landing, OutgoingJournal
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType, MessageTypeType
from mtosi_jms.transport import Capability, Connection, Session, close_aside, is_open
from mtosi_jms.xmlbind import XmlObject

if TYPE_CHECKING:
    from mtosi_jms.exchange.aio._requestor import AsyncRequestor

log = logging.getLogger(__name__)

_MANY: Final = 32
"""Exchanges in flight from which on a request need not have a write of its own."""
_TICK: Final = 0.001
"""Seconds by which clocks may differ."""
_STRATEGIES = {"both": Strategy.BOTH, "xml": Strategy.XML, "jms": Strategy.MESSAGE_ID}


class _InTime:
    """Sends by a session, in so many seconds from now altogether."""

    def __init__(self, session: Session, seconds: float) -> None:
        self._session = session
        self._end = time.monotonic() + seconds

    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """See `Session.send`."""
        return self._session.send(destination, message, timeout=max(0.0, self._end - time.monotonic()))


def _is_over(since: float, seconds: float | None, error: TransportError) -> bool:
    """Whether an error came because the seconds are over, and not because something is closed."""
    if seconds is None or isinstance(error, IllegalStateError):
        return False
    return time.monotonic() - since >= seconds - _TICK


class Requestor:
    """A requestor OS on one connection; threads may share it.

    Args:
        connection: an open connection; the requestor starts it and does not close it.
        sender_uri: the OS's logical name, the header's senderURI. By R16 it also names the destination of replies.
        reply_to: name of another destination for replies, the header's replyToURI.
        failure_reply_to: name of a destination for failures, the header's failureReplytoURI (P29); consumed too.
        temporary_reply: receive replies on a temporary queue of the connection instead (R2b, R2e, C15).
        profile: the switches of the binding.
        limits: how long exchanges wait; a call may set its own time. Time counts while a caller waits.
        landing: keeps each received message durably before it is acknowledged.
        on_orphan: called with each reply that belongs to no exchange, by a thread that waits for another; once there
            were asynchronous callers, by a thread of its own.
        expect_ack: take a reply without body and batch fields for an acknowledgement, not for the answer (C61).
        persistent: whether the provider must store requests, where neither the call nor its address says; None: as the
            profile has it (O6).
        on_conflict: what a batch number that comes again with another content does, where the call does not say:
            "error" ends the iteration with a ProtocolError, "keep_first" goes on with the first one (P32).
        outbox: stores each request of a one-way operation before it is sent, PERSISTENT, and until the provider has
            confirmed it. Where there is an answer it is that which confirms, and who waits for it asks again.
        new_id: makes correlation ids.
        clock: seconds, not running backwards.

    Raises:
        ConfigError: both `reply_to` and `temporary_reply`; an `on_conflict` that there is not.
        HeaderError: no `sender_uri`.
        NamingError: a reply destination cannot be resolved.
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
        expect_ack: bool = False,
        persistent: bool | None = None,
        on_conflict: OnConflict = "error",
        outbox: OutgoingJournal | None = None,
        new_id: Callable[[], str] = random_id,
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
        self._reply_to = reply_to and connection.names.uri_of(reply_to)
        self._failure_reply_to = failure_reply_to and connection.names.uri_of(failure_reply_to)
        self._persistent = persistent
        self._rules = BatchRules(on_conflict=on_conflict, expect_ack=expect_ack)
        self._outbox = outbox
        self._forms = HeaderForms(profile)
        self._new_id = new_id
        self._clock = clock
        self._sending = threading.Lock()
        self._making = threading.Lock()
        self._aio: AsyncRequestor | None = None
        named = [] if temporary_reply else [connection.names.lookup(reply_to or sender_uri)]
        failures = [connection.names.lookup(failure_reply_to)] if failure_reply_to else []
        self._temporary: Destination | None = None
        self._session, receiving = connection.session(), connection.session()
        try:
            if temporary_reply:
                self._temporary = receiving.temporary_queue()
                named = [self._temporary]
            self._receives = [*dict.fromkeys(named + failures)]
            tells = connection.consumers(self._receives[0]) is not None
            self._consumers = connection.consumers if tells else None
            self._pump = self._make_pump(receiving, self._receives, landing, on_orphan)
            connection.start()
        except BaseException:
            self._session.close()
            receiving.close()
            raise

    def _make_pump(
        self, session: Session, destinations: list[Destination], landing: Landing | None, on_orphan: Orphans | None
    ) -> ReplyPump:
        return ReplyPump(
            session,
            destinations,
            strategy=_STRATEGIES[self.profile.correlation],
            landing=landing,
            on_orphan=on_orphan,
            clock=self._clock,
            strict=self.profile.validation == "strict",
        )

    @property
    def orphans(self) -> int:
        """How many replies belonged to no exchange."""
        return self._pump.orphans

    @property
    def pending(self) -> int:
        """How many exchanges wait for replies."""
        return self._pump.pending

    @property
    def aio(self) -> AsyncRequestor:
        """The same requestor for coroutines; blocking callers and any number of event loops may share it."""
        if self._aio is not None:
            return self._aio
        from mtosi_jms.exchange.aio._requestor import AsyncRequestor  # asyncio is not there for who does not use it

        with self._making:
            if self._aio is None:
                self._aio = AsyncRequestor(self._pump, self, self.close)
            return self._aio

    def call(
        self, service: ServiceInfo, operation: OperationInfo, destination: Any, request: XmlObject, options: CallOptions
    ) -> Any:
        """Carry out one call in the pattern SimpleResponse; see `mtosi_jms.service.Caller`.

        Raises:
            MtosiFault: the supplier answered with a fault.
            ReplyTimeoutError: no answer in time; whether the supplier got the request is unknown.
            ProtocolError: the answer is not the operation's response.
            XmlError: the answer cannot be read.
            HeaderError, NamingError, EncodeError: the request cannot be sent; nothing was.
            TransportError: the provider failed.
            IllegalStateError: the requestor is closed.
        """
        if operation.mep == "one-way":
            self.send_one_way(operation, destination, request, options)
            return None
        opened = self.open_exchange(service, operation, destination, request, SIMPLE, options)
        envelope = self._only_reply(opened)
        return heard(envelope, options, service, operation)

    def call_bulk(
        self,
        service: ServiceInfo,
        operation: OperationInfo,
        destination: Any,
        request: XmlObject,
        terms: BulkTerms,
        options: CallOptions,
    ) -> BulkReply[Any]:
        """Carry out one call in the pattern BulkResponse: one reply, the data in a file (C18). Experimental.

        Raises:
            As `call`; ConfigError for a one-way operation.
        """
        envelope = self._only_reply(
            self.open_exchange(service, operation, destination, request, bulk_shape(operation, terms), options)
        )
        return bulk_reply(envelope, heard(envelope, options, service, operation), terms)

    def _only_reply(self, opened: OpenedExchange) -> Envelope:
        """Send a request and wait for its one reply."""
        ticket = self.send_request(opened)
        try:
            envelope = self._pump.next(ticket)
        finally:
            self._pump.close_ticket(ticket)
        return only_reply(envelope, ticket)

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
        shape = batch_shape(operation, batch_size)
        ticket = self.send_request(self.open_exchange(service, operation, destination, request, shape, options))
        return Batches(self._pump, ticket, service, operation, options)

    def open_exchange(
        self,
        service: ServiceInfo,
        operation: OperationInfo,
        destination: Any,
        request: XmlObject,
        shape: Mapping[str, Any],
        options: CallOptions,
    ) -> OpenedExchange:
        """Make a request and open its exchange, without waiting for anything.

        `shape` is what the request's header says of the pattern.
        """
        now = self._clock()
        target = self._target(destination, options)
        # Where the provider's id will never be known, a peer that sends back this one instead is understood.
        own_id = None if Capability.MESSAGE_IDS in self.connection.capabilities else random_id()
        identifier = self._new_id() if options.correlation_id is None else options.correlation_id
        message = self._formed(operation, target, shape, request, identifier, own_id)
        if message is None:
            header = self._header(operation, target, shape, identifier)
            message = self._message(header, request, target.options, own_id=own_id)
            identifier = correlation_id(header) or ""
        exchange = self._exchange(identifier, now, options, simple=not has_batches(shape))
        asked = Asked(operation.name, target.destination, self._receives, self._consumers)
        ticket = self._pump.open(exchange, asked, service.root, now, own_id=own_id)
        return OpenedExchange(ticket, target.destination, message)

    def send_request(self, opened: OpenedExchange) -> Ticket:
        """Send the request of an exchange that was opened, in its time; where that fails, the exchange is closed.

        Raises:
            ReplyTimeoutError: its time is over.
            TransportError: the provider failed.
        """
        ticket = opened.ticket
        seconds = ticket.time_left(self._clock())
        since = time.monotonic()
        try:
            if seconds == 0:
                raise ticket.late("the request was not sent: others were before it")
            sent = self._send(opened.destination, opened.message, seconds)
        except BaseException as error:
            late = None
            if isinstance(error, TransportError) and _is_over(since, seconds, error):
                doubtful = isinstance(error, UnknownOutcomeError)
                became = "whether the request was sent is unknown" if doubtful else "the request was not sent"
                late = ticket.late(f"{became}: {error}")
            self._pump.close_ticket(ticket)
            if late is not None:
                raise late from error
            raise
        self._pump.sent(ticket, sent.message_id)
        return ticket

    def time_left(self, opened: OpenedExchange) -> float | None:
        """Seconds that sending the request of an exchange may take; None: any number."""
        return opened.ticket.time_left(self._clock())

    def too_late(self, opened: OpenedExchange) -> ReplyTimeoutError:
        """The error of an exchange whose time is over while its request stands in line, or is being sent."""
        return opened.ticket.late("the request stands in line, or is being sent")

    def send_request_soon(self, opened: OpenedExchange) -> bool:
        """The same without waiting for anything; False: that cannot be, nothing was sent."""
        if not self._sending.acquire(blocking=False):
            return False
        try:
            sent = self._session.send_soon(opened.destination, opened.message, can_wait=self._has_company())
        except BaseException:
            self._pump.close_ticket(opened.ticket)
            raise
        finally:
            self._sending.release()
        if sent is not None:
            self._pump.sent(opened.ticket, sent.message_id)
        return sent is not None

    def _target(self, destination: Any, options: CallOptions) -> Target:
        target = target_of(self.connection.names, destination, options)
        if self._persistent is None or target.options.persistent is not None:
            return target
        return target._replace(options=dataclasses.replace(target.options, persistent=self._persistent))

    def _exchange(self, identifier: str, now: float, options: CallOptions, *, simple: bool) -> Exchange[Any]:
        limits = self._limits(options)
        if simple:
            return SimpleExchange(identifier, started=now, limits=limits, expect_ack=self._rules.expect_ack)
        rules = dataclasses.replace(
            self._rules,
            first=self.profile.first_batch,
            strict=self.profile.validation == "strict",
            on_conflict=options.on_conflict or self._rules.on_conflict,
        )
        return BatchAssembler(identifier, started=now, limits=limits, rules=rules)

    def send_one_way(
        self, operation: OperationInfo, destination: Any, request: XmlObject, options: CallOptions
    ) -> None:
        """Send a request that nobody answers."""
        target = self._target(destination, options)
        header = self._header(operation, target, {}, target.options.correlation_id)
        message = self._message(header, request, target.options, one_way=True)
        seconds = self.seconds_of(options)
        since = time.monotonic()
        try:
            if self._outbox is None or target.destination.is_temporary:
                self._send(target.destination, message, seconds)
            else:
                self._store_and_send(self._outbox, target.destination, message, seconds)
        except TransportError as error:
            if not _is_over(since, seconds, error):
                raise
            text = f"{operation.name} to {target.destination}: not sent within {rounded(seconds or 0)} s: {error}"
            if isinstance(error, UnknownOutcomeError):
                raise UnknownOutcomeError(text, error.messages) from error
            raise (ResourceLimitError if isinstance(error, ResourceLimitError) else TransportError)(text) from error

    def _reply_name(self, target: Target) -> str | None:
        """The header's replyToURI: what the call's address says, if replies come in there, else the requestor's own."""
        name = target.reply_to
        if name is not None and self.connection.names.lookup(name) not in self._receives:
            raise ConfigError(f"the address has replies sent to {name}, where this requestor does not receive")
        return name or self._reply_to

    def _formed(
        self,
        operation: OperationInfo,
        target: Target,
        shape: Mapping[str, Any],
        request: Any,
        identifier: str,
        own_id: str | None,
    ) -> JmsMessage | None:
        """A request whose header differs from others in correlationId and time alone; None for any other."""
        options = target.options
        if shape is not SIMPLE or options.header or options.priority is not None:
            return None
        if not isinstance(request, XmlObject) or not fits(identifier):
            return None
        if self._forms.profile is not self.profile:
            self._forms = HeaderForms(self.profile)
        form = self._forms.get(
            (operation.name, operation.request_message, self.sender_uri, target.uri, self._reply_name(target)),
            lambda: self._header(operation, target, shape, identifier),
            has_reply_to=self._temporary is not None,
        )
        if form is None:
            return None
        message = form.message(
            request, identifier, moment(), names=self.connection.names, reply_to=self._temporary, correlation_id=own_id
        )
        return stamped(message, options.persistent, options.time_to_live)

    def _header(
        self, operation: OperationInfo, target: Target, shape: Mapping[str, Any], identifier: str | None
    ) -> Header:
        options = target.options
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
        if operation.mep == "one-way":  # nobody answers: no reply address, and no id to answer with (C13)
            fields |= {
                "msg_type": MessageTypeType.NOTIFICATION,
                "communication_pattern": CommunicationPatternType.Notification,
            }
        else:
            fields |= {
                "msg_type": MessageTypeType.REQUEST,
                "reply_to_uri": self._reply_name(target),
                "failure_replyto_uri": self._failure_reply_to,
                **shape,
            }
        fields.update(options.header)
        try:
            header = Header(**fields)
        except TypeError as error:
            raise ConfigError(f"header: {error}") from None
        if (said := header.destination_uri) != target.uri:
            log.warning("C53: the header's destinationURI is %s, the request goes to %s", said, target.uri)
        return header

    def _message(
        self,
        header: Header,
        request: XmlObject,
        options: CallOptions,
        *,
        own_id: str | None = None,
        one_way: bool = False,
    ) -> JmsMessage:
        message = to_jms(
            header,
            Envelope(header=header, body=request),
            self.profile,
            names=self.connection.names,
            reply_to=None if one_way else self._temporary,
            correlation_id=own_id,
            one_way=one_way,
        )
        if not one_way and header_text(header, "correlationId") is None:
            raise HeaderError("correlationId", "required: replies could not be told apart (R3b)")
        return stamped(message, options.persistent, options.time_to_live)

    def _has_company(self) -> bool:
        """Whether so many exchanges are in flight that more is about to be sent, and one write does for several."""
        return self._pump.in_flight >= _MANY

    def _send(self, target: Destination, message: JmsMessage, seconds: float | None) -> JmsMessage:
        left = self._take_turn(seconds)
        try:
            soon = self._session.send_soon(target, message, can_wait=True) if self._has_company() else None
            if soon is not None:
                return soon
            send = self._session.send
            return send(target, message) if left is None else send(target, message, timeout=left)
        finally:
            self._sending.release()

    def _store_and_send(
        self, outbox: OutgoingJournal, target: Destination, message: JmsMessage, seconds: float | None
    ) -> None:
        left = self._take_turn(seconds)
        try:
            outbox.send(self._session if left is None else _InTime(self._session, left), target, message)
        finally:
            self._sending.release()

    def _take_turn(self, seconds: float | None) -> float | None:
        """Wait until no other request is being sent; how many of the seconds are left.

        Raises:
            TransportError: they are over.
        """
        since = time.monotonic()
        if not self._sending.acquire(timeout=-1 if seconds is None else min(seconds, threading.TIMEOUT_MAX)):
            raise TransportError("another request, which came before it, is still being sent")
        return None if seconds is None else max(0.0, seconds - (time.monotonic() - since))

    def seconds_of(self, options: CallOptions) -> float | None:
        """Seconds that a whole call may take; None: any number."""
        return self._limits(options).total

    def _limits(self, options: CallOptions) -> Limits:
        changes: dict[str, Any] = {}
        if options.timeout is not None:
            changes |= {"total": options.timeout, "first_reply": options.timeout}
        if options.gap_timeout is not None:
            changes["gap"] = options.gap_timeout
        return dataclasses.replace(self.limits, **changes) if changes else self.limits

    def __del__(self) -> None:
        if is_open(getattr(self, "_session", None)):  # what receives may be in use, and ends by itself
            close_aside(self._session.close)

    def close(self) -> None:
        """Ends the sessions; callers that wait get an IllegalStateError. The connection stays open."""
        self._pump.close()
        self._session.close()
        with self._making:
            if self._aio is not None:
                self._aio.stop_sending()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
