"""SOAP over HTTP: an endpoint that answers requests with one response or through iterators (001-H1 to H6).

MTOSI clients over HTTP work in RPC style. A request for several responses gets the first one, with an
iteratorReferenceURI. Requests that name this URI get the others, until batchSequenceEndOfReply.
"""

from __future__ import annotations

import asyncio
import logging
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Final, TypeVar
from urllib.parse import urlsplit

from lxml import etree

from mtosi_jms.binding.profile import Validate, body_check
from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import (
    ConfigError,
    DecodeError,
    IllegalStateError,
    MessageRefusedError,
    MissingExtraError,
    MtosiError,
    MtosiFault,
    NamingError,
    ReplyTimeoutError,
    TransportError,
)
from mtosi_jms.gateway._access import Access, Throttled, address_of
from mtosi_jms.gateway._bodies import OF_REQUEST, PIECE, Body, Refused, content_type_of, document_in, judge
from mtosi_jms.gateway._sources import Iterators, Replies, Request, Source, check_understood, fill_required, header_of
from mtosi_jms.header import MTOSI_1X
from mtosi_jms.namespaces import MSG, TMF854, clark
from mtosi_jms.patterns import Place, Standing, read_place, standing_of
from mtosi_jms.service.registry import find_operations
from mtosi_jms.soap import (
    Envelope,
    Header,
    blocks_in,
    code_of_kind,
    converted,
    dialect_of,
    header_text,
    header_texts,
    like,
    parse,
    renamed,
    tag_of,
)
from mtosi_jms.stubs.fmw.hdr import (
    ActivityStatusEnumType,
    ActivityStatusType,
    CommunicationPatternType,
    CommunicationStyleType,
    MessageTypeType,
)
from mtosi_jms.telemetry import Gauge, Telemetry, is_own_host
from mtosi_jms.xmlbind import RawXml, in_utf8, to_element

try:
    from starlette.applications import Starlette
    from starlette.datastructures import Headers
    from starlette.requests import ClientDisconnect
    from starlette.requests import Request as HttpRequest
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise MissingExtraError("starlette", "http") from error

log = logging.getLogger(__package__)

T = TypeVar("T")
_TYPES: Final = {"1.1": "text/xml", "1.2": "application/soap+xml"}
_TAKEN: Final = frozenset({*_TYPES.values(), "application/xml"})
_ITERATOR: Final = "IteratorRequest"
_EXCEPTION: Final = "Exception"
_FAILURE: Final = "ProcessingFailureException"
_QUIET: Final = {"Cache-Control": "no-store"}
_LARGE: Final = 64 * 1024
"""Octets above which a request is parsed by another thread."""
_UNWATCHED: Final = 0.5
"""Seconds of a request after which the endpoint starts to watch whether its client is still there."""
_RPC: Final = CommunicationStyleType.RPC


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """What an endpoint allows.

    Attributes:
        largest: most octets of a request, unpacked.
        elements: most elements of a request.
        in_flight: most octets of all requests that are being received or answered, and of their answers; further ones
            get status 503.
        read_timeout: seconds for the headers of a request, for each 256 KB of its body, and for each 256 KB of the
            answer.
        connections: most open connections, and most requests at a time; a further connection takes the place of one
            that asks nothing, a further request gets status 503.
        answer_timeout: seconds until the first response, and until each further one; None: the source's own time-out.
        iterators: most open iterators.
        iterator_timeout: seconds without a request after which an iterator is closed.
        public_url: URL at which clients reach the endpoint; iteratorReferenceURI begins with it. Empty: the URL at
            which the server listens, or if it listens at all addresses, the one that the client used.
        host_names: names by which clients may call the endpoint, besides addresses, `localhost` and the name in
            `public_url`; see `mtosi_jms.telemetry.is_own_host`.
        logins: passwords by user, for basic authentication; one may be a hash of bcrypt. Without logins and tokens
            nobody has to authenticate.
        tokens: tokens for bearer authentication, or tokens by the names of who has them.
        clients: addresses of allowed clients; empty: all.

    Raises:
        ConfigError: a number is not greater than 0.
    """

    largest: int = BOUNDS.http_bytes
    elements: int = BOUNDS.http_elements
    in_flight: int = BOUNDS.http_in_flight
    read_timeout: float = BOUNDS.http_read
    connections: int = BOUNDS.http_connections
    answer_timeout: float | None = BOUNDS.http_answer
    iterators: int = BOUNDS.http_iterators
    iterator_timeout: float = BOUNDS.http_iterator_idle
    public_url: str = ""
    host_names: frozenset[str] = frozenset()
    logins: Mapping[str, str] = field(default_factory=dict, repr=False)
    tokens: Collection[str] | Mapping[str, str] = field(default_factory=frozenset, repr=False)
    clients: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, int | float) and not value > 0:
                raise ConfigError(f"{one.name}: more than 0 is needed, not {value!r}")


def _no_post() -> Refused:
    return Refused(405, "post a SOAP envelope", {"Allow": "POST"})


class _Gone(Exception):
    """The client has gone away."""


class Endpoint:
    """An ASGI application that answers SOAP requests.

    Args:
        wsdl: called with a path and the endpoint's URL; returns the WSDL of the path, or None. See `WsdlFiles`.
        is_ready: tells whether requests can be answered, for `/ready` and `/readyz`.
        validate: whether bodies must fit the schemas (001-S12), see `mtosi_jms.binding.profile.Validate`.
        telemetry: receives reports of the requests, if given.

    Attributes:
        iterators: the open iterators.
    """

    def __init__(
        self,
        source: Source,
        options: HttpOptions | None = None,
        *,
        wsdl: Callable[[str, str], bytes | None] | None = None,
        is_ready: Callable[[], bool] = lambda: True,
        validate: Validate = "ignore",
        telemetry: Telemetry | None = None,
    ) -> None:
        self.options = options or HttpOptions()
        self.iterators = Iterators(self.options.iterators, self.options.iterator_timeout)
        self.public_url = self.options.public_url.rstrip("/")
        own = urlsplit(self.public_url).hostname or ""
        self._host_names = frozenset(name.lower() for name in (*self.options.host_names, own))
        self._source = source
        self._wsdl = wsdl
        self._is_ready = is_ready
        self._access = Access(self.options.logins, self.options.tokens)
        self._check = body_check(validate)
        self._in_hand = 0
        self._in_flight = 0
        self._answered = 0
        self._failed = 0
        self._telemetry = telemetry
        if telemetry is not None:
            me = weakref.ref(self)
            name = self.public_url or "http"
            telemetry.watch(Gauge.IN_HAND, name, lambda: float(it._in_hand) if (it := me()) else None)
            telemetry.watch(Gauge.ITERATORS, name, lambda: float(len(it.iterators)) if (it := me()) else None)
        self._pages = Starlette(
            routes=[
                *(Route(path, self._health, methods=["GET"]) for path in ("/health", "/healthz")),
                *(Route(path, self._ready, methods=["GET"]) for path in ("/ready", "/readyz")),
                Route("/{path:path}", self._get, methods=["GET"]),
            ],
            lifespan=self._living,
        )

    @asynccontextmanager
    async def _living(self, app: Starlette) -> AsyncIterator[None]:
        yield
        await self.iterators.close_all()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._telemetry is None or scope["type"] != "http":
            await self._serve(scope, receive, send)
            return
        began, status = time.monotonic(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._serve(scope, receive, noted)
        finally:
            self._telemetry.served(scope["method"], status, time.monotonic() - began)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        app: ASGIApp = self._pages
        if scope["type"] == "http":
            names = {name for name, _ in scope["headers"]}
            if {b"content-length", b"transfer-encoding"} <= names:  # a proxy may use the other one (smuggling)
                app = _plain(Refused(400, "Content-Length and Transfer-Encoding", {"Connection": "close"}))
            elif (host := Headers(scope=scope).get("host")) is not None and not is_own_host(host, self._host_names):
                app = _plain(Refused(421, "this name is not the gateway's: start it with --host-name NAME"))
            elif scope["path"].startswith("/") and scope["method"] not in ("GET", "HEAD"):
                app = self._post  # without routing: a tenth of the time
        await app(scope, receive, send)

    async def _health(self, request: HttpRequest) -> Response:
        counts = {
            "in_hand": self._in_hand,
            "answered": self._answered,
            "failed": self._failed,
            "iterators": len(self.iterators),
        }
        return JSONResponse({"status": "up", **counts}, headers=_QUIET)

    async def _ready(self, request: HttpRequest) -> Response:
        ready = self._is_ready()
        return JSONResponse({"ready": ready}, status_code=200 if ready else 503, headers=_QUIET)

    async def _get(self, request: HttpRequest) -> Response:
        try:
            self._admit(request)
        except Refused as refused:
            return _plain(refused)
        base = self._base(request)
        wsdl = "wsdl" in {name.lower() for name in request.query_params} or request.url.path.endswith((".wsdl", ".xsd"))
        found = self._wsdl(request.url.path, base) if wsdl and self._wsdl is not None else None
        if found is None:
            return _plain(_no_post())
        return Response(found, media_type="text/xml; charset=utf-8")

    def _base(self, request: HttpRequest) -> str:
        return self.public_url or str(request.base_url).rstrip("/")

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive, send)
        body: Body | None = None
        size = 0
        try:
            try:
                owner = self._admit(request)
                body = self._body(request)
                await self._receive(request, body)
                response = await self._respond(request, body, owner)
            except _Gone:
                response = Response(status_code=499)
            except Refused as refused:
                response = _plain(refused)
            size = len(response.body)
            self._in_flight += size
            await response(scope, receive, send)
        finally:
            self._in_flight -= size + (body.size if body is not None else 0)

    async def _respond(self, request: HttpRequest, body: Body, owner: str) -> Response:
        """Return the answer to a request, a fault if it fails. Raises Refused: it is no request; _Gone: the client has
        gone away."""
        envelope: Envelope | None = None
        try:
            read = partial(_request, body, request, self.options)
            # Reading a large document would keep all other clients waiting.
            posted, data = await asyncio.to_thread(read) if body.size > _LARGE else read()
            envelope = posted.envelope
            self._in_hand += 1
            try:
                await self._judge(data)
                url = self._base(request) + request.scope["path"]
                status, data = await _unless_gone(request, self._answer(posted, owner, url))
            finally:
                self._in_hand -= 1
        except (TimeoutError, MtosiError) as error:
            status, fault = _told(error, envelope)
            data = self._fault(fault, envelope)
        except (Refused, _Gone):
            raise
        except Exception:
            log.exception("a request over HTTP failed")
            status, data = 500, self._fault(MtosiFault("the gateway failed", kind="internalError"), envelope)
        self._answered += 1
        self._failed += status >= 500
        if not data:
            return Response(status_code=status)
        version = envelope.version if envelope is not None else "1.1"
        return Response(in_utf8(data), status, media_type=f"{_TYPES[version]}; charset=utf-8")

    def _admit(self, request: HttpRequest) -> str:
        """Return the owner of the request, after checks of address, login and token. Raises Refused: the client is not
        allowed."""
        address = address_of(request)
        if self.options.clients and address not in self.options.clients:
            raise Refused(403, "this address may not come here")
        if self._access.is_open:
            return address
        try:
            owner = self._access.by_header(address, request.headers.get("authorization", ""))
        except Throttled as error:
            raise Refused(429, str(error), {"Retry-After": str(error.seconds)}) from None
        if owner is None:
            raise Refused(401, "a login is needed", {"WWW-Authenticate": f'{self._access.challenge} realm="MTOSI"'})
        return owner

    def _body(self, request: HttpRequest) -> Body:
        """Return what collects the body of a request. Raises Refused: the method is wrong, or the content has a wrong
        type or encoding, or says that it is too large."""
        if request.method != "POST":
            raise _no_post()
        if content_type_of(request.headers.get("content-type", "")).media not in _TAKEN:
            raise Refused(415, f"the content type must be one of {', '.join(sorted(_TAKEN))}")
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > self.options.largest:
            raise Refused(413, f"more than {self.options.largest} bytes")
        return Body(request.headers.get("content-encoding", ""), self.options.largest)

    async def _receive(self, request: HttpRequest, body: Body) -> None:
        """Collect the body of a request. Raises Refused: it is too large, does not arrive in time, or there is too much
        of other requests; _Gone: the client has gone away."""
        patience, left = self.options.read_timeout, PIECE
        try:
            async with asyncio.timeout(patience) as time:
                async for part in request.stream():
                    before = body.size
                    body.add(part)
                    self._in_flight += body.size - before
                    if self._in_flight > self.options.in_flight:
                        raise Refused(503, "too much is being received", {"Retry-After": "1", "Connection": "close"})
                    left -= len(part)
                    if left <= 0:
                        left = PIECE
                        time.reschedule(asyncio.get_running_loop().time() + patience)
        except TimeoutError:
            raise Refused(408, "the request did not come in time", {"Connection": "close"}) from None
        except ClientDisconnect:
            raise _Gone from None

    async def _judge(self, data: bytes) -> None:
        """Check the body of a request against the schemas. Raises MtosiFault: the body is not valid, and `validate` is
        `fail`."""
        if self._check is None:
            return
        try:
            await asyncio.to_thread(judge, self._check, data, "a request over HTTP")
        except DecodeError as error:
            raise MtosiFault(f"the request does not fit the schema: {error}", fault_code="Client") from None

    async def _answer(self, request: Request, owner: str, url: str) -> tuple[int, bytes]:
        if not request.operation:
            local = tag_of(request.envelope.body).rpartition("}")[2]
            what = f"{local} is the request of several operations: say which in activityName or SOAPAction"
            raise MtosiFault(what, fault_code="Client")
        name = header_text(request.header, "iteratorReferenceURI")
        if name is not None or tag_of(request.envelope.body).endswith(_ITERATOR):
            return await self._next(request, name or "", owner)
        if request.is_one_way:
            async with asyncio.timeout(self.options.answer_timeout), aclosing(self._source.replies(request)) as replies:
                await anext(replies, None)
            return 202, b""
        if request.batch_size is None:
            async with aclosing(self._source.replies(request)) as replies:
                return self._given(await self._first(replies), request, "")
        self.iterators.reserve()
        try:
            return await self._begin(request, owner, url)
        finally:
            self.iterators.release()

    async def _begin(self, request: Request, owner: str, url: str) -> tuple[int, bytes]:
        replies = self._source.replies(request)
        try:
            first = await self._first(replies)
            if not _has_more(first):
                await self._ended(replies)
                return self._given(first, request, "")
        except BaseException:
            await replies.aclose()
            raise
        name = self.iterators.open(replies, owner)
        return self._given(first, request, f"{url.rstrip('/')}/iterator/{name}")

    async def _next(self, request: Request, uri: str, owner: str) -> tuple[int, bytes]:
        check_understood(request, getattr(self._source, "understands", frozenset()))
        name = uri.rpartition("/")[2]
        async with asyncio.timeout(self.options.answer_timeout):
            envelope = await self.iterators.next(name, owner)
            if envelope is None:
                raise MtosiFault("the replies ended without their last one", kind="internalError")
            more = _has_more(envelope)
            if not more and envelope.fault is None and await self.iterators.next(name, owner) is not None:
                raise MtosiFault("more replies came after the last one", kind="internalError")
        if not more:
            await self.iterators.close(name)
        return self._given(envelope, request, uri if more else "")

    async def _ended(self, replies: Replies) -> None:
        """Wait for the end of replies whose last one has come: only then is it known that they are whole. Raises
        MtosiError: they are not."""
        async with asyncio.timeout(self.options.answer_timeout):
            if await anext(replies, None) is not None:
                raise MtosiFault("more replies came after the last one", kind="internalError")
        await replies.aclose()

    async def _first(self, replies: Replies) -> Envelope:
        async with asyncio.timeout(self.options.answer_timeout):
            envelope = await anext(replies, None)
        if envelope is None:
            raise MtosiFault("there is no answer", kind="internalError")
        return envelope

    def _given(self, envelope: Envelope, request: Request, iterator: str) -> tuple[int, bytes]:
        """The reply for the client, in its version of SOAP; the body is unchanged."""
        envelope.blocks = blocks_in(envelope, request.envelope.version)
        envelope.version, tag = request.envelope.version, ""
        client_header = request.header
        header = converted(envelope.header or Header(), like(client_header))
        header.communication_style = _RPC
        header.correlation_id = client_header.correlation_id
        header.destination_uri = client_header.sender_uri or header.destination_uri
        fill_required(
            header,
            activity_name=request.operation,
            msg_name=_FAILURE if envelope.fault is not None else tag_of(envelope.body).rpartition("}")[2],
            msg_type=MessageTypeType.RESPONSE if envelope.fault is None else MessageTypeType.ERROR,
            sender_uri=client_header.destination_uri,
            communication_pattern=client_header.communication_pattern or CommunicationPatternType.SimpleResponse,
        )
        if envelope.fault is not None:  # it names the operation that failed; without a header it stays so
            envelope.header = header if envelope.header is not None else None
            return 500, _fault_of_iterator(envelope, request).to_bytes()
        header.activity_name = client_header.activity_name or header.activity_name
        header.iterator_reference_uri = iterator or None
        if iterator and header.batch_sequence_end_of_reply is None:  # nothing is said, and more will come
            header.batch_sequence_end_of_reply = False
        if header_text(client_header, "iteratorReferenceURI") is not None and _names_by_operation(client_header):
            tag = f"{tag_of(request.envelope.body).removesuffix(OF_REQUEST)}Response"
            header.msg_name = tag.rpartition("}")[2]
        envelope.header = header
        return 200, envelope.passed_on(tag)

    def _fault(self, fault: MtosiFault, request: Envelope | None) -> bytes:
        """The envelope with a fault, in the form of the request's release; of that which is served, if
        the request cannot be read. It has the operation's exception, whose name follows from the request's (C17)."""
        asked = header_of(request) if request is not None else getattr(self._source, "header", Header)()
        tag, version = (tag_of(request.body), request.version) if request is not None else ("", "1.1")
        header = like(asked)(
            activity_name=asked.activity_name,
            msg_type=MessageTypeType.ERROR,
            activity_status=ActivityStatusType(value=ActivityStatusEnumType.FAILURE),
            destination_uri=asked.sender_uri,
            correlation_id=asked.correlation_id,
            communication_pattern=asked.communication_pattern or CommunicationPatternType.SimpleResponse,
            communication_style=_RPC,
        )
        fill_required(header, msg_name=_FAILURE, sender_uri=asked.destination_uri)
        exception = _exception(fault, tag, header) if fault.kind else None
        if exception is None:
            return Envelope.bare_fault(fault, header, version=version).to_bytes()
        made = MtosiFault(fault.reason, kind=fault.kind, fault_code=fault.fault_code)
        return Envelope(body=RawXml.from_element(exception), fault=made, version=version).to_bytes()


def _names_by_operation(header: Header) -> bool:
    """Whether the messages of an operation have its name, as from 2.0 on; before, operations share messages."""
    return dialect_of(header).release != MTOSI_1X.release


def _exception(fault: MtosiFault, tag: str, header: Header) -> etree._Element | None:
    """Return the detail of a fault; None for a request, with this tag, of no operation."""
    if not _names_by_operation(header):
        outer = etree.Element(clark(TMF854, _FAILURE), nsmap={"tmf854": TMF854})
        outer.append(to_element(header))
        etree.SubElement(outer, clark(TMF854, "exception")).text = code_of_kind(fault.kind)
        etree.SubElement(outer, clark(TMF854, "reason")).text = fault.reason
        return outer
    if not tag.endswith(OF_REQUEST):
        return None
    outer = etree.Element(f"{tag.removesuffix(OF_REQUEST)}{_EXCEPTION}", nsmap={"msg": MSG})
    kind = etree.SubElement(outer, clark(MSG, fault.kind))
    kind.append(to_element(header))
    etree.SubElement(kind, clark(MSG, "reason")).text = fault.reason
    return outer


def _request(body: Body, request: HttpRequest, options: HttpOptions) -> tuple[Request, bytes]:
    """Return the request of a client, and its document. The element in the body decides, not the SOAP action (001-S10),
    unless operations share the element. Raises XmlError: the data is not an envelope; Refused: nobody reads its
    encoding, it holds too many elements, or no request."""
    charset = content_type_of(request.headers.get("content-type", "")).charset
    data = document_in(body.whole(), charset, options.elements, "a request over HTTP")
    envelope = parse(data, source="the request", needs_header=False)
    if envelope.fault is not None:
        raise Refused(400, "a fault is not a request")
    header = envelope.header or Header()
    local = tag_of(envelope.body).rpartition("}")[2]
    action = _action(request)
    if not local:
        raise Refused(400, "the body of the envelope is empty")
    operation = header_text(header, "activityName")
    if operation is None:
        names = {use.operation.name for use in find_operations(tag_of(envelope.body), header, action)}
        operation = local.removesuffix(OF_REQUEST) if not names else names.pop() if len(names) == 1 else ""
    return Request(envelope, operation, action, options.answer_timeout), data


def _action(request: HttpRequest) -> str:
    """The SOAP action: an HTTP header in SOAP 1.1, a parameter of the content type in SOAP 1.2; none if they differ."""
    said = [one.strip().strip('"') for one in request.headers.getlist("soapaction")]
    said.append(content_type_of(request.headers.get("content-type", "")).action)
    named = set(filter(None, said))
    return named.pop() if len(named) == 1 else ""


async def _unless_gone(request: HttpRequest, work: Awaitable[T]) -> T:
    """Return the result of some work; cancel the work if the client goes away. Raises _Gone: the client has gone
    away."""
    watch = _Watch(request)
    try:
        return await work
    except asyncio.CancelledError:
        if watch.has_cancelled():
            raise _Gone from None
        raise
    finally:
        watch.end()


class _Watch:
    """Cancels the task that makes it when the client goes away. Most requests are answered before the watch starts."""

    def __init__(self, request: HttpRequest) -> None:
        self._is_gone = False
        self._request = request
        self._task = asyncio.current_task()
        self._looks: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(_UNWATCHED, self._begin)

    def _begin(self) -> None:
        self._looks = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        await self._request.receive()
        if self._task is not None:
            self._is_gone = self._task.cancel()

    def has_cancelled(self) -> bool:
        """Whether the client is gone; if so, the cancellation of the task is taken back."""
        if self._is_gone and self._task is not None:
            self._task.uncancel()
        return self._is_gone

    def end(self) -> None:
        self._timer.cancel()
        if self._looks is not None:
            self._looks.cancel()


def _fault_of_iterator(envelope: Envelope, request: Request) -> Envelope:
    """The supplier's fault; for an iterator request, with the exception of the iterator's operation."""
    reply_tag, request_tag = tag_of(envelope.body), tag_of(request.envelope.body)
    if not request_tag.endswith(_ITERATOR) or reply_tag.rpartition("}")[2] == f"{request.operation}{_EXCEPTION}":
        return envelope
    if reply_tag.endswith(_EXCEPTION):
        envelope = parse(envelope.to_bytes(), needs_header=False)  # the header stays in the detail
        envelope.body = renamed(envelope.body, f"{request_tag.removesuffix(OF_REQUEST)}{_EXCEPTION}")
    return envelope


def _has_more(envelope: Envelope) -> bool:
    """Whether more responses follow this one, by the rules of a requestor."""
    place = read_place(header_texts(envelope.header, Place.FIELDS) if envelope.header is not None else {})
    return envelope.fault is None and standing_of(place.number, place.end) in (Standing.BATCH, Standing.UNPLACED)


def _told(error: MtosiError | TimeoutError, request: Envelope | None) -> tuple[int, MtosiFault]:
    """The HTTP status of an error, and the fault that tells a client of it, without addresses and without anything that
    a peer sent. A request of None means that it could not be read."""
    if isinstance(error, MtosiFault):
        return 400 if request is None else 500, error
    if isinstance(error, TimeoutError | ReplyTimeoutError):
        return 504, MtosiFault("no answer in time", kind="internalError")
    if isinstance(error, MessageRefusedError):
        return 400, MtosiFault("the provider refuses the message", fault_code="Client")
    if isinstance(error, TransportError | IllegalStateError):
        return 503, MtosiFault("the provider cannot be reached", kind="unableToComply")
    if request is None or (isinstance(error, ConfigError) and not isinstance(error, NamingError)):
        return 400, MtosiFault(str(error), fault_code="Client")  # what JMS cannot carry, such as a field too long
    log.warning("an exchange over HTTP failed: %s: %s", type(error).__name__, error)
    return 500, MtosiFault(f"the exchange failed: {type(error).__name__}", kind="internalError")


def _plain(refused: Refused) -> Response:
    return Response(f"{refused}\n", refused.status, headers=refused.headers, media_type="text/plain; charset=utf-8")
