"""The supplier: answers requests from one destination with the services it is given (R3, R4, R5, P31, P33).

A handler gets the request object and yields objects, or returns a response; batches are cut and sent while it runs,
and nothing of a request is kept after its last reply (P33). Partial responses are not waited for one by one: a window
of them may be unconfirmed. A request is acknowledged after the provider has confirmed its last reply.
"""

from __future__ import annotations

import copy
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from mtosi_jms.bulk import Folders
from mtosi_jms.errors import (
    ConfigError,
    IllegalStateError,
    MtosiError,
    MtosiFault,
    ProtocolError,
    SpoolError,
    TransportError,
)
from mtosi_jms.exchange._bulk_supplier import BulkAnswer
from mtosi_jms.exchange._reply_writer import (
    ProviderError,
    Replies,
    ReplyPolicy,
    ReplyRules,
    ResponseMaker,
    Sender,
    WithheldError,
    internal_error,
    operations_by_tag,
    refuse_asynchronous,
    tag_of,
)
from mtosi_jms.exchange.messages import in_package, whole_number
from mtosi_jms.exchange.signals import aside, on_signals
from mtosi_jms.jms import BindingProfile, Destination, JmsMessage
from mtosi_jms.jms.binding import DEFAULT_PROFILE, from_jms
from mtosi_jms.patterns import CommunicationPattern, cut_batches, parse_pattern
from mtosi_jms.service import OperationInfo, RequestContext, SupplierBase
from mtosi_jms.soap import Envelope, Header, correlation_id, header_text
from mtosi_jms.spool.journal import InboxReceiver, IncomingJournal, give_back, handed_out
from mtosi_jms.transport import Connection, Consumer, Delivery, Session, dropped, is_open, redeliver

if TYPE_CHECKING:
    from mtosi_jms.exchange.aio._supplier import AsyncSupplier

log = logging.getLogger(__name__)

_FIRST_PAUSE: Final = 0.1
_LAST_PAUSE: Final = 10.0
"""Seconds that a request waits which the provider failed with: the first time, and at most."""
_REMEMBERED: Final = 1_000
"""Requests that the provider failed with, whose number is kept."""
_NO_REQUEST = ("RESPONSE", "ERROR")


class Supplier:
    """A supplier OS on one destination of one connection.

    Args:
        connection: an open connection; the supplier starts it and does not close it.
        destination: name of an administered destination, or the destination (R2a).
        services: instances of generated supplier classes; one destination may serve any number (O9). With several
            threads their methods run at the same time.
        sender_uri: the header's senderURI of replies; the destination's name unless given.
        profile: the switches of the binding.
        reply_policy: says where replies may be sent. Unless given: with a naming context, to the destinations that
            it knows and to temporary ones; without one, to any queue of the connection.
        eager: send each batch as soon as it is full. Otherwise it waits for the next object, which shows that it is not
            the last; with it, a number of objects that is a multiple of the size makes an empty last batch.
        on_error: called with each failure that no requestor hears of.
        bulk_folders: folders below which files of BulkResponse requests may be written, since the requestor names the
            file; none: such a request is answered by a fault (C18). Experimental.
        send_window: how many partial responses to a request may be on their way without the provider's confirmation;
            1: each is waited for.
        inbox: stores each request before it is acknowledged, hands it to its handler once, and tells which ones were
            in hand when the process ended; without one such a request is answered again.

    Raises:
        ConfigError: a temporary destination, two services with the same request element, or a window below 1.
        NamingError: the destination cannot be resolved.
    """

    def __init__(
        self,
        connection: Connection,
        destination: str | Destination,
        services: Sequence[SupplierBase],
        *,
        sender_uri: str | None = None,
        profile: BindingProfile = DEFAULT_PROFILE,
        reply_policy: ReplyPolicy | None = None,
        eager: bool = False,
        on_error: Callable[[BaseException], object] | None = None,
        bulk_folders: Folders = (),
        send_window: int = 16,
        inbox: IncomingJournal | None = None,
    ) -> None:
        names = connection.names
        self.connection = connection
        self.destination = names.lookup(destination)
        if self.destination.is_temporary:
            raise ConfigError("a supplier is served from an administered destination (R2a)")
        self.sender_uri = sender_uri or names.uri_of(destination)
        if profile.reply_to_on == "all":
            names.lookup(self.sender_uri)  # every reply will need it: better now than then
        self.profile = profile
        self._rules = ReplyRules(
            sender_uri=self.sender_uri,
            profile=profile,
            names=names,
            policy=reply_policy,
            send_window=send_window,
            together=inbox is None,  # with one, a request is done with as soon as its replies are out
        )
        self._eager = eager
        self._inbox = inbox
        self._on_error = on_error
        self._bulk_folders = (bulk_folders,) if isinstance(bulk_folders, str | Path) else tuple(bulk_folders)
        self._operations = operations_by_tag(services)
        self._package = services[0].__service__.root if services else None
        self._sessions: set[Session] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._busy: dict[Session, threading.Thread] = {}
        self._returned = threading.Condition(self._lock)
        self._failures: dict[str, int] = {}
        self._stopped = threading.Event()
        self._ended: Callable[[MtosiError | None], object] | None = None
        self._aio: AsyncSupplier | None = None

    @property
    def aio(self) -> AsyncSupplier:
        """The same supplier on an event loop, for handlers that are coroutines or asynchronous generators too."""
        from mtosi_jms.exchange.aio._supplier import AsyncSupplier

        with self._lock:
            if self._aio is None:
                self._aio = AsyncSupplier(self._with_services, eager=self._eager)
            return self._aio

    def _with_services(
        self, change: Callable[[SupplierBase], SupplierBase], ended: Callable[[MtosiError | None], object]
    ) -> Supplier:
        """The same supplier, its sessions and its end, with changed services; `ended` hears of each thread's end."""
        other = copy.copy(self)
        other._operations = {tag: (change(one), operation) for tag, (one, operation) in self._operations.items()}
        other._ended = ended
        return other

    def run(self) -> None:
        """Answer requests until `stop`; several threads may run one supplier.

        In the main thread SIGTERM and SIGINT end all runs: requests in hand are answered, others are not taken. A
        second SIGINT interrupts the handler that runs here, and its request is delivered again.

        Raises:
            ConfigError: a handler is asynchronous.
            TransportError: the provider failed for good.
        """
        signalled = False

        def tell(again: bool) -> None:
            nonlocal signalled
            signalled = True
            if again:
                raise KeyboardInterrupt
            drain(again)

        try:
            with aside(lambda again: self.drain()) as drain, on_signals(tell):
                _answer_all(weakref.ref(self), *self._open())
        except (KeyboardInterrupt, IllegalStateError) as error:
            if not signalled:
                raise
            log.warning("%s: ended by a signal: %s", self.destination, type(error).__name__)

    def start(self, threads: int = 1) -> Self:
        """Answer requests in background threads, until `stop` or the end of the `with` block.

        The consumers exist when this returns: a request that is sent from now on is received, on a topic too. The
        threads do not keep the supplier: one that nobody refers to any more ends, with a ResourceWarning.

        Raises:
            ConfigError: a handler is asynchronous.
            TransportError: the provider failed.
        """
        for session, consumer in [self._open() for _ in range(threads)]:
            with self._lock:
                number = len(self._threads) + 1
                name = f"supplier-{self.destination.name}-{number}"
                work = (weakref.ref(self), session, consumer)
                thread = threading.Thread(target=_answer_in_background, args=work, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
        return self

    def _open(self) -> tuple[Session, Consumer | InboxReceiver]:
        refuse_asynchronous(self._operations.values())
        session = self.connection.session()
        with self._lock:
            if self._stopped.is_set():
                session.close()
                raise IllegalStateError("the supplier was stopped")
            self._sessions.add(session)
        try:
            consumer = session.consumer(self.destination)
            self.connection.start()
        except BaseException:
            self._end(session)
            raise
        return session, consumer if self._inbox is None else InboxReceiver(session, consumer, self._inbox)

    def _serve(self, delivery: Delivery, session: Session) -> bool:
        """Answer what was received; whether more is to be received."""
        with self._lock:
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
        """Answer a request. Where the provider fails meanwhile it is delivered again, and waits before it is answered
        again: what makes the provider fail must not do so all the time."""
        identifier = delivery.message.message_id or ""
        failures = self._failures.get(identifier, 0)
        if failures and self._stopped.wait(_pause(failures)):
            give_back(delivery)
            return
        try:
            with handed_out(delivery):
                self.answer(delivery.message, session)
        except IllegalStateError:
            raise
        except TransportError as error:
            self._failures[identifier] = failures + 1
            for oldest in list(self._failures)[:-_REMEMBERED]:
                self._failures.pop(oldest, None)
            self._failed("the provider failed while a request was answered; it is delivered again", error)
            redeliver(session)
        else:
            self._failures.pop(identifier, None)

    def _end(self, session: Session) -> None:
        with self._lock:
            self._sessions.discard(session)
        session.close()

    @property
    def is_running(self) -> bool:
        """Whether a background thread still answers requests; before `stop` they end when the provider is gone for
        good."""
        return any(thread.is_alive() for thread in tuple(self._threads))

    def drain(self, wait: float | None = None) -> bool:
        """Take no more requests, and let those that are being answered come to their end.

        Args:
            wait: seconds that handlers have for it; None: no limit.

        Returns:
            Whether no handler runs any more; False also where a handler asks: nothing is waited for then.
        """
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
        """End all runs; a request that is being answered is delivered again to whoever comes next.

        Args:
            wait: seconds that background threads have to end: a handler in the middle of its work is not interrupted,
                its next reply is. None: as long as they need.
        """
        self._close()
        for thread in _alive(list(self._threads), wait):
            log.warning("%s still runs a handler", thread.name)

    def _close(self) -> None:
        self._stopped.set()
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            session.close()

    def __del__(self) -> None:
        if any(map(is_open, getattr(self, "_sessions", ()))) and not self._stopped.is_set():
            dropped(f"Supplier({self.destination})", self._close)

    def _has_ended(self, failure: MtosiError | None) -> None:
        if failure is not None:
            self._failed("the supplier ends", failure)
        if self._ended is not None:
            self._ended(failure)

    def __enter__(self) -> Self:
        return self if self._threads else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _failed(self, what: str, error: BaseException, *, trace: bool = False) -> None:
        log.error("%s: %s", what, error, exc_info=error if trace else None)
        if self._on_error is None:
            return
        try:
            self._on_error(error)
        except Exception:
            log.exception("on_error failed")

    def answer(self, message: JmsMessage, session: Sender) -> None:
        """Answer one request through a session; whatever is wrong with the request is answered too, or reported.

        When it returns, every reply is confirmed by the provider, or what became of them is reported.

        Raises:
            TransportError: the provider failed; whether it has all replies is unknown.
        """
        replies = Replies(self._rules, session, message)
        try:
            try:
                self._answer(message, replies)
            finally:
                replies.settle()
        except WithheldError as withheld:
            self._failed(withheld.what, withheld.error)
        except ProviderError as failure:
            raise failure.error from None

    def _answer(self, message: JmsMessage, replies: Replies) -> None:
        kind = message.properties.get("MTOSI_msgType")
        try:
            envelope = from_jms(message, strict=self.profile.validation == "strict", package=self._package)
        except MtosiError as error:
            self._failed("a request that cannot be read", error)
            if kind not in (*_NO_REQUEST, "NOTIFICATION"):
                self._refuse(replies, f"the request cannot be read: {getattr(error, 'message', error)}")
            return
        replies.request = envelope.header or Header()
        replies.version = envelope.version
        kind = header_text(replies.request, "msgType") or kind
        if envelope.fault is not None or kind in _NO_REQUEST:  # answering an answer might never end
            what = f"a message of type {kind or 'ERROR'} came where requests are expected"
            self._failed("a message that is no request", ProtocolError(what, correlation_id(replies.request) or ""))
            return
        self._answer_envelope(envelope, message, replies, one_way=kind == "NOTIFICATION")

    def _answer_envelope(self, envelope: Envelope, message: JmsMessage, replies: Replies, *, one_way: bool) -> None:
        if envelope.warnings:
            log.warning("a request with %d warnings, the first: %s", len(envelope.warnings), envelope.warnings[0])
        tag = tag_of(envelope.body)
        found = self._operations.get(tag)
        if found is None:
            what = f"no operation here takes {tag.rpartition('}')[2] or 'an empty body'}"
            self._failed("a request is refused", ProtocolError(what, correlation_id(replies.request) or ""))
            if not one_way:
                self._refuse(replies, what)
            return
        supplier, operation = found
        envelope = in_package(envelope, supplier.__service__.root)
        if operation.mep != "one-way":
            replies.admit()
        try:
            self._dispatch(supplier, operation, envelope, message, replies)
        except (WithheldError, ProviderError):
            raise
        except MtosiFault as fault:
            if operation.mep == "one-way":
                self._failed(f"{operation.name} is refused", fault)
            self._tell(fault, supplier, operation, replies)
        except BaseException as error:
            if not isinstance(error, Exception) and threading.current_thread() is threading.main_thread():
                raise  # a signal's
            self._failed(f"the handler of {operation.name} failed", error, trace=True)
            self._tell(internal_error(operation, error), supplier, operation, replies)

    def _tell(self, fault: MtosiFault, supplier: SupplierBase, operation: OperationInfo, replies: Replies) -> None:
        """Answer with a fault; with another one that says less where this one cannot be sent."""
        if operation.mep == "one-way":
            return
        service = supplier.__service__
        attempts = ((fault, operation, service), (None, operation, service), (None, None, None))
        problem: Exception = fault
        for one, place, interface in attempts:
            try:
                replies.fault(one or internal_error(operation, problem), place, interface)
            except (WithheldError, ProviderError):
                raise
            except Exception as error:  # noqa: BLE001 - the requestor must not be left without any answer
                self._failed(f"a fault of {operation.name} cannot be sent", error)
                problem = error
            else:
                return

    def _refuse(self, replies: Replies, why: str) -> None:
        try:
            replies.fault(MtosiFault(why, fault_code="Client"), None, None)
        except (WithheldError, ProviderError):
            raise
        except Exception as error:  # noqa: BLE001 - a request that cannot be refused must not end a thread
            self._failed("a refusal cannot be sent", error)

    def _dispatch(
        self,
        supplier: SupplierBase,
        operation: OperationInfo,
        envelope: Envelope,
        message: JmsMessage,
        replies: Replies,
    ) -> None:
        pattern, flag = parse_pattern(header_text(replies.request, "communicationPattern"))
        if flag is not None:
            log.warning("%s: %s", flag.rule, flag.reason)
        batches = pattern is CommunicationPattern.MULTIPLE_BATCH_RESPONSE
        size = max(whole_number(replies.request.requested_batch_size) or 0, 0) if batches else 0
        bulk = None
        if pattern is CommunicationPattern.BULK_RESPONSE and operation.mep != "one-way":
            bulk = BulkAnswer(supplier.__service__, operation, replies.request, self._bulk_folders)
            size = bulk.terms.batch_size or 0
        context = RequestContext(
            operation=operation,
            header=replies.request,
            message=message,
            batch_size=size,
            bulk=bulk.terms if bulk else None,
        )
        result = supplier.handler(operation)(envelope.body, context)
        if operation.mep == "one-way":
            for _ in result if isinstance(result, Iterator) else ():
                pass
            return
        maker = ResponseMaker(supplier.__service__, operation)
        if maker.is_response(result) and not batches and bulk is None:
            replies.response(result, operation, None, context.reply_fields)
            return
        objects = [result] if maker.is_response(result) else result
        if not isinstance(objects, Iterable):
            raise ConfigError(f"the handler of {operation.name} returned {type(result).__name__}, no response")
        try:
            first = self.profile.first_batch_sent
            if bulk is not None:
                bulk.write(objects, replies, first, context.reply_fields)
                return
            for batch in cut_batches(objects, size, first=first, eager=self._eager, whole=maker.is_response):
                position = batch.position if batches else None
                replies.response(maker.response(batch), operation, position, context.reply_fields)
        finally:
            close = getattr(objects, "close", None)
            if close is not None:  # a handler that is not run to its end has its own `finally` run now
                close()


def _answer_all(weak: weakref.ref[Supplier], session: Session, consumer: Consumer | InboxReceiver) -> None:
    """Answer what a consumer receives. While it waits, nothing here keeps the supplier.

    Raises:
        TransportError: the provider failed for good.
    """
    failures = 0
    try:
        while True:
            delivery: Delivery | None = None
            failure: SpoolError | None = None
            try:
                delivery = consumer.receive()
            except SpoolError as error:  # the provider still has the message, and there may be room again
                failure, failures = error, failures + 1
            supplier = weak()
            if supplier is None:
                return
            if failure is not None:
                supplier._failed("a request cannot be stored; it is delivered again", failure)
                if supplier._stopped.wait(_pause(failures)):
                    return
            elif delivery is None or not supplier._serve(delivery, session):
                return
            else:
                failures = 0
            del supplier
    except IllegalStateError:
        supplier = weak()
        if supplier is not None and not supplier._stopped.is_set():
            raise
    finally:
        supplier = weak()
        if supplier is not None:
            supplier._end(session)


def _answer_in_background(weak: weakref.ref[Supplier], session: Session, consumer: Consumer | InboxReceiver) -> None:
    failure: MtosiError | None = None
    try:
        _answer_all(weak, session, consumer)
    except MtosiError as error:
        failure = error
    finally:
        supplier = weak()
        if supplier is not None:
            supplier._has_ended(failure)


def _pause(failures: int) -> float:
    """Seconds to wait after so many failures in a row, 1 or more."""
    return float(min(_FIRST_PAUSE * 2 ** min(failures - 1, 16), _LAST_PAUSE))


def _alive(threads: Sequence[threading.Thread], wait: float | None) -> list[threading.Thread]:
    """The threads, the calling one excepted, that have not ended after so many seconds in all."""
    deadline = None if wait is None else time.monotonic() + wait
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
    return [thread for thread in threads if thread.is_alive() and thread is not threading.current_thread()]
