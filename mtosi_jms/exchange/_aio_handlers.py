"""Runs handlers that are coroutines or asynchronous generators on an event loop, for the threads that answer requests.

One task runs a handler from its first line to its last. The objects of a generator are handed over in lots just large
enough for the next reply: it never runs ahead of what is sent, and threads change once per batch, not per object."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from mtosi_jms.errors import IllegalStateError
from mtosi_jms.exchange._reply_writer import ProviderError
from mtosi_jms.service import OperationInfo, RequestContext, SupplierBase

_LOT: Final = 256
"""How many objects are handed over at once if all go out in a single reply."""

_Lot: TypeAlias = tuple[list[Any], bool]
"""Some objects, and whether more may come."""


class LoopHandlers:
    """The handlers that one loop runs. `ending`: whether `cancel` is about to be called; a loop that ends cancels all
    its tasks, handlers too."""

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
