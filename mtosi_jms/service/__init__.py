"""The base of generated service modules: operation descriptors, the caller that a requestor implements, and the base of
supplier classes.

A service stub holds no connection: it turns keyword arguments into a request object and hands it, with the
operation's descriptor, to a `Caller`. Each call chooses its communication pattern (O8).
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar, cast

from mtosi_jms.bulk import BulkReply, BulkTerms
from mtosi_jms.closing import Closeable
from mtosi_jms.errors import ConfigError, MtosiFault
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.masking import shown_half_made, shown_in_part, without_login
from mtosi_jms.soap import Envelope, Header, correlation_id, names_of, tag_of
from mtosi_jms.xmlbind import (
    DistinguishedNameMixin,
    RawXml,
    XmlObject,
    find_element,
    find_type,
    register_package,
    resolve_class,
)

__all__ = [
    "Address",
    "AsyncBatches",
    "AsyncCaller",
    "Batches",
    "BoundOperation",
    "Call",
    "CallOptions",
    "Caller",
    "Handler",
    "Objects",
    "OperationInfo",
    "RequestContext",
    "Service",
    "ServiceInfo",
    "SupplierBase",
    "check_count",
    "check_seconds",
    "find_element",
    "find_type",
    "objects_in",
    "register_package",
]

Request = TypeVar("Request")
Response = TypeVar("Response")
Response_co = TypeVar("Response_co", covariant=True)
Item = TypeVar("Item")
Mep = Literal["request-response", "one-way"]

Address: TypeAlias = str | Destination
"""The address of a supplier: a name of the naming context, a destination, or a JMS URI. Delivery mode, time to live,
priority and reply name of a JMS URI apply to each request (C42)."""


def check_seconds(name: str, value: object, *, zero: bool = False) -> None:
    """Check that an argument is None or a number of seconds: more than 0, or with `zero`, at least 0. Raises
    ConfigError: it is not."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{name}: give seconds as a number, not {value!r}")
    if not (value > 0 or (zero and value == 0)):
        raise ConfigError(f"{name}: seconds must be {'0 or more' if zero else 'more than 0'}, not {value}")


def check_count(name: str, value: object) -> None:
    """Check that an argument is a whole number. Raises ConfigError: it is not."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{name}: give a whole number, not {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationInfo:
    """One operation of a service interface, as its WSDL binding declares it.

    Attributes:
        mep: message exchange pattern; `one-way` if there is no output (P26).
        request, response, fault: paths of the element classes below the service's root; empty if there is none. For a
            service without classes, the Clark names of the elements; then an empty response means any.
        request_message, response_message, fault_message: names of the WSDL messages, the header's msgName.
        headers: paths of the classes of the header blocks, beside the MTOSI header, that the WSDL declares for its
            messages. They count as understood.
        batch_path: Python names from the response down to the list that is split into batches; empty if the SDK cannot
            split a response.
        soap_action: the SOAP action of the WSDL; empty if it has none.
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
    headers: tuple[str, ...] = ()
    batch_path: tuple[str, ...] = ()
    soap_action: str = ""


@dataclass(frozen=True, kw_only=True)
class ServiceInfo:
    """One service interface and where its classes live.

    Attributes:
        address: the address of the WSDL's port, a deployment example in TM Forum's files.
        root: package that class paths are relative to; empty for a service without classes, whose callers see
            envelopes (`on_request`, `on_reply`) and take what any package makes of a body.
        transport: the transport that the WSDL's binding names, where that is W3C's SOAP over JMS; else empty.
        soap_version: that of the WSDL's binding; requests are sent in it.
        delivery: options that the WSDL sets for calls: pairs of a name in `CallOptions` and a value. A call, its
            address and the requestor's `persistent` count before them.
    """

    name: str
    namespace: str
    root: str
    port_type: str = ""
    address: str = ""
    transport: str = ""
    soap_version: str = "1.1"
    delivery: tuple[tuple[str, Any], ...] = ()
    operations: tuple[OperationInfo, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, OperationInfo]:
        return {operation.name: operation for operation in self.operations}

    def load(self, path: str) -> type[XmlObject]:
        """The class of a path in this service's package. Raises ConfigError: the package has no such class."""
        cls: type[XmlObject] = resolve_class(path, self.root)
        return cls

    def header_tags(self, operation: OperationInfo) -> frozenset[str]:
        """The Clark names of the header blocks that the WSDL declares for an operation."""
        return frozenset(str(self.load(path).__xml__.tag) for path in operation.headers)

    @cached_property
    def by_request_tag(self) -> Mapping[str, tuple[OperationInfo, ...]]:
        """Operations by the Clark name of their request element; several may share one, see `registry.chosen`."""
        found: dict[str, tuple[OperationInfo, ...]] = {}
        for operation in self.operations:
            if operation.request:
                tag = str(self.load(operation.request).__xml__.tag)
                found[tag] = (*found.get(tag, ()), operation)
        return found


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CallOptions:
    """What one call may set besides the request itself; None leaves a choice to the requestor.

    Attributes:
        timeout: seconds for the whole call: sending, waiting for room or for a reconnect, and waiting for replies.
        gap_timeout: seconds without a further reply after which an exchange of several replies is given up.
        priority: JMSPriority, 0 to 9.
        time_to_live: seconds that a message may live at the provider; 0 for ever (O7).
        persistent: whether the provider must store the request (O6).
        on_conflict: what happens if a batch number comes again with other content: "error" ends the iteration with a
            ProtocolError, "keep_first" goes on with the first content (P32).
        correlation_id: the header's correlationId instead of a generated one (R3b).
        header: further header fields by Python name (`originator_uri`, `vendor_extensions`, ...).
        understands: header blocks that the caller understands, as Clark names or classes of elements. A reply with
            another block that must be understood is an error, unless the operation's WSDL declares it.
        on_request: called with the envelope of the request before it is sent. The envelope that it returns is sent
            instead, with JMS headers and properties from its header. If it raises an error, the caller gets that, and
            nothing is sent.
        on_reply: called with the envelope of each reply, which has the header and the warnings, before its response is
            handed out. If it raises an error, the caller gets that.
    """

    timeout: float | None = None
    gap_timeout: float | None = None
    priority: int | None = None
    time_to_live: float | None = None
    persistent: bool | None = None
    on_conflict: Literal["error", "keep_first"] | None = None
    correlation_id: str | None = None
    header: Mapping[str, object] = field(default_factory=dict, repr=False)
    understands: Collection[str | type[XmlObject]] = ()
    on_request: Callable[[Envelope], Envelope] | None = None
    on_reply: Callable[[Envelope], object] | None = None

    __repr__ = shown_in_part

    def __post_init__(self) -> None:
        check_seconds("timeout", self.timeout)
        check_seconds("gap_timeout", self.gap_timeout)
        check_seconds("time_to_live", self.time_to_live, zero=True)
        if self.time_to_live == math.inf:
            raise ConfigError("time_to_live: give 0 for a message that lives for ever, not inf")
        if self.priority is not None:
            check_count("priority", self.priority)
        if self.persistent not in (None, True, False):
            raise ConfigError(f"persistent: give True or False, not {self.persistent!r}")
        if self.on_conflict not in (None, "error", "keep_first"):
            raise ConfigError(f'on_conflict: give "error" or "keep_first", not {self.on_conflict!r}')
        names_of(self.understands)
        for name in ("on_request", "on_reply"):
            hook = getattr(self, name)
            if hook is not None and not callable(hook):
                raise ConfigError(f"{name}: give a function, not {hook!r}")

    @staticmethod
    def of(options: CallOptions | None, timeout: float | None) -> CallOptions:
        """Return the options of a call. The separate argument `timeout` overrides the one in the options. Raises
        ConfigError: something else in the place of options."""
        if options is None:
            options = _NO_OPTIONS
        elif not isinstance(options, CallOptions):
            raise ConfigError(f"options: give CallOptions(...), not {type(options).__name__}")
        return options if timeout is None else replace(options, timeout=timeout)


_NO_OPTIONS: Final = CallOptions()


class Batches(Iterator[Response_co], Protocol[Response_co]):
    """The responses of one MultipleBatchResponse call, in order, each once, as soon as order allows.

    When everything before it was handed out, iteration raises the error that ended the exchange: a fault (C59), missing
    batches (P32), or a reply that cannot be read. Close it, best by `with`, if you do not iterate to the end.
    """

    @property
    def correlation_id(self) -> str: ...

    @property
    def held(self) -> Mapping[int, Response_co]:
        """What had arrived by the time that the exchange ended badly and never had its turn, by batch number."""
        ...

    def close(self) -> None:
        """Give up what has not come; its replies will be orphans."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class AsyncBatches(Protocol[Response_co]):
    """The responses of one MultipleBatchResponse call, in order, each once, as soon as order allows.

    The request is sent or queued before the call returns. Iteration raises what `Batches` raises.
    """

    @property
    def correlation_id(self) -> str: ...

    @property
    def held(self) -> Mapping[int, Response_co]: ...

    def close(self) -> None: ...

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Response_co: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...


class Objects(Iterator[Item], Closeable, Generic[Item]):
    """The objects of all batches of one call, one after another: complete, or an error at the end. The path has the
    Python names from a response down to its list."""

    def __init__(self, batches: Batches[Any], path: tuple[str, ...]) -> None:
        self.batches = batches
        self._path = path
        self._left: Iterator[Item] = iter(())

    def __next__(self) -> Item:
        while True:
            for item in self._left:
                return item
            self._left = iter(objects_in(next(self.batches), self._path))

    def close(self) -> None:
        self._left = iter(())
        self.batches.close()


def objects_in(response: object, path: tuple[str, ...]) -> list[Any]:
    """The objects of one response; empty where it has no list, or a nil one. The path has Python names."""
    found: object = response
    for name in path:
        found = getattr(found, name, None)
    return found if isinstance(found, list) else []


class Call(NamedTuple):
    """One call as a stub hands it to a caller."""

    service: ServiceInfo
    operation: OperationInfo
    destination: Address
    request: XmlObject | RawXml
    options: CallOptions = _NO_OPTIONS

    def check(self) -> None:
        """Check that the request is one of the operation. The class may be of another package, the element may not.
        Raises ConfigError: it is the request of another operation, or no request."""
        service, wanted = self.service, self.operation.request
        if service.root and wanted:
            cls = service.load(wanted)
            if type(self.request) is cls:
                return
            wanted = str(cls.__xml__.tag)
        got = tag_of(self.request)
        if wanted not in ("", got):
            what = f"{got or 'what was given'} is not its request, which is {wanted}"
            raise ConfigError(f"{self.operation.name}: {what}; nothing was sent")


class Caller(Protocol):
    """Carries out calls: a requestor. Implementations are thread-safe."""

    def call(self, call: Call) -> XmlObject | RawXml | None:
        """Send a request and return its one response (SimpleResponse); nothing for a one-way operation."""
        ...

    def call_batches(self, call: Call, batch_size: int) -> Batches[XmlObject]:
        """Send a request and return its responses in order, each once (MultipleBatchResponse)."""
        ...

    def call_bulk(self, call: Call, terms: BulkTerms) -> BulkReply[XmlObject]:
        """Send a request whose answer lies in a file, and return the one reply (BulkResponse)."""
        ...

    @property
    def aio(self) -> AsyncCaller:
        """The same for coroutines."""
        ...


class AsyncCaller(Protocol):
    """Carries out calls for coroutines: `Requestor.aio`."""

    async def call(self, call: Call) -> XmlObject | RawXml | None: ...

    def call_batches(self, call: Call, batch_size: int) -> AsyncBatches[XmlObject]: ...

    async def call_bulk(self, call: Call, terms: BulkTerms) -> BulkReply[XmlObject]: ...


class BoundOperation(Generic[Request, Response]):
    """An operation of a service at a destination; generated subclasses give it its signature.

    The class of a service has each of its operations without a destination: for `help`, not to be called.
    """

    def __init__(self, service: Service | None, index: int) -> None:
        self._stub, self._index = service, index
        if service is not None:
            self.info = service.__service__.operations[index]

    def __set_name__(self, owner: type[Service], name: str) -> None:
        self.info = owner.__service__.operations[self._index]
        self._known_as(name, type(self).__call__.__doc__)

    def __get__(self, service: Service | None, owner: type[Service]) -> Self:
        if service is None:
            return self
        bound = vars(service)[self.__name__] = type(self)(service, self._index)
        bound._known_as(self.__name__, self.__doc__)
        return bound

    def _known_as(self, name: str, doc: str | None) -> None:
        """Have `help` show a function."""
        self.__name__, self.__doc__ = name, doc

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(cast(Any, self).__call__)

    @property
    def _service(self) -> Service:
        if self._stub is None:
            what = "is called on a stub: make one of the service's class, with a requestor and a destination"
            raise ConfigError(f"{self.info.python_name} {what}")
        return self._stub

    def _request(self, request: object, fields: Mapping[str, object]) -> XmlObject | RawXml:
        given = {name: value for name, value in fields.items() if value is not None}
        cls = self._service.__service__.load(self.info.request)
        if request is not None:
            if given:
                raise ConfigError(f"{self.info.python_name}: give a request or its fields, not both")
            if not isinstance(request, XmlObject | RawXml):
                what = f"give a {cls.__name__} or its fields by name, not {type(request).__name__}"
                raise ConfigError(f"{self.info.python_name}: {what}")
            return request
        if any(
            name.endswith("_") for name in given
        ):  # an element of that name, or a field that gave way to an argument
            known = {field.name for field in cls.__xml__.fields}
            given = {name if name in known else name.removesuffix("_"): value for name, value in given.items()}
        named: dict[str, Any] = {
            name: _as_name(cls, name, value) if isinstance(value, str) else value for name, value in given.items()
        }
        try:
            return cls(**named)
        except TypeError as error:
            raise ConfigError(f"{self.info.python_name}: {error}") from None

    @property
    def _caller(self) -> Caller:
        return self._service.caller

    def _call(self, request: object, fields: Mapping[str, object], options: CallOptions | None) -> Call:
        service = self._service
        made = self._request(request, fields)
        return Call(service.__service__, self.info, service.destination, made, options or _NO_OPTIONS)

    def invoke(self, request: Request | None, options: CallOptions | None, /, **fields: object) -> Response:
        """Carry out one call with one answer.

        Raises:
            ConfigError: both a request and fields were given, or a required field is missing.
            MtosiFault: the supplier answered with a fault.
            ReplyTimeoutError: no answer in time.
        """
        return cast(Response, self._caller.call(self._call(request, fields, options)))

    def invoke_batches(
        self, request: Request | None, batch_size: int, options: CallOptions | None, /, **fields: object
    ) -> Batches[Response]:
        """Carry out one call with several answers; the request is sent before this returns. Raises as `invoke`, and
        IncompleteBatchError when batches are missing at the end or when time runs out."""
        check_count("batch_size", batch_size)
        return cast(Batches[Response], self._caller.call_batches(self._call(request, fields, options), batch_size))

    def invoke_objects(
        self, request: Request | None, batch_size: int, options: CallOptions | None, /, **fields: object
    ) -> Objects[Any]:
        """Carry out a call with several answers, and hand out their objects one by one. Raises as `invoke_batches`."""
        return Objects(self.invoke_batches(request, batch_size, options, **fields), self.info.batch_path)

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
        **fields: object,
    ) -> BulkReply[Response]:
        """Ask for the answer in a file: the pattern BulkResponse (P2, C18). Experimental.

        Args:
            request: the request, or its fields by name instead.
            file_location_uri: the file that the supplier is to write.
            compression, packing: values of `Compression` and `Packing`.
            batch_size: objects in one document of a packed file at most; None or 0: all in one.
            **fields: of the request; one that is named like an argument above gets a `_` at its end.

        Raises:
            As `invoke`; ConfigError also for other ways to compress or pack, and for a one-way operation.
        """
        if batch_size is not None:
            check_count("batch_size", batch_size)
        terms = BulkTerms.of(file_location_uri, compression, packing, batch_size)
        call = self._call(request, fields, CallOptions.of(options, timeout))
        return cast(BulkReply[Response], self._caller.call_bulk(call, terms))


def _as_name(cls: type[XmlObject], field: str, value: str) -> object:
    """A name for its text form, where a field holds names."""
    found = next((one for one in cls.__xml__.fields if one.name == field), None)
    if found is None or found.kind != "element" or not isinstance(found.type, str):
        return value
    names = found.table().cls
    return names.parse(value) if issubclass(names, DistinguishedNameMixin) else value


class Service:
    """Base of generated service stubs.

    Args:
        caller: who carries the calls: a `Requestor`.
        destination: where the supplier listens.

    Raises:
        ConfigError: something else in the place of a requestor, also its `aio`.
    """

    __service__: ClassVar[ServiceInfo]

    def __init__(self, caller: Caller, destination: Address) -> None:
        if inspect.iscoroutinefunction(getattr(caller, "call", None)):
            what = "give the requestor itself, not its aio; await the calls of the stub's own aio"
            raise ConfigError(f"{type(self).__name__}: {what}")
        if not hasattr(caller, "call_batches"):
            given = without_login(repr(caller))
            if hasattr(caller, "session"):
                given = f"{type(caller).__name__}, a connection"
            what = f"give a requestor, mtosi_jms.Requestor(connection, sender_uri=...), not {given}"
            raise ConfigError(f"{type(self).__name__}: {what}")
        self.caller = caller
        self.destination = destination

    @shown_half_made
    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {without_login(str(self.destination))}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """Facts about a request for a supplier's handler.

    Attributes:
        message: the JMS message of the request; None if it did not come by JMS.
        batch_size: requested objects per response; 0: all in one response (C24).
        bulk: in the pattern BulkResponse, the requested properties of the file, which the supplier writes from the
            handler's objects; None in any other pattern.
        reply_fields: header fields of the responses, by Python name, which replace those of the SDK; the handler may
            fill it. Faults do not get them.
        header_blocks: the header blocks beside the MTOSI header, as objects where a class is known for their element.
    """

    operation: OperationInfo
    header: Header
    message: JmsMessage | None
    batch_size: int = 0
    bulk: BulkTerms | None = None
    reply_fields: dict[str, object] = field(default_factory=dict)
    header_blocks: tuple[XmlObject | RawXml, ...] = ()

    @property
    def correlation_id(self) -> str | None:
        return correlation_id(self.header)


Handler: TypeAlias = Callable[[Any, RequestContext], object]
"""The method that answers an operation."""


class SupplierBase:
    """Base of generated supplier classes: one method per operation.

    A method that is not overridden answers with the fault notImplemented.

    Raises:
        ConfigError: a subclass has a public method whose name is nearly that of an operation.
    """

    __service__: ClassVar[ServiceInfo]

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        info = cls.__dict__.get("__service__") or getattr(cls, "__service__", None)
        if info is None or "__service__" in cls.__dict__:  # the base that was generated
            return
        for name, value in vars(cls).items():
            if not name.startswith("_") and callable(value) and not hasattr(super(cls, cls), name):
                _refuse_misspelt(cls.__name__, name, info)

    def not_implemented(self, operation: str) -> MtosiFault:
        return MtosiFault(f"{operation} is not implemented by this supplier", kind="notImplemented")

    def handler(self, operation: OperationInfo) -> Handler:
        method: Handler = getattr(self, operation.python_name)
        return method


def _refuse_misspelt(owner: str, name: str, info: ServiceInfo) -> None:
    """Refuse a method that is probably a misspelt handler: its name is nearly that of an operation."""
    names = {spelt: one.python_name for one in info.operations for spelt in (one.python_name, one.name)}
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.85)
    if close:
        what = f"write {names[close[0]]}, or begin the name of a helper with _"
        raise ConfigError(f"{owner}.{name} is not an operation of {info.name}: {what}")
