"""The headers and lines of HTTP: what we send, what we answer, and which answer is whose (001-H1 to H6)."""

from __future__ import annotations

import queue
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import ByDispatcher, Endpoint, HttpPeer, HttpServer
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.transport import Connection

from .conftest import ELEMENTS, ONE, forwarded, gateway

KNOWN = ONE.replace("NAME", "NE-1").encode()


@pytest.fixture
def url(services: Any) -> Iterator[str]:
    with HttpServer(Endpoint(ByDispatcher(Dispatcher(services)))) as server:
        yield server.url


def split(message: bytes) -> tuple[str, dict[str, str], bytes]:
    """First line, headers and body of a message."""
    head, _, body = message.partition(b"\r\n\r\n")
    first, *lines = head.decode("ascii").split("\r\n")
    return first, {one.partition(":")[0].lower(): one.partition(":")[2].strip() for one in lines}, body


def everything(raw: socket.socket) -> bytes:
    return b"".join(iter(lambda: raw.recv(65536), b""))


@pytest.mark.obligation("001-H1", "001-H3")
@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_request_as_the_oldest_clients_send_it(url: str, version: bytes) -> None:
    """001-H1: POST, a URL, headers, an empty line, and a body by its length; H3: what we answer by default."""
    parts = urlsplit(url)
    head = b"POST /mtosi HTTP/%s\r\nHost: [::1]\r\nContent-Length: %d\r\nConnection: close\r\n" % (version, len(KNOWN))
    with socket.create_connection((str(parts.hostname), int(str(parts.port))), timeout=60) as raw:
        raw.sendall(
            head + b'Content-Type: text/xml; charset=utf-8\r\nSOAPAction: ""\r\nConnection: close\r\n\r\n' + KNOWN
        )
        first, headers, body = split(everything(raw))
    assert first == "HTTP/1.1 200 OK"
    assert headers["content-type"] == "text/xml; charset=utf-8"
    assert headers["content-length"] == str(len(body))
    assert b"getManagedElementResponse" in body


@pytest.mark.obligation("001-H3", "001-H4")
@pytest.mark.parametrize(
    ("action", "said"), [("", '""'), ("urn:a?b=c#d", '"urn:a?b=c#d"'), ('ä"\r\nX: y', '"%C3%A4%22%0D%0AX:%20y"')]
)
def test_what_we_post(action: str, said: str) -> None:
    """001-H3, H4: Host and SOAPAction are added, and Content-Length is that of what goes out."""
    got: queue.Queue[bytes] = queue.Queue()
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:

        def answer() -> None:
            raw, _ = listening.accept()
            with raw:
                data = b""
                while not data.endswith(b"</a>"):
                    data += raw.recv(65536)
                got.put(data)
                raw.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")

        done = pool.submit(answer)
        port = listening.getsockname()[1]
        with HttpPeer(f"http://127.0.0.1:{port}/a/b?c=d") as peer:
            assert peer.post("<a>ä</a>".encode(), action) == (202, b"")
        done.result(60)
    first, headers, body = split(got.get(timeout=60))
    assert first == "POST /a/b?c=d HTTP/1.1"
    assert headers["host"] == f"127.0.0.1:{port}"
    assert headers["content-type"] == "text/xml; charset=utf-8"
    assert headers["soapaction"] == said
    assert headers["content-length"] == str(len(body)) == "9"
    assert "authorization" not in headers


def test_the_action_of_a_request_that_is_forwarded_is_its_operation(connection: Connection, url: str) -> None:
    told: list[str] = []

    class Telling(HttpPeer):
        def post(self, data: bytes, action: str) -> tuple[int, bytes]:
            told.append(action)
            return super().post(data, action)

    with forwarded(connection, Telling(url)) as stub:
        stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-1"))
        assert len(list(stub.get_all_managed_elements.batches(batch_size=ELEMENTS // 2))) == 2
    assert told == ["getManagedElement", "getAllManagedElements", "getManagedElementsIterator"]


@pytest.mark.obligation("001-H6")
def test_each_client_gets_its_own_answer(connection: Connection, services: Any, client: Any) -> None:
    """001-H6: many at the same time, whose answers come over one reply queue."""
    with gateway(connection, *services) as server, ThreadPoolExecutor(16) as pool:
        asks = client(server.url)
        names = [f"NE-{number}" for number in range(1, ELEMENTS + 1)]
        answers = list(pool.map(lambda one: asks.post(ONE.replace("NAME", one)).text, names))
    assert [re.findall(r"value>(NE-\d+)<", answer) for answer in answers] == [[one] for one in names]
