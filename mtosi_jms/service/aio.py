"""The asyncio base of generated service modules: their operations as coroutines, with the same signatures.

`stub.aio.operation(...)` takes the same arguments as `stub.operation(...)`. There is no second copy of a method:
`operation` takes the signatures from the generated methods. At run time it calls these with an `AsyncOperation` in
place of the `BoundOperation`, so that calls go to the asynchronous caller.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeAlias, TypeVar, overload

from mtosi_jms.bulk import BulkReply
from mtosi_jms.masking import shown_half_made, without_login
from mtosi_jms.service import (
    AsyncBatches,
    AsyncCaller,
    Batches,
    BoundOperation,
    CallOptions,
    Objects,
    Service,
    ServiceInfo,
    objects_in,
)

__all__ = [
    "Answer",
    "AsyncBatches",
    "AsyncCall",
    "AsyncCaller",
    "AsyncListOperation",
    "AsyncObjects",
    "AsyncOperation",
    "AsyncView",
    "Done",
    "operation",
]

One = ParamSpec("One")
Many = ParamSpec("Many")
Flat = ParamSpec("Flat")
Item = TypeVar("Item")
Whole = TypeVar("Whole")
Response = TypeVar("Response")
Made_co = TypeVar("Made_co", covariant=True)

Answer: TypeAlias = (
    Iterable[Item | Whole] | AsyncIterable[Item | Whole] | Awaitable[Iterable[Item | Whole] | Whole] | Whole
)
"""What a supplier's handler returns: objects and whole responses, or one response; blocking or not."""

Done: TypeAlias = Awaitable[None] | None
"""What a supplier's handler of a one-way operation returns."""


class AsyncObjects(AsyncIterator[Item], Generic[Item]):
    """The objects of all batches of one call, one after another: complete, or an error at the end."""

    def __init__(self, batches: AsyncBatches[Any], path: tuple[str, ...]) -> None:
        self.batches = batches
        self._path = path
        self._left: Iterator[Item] = iter(())

    async def __anext__(self) -> Item:
        while True:
            for item in self._left:
                return item
            self._left = iter(objects_in(await anext(self.batches), self._path))

    def close(self) -> None:
        self._left = iter(())
        self.batches.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class AsyncView:
    """Base of what generated service stubs have as `aio`."""

    __service__: ClassVar[ServiceInfo]

    def __init__(self, stub: Service) -> None:
        self._caller = stub.caller
        self.destination = stub.destination

    @property
    def caller(self) -> AsyncCaller:
        return self._caller.aio

    @shown_half_made
    def __repr__(self) -> str:
        return f"<{self.__service__.name} for asyncio at {without_login(str(self.destination))}>"


class AsyncCall(Generic[One, Response]):
    """An operation to be awaited."""

    def __init__(self, bound: Any, call: Callable[Concatenate[Any, One], Response]) -> None:
        self._bound = bound
        self._call = call

    def __call__(self, *args: One.args, **kwargs: One.kwargs) -> Coroutine[Any, Any, Response]:
        """Carry out one call with one answer, or none; what the blocking form raises is raised by awaiting. Raises
        ConfigError: both a request and fields were given, or a required field is missing."""
        coroutine: Any = self._call(self._bound, *args, **kwargs)
        return coroutine  # type: ignore[no-any-return]


class AsyncOperation(AsyncCall[One, Response], Generic[One, Many, Response]):
    """An operation to be awaited, and its responses to be iterated over."""

    def __init__(
        self,
        bound: Any,
        call: Callable[Concatenate[Any, One], Response],
        many: Callable[Concatenate[Any, Many], Batches[Response]],
    ) -> None:
        super().__init__(bound, call)
        self._many = many

    def batches(self, *args: Many.args, **kwargs: Many.kwargs) -> AsyncBatches[Response]:
        """Carry out one call with several answers, each with `batch_size` objects at most."""
        batches: Any = self._many(self._bound, *args, **kwargs)
        return batches  # type: ignore[no-any-return]

    def bulk(
        self,
        request: Any = None,
        /,
        *,
        file_location_uri: str,
        compression: str = "NO_COMPRESSION",
        packing: str = "NO_PACKING",
        batch_size: int | None = None,
        options: CallOptions | None = None,
        timeout: float | None = None,
        **fields: Any,
    ) -> Coroutine[Any, Any, BulkReply[Response]]:
        """Ask for the answer in a file; see `BoundOperation.bulk`. Experimental."""
        coroutine: Any = self._bound.bulk(
            request,
            file_location_uri=file_location_uri,
            compression=compression,
            packing=packing,
            batch_size=batch_size,
            options=options,
            timeout=timeout,
            **fields,
        )
        return coroutine  # type: ignore[no-any-return]


class AsyncListOperation(AsyncOperation[One, Many, Response], Generic[One, Many, Flat, Response, Item]):
    """The same, whose responses are lists of objects."""

    def __init__(
        self,
        bound: Any,
        call: Callable[Concatenate[Any, One], Response],
        many: Callable[Concatenate[Any, Many], Batches[Response]],
        flat: Callable[Concatenate[Any, Flat], Objects[Item]],
    ) -> None:
        super().__init__(bound, call, many)
        self._flat = flat

    def objects(self, *args: Flat.args, **kwargs: Flat.kwargs) -> AsyncObjects[Item]:
        """Carry out one call with several answers, and hand out their objects one by one."""
        objects: Any = self._flat(self._bound, *args, **kwargs)
        return AsyncObjects(objects.batches, self._bound.info.batch_path)


class _Operation(Generic[Made_co]):
    def __init__(self, made: Callable[..., Made_co], calls: tuple[Any, ...]) -> None:
        self._made = made
        self._calls = calls

    def __set_name__(self, owner: type[AsyncView], name: str) -> None:
        names = [operation.python_name for operation in owner.__service__.operations]
        self._index = names.index(name)

    def __get__(self, view: Any, owner: object = None) -> Made_co:
        # The view's caller, and so what the operation returns, is the asynchronous one.
        return self._made(BoundOperation(view, self._index), *self._calls)


@overload
def operation(call: Callable[Concatenate[Any, One], Response], /) -> _Operation[AsyncCall[One, Response]]: ...


@overload
def operation(
    call: Callable[Concatenate[Any, One], Response], many: Callable[Concatenate[Any, Many], Batches[Response]], /
) -> _Operation[AsyncOperation[One, Many, Response]]: ...


@overload
def operation(
    call: Callable[Concatenate[Any, One], Response],
    many: Callable[Concatenate[Any, Many], Batches[Response]],
    flat: Callable[Concatenate[Any, Flat], Objects[Item]],
    /,
) -> _Operation[AsyncListOperation[One, Many, Flat, Response, Item]]: ...


def operation(*calls: Any) -> Any:
    """An operation of a view, with the signatures of the blocking one: its `__call__`, its `batches` where it has a
    response, and its `objects` where that response is a list of objects."""
    return _Operation((AsyncCall, AsyncOperation, AsyncListOperation)[len(calls) - 1], calls)
