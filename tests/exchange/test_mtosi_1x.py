"""Stubs of MTOSI 1.1 at either end: the header of their release, batches, correlation, typed faults."""

from __future__ import annotations

import asyncio
import importlib
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from lxml import etree

import mtosi_jms as mtosi
from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import IncompleteBatchError, MtosiFault, ProtocolError
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.header import MTOSI_1X
from mtosi_jms.service import OperationInfo, RequestContext, ServiceInfo
from mtosi_jms.soap import Envelope, dialect_of, header_class, parse
from mtosi_jms.stubs.fmw.hdr import MessageTypeType
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault, InternalErrorFault
from mtosi_jms.testing import exchange

SPACE: Final = "{tmf854.v1}"
NAMES: Final = {"jms/Os": "queue:OS", "jms/Ems": "queue:EMS"}
FIELDS: Final = {
    "activityName": "getAllManagedElements",
    "msgName": "getAllManagedElementsResponse",
    "msgType": "RESPONSE",
    "senderURI": "jms/Ems",
    "destinationURI": "jms/Os",
    "communicationPattern": "MultipleBatchResponse",
    "communicationStyle": "MSG",
}


@pytest.fixture
def ems(stubs: Any) -> Any:
    """A manager with five elements; its answer for one element is a fault."""

    class Ems(stubs.Mgr.Supplier):  # type: ignore[misc, name-defined]
        seen: Any = None

        def get_all_managed_elements(self, request: Any, context: RequestContext) -> Iterator[Any]:
            self.seen = context.header
            for number in range(5):
                yield stubs.ManagedElementT(name=stubs.NamingAttributesT(md_nm="E", me_nm=str(number)))

        def get_managed_element(self, request: Any, context: RequestContext) -> Any:
            self.seen = context.header
            match request.me_name.me_nm:
                case "kind":
                    raise MtosiFault("none", kind="objectInUse")
                case "of 2.0":
                    raise EntityNotFoundFault("none")
                case "of 1.1":
                    detail = stubs.ProcessingFailureException(exception="EXCPT_ENTITY_NOT_FOUND", reason="none")
                    raise stubs.ProcessingFailureExceptionFault(detail=detail)
                case "broken":
                    raise RuntimeError
            return stubs.GetManagedElementResponse(me=stubs.ManagedElementT(name=request.me_name))

    return Ems()


def every(stub: Any, stubs: Any, size: int, **options: Any) -> list[str]:
    domain = stubs.NamingAttributesT(md_nm="E")
    found = stub.get_all_managed_elements.objects(md_name=domain, batch_size=size, **options)
    return [one.name.me_nm for one in found]


async def every_aio(stub: Any, stubs: Any, size: int) -> list[str]:
    found = stub.aio.get_all_managed_elements.objects(md_name=stubs.NamingAttributesT(md_nm="E"), batch_size=size)
    return [one.name.me_nm async for one in found]


@pytest.mark.obligation("DIA3")
@pytest.mark.parametrize("chosen", ["", "1.x", "2.x", "MTOSI_Header", "{vendor.v1}Head"])
def test_simple_and_batched_responses_by_threads_and_asyncio(stubs: Any, ems: Any, chosen: str) -> None:
    with exchange([ems], profile=BindingProfile(header=chosen)) as pair:
        stub = pair.stub(stubs.Mgr)
        headers: list[Any] = []
        options = mtosi.CallOptions(on_reply=lambda envelope: headers.append(envelope.header))
        assert every(stub, stubs, 2, options=options) == list("01234")
        assert asyncio.run(every_aio(stub, stubs, 3)) == list("01234")
        name = stubs.NamingAttributesT(md_nm="E", me_nm="7")
        assert stub.get_managed_element(me_name=name).me.name == name
        assert asyncio.run(stub.aio.get_managed_element(me_name=name)).me.name == name
        assert [one.batch_sequence_number for one in headers] == [1, 2, 3]
        assert {type(one) for one in headers} == {type(ems.seen)}
        assert chosen in ("", dialect_of(ems.seen).release, dialect_of(ems.seen).tag)
        assert chosen or dialect_of(ems.seen).tag == f"{SPACE}header"


@pytest.mark.obligation("DIA7")
@pytest.mark.parametrize(
    ("case", "code", "kind", "classes"),
    [
        ("kind", "EXCPT_OBJECT_IN_USE", "objectInUse", ()),
        ("of 2.0", "EXCPT_ENTITY_NOT_FOUND", "entityNotFound", (EntityNotFoundFault,)),
        ("of 1.1", "EXCPT_ENTITY_NOT_FOUND", "entityNotFound", (EntityNotFoundFault,)),
        ("broken", "EXCPT_INTERNAL_ERROR", "internalError", (InternalErrorFault,)),
    ],
)
def test_faults_are_typed_by_their_code(
    stubs: Any, ems: Any, case: str, code: str, kind: str, classes: tuple[type[MtosiFault], ...]
) -> None:
    with exchange([ems]) as pair, pytest.raises(stubs.ProcessingFailureExceptionFault) as raised:
        pair.stub(stubs.Mgr).get_managed_element(me_name=stubs.NamingAttributesT(me_nm=case))
    fault = raised.value
    assert (fault.kind, str(fault.detail.exception)) == (kind, code)
    assert all(isinstance(fault, cls) for cls in classes)
    assert dialect_of(fault.header).release == "1.x"
    assert pickle.loads(pickle.dumps(fault)) == fault


@pytest.fixture(scope="module")
def services(stubs: Any) -> dict[str, Any]:
    """The stubs of all services, by name."""
    places = [path.split(":") for path in importlib.import_module("old11").__services__]
    return {name: getattr(importlib.import_module(f"old11.{module}"), name) for module, name in places}


@pytest.fixture
def served(services: dict[str, Any], least_instance: Callable[[Any], Any]) -> tuple[list[Any], list[tuple[str, Any]]]:
    """Suppliers of all services, and what their handlers got: each answers with its least response."""
    got: list[tuple[str, Any]] = []

    def handler(service: ServiceInfo, operation: OperationInfo) -> Callable[..., Any]:
        def answer(supplier: Any, request: Any, context: RequestContext) -> Any:
            got.append((operation.name, request))
            return least_instance(service.load(operation.response)) if operation.response else None

        return answer

    suppliers = []
    for name, stub in services.items():
        handlers = {one.python_name: handler(stub.__service__, one) for one in stub.__service__.operations}
        suppliers.append(type(name, (stub.Supplier,), handlers)())
    return suppliers, got


def asks(body: Any, **fields: Any) -> Envelope:
    """A request with these fields of the header and no others."""
    header = header_class(MTOSI_1X)(msg_type=MessageTypeType.REQUEST, **fields)
    return parse(Envelope(header=header, body=body).to_bytes(), package="old11")


@pytest.mark.obligation("DIA3")
def test_every_operation_is_answered_by_its_own_handler(
    served: Any, services: dict[str, Any], least_instance: Callable[[Any], Any]
) -> None:
    suppliers, got = served
    together = [
        one for one in suppliers if one.__service__.name != "NotificationConsumer"
    ]  # notify is the broker's too
    called = 0
    with exchange(together) as pair:
        for supplier in together:
            stub = pair.stub(services[supplier.__service__.name])
            for operation in supplier.__service__.operations:
                request = least_instance(supplier.__service__.load(operation.request))
                answer = getattr(stub, operation.python_name)(request)
                if operation.mep != "one-way":
                    assert got.pop() == (operation.name, request)
                    assert answer == least_instance(supplier.__service__.load(operation.response))
                called += 1
    assert called == 165
    assert [name for name, _ in got] == ["notify"]


@pytest.mark.obligation("DIA4")
def test_operations_with_one_element_are_told_apart_by_each_of_three_names(
    served: Any, least_instance: Callable[[Any], Any]
) -> None:
    """activityName counts first, then msgName, then the SOAP action; without any of them the answer is a fault."""
    suppliers, got = served
    told = refused = 0
    for supplier in suppliers:
        service, dispatcher = supplier.__service__, Dispatcher([supplier])
        for shared in (one for one in service.by_request_tag.values() if len(one) > 1):
            body = least_instance(service.load(shared[0].request))
            for operation in shared:
                others = [one.request_message for one in shared if one is not operation]
                ways = [({"activity_name": operation.name}, ""), ({}, operation.name)]
                ways += [({"msg_name": operation.request_message}, "")] * (operation.request_message not in others)
                for fields, action in ways:
                    (answer,) = dispatcher.dispatch(asks(body, **fields), action=action)
                    assert answer.fault is None
                    assert got.pop()[0] == operation.name
                    told += 1
            (answer,) = dispatcher.dispatch(asks(body))
            assert answer.fault is not None
            assert "say which in activityName" in answer.fault.reason
            assert not got
            refused += 1
    assert (told, refused) == (145, 16)


def by_iterator(stubs: Any, batches: list[tuple[range, dict[str, Any]]]) -> Any:
    """A manager that hands out its elements by iterator: what each reply holds, and the fields of its header."""
    left = iter(batches)

    class Ems(stubs.Mgr.Supplier):  # type: ignore[misc, name-defined]
        seen: ClassVar[list[Any]] = []

        def get_all_managed_elements(self, request: Any, context: RequestContext) -> Any:
            self.seen.append(context.header)
            numbers, fields = next(left)
            context.reply_fields.update(fields)
            made = [stubs.ManagedElementT(name=stubs.name(("MD", "E"), ("ME", str(one)))) for one in numbers]
            return stubs.GetAllManagedElementsResponse(me_list=stubs.ManagedElementListT(me=made))

        def get_all_managed_elements_iterator(self, request: Any, context: RequestContext) -> Any:
            return self.get_all_managed_elements(request, context)

    return Ems()


def step(number: int | None, end: bool | None = False, reference: str | None = "it/7") -> dict[str, Any]:
    """The fields of the header of a reply by iterator."""
    return {
        "batch_sequence_number": number,
        "batch_sequence_end_of_reply": end,
        "iterator_reference_uri": reference,
        "communication_pattern": "MultipleBatchResponse" if number else "SimpleResponse",
    }


@pytest.mark.obligation("DIA9")
@pytest.mark.parametrize("ask", [every, lambda *given: asyncio.run(every_aio(*given))], ids=["threads", "asyncio"])
@pytest.mark.parametrize(
    ("batches", "right"),
    [
        ([(range(2), step(1)), (range(2, 4), step(2)), (range(4, 5), step(3, True))], 5),
        ([(range(2), step(1)), (range(2, 3), step(2, True, None))], 3),
        ([(range(2), step(1)), (range(2, 4), step(2, False, None)), (range(4, 4), step(3, True, None))], 4),
        ([(range(2), step(None, None)), (range(2, 4), step(None, None)), (range(4, 5), step(None, None, None))], 5),
        ([(range(20 * n, 20 * n + 20), step(n + 1, n == 39)) for n in range(40)], 800),
        ([(range(2), step(1)), (range(4, 6), step(3, True))], IncompleteBatchError),
        ([(range(2), step(1)), (range(2), step(1))], ProtocolError),
        ([(range(2), step(None, None)), (range(0), step(None, None))], ProtocolError),
    ],
)
def test_batches_by_iterator(stubs: Any, batches: Any, right: Any, ask: Callable[..., Any]) -> None:
    ems = by_iterator(stubs, batches)
    ems.seen.clear()
    with exchange([ems]) as pair:
        stub = pair.stub(stubs.Mgr)
        if isinstance(right, int):
            assert ask(stub, stubs, 2) == [str(one) for one in range(right)]
        else:
            with pytest.raises(right):
                ask(stub, stubs, 2)
        assert pair.requestor.pending == 0
    first, *others = ems.seen
    assert {one.iterator_reference_uri for one in others} == {"it/7"}
    assert {str(one.activity_name) for one in others} == {"getAllManagedElementsIterator"}
    assert {one.requested_batch_size for one in ems.seen} == {2}
    assert first.iterator_reference_uri is None
    assert len({one.correlation_id for one in ems.seen}) == len(batches)


def reply(number: int, end: str, correlation: str, **changed: str) -> bytes:
    """A batch of a peer, as text."""
    fields = {
        **FIELDS,
        "correlationId": correlation,
        "batchSequenceNumber": str(number),
        "batchSequenceEndOfReply": end,
        **changed,
    }
    inside = "".join(f"<{name}>{text}</{name}>" for name, text in fields.items() if text)
    elements = "".join(f"<me><name><meNm>{number}{one}</meNm></name></me>" for one in "ab")
    return (
        '<S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Header>'
        f'<header xmlns="tmf854.v1">{inside}</header></S:Header><S:Body>'
        f'<getAllManagedElementsResponse xmlns="tmf854.v1"><meList>{elements}</meList>'
        "</getAllManagedElementsResponse></S:Body></S:Envelope>"
    ).encode()


def with_peer(stubs: Any, answer: Callable[[str, int, str], bytes]) -> tuple[Any, list[str]]:
    """Ask a peer that answers in two batches, the second one first; return the request's header, and what came."""
    seen: list[bytes] = []
    with mtosi.connect("memory:peer11", names=NAMES) as ours, mtosi.connect("memory:peer11", names=NAMES) as other:
        session = other.session()
        other.start()
        consumer = session.consumer(mtosi.Queue("EMS"))

        def peer() -> None:
            delivery = consumer.receive(60)
            assert delivery is not None
            delivery.acknowledge()
            request = delivery.message
            seen.append(request.body)
            identifier = etree.fromstring(request.body).findtext(f".//{SPACE}correlationId") or ""
            for number, end in ((2, "true"), (1, "false")):
                message = mtosi.JmsMessage(body=answer(identifier, number, end), correlation_id=request.message_id)
                assert request.reply_to is not None
                session.send(request.reply_to, message)

        thread = threading.Thread(target=peer)
        thread.start()
        with mtosi.Requestor(ours, sender_uri="jms/Os") as requestor:
            found = every(stubs.Mgr(requestor, "jms/Ems"), stubs, 2)
        thread.join()
    header = etree.fromstring(seen[0]).find(f".//{SPACE}header")
    return header, found


def test_the_header_of_a_request_is_valid_by_the_release(stubs: Any, shared: Path) -> None:
    header, found = with_peer(stubs, lambda identifier, number, end: reply(number, end, identifier))
    schema = etree.XMLSchema(file=str(shared / "mtosi" / "1.1" / "xsd" / "common" / "Header.xsd"))
    assert schema.validate(header), schema.error_log
    assert header.findtext(f"{SPACE}requestedBatchSize") == "2"
    assert found == ["1a", "1b", "2a", "2b"]


@pytest.mark.obligation("DIA8")
@pytest.mark.parametrize("left", ["", "?"])
def test_a_peer_that_leaves_out_the_id_and_other_fields_is_matched_by_the_message_id(stubs: Any, left: str) -> None:
    _, found = with_peer(stubs, lambda _, number, end: reply(number, end, left, activityName=left, senderURI=left))
    assert found == ["1a", "1b", "2a", "2b"]
