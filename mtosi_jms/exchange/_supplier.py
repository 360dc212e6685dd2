"""The supplier: answers requests from one destination with the given services (R3, R4, R5, P31, P33).

A handler gets the request object and yields objects, or returns a response. Batches are cut and sent while it runs, and
nothing of a request is kept after its last reply (P33). The supplier does not wait for each partial response: a window
of them may be unconfirmed. A request is acknowledged after its last reply.
"""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final, Self

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import DEFAULT_PROFILE, from_jms, judge_body
from mtosi_jms.binding.profile import Validate, body_check
from mtosi_jms.binding.soap_jms import breach, speaks
from mtosi_jms.bulk import Folders
from mtosi_jms.errors import (
    ConfigError,
    DecodeError,
    IllegalStateError,
    MtosiError,
    ProtocolError,
    SpoolError,
    TransportError,
)
from mtosi_jms.exchange._aio_supplier import AsyncSupplier
from mtosi_jms.exchange._dispatcher import NO_REQUEST, Dispatcher, FailureHook, send_all
from mtosi_jms.exchange._reply_writer import ProviderError, ReplyPolicy, ReplyRules, ReplyWriter, Sender, WithheldError
from mtosi_jms.exchange.sending import check_connection, error_type, report
from mtosi_jms.exchange.signals import aside, on_signals
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.masking import shown_half_made
from mtosi_jms.service import SupplierBase, check_count, check_seconds
from mtosi_jms.soap import Header, correlation_id, header_text
from mtosi_jms.spool import InboxReceiver, IncomingJournal, give_back, handed_out, has_waited, watch_inbox
from mtosi_jms.telemetry import Count, Processing, Role
from mtosi_jms.transport import Backoff, Connection, Consumer, Delivery, Session, redeliver
from mtosi_jms.xmlbind import XmlObject

log = logging.getLogger(__package__)

_LAST_PAUSE: Final = 10.0
"""Longest pause, in seconds, before a request is answered again after the provider failed."""
_UNHEARD: Final = Processing()
_REMEMBERED: Final = 1_000
"""For how many requests the number of provider failures is kept."""


class Supplier:
    """A supplier OS on one destination of one connection.

    Args:
        connection: an open connection; the supplier starts it and does not close it. A started supplier belongs to it,
            and serves until either is closed, also if the program does not keep the supplier.
        destination: an administered destination, or its name (R2a).
        services: instances of generated supplier classes, any number for one destination (O9); if several threads
            answer requests, they call the methods of these instances at the same time. Or a dispatcher, whose own
            settings then apply.
        sender_uri: senderURI in the headers of replies; the destination's name unless given.
        reply_policy: decides where replies may be sent. Unless given: if the naming context has names, to the
            destinations that it knows and to temporary ones; if not, to any queue of the connection.
        eager: send each batch as soon as it is full. Otherwise a full batch waits for the next object, which shows
            that the batch is not the last. When `eager` is set and the number of objects is a multiple of the batch
            size, the last batch is empty.
        on_error: called with each failure that is not reported to a requestor.
        bulk_folders: folders below which files of BulkResponse requests may be written, since the requestor names the
            file. Without any, such a request is answered with a fault (C18). Experimental.
        send_window: how many partial responses to a request may be unconfirmed by the provider; 1: wait for each.
        inbox: stores each request before it is acknowledged, hands it to its handler once, and knows which requests
            were being handled when the process ended. Without an inbox, such a request is answered again.
        retry_pause: seconds before a request is answered again after the provider failed. The pause doubles with each
            further failure, up to 10 s.
        validate: whether bodies must fit the schemas (001-S12), see `mtosi_jms.binding.profile.Validate`.
        understands: header blocks that the handlers understand, see `Dispatcher`.

    Raises:
        ConfigError: the destination is temporary, there is no service, two services have one operation with the same
            request element, `send_window` is below 1, or `reply_policy` is not a function.
        NamingError: the destination cannot be resolved.
    """

    def __init__(
        self,
        connection: Connection,
        destination: str | Destination,
        services: Sequence[SupplierBase] | Dispatcher,
        *,
        sender_uri: str | None = None,
        profile: BindingProfile = DEFAULT_PROFILE,
        reply_policy: ReplyPolicy | None = None,
        eager: bool = False,
        on_error: FailureHook | None = None,
        bulk_folders: Folders = (),
        send_window: int = 16,
        inbox: IncomingJournal | None = None,
        retry_pause: float = 0.1,
        validate: Validate = "ignore",
        understands: Collection[str | type[XmlObject]] = (),
    ) -> None:
        check_connection("Supplier", connection)
        check_seconds("retry_pause", retry_pause, zero=True)
        if reply_policy is not None and not callable(reply_policy):
            raise ConfigError(f"reply_policy: give a function that takes a destination, not {reply_policy!r}")
        names = connection.names
        self.connection = connection
        self.destination = names.lookup(destination)
        if self.destination.is_temporary:
            raise ConfigError("a supplier is served from an administered destination (R2a)")
        self.sender_uri = sender_uri or names.uri_of(destination)
        if profile.reply_to_on == "all":
            names.lookup(self.sender_uri)  # every reply will need it, so that an error is raised now
        self.profile = profile
        self._rules = ReplyRules(
            profile=profile,
            names=names,
            policy=reply_policy,
            send_window=send_window,
            together=inbox is None,  # an inbox marks the request as done as soon as its replies are sent
            is_gone=connection.is_gone,
        )
        self._inbox = inbox
        self._check = body_check(validate)
        self._pauses = Backoff(retry_pause, max(retry_pause, _LAST_PAUSE), 0)
        self._transports: frozenset[str] = frozenset()
        if isinstance(services, Dispatcher):
            self._dispatcher = services
        else:
            if not services:
                raise ConfigError("services: give at least one; a supplier without answers nobody")
            self._dispatcher = Dispatcher(
                services,
                profile,
                sender_uri=self.sender_uri,
                eager=eager,
                bulk_folders=bulk_folders,
                on_error=on_error,
                understands=understands,
            )
            self._transports = frozenset(service.__service__.transport for service in services)
        self._report_failure = self._dispatcher.failures.report
        self._sessions: set[Session] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._busy: dict[Session, threading.Thread] = {}
        self._returned = threading.Condition(self._lock)
        self._failures: dict[str, int] = {}
        self._stopped = threading.Event()
        self._ended: Callable[[MtosiError | None], object] | None = None
        self._aio: AsyncSupplier | None = None

    @shown_half_made
    def __repr__(self) -> str:
        state = "stopped" if self._stopped.is_set() else f"{len(self._sessions)} running"
        return f"<Supplier at {self.destination}, {state}>"

    @property
    def aio(self) -> AsyncSupplier:
        """The same supplier on an event loop. Handlers may also be coroutines or asynchronous generators."""
        with self._lock:
            if self._aio is None:
                self._aio = AsyncSupplier(self)
            return self._aio

    @property
    def eager(self) -> bool:
        return self._dispatcher.eager

    def with_services(
        self, change: Callable[[SupplierBase], SupplierBase], ended: Callable[[MtosiError | None], object]
    ) -> Supplier:
        """Return a copy with changed services that shares this supplier's state; `ended` is called as a thread ends."""
        other = copy.copy(self)
        other._dispatcher = self._dispatcher.over(change)
        other._ended = ended
        return other

    def run(self) -> None:
        """Answer requests until `stop`; several threads may run one supplier.

        In the main thread, SIGTERM and SIGINT end all runs: requests in progress are answered, others are not taken. A
        second SIGINT interrupts the handler in this thread, and its request is delivered again.

        Raises:
            ConfigError: a handler is asynchronous.
            TransportError: the provider failed for good.
        """
        signalled = False

        def on_signal(again: bool) -> None:
            nonlocal signalled
            signalled = True
            if again:
                raise KeyboardInterrupt
            drain(again)

        try:
            with aside(lambda again: self.drain()) as drain, on_signals(on_signal):
                self._answer_requests(*self._open())
        except (KeyboardInterrupt, IllegalStateError) as error:
            if not signalled:
                raise
            log.warning("%s: ended by a signal: %s", self.destination, type(error).__name__)

    def start(self, threads: int = 1) -> Self:
        """Answer requests in background threads, until `stop`, the end of the `with` block, or of the connection.

        The consumers exist when this returns: a request sent from now on is received, also on a topic. The threads keep
        the supplier: the program need not.

        Raises:
            ConfigError: a handler is asynchronous, or `threads` is below 1.
            IllegalStateError: it was started before.
            TransportError: the provider failed.
        """
        check_count("threads", threads)
        if threads < 1:
            raise ConfigError(f"threads must be at least 1, not {threads}")
        if self._threads and not self._stopped.is_set():
            raise IllegalStateError("the supplier was started before; for more threads, start(threads=...) once")
        for session, consumer in [self._open() for _ in range(threads)]:
            with self._lock:
                number = len(self._threads) + 1
                name = f"supplier-{self.destination.name}-{number}"
                work = (session, consumer)
                thread = threading.Thread(target=self._answer_in_background, args=work, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
        return self

    def _open(self) -> tuple[Session, Consumer | InboxReceiver]:
        self._dispatcher.refuse_asynchronous()
        session = self.connection.session()
        with self._lock:
            if self._stopped.is_set():
                session.close()
                raise IllegalStateError("the supplier was stopped")
            self._sessions.add(session)
        try:
            consumer = session.consumer(self.destination)
            watch_inbox(self.connection.telemetry, self._inbox)
            self.connection.start()
        except BaseException:
            self._end(session)
            raise
        return session, consumer if self._inbox is None else InboxReceiver(session, consumer, self._inbox)

    def _answer_in_background(self, session: Session, consumer: Consumer | InboxReceiver) -> None:
        failure: MtosiError | None = None
        try:
            self._answer_requests(session, consumer)
        except MtosiError as error:
            failure = error
            self._report_failure("the supplier ends", error)
        finally:
            if self._ended is not None:
                self._ended(failure)

    def _answer_requests(self, session: Session, consumer: Consumer | InboxReceiver) -> None:
        failures = 0
        try:
            while True:
                try:
                    delivery = consumer.receive()
                except SpoolError as error:  # the provider still has the message, and there may be room again
                    failures += 1
                    self._report_failure("a request cannot be stored; it is delivered again", error)
                    if self._stopped.wait(self._pauses.seconds(failures)):
                        return
                    continue
                failures = 0
                if delivery is None or not self._serve(delivery, session):
                    return
        except IllegalStateError:
            if not self._stopped.is_set():
                raise
        finally:
            self._end(session)

    def _serve(self, delivery: Delivery, session: Session) -> bool:
        with self._lock:  # in one step: `drain` sees the request as busy, or this sees that it was stopped
            if self._stopped.is_set():  # it is delivered again
                give_back(delivery)
                return False
            self._busy[session] = threading.current_thread()
        try:
            self._handle(delivery, session)
        finally:
            with self._lock:
                del self._busy[session]
                self._returned.notify_all()
        return not self._stopped.is_set()

    def _handle(self, delivery: Delivery, session: Session) -> None:
        """Answer a request. If the provider fails meanwhile, it is delivered again, and waits before it is answered
        again, so that one that makes the provider fail does not do so all the time."""
        identifier = delivery.message.message_id or ""
        failures = self._failures.get(identifier, 0)
        if failures and self._stopped.wait(self._pauses.seconds(failures)):
            give_back(delivery)
            return
        if (failures or has_waited(delivery)) and 0 < delivery.message.expiration_ms <= time.time() * 1000:
            what = "its time to live was over before its turn came, so that nobody waits for the answer"
            self._reject("a request is not carried out", ProtocolError(what, ""), delivery.message)
            delivery.acknowledge()
            return
        try:
            with handed_out(delivery), self._processing(delivery.message):
                self.answer(delivery.message, session)
        except IllegalStateError:
            raise
        except TransportError as error:
            self._failures[identifier] = failures + 1
            for oldest in list(self._failures)[:-_REMEMBERED]:
                self._failures.pop(oldest, None)
            what = "the provider failed while a request was answered; it is delivered again"
            self._report_failure(what, error, message=delivery.message)
            redeliver(session)
        else:
            self._failures.pop(identifier, None)

    def _processing(self, message: JmsMessage) -> Processing:
        telemetry = self.connection.telemetry
        return _UNHEARD if telemetry is None else telemetry.process(message, self.destination)

    def _end(self, session: Session) -> None:
        with self._lock:
            self._sessions.discard(session)
        session.close()

    @property
    def is_running(self) -> bool:
        """Whether a background thread still answers requests. Before `stop` they end only if the provider fails for
        good."""
        return any(thread.is_alive() for thread in tuple(self._threads))

    def drain(self, wait: float | None = None) -> bool:
        """Take no more requests, and wait until those in progress are answered, for so many seconds or without limit.
        Returns whether no handler runs any more; False at once if a handler calls this."""
        deadline = None if wait is None else time.monotonic() + wait
        self._stopped.set()
        with self._lock:
            idle, threads = self._sessions.difference(self._busy), list(self._threads)
        for session in idle:
            session.close()
        with self._lock:
            if threading.current_thread() in self._busy.values():
                return False
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self._returned.wait_for(lambda: not self._busy, left):
                return False
        _alive(threads, None if deadline is None else max(0.0, deadline - time.monotonic()))
        return True

    def stop(self, wait: float | None = 10.0) -> None:
        """End all runs. A request in progress is delivered again, to the next consumer.

        `wait`: seconds to wait for background threads; None: no limit. A running handler is not interrupted, but its
        next reply fails."""
        self._close()
        for thread in _alive(list(self._threads), wait):
            log.warning("%s still runs a handler", thread.name)

    def close(self) -> None:
        self.stop()

    def _close(self) -> None:
        self._stopped.set()
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            session.close()

    def __enter__(self) -> Self:
        return self if self._threads else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def answer(self, message: JmsMessage, session: Sender) -> None:
        """Answer one request through a session. A wrong request is answered with a fault, or reported. The provider has
        confirmed every partial response when this returns. Raises TransportError: whether it has all replies is
        unknown."""
        soap_jms = speaks(self.profile, self._transports, message)
        telemetry = self.connection.telemetry
        writer = ReplyWriter(self._rules, session, message, soap_jms=soap_jms, telemetry=telemetry)
        if telemetry is None and not log.isEnabledFor(logging.INFO):
            self._answer_all(message, writer, soap_jms=soap_jms)
            return
        began = time.monotonic()
        failure: BaseException | None = None
        if telemetry is not None:
            telemetry.began(Role.SUPPLIER)
        try:
            failure = self._answer_all(message, writer, soap_jms=soap_jms)
        except BaseException as error:
            failure = error
            raise
        finally:
            self._report(message, writer, time.monotonic() - began, failure)

    def _answer_all(self, message: JmsMessage, writer: ReplyWriter, *, soap_jms: bool) -> MtosiError | None:
        """Answer a request and settle its partial responses; return the error that withheld a reply, or None."""
        try:
            try:
                self._answer(message, writer, soap_jms=soap_jms)
            finally:
                writer.settle()
        except WithheldError as withheld:
            self._reject(withheld.what, withheld.error, message)
            return withheld.error
        except ProviderError as failed:
            raise failed.error from None
        return None

    def _report(self, message: JmsMessage, writer: ReplyWriter, seconds: float, failure: BaseException | None) -> None:
        outcome = "answered" if writer.replies else "done"
        if failure is not None:
            outcome = type(failure).__name__
        elif writer.fault:
            outcome = "fault"
        report(
            log,
            Role.SUPPLIER,
            self.connection.telemetry,
            writer.operation,
            self.destination,
            correlation_id(writer.request) or message.correlation_id or "",
            outcome=outcome,
            seconds=seconds,
            batches=writer.replies,
            error=failure,
            message_id=message.message_id,
            error_type=error_type(outcome, "" if failure is not None else writer.fault),
        )

    def _reject(self, what: str, error: BaseException, message: JmsMessage) -> None:
        self._report_failure(what, error, message=message)
        if self.connection.telemetry is not None:
            self.connection.telemetry.count(Count.REJECTS, self.destination)

    def _answer(self, message: JmsMessage, writer: ReplyWriter, *, soap_jms: bool) -> None:
        dispatcher = self._dispatcher
        kind = message.properties.get("MTOSI_msgType")
        try:
            strict, vendors = self.profile.validation == "strict", self.profile.header
            envelope = from_jms(message, strict=strict, package=dispatcher.package, header=vendors)
        except MtosiError as error:
            self._reject("a request that cannot be read", error, message)
            if kind not in (*NO_REQUEST, "NOTIFICATION"):
                why = f"the request cannot be read: {getattr(error, 'message', error)}"
                fault = breach(message, None) if soap_jms else None
                send_all(dispatcher.refuse(fault or why, address=writer), writer.send)
            return
        writer.request = request = envelope.header or Header()
        writer.operation = dispatcher.operation_of(envelope, message)
        fault = breach(message, envelope) if soap_jms else None
        if fault is not None:
            self._reject("a request is refused", fault, message)
            send_all(dispatcher.refuse(fault, request, envelope.version, writer), writer.send)
            return
        if kind in NO_REQUEST and header_text(request, "msgType") is None:
            what = f"a message of type {kind} came where requests are expected"
            self._reject("a message that is not a request", ProtocolError(what, correlation_id(request) or ""), message)
            return
        try:
            judge_body(self._check, message, envelope)
        except DecodeError as error:
            self._reject("a request that does not fit the schema", error, message)
            if header_text(request, "msgType") != "NOTIFICATION":
                why = f"the request does not fit the schema: {error}"
                send_all(dispatcher.refuse(why, request, envelope.version, writer), writer.send)
            return
        send_all(dispatcher.dispatch(envelope, message=message, address=writer), writer.send)
        if not writer.operation and self.connection.telemetry is not None:
            self.connection.telemetry.count(Count.REJECTS, self.destination)


def _alive(threads: Sequence[threading.Thread], wait: float | None) -> list[threading.Thread]:
    """Wait so many seconds in all for threads; return those that still run. The calling thread is left out."""
    deadline = None if wait is None else time.monotonic() + wait
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
    return [thread for thread in threads if thread.is_alive() and thread is not threading.current_thread()]
