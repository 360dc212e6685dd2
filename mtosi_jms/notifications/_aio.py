"""Publisher and subscriber for coroutines: each has one thread, which publishes or receives for them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from functools import partial
from typing import Final, Generic, TypeVar

from mtosi_jms.binding.profile import TopicCategory
from mtosi_jms.errors import IllegalStateError, TransportError
from mtosi_jms.exchange.worker import Closing, Worker, within
from mtosi_jms.jms import JmsMessage
from mtosi_jms.notifications._events import Event, Received
from mtosi_jms.patterns import rounded
from mtosi_jms.service import check_seconds
from mtosi_jms.transport import Delivery

T = TypeVar("T")
_GRACE: Final = 0.05
"""Seconds that the loop waits longer than the thread that publishes for it: the thread's error says more."""


class AsyncPublisher:
    """A publisher as coroutines see it; made by `Publisher.aio`."""

    def __init__(self, publish: Callable[..., JmsMessage]) -> None:
        self._publish = publish
        self._worker = Worker("mtosi-publish", "the publisher")

    async def publish(
        self, event: Event, *, category: TopicCategory | str | None = None, timeout: float | None = None
    ) -> JmsMessage:
        """Publish one event, after the calls that wait already; see `Publisher.publish`.

        The event of a call that is cancelled or timed out may be published all the same, unless the call was still
        waiting for its turn.
        """
        check_seconds("timeout", timeout)
        text = f"not sent within {rounded(timeout or 0)} s: the event stands in line, or is being sent"
        sent = self._worker.run(partial(self._publish, event, category=category, timeout=timeout))
        return await within(timeout, _GRACE, sent, lambda: TransportError(text))

    def stop(self) -> None:
        self._worker.close()


class AsyncSubscriber(Closing, AsyncIterator[Received]):
    """A subscriber as coroutines see it; made by `Subscriber.aio`.

    A message is received when a task waits for an event and no event is left of the message before. A task that is
    cancelled loses nothing: a message received later is neither landed nor acknowledged before a task waits again. It
    is for one task at a time, and not for use beside the blocking iteration.

    Args:
        timeout: seconds to wait for an event before iteration ends; None waits for ever.
    """

    def __init__(
        self,
        receive: Callable[[float | None], Delivery | None],
        take: Callable[[Delivery], None],
        events: deque[Received],
        close: Callable[[], None],
        timeout: float | None,
    ) -> None:
        super().__init__(close, "the subscriber")
        self._receive = receive
        self._take = take
        self._events = events
        self._timeout = timeout
        self._worker = Worker("mtosi-subscribe", "the subscriber")
        self._receiving: _Job[Delivery | None] = _Job(self._worker)
        self._taking: _Job[None] = _Job(self._worker)
        self._stopped = False

    async def __anext__(self) -> Received:
        if self._stopped and not self._events:
            raise IllegalStateError("the subscriber is closed")
        try:
            return await self._next()
        except IllegalStateError:
            if self._stopped:  # it was closed while this task waited
                raise StopAsyncIteration from None
            raise

    async def _next(self) -> Received:
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        while not self._events:
            if not self._taking.is_begun:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                self._receiving.begin(partial(self._receive, left))
                delivery = await self._receiving.result()
                if delivery is None:
                    raise StopAsyncIteration
                self._taking.begin(partial(self._take, delivery))
            await self._taking.result()
        return self._events.popleft()

    def stop(self) -> None:
        """End the iteration, also for a task that waits, as the subscription is closed."""
        self._stopped = True
        self._worker.close()


class _Job(Generic[T]):
    """A job of a thread. If the task that waits for it is cancelled, the job goes on: the next task gets its result."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._future: Future[T] | None = None

    @property
    def is_begun(self) -> bool:
        return self._future is not None

    def begin(self, job: Callable[[], T]) -> None:
        """Begin a job, unless an earlier one still has a result to give."""
        if self._future is None:
            self._future = self._worker.submit(job)

    async def result(self) -> T:
        if self._future is None:
            raise IllegalStateError("another task waits for an event")
        try:
            result = await asyncio.shield(asyncio.wrap_future(self._future))
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._future = None
            raise
        self._future = None
        return result
