"""What HTTP and SOAP say beside the body: headers, lines and the SOAP action, header blocks that must be understood,
which answer is whose (001-H1 to H6), and health."""

from __future__ import annotations

import json
import queue
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

import mtosi_jms as mtosi
from mtosi_jms import simulator
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import ByDispatcher, ByRequestor, Endpoint, HttpPeer, HttpServer, Store
from mtosi_jms.namespaces import SOAP11, SOAP12
from mtosi_jms.service import OperationInfo, ServiceInfo, SupplierBase
from mtosi_jms.soap import parse
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import DECLARATION, RawXml, encode

from .conftest import ELEMENTS, ONE, QUEUE, forwarded, gateway

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


TYPES = {SOAP11: "text/xml", SOAP12: "application/soap+xml"}


def _operation(name: str) -> OperationInfo:
    element = "mri.mer:GetManagedElement"
    return OperationInfo(
        name=name,
        python_name=name,
        request=f"{element}Request",
        response=f"{element}Response",
        soap_action=f"urn:{name}",
    )


class Twins(SupplierBase):
    """Two operations with one request element."""

    __service__ = ServiceInfo(
        name="Twins",
        namespace="urn:twins",
        root="mtosi_jms.stubs",
        operations=(_operation("live"), _operation("stored")),
    )

    def live(self, request: Any, context: mtosi.RequestContext) -> mer.GetManagedElementResponse:
        return mer.GetManagedElementResponse(me=ManagedElementType(location="live"))

    def stored(self, request: Any, context: mtosi.RequestContext) -> mer.GetManagedElementResponse:
        return mer.GetManagedElementResponse(me=ManagedElementType(location="stored"))


@pytest.fixture(params=["services", "jms"])
def serve(request: pytest.FixtureRequest, connection: Connection) -> Iterator[Callable[[Any], str]]:
    """Starts a server with a service, here or beyond JMS; returns its URL."""
    with ExitStack() as stack:

        def start(service: Any) -> str:
            if request.param == "jms":
                return stack.enter_context(gateway(connection, service)).url
            return stack.enter_context(HttpServer(Endpoint(ByDispatcher(Dispatcher([service]))))).url

        yield start


@pytest.mark.obligation("REQ3")
@pytest.mark.parametrize("space", [SOAP11, SOAP12])
def test_a_block_that_must_be_understood(serve: Any, client: Any, space: str) -> None:
    url = serve(simulator.ManagedElementEms(simulator.Network(elements=1)))
    for must, code in (("0", None), ("1", "MustUnderstand")):
        block = f'<t:Tx xmlns:t="urn:tx" soap:mustUnderstand="{must}"/>'
        text = ONE.replace(SOAP11, space).replace("NAME", "NE-1")
        text = text.replace("<soap:Body>", f"<soap:Header>{block}</soap:Header><soap:Body>")
        answer = client(url).post(text, **{"Content-Type": TYPES[space]})
        fault = parse(answer.content, needs_header=False).fault
        assert (None if fault is None else fault.fault_code) == code
        assert answer.headers["content-type"].startswith(TYPES[space])


@pytest.mark.obligation("REQ3")
def test_what_the_gateway_answers_itself(serve: Any, client: Any, connection: Connection) -> None:
    block = '<soap:Header><t:Tx xmlns:t="urn:tx" soap:mustUnderstand="1"/></soap:Header><soap:Body>'
    further = ONE.replace("getManagedElementRequest", "getManagedElementsIteratorRequest").replace("<soap:Body>", block)
    _, envelope = client(serve(simulator.ManagedElementEms(simulator.Network(elements=1)))).ask(further)
    assert envelope.fault.fault_code == "MustUnderstand"
    event = NotifyMessage(common_event_information=[Alarm(object_type="ME")])
    body = encode(Notify(topic="Fault", message=event))[len(DECLARATION) :].decode()
    notify = f'<soap:Envelope xmlns:soap="{SOAP11}">{block}{body}</soap:Body></soap:Envelope>'
    names = {"jms/Gw": "queue:GW", "topic": "topic:T"}
    with (
        mtosi.connect("memory:blocks", names=names) as other,
        mtosi.Requestor(other, sender_uri="jms/Gw") as requestor,
        mtosi.Publisher(other, topics={"Fault": "topic"}, sender_uri="jms/Gw") as publisher,
        HttpServer(Endpoint(ByRequestor(requestor, QUEUE, Store(10_000), publisher=publisher))) as server,
    ):
        status, envelope = client(server.url).ask(notify)
        assert (status, envelope.fault.fault_code) == (500, "MustUnderstand")


@pytest.mark.obligation("REQ3")
def test_a_peer_over_http_is_told_of_it_in_its_version(connection: Connection) -> None:
    def with_block(envelope: Any) -> Any:
        envelope.version = "1.2"
        envelope.blocks = [RawXml(f'<t:Tx xmlns:t="urn:tx" xmlns:S="{SOAP12}" S:mustUnderstand="true"/>'.encode())]
        return envelope

    services = [simulator.ManagedElementEms(simulator.Network(elements=1))]
    with (
        HttpServer(Endpoint(ByDispatcher(Dispatcher(services)))) as server,
        forwarded(connection, server.url) as stub,
    ):
        options = mtosi.CallOptions(on_request=with_block)
        with pytest.raises(mtosi.MtosiFault) as refused:
            stub.get_managed_element(me_ref="MD=EMS1/ME=NE-1", options=options)
        assert refused.value.fault_code == "MustUnderstand"


@pytest.mark.obligation("REQ1")
def test_the_soap_action_chooses_among_operations_with_one_element(client: Any) -> None:
    with HttpServer(Endpoint(ByDispatcher(Dispatcher([Twins()])))) as server:
        for action in ("live", "stored"):
            answer = client(server.url).post(ONE, SOAPAction=f'"urn:{action}"')
            assert f">{action}<" in answer.text
            content_type = {"Content-Type": f'application/soap+xml; action="urn:{action}"'}
            answer = client(server.url).post(ONE.replace(SOAP11, SOAP12), **content_type)
            assert f">{action}<" in answer.text
        both = {"SOAPAction": '"urn:live"', "Content-Type": 'text/xml; action="urn:stored"'}
        assert "request of live and stored" in client(server.url).post(ONE, **both).text
        both = {"SOAPAction": '"urn:live"', "Content-Type": 'text/xml; action="urn:live"'}
        assert ">live<" in client(server.url).post(ONE, **both).text
        status, envelope = client(server.url).ask(ONE)
        assert (status, envelope.fault.reason[:49]) == (500, "getManagedElementRequest is the request of live a")


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "gateway.md").read_text(encoding="utf-8")


def test_health_and_readiness_are_as_the_page_shows_them(page: str) -> None:
    shown = [json.loads(text) for text in re.findall(r"`GET /\w+` gives [^`]*`(\{.*?\})`", page)]
    with HttpServer(Endpoint(ByDispatcher(Dispatcher([])))) as server:
        told = [httpx.get(f"{server.url}/{path}", trust_env=False, verify=False).json() for path in ("health", "ready")]
    assert [list(one) for one in told] == [list(one) for one in shown]
    assert told[1] == shown[1]


def test_readiness_is_what_the_program_says() -> None:
    with HttpServer(Endpoint(ByDispatcher(Dispatcher([])), is_ready=lambda: False)) as server:
        answers = [httpx.get(f"{server.url}{path}", trust_env=False, verify=False) for path in ("/ready", "/readyz")]
        assert httpx.get(f"{server.url}/healthz", trust_env=False, verify=False).json()["status"] == "up"
    assert [(answer.status_code, answer.json()) for answer in answers] == [(503, {"ready": False})] * 2
