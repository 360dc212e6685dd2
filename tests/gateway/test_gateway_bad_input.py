"""What clients and peers do wrong, through real sockets: each has its status, in bounded time."""

from __future__ import annotations

import http.client
import http.server
import itertools
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from mtosi_jms.errors import MtosiFault
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import (
    ByDispatcher,
    Endpoint,
    HttpOptions,
    HttpServer,
    Request,
    Store,
)
from mtosi_jms.soap import Envelope, parse
from mtosi_jms.transport import Connection

from ..waiting import PATIENCE, until
from .conftest import ONE, Halting, connected, forwarded, gateway, http_peer, respond, with_iterator

KNOWN = ONE.replace("NAME", "NE-1").encode()
POST = b"POST / HTTP/1.1\r\nHost: [::1]\r\nContent-Type: text/xml\r\n"
EMPTY = b'<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body/></s:Envelope>'
LARGEST = 100_000


class Listening(ByDispatcher):
    """Answers, and knows what it was asked."""

    def __init__(self, services: list[Any]) -> None:
        super().__init__(Dispatcher(services))
        self.asked: list[Request] = []

    def replies(self, request: Request) -> Any:
        self.asked.append(request)
        return super().replies(request)


@pytest.fixture(scope="module")
def shared_server(services: Any) -> Iterator[tuple[str, Listening]]:
    """A server with the common options, and its source."""
    source = Listening(services)
    with HttpServer(Endpoint(source, HttpOptions(largest=LARGEST))) as server:
        yield server.url, source


@pytest.fixture
def url(shared_server: tuple[str, Listening], source: Listening) -> str:
    return shared_server[0]


@pytest.fixture
def source(shared_server: tuple[str, Listening]) -> Listening:
    """The source of the server, which was asked nothing yet."""
    shared_server[1].asked.clear()
    return shared_server[1]


@pytest.fixture
def impatient(services: Any) -> Iterator[str]:
    """A server that waits for no request longer than 0.3 seconds."""
    options = HttpOptions(read_timeout=0.3)
    with HttpServer(Endpoint(ByDispatcher(Dispatcher(services)), options)) as server:
        yield server.url


def rest(raw: socket.socket) -> bytes:
    """All that comes until the server closes."""
    found = b""
    with suppress(ConnectionResetError):
        while part := raw.recv(65536):
            found += part
    return found


def told(url: str, data: bytes, *, ends: bool = False) -> bytes:
    """All that comes back for some octets, until the server closes; `ends`: we say that no more come."""
    with connected(url) as raw:
        with suppress(OSError):  # it may close while we send
            raw.sendall(data)
            if ends:
                raw.shutdown(socket.SHUT_WR)
        return rest(raw)


def statuses(answers: bytes) -> list[int]:
    """The statuses of answers one after the other."""
    return [int(part[:3]) for part in answers.split(b"HTTP/1.1 ")[1:]]


def posted(body: bytes, *headers: bytes) -> bytes:
    """A whole request, after which the connection is closed."""
    length = b"Content-Length: %d\r\n" % len(body)
    return POST + length + b"Connection: close\r\n" + b"".join(one + b"\r\n" for one in headers) + b"\r\n" + body


def chunked(body: bytes, extension: bytes = b"") -> bytes:
    return b"%x%s\r\n%s\r\n0\r\n\r\n" % (len(body), extension, body)


class TestFraming:
    """Where a request ends must have one answer, or a proxy before us sees other requests than we do."""

    HIDDEN = b"POST /hidden HTTP/1.1\r\nHost: [::1]\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n%s" % (
        len(KNOWN),
        KNOWN,
    )
    REFUSED: ClassVar = {
        "both lengths": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(KNOWN),
        "both lengths, the other first": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        "two lengths": POST + b"Content-Length: 5\r\nContent-Length: %d\r\n\r\n" % len(KNOWN) + KNOWN,
        "a list of lengths": POST + b"Content-Length: 5, 6\r\n\r\n" + KNOWN,
        "a negative length": POST + b"Content-Length: -1\r\n\r\n" + KNOWN,
        "a signed length": POST + b"Content-Length: +5\r\n\r\n" + KNOWN,
        "a length that is not a number": POST + b"Content-Length: 5x\r\n\r\n" + KNOWN,
        "an unknown coding": POST + b"Transfer-Encoding: gzip\r\n\r\n" + KNOWN,
        "two codings": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunked(KNOWN),
        "chunked twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(KNOWN),
        "a blank before the colon": POST + b"Content-Length : 5\r\n\r\n" + KNOWN,
        "a NUL in a header": POST + b"X: a\0b\r\n\r\n",
        "no host": b"POST / HTTP/1.1\r\nContent-Type: text/xml\r\n\r\n",
        "another protocol": b"\x16\x03\x01\x00\xa5\x01\x00\x00",
        "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    }

    @pytest.mark.parametrize("name", REFUSED)
    def test_it_is_refused_and_nothing_behind_it_is_read(self, url: str, source: Listening, name: str) -> None:
        answers = told(url, self.REFUSED[name] + self.HIDDEN, ends=True)
        assert statuses(answers) in ([400], [404, 400])
        assert source.asked == []

    @pytest.mark.parametrize("size", [b"-1", b"x", b"0x10", b"1_0", b"10000000000000000000000"])
    def test_a_chunk_of_no_size(self, url: str, source: Listening, size: bytes) -> None:
        """It comes behind the headers, so the endpoint has the request already; its body never ends."""
        begun = POST + b"Transfer-Encoding: chunked\r\n\r\n" + size + b"\r\n" + self.HIDDEN
        answers = told(url, begun, ends=True)
        assert set(statuses(answers)) <= {400}
        assert source.asked == []

    def test_extensions_of_chunks_are_skipped(self, url: str, source: Listening) -> None:
        headers = POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert statuses(told(url, headers + chunked(KNOWN, b';name="va\\"lue"'))) == [200]
        assert len(source.asked) == 1

    def test_a_body_that_ends_early(self, url: str, source: Listening) -> None:
        assert statuses(told(url, POST + b"Content-Length: 100000\r\n\r\n" + KNOWN, ends=True)) == []
        assert source.asked == []

    def test_requests_one_behind_the_other_are_answered_in_their_order(self, url: str, source: Listening) -> None:
        missing = ONE.replace("NAME", "nobody").encode()
        several = b"".join(
            POST + b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in (KNOWN, missing, KNOWN)
        )
        assert statuses(told(url, several + posted(missing))) == [200, 500, 200, 500]


@contextmanager
def trickling(raw: socket.socket, part: bytes) -> Iterator[None]:
    """Sends the same part again and again meanwhile, until the other side closes."""
    over = threading.Event()

    def trickle() -> None:
        with suppress(OSError):
            while not over.wait(0.02):
                raw.sendall(part)

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class TestFloods:
    """Each ends in bounded time: `told` would wait for ever, and the socket gives up after a minute."""

    def test_headers_without_end(self, url: str) -> None:
        with connected(url) as raw, pytest.raises(OSError):  # noqa: PT012 - it is closed while we send
            raw.sendall(POST)
            for number in itertools.count():
                assert number < 100_000
                raw.sendall(b"X-%d: %s\r\n" % (number, b"x" * 100))

    @pytest.mark.parametrize("data", [b"GET /" + b"a" * 200_000, b"x" * 200_000, POST + b"X: " + b"x" * 200_000])
    def test_a_line_without_end(self, url: str, data: bytes) -> None:
        assert statuses(told(url, data)) in ([400], [])

    @pytest.mark.parametrize(
        ("begun", "more", "answered"),
        [
            (POST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n<\r\n", [408]),
            (POST + b"Content-Length: 1000\r\n\r\n<", b"", [408]),
            (POST, b"X: y\r\n", []),
            (POST.replace(b"xml", b"html") + b"Content-Length: 1000000\r\n\r\n", b"x", [415]),
        ],
        ids=["chunks of one octet", "nothing more", "headers", "a refused body"],
    )
    def test_what_trickles(self, impatient: str, begun: bytes, more: bytes, answered: list[int]) -> None:
        """The time is for the whole: whoever sends some of it now and then gains nothing."""
        with connected(impatient) as raw:
            raw.sendall(begun)
            with trickling(raw, more):
                assert statuses(rest(raw)) == answered

    def test_the_body_of_a_refused_request_is_no_request(self, url: str, source: Listening) -> None:
        hidden = posted(KNOWN)
        head = b"POST / HTTP/1.1\r\nHost: [::1]\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(hidden)
        assert statuses(told(url, head + hidden + posted(KNOWN))) == [415, 200]
        assert len(source.asked) == 1

    def test_others_are_answered_meanwhile(self, url: str) -> None:
        with ExitStack() as stack:
            for _ in range(200):
                stack.enter_context(connected(url)).sendall(POST)
            assert statuses(told(url, posted(KNOWN))) == [200]


TABLE = [
    ("the response", KNOWN, {}, 200, ""),
    ("any charset that XML says", KNOWN.decode().encode("utf-16"), {}, 200, ""),
    ("parameters of the type", KNOWN, {"Content-Type": 'text/xml;charset="utf-8"; x=y'}, 200, ""),
    ("XML of any kind", KNOWN, {"Content-Type": "APPLICATION/XML"}, 200, ""),
    ("a fault", ONE.replace("NAME", "nobody").encode(), {}, 500, "entityNotFound"),
    ("no envelope", b"<a/>", {}, 400, ""),
    ("no XML", b"{}", {}, 400, ""),
    ("nothing", b"", {}, 400, ""),
    ("half an envelope", KNOWN[:300], {}, 400, ""),
    ("an unknown SOAP version", KNOWN.replace(b"/soap/envelope/", b"/soap/next/"), {}, 400, ""),
    ("a DTD", b"<!DOCTYPE a SYSTEM 'file:///etc/passwd'>" + KNOWN, {}, 400, ""),
    ("an empty body", EMPTY, {}, 400, ""),
    ("too deep", KNOWN.replace(b"<mer:meRef>", b"<a>" * 10_000 + b"<mer:meRef>"), {}, 400, ""),
    ("JSON", KNOWN, {"Content-Type": "application/json"}, 415, ""),
    ("a form", KNOWN, {"Content-Type": "application/x-www-form-urlencoded"}, 415, ""),
    ("parts", KNOWN, {"Content-Type": "multipart/related; type=text/xml"}, 415, ""),
    ("no type", KNOWN, {"Content-Type": ""}, 415, ""),
    ("too large", KNOWN + b" " * 100_000, {}, 413, ""),
]  # fmt: skip


@pytest.mark.obligation("001-H2", "001-H5")
@pytest.mark.parametrize(
    ("body", "headers", "status", "kind"), [line[1:] for line in TABLE], ids=[line[0] for line in TABLE]
)
def test_status(url: str, client: Any, body: bytes, headers: dict[str, str], status: int, kind: str) -> None:
    answer = client(url).post(body, **headers)
    assert answer.status_code == status
    if status == 500:
        assert parse(answer.content, needs_header=False).fault.kind == kind
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE"])
@pytest.mark.parametrize("path", ["/", "/any/path"])
def test_another_method(url: str, client: Any, method: str, path: str) -> None:
    asks = client(url)
    answer = asks.http.request(method, asks.url + path)
    assert answer.status_code == 405
    assert "POST" in answer.headers["allow"]


@pytest.mark.obligation("001-H2", "001-S10")
@pytest.mark.parametrize(
    ("kind", "headers", "action"),
    [
        ("text/xml", {"SOAPAction": '"urn:a"'}, "urn:a"),
        ("text/xml", {"SOAPAction": '""'}, ""),
        ("text/xml", {"SOAPAction": "bare"}, "bare"),
        ("text/xml", {}, ""),
        ('application/soap+xml; charset=utf-8; action="urn:a b"', {}, "urn:a b"),
        ("application/soap+xml; action=bare", {}, "bare"),
        ("application/soap+xml; action*=utf-8''coded", {}, "coded"),
        ("application/soap+xml", {}, ""),
    ],
)
def test_the_action_is_told_and_chooses_nothing(
    url: str, source: Listening, client: Any, kind: str, headers: dict[str, str], action: str
) -> None:
    """The element of the body says which operation it is (001-S10)."""
    assert client(url).post(KNOWN, **headers | {"Content-Type": kind}).status_code == 200
    (asked,) = source.asked
    assert (asked.operation, asked.action) == ("getManagedElement", action)


def test_a_fault_comes_octet_for_octet(connection: Connection, client: Any) -> None:
    fault = (
        b'<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault>'
        b"<faultcode>s:Server</faultcode><faultstring>no \xc3\xa4nswer</faultstring><detail><v:odd xmlns:v='urn:v'>"
        b"<!-- kept --><v:x/></v:odd></detail></s:Fault></s:Body></s:Envelope>"
    )

    class Failing(Dispatcher):
        def dispatch(self, envelope: Envelope, **_: Any) -> Any:
            made = parse(fault, needs_header=False)
            yield made

    with HttpServer(Endpoint(ByDispatcher(Failing([])))) as server:
        answer = client(server.url).post(KNOWN)
    assert (answer.status_code, answer.content) == (500, fault)


def health(asks: Any) -> dict[str, Any]:
    return dict(asks.http.get(f"{asks.url}/health").json())


def await_health(asks: Any, **counts: int) -> None:
    """Returns once the health report has these counts."""
    until(lambda: counts.items() <= health(asks).items())


class TestClientsThatGoAway:
    @pytest.fixture(params=["services", "jms"])
    def url(self, request: pytest.FixtureRequest, connection: Connection) -> Iterator[str]:
        """An endpoint whose service halts."""
        halting = Halting()
        with ExitStack() as stack:
            stack.callback(halting.let_go.set)
            if request.param == "jms":
                yield stack.enter_context(gateway(connection, halting, store=Store(1_000))).url
            else:
                yield stack.enter_context(HttpServer(Endpoint(ByDispatcher(Dispatcher([halting]))))).url

    def test_while_it_waits_for_the_first_response(self, url: str, client: Any, official: Any) -> None:
        asks = client(url)
        with connected(url) as raw:
            raw.sendall(posted(official("6-1").replace(">500<", ">30<").encode()))
            await_health(asks, in_hand=1)
        await_health(asks, in_hand=0, iterators=0)

    def test_while_it_waits_for_its_iterator(self, url: str, client: Any, official: Any) -> None:
        asks = client(url)
        _, first = asks.ask(official("6-1").replace(">500<", ">20<"))
        assert health(asks)["iterators"] == 1
        with connected(url) as raw:
            raw.sendall(posted(with_iterator(official("6-3"), first.header.iterator_reference_uri).encode()))
            await_health(asks, in_hand=1)
        await_health(asks, in_hand=0, iterators=0)

    def test_in_the_middle_of_its_request(self, url: str, client: Any) -> None:
        asks = client(url)
        with connected(url) as raw:
            raw.sendall(posted(KNOWN)[:-10])
        await_health(asks, in_hand=0, iterators=0)
        assert asks.post(KNOWN).status_code == 200


@contextmanager
def decoy() -> Iterator[tuple[str, Callable[[], bool]]]:
    """A URL that nobody may ask, and whether somebody did."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.0)

        def was_asked() -> bool:
            try:
                listening.accept()[0].close()
            except BlockingIOError:
                return False
            return True

        yield f"http://127.0.0.1:{listening.getsockname()[1]}/decoy", was_asked


class TestWhereWeConnect:
    """Nothing that a client or a peer says chooses it."""

    def test_by_a_client(self, connection: Connection, services: Any, client: Any, official: Any) -> None:
        with (
            decoy() as (url, was_asked),
            gateway(connection, *services, store=Store(1_000)) as server,
        ):
            asks = client(server.url)
            named = {"SOAPAction": f'"{url}"', "Host": url.split("/")[2], "X-Forwarded-Host": url.split("/")[2]}
            addressed = official("6-1").replace(">500<", ">30<")
            for field in ("senderURI", "destinationURI"):
                addressed = addressed.replace(f"<hdr:{field}>", f"<hdr:{field}>{url}#")
            addressed = addressed.replace(
                "<hdr:destinationURI>", f"<hdr:replyToURI>{url}</hdr:replyToURI><hdr:destinationURI>"
            )
            answer = asks.post(addressed, **named)
            assert answer.status_code == 200
            header = parse(answer.content).header
            assert header.iterator_reference_uri.startswith(f"{server.url}/iterator/")
            name = header.iterator_reference_uri.rpartition("/")[2]
            again = official("6-3").replace("http://host:port/ManagedElementRetrievalV1/iterator123", f"{url}/{name}")
            assert asks.post(again, **named).status_code == 200, "the name alone counts"
            unknown = again.replace(name, "unknown")
            assert asks.post(unknown, **named).status_code == 500
            absolute = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE)
            absolute.request("POST", url, KNOWN, {"Content-Type": "text/xml"})
            assert absolute.getresponse().status == 404, "it is not a proxy"
            absolute.close()
            assert not was_asked()

    @pytest.mark.obligation("001-H5")
    @pytest.mark.parametrize("status", [200, 302, 307])
    def test_by_a_peer(self, connection: Connection, official: Any, status: int) -> None:
        """Through the iterator that it names, and through redirections."""
        batch = official("6-2")
        asked: list[str] = []
        with decoy() as (url, was_asked):

            def answer(handler: Any) -> None:
                asked.append(handler.path)
                more = f"<hdr:iteratorReferenceURI>{url}</hdr:iteratorReferenceURI>" if len(asked) < 3 else ""
                headers = {"Content_Location": url, **({} if status == 200 else {"Location": url})}
                respond(handler, status, with_more(batch, len(asked), more).encode(), **headers)

            with http_peer(answer) as own, forwarded(connection, f"{own}own") as stub, suppress(MtosiFault):
                list(stub.get_all_managed_elements.batches(batch_size=500))
            assert not was_asked()
        assert set(asked) == {"/own"}
        assert len(asked) == (3 if status == 200 else 1)


def with_more(batch: str, number: int, more: str) -> str:
    """A sample's response with another number and another iterator, without one as the last."""
    numbered = batch.replace(">1</hdr:batchSequenceNumber>", f">{number}</hdr:batchSequenceNumber>")
    ended = numbered if more else numbered.replace(">false</hdr:batchSequence", ">true</hdr:batchSequence")
    return re.sub(r"<hdr:iteratorReferenceURI>[^<]*</hdr:iteratorReferenceURI>", more, ended)
