"""Stubs of MTOSI 1.1 at either end: the header of their release, batches, correlation, typed faults."""

from __future__ import annotations

import asyncio
import pickle
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from lxml import etree

import mtosi_jms as mtosi
from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import IncompleteBatchError, MtosiFault, ProtocolError
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.exchange.messages import read_reply
from mtosi_jms.header import MTOSI_1X
from mtosi_jms.service import RequestContext
from mtosi_jms.soap import Envelope, dialect_of, header_class, parse
from mtosi_jms.stubs.fmw.hdr import MessageTypeType
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault, InternalErrorFault
from mtosi_jms.testing import exchange
from mtosi_jms.transport import Connection

from ..integrations.least import Echo, Got

PATIENCE: Final = 60.0
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
        elements = 5
        seen: Any = None

        def get_all_managed_elements(self, request: Any, context: RequestContext) -> Iterator[Any]:
            self.seen = context.header
            for number in range(self.elements):
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


FAULTS: Final[list[tuple[str, str, str, type[MtosiFault]]]] = [
    ("kind", "EXCPT_OBJECT_IN_USE", "objectInUse", MtosiFault),
    ("of 2.0", "EXCPT_ENTITY_NOT_FOUND", "entityNotFound", EntityNotFoundFault),
    ("of 1.1", "EXCPT_ENTITY_NOT_FOUND", "entityNotFound", EntityNotFoundFault),
    ("broken", "EXCPT_INTERNAL_ERROR", "internalError", InternalErrorFault),
]
"""What the manager's handler does, and the code, kind and class of the fault that its caller gets."""


@pytest.mark.obligation("DIA7")
def test_faults_are_typed_by_their_code(stubs: Any, ems: Any, anywhere: Connection, unused: str) -> None:
    with (
        mtosi.Supplier(anywhere, f"queue:{unused}", [ems]),
        mtosi.Requestor(anywhere, sender_uri="jms/Os", temporary_reply=True) as requestor,
    ):
        for case, code, kind, cls in FAULTS:
            with pytest.raises(stubs.ProcessingFailureExceptionFault) as raised:
                stubs.Mgr(requestor, f"queue:{unused}").get_managed_element(me_name=stubs.name(("ME", case)))
            fault = raised.value
            assert (fault.kind, str(fault.detail.exception)) == (kind, code)
            assert isinstance(fault, cls)
            assert dialect_of(fault.header).release == "1.x"
            assert pickle.loads(pickle.dumps(fault)) == fault


@pytest.fixture
def echoes(stubs: Any) -> tuple[list[Echo], Got]:
    """Suppliers of all services, and what their handlers get."""
    got: Got = queue.SimpleQueue()
    return [Echo(one, got) for one in stubs.services.values()], got


def asks(body: Any, **fields: Any) -> Envelope:
    """A request with these fields of the header and no others."""
    header = header_class(MTOSI_1X)(msg_type=MessageTypeType.REQUEST, **fields)
    return parse(Envelope(header=header, body=body).to_bytes(), package="old11")


@pytest.mark.obligation("DIA3")
def test_every_operation_is_answered_by_its_own_handler(
    echoes: Any, stubs: Any, anywhere: Connection, unused: str
) -> None:
    called = 0
    with ExitStack() as stack:
        requestor = stack.enter_context(mtosi.Requestor(anywhere, sender_uri="jms/Os", temporary_reply=True))
        for address, is_consumer in ((f"queue:{unused}", False), (f"queue:{unused}.consumer", True)):
            # notify is the broker's too, so the consumer has a queue of its own
            together = [one for one in echoes[0] if (one.info.name == "NotificationConsumer") is is_consumer]
            stack.enter_context(mtosi.Supplier(anywhere, address, [one.supplier for one in together]))
            for echo in together:
                stub = stubs.services[echo.info.name](requestor, address)
                for operation in echo.info.operations:
                    request = echo.request(operation)
                    assert getattr(stub, operation.python_name)(request) == echo.response(operation)
                    assert echo.got.get(timeout=PATIENCE) == (echo.info.name, operation.name, request)
                    called += 1
    assert called == 166
    assert echoes[1].empty()


@pytest.mark.obligation("DIA4")
def test_operations_with_one_element_are_told_apart_by_each_of_three_names(echoes: Any) -> None:
    """activityName counts first, then msgName, then the SOAP action; without any of them the answer is a fault."""
    told = refused = 0
    for echo in echoes[0]:
        dispatcher = Dispatcher([echo.supplier])
        for shared in (one for one in echo.info.by_request_tag.values() if len(one) > 1):
            body = echo.request(shared[0])
            for operation in shared:
                others = [one.request_message for one in shared if one is not operation]
                ways = [({"activity_name": operation.name}, ""), ({}, operation.name)]
                ways += [({"msg_name": operation.request_message}, "")] * (operation.request_message not in others)
                for fields, action in ways:
                    (answer,) = dispatcher.dispatch(asks(body, **fields), action=action)
                    assert answer.fault is None
                    assert echo.got.get_nowait()[1] == operation.name
                    told += 1
            (answer,) = dispatcher.dispatch(asks(body))
            assert answer.fault is not None
            assert "say which in activityName" in answer.fault.reason
            assert echo.got.empty()
            refused += 1
    assert (told, refused) == (145, 16)


@pytest.mark.obligation("REQ1")
@pytest.mark.parametrize(
    ("fields", "action", "served"),
    [
        ({}, "", True),
        ({"activity_name": "getAllManagedElements"}, "", True),
        ({"activity_name": "x", "msg_name": "getAllManagedElementsIterator"}, "", True),
        ({"activity_name": "x"}, "getAllManagedElementsIterator", True),
        ({"activity_name": "getAllMEsWrtOSIterator"}, "", False),
        ({"msg_name": "getAllMEsWrtOSIterator"}, "", False),
        ({}, "getAllMEsWrtOSIterator", False),
    ],
)
def test_an_element_shared_with_a_service_that_is_elsewhere(
    echoes: Any, fields: dict[str, str], action: str, served: bool
) -> None:
    """getMeIterator is also a request of OperationsSystemMgr."""
    [echo] = [one for one in echoes[0] if one.info.name == "ManagedElementMgr"]
    body = echo.request(echo.info.by_name["getAllManagedElementsIterator"])
    (answer,) = Dispatcher([echo.supplier]).dispatch(asks(body, **fields), action=action)
    assert (answer.fault is None, echo.got.empty()) == (served, not served)


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
def test_an_iterator_in_the_answer_to_one_request_is_told_as_a_warning(stubs: Any) -> None:
    """Its caller has the first objects only."""
    told: list[str] = []
    options = mtosi.CallOptions(on_reply=lambda envelope: told.extend(one.message for one in envelope.warnings))
    with exchange([by_iterator(stubs, [(range(2), step(None, None))])]) as pair:
        pair.stub(stubs.Mgr).get_all_managed_elements(md_name=stubs.name(("MD", "E")), options=options)
    assert told == ["the answer to a SimpleResponse request announces further replies"]


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
        ([(range(2), step(None)), (range(2, 4), step(2, True))], 4),
        ([(range(0), step(None)), (range(2), step(None, None, None))], 2),
        ([(range(2), step(None)), (range(2, 4), step(3, True))], IncompleteBatchError),
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


@pytest.mark.parametrize("elements", [400, pytest.param(20_000, marks=pytest.mark.endurance)])
def test_all_elements_come_in_batches_and_by_iterator(
    stubs: Any, ems: Any, anywhere: Connection, unused: str, elements: int
) -> None:
    ems.elements, size = elements, max(elements // 40, 100)
    right = [str(one) for one in range(elements)]
    with mtosi.Requestor(anywhere, sender_uri="jms/Os", temporary_reply=True) as requestor:
        stub = stubs.Mgr(requestor, f"queue:{unused}")
        with mtosi.Supplier(anywhere, f"queue:{unused}", [ems]):
            assert every(stub, stubs, size) == right
            assert asyncio.run(every_aio(stub, stubs, size)) == right
        for ask in (every, lambda *given: asyncio.run(every_aio(*given))):
            starts = range(0, elements, size)
            batches = [(range(n, n + size), step(n // size + 1, n == starts[-1])) for n in starts]
            with mtosi.Supplier(anywhere, f"queue:{unused}", [by_iterator(stubs, batches)]):
                assert ask(stub, stubs, size) == right


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


@pytest.mark.obligation("BAT16")
@pytest.mark.parametrize(("kind", "told"), [("REQUEST", 1), ("NOTIFICATION", 1), ("RESPONSE", 0)])
def test_an_answer_that_says_it_is_none_is_read_with_a_warning(stubs: Any, kind: str, told: int) -> None:
    answer = read_reply(mtosi.JmsMessage(body=reply(1, "true", "7", msgType=kind)), package="old11")
    assert answer.correlation_id == "7"
    texts = [one.message for one in answer.payload.warnings if one.rule == "R13a"]
    assert texts == [f"msgType is {kind}: read as an answer"] * told


@pytest.mark.obligation("DIA8")
@pytest.mark.parametrize("left", ["", "?"])
def test_a_peer_that_leaves_out_the_id_and_other_fields_is_matched_by_the_message_id(stubs: Any, left: str) -> None:
    _, found = with_peer(stubs, lambda _, number, end: reply(number, end, left, activityName=left, senderURI=left))
    assert found == ["1a", "1b", "2a", "2b"]
