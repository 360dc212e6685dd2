"""What a generated service module leans on for asyncio: its operations to be awaited, with the signatures they have.

`stub.aio.operation(...)` takes what `stub.operation(...)` takes. There is no second copy of a method: `operation` reads
the signatures off the generated ones, and at run time calls them with an `AsyncOperation` in the place of the
`BoundOperation`, so that what they hand over goes to the caller's asynchronous form.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Protocol, Self, TypeAlias, TypeVar, overload

from mtosi_jms.bulk import BulkReply, BulkTerms
from mtosi_jms.service import Batches, BoundOperation, CallOptions, OperationInfo, Service, ServiceInfo
from mtosi_jms.xmlbind import XmlObject

__all__ = ["Answer", "AsyncBatches", "AsyncCall", "AsyncCaller", "AsyncOperation", "AsyncView", "Done", "operation"]

Call = ParamSpec("Call")
Many = ParamSpec("Many")
Item = TypeVar("Item")
Whole = TypeVar("Whole")
Response = TypeVar("Response")
Response_co = TypeVar("Response_co", covariant=True)

Answer: TypeAlias = (
    Iterable[Item | Whole] | AsyncIterable[Item | Whole] | Awaitable[Iterable[Item | Whole] | Whole] | Whole
)
"""What a supplier's handler returns: objects and whole responses, or one response; blocking or not."""

Done: TypeAlias = Awaitable[None] | None
"""What a supplier's handler of a one-way operation returns."""


class AsyncBatches(Protocol[Response_co]):
    """The responses of one MultipleBatchResponse call, in order, each once, as soon as order allows.

    The request is sent when the first batch is waited for, or by `async with`. Iteration raises what ended the
    exchange when everything before it was handed out, as `Batches` does.
    """

    @property
    def correlation_id(self) -> str:
        """The request's correlationId; empty as long as it was not sent."""
        ...

    @property
    def held(self) -> Mapping[int, Response_co]:
        """What had arrived by the time that the exchange ended badly and never had its turn, by batch number."""
        ...

    def close(self) -> None:
        """Give up what has not come; its replies will be orphans."""
        ...

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Response_co: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class AsyncCaller(Protocol):
    """Who carries calls for coroutines: `Requestor.aio`."""

    async def call(
        self, service: ServiceInfo, operation: OperationInfo, destination: Any, request: XmlObject, options: CallOptions
    ) -> Any:
        """See `mtosi_jms.service.Caller.call`."""
        ...

    def call_batches(
        self,
        service: ServiceInfo,
        operation: OperationInfo,
        destination: Any,
        request: XmlObject,
        batch_size: int,
        options: CallOptions,
    ) -> AsyncBatches[Any]:
        """See `mtosi_jms.service.Caller.call_batches`."""
        ...

    async def call_bulk(
        self,
        service: ServiceInfo,
        operation: OperationInfo,
        destination: Any,
        request: XmlObject,
        terms: BulkTerms,
        options: CallOptions,
    ) -> BulkReply[Any]:
        """See `mtosi_jms.service.Caller.call_bulk`."""
        ...


class AsyncView:
    """Base of what generated service stubs have as `aio`.

    Args:
        stub: the service stub.
    """

    __service__: ClassVar[ServiceInfo]

    def __init__(self, stub: Service) -> None:
        self._caller = stub.caller
        self.destination = stub.destination

    @property
    def caller(self) -> AsyncCaller:
        """Who carries the calls."""
        caller: AsyncCaller = self._caller.aio
        return caller

    def __repr__(self) -> str:
        return f"<{self.__service__.name} for asyncio at {self.destination}>"


class AsyncCall(Generic[Call, Response]):
    """An operation to be awaited."""

    def __init__(self, bound: Any, call: Callable[Concatenate[Any, Call], Response]) -> None:
        self._bound = bound
        self._call = call

    def __call__(self, *args: Call.args, **kwargs: Call.kwargs) -> Coroutine[Any, Any, Response]:
        """Carry out one call with one answer, or none; what the blocking form raises is raised by awaiting.

        Raises:
            ConfigError: both a request and fields were given, or a required field is missing.
        """
        coroutine: Any = self._call(self._bound, *args, **kwargs)
        return coroutine  # type: ignore[no-any-return]


class AsyncOperation(AsyncCall[Call, Response], Generic[Call, Many, Response]):
    """An operation to be awaited, and its responses to be iterated over."""

    def __init__(
        self,
        bound: Any,
        call: Callable[Concatenate[Any, Call], Response],
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


class _OneWay(Generic[Call, Response]):
    """Makes the operation of a view; a descriptor."""

    def __init__(self, call: Callable[Concatenate[Any, Call], Response]) -> None:
        self._call = call

    def __set_name__(self, owner: type[AsyncView], name: str) -> None:
        names = [operation.python_name for operation in owner.__service__.operations]
        self._index = names.index(name)

    def _bound(self, view: Any) -> BoundOperation[Any, Any]:
        return BoundOperation(view, self._index)  # its caller, and so what it returns, is the asynchronous one

    def __get__(self, view: AsyncView, owner: object = None) -> AsyncCall[Call, Response]:
        return AsyncCall(self._bound(view), self._call)


class _RequestResponse(_OneWay[Call, Response], Generic[Call, Many, Response]):
    def __init__(
        self,
        call: Callable[Concatenate[Any, Call], Response],
        many: Callable[Concatenate[Any, Many], Batches[Response]],
    ) -> None:
        super().__init__(call)
        self._many = many

    def __get__(self, view: AsyncView, owner: object = None) -> AsyncOperation[Call, Many, Response]:
        return AsyncOperation(self._bound(view), self._call, self._many)


@overload
def operation(call: Callable[Concatenate[Any, Call], Response], /) -> _OneWay[Call, Response]: ...


@overload
def operation(
    call: Callable[Concatenate[Any, Call], Response], many: Callable[Concatenate[Any, Many], Batches[Response]], /
) -> _RequestResponse[Call, Many, Response]: ...


def operation(call: Any, many: Any = None, /) -> Any:
    """An operation of a view, with the signatures of the blocking one.

    Args:
        call: its `__call__`.
        many: its `batches`, where it has a response.
    """
    return _OneWay(call) if many is None else _RequestResponse(call, many)
