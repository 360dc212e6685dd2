"""Handlers that are coroutines or asynchronous generators, run by a loop for the threads that answer requests.

A thread asks, one task of the loop gives: a task runs a handler from its first line to its last. What an asynchronous
generator yields goes over in lots that are just large enough for the next reply, so that it is never ahead of
what is sent, and changing threads costs once a batch and not once an object.
"""

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
"""Objects handed over at once where all go out in a single reply."""

_Lot: TypeAlias = tuple[list[Any], bool]
"""Objects, and whether more may come."""


class LoopHandlers:
    """The handlers that one loop runs for a supplier.

    Args:
        loop: the loop.
        eager: whether a batch is sent without a look at the object after it; see `Supplier`.
        ending: whether `cancel` is going to be called: a loop that ends cancels all its tasks, handlers among them.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, eager: bool, ending: Callable[[], bool]) -> None:
        self._loop = loop
        self._ending = ending
        self._ahead = 0 if eager else 1
        self._tasks: set[asyncio.Task[None]] = set()
        self._lost: list[_Run] = []
        self._stopped = False

    def over(self, service: SupplierBase) -> SupplierBase:
        """The same service for threads: its handlers block until the loop has what they give."""
        return _BlockingService(service, self)

    def resolve(self, result: Any, service: SupplierBase, context: RequestContext) -> Any:
        """What a handler returned, with nothing to be awaited in it; for the thread that answers.

        Raises:
            Exception: what the handler raised.
            ProviderError: the supplier was stopped.
        """
        if isinstance(result, Awaitable):
            result = self._ask(_Run(), work=_awaited(result))
        if isinstance(result, AsyncIterable):
            path = context.operation.response
            return self._objects(_Feed(result, service.__service__.load(path) if path else ()), context.batch_size)
        return result

    def _objects(self, feed: _Feed, size: int) -> Iterator[Any]:
        """What an asynchronous generator yields. Closing the iterator closes the generator."""
        more = False
        try:
            lot, more = self._ask(feed, size + self._ahead if size else _LOT, work=feed.work())
            yield from lot
            while more:
                lot, more = self._ask(feed, size or _LOT)
                yield from lot
        except GeneratorExit:
            if more:
                self._ask(feed, 0)
            raise

    def _ask(self, run: _Run, wanted: int = 1, *, work: Coroutine[Any, Any, Any] | None = None) -> Any:
        """Have a task begin with some work, or go on with it, and wait for what it gives."""
        answer: Future[Any] = Future()
        try:
            self._loop.call_soon_threadsafe(self._go_on, run, answer, wanted, work)
        except RuntimeError:  # the loop is closed
            if work is not None:
                work.close()
            raise _stopped() from None
        return answer.result()

    # What follows is for the loop.

    def cancel(self) -> None:
        """Cancel all handlers; their requests are handed back, and so are those that still come."""
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
        """By us; by the loop, and then we are about to; or by anybody else, which is a failure like any other."""
        if not self._stopped and self._ending():
            run.over = True
            self._lost.append(run)
        else:
            run.end(None, _stopped() if self._stopped else concurrent.futures.CancelledError())


class _Run:
    """A handler's task.

    Attributes:
        answer: what a thread waits for.
        wanted: how many objects it wants; 0: no more.
        again: set when it wants more.
        over: the task has ended.
    """

    def __init__(self) -> None:
        self.answer: Future[Any] = Future()
        self.wanted = 0
        self.again = asyncio.Event()
        self.over = False

    def end(self, result: Any, error: Exception | None) -> None:
        """The task has ended; if nobody waits, the next one that asks is told."""
        self.over = True
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(result)
        else:
            self.answer.set_exception(error)


class _Feed(_Run):
    """The task of an asynchronous generator.

    Args:
        source: the generator.
        whole: class of the operation's responses; one is a reply by itself, and not held up for others.
    """

    def __init__(self, source: AsyncIterable[Any], whole: type[Any] | tuple[()]) -> None:
        super().__init__()
        self._source = source
        self._whole = whole

    async def work(self) -> _Lot:
        """Give one lot after another, as they are asked for, and return the last one."""
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
        """Hand a lot over and wait to be asked again, for the next one."""
        self.again.clear()
        self.answer.set_result((lot, True))
        await self.again.wait()
        return []


@asynccontextmanager
async def _closed_at_the_end(source: AsyncIterable[Any]) -> AsyncIterator[AsyncIterable[Any]]:
    """A generator that is not run to its end has its own `finally` run now."""
    try:
        yield source
    finally:
        close: Callable[[], Awaitable[None]] | None = getattr(source, "aclose", None)
        if close is not None:
            await close()


class _BlockingService(SupplierBase):
    """A service whose handlers give plain values, whatever those of the other one give."""

    def __init__(self, service: SupplierBase, handlers: LoopHandlers) -> None:
        self._service = service
        self._handlers = handlers
        self.__service__ = service.__service__  # type: ignore[misc] # the instance's own: it stands for the other one

    def handler(self, operation: OperationInfo) -> Callable[[Any, RequestContext], Any]:
        """See `SupplierBase.handler`."""
        handle = self._service.handler(operation)

        def answered(request: Any, context: RequestContext) -> Any:
            return self._handlers.resolve(handle(request, context), self._service, context)

        return answered


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result


def _stopped() -> ProviderError:
    return ProviderError(IllegalStateError("the supplier was stopped"))
