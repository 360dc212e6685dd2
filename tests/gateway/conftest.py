"""What the tests of SOAP over HTTP share."""

from __future__ import annotations

import asyncio
import http.server
import itertools
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from lxml import etree

import mtosi_jms as mtosi
from mtosi_jms import simulator
from mtosi_jms.exchange import Dispatcher, Supplier
from mtosi_jms.notifications import Publisher
from mtosi_jms.soap import Envelope, parse
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import encode

from ..waiting import PATIENCE, until

httpx = pytest.importorskip("httpx", reason="the extra http is not installed")

from mtosi_jms.gateway import (  # noqa: E402 - it needs the extra
    ByRequestor,
    Endpoint,
    Forwarder,
    HttpOptions,
    HttpPeer,
    HttpServer,
    Store,
    WsdlFiles,
)

ELEMENTS = 70
QUEUE = "queue:EMS.OS"
ADDRESSES = ("senderURI", "destinationURI", "originatorURI")
_numbers = itertools.count()
ONE = """<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/" xmlns:mer="http://www.tmforum.org/mtop/mri/xsd/mer/v1"
 xmlns:nam="http://www.tmforum.org/mtop/fmw/xsd/nam/v1"><soap:Body><mer:getManagedElementRequest><mer:meRef>
 <nam:rdn><nam:type>MD</nam:type><nam:value>EMS1</nam:value></nam:rdn><nam:rdn><nam:type>ME</nam:type>
 <nam:value>NAME</nam:value></nam:rdn></mer:meRef></mer:getManagedElementRequest></soap:Body></soap:Envelope>"""
TEXT = {"Content-Type": "text/xml; charset=utf-8"}


class Certificate(NamedTuple):
    """A certificate that signed itself, and its key."""

    file: str
    key: str


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Certificate]:
    """Makes certificates, of a name and for an address."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    folder = tmp_path_factory.mktemp("certificates")

    def make(common_name: str, address: str = "127.0.0.1", *more: str) -> Certificate:
        made = Certificate(str(folder / f"{common_name}.pem"), str(folder / f"{common_name}.key"))
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2"]
        names = ["-subj", f"/CN={common_name}", "-addext", f"subjectAltName=IP:{address}"]
        where = ["-keyout", made.key, "-out", made.file]
        subprocess.run([*command, *(more or ("-nodes",)), *names, *where], check=True, capture_output=True)
        return made

    return make


@pytest.fixture(autouse=True, scope="module")
def servers_end_at_once() -> Iterator[None]:
    """uvicorn looks ten times a second whether it is to end, and hundreds of servers of these tests end."""
    quick = SimpleNamespace(**{**vars(asyncio), "sleep": lambda seconds: asyncio.sleep(seconds / 20)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("uvicorn.server.asyncio", quick)
        yield


@pytest.fixture
def connection() -> Iterator[Connection]:
    """Over the embedded provider, one for each test."""
    with mtosi.connect(f"memory:gateway-{next(_numbers)}") as made:
        yield made


@contextmanager
def gateway(
    connection: Connection,
    *services: Any,
    queue: str = QUEUE,
    store: Store | None = None,
    timeout: float | None = None,
    options: HttpOptions | None = None,
    wsdl: WsdlFiles | None = None,
    publisher: Publisher | None = None,
) -> Iterator[HttpServer]:
    """A gateway to a supplier, of some services, on a provider. No exchange is left open, but by time-outs."""
    with ExitStack() as stack:
        if services:
            supplier = services[0] if isinstance(services[0], Dispatcher) else list(services)
            stack.enter_context(Supplier(connection, queue, supplier).start(4))
        requestor = stack.enter_context(mtosi.Requestor(connection, sender_uri="jms/Gateway", temporary_reply=True))
        source = ByRequestor(requestor, queue, store or Store(2**20), timeout, publisher=publisher)
        server = stack.enter_context(HttpServer(Endpoint(source, options, wsdl=wsdl)))
        yield server
        if timeout is None:
            until(lambda: requestor.pending == 0)


@contextmanager
def forwarded(
    connection: Connection, peer: HttpPeer | str, queue: str = QUEUE, *, validate: Any = "ignore", **options: Any
) -> Iterator[ManagedElementRetrieval]:
    """A stub whose requests go over JMS, and from there to an HTTP peer. `options`: of the peer, by its URL."""
    with (
        HttpPeer(peer, **options) if isinstance(peer, str) else peer as there,
        Supplier(connection, queue, Forwarder(there, validate=validate)).start(2),
        mtosi.Requestor(connection, sender_uri="jms/OS", temporary_reply=True) as requestor,
    ):
        yield ManagedElementRetrieval(requestor, queue)


@contextmanager
def http_peer(answer: Callable[[Any], object], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """An HTTP server, whose handler of each POST is given to a function when its body is read, as `handler.body`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.body = self.rfile.read(int(self.headers["Content-Length"]))
            self.close_connection = True
            with suppress(OSError):  # the other side reads no more
                answer(self)

        def log_message(self, *_: Any) -> None:
            """Nothing is to be said."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        served.handle_error = lambda *_: None  # type: ignore[method-assign]
        if tls is not None:
            served.socket = tls.wrap_socket(served.socket, server_side=True)
        thread = threading.Thread(target=served.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"{'http' if tls is None else 'https'}://127.0.0.1:{served.server_port}/"
        finally:
            served.shutdown()
            thread.join()


def respond(handler: Any, status: int, content: bytes = b"", **headers: str) -> None:
    """Sends an answer; `_` in the names of headers stands for `-`."""
    handler.send_response(status)
    for name, value in {"Content_Type": "text/xml", "Content_Length": str(len(content)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(content)


class Halting(simulator.ManagedElementEms):
    """Gives 25 elements, or more, and the others when it is let go."""

    def __init__(self, elements: int = ELEMENTS, first: int = 25) -> None:
        super().__init__(simulator.Network(elements=elements, seed=1))
        self.let_go = threading.Event()
        self._first = first

    def get_all_managed_elements(self, request: Any, context: Any) -> Any:
        for number, element in enumerate(super().get_all_managed_elements(request, context)):
            assert number < self._first or self.let_go.wait(PATIENCE)
            yield element


FEW, MANY = 300, 20_000


class Provider(NamedTuple):
    """A JMS provider, and how many elements pass there. `connection`: to it. `network`: of the elements."""

    connection: Connection
    network: simulator.Network


@pytest.fixture(
    params=["memory", *(pytest.param(one, marks=[pytest.mark.endurance]) for one in ("activemq", "artemis"))]
)
def provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    """The embedded provider with a few elements; each broker with many."""
    number = next(_numbers)
    few = request.param == "memory"
    url = f"memory:provider-{number}" if few else request.getfixturevalue(request.param).endpoints.url("stomp")
    with mtosi.connect(url) as made:
        yield Provider(made, simulator.Network(elements=FEW if few else MANY, seed=1))


@pytest.fixture
def queue_name() -> str:
    """A queue of the test's own: brokers outlive tests."""
    return f"queue:gateway.{next(_numbers)}"


@pytest.fixture(scope="session")
def official_wsdl(shared: Path) -> Path:
    """ManagedElementRetrieval over HTTP, as TM Forum has it."""
    (file,) = (shared / "mtosi" / "2.0").rglob("ManagedElementRetrievalHttp.wsdl")
    return file


@pytest.fixture
def front(provider: Provider, queue_name: str, official_wsdl: Path) -> Iterator[str]:
    """URL of a gateway to a supplier on the provider; `?wsdl` gives the official WSDL."""
    wsdl, ems = WsdlFiles([official_wsdl]), simulator.ManagedElementEms(provider.network)
    with gateway(provider.connection, ems, queue=queue_name, wsdl=wsdl) as server:
        yield server.url


@pytest.fixture(scope="session")
def services() -> list[Any]:
    """Services over a network of `ELEMENTS` elements."""
    network = simulator.Network(elements=ELEMENTS, seed=1)
    return [simulator.ManagedElementEms(network), simulator.InventoryEms(network)]


@pytest.fixture
def official(shared: Path) -> Callable[[str], str]:
    """One of TM Forum's samples of ManageResourceInventory, by the beginning of its name."""
    folder = shared / "samples" / "official-2.0" / "ManageResourceInventory"

    def read(number: str) -> str:
        (path,) = folder.glob(f"{number}_*.xml")
        return path.read_text(encoding="utf-8")

    return read


def connected(url: str) -> socket.socket:
    """A connection to a server, for what no client would send."""
    parts = urlsplit(url)
    return socket.create_connection((str(parts.hostname), int(str(parts.port))), timeout=PATIENCE)


class Client:
    """A client that works as MTOSI's clients over HTTP do. `url`: of the server. `options`: of httpx."""

    def __init__(self, url: str, **options: Any) -> None:
        self.url = url
        options.setdefault("verify", url.startswith("https:"))  # authorities take long to read
        self.http = httpx.Client(timeout=60, trust_env=False, **options)

    def post(self, text: str | bytes, **headers: str) -> Any:
        """The HTTP response to an envelope."""
        return self.http.post(self.url, content=text, headers=TEXT | headers)

    def ask(self, text: str | bytes) -> tuple[int, Envelope]:
        """Status and envelope of the answer."""
        answer = self.post(text)
        return answer.status_code, parse(answer.content, needs_header=False)

    def fetch(self, first: str, further: str) -> Iterator[Envelope]:
        """All answers to a request, fetched through its iterator. `first`: the request. `further`: the request of the
        iterator operation, with any iteratorReferenceURI."""
        status, envelope = self.ask(first)
        while True:
            assert (status, envelope.fault) == (200, None)
            yield envelope
            assert envelope.header is not None
            uri = envelope.header.iterator_reference_uri
            assert (uri is None) is (envelope.header.batch_sequence_end_of_reply is not False)
            if uri is None:
                return
            status, envelope = self.ask(with_iterator(further, uri))


def said(elements: Iterable[ManagedElementType]) -> list[tuple[bytes, list[str]]]:
    """What elements say, one after the other: all but their extensions as XML, and the texts of these.

    Others give extensions other prefixes.
    """
    told = []
    for one in elements:
        found = one.vendor_extensions
        kept = [] if found is None else [f"{raw.tag} {raw.element().text}" for raw in found.any_]
        plain = mer.GetManagedElementResponse(me=replace(one, vendor_extensions=None))
        told.append((encode(plain), kept))
    return told


def with_iterator(text: str, uri: str) -> str:
    """A request of an iterator operation for another iterator."""
    return re.sub(r"(<hdr:iteratorReferenceURI>)[^<]*", rf"\g<1>{uri}", text)


@pytest.fixture
def client() -> Iterator[Callable[..., Client]]:
    """Makes clients; they are closed with the test."""
    made: list[Client] = []

    def make(url: str, **options: Any) -> Client:
        made.append(Client(url, **options))
        return made[-1]

    yield make
    for one in made:
        one.http.close()


def _tree(element: Any) -> tuple[Any, ...]:
    return element.tag, (element.text or "").strip(), tuple(_tree(one) for one in element.iterchildren("*"))


def printed(text: bytes | str) -> tuple[Any, ...]:
    """What an envelope says, without ids, addresses and times: element names and texts."""
    root: Any = etree.fromstring(
        text if isinstance(text, bytes) else text.encode(), etree.XMLParser(remove_comments=True)
    )
    for name in ("iteratorReferenceURI", "correlationId", "timestamp", "faultactor", *ADDRESSES):
        for found in root.xpath(f"//*[local-name()='{name}']"):
            found.getparent().remove(found)
    for code in root.xpath("//faultcode"):
        code.text = code.text.rpartition(":")[2]
    return _tree(root)
