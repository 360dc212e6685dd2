"""The requestor for coroutines (R3, R4, R6).

The loop sends a request if that needs no waiting, else the requestor's sending thread does, in the order of the calls.
The receiver's thread puts replies into their `PendingExchange`. Time-outs are timers of the loop that ask the exchange
itself. A cancelled caller drops its `PendingExchange`, which takes no lock; later replies are orphans."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from functools import partial
from typing import Final, Self

from mtosi_jms.bulk import BulkReply, BulkTerms
from mtosi_jms.errors import TransportError
from mtosi_jms.exchange._pending import PendingExchange, PreparedRequest, reply_of
from mtosi_jms.exchange._receiver import Receiver
from mtosi_jms.exchange._request_writer import SIMPLE, RequestWriter, batch_pattern, bulk_pattern
from mtosi_jms.exchange._result import Answer, BatchCall, bulk_reply, decode_response, only_reply
from mtosi_jms.exchange.worker import Closing, Worker, within
from mtosi_jms.patterns import rounded
from mtosi_jms.service import AsyncCaller, Call
from mtosi_jms.soap import Envelope
from mtosi_jms.xmlbind import RawXml, XmlObject

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
