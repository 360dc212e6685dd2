"""Anything that a client may send: a documented status, a SOAP fault with every 500, and nothing in the log."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("httpx", reason="the extra http is not installed")

import httpx

from mtosi_jms import simulator
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import ByDispatcher, Endpoint, HttpOptions, HttpServer
from mtosi_jms.soap import parse

DOCUMENTED = {200, 202, 400, 401, 403, 404, 405, 408, 413, 415, 421, 429, 500, 503, 504}
NAMES = (
    'xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:m="http://www.tmforum.org/mtop/mri/xsd/mer/v1" '
    'xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1" xmlns:n="http://www.tmforum.org/mtop/fmw/xsd/nam/v1"'
)
HEADER = (
    "<h:header><h:activityName>{0}</h:activityName><h:msgType>REQUEST</h:msgType><h:senderURI>/OS</h:senderURI>"
    "<h:communicationPattern>{1}</h:communicationPattern><h:communicationStyle>RPC</h:communicationStyle>"
    "<h:requestedBatchSize>3</h:requestedBatchSize>{2}</h:header>"
)
ENVELOPE = "<s:Envelope {0}><s:Header>{1}</s:Header><s:Body><m:{2}Request>{3}</m:{2}Request></s:Body></s:Envelope>"
ME = "<m:meRef><n:rdn><n:type>MD</n:type><n:value>EMS1</n:value></n:rdn></m:meRef>"
URI = "<h:iteratorReferenceURI>http://x/iterator/y</h:iteratorReferenceURI>"
SEEDS = [
    ENVELOPE.format(NAMES, HEADER.format(operation, pattern, uri), operation, what).encode()
    for operation, pattern, uri, what in (
        ("getManagedElement", "SimpleResponse", "", ME),
        ("getAllManagedElements", "MultipleBatchResponse", "", ""),
        ("getManagedElementsIterator", "MultipleBatchResponse", URI, ""),
        ("notify", "Notification", "", ""),
    )
]
PIECES = [
    b"", b"9" * 3_000, b"<a>" * 300, b"<a>" * 3_000, b"\xff", b"\0", b"&#0;", b"&lol;", b"<!DOCTYPE s:Envelope>",
    b'<!DOCTYPE a [<!ENTITY b "c">]>', b"<!-- -->", b"<?p i?>", b"<![CDATA[ ]]>", b' x="' + b"y" * 100_000 + b'"',
    b'encoding="utf-16"', b'<?xml version="1.0" encoding="x"?>', b"http://www.w3.org/2003/05/soap-envelope",
    b'xmlns:h="urn:other"', b'xmlns="urn:%zz"', b"s:Fault", b"MultipleBatchResponse", b"NOTIFICATION", b"-1", b"1e9",
    "\u2028größe\U0001f600".encode(), b"<s:Body/>", b"<h:header/>", b"</s:Envelope>",
]  # fmt: skip
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp500"])
TYPES = st.sampled_from(
    ["text/xml", "text/xml; charset=utf-16", "text/xml; charset=nonsense", "application/soap+xml", "application/xml",
     "TEXT/XML;;", "text/plain", "", "multipart/related", "text/xml; charset=\xe9"]
)  # fmt: skip
HEADERS = st.dictionaries(
    st.sampled_from(["SOAPAction", "Authorization", "Host", "Expect", "X-Forwarded-For", "Accept", "Content-Encoding"]),
    st.sampled_from(['"x"', "", "Basic !!!", "Basic Og==", "Bearer x", "100-continue", "gzip", "\xff\xfe", "a" * 999]),
    max_size=3,
)  # fmt: skip
METHODS = st.sampled_from(["POST"] * 9 + ["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "BREW"])
PATHS = st.sampled_from(
    ["/", "/health", "/ready", "/x?wsdl", "/wsdl/../../x.xsd", "/%00", "/" + "a" * 4_000, "//", "/%ff"]
)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """An envelope with pieces put in or left out, another encoding, or any octets."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=300))
    data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(0, 3))):
        at, upto = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        how = draw(st.sampled_from(["piece", "instead", "cut", "doubled", "octet"]))
        if how == "piece":
            ends = [one.end() for one in re.finditer(rb">|<[^<> ]*", data)] or [0]
            at = draw(st.sampled_from(ends))
            data = data[:at] + draw(st.sampled_from(PIECES)) + data[at:]
        elif how == "instead":
            data = data[:at] + draw(st.sampled_from(PIECES)) + data[min(upto, at + 40) :]
        elif how == "cut":
            data = data[:upto]
        elif how == "doubled":
            data = data[:upto] + data[at:]
        else:
            data = data[:at] + draw(st.binary(min_size=1, max_size=2)) + data[at + 1 :]
    if draw(st.integers(0, 5)) == 0:
        data = data.decode("latin-1").encode(draw(ENCODINGS), "replace")
    return data


class Log(logging.Handler):
    """Keeps what has a traceback, and errors but those that say which request was refused."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.kept: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        refused = record.getMessage().startswith("a request is refused: ")
        if (record.levelno >= logging.ERROR and not refused) or record.exc_info:
            self.kept.append(self.format(record))


@pytest.fixture
def log() -> Iterator[Log]:
    handler = Log()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def endpoint(**options: Any) -> Endpoint:
    services = [simulator.ManagedElementEms(simulator.Network(elements=7, seed=1))]
    return Endpoint(ByDispatcher(Dispatcher(services)), HttpOptions(iterators=1_000, **options))


def check(status: int, content: bytes) -> None:
    assert status in DOCUMENTED, (status, content[:200])
    if status in (500, 503, 504):
        assert parse(content, needs_header=False).fault is not None
    assert b"Traceback" not in content


def test_the_application(log: Log) -> None:
    served = endpoint(largest=2**20)

    @given(METHODS, PATHS, bodies(), TYPES, HEADERS)
    def answers(method: str, path: str, body: bytes, kind: str, headers: dict[str, str]) -> None:
        fields = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        status, content = asyncio.run(
            asked(served, method, path, body, [*fields, (b"content-type", kind.encode("latin-1"))])
        )
        check(status, content)
        assert not log.kept, log.kept[-1]

    answers()


async def asked(served: Endpoint, method: str, path: str, body: bytes, headers: list[tuple[bytes, bytes]]) -> Any:
    """Status and content of an answer of the ASGI application; iterators end with the loop."""
    target, _, query = path.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": target, "raw_path": target.encode(), "query_string": query.encode(), "root_path": "",
        "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
    }  # fmt: skip
    parts = [{"type": "http.request", "body": body[: len(body) // 2], "more_body": True},
             {"type": "http.request", "body": body[len(body) // 2 :], "more_body": False}]  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> Any:
        if parts:
            return parts.pop(0)
        return await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        sent.append(message)

    try:
        async with asyncio.timeout(30):
            await served(scope, receive, send)
    finally:
        await served.iterators.close_all()
    content = b"".join(one.get("body", b"") for one in sent)
    return sent[0]["status"], content


SOCKET_LINES = st.sampled_from(
    [b"POST / HTTP/1.1", b"GET /health HTTP/1.1", b"POST / HTTP/1.0", b"POST / HTTP/9.9", b"PRI * HTTP/2.0", b"X",
     b"POST  /  HTTP/1.1", b"POST http://other/ HTTP/1.1", b"GET / HTTP/1.1", b"\x16\x03\x01\x02\0\x01\0"]
)  # fmt: skip
SOCKET_HEADERS = st.lists(
    st.sampled_from(
        [b"Host: [::1]", b"Host: evil.example", b"Content-Type: text/xml", b"Content-Length: 10", b"Content-Length: -1",
         b"Content-Length: 9" * 2, b"Content-Encoding: gzip",
         b"Content-Length: 99999999999999999999", b"Transfer-Encoding: chunked", b"Transfer-Encoding: x, chunked",
         b"Transfer-Encoding : chunked", b" folded", b"a: " + b"b" * 70_000, b"\xff: \xfe", b"Connection: close",
         b"Connection: upgrade", b"Upgrade: websocket", b"Expect: 100-continue", b"no colon", b"x:\0"]
    ),
    max_size=6,
)  # fmt: skip


LAST = b"GET /health HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n"
"""Ends a connection that is still in order."""


def test_a_socket(log: Log) -> None:
    with HttpServer(endpoint(read_timeout=0.3, largest=2**20)) as server:
        host, _, port = server.url.removeprefix("http://").partition(":")

        @given(SOCKET_LINES, SOCKET_HEADERS, bodies(), st.booleans())
        def answers(line: bytes, headers: list[bytes], body: bytes, whole: bool) -> None:
            more = [b"Content-Length: %d" % len(body), b"Content-Type: text/xml", b"Host: [::1]"] if whole else []
            data = b"\r\n".join([line, *headers, *more, b"", b""]) + body + LAST
            with socket.create_connection((host, int(port)), timeout=30) as client:
                try:
                    client.sendall(data)
                    answer = _all_of(client)
                except ConnectionError:  # it has closed before all was sent
                    answer = b""
            for status in re.findall(rb"(?:^|\r\n\r\n)HTTP/1\.1 (\d+)", answer):
                assert int(status) in DOCUMENTED | {100}, answer[:300]
            if b"HTTP/1.1 500" in answer:
                assert b"Fault" in answer
            assert not log.kept, log.kept[-1]

        answers()
        good = SEEDS[1]
        answer = httpx.post(server.url, content=good, headers={"Content-Type": "text/xml"}, trust_env=False)
        assert answer.status_code == 200


def _all_of(client: socket.socket) -> bytes:
    """What comes until the server closes."""
    found = b""
    while part := client.recv(65_536):
        found += part
    return found
