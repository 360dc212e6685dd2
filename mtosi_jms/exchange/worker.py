"""A thread that does blocking work for event loops, in order."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from mtosi_jms.errors import IllegalStateError

__all__ = ["Closing", "Worker"]

T = TypeVar("T")


class Worker:
    """Does one job after another, in a thread that is there while there are any and a little longer.

    Each job that waits has somebody who waits for it, which bounds them.

    Args:
        name: of the thread.
        owner: whose work it is, for errors: `the requestor`.
        linger: seconds that the thread waits for more work before it ends.
    """

    def __init__(self, name: str, owner: str, linger: float = 5.0) -> None:
        self._name = name
        self._owner = owner
        self._linger = linger
        self._lock = threading.Lock()
        self._more = threading.Condition(self._lock)
        self._jobs: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._working = False
        self._busy = False
        self._closed = False

    @property
    def is_idle(self) -> bool:
        """Whether a job would begin at once; not so once it is closed."""
        return not (self._jobs or self._busy or self._closed)

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Have a job done after those that are waiting.

        Returns:
            Its outcome; cancelling it helps as long as it has not begun.

        Raises:
            IllegalStateError: closed.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise self._gone()
            if not self._working:
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
                self._working = True
            self._jobs.append((future, job))
            self._more.notify()
        return future

    async def run(self, job: Callable[[], T]) -> T:
        """Have a job done and wait for it.

        Args:
            job: the job. One that has not begun when the waiting task is cancelled never will.

        Raises:
            IllegalStateError: closed.
            Exception: what the job raised.
        """
        return await asyncio.wrap_future(self.submit(job))

    def close(self) -> None:
        """Take no more jobs; those that wait fail, the one under way goes on."""
        with self._lock:
            self._closed = True
            left = list(self._jobs)
            self._jobs.clear()
            self._more.notify()
        for future, _ in left:
            if future.set_running_or_notify_cancel():
                future.set_exception(self._gone())

    def _gone(self) -> IllegalStateError:
        return IllegalStateError(f"{self._owner} is closed")

    def _work(self) -> None:
        while True:
            with self._lock:
                self._busy = False
                if not self._jobs and not self._closed:
                    self._more.wait_for(lambda: self._jobs or self._closed, self._linger)
                if not self._jobs:
                    self._working = False
                    return
                self._busy = True  # before the job is out of line, or it would seem idle in between
                future, job = self._jobs.popleft()
            _do(future, job)
            del future, job  # or the thread would keep them while it waits


def _do(future: Future[Any], job: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = job()
    except BaseException as error:  # noqa: BLE001 - raised where it is waited for
        future.set_exception(error)
    else:
        future.set_result(result)


class Closing:
    """A role that closes in a thread of its own, since closing blocks; also at the end of `async with`.

    Args:
        close: closes the role; blocks.
        owner: the role, for errors: `the requestor`.
    """

    def __init__(self, close: Callable[[], object], owner: str) -> None:
        self._close = close
        self._owner = owner

    async def close(self) -> None:
        """Close the role; see its own class for what becomes of what is under way."""
        closer = Worker("mtosi-close", self._owner)
        try:
            await closer.run(self._close)
        finally:
            closer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
