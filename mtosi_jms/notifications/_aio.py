"""Publisher and subscriber for coroutines: each has one thread, which publishes or receives in their place."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from mtosi_jms.errors import IllegalStateError
from mtosi_jms.exchange.worker import Closing, Worker
from mtosi_jms.jms import JmsMessage
from mtosi_jms.jms.profile import TopicCategory
from mtosi_jms.transport import Delivery
from mtosi_jms.xmlbind import RawXml, XmlObject

T = TypeVar("T")


class _Publish(Protocol):
    def __call__(self, event: XmlObject | RawXml, *, category: TopicCategory | str | None = None) -> JmsMessage: ...


class AsyncPublisher:
    """A publisher as coroutines see it; made by `Publisher.aio`.

    Args:
        publish: publishes one event; blocks.
    """

    def __init__(self, publish: _Publish) -> None:
        self._publish = publish
        self._worker = Worker("mtosi-publish", "the publisher")

    async def publish(self, event: XmlObject | RawXml, *, category: TopicCategory | str | None = None) -> JmsMessage:
        """Publish one event, after those that wait; see `Publisher.publish`.

        A call that is cancelled may have been published all the same, unless it still waited for its turn.
        """
        return await self._worker.run(partial(self._publish, event, category=category))

    def stop(self) -> None:
        """The publisher is closed."""
        self._worker.close()


class AsyncSubscriber(Closing, AsyncIterator[Any]):
    """A subscriber as coroutines see it; made by `Subscriber.aio`.

    One message is received when somebody waits for an event and none is left of the message before. A task that is
    cancelled loses none: what is received later is neither landed nor acknowledged before somebody waits again. It is
    for one task at a time, and not for use beside the blocking iteration.

    Args:
        receive: waits so many seconds for a message; blocks.
        take: lands, acknowledges and reads one; blocks.
        events: what was read and not handed out.
        close: ends the subscription; blocks.
        timeout: seconds to wait for an event before iteration ends; None waits for ever.
    """

    def __init__(
        self,
        receive: Callable[[float | None], Delivery | None],
        take: Callable[[Delivery], None],
        events: deque[Any],
        close: Callable[[], None],
        timeout: float | None,
    ) -> None:
        super().__init__(close, "the subscriber")
        self._receive = receive
        self._take = take
        self._events = events
        self._timeout = timeout
        self._worker = Worker("mtosi-subscribe", "the subscriber")
        self._receiving: _Lasting[Delivery | None] = _Lasting()
        self._taking: _Lasting[None] = _Lasting()
        self._stopped = False

    async def __anext__(self) -> Any:
        if self._stopped and not self._events:
            raise IllegalStateError("the subscriber is closed")
        try:
            return await self._next()
        except IllegalStateError:
            if self._stopped:  # while somebody waited, however far that had come
                raise StopAsyncIteration from None
            raise

    async def _next(self) -> Any:
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        while not self._events:
            if not self._taking:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                self._receiving.begin(self._worker, partial(self._receive, left))
                delivery = await self._receiving.outcome()
                if delivery is None:
                    raise StopAsyncIteration
                self._taking.begin(self._worker, partial(self._take, delivery))
            await self._taking.outcome()
        return self._events.popleft()

    async def close(self) -> None:
        """End the subscription; what was received and not acknowledged is delivered again."""
        await super().close()

    def stop(self) -> None:
        """The subscription is being closed: who waits comes to the end of the iteration."""
        self._stopped = True
        self._worker.close()


class _Lasting(Generic[T]):
    """A job that goes on when the task that waits for it is cancelled: whoever comes next finds what it came to.

    It is true while there is one.
    """

    def __init__(self) -> None:
        self._job: Future[T] | None = None

    def __bool__(self) -> bool:
        return self._job is not None

    def begin(self, worker: Worker, job: Callable[[], T]) -> None:
        """Begin it, unless there is one."""
        if self._job is None:
            self._job = worker.submit(job)

    async def outcome(self) -> T:
        """What it came to; with that it is over."""
        job = self._job
        if job is None:
            raise IllegalStateError("another task waits for an event")
        try:
            result = await asyncio.shield(asyncio.wrap_future(job))
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._job = None
            raise
        self._job = None
        return result
