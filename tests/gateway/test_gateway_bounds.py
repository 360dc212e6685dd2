"""What a client or a peer over HTTP can make us spend: each bound has a status or an error; the others are served."""

from __future__ import annotations

import gzip
import http.client
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from mtosi_jms import simulator
from mtosi_jms.cli import main
from mtosi_jms.errors import TransportError
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import ByDispatcher, Endpoint, HttpOptions, HttpPeer, HttpServer
from mtosi_jms.telemetry import Monitor, is_own_host

from .conftest import ONE, TEXT

KNOWN = ONE.replace("NAME", "NE-1").encode()
LARGEST, ELEMENTS = 100_000, 100
GZIP = {**TEXT, "Content-Encoding": "gzip"}
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


@pytest.mark.obligation("SEC2", "SEC6")
@pytest.mark.parametrize(
    ("data", "headers", "status"),
    [
        pytest.param(KNOWN, TEXT, 200, id="as it should be"),
        pytest.param(gzip.compress(KNOWN), GZIP, 200, id="compressed"),
        pytest.param(KNOWN + b" " * LARGEST, TEXT, 413, id="too large"),
        pytest.param(BOMB, GZIP, 413, id="unpacks to too much"),
        pytest.param(KNOWN.replace(b"NE-1", b"<a/>" * 1_000), TEXT, 413, id="too many elements"),
        pytest.param(KNOWN.replace(b"NE-1", b"<a " + b"b='' " * 1_000 + b"/>"), TEXT, 413, id="too many attributes"),
        pytest.param(gzip.compress(KNOWN)[:-9], GZIP, 415, id="half of gzip"),
        pytest.param(gzip.compress(KNOWN) + b"more", GZIP, 415, id="more than gzip"),
        pytest.param(KNOWN, GZIP, 415, id="no gzip"),
        pytest.param(KNOWN, {**TEXT, "Content-Encoding": "br"}, 415, id="an encoding that nobody reads"),
    ],
)  # fmt: skip
def test_a_request_has_bounds(server: HttpServer, data: bytes, headers: dict[str, str], status: int) -> None:
    answer = httpx.post(server.url, content=data, headers=headers, timeout=60)
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
        refused = httpx.post(server.url, content=KNOWN, headers=TEXT, timeout=60)
        while refused.status_code == 200:  # the octets of the two are under way
            refused = httpx.post(server.url, content=KNOWN, headers=TEXT, timeout=60)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert httpx.get(f"{server.url}/health", timeout=60).status_code == 200
    finally:
        for one in opened:
            one.close()
    while httpx.post(server.url, content=KNOWN, headers=TEXT, timeout=60).status_code == 503:
        pass


@pytest.mark.obligation("SEC5")
@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1", True), ("127.0.0.1:8080", True), ("[::1]", True), ("[::1]:80", True), ("localhost", True),
        ("LOCALHOST:1", True), ("os.example", True), ("EMS:8080", True), ("evil.example", False), ("", False),
        ("localhost.evil.example", False), ("127.0.0.1.evil.example:80", False), ("evil.example:127.0.0.1", False),
    ],
)  # fmt: skip
def test_a_host_is_our_own(server: HttpServer, host: str, is_own: bool) -> None:
    assert is_own_host(host, {"os.example", "ems"}) is is_own
    headers = {**TEXT, "Host": host}
    for path, data in (("/", KNOWN), ("/health", None)):
        method = "POST" if data else "GET"
        answer = httpx.request(method, server.url + path, content=data, headers=headers, timeout=60)
        assert answer.status_code == (200 if is_own else 421)
    with Monitor(host_names=["OS.example", "ems"]) as monitor:
        status = httpx.get(f"{monitor.url}/healthz", headers={"Host": host}, timeout=60).status_code
        assert status == (200 if is_own else 421)


@contextmanager
def peer(answer: Callable[[http.server.BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """An HTTP server that answers so; its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.close_connection = True
            try:
                answer(self)
            except OSError:
                pass  # it reads no more

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{served.server_port}/"
        finally:
            served.shutdown()
            thread.join()


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
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        if encoding:
            handler.send_header("Content-Encoding", encoding)
        handler.end_headers()
        handler.wfile.write(data)

    with peer(answer) as url, HttpPeer(url, timeout=60, largest=LARGEST, elements=ELEMENTS) as asked:
        if error:
            with pytest.raises(TransportError, match=f"the answer is not taken: .*{error}"):
                asked.post(KNOWN, "any")
        else:
            assert asked.post(KNOWN, "any") == (200, KNOWN)


@pytest.mark.parametrize(
    "command", [["gateway", "--to", "queue:A", "--url", "memory:", "--listen"], ["serve", "--http"]]
)
@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "os.example"])
def test_an_address_that_others_reach_needs_a_login(command: list[str], host: str, capsys: Any) -> None:
    assert main([*command, f"{host}:0"]) == 2
    assert "others can reach that; it needs --logins or --tokens, or --without-login" in capsys.readouterr().err
