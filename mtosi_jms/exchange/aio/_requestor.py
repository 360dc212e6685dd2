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
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Final, Protocol, Self

from mtosi_jms.bulk import BulkReply, BulkTerms
from mtosi_jms.errors import IllegalStateError, ReplyTimeoutError, TransportError
from mtosi_jms.exchange._pattern_header import SIMPLE, batch_shape, bulk_shape
from mtosi_jms.exchange._pending import PendingExchange, PreparedRequest, reply_of
from mtosi_jms.exchange._receiver import Receiver
from mtosi_jms.exchange._result import BatchCall, bulk_reply, decode_response, only_reply
from mtosi_jms.exchange.aio.worker import Closing, Worker
from mtosi_jms.patterns import rounded
from mtosi_jms.service import CallOptions, OperationInfo, ServiceInfo
from mtosi_jms.soap import Envelope
from mtosi_jms.xmlbind import XmlObject

_GRACE: Final = 0.05
"""Seconds by which a loop waits longer than the thread that sends for it, which knows more of what keeps it."""


class _Sending(Protocol):
    """What is needed of the blocking requestor to send requests."""

    def open_exchange(
        self,
        service: ServiceInfo,
        operation: OperationInfo,
        destination: Any,
        request: XmlObject,
        shape: Mapping[str, Any],
        options: CallOptions,
        /,
    ) -> PreparedRequest: ...

    def send_request(self, opened: PreparedRequest, /) -> PendingExchange: ...

    def send_request_soon(self, opened: PreparedRequest, /) -> bool: ...

    def time_left(self, opened: PreparedRequest, /) -> float | None: ...

    def too_late(self, opened: PreparedRequest, /) -> ReplyTimeoutError: ...

    def send_one_way(
        self, operation: OperationInfo, destination: Any, request: XmlObject, options: CallOptions, /
    ) -> None: ...

    def seconds_of(self, options: CallOptions, /) -> float | None: ...


class AsyncRequestor(Closing):
    """A requestor as coroutines see it; made by `Requestor.aio`, and called by `stub.aio`.

    Args:
        receiver: of the requestor.
        sending: opens exchanges and sends their requests, and those that nobody answers.
        close: closes the requestor; blocks.
    """

    def __init__(self, receiver: Receiver, sending: _Sending, close: Callable[[], None]) -> None:
        super().__init__(close, "the requestor")
        self._receiver = receiver
        self._sending = sending
        self._sender = Worker("mtosi-send", "the requestor")

    async def call(
        self, service: ServiceInfo, operation: OperationInfo, destination: Any, request: XmlObject, options: CallOptions
    ) -> Any:
        """Carry out one call in the pattern SimpleResponse; see `Requestor.call` for what is raised.

        When it is cancelled before the request is sent, the request is not sent. Otherwise a reply is an orphan.
        """
        if operation.mep == "one-way":
            await self._send_one_way(operation, destination, request, options)
            return None
        make = partial(self._sending.open_exchange, service, operation, destination, request, SIMPLE, options)
        return decode_response(await self._only_reply(make), options, service, operation)

    async def call_bulk(
        self,
        service: ServiceInfo,
        operation: OperationInfo,
        destination: Any,
        request: XmlObject,
        terms: BulkTerms,
        options: CallOptions,
    ) -> BulkReply[Any]:
        """Carry out one call in the pattern BulkResponse; see `Requestor.call_bulk` for what is raised."""
        shape = bulk_shape(operation, terms)
        make = partial(self._sending.open_exchange, service, operation, destination, request, shape, options)
        envelope = await self._only_reply(make)
        return bulk_reply(envelope, decode_response(envelope, options, service, operation), terms)

    async def _only_reply(self, make: Callable[[], PreparedRequest]) -> Envelope:
        """Send a request and wait for its one reply."""
        pending = await self._begun(make)
        try:
            return only_reply(await _next(self._receiver, pending, only=True), pending)
        finally:
            self._receiver.drop(pending)

    async def _begun(self, make: Callable[[], PreparedRequest]) -> PendingExchange:
        """Send a request: at once, unless that might wait for something or would overtake another one."""
        opened = make()
        try:
            if not (self._sender.is_idle and self._sending.send_request_soon(opened)):
                await self._sent(opened)
        except BaseException:
            self._receiver.drop(opened.pending)
            raise
        return opened.pending

    async def _send_one_way(
        self, operation: OperationInfo, destination: Any, request: XmlObject, options: CallOptions
    ) -> None:
        seconds = self._sending.seconds_of(options)
        limit = asyncio.timeout(seconds and seconds + _GRACE)
        try:
            async with limit:
                await self._sender.run(partial(self._sending.send_one_way, operation, destination, request, options))
        except TimeoutError:
            if not limit.expired():
                raise
            within = f"not sent within {rounded(seconds or 0)} s"
            raise TransportError(
                f"{operation.name} to {destination}: {within}: it stands in line, or is being sent"
            ) from None

    async def _sent(self, opened: PreparedRequest) -> None:
        """Have a request sent by the thread, after those that wait there, as long as its time is not over."""
        left = self._sending.time_left(opened)
        limit = asyncio.timeout(left and left + _GRACE)
        try:
            async with limit:
                await self._sender.run(partial(self._sending.send_request, opened))
        except TimeoutError as error:
            if isinstance(error, ReplyTimeoutError) or not limit.expired():
                raise
            raise self._sending.too_late(opened) from None

    def call_batches(
        self,
        service: ServiceInfo,
        operation: OperationInfo,
        destination: Any,
        request: XmlObject,
        batch_size: int,
        options: CallOptions,
    ) -> AsyncBatches:
        """One call in the pattern MultipleBatchResponse; the request is sent when the first batch is waited for.

        Raises:
            ConfigError: the operation has no response.
        """
        shape = batch_shape(operation, batch_size)
        make = partial(self._sending.open_exchange, service, operation, destination, request, shape, options)
        return AsyncBatches(self._receiver, partial(self._begun, make), service, operation, options)

    async def close(self) -> None:
        """Close the requestor; callers that wait get an IllegalStateError. The connection stays open."""
        await super().close()

    def stop_sending(self) -> None:
        """The requestor is closed."""
        self._sender.close()


class AsyncBatches(BatchCall, AsyncIterator[Any]):
    """The responses of one MultipleBatchResponse call: in order, each once, as soon as order allows.

    The request is sent when the first batch is waited for, or by `async with`. Iteration raises what `Batches` raises.
    It is for one task at a time. What ends early, by an error or by cancellation, is given up; so is what nobody
    refers to any more.
    """

    def __init__(
        self,
        receiver: Receiver,
        send: Callable[[], Awaitable[PendingExchange]],
        service: ServiceInfo,
        operation: OperationInfo,
        options: CallOptions,
    ) -> None:
        super().__init__(receiver, service, operation, options)
        self._send = send
        self._begun = False
        self._ended = False

    async def __anext__(self) -> Any:
        with self._closed_by_errors():
            await self._begin()
            envelope = None if self._exchange is None else await _next(self._receiver, self._exchange)
            if envelope is not None:
                return self._decode_response(envelope)
        self.close()
        raise StopAsyncIteration

    async def _begin(self) -> None:
        """Send the request, once, and not if it was given up before."""
        if self._exchange is not None or self._ended:
            return
        if self._begun:
            raise IllegalStateError("another task sends this request")
        self._begun = True
        self._opened(await self._send())

    def _opened(self, pending: PendingExchange) -> None:
        super()._opened(pending)
        if self._ended:  # closed while the request was sent
            self._give_up()

    def _give_up(self) -> None:
        self._ended = True
        super()._give_up()

    async def __aenter__(self) -> Self:
        with self._closed_by_errors():
            await self._begin()
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


async def _next(receiver: Receiver, pending: PendingExchange, *, only: bool = False) -> Envelope | None:
    """The next reply of an exchange when its turn has come, None at the end; see `Receiver.next`.

    Args:
        receiver: gives it.
        pending: of the exchange.
        only: no other one is asked for; the caller drops the pending.
    """
    event = _LoopEvent()
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
