"""The requestor for coroutines: receives in one thread, and hands over to the loops (R3, R4, R6).

A request is made by the loop, and sent by it where that waits for nothing; otherwise by the requestor's sending thread,
so that a slow network holds up no loop. Requests go out in the order of the calls. Replies are taken by the receiver's
receiving thread, and wait in the pending of their exchange, as they do for a blocking caller: nothing reads ahead of
whoever iterates but the provider. Time-outs are timers of the loop that ask the exchange itself.

Whoever is cancelled drops the pending, which takes no lock: late replies are orphans from then on.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Final, Self

from mtosi_jms.bulk import BulkReply, BulkTerms
from mtosi_jms.errors import ReplyTimeoutError, TransportError
from mtosi_jms.exchange._pattern_header import SIMPLE, batch_pattern, bulk_pattern
from mtosi_jms.exchange._pending import AnotherWaitsError, PendingExchange, PreparedRequest, reply_of
from mtosi_jms.exchange._receiver import Receiver
from mtosi_jms.exchange._request_writer import RequestWriter
from mtosi_jms.exchange._result import BatchCall, bulk_reply, decode_response, only_reply
from mtosi_jms.exchange.worker import Closing, Worker
from mtosi_jms.patterns import rounded
from mtosi_jms.service import AsyncCaller, Call
from mtosi_jms.soap import Envelope
from mtosi_jms.xmlbind import RawXml, XmlObject

_GRACE: Final = 0.2
"""Seconds by which a loop waits longer than the thread that sends for it, which knows more of what keeps it."""


class AsyncRequestor(Closing, AsyncCaller):
    """A requestor as coroutines see it; made by `Requestor.aio`, and called by `stub.aio`.

    Args:
        receiver: of the requestor.
        writer: makes and sends its requests.
        close: closes the requestor; blocks.
    """

    def __init__(self, receiver: Receiver, writer: RequestWriter, close: Callable[[], None]) -> None:
        super().__init__(close, "the requestor")
        self._receiver = receiver
        self._writer = writer
        self._sender = Worker("mtosi-send", "the requestor", receiver.linger)

    async def call(self, call: Call) -> XmlObject | RawXml | None:
        """Carry out one call in the pattern SimpleResponse; see `Requestor.call` for what is raised.

        When it is cancelled before the request is sent, the request is not sent. Otherwise a reply is an orphan.
        """
        if call.operation.mep == "one-way":
            await self._send_one_way(call)
            return None
        return decode_response(await self._only_reply(self._writer.prepare(call, SIMPLE)), call)

    async def call_bulk(self, call: Call, terms: BulkTerms) -> BulkReply[XmlObject]:
        """Carry out one call in the pattern BulkResponse; see `Requestor.call_bulk` for what is raised."""
        envelope = await self._only_reply(self._writer.prepare(call, bulk_pattern(call.operation, terms)))
        return bulk_reply(envelope, decode_response(envelope, call), terms)

    def call_batches(self, call: Call, batch_size: int) -> AsyncBatches:
        """One call in the pattern MultipleBatchResponse; see `Requestor.call_batches` for what is raised.

        The request is sent before this returns, or stands in line to be sent; then its failure is raised by the first
        batch that is waited for.
        """
        prepared = self._writer.prepare(call, batch_pattern(call.operation, batch_size))
        return AsyncBatches(self, prepared, call)

    async def _only_reply(self, prepared: PreparedRequest) -> Envelope:
        """Send a request and wait for its one reply."""
        pending = prepared.pending
        try:
            sending = self.begin(prepared)
            if sending is not None:
                await self.wait_sent(prepared, sending)
            return only_reply(await self.next(pending, only=True), pending)
        finally:
            self._receiver.drop(pending)

    def begin(self, prepared: PreparedRequest) -> Future[PendingExchange] | None:
        """Send a request: at once, unless that might wait for something or would overtake another one.

        Returns:
            None where it was sent, else the sending thread's outcome.
        """
        try:
            if self._sender.is_idle and self._writer.send_soon(prepared):
                return None
            return self._sender.submit(partial(self._writer.send, prepared))
        except BaseException:
            self._receiver.drop(prepared.pending)
            raise

    async def wait_sent(self, prepared: PreparedRequest, sending: Future[PendingExchange]) -> None:
        """Wait for the thread to have sent a request, as long as its time is not over."""
        left = self._writer.time_left(prepared)
        limit = asyncio.timeout(left and left + _GRACE)
        try:
            async with limit:
                await asyncio.wrap_future(sending)
        except TimeoutError as error:
            if isinstance(error, ReplyTimeoutError) or not limit.expired():
                raise
            raise prepared.pending.late("the request stands in line, or is being sent") from None

    async def _send_one_way(self, call: Call) -> None:
        seconds = self._writer.seconds_of(call.options)
        limit = asyncio.timeout(seconds and seconds + _GRACE)
        try:
            async with limit:
                await self._sender.run(partial(self._writer.send_one_way, call))
        except TimeoutError:
            if not limit.expired():
                raise
            within = f"not sent within {rounded(seconds or 0)} s"
            what = f"{call.operation.name} to {call.destination}: {within}: it stands in line, or is being sent"
            raise TransportError(what) from None

    async def next(self, pending: PendingExchange, *, only: bool = False) -> Envelope | None:
        """The next reply of an exchange when its turn has come, None at the end; see `Receiver.next`.

        Args:
            pending: the exchange.
            only: no other one is asked for; the caller drops the exchange.
        """
        receiver, event = self._receiver, _LoopEvent()
        action, left = receiver.listen(pending, event.setter())
        try:
            while action is None:
                await event.wait(left)
                action = receiver.end_of(pending) if only else None
                if action is None:
                    action, left = receiver.taken(pending)
        except BaseException:  # cancelled, closed, or the loop is gone and the garbage collector is here
            receiver.drop(pending)
            raise
        return reply_of(action, pending)

    @property
    def receiver(self) -> Receiver:
        """The requestor's receiver."""
        return self._receiver

    async def close(self) -> None:
        """Close the requestor; callers that wait get an IllegalStateError. The connection stays open."""
        await super().close()

    def stop_sending(self) -> None:
        """The requestor is closed."""
        self._sender.close()


class AsyncBatches(BatchCall, AsyncIterator[XmlObject]):
    """The responses of one MultipleBatchResponse call: in order, each once, as soon as order allows.

    Iteration raises what `Batches` raises. It is for one task at a time. What ends early, by an error or by
    cancellation, is given up; so is what nobody refers to any more.
    """

    def __init__(self, requestor: AsyncRequestor, prepared: PreparedRequest, call: Call) -> None:
        super().__init__(requestor.receiver, call)
        self._requestor = requestor
        self._prepared = prepared
        self._sending = requestor.begin(prepared)
        if self._sending is not None:
            weakref.finalize(self, self._sending.cancel).atexit = False
        self._waits = False
        self._ended = False
        self._opened(prepared.pending)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> XmlObject:
        with self._closed_by_errors():
            await self._sent()
            envelope = await self._next()
            if envelope is not None:
                return self._decode_response(envelope)
        self.close()
        raise StopAsyncIteration

    async def _next(self) -> Envelope | None:
        return None if self._ended else await self._requestor.next(self._prepared.pending)

    async def _sent(self) -> None:
        """Wait until the request is sent."""
        if self._sending is None or self._ended:
            return
        if self._waits:
            raise AnotherWaitsError("another task waits for this request to be sent")
        self._waits = True
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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _LoopWaker:
    """Wakes coroutines of one loop from any thread, several at a time: a loop is woken through a socket, which costs.

    It keeps neither loop nor coroutines alive: a loop may be gone without a word.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = weakref.ref(loop)
        self._due: deque[weakref.ref[_LoopEvent]] = deque()
        self._called = False

    def wake(self, event: weakref.ref[_LoopEvent]) -> None:
        """Have a event ring soon."""
        self._due.append(event)
        loop = self._loop()
        if self._called or loop is None:
            return
        self._called = True
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._wake_all)

    def _wake_all(self) -> None:
        self._called = False  # what comes from now on is for the next call, if not for this one
        while self._due:
            event = self._due.popleft()()
            if event is not None:
                event.over()


_WAKERS: Final[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopWaker]] = weakref.WeakKeyDictionary()


class _LoopEvent:
    """Wakes one coroutine, from any thread."""

    def __init__(self) -> None:
        self._loop: Final = asyncio.get_running_loop()
        self._done: asyncio.Future[None] | None = None

    def setter(self) -> Callable[[], None]:
        """What to pull for it to ring."""
        waker = _WAKERS.get(self._loop)
        if waker is None:
            waker = _WAKERS[self._loop] = _LoopWaker(self._loop)
        return partial(waker.wake, weakref.ref(self))

    def over(self) -> None:
        """End the waiting."""
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    async def wait(self, seconds: float | None) -> None:
        """Until it rings, or the time is over."""
        self._done = self._loop.create_future()
        timer = self._loop.call_later(seconds, self.over) if seconds is not None else None
        try:
            await self._done
        finally:
            if timer is not None:
                timer.cancel()
