"""The same WSDLs over HTTP: a supplier's dispatcher behind a server on loopback."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import zeep
from zeep.cache import InMemoryCache
from zeep.plugins import HistoryPlugin

from mtosi_jms import soap
from mtosi_jms.errors import ConfigError, ReplyTimeoutError, SchemaError, TransportError
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.integrations.zeep import client, read_wsdl
from mtosi_jms.service import CallOptions
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault

from .conftest import ne


class Server(ThreadingHTTPServer):
    """Answers POST by a function of headers and body: status and document. GET gets the files of a folder. `asked`:
    paths and headers of what was asked."""

    def __init__(self, answer: Callable[[bytes], tuple[int, bytes]], files: Path | None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.files = files
        self.asked: list[tuple[str, Any]] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.asked.append((self.path, self.headers))
        self._send(*self.server.answer(self.rfile.read(int(self.headers["Content-Length"]))))

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers))
        file = self.server.files and self.server.files / self.path.lstrip("/")
        self._send(*((200, file.read_bytes()) if file and file.is_file() else (404, b"")))

    def _send(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(answer: Callable[[bytes], tuple[int, bytes]], files: Path | None = None) -> Iterator[Server]:
    with Server(answer, files) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def server(keeping: Any) -> Iterator[Server]:
    """An EMS over HTTP."""
    dispatcher = Dispatcher([keeping])

    def answer(data: bytes) -> tuple[int, bytes]:
        (reply,) = dispatcher.dispatch(soap.parse(data))
        return 500 if reply.fault is not None else 200, reply.to_bytes()

    with serving(answer) as server:
        yield server


def test_a_set_with_jms_bindings_alone_is_called_over_http(retrieval: Any, server: Server, keeping: Any) -> None:
    history = HistoryPlugin()
    ems = client(retrieval, url=f"http://{server.address}/mer", plugins=[history], sender_uri="urn:oss")
    answer = ems.service.getManagedElement(**ne("NE-2"), _soapheaders={"mtopHeader": {"originatorURI": "urn:a"}})
    assert answer.body.me.name.rdn[1].value == "NE-2"
    header = keeping.contexts[0].header
    assert (header.sender_uri, header.originator_uri, header.activity_name) == ("urn:oss", "urn:a", "getManagedElement")
    assert (header.communication_style, header.msg_type) == ("RPC", "REQUEST")
    assert answer.header.mtopHeader.correlationId == header.correlation_id
    assert history.last_received["http_headers"]["Content-Type"] == "text/xml"
    assert server.asked[0][0] == "/mer"


def test_a_wsdl_with_an_http_binding(shared: Path, server: Server) -> None:
    folder = shared / "mtosi/4.0/ManageResourceInventory/IIS/wsdl/ManagedElementRetrieval"
    ems = client(folder / "ManagedElementRetrievalHttp.wsdl", url=f"http://{server.address}/")
    assert ems.service.getManagedElement(**ne("NE-2")).body.me.name.rdn[1].value == "NE-2"


def test_faults_are_typed(retrieval: Any, server: Server) -> None:
    ems = client(retrieval, url=f"http://{server.address}/")
    with pytest.raises(EntityNotFoundFault, match="there is no MD=EMS1/ME=NE-9") as caught:
        ems.service.getManagedElement(**ne("NE-9"))
    assert isinstance(caught.value, zeep.exceptions.Fault)


def test_a_login_in_the_url_is_sent_and_not_shown(
    retrieval: Any, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    history = HistoryPlugin()
    ems = client(retrieval, url=f"http://ann:g%40heim@{server.address}/mer", plugins=[history])
    ems.service.getManagedElement(**ne("NE-2"))
    assert server.asked[0][1]["Authorization"] == "Basic YW5uOmdAaGVpbQ=="
    shown = f"{ems!r}{ems.transport!r}{caplog.text}{history.last_sent['http_headers']}"
    assert "heim" not in shown
    assert "YW5uOmdAaGVpbQ" not in shown


def test_errors_of_the_way_are_ours_and_show_no_secret(retrieval: Any) -> None:
    with serving(lambda data: (200, b"")) as gone:
        pass
    ems = client(retrieval, url=f"http://ann:geheim@{gone.address}/?password=geheim")
    with pytest.raises(TransportError, match="getManagedElement over HTTP") as caught:
        ems.service.getManagedElement(**ne("NE-1"))
    assert "geheim" not in f"{caught.value}{caught.value.__cause__}{ems!r}"


def test_the_time_of_zeeps_transport_holds(retrieval: Any) -> None:
    done = threading.Event()

    def answer(data: bytes) -> tuple[int, bytes]:
        assert done.wait(60)
        return 200, b""

    with serving(answer) as server:
        ems = client(retrieval, url=f"http://{server.address}/", transport=zeep.Transport(operation_timeout=0.05))
        with pytest.raises(ReplyTimeoutError, match="getManagedElement over HTTP"):
            ems.service.getManagedElement(**ne("NE-1"))
        patient = client(retrieval, url=f"http://{server.address}/", transport=zeep.Transport())
        with patient.transport.settings(timeout=0.05), pytest.raises(ReplyTimeoutError):
            patient.service.getManagedElement(**ne("NE-1"))
        done.set()


def test_an_answer_that_is_no_soap_is_zeeps_to_tell(retrieval: Any) -> None:
    with serving(lambda data: (503, b"<html>busy</html>")) as server:
        ems = client(retrieval, url=f"http://{server.address}/")
        with pytest.raises(zeep.exceptions.Fault, match="Unknown fault"):
            ems.service.getManagedElement(**ne("NE-1"))
    with serving(lambda data: (503, b"busy")) as server:
        ems = client(retrieval, url=f"http://{server.address}/")
        with pytest.raises(zeep.exceptions.TransportError):
            ems.service.getManagedElement(**ne("NE-1"))


def test_an_answer_with_a_document_type_is_refused(retrieval: Any) -> None:
    bomb = b'<!DOCTYPE a [<!ENTITY b "c">]><e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/">&b;</e:Envelope>'
    with serving(lambda data: (200, bomb)) as server:
        ems = client(retrieval, url=f"http://{server.address}/")
        with pytest.raises(zeep.exceptions.DTDForbidden):
            ems.service.getManagedElement(**ne("NE-1"))


@pytest.mark.parametrize("url", ["ftp://host/", "http:///x", "host", 7, "http://h:0x/", "http://ann:geheim@/"])
def test_a_wrong_url_is_told(retrieval: Any, url: Any) -> None:
    with pytest.raises(ConfigError, match="url: give an http: or https: URL") as caught:
        client(retrieval, url=url)
    assert "geheim" not in str(caught.value)


def test_what_needs_jms_is_told(retrieval: Any) -> None:
    with pytest.raises(ConfigError, match="options are for JMS"):
        client(retrieval, url="http://localhost/", options=CallOptions())
    ems = client(retrieval, url="http://localhost/")
    with pytest.raises(ConfigError, match="batches need JMS"):
        ems.batches("getAllManagedElements", batch_size=2)
    with pytest.raises(ConfigError, match="_options are for JMS"):
        ems.service.getManagedElement(**ne("NE-1"), _options=CallOptions())


WSDL = """<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/"
 xmlns:x="http://www.w3.org/2001/XMLSchema" xmlns:g="urn:goods" xmlns:t="urn:shop" targetNamespace="urn:shop">
<types><x:schema><x:import namespace="urn:goods" schemaLocation="{location}"/></x:schema></types>
<message name="in"><part name="body" element="g:order"/></message><portType name="Shop"><operation name="order">
<input message="t:in"/></operation></portType><binding name="b" type="t:Shop"><s:binding
 transport="http://schemas.xmlsoap.org/soap/jms"/><operation name="order"><input><s:body use="literal"/>
</input></operation></binding></definitions>"""
GOODS = """<schema xmlns="http://www.w3.org/2001/XMLSchema" xmlns:p="urn:parts" targetNamespace="urn:goods">
<import namespace="urn:parts" schemaLocation="parts/parts.xsd"/>
<element name="order"><complexType><sequence><element name="part" type="p:Part"/></sequence></complexType></element>
</schema>"""
PARTS = """<schema xmlns="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:parts">
<simpleType name="Part"><restriction base="string"/></simpleType></schema>"""


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[tuple[Path, Server]]:
    """A WSDL whose schema lies on a server, beside one that it imports itself."""
    files = tmp_path / "files"
    (files / "parts").mkdir(parents=True)
    (files / "goods.xsd").write_text(GOODS)
    (files / "parts" / "parts.xsd").write_text(PARTS)
    with serving(lambda data: (404, b""), files) as server:
        wsdl = tmp_path / "shop.wsdl"
        wsdl.write_text(WSDL.format(location=f"http://ann:geheim@{server.address}/goods.xsd"))
        yield wsdl, server


class TestRemoteSchemas:
    def test_nothing_is_fetched_unasked(self, remote: tuple[Path, Server]) -> None:
        wsdl, server = remote
        with pytest.raises(SchemaError, match=r"is remote, and nothing is fetched: put goods\.xsd into") as caught:
            read_wsdl(wsdl)
        assert (caught.value.file, caught.value.line, caught.value.rule) == (str(wsdl), 3, "location-remote")
        assert str(wsdl.parent) in caught.value.message
        assert "geheim" not in str(caught.value)
        assert server.asked == []

    def test_a_transport_fetches_it_and_what_it_needs(self, remote: tuple[Path, Server]) -> None:
        wsdl, server = remote
        document = read_wsdl(wsdl, transport=zeep.Transport())
        assert [path for path, _ in server.asked] == ["/goods.xsd", "/parts/parts.xsd"]
        shop = client(document, url=f"http://{server.address}/")
        envelope = shop.create_message(shop.service, "order", part="wheel")
        assert envelope.findtext(".//{*}part") == "wheel"

    def test_a_cache_of_zeeps_saves_the_second_time(self, remote: tuple[Path, Server]) -> None:
        wsdl, server = remote
        transport = zeep.Transport(cache=InMemoryCache())
        for _ in range(2):
            read_wsdl(wsdl, transport=transport)
        assert len(server.asked) == 2

    def test_a_file_beside_it_does(self, remote: tuple[Path, Server]) -> None:
        wsdl, server = remote
        files = wsdl.parent / "files"
        document = read_wsdl(wsdl, sources=[files])
        assert server.asked == []
        assert list(document.bindings) == ["{urn:shop}b"]

    def test_what_cannot_be_fetched_is_told(self, remote: tuple[Path, Server]) -> None:
        wsdl = remote[0]
        (wsdl.parent / "files" / "goods.xsd").unlink()
        with pytest.raises(SchemaError, match=r"goods\.xsd cannot be fetched: 404") as caught:
            read_wsdl(wsdl, transport=zeep.Transport())
        assert "geheim" not in str(caught.value)
