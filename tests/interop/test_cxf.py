"""Apache CXF at the other end: its client and our supplier, our requestor and its server, by W3C's SOAP over JMS.

The stubs are generated from the WSDL that CXF writes: it names the W3C's transport, so nothing else is set.
"""

from __future__ import annotations

import importlib
import itertools
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import mtosi_jms as mtosi
from mtosi_codegen import generate, write
from mtosi_jms.binding import BindingProfile
from mtosi_jms.broker import BrokerProcess
from mtosi_jms.errors import SoapJmsFault
from mtosi_jms.jms import JmsMessage, MessageType
from mtosi_jms.transport import Capability, Connection

from ..java_tools import CXF_JMS, JavaPeer
from .peer import FACTORY, at_broker

pytestmark = pytest.mark.broker
PATIENCE = 60
NOTES = {"plain": "two cups", "beyond U+FFFF": "größe \U0001f600 & <\U0010ffff>", "2 MB": "0123456789" * 200_000}
_numbers = itertools.count(1)


class Shop(JavaPeer):
    """Apache CXF in a process of its own.

    Args:
        command: runs CxfPeer.
        kind: of the broker.
        broker: where it is.
        folder: for the texts that are passed, and for what the program complains of.

    Attributes:
        queue: where it serves.
        wsdl: what it has written of its service.
    """

    def __init__(self, command: Sequence[str], kind: str, broker: BrokerProcess, folder: Path) -> None:
        arguments = at_broker(FACTORY[kind], broker)
        super().__init__([*command, *arguments], folder, password=broker.endpoints.password)
        self._turn = threading.Lock()
        self.queue = f"interop.cxf.{kind}.{next(_numbers)}"
        self.wsdl = folder / "shop.wsdl"
        assert self.ask("serve", f"jms:queue:{self.queue}", str(self.wsdl)) == [["serves"]]

    def order(self, address: str, item: str, note: str, *, version: str = "", soap: str = "") -> list[str]:
        """What its client makes of one order: the note that it gets back, or `fault` and what that says."""
        sent, got = self.folder / "sent", self.folder / "got"
        with self._turn:
            sent.write_text(note, encoding="utf-8")
            (told,) = self.ask("order", address, item, str(sent), str(got), version, soap)
            return [got.read_text(encoding="utf-8")] if told == ["ordered"] else told

    def cancel(self, address: str, item: str) -> None:
        """Its client sends a one-way request."""
        assert self.ask("cancel", address, item) == [["sent"]]

    def cancelled(self) -> str:
        """What its server was told last by a one-way request."""
        return self.ask("cancelled")[0][0]


class Stubs(NamedTuple):
    """What is generated from the WSDL of CXF."""

    service: Any
    types: Any


class Side(NamedTuple):
    """Both ends at one broker. `cxf`: the program in Java. `connection`: ours. `stubs`: for its service."""

    cxf: Shop
    connection: Connection
    stubs: Stubs

    def supplier(self, seen: list[JmsMessage], **options: Any) -> mtosi.Supplier:
        """Our supplier of the same service, on a queue of its own."""
        types = self.stubs.types

        class Counter(self.stubs.service.Shop.Supplier):  # type: ignore[misc,name-defined]
            def order(self, request: Any, context: Any) -> Any:
                seen.append(context.message)
                if request.item == "tea":
                    raise types.UnknownItemFault("there is no tea", detail=types.UnknownItem(item="tea"))
                return types.OrderResponseElement(note=request.note)

            def cancel(self, request: Any, context: Any) -> None:
                seen.append(context.message)

        return mtosi.Supplier(self.connection, f"queue:interop.cxf.{next(_numbers)}", [Counter()], **options)


@pytest.fixture(scope="module", params=["activemq", pytest.param("artemis", marks=pytest.mark.endurance)])
def cxf(request: pytest.FixtureRequest, java: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Apache CXF at each broker; one process for all tests."""
    broker = request.getfixturevalue(request.param)
    command = java.compiled(Path(__file__).with_name("CxfPeer.java"), java.jars(*CXF_JMS))
    made = Shop(command, request.param, broker, tmp_path_factory.mktemp("cxf"))
    yield made
    made.kill()


@pytest.fixture(scope="module")
def stubs(cxf: Shop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stubs]:
    """The stubs for the service of CXF."""
    folder, package = tmp_path_factory.mktemp("stubs"), f"cxf_stubs_{next(_numbers)}"
    write(folder / package, generate([cxf.wsdl]).files)
    sys.path.insert(0, str(folder))
    try:
        service = importlib.import_module(f"{package}.urn_example.shop_service")
        yield Stubs(service, importlib.import_module(f"{package}.urn_example.shop"))
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(params=["stomp", "jvm"])
def side(request: pytest.FixtureRequest, cxf: Shop, stubs: Stubs) -> Iterator[Side]:
    """Our connection beside CXF, over STOMP and by the broker's Java client."""
    kind = cxf.queue.split(".")[2]
    broker = request.getfixturevalue(kind)
    if request.param == "jvm":
        connection = request.getfixturevalue("connect_by_java")(kind, broker)
    else:
        connection = mtosi.connect(broker.endpoints.url("stomp"))
    with connection:
        yield Side(cxf, connection, stubs)


def shop_of(side: Side, **options: Any) -> Any:
    """A stub for the service of CXF."""
    requestor = mtosi.Requestor(side.connection, sender_uri="jms/OS", temporary_reply=True, **options)
    return side.stubs.service.Shop(requestor, f"jms:queue:{side.cxf.queue}")


def test_our_requestor_and_its_server(side: Side) -> None:
    shop = shop_of(side)
    warned: list[Any] = []
    options = mtosi.CallOptions(on_reply=lambda envelope: warned.extend(envelope.warnings), timeout=PATIENCE)
    for note in NOTES.values():
        assert shop.order(item="coffee", note=note, options=options).note == note
    with pytest.raises(side.stubs.types.UnknownItemFault, match="there is no tea") as caught:
        shop.order(item="tea", note="", options=options)
    assert caught.value.detail == side.stubs.types.UnknownItem(item="tea")
    shop.cancel(item=side.cxf.queue)
    shop.order(item="coffee", note="", options=options)
    assert side.cxf.cancelled() == side.cxf.queue
    assert warned == []


def test_its_server_refuses_what_has_no_properties_of_the_binding(side: Side) -> None:
    shop = shop_of(side, profile=BindingProfile(soap_jms="off"))
    with pytest.raises(SoapJmsFault) as caught:
        shop.order(item="coffee", note="", timeout=PATIENCE)
    assert caught.value.fault_code == "missingContentType"


@pytest.mark.parametrize("kind", [MessageType.BYTES, MessageType.TEXT])
def test_its_client_and_our_supplier(side: Side, kind: MessageType) -> None:
    seen: list[JmsMessage] = []
    with side.supplier(seen) as supplier:
        address = f"jms:{supplier.destination}{'?messageType=text' if kind is MessageType.TEXT else ''}"
        for note in NOTES.values():
            assert side.cxf.order(address, "coffee", note) == [note]
        assert side.cxf.order(address, "tea", "") == ["fault", "there is no tea", "tea"]
        side.cxf.cancel(address, "coffee")
        assert side.cxf.order(address, "coffee", "", soap="1.2") == [""]
    assert [message.body.count(b":cancel") for message in seen] == [0, 0, 0, 0, 2, 0]
    assert [message.reply_to is None for message in seen] == [False, False, False, False, True, False]
    assert {message.properties["SOAPJMS_requestURI"] for message in seen} == {f"jms:{supplier.destination}"}
    if Capability.TYPED_PROPERTIES in side.connection.capabilities:  # STOMP has text alone, and Artemis no kinds there
        assert {(message.message_type, message.properties["SOAPJMS_isFault"]) for message in seen} == {(kind, False)}


def test_its_client_gets_the_faults_of_the_binding(side: Side) -> None:
    told: list[BaseException] = []
    with side.supplier([], on_error=told.append) as supplier:
        answer = side.cxf.order(f"jms:{supplier.destination}", "coffee", "", version="9.9")
    assert answer[:2] == ["fault", "{http://www.w3.org/2010/soapjms/}unrecognizedBindingVersion"]
    assert [type(error) for error in told] == [SoapJmsFault]


@pytest.mark.endurance
def test_many_orders_of_any_size_both_ways(side: Side) -> None:
    """2,000 calls from eight threads and 9 MB each way; what was asked is what is answered."""
    shop = shop_of(side)
    notes = [NOTES["beyond U+FFFF"] * (number % 50) + str(number) for number in range(2_000)]

    def asked(note: str) -> str:
        return str(shop.order(item="coffee", note=note, timeout=PATIENCE).note)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(asked, notes)) == notes
    assert asked("x" * 9_000_000) == "x" * 9_000_000
    with side.supplier([]) as supplier:
        address = f"jms:{supplier.destination}"
        for number, note in enumerate(notes[:200]):
            if number % 10 == 0:
                assert side.cxf.order(address, "tea", note)[0] == "fault"
            assert side.cxf.order(address, "coffee", note) == [note]
        assert side.cxf.order(address, "coffee", "x" * 9_000_000) == ["x" * 9_000_000]
