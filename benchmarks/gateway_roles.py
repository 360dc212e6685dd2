"""The roles of exchanges through the HTTP gateway; over a broker each is a process of its own."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from messaging import WANTED
from network import managed_element, managed_elements

import mtosi_jms as mtosi
from mtosi_jms.gateway import ByRequestor, Endpoint, HttpServer, Store
from mtosi_jms.service import RequestContext
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.mer import (
    GetAllManagedElementsRequest,
    GetAllManagedElementsResponse,
    GetManagedElementRequest,
    GetManagedElementResponse,
)
from mtosi_jms.stubs.nrf.me import ManagedElementListType
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import RawXml, XmlObject

EMS: Final = "jms/EmsOS"
IN_FLIGHT: Final = 50
BATCH: Final = 500
SLOW: Final = name("MD=EMS1/ME=SLOW")
SLOW_CALLS: Final = 10
SLOW_SECONDS: Final = 5.0
_MEMORY: Final = 32 * 2**20
_PATIENCE: Final = 120.0
_LENGTH: Final = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
_NEXT: Final = re.compile(rb"iteratorReferenceURI>([^<]+)<")


class Ems(ManagedElementRetrieval.Supplier):
    """Answers with objects that were made beforehand.

    Args:
        batches: number of partial responses to `getAllManagedElements`.
    """

    def __init__(self, batches: int = 0) -> None:
        self._one = GetManagedElementResponse(me=managed_element(7))
        self._many = partial_response() if batches else None
        self._batches = batches

    def get_managed_element(
        self, request: GetManagedElementRequest, context: RequestContext
    ) -> GetManagedElementResponse:
        """Return the same object for each request; a request for `SLOW` takes a long time."""
        if request.me_ref == SLOW:
            time.sleep(SLOW_SECONDS)
        return self._one

    def get_all_managed_elements(
        self, request: GetAllManagedElementsRequest, context: RequestContext
    ) -> Iterator[GetAllManagedElementsResponse]:
        """Yield the same response again and again."""
        for _ in range(self._batches):
            assert self._many is not None
            yield self._many


def partial_response() -> GetAllManagedElementsResponse:
    """Return one of several partial responses: 570 kB."""
    return GetAllManagedElementsResponse(me_list=ManagedElementListType(me=list(managed_elements(1, BATCH))))


def connect(plan: dict[str, Any]) -> Connection:
    """A connection to the provider of a plan."""
    names = {"jms/InventoryOS": "queue:BENCH.OS", EMS: "queue:BENCH.EMS"}
    login = {"user": plan["user"], "password": plan["password"]} if "user" in plan else {}
    return mtosi.connect(plan["url"], names=names, connect_timeout=60, prefetch=plan.get("prefetch", 50), **login)


class Supplier:
    """Answers requests on JMS."""

    def __init__(self, plan: dict[str, Any], connection: Connection | None = None) -> None:
        supplier = mtosi.Supplier(connection or connect(plan), EMS, services=[Ems(plan.get("batches", 0))])
        self.supplier = supplier.start(plan.get("threads", 1))

    def run(self, amount: int) -> int:
        """Do nothing: it answers by itself."""
        return amount


class Gateway:
    """Passes on requests over HTTP."""

    def __init__(self, plan: dict[str, Any], connection: Connection | None = None) -> None:
        requestor = mtosi.Requestor(connection or connect(plan), sender_uri="jms/Gateway", temporary_reply=True)
        self.server = HttpServer(Endpoint(ByRequestor(requestor, EMS, Store(_MEMORY))), port=plan["port"]).start()

    def run(self, amount: int) -> int:
        """Do nothing: it answers by itself."""
        return amount


class Direct:
    """Callers over JMS: tasks of one event loop."""

    def __init__(self, plan: dict[str, Any], connection: Connection | None = None) -> None:
        temporary = plan.get("temporary", False)
        requestor = mtosi.Requestor(
            connection or connect(plan), sender_uri="jms/InventoryOS", temporary_reply=temporary
        )
        self.service = ManagedElementRetrieval(requestor, EMS)

    def run(self, amount: int) -> int:
        """Make this number of calls; no leaf of an answer is read."""
        return asyncio.run(self._calls(amount // IN_FLIGHT))

    async def _calls(self, calls: int) -> int:
        async def work() -> int:
            for _ in range(calls):
                response = await self.service.aio.get_managed_element(me_ref=WANTED)
                if response.me is None:
                    raise RuntimeError("an answer without its managed element")
            return calls

        return sum(await asyncio.gather(*[work() for _ in range(IN_FLIGHT)]))


class BatchDirect(Direct):
    """One caller of an operation with several responses."""

    def run(self, amount: int) -> int:
        """Make one call; return the number of responses. No leaf is read."""
        return sum(1 for _ in self.service.get_all_managed_elements.batches(batch_size=BATCH))


class HttpClient:
    """A persistent connection that sends requests made beforehand and does not parse answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> HttpClient:
        """Connects to the gateway."""
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=2**16))

    async def ask(self, request: bytes) -> bytes:
        """Send a request, and return the body of the answer.

        Raises:
            RuntimeError: the status is not 200.
        """
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        body = await self._reader.readexactly(int(length[1])) if length else b""
        if b" 200 " not in head[:13]:
            raise RuntimeError(f"{head!r} {body!r:.500}")
        return body


class HttpCallers:
    """Clients over HTTP that call one after the other, each on a connection of its own."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.port = plan["port"]
        self.request = posted("getManagedElement", GetManagedElementRequest(me_ref=WANTED))

    def run(self, amount: int) -> int:
        """Make this number of calls."""
        return asyncio.run(self._calls(amount // IN_FLIGHT))

    async def _calls(self, calls: int) -> int:
        async def work() -> int:
            client = await HttpClient.open(self.port)
            for _ in range(calls):
                if b"getManagedElementResponse" not in await client.ask(self.request):
                    raise RuntimeError("another answer")
            return calls

        return sum(await asyncio.gather(*[work() for _ in range(IN_FLIGHT)]))


class SlowCallers:
    """Clients that repeat a slow request until they are told to stop."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.port = plan["port"]
        self.request = posted("getManagedElement", GetManagedElementRequest(me_ref=SLOW))
        self.going = threading.Event()
        self.threads: list[threading.Thread] = []

    def run(self, amount: int) -> int:
        """Start with this number of calls in flight; with 0, stop and wait for the last answer."""
        self.going.clear()
        for thread in self.threads:
            thread.join()
        self.threads = [threading.Thread(target=self._loop) for _ in range(amount)]
        self.going.set()
        for thread in self.threads:
            thread.start()
        return amount

    def _loop(self) -> None:
        async def work() -> None:
            client = await HttpClient.open(self.port)
            while self.going.is_set():
                await client.ask(self.request)

        asyncio.run(work())


class Fetcher:
    """A client over HTTP that fetches a long answer through its iterator."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.port = plan["port"]
        self.first = GetAllManagedElementsRequest()
        self.further = RawXml(
            b'<m:getManagedElementsIteratorRequest xmlns:m="http://www.tmforum.org/mtop/mri/xsd/mer/v1"/>'
        )

    def run(self, amount: int) -> int:
        """Make one call; return the number of responses."""
        return asyncio.run(self._fetch())

    async def _fetch(self) -> int:
        client, count = await HttpClient.open(self.port), 1
        body = await client.ask(posted("getAllManagedElements", self.first, BATCH))
        while found := _NEXT.search(body):
            request = posted("getManagedElementsIterator", self.further, BATCH, found[1].decode())
            body = await client.ask(request)
            count += 1
        return count


def posted(operation: str, body: XmlObject | RawXml, batch: int | None = None, iterator: str | None = None) -> bytes:
    """Return the octets of an HTTP request."""
    pattern = (
        CommunicationPatternType.SimpleResponse if batch is None else CommunicationPatternType.MultipleBatchResponse
    )
    header = Header(
        activity_name=operation,
        sender_uri="http://os",
        communication_pattern=pattern,
        communication_style=CommunicationStyleType.RPC,
        requested_batch_size=batch,
        iterator_reference_uri=iterator,
    )
    data = Envelope(header=header, body=body).to_bytes()
    head = ["POST / HTTP/1.1", "Host: localhost", "Content-Type: text/xml", f"Content-Length: {len(data)}", "", ""]
    return "\r\n".join(head).encode() + data


ROLES: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "supplier": Supplier,
    "gateway": Gateway,
    "direct": Direct,
    "direct batches": BatchDirect,
    "http": HttpCallers,
    "slow": SlowCallers,
    "fetch": Fetcher,
}


def role(plan: dict[str, Any], scenario: str, answers: bool) -> Any:
    """One role."""
    return ROLES[scenario](plan)
