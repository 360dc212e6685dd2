"""A Java peer of MTOSI 1.1: Apache CXF with what it makes of TM Forum's WSDLs, as client and as server, at a broker.

The WSDLs of 1.1 do not name W3C's transport, which CXF speaks, so a switch of the profile does.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import pytest
from lxml import etree

import mtosi_jms as mtosi
from mtosi_jms.binding import BindingProfile
from mtosi_jms.broker import BrokerProcess
from mtosi_jms.service import OperationInfo, RequestContext, ServiceInfo
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault
from mtosi_jms.stubs11.ns_tmf854_v1 import types as profile
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import decode, encode

from ..integrations.least import Echo
from ..java_tools import CXF_HTTP, CXF_JMS, JavaPeer
from ..release import services_of
from .peer import FACTORY, at_broker

pytestmark = pytest.mark.broker
PATIENCE: Final = 120.0
W3C: Final = BindingProfile(soap_jms="w3c")
PACKAGES: Final = ("-p", "tmf854.v1=tmf854", "-p", "tmf854.v1.ws=tmf854.ws", "-autoNameResolution", "-validate=none")
DRIVER: Final = """<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/"
 xmlns:ws="tmf854.v1.ws" targetNamespace="tmf854.v1.ws">{}<service name="Release1">{}</service></definitions>"""
_numbers = itertools.count(1)


class Cxf(JavaPeer):
    """Apache CXF in a process of its own.

    Args:
        command: runs CxfRelease1.
        kind: of the broker.
        broker: where it is.
        folder: for the documents that are passed, and for what the program complains of.
    """

    def __init__(self, command: Sequence[str], kind: str, broker: BrokerProcess, folder: Path) -> None:
        arguments = [str(folder), *at_broker(FACTORY[kind], broker)]
        super().__init__([*command, *arguments], folder, PATIENCE, broker.endpoints.password)
        self._addresses: dict[str, str] = {}

    def serve(self, service: str) -> str:
        """Where it serves a service."""
        if service not in self._addresses:
            self._addresses[service] = f"jms:queue:interop.cxf11.{next(_numbers)}"
            assert self.ask("serve", service, self._addresses[service]) == [["serves"]]
        return self._addresses[service]

    def answers(self, *answers: tuple[str, Any, dict[str, Any]]) -> None:
        """What its server is to answer: `` or `.fault`, the body, fields of the header."""
        for number, (kind, body, fields) in enumerate(answers, 1):
            for old in self.folder.glob(f"{number}.*"):
                old.unlink()
            (self.folder / f"{number}{kind}.xml").write_bytes(encode(body))
            if fields:
                (self.folder / f"{number}.header.xml").write_bytes(header(**fields))

    def called(self) -> list[str]:
        """The elements of the requests that its server got since this was asked last; it waits for the first."""
        return self.ask("called")[0]

    def call(self, info: ServiceInfo, operation: OperationInfo, address: str, request: Any, **fields: Any) -> list[str]:
        """Call an operation by its client; `answered`, `sent`, or `fault` and what it says."""
        given = {
            "activityName": operation.name,
            "msgName": operation.request_message,
            "msgType": "REQUEST",
            "senderURI": "jms/Cxf",
            "destinationURI": "jms/Ems",
            "communicationPattern": "SimpleResponse",
            "communicationStyle": "MSG",
            "correlationId": "of-cxf",
        }
        (self.folder / "header.xml").write_bytes(header(**{**given, **fields}))
        (self.folder / "body.xml").write_bytes(encode(request))
        return self.ask("call", info.port_type, address, operation.name)[0]

    def got(self, cls: Any, which: str = "body") -> Any:
        """What has come, as it has read it and written it again."""
        return decode((self.folder / f"{which}.got.xml").read_bytes(), cls)

    def value(self, field: str) -> str | None:
        """A field of the header that has come."""
        return etree.parse(self.folder / "header.got.xml").findtext(f"{{tmf854.v1}}{field}")


def header(**fields: Any) -> bytes:
    """A header of 1.x with some fields."""
    inside = "".join(f"<{name}>{text}</{name}>" for name, text in fields.items())
    return f'<header xmlns="tmf854.v1">{inside}</header>'.encode()


class Side(NamedTuple):
    """Both ends at one broker. `cxf`: the program in Java. `connection`: ours. `types`: the stubs' types of 1.1, with
    their services."""

    cxf: Cxf
    connection: Connection
    types: Any

    def requestor(self) -> mtosi.Requestor:
        return mtosi.Requestor(self.connection, sender_uri="jms/Os", temporary_reply=True, profile=W3C)

    def supplier(self, *services: Any) -> mtosi.Supplier:
        """Our supplier, on a queue of its own."""
        return mtosi.Supplier(self.connection, f"queue:interop.cxf11.{next(_numbers)}", services, profile=W3C)


@pytest.fixture(scope="module", params=["activemq", pytest.param("artemis", marks=pytest.mark.endurance)])
def cxf(request: pytest.FixtureRequest, java: Any, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Apache CXF at each broker, with the classes of the whole release; one process for all tests."""
    release, folder = shared / "mtosi" / "1.1" / "wsdl", tmp_path_factory.mktemp("cxf11")
    if not release.is_dir():
        pytest.skip(f"no MTOSI 1.1 in {release}")
    files = sorted((release / "binding" / "soap_jms").glob("*.wsdl"))
    bindings = [name for one in files for name in re.findall(r'<wsdl:binding name="(\w+)"', one.read_text("utf-8"))]
    imports = "".join(f'<import namespace="tmf854.v1.ws" location="{one.as_uri()}"/>' for one in files)
    address = '<soap:address location="jms:queue:none"/>'
    ports = "".join(f'<port name="{one}Port" binding="ws:{one}">{address}</port>' for one in bindings)
    driver = folder / "release1.wsdl"
    driver.write_text(DRIVER.format(imports, ports), "utf-8")
    jars = [*{one.name: one for one in [*java.jars(*CXF_JMS), *java.jars(*CXF_HTTP)]}.values()]
    texts = [one.read_bytes() for one in (driver, *sorted(release.parent.rglob("*.*sd*")))]
    classes = java.of_wsdl(str(driver), texts, jars, *PACKAGES)
    command = java.compiled(Path(__file__).with_name("CxfRelease1.java"), [*jars, classes])
    made = Cxf(command, request.param, request.getfixturevalue(request.param), folder)
    yield made
    made.kill()


@pytest.fixture(params=["profile", pytest.param("release", marks=pytest.mark.endurance)])
def types(request: pytest.FixtureRequest) -> Any:
    """The types of our own profile of 1.1, and of the whole release; `services` are their stubs."""
    if request.param == "release":
        return request.getfixturevalue("release1")
    return SimpleNamespace(**vars(profile), services=services_of("mtosi_jms.stubs11"))


@pytest.fixture
def side(request: pytest.FixtureRequest, cxf: Cxf, types: Any) -> Iterator[Side]:
    """Our connection beside CXF."""
    broker = request.getfixturevalue(request.node.callspec.params["cxf"])
    with mtosi.connect(broker.endpoints.url("stomp")) as connection:
        yield Side(cxf, connection, types)


def test_every_operation_of_our_supplier_is_called_by_its_client(side: Side) -> None:
    cxf, called = side.cxf, 0
    for echo in map(Echo, side.types.services.values()):
        with side.supplier(echo.supplier) as supplier:
            for operation in echo.info.operations:
                request, response = echo.request(operation), echo.response(operation)
                told = cxf.call(echo.info, operation, f"jms:{supplier.destination}", request)
                assert told == ["answered" if response else "sent"]
                assert echo.got.get(timeout=PATIENCE) == (echo.info.name, operation.name, request)
                if response:
                    assert cxf.got(type(response)) == response
                    fields = [cxf.value(one) for one in ("activityName", "msgType", "correlationId")]
                    assert fields == [operation.name, "RESPONSE", "of-cxf"]
                called += 1
    assert called == (166 if len(side.types.services) > 5 else 15)


def test_every_operation_of_its_server_is_called_by_our_requestor(side: Side) -> None:
    """But those that share an element and not the answer: it tells operations apart by their elements alone."""
    cxf, called = side.cxf, 0
    with side.requestor() as requestor:
        for stub in side.types.services.values():
            echo, ems = Echo(stub), stub(requestor, cxf.serve(stub.__service__.port_type))
            groups = [one for one in echo.info.by_request_tag.values() if len({each.response for each in one}) == 1]
            for operation in itertools.chain.from_iterable(groups):
                request, response = echo.request(operation), echo.response(operation)
                cxf.answers(*[("", response, {})] * (response is not None))
                assert getattr(ems, operation.python_name)(request) == response
                assert cxf.called() == [request.__xml__.element]
                assert cxf.got(type(request), "1") == request
                called += 1
    assert called == (149 if len(side.types.services) > 5 else 15)


def test_faults_are_typed_both_ways(side: Side) -> None:
    cxf, types, manager = side.cxf, side.types, side.types.services["ManagedElementMgr"]
    detail = types.ProcessingFailureException(exception="EXCPT_ENTITY_NOT_FOUND", reason="no such element")
    info = manager.__service__
    operation = next(one for one in info.operations if one.name == "getManagedElement")
    request = types.GetManagedElement(me_name=types.name("MD=E/ME=1"))

    class Ems(manager.Supplier):  # type: ignore[misc, name-defined]
        def get_managed_element(self, request: Any, context: RequestContext) -> Any:
            raise types.ProcessingFailureExceptionFault("no such element", detail=detail)

    with side.supplier(Ems()) as supplier:
        told = cxf.call(info, operation, f"jms:{supplier.destination}", request)
    assert told == ["fault", "ProcessingFailureException", "no such element"]
    found = cxf.got(types.ProcessingFailureException)
    assert (found.exception, found.reason) == (detail.exception, detail.reason)
    cxf.answers((".fault", detail, {}))
    with side.requestor() as requestor, pytest.raises(EntityNotFoundFault) as caught:
        manager(requestor, cxf.serve(info.port_type)).get_managed_element(request, timeout=PATIENCE)
    assert caught.value.detail == detail
    assert cxf.called() == [operation.name]


@pytest.mark.parametrize("elements", [80, pytest.param(20_000, marks=pytest.mark.endurance)])
def test_all_elements_come_by_iterator_both_ways(side: Side, elements: int) -> None:
    cxf, types, manager = side.cxf, side.types, side.types.services["ManagedElementMgr"]
    info, size = manager.__service__, max(elements // 40, 20)
    count = elements // size
    names = {one.name: one for one in info.operations}
    first, rest = names["getAllManagedElements"], names["getAllManagedElementsIterator"]
    domain = types.GetAllManagedElements(md_name=types.name("MD=E"))
    right = [types.name(f"MD=E/ME={one}") for one in range(elements)]

    def batch(number: int) -> tuple[Any, dict[str, Any]]:
        made = [types.ManagedElementT(name=one) for one in right[size * (number - 1) : size * number]]
        fields = {
            "batchSequenceNumber": number,
            "batchSequenceEndOfReply": str(number == count).lower(),
            "iteratorReferenceURI": "it/7",
        }
        return types.GetAllManagedElementsResponse(me_list=types.ManagedElementListT(me=made)), fields

    cxf.answers(*(("", *batch(number)) for number in range(1, count + 1)))
    with side.requestor() as requestor:
        ems = manager(requestor, cxf.serve(info.port_type))
        found = list(ems.get_all_managed_elements.objects(domain, batch_size=size))
    assert [one.name for one in found] == right
    assert cxf.called() == ["getAllManagedElements", *["getMeIterator"] * (count - 1)]
    numbers = iter(range(1, count + 1))

    class Ems(manager.Supplier):  # type: ignore[misc, name-defined]
        def get_all_managed_elements(self, request: Any, context: RequestContext) -> Any:
            response, fields = batch(next(numbers))
            context.reply_fields.update(
                batch_sequence_number=fields["batchSequenceNumber"],
                batch_sequence_end_of_reply=fields["batchSequenceEndOfReply"] == "true",
                iterator_reference_uri=fields["iteratorReferenceURI"],
            )
            return response

        def get_all_managed_elements_iterator(self, request: Any, context: RequestContext) -> Any:
            assert context.header.iterator_reference_uri == "it/7"
            return self.get_all_managed_elements(request, context)

    came, asked, fields = [], domain, {}
    with side.supplier(Ems()) as supplier:
        for number in range(1, count + 1):
            told = cxf.call(info, first if number == 1 else rest, f"jms:{supplier.destination}", asked, **fields)
            assert told == ["answered"]
            assert cxf.value("batchSequenceNumber") == str(number)
            came += cxf.got(types.GetAllManagedElementsResponse).me_list.me
            asked, fields = types.GetMeIterator(), {"iteratorReferenceURI": cxf.value("iteratorReferenceURI")}
    assert [one.name for one in came] == right
    assert cxf.value("batchSequenceEndOfReply") == "true"
