"""What a client or a peer over HTTP can make us spend: each bound has a status or an error; the others are served."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import http.server
import itertools
import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import pytest

import mtosi_jms as mtosi
from mtosi_jms import simulator
from mtosi_jms.broker import BrokerProcess
from mtosi_jms.cli import main
from mtosi_jms.errors import ReplyTimeoutError, TransportError
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import ByDispatcher, Endpoint, HttpOptions, HttpPeer, HttpServer, Request
from mtosi_jms.soap import parse
from mtosi_jms.telemetry import Monitor, is_own_host

from ..waiting import until
from .conftest import ONE, connected, gateway, http_peer

KNOWN = ONE.replace("NAME", "NE-1").encode()
LARGEST, ELEMENTS = 100_000, 100
TEXT = {"Content-Type": "text/xml"}
GZIP = {**TEXT, "Content-Encoding": "gzip"}
EBCDIC = {"Content-Type": "text/xml; charset=cp500"}
MANY = KNOWN.decode().replace("NE-1", "<a/>" * 1_000)
LETTERS = KNOWN.decode().replace("NE-1", "\u043c" * 1_000)
"""Their octets in UTF-16 are those of `<` and another."""


def in_encoding(text: str, name: str) -> bytes:
    """A document in an encoding that it declares."""
    return f'<?xml version="1.0" encoding="{name}"?>{text}'.encode(name)


BOMB = gzip.compress(KNOWN + b" " * (100 * LARGEST))


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    services = [simulator.ManagedElementEms(simulator.Network(elements=5, seed=1))]
    options = HttpOptions(
        largest=LARGEST,
        elements=ELEMENTS,
        in_flight=2 * LARGEST,
        public_url="https://os.example/",
        host_names=frozenset({"Ems"}),
    )
    with HttpServer(Endpoint(ByDispatcher(Dispatcher(services)), options)) as made:
        yield made


@pytest.mark.obligation("SEC2", "SEC6", "SEC12")
@pytest.mark.parametrize(
    ("data", "headers", "status"),
    [
        pytest.param(KNOWN, TEXT, 200, id="as it should be"),
        pytest.param(gzip.compress(KNOWN), GZIP, 200, id="compressed"),
        pytest.param(KNOWN + b" " * LARGEST, TEXT, 413, id="too large"),
        pytest.param(BOMB, GZIP, 413, id="unpacks to too much"),
        pytest.param(KNOWN.replace(b"NE-1", b"<a/>" * 1_000), TEXT, 413, id="too many elements"),
        pytest.param(KNOWN.replace(b"NE-1", b"<a " + b"b='' " * 1_000 + b"/>"), TEXT, 413, id="too many attributes"),
        *(
            pytest.param(in_encoding(MANY, name), TEXT, 413, id=f"too many elements in {name}")
            for name in ("utf-16", "utf-32", "latin-1", "utf-7")
        ),
        *(
            pytest.param(in_encoding(LETTERS, name), TEXT, 500, id=f"letters in {name}")
            for name in ("utf-16", "utf-16-be", "utf-32")
        ),
        pytest.param(MANY.encode("cp500"), EBCDIC, 413, id="too many elements in EBCDIC"),
        pytest.param(gzip.compress(KNOWN)[:-9], GZIP, 415, id="half of gzip"),
        pytest.param(gzip.compress(KNOWN) + b"more", GZIP, 415, id="more than gzip"),
        pytest.param(KNOWN, GZIP, 415, id="no gzip"),
        pytest.param(KNOWN, {**TEXT, "Content-Encoding": "br"}, 415, id="an encoding that nobody reads"),
    ],
)  # fmt: skip
def test_a_request_has_bounds(server: HttpServer, data: bytes, headers: dict[str, str], status: int) -> None:
    answer = httpx.post(server.url, content=data, headers=headers, timeout=60, verify=False)
    assert answer.status_code == status, answer.text


@pytest.mark.obligation("SEC3")
def test_all_requests_together_have_a_bound(server: HttpServer) -> None:
    """Two bodies that do not end hold their octets; what comes on top is refused, until they are given up."""
    opened = []
    body, host = b" " * (LARGEST - 100), server.url.removeprefix("http://")
    try:
        for _ in range(2):
            one = http.client.HTTPConnection(host, timeout=60)
            opened.append(one)
            one.putrequest("POST", "/")
            one.putheader("Content-Type", "text/xml")
            one.putheader("Content-Length", str(LARGEST))
            one.endheaders(body)
        refused = httpx.post(server.url, content=KNOWN, headers=TEXT, timeout=60, verify=False)
        while refused.status_code == 200:  # the octets of the two are under way
            refused = httpx.post(server.url, content=KNOWN, headers=TEXT, timeout=60, verify=False)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert httpx.get(f"{server.url}/health", timeout=60, verify=False).status_code == 200
    finally:
        for one in opened:
            one.close()
    while httpx.post(server.url, content=KNOWN, headers=TEXT, timeout=60, verify=False).status_code == 503:
        pass


def is_closed(raw: socket.socket) -> bool:
    """Whether the other side ends a connection, after whatever it sends."""
    try:
        while raw.recv(65_536):
            pass
    except ConnectionError:
        pass
    return True


def wait_for(caplog: pytest.LogCaptureFixture, text: str) -> logging.LogRecord:
    """The first record with a text."""
    until(lambda: text in caplog.text)
    return next(one for one in list(caplog.records) if text in one.getMessage())


@pytest.fixture
def small() -> Iterator[tuple[HttpServer, threading.Event]]:
    """A server with few connections, whose services wait for the event."""
    go = threading.Event()

    class Waiting(ByDispatcher):
        async def replies(self, request: Request) -> Any:
            await asyncio.to_thread(go.wait, 60)
            async for one in super().replies(request):
                yield one

    network = simulator.Network(elements=5, seed=1)
    source = Waiting(Dispatcher([simulator.ManagedElementEms(network)]))
    with HttpServer(Endpoint(source, HttpOptions(connections=10, read_timeout=1.0))) as made:
        yield made, go
        go.set()


@pytest.mark.obligation("SEC10")
def test_connections_that_ask_nothing_make_room(
    small: tuple[HttpServer, threading.Event], caplog: pytest.LogCaptureFixture
) -> None:
    server, go = small
    go.set()
    with ExitStack() as stack, httpx.Client(verify=False) as client:
        opened = [stack.enter_context(connected(server.url)) for _ in range(60)]
        for _ in range(3):
            assert client.post(server.url, content=KNOWN, headers=TEXT, timeout=60).status_code == 200
        assert all(is_closed(one) for one in opened[:30])
    record = wait_for(caplog, "more than 10 connections")
    assert record.name == "mtosi_jms.gateway"
    assert int(record.getMessage().rpartition("(")[2].partition(" ")[0]) > 1


@pytest.mark.obligation("SEC10")
def test_requests_at_a_time_have_a_bound(small: tuple[HttpServer, threading.Event]) -> None:
    """Each of those that wait is a connection that asks something."""
    server, go = small
    with ThreadPoolExecutor(14) as pool:
        asked = [pool.submit(httpx.post, server.url, content=KNOWN, headers=TEXT, timeout=60) for _ in range(14)]
        refused = [one.result() for one in itertools.islice(as_completed(asked), 4)]
        assert [(one.status_code, one.headers["retry-after"]) for one in refused] == [(503, "1")] * 4
        go.set()
        assert sorted(one.result().status_code for one in asked) == [200] * 10 + [503] * 4


HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\n"


@pytest.mark.obligation("SEC9")
def test_a_slow_reader_does_not_hold_its_answer(caplog: pytest.LogCaptureFixture) -> None:
    page, waits = b" " * 2**24, threading.Event()
    source = ByDispatcher(Dispatcher([]))
    endpoint = Endpoint(source, HttpOptions(read_timeout=0.5), wsdl=lambda path, base: page)
    with HttpServer(endpoint) as server, connected(server.url) as raw:
        raw.sendall(b"GET /?wsdl HTTP/1.1\r\nHost: localhost\r\n\r\n")
        taken = 0
        with suppress(ConnectionError):
            while part := raw.recv(100 if taken < 4_000 else 65_536):  # the rest is what the kernels hold
                taken += len(part)
                if taken < 4_000:
                    waits.wait(0.02)
        assert taken < len(page)


@pytest.mark.obligation("SEC9")
def test_a_slow_body_that_makes_progress_is_taken(server: HttpServer) -> None:
    source, waits = ByDispatcher(Dispatcher([])), threading.Event()
    piece = b" " * 300_000
    with HttpServer(Endpoint(source, HttpOptions(read_timeout=1.0))) as patient, connected(patient.url) as raw:
        raw.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % (4 * len(piece)))
        for _ in range(4):
            waits.wait(0.4)
            raw.sendall(piece)
        assert b"HTTP/1.1 400" in raw.recv(100)


@pytest.mark.obligation("SEC9")
@pytest.mark.parametrize(("kind", "size"), [(b"text/xml", 1), (b"text/xml", 12), (b"text/html", 4)])
def test_a_request_in_tiny_chunks_is_cut_off(small: tuple[HttpServer, threading.Event], kind: bytes, size: int) -> None:
    """Also one that is refused already, which nobody reads."""
    chunk, url = b"%x\r\n%s\r\n" % (size, b" " * size), small[0].url
    with connected(url) as raw:
        raw.sendall(HEAD.replace(b"text/xml", kind) + b"Transfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(ConnectionError):  # noqa: PT012 - it is closed while we send
            while True:
                raw.sendall(chunk * 1_000)
    assert httpx.get(f"{url}/health", timeout=60, verify=False).json()["in_hand"] == 0


@pytest.mark.obligation("SEC11")
def test_what_is_not_http_is_in_the_log_with_a_count(
    small: tuple[HttpServer, threading.Event], caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        with connected(small[0].url) as raw:
            raw.sendall(b"\x16\x03\x01 no HTTP\r\n\r\n")
            assert raw.recv(100).startswith(b"HTTP/1.1 400 ")
            assert is_closed(raw)
    record = wait_for(caplog, "Invalid HTTP request received.")
    assert (record.name, record.exc_info) == ("mtosi_jms.gateway", None)
    assert not [one for one in caplog.records if one.name.startswith("uvicorn")]


@pytest.mark.broker
@pytest.mark.obligation("SEC11")
@pytest.mark.parametrize("field", ["activityName", "msgName"])
def test_a_field_that_the_broker_cannot_carry(activemq: BrokerProcess, field: str) -> None:
    header = f'<h:header xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"><h:{field}>{"x" * 70_000}</h:{field}>'
    header += "<h:msgType>REQUEST</h:msgType><h:senderURI>/OS</h:senderURI><h:correlationId>7</h:correlationId>"
    body = KNOWN.decode().replace("<soap:Body>", f"<soap:Header>{header}</h:header></soap:Header><soap:Body>")
    with (
        mtosi.connect(activemq.endpoints.url("stomp")) as connection,
        gateway(connection, queue="queue:gateway.bounds") as server,
    ):
        answer = httpx.post(server.url, content=body, headers=TEXT, timeout=60, verify=False)
    assert answer.status_code == 400
    found = parse(answer.content)
    assert found.fault is not None
    assert found.header is not None
    assert (found.header.correlation_id, found.header.destination_uri) == ("7", "/OS")


@pytest.mark.obligation("SEC10")
def test_the_monitor_has_few_connections() -> None:
    before = threading.active_count()
    with Monitor() as monitor, ExitStack() as stack:
        opened = [stack.enter_context(connected(monitor.url)) for _ in range(150)]
        assert httpx.get(f"{monitor.url}/healthz", timeout=60, verify=False).status_code == 200
        assert all(is_closed(one) for one in opened[:50])
        assert threading.active_count() - before < 110


@pytest.fixture(scope="module")
def monitor() -> Iterator[Monitor]:
    with Monitor(host_names=["OS.example", "ems"]) as made:
        yield made


@pytest.mark.obligation("SEC5")
@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1", True), ("127.0.0.1:8080", True), ("[::1]", True), ("[::1]:80", True), ("localhost", True),
        ("LOCALHOST:1", True), ("os.example", True), ("EMS:8080", True), ("evil.example", False), ("", False),
        ("127.0.0.1:80/static/", False), ("[::1]:1/login?", False), ("localhost:80@evil.example", False),
        ("localhost.evil.example", False), ("127.0.0.1.evil.example:80", False),
        ("evil.example:127.0.0.1", False), ("localhost:", True),
    ],
)  # fmt: skip
def test_a_host_is_our_own(server: HttpServer, monitor: Monitor, host: str, is_own: bool) -> None:
    assert is_own_host(host, {"os.example", "ems"}) is is_own
    headers = {**TEXT, "Host": host}
    for path, data in (("/", KNOWN), ("/health", None)):
        method = "POST" if data else "GET"
        answer = httpx.request(method, server.url + path, content=data, headers=headers, timeout=60, verify=False)
        assert answer.status_code == (200 if is_own else 421)
    status = httpx.get(f"{monitor.url}/healthz", headers={"Host": host}, timeout=60, verify=False).status_code
    assert status == (200 if is_own else 421)


@pytest.mark.obligation("SEC4")
@pytest.mark.parametrize(
    ("data", "encoding", "error"),
    [
        pytest.param(KNOWN, "", "", id="as it should be"),
        pytest.param(gzip.compress(KNOWN), "gzip", "", id="compressed"),
        pytest.param(KNOWN + b" " * LARGEST, "", "more than 100000 bytes", id="too large"),
        pytest.param(BOMB, "gzip", "more than 100000 bytes", id="unpacks to too much"),
        pytest.param(KNOWN + b"<a/>" * 1_000, "", "more than 100 elements", id="too many elements"),
        pytest.param(gzip.compress(KNOWN)[:-9], "gzip", "no end", id="half of gzip"),
        pytest.param(KNOWN, "gzip", "damaged", id="no gzip"),
        pytest.param(KNOWN, "br", "gzip, or none", id="an encoding that nobody reads"),
    ],
)
def test_an_answer_has_bounds(data: bytes, encoding: str, error: str) -> None:
    def answer(handler: Any) -> None:
        handler.send_response(200)
        if encoding:
            handler.send_header("Content-Encoding", encoding)
        handler.end_headers()
        handler.wfile.write(data)

    with http_peer(answer) as url, HttpPeer(url, timeout=60, largest=LARGEST, elements=ELEMENTS) as asked:
        if error:
            with pytest.raises(TransportError, match=f"the answer is not taken: .*{error}"):
                asked.post(KNOWN, "any")
        else:
            assert asked.post(KNOWN, "any") == (200, KNOWN)


ENDLESS = {
    "a header that trickles": (b"HTTP/1.1 200 OK\r\nX: ", b"y", True),
    "headers that trickle": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", True),
    "interim answers that trickle": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", True),
    "interim answers": (b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 1_000, False),
    "a chunk extension that trickles": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x", True),
    "content that trickles": (b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", b" ", True),
    "trailers that trickle": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n", True),
}
"""How an answer begins, what comes again and again, and whether it comes slowly."""


@pytest.mark.obligation("SEC4")
@pytest.mark.parametrize("kind", ENDLESS)
def test_an_answer_without_end_has_bounds_in_all(kind: str) -> None:
    begin, more, trickles = ENDLESS[kind]
    waits, ended = threading.Event(), threading.Event()

    def answer(handler: Any) -> None:
        with suppress(OSError):
            handler.wfile.write(begin)
            while not ended.is_set():
                handler.wfile.write(more)
                if trickles:
                    waits.wait(0.01)

    with http_peer(answer) as url, HttpPeer(url, timeout=0.4 if trickles else 60, largest=LARGEST) as asked:
        try:
            with pytest.raises(ReplyTimeoutError if trickles else TransportError):
                asked.post(KNOWN, "any")
        finally:
            ended.set()


def test_a_peer_that_takes_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as served:
        url = f"http://127.0.0.1:{served.getsockname()[1]}/"
        with HttpPeer(url, timeout=0.4) as asked, pytest.raises(ReplyTimeoutError):
            asked.post(KNOWN + b" " * 2**24, "any")


@pytest.mark.parametrize(
    "command", [["gateway", "--to", "queue:A", "--url", "memory:", "--listen"], ["serve", "--http"]]
)
@pytest.mark.obligation("SEC26")
@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "os.example"])
def test_an_address_that_others_reach_needs_a_login(command: list[str], host: str, capsys: Any) -> None:
    assert main([*command, f"{host}:0"]) == 2
    assert "others can reach that; it needs --logins or --tokens, or --without-login" in capsys.readouterr().err
