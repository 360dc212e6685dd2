"""The requestor: sends requests and hands out replies, one or many, to any number of threads (R3, R4, R6).

It has no thread of its own: see the receiver. For callers on event loops there is `Requestor.aio`: the loop sends a
request if that needs no waiting, else the requestor's sending thread does, in the order of the calls. The receiver's
thread puts replies into their `PendingExchange`. Time-outs are timers of the loop that ask the exchange itself. A
cancelled caller drops its `PendingExchange`, which takes no lock; later replies are orphans."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from functools import partial
from typing import Final, Self

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import DEFAULT_PROFILE
from mtosi_jms.binding.profile import Validate, body_check
from mtosi_jms.bulk import BulkReply, BulkTerms
from mtosi_jms.closing import Closeable
from mtosi_jms.errors import ConfigError, HeaderError, TransportError
from mtosi_jms.exchange._pending import PendingExchange, PreparedRequest, reply_of
from mtosi_jms.exchange._receiver import Orphans, Receiver
from mtosi_jms.exchange._request_writer import SIMPLE, RequestWriter, batch_pattern, bulk_pattern
from mtosi_jms.exchange._result import Answer, BatchCall, Batches, bulk_reply, decode_response, only_reply
from mtosi_jms.exchange.sending import check_connection
from mtosi_jms.exchange.worker import Closing, Worker, within
from mtosi_jms.jms import Destination
from mtosi_jms.jms.ids import random_id
from mtosi_jms.masking import shown_half_made, without_login
from mtosi_jms.patterns import BatchRules, OnConflict, Strategy, Timeouts, rounded
from mtosi_jms.service import AsyncCaller, Call, check_seconds
from mtosi_jms.soap import Envelope
from mtosi_jms.spool import Landing, OutgoingJournal, watch_outbox
from mtosi_jms.transport import Connection, close_aside, is_open
from mtosi_jms.xmlbind import RawXml, XmlObject

_STRATEGIES: Final = {"both": Strategy.BOTH, "xml": Strategy.XML, "jms": Strategy.MESSAGE_ID}


class Requestor(Closeable):
    """A requestor OS on one connection; threads may share it.

    Args:
        connection: an open connection; the requestor starts it and does not close it.
        sender_uri: the OS's logical name, the header's senderURI. By R16 it also names the destination of replies.
        reply_to: name of another destination for replies, the header's replyToURI.
        failure_reply_to: name of a destination for failures, the header's failureReplytoURI (P29). The requestor
            receives from it too.
        temporary_reply: receive replies on a temporary queue of the connection instead (R2b, R2e, C15).
        timeouts: time-outs of exchanges; a call may set its own. Time counts only while a caller waits.
        landing: stores each received message durably before it is acknowledged.
        on_orphan: called with each reply that belongs to no exchange, by a thread of its own.
        expect_ack: take a reply without body and batch fields as an acknowledgement, not as the answer (C61).
        persistent: whether the provider must store requests, unless the call or its address says. None: as the profile
            says (O6).
        on_conflict: what happens if a batch number comes again with other content, unless the call says: "error" ends
            the iteration with a ProtocolError, "keep_first" goes on with the first content (P32).
        outbox: stores each request of a one-way operation before it is sent PERSISTENT, until the provider has
            confirmed it. Other requests are not stored: the answer confirms them, and a caller without one asks again.
        validate: whether bodies must fit the schemas (001-S12), see `mtosi_jms.binding.profile.Validate`.
        linger: seconds that the threads which send and receive for coroutines stay without work.

    Raises:
        ConfigError: both `reply_to` and `temporary_reply` are given, `on_conflict` is unknown, or `sender_uri` is a
            topic and neither of the two is given.
        HeaderError: `sender_uri` is empty.
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
        timeouts: Timeouts | None = None,
        landing: Landing | None = None,
        on_orphan: Orphans | None = None,
        expect_ack: bool = False,
        persistent: bool | None = None,
        on_conflict: OnConflict = "error",
        outbox: OutgoingJournal | None = None,
        new_id: Callable[[], str] = random_id,
        clock: Callable[[], float] = time.monotonic,
        validate: Validate = "ignore",
        linger: float = 5.0,
    ) -> None:
        check_connection("Requestor", connection)
        check_seconds("linger", linger, zero=True)
        if not sender_uri or not sender_uri.strip():
            raise HeaderError("senderURI", "a requestor needs a logical name")
        if temporary_reply and reply_to:
            raise ConfigError("give reply_to or temporary_reply, not both")
        self.connection = connection
        self.sender_uri = sender_uri
        self.profile = profile
        self.timeouts = timeouts or Timeouts()
        self._making = threading.Lock()
        self._aio: AsyncRequestor | None = None
        names = connection.names
        named = [] if temporary_reply else [names.lookup(reply_to or sender_uri)]
        if named and not reply_to and named[0].is_topic:
            what = "where its replies would arrive: give the name of a queue, or reply_to, or temporary_reply=True"
            raise ConfigError(f"sender_uri: {without_login(sender_uri)} is a topic, {what}")
        failures = [names.lookup(failure_reply_to)] if failure_reply_to else []
        temporary: Destination | None = None
        self._session, receiving = connection.session(), connection.session()
        try:
            if temporary_reply:
                temporary = receiving.temporary_queue()
                named = [temporary]
            replies = [*dict.fromkeys(named + failures)]
            self._receiver = Receiver(
                session=receiving,
                destinations=replies,
                strategy=_STRATEGIES[profile.correlation],
                landing=landing,
                on_orphan=on_orphan,
                clock=clock,
                strict=profile.validation == "strict",
                vendors=profile.header,
                check=body_check(validate),
                linger=linger,
                telemetry=connection.telemetry,
            )
            self._writer = RequestWriter(
                connection=connection,
                session=self._session,
                receiver=self._receiver,
                replies=replies,
                temporary=temporary,
                sender_uri=sender_uri,
                reply_to_uri=names.uri_of(reply_to) if reply_to else None,
                failure_reply_to_uri=names.uri_of(failure_reply_to) if failure_reply_to else None,
                profile=profile,
                timeouts=self.timeouts,
                rules=BatchRules(on_conflict=on_conflict, expect_ack=expect_ack),
                persistent=persistent,
                outbox=outbox,
                new_id=new_id,
                clock=clock,
            )
            watch_outbox(connection.telemetry, outbox)
            connection.start()
        except BaseException:
            self._session.close()
            receiving.close()
            raise

    @shown_half_made
    def __repr__(self) -> str:
        state = "closed" if self._session.is_closed else f"{self.pending} pending"
        return f"<Requestor {without_login(self.sender_uri)}, {state}>"

    @property
    def orphans(self) -> int:
        return self._receiver.orphans

    @property
    def pending(self) -> int:
        return self._receiver.pending

    @property
    def waiting(self) -> int:
        """How many callers, threads and coroutines, wait for a reply now."""
        return self._receiver.waiting

    @property
    def aio(self) -> AsyncRequestor:
        """The same requestor for coroutines; blocking callers and any number of event loops may share it."""
        if self._aio is not None:
            return self._aio
        with self._making:
            if self._aio is None:
                self._aio = AsyncRequestor(self._receiver, self._writer, self.close)
            return self._aio

    def call(self, call: Call) -> XmlObject | RawXml | None:
        """Carry out one call in the pattern SimpleResponse; see `mtosi_jms.service.Caller`.

        Raises:
            MtosiFault: the supplier answered with a fault.
            ReplyTimeoutError: no answer came in time; whether the supplier got the request is unknown.
            ProtocolError: the answer is not the operation's response.
            XmlError: the answer cannot be read.
            HeaderError, NamingError, EncodeError: the request is not valid; nothing was sent.
            TransportError: the provider failed.
            IllegalStateError: the requestor is closed.
        """
        if call.operation.mep == "one-way":
            self._writer.send_one_way(call)
            return None
        return decode_response(self._only_reply(self._writer.prepare(call, SIMPLE)), call)

    def call_bulk(self, call: Call, terms: BulkTerms) -> BulkReply[XmlObject]:
        """Carry out one call in the pattern BulkResponse: one reply, the data in a file (C18). Experimental. Raises
        what `call` raises, and ConfigError for a one-way operation."""
        envelope = self._only_reply(self._writer.prepare(call, bulk_pattern(call.operation, terms)))
        return bulk_reply(envelope, decode_response(envelope, call), terms)

    def _only_reply(self, prepared: PreparedRequest) -> Envelope:
        pending = self._writer.send(prepared)
        try:
            envelope = self._receiver.next(pending)
        finally:
            self._receiver.close_exchange(pending)
        return only_reply(envelope, pending)

    def call_batches(self, call: Call, batch_size: int) -> Batches:
        """Carry out one call in the pattern MultipleBatchResponse; the request is sent before this returns.

        Raises:
            HeaderError, NamingError, EncodeError: the request is not valid; nothing was sent.
            TransportError: the provider failed.
        """
        pattern = batch_pattern(call.operation, batch_size)
        pending = self._writer.send(self._writer.prepare(call, pattern))
        return Batches(self._receiver, pending, call, batch_size, self._next_of_iterator)

    def _next_of_iterator(self, call: Call) -> Answer:
        prepared = self._writer.prepare(call, SIMPLE, of_iterator=True)
        return self._only_reply(prepared), self._receiver.time_left(prepared.pending)

    def __del__(self) -> None:
        if is_open(getattr(self, "_session", None)):  # the receiver may be in use, and closes itself
            close_aside(self._session.close)

    def close(self) -> None:
        """Close the sessions. Callers that wait get an IllegalStateError. The connection stays open."""
        self._receiver.close()
        self._session.close()
        with self._making:
            if self._aio is not None:
                self._aio.stop_sending()


_GRACE: Final = 0.2
"""Seconds that a loop waits longer than the thread that sends for it: that thread's error says more about the cause."""


class AsyncRequestor(Closing, AsyncCaller):
    """A requestor as coroutines see it; made by `Requestor.aio`, and called by `stub.aio`."""

    def __init__(self, receiver: Receiver, writer: RequestWriter, close: Callable[[], None]) -> None:
        super().__init__(close, "the requestor")
        self._receiver = receiver
        self._writer = writer
        self._sender = Worker("mtosi-send", "the requestor", receiver.linger)

    async def call(self, call: Call) -> XmlObject | RawXml | None:
        """Carry out one call in the pattern SimpleResponse. Raises what `Requestor.call` raises.

        If the task is cancelled before the request is sent, the request is not sent. If it is cancelled later, the
        reply is an orphan.
        """
        if call.operation.mep == "one-way":
            await self._send_one_way(call)
            return None
        return decode_response(await self._only_reply(self._writer.prepare(call, SIMPLE)), call)

    async def call_bulk(self, call: Call, terms: BulkTerms) -> BulkReply[XmlObject]:
        """Carry out one call in the pattern BulkResponse. Raises what `Requestor.call_bulk` raises."""
        envelope = await self._only_reply(self._writer.prepare(call, bulk_pattern(call.operation, terms)))
        return bulk_reply(envelope, decode_response(envelope, call), terms)

    def call_batches(self, call: Call, batch_size: int) -> AsyncBatches:
        """Carry out one call in the pattern MultipleBatchResponse. Raises what `Requestor.call_batches` raises.

        When this returns, the request is sent or queued for the sending thread. If a queued request cannot be sent,
        awaiting the first batch raises the error.
        """
        prepared = self._writer.prepare(call, batch_pattern(call.operation, batch_size))
        return AsyncBatches(self, prepared, call, batch_size)

    async def next_of_iterator(self, call: Call) -> Answer:
        """Return the next batch that an iterator gives, and the seconds that are left for the whole call."""
        prepared = self._writer.prepare(call, SIMPLE, of_iterator=True)
        return await self._only_reply(prepared), self._receiver.time_left(prepared.pending)

    async def _only_reply(self, prepared: PreparedRequest) -> Envelope:
        pending = prepared.pending
        try:
            sending = self.begin(prepared)
            if sending is not None:
                await self.wait_sent(prepared, sending)
            return only_reply(await self.next(pending, only=True), pending)
        finally:
            self._receiver.drop(pending)

    def begin(self, prepared: PreparedRequest) -> Future[PendingExchange] | None:
        """Send a request at once, or queue it if sending might wait or overtake another one. Returns None if it was
        sent, else the future of the sending thread."""
        try:
            if self._sender.is_idle and self._writer.send_soon(prepared):
                return None
            return self._sender.submit(partial(self._writer.send, prepared))
        except BaseException:
            self._receiver.drop(prepared.pending)
            raise

    async def wait_sent(self, prepared: PreparedRequest, sending: Future[PendingExchange]) -> None:
        what = "the request stands in line, or is being sent"
        left, sent = self._receiver.time_left(prepared.pending), asyncio.wrap_future(sending)
        await within(left, _GRACE, sent, lambda: prepared.pending.late(what))

    async def _send_one_way(self, call: Call) -> None:
        seconds = self._writer.seconds_of(call.options)
        asked = f"{call.operation.name} to {call.destination}: not sent within {rounded(seconds or 0)} s"
        sent = self._sender.run(partial(self._writer.send_one_way, call))
        await within(seconds, _GRACE, sent, lambda: TransportError(f"{asked}: it stands in line, or is being sent"))

    async def next(self, pending: PendingExchange, *, only: bool = False) -> Envelope | None:
        """Return the next reply in its turn, None at the end; see `Receiver.next`. `only`: the caller drops the
        exchange afterwards."""
        receiver, event = self._receiver, _LoopEvent()
        action, left = receiver.listen(pending, event.setter())
        try:
            while action is None:
                await event.wait(left)
                action = receiver.end_of(pending) if only else None
                if action is None:
                    action, left = receiver.taken(pending)
        except BaseException:  # cancelled, closed, or the loop is gone and the garbage collector ends the coroutine
            receiver.drop(pending)
            raise
        return reply_of(action, pending)

    @property
    def receiver(self) -> Receiver:
        return self._receiver

    async def close(self) -> None:
        """Close the requestor. Callers that wait get an IllegalStateError. The connection stays open."""
        await super().close()

    def stop_sending(self) -> None:
        self._sender.close()


class AsyncBatches(BatchCall, AsyncIterator[XmlObject]):
    """The responses of one MultipleBatchResponse call, for one task at a time; see `Batches`. The exchange is given up
    when the iteration ends early, by an error or by cancellation, and when nobody refers to this object any more."""

    def __init__(self, requestor: AsyncRequestor, prepared: PreparedRequest, call: Call, batch_size: int) -> None:
        super().__init__(requestor.receiver, call, batch_size)
        self._requestor = requestor
        self._prepared = prepared
        self._sending = requestor.begin(prepared)
        if self._sending is not None:
            weakref.finalize(self, self._sending.cancel).atexit = False  # what nobody iterates over is not sent
        self._ended = False
        self._opened(prepared.pending)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> XmlObject:
        with self._closed_by_errors():
            await self._sent()
            envelope, left = await self._next()
            if envelope is not None:
                return self._decode_response(envelope, left)
        self.close()
        raise StopAsyncIteration

    async def _next(self) -> Answer | tuple[None, None]:
        if self._ended or (self._iteration.is_used and self._iteration.next is None):
            return None, None
        if self._iteration.next is not None:
            return await self._requestor.next_of_iterator(self._iteration.next)
        envelope = await self._requestor.next(self._prepared.pending)
        return (None, None) if envelope is None else (envelope, self._receiver.time_left(self._prepared.pending))

    async def _sent(self) -> None:
        if self._sending is None or self._ended:
            return
        await self._requestor.wait_sent(self._prepared, self._sending)
        self._sending = None

    def _give_up(self) -> None:
        self._ended = True
        if self._sending is not None:
            self._sending.cancel()
        super()._give_up()

    async def __aenter__(self) -> Self:
        with self._closed_by_errors():
            await self._sent()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class _LoopWaker:
    """Wakes coroutines of one loop from any thread, several at once, because waking a loop costs a socket write. It
    keeps neither alive: a loop may disappear without notice."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = weakref.ref(loop)
        self._due: deque[weakref.ref[_LoopEvent]] = deque()
        self._called = False

    def wake(self, event: weakref.ref[_LoopEvent]) -> None:
        self._due.append(event)
        loop = self._loop()
        if self._called or loop is None:
            return
        self._called = True
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._wake_all)

    def _wake_all(self) -> None:
        self._called = False  # first, so that an event that comes during the loop below is not missed
        while self._due:
            event = self._due.popleft()()
            if event is not None:
                event.over()


_WAKERS: Final[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopWaker]] = weakref.WeakKeyDictionary()


class _LoopEvent:
    def __init__(self) -> None:
        self._loop: Final = asyncio.get_running_loop()
        self._done: asyncio.Future[None] | None = None

    def setter(self) -> Callable[[], None]:
        """Return a function that sets the event, for any thread. It does not keep the event alive."""
        waker = _WAKERS.get(self._loop)
        if waker is None:
            waker = _WAKERS[self._loop] = _LoopWaker(self._loop)
        return partial(waker.wake, weakref.ref(self))

    def over(self) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    async def wait(self, seconds: float | None) -> None:
        self._done = self._loop.create_future()
        timer = self._loop.call_later(seconds, self.over) if seconds is not None else None
        try:
            await self._done
        finally:
            if timer is not None:
                timer.cancel()
