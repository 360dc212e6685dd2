"""Requests and notifications from JMS, posted to an HTTP peer (001-H3 to H5, 001-H8)."""

from __future__ import annotations

import copy
import itertools
import logging
import ssl
import threading
import time
from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from http.cookiejar import Cookie, CookieJar, DefaultCookiePolicy
from typing import Any, Final
from urllib.parse import quote, urlsplit

from lxml import etree

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import DEFAULT_PROFILE
from mtosi_jms.binding.profile import Validate, body_check
from mtosi_jms.binding.soap_jms import action_of, document_of
from mtosi_jms.bounds import BOUNDS
from mtosi_jms.closing import Closeable
from mtosi_jms.errors import ConfigError, MissingExtraError, MtosiError, MtosiFault, ReplyTimeoutError, TransportError
from mtosi_jms.exchange import Dispatcher, FailureHook, ReplyAddress
from mtosi_jms.gateway._bodies import OF_REQUEST, Body, Refused, content_type_of, document_in, judge, load_certificate
from mtosi_jms.gateway._sources import fill_required, header_of
from mtosi_jms.header import MTOSI_1X
from mtosi_jms.jms import JmsMessage
from mtosi_jms.namespaces import TMF854, clark, split_clark
from mtosi_jms.patterns import Place, read_place
from mtosi_jms.soap import (
    Envelope,
    Header,
    blocks_in,
    converted,
    dialect_of,
    header_text,
    header_texts,
    like,
    parse,
    renamed,
    tag_of,
)
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType, MessageTypeType
from mtosi_jms.xmlbind import RawXml, in_utf8

try:
    import httpcore
    import httpx
except ImportError as error:
    raise MissingExtraError("httpx", "http") from error

_AT_ONCE: Final = 1 << 16
"""Octets that are written at a time."""
_AROUND: Final = 1 << 20
"""Octets that the headers of an answer and the sizes of its chunks may have."""
_KEPT: Final = 100


class CallsTransport(httpx.HTTPTransport):
    """Sends requests over connections of its own. A call ends in time, whatever comes: headers that trickle, interim
    answers without end, chunks without content.
    """

    def __init__(self, trust: ssl.SSLContext) -> None:
        self._bounds = _Bounds()
        self._pool = httpcore.ConnectionPool(
            ssl_context=trust,
            max_connections=None,
            max_keepalive_connections=_KEPT,
            keepalive_expiry=5.0,
            network_backend=_Network(self._bounds),
        )

    def begin(self, seconds: float, octets: int) -> None:
        """Begin a call of this thread. `octets`: how long the content of its answer may be, as it comes."""
        self._bounds.until = time.monotonic() + seconds
        self._bounds.octets = octets + _AROUND


class _Bounds(threading.local):
    """What is left for the call of a thread: until when, and how many octets of an answer."""

    until: float = 0.0
    octets: int = 0

    def seconds(self) -> float:
        """How long the next step may take."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("the call took too long")
        return left


class _Network(httpcore.SyncBackend):
    def __init__(self, bounds: _Bounds) -> None:
        self._bounds = bounds

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        stream = super().connect_tcp(host, port, self._bounds.seconds(), local_address, socket_options)
        return _Stream(stream, self._bounds)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, bounds: _Bounds) -> None:
        self._stream = stream
        self._bounds = bounds

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._stream.read(max_bytes, self._bounds.seconds())
        self._bounds.octets -= len(data)
        if self._bounds.octets < 0:
            raise httpcore.ReadError("the answer is larger than allowed")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for at in range(0, len(buffer), _AT_ONCE):
            self._stream.write(buffer[at : at + _AT_ONCE], self._bounds.seconds())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._bounds.seconds())
        return _Stream(stream, self._bounds)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


log = logging.getLogger(__package__)

_FETCHED: Final = {
    **{name: name for name in (
        "ActiveAlarms", "AlarmSeverityAssignmentProfile", "BackupList", "CallAndTopLevelConnectionsAndSNCsList",
        "CallAndTopLevelConnectionsList", "CrossConnections", "Equipment", "EquipmentProtectionGroup",
        "FlowDomainFragments", "FlowDomains", "GroupTerminationPoints", "Inventory", "ManagedElements",
        "MatrixFlowDomains", "MultiLayerRoutingAreaNames", "MultiLayerRoutingAreas", "MultiLayerSNPPLinks",
        "MultiLayerSNPPs", "MultiLayerSubnetworks", "OperationsSystems", "PerformanceMonitoringData",
        "PerformanceMonitoringPointNames", "PerformanceMonitoringPoints", "ProtectionGroup", "ServiceInventory",
        "SubnetworkConnections", "TcaParameterProfileNames", "TcaParameterProfiles", "TerminationPointPools",
        "TerminationPoints", "TopologicalLinks", "TrafficConditioningProfiles", "TransmissionDescriptors",
    )},
    "AssociatedTerminationPoint": "TerminationPoints", "AssociatedTps": "TerminationPoints",
    "CallsAndTopLevelConnections": "CallAndTopLevelConnectionsList",
    "CallsAndTopLevelConnectionsAndSNCs": "CallAndTopLevelConnectionsAndSNCsList", "EdgePoints": "TerminationPoints",
    "HistoryAlarms": "ActiveAlarms", "MLSNPPLinks": "MultiLayerSNPPLinks", "MLSNPPs": "MultiLayerSNPPs",
}  # fmt: skip
"""What the iterator operations of MTOSI 2.0 and 4.0, `get...Iterator`, fetch, by a word in the names of the operations
that need them. The longest word in the name counts."""
_ELEMENTS_1X: Final = {
    "ActiveAlarms": "getActiveAlarmIterator", "AssociatedTPs": "getTpIterator", "CTPs": "getCtpIterator",
    "CrossConnections": "getCrossConnectionIterator", "EProtectionGroups": "getEpgpIterator",
    "EdgePoints": "getTpIterator", "Equipment": "getEquipmentOrHolderIterator",
    "EquipmentNames": "getAllObjectNamesIterator", "FTPs": "getFtpIterator",
    "Inventory": "getInventoryIterator", "MDs": "getMdIterator", "MEs": "getMeIterator",
    "ManagedElements": "getMeIterator", "NUTTPNames": "getAllNUTTPNames", "Names": "getAllObjectNamesIterator",
    "OSs": "getOsIterator", "PTPNamesWithoutFTPs": "getPtpIterator", "PTPs": "getTpIterator",
    "PTPsWithoutFTPs": "getPtpIterator", "PreemptibleTPNames": "getAllPreemptibleTPNames",
    "ProtectedTPNames": "getAllProtectedTPNames", "ProtectionGroups": "getAllProtectionGroups", "SNs": "getSncIterator",
    "SubnetworkConnections": "getSncIterator", "Subnetworks": "getSncIterator", "SupportedPTPs": "getPtpIterator",
    "TLs": "getTlIterator", "TMDs": "getTmdIterator", "TPGroupingRelationships": "getAllObjectNamesIterator",
    "TPPools": "getTpPoolIterator", "TopologicalLinks": "getTlIterator", "TransmissionDescriptors": "getTmdIterator",
}  # fmt: skip
"""The request elements of the iterator operations of MTOSI 1.1, by a word in the names of the operations likewise."""
_ANSWERED: Final = (200, 500)
_ACCEPTED: Final = (200, 202, 204)
_TYPE: Final = "text/xml; charset=utf-8"
_OF_URIS: Final = ":/?#[]@!$&'()*+,;=%"


def iterator_operation(operation: str, release: str = "2.x") -> str:
    """The operation that fetches further responses of an operation, for example `getManagedElementsIterator`.
    `release`: `1.x`, where each operation has its own, or `2.x`."""
    if release == MTOSI_1X.release:
        return f"{operation}Iterator"
    return f"get{_by_word(_FETCHED, operation) or operation.removeprefix('get')}Iterator"


def _by_word(table: Mapping[str, str], operation: str) -> str:
    word = max((word for word in table if word in operation), key=len, default="")
    return table.get(word, "")


class HttpPeer(Closeable):
    """One URL to which SOAP envelopes are posted. Threads may share it. It never uses another URL.

    Args:
        timeout: seconds for a call: to connect, to send the request, and for the whole answer.
        login: user and password for basic authentication.
        token: for bearer authentication.
        ca: file with the CA certificates for the peer's certificate; None: the system's.
        certificate, key: files of our own certificate, if the peer asks for one.
        largest: most octets of an answer, unpacked.
        elements: most elements and attributes of an answer.

    Raises:
        ConfigError: the URL is not an HTTP URL, or a certificate cannot be read.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = BOUNDS.peer_answer,
        login: tuple[str, str] | None = None,
        token: str | None = None,
        ca: str | None = None,
        certificate: str | None = None,
        key: str | None = None,
        largest: int = BOUNDS.peer_bytes,
        elements: int = BOUNDS.peer_elements,
    ) -> None:
        try:
            urlsplit(url)
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, TypeError, ValueError, AttributeError):
            raise ConfigError("url: it is not a URL") from None
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise ConfigError("url: give an http: or https: URL with a host")
        if parsed.userinfo:
            raise ConfigError("url: give the login apart from the URL")
        self.url = str(parsed)
        self._timeout = timeout
        self._largest, self._elements = largest, elements
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._calls = CallsTransport(_trust(ca, certificate, key))
        self._client = httpx.Client(
            auth=login,
            headers=headers,
            cookies=CookieJar(_Cookies()),
            timeout=timeout,
            transport=self._calls,
            follow_redirects=False,
            trust_env=False,
        )

    def post(self, data: bytes, action: str) -> tuple[int, bytes]:
        """Posts an envelope. `data`: the envelope, SOAP 1.1; it is sent in UTF-8. Status of the answer, and its content
        in UTF-8. Raises ReplyTimeoutError: no answer came in time; TransportError: the peer cannot be reached, or its
        answer is larger than allowed, cannot be unpacked, or has an encoding that nobody reads."""
        headers = {"Content-Type": _TYPE, "Accept-Encoding": "gzip", "SOAPAction": f'"{quote(action, safe=_OF_URIS)}"'}
        self._calls.begin(self._timeout, self._largest)
        try:
            with self._client.stream("POST", self.url, content=in_utf8(data), headers=headers) as answer:
                # The raw octets: the client's own unpacking has no bound.
                body = Body(answer.headers.get("content-encoding", ""), self._largest)
                for part in answer.iter_raw():
                    body.add(part)
                charset = content_type_of(answer.headers.get("content-type", "")).charset
                return answer.status_code, document_in(body.whole(), charset, self._elements, "an answer over HTTP")
        except Refused as error:
            raise TransportError(f"{self.url}: the answer is not taken: {error}") from None
        except httpx.TimeoutException:
            raise ReplyTimeoutError("", f"{self.url}: no answer in time") from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise TransportError(f"{self.url}: {type(error).__name__}: {error}") from None

    def close(self) -> None:
        self._client.close()


class _Cookies(DefaultCookiePolicy):
    """Takes no cookie that cannot be sent back: it would spoil all further requests."""

    def set_ok(self, cookie: Cookie, request: Any) -> bool:
        return super().set_ok(cookie, request) and f"{cookie.name}{cookie.value}".isascii()


def _trust(ca: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    """Return the TLS context for the peer. Raises ConfigError: a file cannot be used."""
    try:
        context = ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise ConfigError(f"ca: {ca}: {error.strerror or error}") from None
    if certificate is None and key is not None:
        raise ConfigError("key: it needs a certificate")
    if certificate is not None:
        load_certificate(context, certificate, key)
    return context


class Forwarder(Dispatcher):
    """Answers requests by asking an HTTP peer, in RPC style. It follows iterators and sends responses as they arrive.

        with Supplier(connection, "queue:EMS.OS", Forwarder(HttpPeer("http://ems:8080/mtosi"))).start(8): ...

    Args:
        sender_uri: senderURI in the header of replies; empty: the peer's.
        iterators: iterator operations by operation, for operations that `iterator_operation` does not know. The request
            element has the same name, in 2.x with `Request` behind it.
        on_error: called with each failure that no requestor gets to know.
        validate: whether the peer's answers must fit the schemas, see `mtosi_jms.binding.profile.Validate`.
    """

    def __init__(
        self,
        peer: HttpPeer,
        profile: BindingProfile = DEFAULT_PROFILE,
        *,
        sender_uri: str = "",
        iterators: Mapping[str, str] | None = None,
        on_error: FailureHook | None = None,
        validate: Validate = "ignore",
    ) -> None:
        super().__init__([], profile, sender_uri=sender_uri, on_error=on_error)
        self._peer = peer
        self._iterators = dict(iterators or {})
        self._from = sender_uri
        self._check = body_check(validate)

    def operation_of(self, envelope: Envelope, message: JmsMessage | None = None) -> str:
        """One name for all operations: only the peer knows which exist, and requestors may send any name."""
        return "forwarded"

    def dispatch(
        self,
        envelope: Envelope,
        *,
        message: JmsMessage | None = None,
        address: ReplyAddress | None = None,
        action: str = "",
    ) -> Generator[Envelope, None, None]:
        """See `Dispatcher.dispatch`. Raises TransportError: a one-way request did not reach the peer; the provider will
        redeliver it."""
        tag = tag_of(envelope.body)
        request = header_of(envelope, self.profile.header)
        action = action or (action_of(message) if message is not None else "")
        operation = header_text(request, "activityName") or tag.rpartition("}")[2].removesuffix(OF_REQUEST)
        if header_text(request, "msgType") == "NOTIFICATION":
            status, _ = self._peer.post(_as_rpc(envelope, request, operation).to_bytes(), action or operation)
            if status not in _ACCEPTED:
                raise TransportError(f"{self._peer.url}: HTTP status {status}")
            return
        if address is not None:
            address.admit()
        try:
            yield from self._replies(envelope, request, operation, action, address)
        except MtosiFault as fault:
            yield from self.refuse(fault, request, envelope.version, address)
        except MtosiError as error:
            self.failures.report(f"{operation} over HTTP failed", error)
            late = isinstance(error, ReplyTimeoutError)
            why = "the HTTP peer did not answer in time" if late else "the HTTP peer did not answer as it should"
            yield from self.refuse(MtosiFault(why, kind="unableToComply"), request, envelope.version, address)

    def _replies(
        self, envelope: Envelope, request: Header, operation: str, action: str, address: ReplyAddress | None
    ) -> Generator[Envelope, None, None]:
        posted, tag = _as_rpc(envelope, request, operation), tag_of(envelope.body)
        asked = posted.header or request
        several = asked.communication_pattern is CommunicationPatternType.MultipleBatchResponse
        reply = self._exchange(posted, action or operation)
        uri: str | None = None
        for number in itertools.count(1):
            header = reply.header or Header()
            said = header_texts(header, Place.FIELDS[:2])
            place = read_place(said)  # the pattern says nothing here: in RPC style the iterator says that there is more
            if reply.fault is None and place.number != number and Place.FIELDS[0] in said:
                raise TransportError(f"{self._peer.url}: response {number} is number {said[Place.FIELDS[0]][:40]}")
            # An iterator stays open where a further response says that it is not the last, and not which iterator.
            uri = header_text(header, "iteratorReferenceURI") or (uri if place.end is False else None)
            more = reply.fault is None and uri is not None and place.end is not True
            if several and reply.fault is None:  # a partial response over JMS has both (R5a)
                header.batch_sequence_number = number
                header.batch_sequence_end_of_reply = not more if place.end is None else place.end
                reply.header = header
            yield self._over_jms(reply, request, tag, operation, envelope.version, address)
            if not more:
                if reply.fault is None and place.end is False:
                    raise TransportError(f"{self._peer.url}: response {number} is not the last, but has no iterator")
                return
            further = self._further(asked, uri or "", tag, operation)
            reply = self._exchange(further, header_text(further.header or asked, "activityName") or "")

    def _further(self, asked: Header, uri: str, tag: str, operation: str) -> Envelope:
        release, size = dialect_of(asked).release, None
        namespace, local = split_clark(tag)
        if release == MTOSI_1X.release:
            size = asked.requested_batch_size
            wanted = message = element = self._iterators.get(operation) or iterator_operation(operation, release)
            if namespace == TMF854 and operation not in self._iterators:
                element = _by_word(_ELEMENTS_1X, operation) or wanted
        else:
            called = local.removesuffix(OF_REQUEST)
            wanted = self._iterators.get(called) or iterator_operation(called)
            message = element = f"{wanted}{OF_REQUEST}"
        header = replace(
            asked, activity_name=wanted, msg_name=message, iterator_reference_uri=uri, requested_batch_size=size
        )
        return Envelope(header=header, body=RawXml.from_element(etree.Element(clark(namespace, element))))

    def _exchange(self, envelope: Envelope, action: str) -> Envelope:
        """Return the peer's reply. Raises MtosiError: there is no reply."""
        status, content = self._peer.post(envelope.to_bytes(), action)
        if status not in _ANSWERED or not content:
            raise TransportError(f"{self._peer.url}: HTTP status {status}")
        reply = parse(content, source="the answer over HTTP", needs_header=False, header=self.profile.header)
        odd = [one for one in reply.warnings if one.rule == "header"]  # the requestor sees a header without them
        if odd:
            text = "an answer of %s over HTTP: its header departs from MTOSI, %d times, the first: %s"
            log.warning(text, action, len(odd), odd[0])
        judge(self._check, content, f"an answer of {action} over HTTP")
        return reply

    def _over_jms(
        self, reply: Envelope, request: Header, tag: str, operation: str, version: str, address: ReplyAddress | None
    ) -> Envelope:
        """The reply for the requestor: in MSG style, with the name of the operation that it called."""
        header = converted(reply.header or Header(), like(request))
        suffix = "Exception" if reply.fault is not None else "Response"
        name = f"{operation}{suffix}" if reply.fault is None or header.msg_name else None
        if dialect_of(header).release == MTOSI_1X.release:  # operations share messages
            name = header.msg_name or f"{operation}{suffix}"
        header = replace(
            header,
            activity_name=operation,
            msg_name=name,
            msg_type=MessageTypeType.RESPONSE if reply.fault is None else MessageTypeType.ERROR,
            sender_uri=self._from or header.sender_uri,
            destination_uri=header_text(request, "replyToURI") or header_text(request, "senderURI"),
            correlation_id=request.correlation_id,
            communication_style=CommunicationStyleType.MSG,
            iterator_reference_uri=None,
        )
        pattern = request.communication_pattern or CommunicationPatternType.SimpleResponse
        fill_required(header, sender_uri=request.destination_uri, communication_pattern=pattern)
        if address is not None:
            address.complete(header)
        made = copy.copy(reply)
        made.blocks = blocks_in(reply, version)
        made.header, made.version = header, version
        wanted = f"{tag.removesuffix(OF_REQUEST)}{suffix}"
        if tag.endswith(OF_REQUEST) and tag_of(made.body) not in ("", wanted):
            made.body = renamed(made.body, wanted)
        return made


def _as_rpc(envelope: Envelope, request: Header, operation: str) -> Envelope:
    """The request for an HTTP peer: without reply address, since the answer returns on the HTTP connection."""
    header = replace(
        request,
        communication_style=CommunicationStyleType.RPC,
        communication_pattern=request.communication_pattern or CommunicationPatternType.SimpleResponse,
        reply_to_uri=None,
        failure_replyto_uri=None,
    )
    element = split_clark(tag_of(envelope.body))[1]
    fill_required(header, activity_name=operation, msg_name=element, msg_type=MessageTypeType.REQUEST)
    return Envelope(header=header, body=envelope.body, blocks=blocks_in(envelope, "1.1"), more=envelope.more)


class Poster:
    """A handler for `ConsumerRuntime` that posts each message. The runtime retries, and moves failures to dead letters.
    `peer`: the receiver, such as a NotificationConsumer. `validate`: whether bodies are checked against the schemas
    before they are posted, as for `Forwarder`."""

    def __init__(self, peer: HttpPeer, *, validate: Validate = "ignore") -> None:
        self._peer = peer
        self._check = body_check(validate)

    def __call__(self, message: JmsMessage, *_: Any) -> None:
        """Posts a message. Raises TransportError: the peer did not take it; DecodeError: its body is not valid, and
        `validate` is `fail`."""
        document = document_of(message)[0]
        judge(self._check, document, "a notification")
        action = message.properties.get("MTOSI_activityName", "notify")
        status, _content = self._peer.post(document, str(action))
        if status not in _ACCEPTED:
            raise TransportError(f"{self._peer.url}: HTTP status {status}")
