"""What a generated service module leans on: operation descriptors, the caller that a requestor implements, and the
base of supplier classes.

A service stub holds no connection: it turns keyword arguments into a request object and hands it, with the
operation's descriptor, to a `Caller`. Which pattern answers is decided by each call (O8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import TracebackType
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, Self, TypeVar

from mtosi_jms.bulk import BulkReply, BulkTerms
from mtosi_jms.errors import ConfigError, MtosiFault
from mtosi_jms.xmlbind import XmlObject, find_element, find_type, register_package, resolve_class

__all__ = [
    "Batches",
    "BoundOperation",
    "CallOptions",
    "Caller",
    "OperationInfo",
    "RequestContext",
    "Service",
    "ServiceInfo",
    "SupplierBase",
    "find_element",
    "find_type",
    "register_package",
]

Request = TypeVar("Request")
Response = TypeVar("Response")
Response_co = TypeVar("Response_co", covariant=True)
Mep = Literal["request-response", "one-way"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationInfo:
    """One operation of a service interface, as its WSDL binding declares it.

    Attributes:
        name: WSDL name (`getAllManagedElements`).
        python_name: name of the method.
        mep: message exchange pattern; `one-way` where there is no output (P26).
        request, response, fault: paths of the element classes below the service's root; empty where there is none.
        request_message, response_message, fault_message: names of the WSDL messages, the header's msgName.
        batch_path: Python names from the response down to the list that a batch splits; empty where a response
            cannot be cut by the SDK.
    """

    name: str
    python_name: str
    mep: Mep = "request-response"
    request: str = ""
    response: str = ""
    fault: str = ""
    request_message: str = ""
    response_message: str = ""
    fault_message: str = ""
    batch_path: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ServiceInfo:
    """One service interface and where its classes live.

    Attributes:
        name: interface name (`ManagedElementRetrieval`).
        namespace: namespace of the WSDL.
        port_type: name of the port type.
        address: the address of the WSDL's port, a deployment example in TM Forum's files.
        root: package that class paths are relative to.
        operations: in the order of the WSDL.
    """

    name: str
    namespace: str
    root: str
    port_type: str = ""
    address: str = ""
    operations: tuple[OperationInfo, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, OperationInfo]:
        """Operations by WSDL name."""
        return {operation.name: operation for operation in self.operations}

    def load(self, path: str) -> type[XmlObject]:
        """The class of a path in this service's package.

        Raises:
            ConfigError: the package has no such class.
        """
        cls: type[XmlObject] = resolve_class(path, self.root)
        return cls

    @cached_property
    def by_request_tag(self) -> Mapping[str, OperationInfo]:
        """Operations by the Clark name of their request element."""
        return {str(self.load(op.request).__xml__.tag): op for op in self.operations if op.request}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """What one call may set besides the request itself; None leaves a choice to the requestor.

    Attributes:
        timeout: seconds for the whole call: sending, waiting for room or for a connection that was lost, and replies.
        gap_timeout: seconds without any further reply before an exchange of several replies is given up.
        priority: JMSPriority, 0 to 9.
        time_to_live: seconds that a message may live at the provider; 0 for ever (O7).
        persistent: whether the provider must store the request (O6).
        on_conflict: what a batch number that comes again with another content does: "error" ends the iteration with a
            ProtocolError, "keep_first" goes on with the first one (P32).
        correlation_id: the header's correlationId instead of a generated one (R3b).
        header: further header fields by Python name (`originator_uri`, `vendor_extensions`, ...).
        on_reply: called with the envelope of each reply before its response is handed out: there stand the header and
            the warnings. What it raises goes to the caller.
    """

    timeout: float | None = None
    gap_timeout: float | None = None
    priority: int | None = None
    time_to_live: float | None = None
    persistent: bool | None = None
    on_conflict: Literal["error", "keep_first"] | None = None
    correlation_id: str | None = None
    header: Mapping[str, Any] = field(default_factory=dict)
    on_reply: Callable[[Any], object] | None = None

    @staticmethod
    def of(options: CallOptions | None, timeout: float | None) -> CallOptions:
        """The options of a call that has its `timeout` by itself, too; that one wins."""
        options = options or _NO_OPTIONS
        return options if timeout is None else replace(options, timeout=timeout)


_NO_OPTIONS: Final = CallOptions()


class Batches(Iterator[Response_co], Protocol[Response_co]):
    """The responses of one MultipleBatchResponse call, in order, each once, as soon as order allows.

    Iteration raises what ended the exchange when everything before it was handed out: a fault (C59), the missing
    numbers (P32), a reply that cannot be read. One that is not iterated to its end wants closing, best by `with`.
    """

    @property
    def correlation_id(self) -> str:
        """The request's correlationId."""
        ...

    @property
    def held(self) -> Mapping[int, Response_co]:
        """What had arrived by the time that the exchange ended badly and never had its turn, by batch number."""
        ...

    def close(self) -> None:
        """Give up what has not come; its replies will be orphans."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Caller(Protocol):
    """Who carries calls: a requestor. Implementations are thread-safe."""

    def call(
        self, service: ServiceInfo, operation: OperationInfo, destination: Any, request: XmlObject, options: CallOptions
    ) -> Any:
        """Send a request and return its one response (SimpleResponse); nothing for a one-way operation."""
        ...

    def call_batches(
        self,
        service: ServiceInfo,
        operation: OperationInfo,
        destination: Any,
        request: XmlObject,
        batch_size: int,
        options: CallOptions,
    ) -> Batches[Any]:
        """Send a request and return its responses in order, each once (MultipleBatchResponse)."""
        ...

    def call_bulk(
        self,
        service: ServiceInfo,
        operation: OperationInfo,
        destination: Any,
        request: XmlObject,
        terms: BulkTerms,
        options: CallOptions,
    ) -> BulkReply[Any]:
        """Send a request whose answer lies in a file, and return the one reply (BulkResponse)."""
        ...

    @property
    def aio(self) -> Any:
        """The same for coroutines: an `mtosi_jms.service.aio.AsyncCaller`."""
        ...


class BoundOperation(Generic[Request, Response]):
    """An operation of a service at a destination; generated subclasses give it its signature."""

    def __init__(self, service: Service, index: int) -> None:
        self._service = service
        self.info = service.__service__.operations[index]

    def _request(self, request: Any, fields: Mapping[str, Any]) -> Any:
        given = {name: value for name, value in fields.items() if value is not None}
        if request is not None:
            if given:
                raise ConfigError(f"{self.info.python_name}: give a request or its fields, not both")
            return request
        cls = self._service.__service__.load(self.info.request)
        try:
            return cls(**given)
        except TypeError as error:
            raise ConfigError(f"{self.info.python_name}: {error}") from None

    @property
    def _caller(self) -> Caller:
        return self._service.caller

    def _call(self, request: Any, fields: Mapping[str, Any]) -> tuple[ServiceInfo, OperationInfo, Any, Any]:
        """What every pattern of call begins with."""
        service = self._service
        return service.__service__, self.info, service.destination, self._request(request, fields)

    def invoke(self, request: Request | None, options: CallOptions | None, /, **fields: Any) -> Response:
        """Carry out one call with one answer.

        Raises:
            ConfigError: both a request and fields were given, or a required field is missing.
            MtosiFault: the supplier answered with a fault.
            ReplyTimeoutError: no answer in time.
        """
        response: Response = self._caller.call(*self._call(request, fields), options or _NO_OPTIONS)
        return response

    def invoke_batches(
        self, request: Request | None, batch_size: int, options: CallOptions | None, /, **fields: Any
    ) -> Batches[Response]:
        """Carry out one call with several answers.

        Raises:
            As `invoke`, and IncompleteBatchError when batches are missing at the end or when time runs out.
        """
        return self._caller.call_batches(*self._call(request, fields), batch_size, options or _NO_OPTIONS)

    def bulk(
        self,
        request: Request | None = None,
        /,
        *,
        file_location_uri: str,
        compression: str = "NO_COMPRESSION",
        packing: str = "NO_PACKING",
        batch_size: int | None = None,
        options: CallOptions | None = None,
        timeout: float | None = None,
        **fields: Any,
    ) -> BulkReply[Response]:
        """Ask for the answer in a file: the pattern BulkResponse (P2, C18). Experimental.

        Args:
            request: the request, or its fields by name instead.
            file_location_uri: the file that the supplier is to write.
            compression, packing: values of `Compression` and `Packing`.
            batch_size: objects in one document of a packed file at most; None or 0: all in one.
            options: what this call sets.
            timeout: seconds for the whole call.
            **fields: of the request.

        Raises:
            As `invoke`; ConfigError also for other ways to compress or pack, and for a one-way operation.
        """
        terms = BulkTerms.of(file_location_uri, compression, packing, batch_size)
        return self._caller.call_bulk(*self._call(request, fields), terms, CallOptions.of(options, timeout))


class Service:
    """Base of generated service stubs.

    Args:
        caller: who carries the calls: a `Requestor`.
        destination: where the supplier listens: a name of the naming context, a destination object, or a JMS URI, whose
            delivery mode, time to live, priority and reply name hold for each request (C42).
    """

    __service__: ClassVar[ServiceInfo]

    def __init__(self, caller: Caller, destination: Any) -> None:
        self.caller = caller
        self.destination = destination

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.destination}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """What a supplier's handler may want to know of the request.

    Attributes:
        operation: the operation called.
        header: the request's MTOSI header object.
        message: the JMS message it came in.
        batch_size: objects wanted in one response; 0 for one response with all (C24).
        bulk: in the pattern BulkResponse what the requestor wants of the file, which the supplier makes of what the
            handler gives; None in any other pattern.
        reply_fields: header fields to add to the responses, by Python name; the handler may fill it.
    """

    operation: OperationInfo
    header: Any
    message: Any
    batch_size: int = 0
    bulk: BulkTerms | None = None
    reply_fields: dict[str, Any] = field(default_factory=dict)

    @property
    def correlation_id(self) -> str | None:
        """The request's correlationId as it came."""
        value: str | None = self.header.correlation_id
        return value


class SupplierBase:
    """Base of generated supplier classes: one method an operation; what is not overridden answers notImplemented."""

    __service__: ClassVar[ServiceInfo]

    def not_implemented(self, operation: str) -> MtosiFault:
        """The fault of an operation that a supplier does not offer."""
        return MtosiFault(f"{operation} is not implemented by this supplier", kind="notImplemented")

    def handler(self, operation: OperationInfo) -> Callable[[Any, RequestContext], Any]:
        """The method that answers an operation."""
        method: Callable[[Any, RequestContext], Any] = getattr(self, operation.python_name)
        return method
