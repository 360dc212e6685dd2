"""The supplier on an event loop: handlers may be coroutines and asynchronous generators (R3, R4, R5, P33).

The blocking supplier does the work, in one thread and session per request that may be answered at the same time. What a
handler returns to be awaited, the loop runs while the thread waits; other handlers run in the thread. One task of the
loop owns the run: when it is cancelled, as `asyncio.run` does at its end, so are the handlers, and their requests are
handed back."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Protocol, Self, TypeAlias

from mtosi_jms.errors import ConfigError, IllegalStateError, MtosiError
from mtosi_jms.exchange._reply_writer import ProviderError
from mtosi_jms.exchange.signals import on_signals
from mtosi_jms.exchange.worker import Worker
from mtosi_jms.service import OperationInfo, RequestContext, SupplierBase

_PATIENCE: Final = 10.0
"""Seconds in which a cancelled handler has to end."""


class _Supplier(Protocol):
    @property
    def eager(self) -> bool: ...

    def with_services(
        self, change: Callable[[SupplierBase], SupplierBase], ended: Callable[[MtosiError | None], object]
    ) -> _Supplier: ...

    def start(self, threads: int) -> Any: ...

    def drain(self, wait: float | None) -> bool: ...

    def stop(self, wait: float | None) -> None: ...


class AsyncSupplier:
    """A supplier as coroutines see it; made by `Supplier.aio`."""

    def __init__(self, supplier: _Supplier) -> None:
        self._supplier = supplier
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
        self._serving = serving = _Serving(self._supplier, limit)
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

    def __init__(self, supplier: _Supplier, limit: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._handlers = LoopHandlers(self._loop, eager=supplier.eager, ending=self._ending)
        self._supplier = supplier.with_services(self._handlers.over, self._thread_ended)
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


_LOT: Final = 256
"""How many objects are handed over at once if all go out in a single reply."""

_Lot: TypeAlias = tuple[list[Any], bool]
"""Some objects, and whether more may come."""


class LoopHandlers:
    """The handlers that one loop runs, each in one task from its first line to its last. The objects of a generator are
    handed over in lots just large enough for the next reply: it never runs ahead of what is sent, and threads change
    once per batch, not per object. `ending`: whether `cancel` is about to be called; a loop that ends cancels all its
    tasks, handlers too."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, eager: bool, ending: Callable[[], bool]) -> None:
        self._loop = loop
        self._ending = ending
        self._ahead = 0 if eager else 1
        self._tasks: set[asyncio.Task[None]] = set()
        self._lost: list[_Run] = []
        self._stopped = False

    def over(self, service: SupplierBase) -> SupplierBase:
        return _BlockingService(service, self)

    def resolve(self, result: Any, service: SupplierBase, context: RequestContext) -> Any:
        """Return a handler's result with nothing left to await. Raises what the handler raised, or ProviderError: the
        supplier was stopped."""
        if isinstance(result, Awaitable):
            result = self._resume(_Run(), work=_awaited(result))
        if isinstance(result, AsyncIterable):
            path = context.operation.response
            return self._objects(_Feed(result, service.__service__.load(path) if path else ()), context.batch_size)
        return result

    def _objects(self, feed: _Feed, size: int) -> Iterator[Any]:
        """Iterate over what an asynchronous generator yields. Closing the iterator closes the generator."""
        more = False
        try:
            lot, more = self._resume(feed, size + self._ahead if size else _LOT, work=feed.work())
            yield from lot
            while more:
                lot, more = self._resume(feed, size or _LOT)
                yield from lot
        except GeneratorExit:
            if more:
                self._resume(feed, 0)
            raise

    def _resume(self, run: _Run, wanted: int = 1, *, work: Coroutine[Any, Any, Any] | None = None) -> Any:
        """Have a task start `work`, or continue it if `work` is None, and wait for what the task hands over."""
        answer: Future[Any] = Future()
        try:
            self._loop.call_soon_threadsafe(self._go_on, run, answer, wanted, work)
        except RuntimeError:  # the loop is closed
            if work is not None:
                work.close()
            raise _stopped() from None
        return answer.result()

    # The methods below run on the loop.

    def cancel(self) -> None:
        """Cancel all handlers. Their requests are handed back, and so are later ones."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        for run in self._lost:
            run.end(None, _stopped())

    def _go_on(self, run: _Run, answer: Future[Any], wanted: int, work: Coroutine[Any, Any, Any] | None) -> None:
        run.answer, run.wanted = answer, wanted
        if run.over or self._stopped:
            if work is not None:
                work.close()
            self._cancelled(run)
        elif work is None:
            run.again.set()
        else:
            task = self._loop.create_task(self._run(run, work))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, run: _Run, work: Coroutine[Any, Any, Any]) -> None:
        try:
            run.end(await work, None)
        except Exception as error:  # noqa: BLE001 - raised in the thread that answers
            run.end(None, error)
        except BaseException:
            self._cancelled(run)
            raise

    def _cancelled(self, run: _Run) -> None:
        """End a run whose task was cancelled: by `cancel` (its request is handed back), by the loop's end, which
        `cancel` follows, or by anybody else: then the handler has failed."""
        if not self._stopped and self._ending():
            run.over = True
            self._lost.append(run)
        else:
            run.end(None, _stopped() if self._stopped else concurrent.futures.CancelledError())


class _Run:
    """A handler's task. `wanted`: how many objects the thread wants; 0: no more. `again` is set when it wants more."""

    def __init__(self) -> None:
        self.answer: Future[Any] = Future()
        self.wanted = 0
        self.again = asyncio.Event()
        self.over = False

    def end(self, result: Any, error: Exception | None) -> None:
        self.over = True
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(result)
        else:
            self.answer.set_exception(error)


class _Feed(_Run):
    """The task of an asynchronous generator. An object of the class `whole` is a reply by itself, and is handed over at
    once."""

    def __init__(self, source: AsyncIterable[Any], whole: type[Any] | tuple[()]) -> None:
        super().__init__()
        self._source = source
        self._whole = whole

    async def work(self) -> _Lot:
        """Hand over one lot after another, as the thread asks for them, and return the last one."""
        async with _closed_at_the_end(self._source) as objects:
            return await self._lots(objects), False

    async def _lots(self, objects: AsyncIterable[Any]) -> list[Any]:
        lot: list[Any] = []
        try:
            async for item in objects:
                lot.append(item)
                if len(lot) >= self.wanted or isinstance(item, self._whole):
                    lot = await self._give(lot)
                if not self.wanted:
                    break
        except Exception:
            if lot:  # they were yielded before
                lot = await self._give(lot)
            if self.wanted:
                raise
        return lot

    async def _give(self, lot: list[Any]) -> list[Any]:
        """Hand a lot over, wait until the thread asks for more, and return the next lot, which is empty."""
        self.again.clear()
        self.answer.set_result((lot, True))
        await self.again.wait()
        return []


@asynccontextmanager
async def _closed_at_the_end(source: AsyncIterable[Any]) -> AsyncIterator[AsyncIterable[Any]]:
    """Close the generator at the end of the block, so that its `finally` blocks run now even if items are left."""
    try:
        yield source
    finally:
        close: Callable[[], Awaitable[None]] | None = getattr(source, "aclose", None)
        if close is not None:
            await close()


class _BlockingService(SupplierBase):
    """Wraps a service: its handlers return plain values and iterators, also if the originals are asynchronous."""

    def __init__(self, service: SupplierBase, handlers: LoopHandlers) -> None:
        self._service = service
        self._handlers = handlers
        self.__service__ = service.__service__  # type: ignore[misc] # on the instance: it stands in for the other

    def handler(self, operation: OperationInfo) -> Callable[[Any, RequestContext], Any]:
        handle = self._service.handler(operation)

        def answered(request: Any, context: RequestContext) -> Any:
            return self._handlers.resolve(handle(request, context), self._service, context)

        return answered


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result


def _stopped() -> ProviderError:
    return ProviderError(IllegalStateError("the supplier was stopped"))
