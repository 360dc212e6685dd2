"""Bodies over HTTP: their encodings and compression, and the check against the schemas (001-S12)."""

from __future__ import annotations

import gzip
from typing import Any, Literal

import httpx
import pytest

from mtosi_jms import soap
from mtosi_jms.errors import DecodeError, MtosiFault, TransportError
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import ByDispatcher, Endpoint, HttpOptions, HttpPeer, HttpServer, Poster
from mtosi_jms.jms import JmsMessage
from mtosi_jms.soap import Envelope, Header, parse
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest, GetManagedElementResponse
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.transport import Connection

from .conftest import forwarded

PLACE = "Z\u00fcrich"
XMLNS = "http://www.tmforum.org/mtop/"
REQUEST = (
    '<S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Body>'
    f'<m:getManagedElementRequest xmlns:m="{XMLNS}mri/xsd/mer/v1" xmlns:n="{XMLNS}fmw/xsd/nam/v1"><m:meRef><n:rdn>'
    f"<n:type>ME</n:type><n:value>{PLACE}</n:value></n:rdn></m:meRef></m:getManagedElementRequest></S:Body></S:Envelope>"
)
PLAIN = "text/xml; charset=utf-8"


class Ems(ManagedElementRetrieval.Supplier):
    def get_managed_element(self, request, context):
        return GetManagedElementResponse(me=ManagedElementType(location=request.me_ref.rdn[0].value))


@pytest.fixture(scope="module")
def url():
    with HttpServer(Endpoint(ByDispatcher(Dispatcher([Ems()])), HttpOptions(largest=100_000))) as server:
        yield server.url


@pytest.mark.obligation("ENC3")
@pytest.mark.parametrize(
    ("kind", "declared", "codec"),
    [
        ("text/xml; charset=ISO-8859-1", "", "latin-1"),
        ('text/xml; charset="iso-8859-1"', "UTF-8", "latin-1"),
        ("text/xml;CHARSET=UTF-8", "ISO-8859-1", "utf-8"),
        ("text/xml; charset*=us-ascii'en'ISO-8859-1", "", "latin-1"),
        ("text/xml; charset=UTF-16LE", "", "utf-16-le"),
        ("application/xml; charset=utf-16", "UTF-16", "utf-16"),
        ("text/xml; charset=GBK", "", "gbk"),
        ("text/xml", "ISO-8859-1", "latin-1"),
    ],
)
def test_requests(url, kind, declared, codec):
    start = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
    answer = httpx.post(
        url, content=(start + REQUEST).encode(codec), headers={"Content-Type": kind}, timeout=60, verify=False
    )

    assert (answer.status_code, answer.headers["content-type"]) == (200, PLAIN)
    assert soap.parse(answer.content).body.me.location == PLACE


@pytest.mark.obligation("ENC4")
@pytest.mark.parametrize(
    ("headers", "content", "status"),
    [
        ({"Content-Type": "text/xml; charset=x-nobody"}, REQUEST.encode(), 415),
        ({"Content-Type": "text/xml; charset=utf-7"}, REQUEST.encode(), 415),
        ({}, f'<?xml version="1.0" encoding="x-nobody"?>{REQUEST}'.encode(), 415),
        ({"Content-Encoding": "br"}, REQUEST.encode(), 415),
        ({"Content-Encoding": "gzip, gzip"}, gzip.compress(gzip.compress(REQUEST.encode())), 415),
        ({"Content-Encoding": "identity"}, REQUEST.encode(), 200),
        ({"Content-Encoding": "X-GZIP"}, gzip.compress(REQUEST.encode()), 200),
        ({"Content-Encoding": "gzip", "Content-Type": "text/xml; charset=ISO-8859-1"},
         gzip.compress(REQUEST.encode("latin-1")), 200),
        ({"Content-Encoding": "gzip"}, gzip.compress(REQUEST.encode())[:-12], 415),
        ({"Content-Encoding": "gzip"}, REQUEST.encode(), 415),
        ({"Content-Encoding": "gzip"}, gzip.compress(REQUEST.encode() + b" " * 2**20), 413),
    ],
)  # fmt: skip
def test_what_nobody_reads_is_refused(url, headers, content, status):
    answer = httpx.post(url, content=content, headers={"Content-Type": "text/xml", **headers}, timeout=60, verify=False)

    assert answer.status_code == status
    if status == 200:
        assert soap.parse(answer.content).body.me.location == PLACE


class Answer:
    """An application that answers each request with the same octets."""

    options = HttpOptions()
    public_url = ""

    def __init__(self, kind, content, headers=()):
        self._headers = [(b"content-type", kind.encode()), *headers]
        self._content = content
        self.posted = b""

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            for _ in range(2):
                await send({"type": (await receive())["type"] + ".complete"})
            return
        self.posted = (await receive()).get("body", b"")
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        await send({"type": "http.response.body", "body": self._content})


@pytest.mark.obligation("ENC3")
@pytest.mark.parametrize(
    ("kind", "content", "headers"),
    [
        ("text/xml; charset=ISO-8859-1", REQUEST.encode("latin-1"), ()),
        ("text/xml; charset=UTF-16BE", REQUEST.encode("utf-16-be"), ()),
        ("text/xml", REQUEST.encode(), ()),
        ("text/xml; charset=latin1", gzip.compress(REQUEST.encode("latin-1")), [(b"content-encoding", b"gzip")]),
    ],
)
def test_answers(kind, content, headers):
    answer = Answer(kind, content, headers)
    latin = f'<?xml version="1.0" encoding="ISO-8859-1"?>{REQUEST}'.encode("latin-1")
    with HttpServer(answer) as server, HttpPeer(server.url, timeout=60) as peer:
        status, found = peer.post(latin, "x")

    assert (status, soap.parse(found).body.me_ref.rdn[0].value) == (200, PLACE)
    assert PLACE.encode() in answer.posted


@pytest.mark.obligation("ENC4")
def test_answer_in_an_encoding_that_nobody_reads():
    answer = Answer("text/xml; charset=x-nobody", REQUEST.encode())
    with (
        HttpServer(answer) as server,
        HttpPeer(server.url, timeout=60) as peer,
        pytest.raises(TransportError, match="x-nobody"),
    ):
        peer.post(REQUEST.encode(), "x")


Action = Literal["ignore", "warn", "fail"]
ACTIONS: list[Action] = ["ignore", "warn", "fail"]
TOLD = "with 1 warnings, the first: line 2 /Envelope/Body/"


def spoilt(document: bytes) -> bytes:
    """The envelope with an attribute that no schema allows."""
    assert b"<nam:rdn>" in document
    return document.replace(b"<nam:rdn>", b"<nam:rdn odd='1'>", 1)


def request() -> bytes:
    header = Header(activity_name="getManagedElement", msg_name="getManagedElementRequest")
    return Envelope(header=header, body=GetManagedElementRequest(me_ref=name("MD=EMS1/ME=NE-1"))).to_bytes()


class Careless(Dispatcher):
    """Answers as others do, with a breach of the schema."""

    def dispatch(self, envelope: Envelope, **options: Any) -> Any:
        for reply in super().dispatch(envelope, **options):
            yield parse(spoilt(reply.to_bytes()), needs_header=False)


@pytest.mark.obligation("001-S12")
@pytest.mark.parametrize("action", ACTIONS)
def test_a_request_over_http(action: Action, services: Any, client: Any, caplog: pytest.LogCaptureFixture) -> None:
    with HttpServer(Endpoint(ByDispatcher(Dispatcher(services)), validate=action)) as server:
        status, answer = client(server.url).ask(spoilt(request()))
        assert client(server.url).ask(request())[0] == 200
    if action == "fail":
        assert (status, answer.fault.fault_code) == (500, "Client")
        assert (
            "the request does not fit the schema: line 2 /Envelope/Body/getManagedElementRequest" in answer.fault.reason
        )
    else:
        assert status == 200
    assert (f"a request over HTTP {TOLD}getManagedElementRequest/meRef/rdn[1]" in caplog.text) is (action == "warn")


@pytest.mark.parametrize("action", ACTIONS)
def test_an_answer_over_http(
    action: Action, services: Any, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        HttpServer(Endpoint(ByDispatcher(Careless(services)))) as server,
        forwarded(connection, server.url, validate=action) as stub,
    ):
        if action == "fail":
            with pytest.raises(MtosiFault, match="did not answer as it should"):
                stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-1"))
            where = "line 2 /Envelope/Body/getManagedElementResponse"
            assert f"getManagedElement over HTTP failed: DecodeError: {where}" in caplog.text
        else:
            assert stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-1")).me is not None
    assert (f"an answer of getManagedElement over HTTP {TOLD}" in caplog.text) is (action == "warn")


@pytest.mark.parametrize("action", ACTIONS)
def test_a_notification_that_is_posted(action: Action, services: Any, caplog: pytest.LogCaptureFixture) -> None:
    message = JmsMessage(body=spoilt(request()))
    with HttpServer(Endpoint(ByDispatcher(Dispatcher(services)))) as server, HttpPeer(server.url) as peer:
        post = Poster(peer, validate=action)
        if action == "fail":
            with pytest.raises(DecodeError, match="odd"):
                post(message)
        else:
            post(message)
    assert (f"a notification {TOLD}" in caplog.text) is (action == "warn")
