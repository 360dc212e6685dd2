"""The supplier on an event loop: handlers may be coroutines and asynchronous generators (R3, R4, R5, P33).

The blocking supplier does the work, in one thread and session per request that may be answered at the same time. What a
handler returns to be awaited, the loop runs while the thread waits; other handlers run in the thread. One task of the
loop owns the run: when it is cancelled, as `asyncio.run` does at its end, so are the handlers, and their requests are
handed back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, Self

from mtosi_jms.errors import ConfigError, IllegalStateError, MtosiError
from mtosi_jms.exchange._aio_handlers import LoopHandlers
from mtosi_jms.exchange.signals import on_signals
from mtosi_jms.exchange.worker import Worker
from mtosi_jms.service import SupplierBase

_PATIENCE: Final = 10.0
"""Seconds in which a cancelled handler has to end."""


class _Supplier(Protocol):
    def start(self, threads: int) -> Any: ...

    def drain(self, wait: float | None) -> bool: ...

    def stop(self, wait: float | None) -> None: ...


_WithServices = Callable[[Callable[[SupplierBase], SupplierBase], Callable[[MtosiError | None], object]], _Supplier]


class AsyncSupplier:
    """A supplier as coroutines see it; made by `Supplier.aio`."""

    def __init__(self, with_services: _WithServices, *, eager: bool) -> None:
        self._with_services = with_services
        self._eager = eager
        self._serving: _Serving | None = None

    async def serve(self, limit: int = 8) -> None:
        """Answer requests until `stop`. If the task is cancelled, requests in progress are handed back.

        On a loop in the main thread, SIGTERM and SIGINT end it like `stop`. After that, a second SIGINT hands requests
        back at once. Until this has ended, no other handler gets these signals.

        Args:
            limit: how many requests are answered at the same time. There are as many threads and sessions.

        Raises:
            ConfigError: `limit` is below 1.
            IllegalStateError: the supplier serves already, or was stopped.
            TransportError: the provider failed, and the supplier has ended.
        """
        loop = asyncio.get_running_loop()
        with on_signals(lambda again: loop.call_soon_threadsafe(self._signalled, again)):
            serving = await self._begin(limit)
            failure = await serving.task
        if failure is not None:
            raise failure

    def _signalled(self, again: bool) -> None:
        if self._serving is not None:
            self._serving.end_soon(0.0 if again else _PATIENCE)

    async def start(self, limit: int = 8) -> Self:
        """Answer requests in the background, until `stop`, the end of the `async with` block, or the end of the loop.

        The consumers exist when this returns: a request sent from now on is received, also on a topic.

        Raises:
            As `serve`.
        """
        await self._begin(limit)
        return self

    async def _begin(self, limit: int) -> _Serving:
        if limit < 1:
            raise ConfigError(f"a supplier that answers {limit} requests at a time answers none")
        if self._serving is not None:
            raise IllegalStateError("the supplier serves already, or was stopped")
        self._serving = serving = _Serving(self._with_services, limit, eager=self._eager)
        try:
            await serving.begin()
        except BaseException:
            self._serving = None
            raise
        return serving

    async def stop(self, wait: float | None = 10.0) -> None:
        """Take no more requests, finish those in progress, and hand back those that are not answered in time.

        Args:
            wait: seconds to finish; then handlers are cancelled. 0: hand back at once. None: no limit.
        """
        if self._serving is not None:
            await self._serving.end(wait)

    async def close(self) -> None:
        """Stop, under the name that other roles use; see `stop`."""
        await self.stop()

    async def __aenter__(self) -> Self:
        return self if self._serving is not None else await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


class _Serving:
    """One run of a supplier on one loop. The result of `task`, which ends with all threads, is the error of the first
    one that failed, or None."""

    task: asyncio.Task[MtosiError | None]

    def __init__(self, with_services: _WithServices, limit: int, *, eager: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._handlers = LoopHandlers(self._loop, eager=eager, ending=self._ending)
        self._supplier = with_services(self._handlers.over, self._thread_ended)
        self._limit = limit
        self._running = limit
        self._failure: MtosiError | None = None
        self._over = asyncio.Event()
        self._endings: set[asyncio.Task[None]] = set()
        self._controller = Worker("mtosi-supplier", "the supplier")

    async def begin(self) -> None:
        """Start the threads, and return when their consumers exist."""
        started: asyncio.Future[None] = self._loop.create_future()
        self.task = self._loop.create_task(self._serve(started))
        either: list[asyncio.Future[Any]] = [self.task, started]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.task.cancel()
            await asyncio.wait([self.task])
            raise
        if not started.done():
            await self.task

    def _ending(self) -> bool:
        return self.task.cancelling() > 0

    async def _serve(self, started: asyncio.Future[None]) -> MtosiError | None:
        try:
            await self._controller.run(partial(self._supplier.start, self._limit))
            started.set_result(None)
            await self._over.wait()
        finally:
            await self._hand_back()
        return self._failure

    async def _hand_back(self) -> None:
        try:
            await self._controller.run(partial(self._supplier.drain, 0.0))
            self._handlers.cancel()
            await self._controller.run(partial(self._supplier.stop, _PATIENCE))
        finally:
            self._controller.close()

    async def end(self, wait: float | None) -> None:
        """Drain, and hand back after `wait` seconds."""
        if not self._over.is_set():
            await self._controller.run(partial(self._supplier.drain, 0.0))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._over.wait()
            self._over.set()
        await asyncio.wait([self.task])

    def end_soon(self, wait: float) -> None:
        ending = self._loop.create_task(self.end(wait))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    def _thread_ended(self, failure: MtosiError | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._ended, failure)
        except RuntimeError:  # the loop is closed, and nobody waits
            pass

    def _ended(self, failure: MtosiError | None) -> None:
        self._running -= 1
        self._failure = self._failure or failure
        if not self._running or failure is not None:
            self._over.set()
