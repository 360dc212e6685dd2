"""Runs blocking calls in one thread, in order, on behalf of asyncio code."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Self, TypeVar

from mtosi_jms.errors import IllegalStateError

__all__ = ["Closing", "Worker", "within"]

T = TypeVar("T")


class Worker:
    """Runs jobs one at a time, in the order of `submit`, in one thread, which ends when no job came for `linger`
    seconds.

    The queue is unbounded: callers must bound it. A caller that finds the worker idle may do the work itself without
    overtaking a job. `owner`: subject of error texts, such as `the requestor`."""

    def __init__(self, name: str, owner: str, linger: float = 5.0) -> None:
        self._name = name
        self._owner = owner
        self._linger = linger
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._jobs: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._has_thread = False
        self._runs_job = False
        self._closed = False

    @property
    def is_idle(self) -> bool:
        """Whether a job submitted now would start at once. False once the worker is closed. Takes no lock."""
        return not (self._jobs or self._runs_job or self._closed)

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Queue a job; cancelling its future has an effect only before it starts. Raises IllegalStateError: the worker
        is closed."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise self._closed_error()
            if not self._has_thread:
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
                self._has_thread = True
            self._jobs.append((future, job))
            self._changed.notify()
        return future

    async def run(self, job: Callable[[], T]) -> T:
        """Queue a job and await its result. If the task is cancelled before the job starts, the job never runs. Raises
        what the job raised, or IllegalStateError: the worker was closed before the job started."""
        return await asyncio.wrap_future(self.submit(job))

    def close(self) -> None:
        """Refuse new jobs. Waiting jobs fail with IllegalStateError; a running job goes on, and is not waited for."""
        with self._lock:
            self._closed = True
            left = list(self._jobs)
            self._jobs.clear()
            self._changed.notify()
        for future, _ in left:
            if future.set_running_or_notify_cancel():  # else it was cancelled meanwhile
                future.set_exception(self._closed_error())

    def _closed_error(self) -> IllegalStateError:
        return IllegalStateError(f"{self._owner} is closed")

    def _work(self) -> None:
        while True:
            with self._lock:
                self._runs_job = False
                self._changed.wait_for(lambda: self._jobs or self._closed, self._linger)
                if not self._jobs:
                    self._has_thread = False
                    return
                self._runs_job = True  # before popleft: `is_idle` takes no lock
                future, job = self._jobs.popleft()
            _run_job(future, job)
            del future, job  # keeps no result or argument alive while it waits for the next job


def _run_job(future: Future[Any], job: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():  # it was cancelled meanwhile
        return
    try:
        result = job()
    except BaseException as error:  # noqa: BLE001 - the future raises it in the caller
        future.set_exception(error)
    else:
        future.set_result(result)


async def within(seconds: float | None, grace: float, awaited: Awaitable[T], late: Callable[[], Exception]) -> T:
    """Await for so many seconds and a grace, in which the thread's own error may come, then raise `late`."""
    limit = asyncio.timeout(seconds and seconds + grace)
    try:
        async with limit:
            return await awaited
    except TimeoutError as error:
        if type(error) is not TimeoutError or not limit.expired():
            raise
        raise late() from None


class Closing:
    """Base of asyncio classes whose blocking `close` runs in a thread of its own. `async with` closes them too."""

    def __init__(self, close: Callable[[], object], owner: str) -> None:
        self._close = close
        self._owner = owner

    async def close(self) -> None:
        """Close without blocking the event loop. The subclass says what happens to calls in progress."""
        closer = Worker("mtosi-close", self._owner)
        try:
            await closer.run(self._close)
        finally:
            closer.close()  # or its thread would linger

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
