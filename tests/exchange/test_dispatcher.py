"""The dispatcher by itself: request envelopes in, reply envelopes out, without JMS (R3, R4, R5, P31, C16, C18, C52)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, EncodeError, MtosiFault, ProtocolError
from mtosi_jms.exchange import Abandoned, Dispatcher, send_all
from mtosi_jms.service import RequestContext
from mtosi_jms.soap import Envelope, Header, parse
from mtosi_jms.stubs.fmw.hdr import (
    CommunicationPatternType,
    CommunicationStyleType,
    MessageTypeType,
)
from mtosi_jms.stubs.fmw.msg import CommLossFault
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage
from mtosi_jms.stubs.mri import eir, mer, rir
from mtosi_jms.stubs.mri.equipment_inventory_retrieval import EquipmentInventoryRetrieval
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nrf.me import ManagedElementType

from .conftest import FaultyEms, SmallEms, numbers

ALL = mer.GetAllManagedElementsRequest()
EVENT = Notify(topic="Fault", message=NotifyMessage(common_event_information=[Alarm(object_type="ME")]))


class Equipment(EquipmentInventoryRetrieval.Supplier):
    def get_equipment(self, request: Any, context: RequestContext) -> eir.GetEquipmentResponse:
        return eir.GetEquipmentResponse()


def request(body: Any, pattern: str = "SimpleResponse", *, version: str = "1.1", **fields: Any) -> bytes:
    """A request as it comes over any wire."""
    given: dict[str, Any] = {
        "activity_name": "activity",
        "msg_type": MessageTypeType.REQUEST,
        "sender_uri": "http://os.example/replies",
        "destination_uri": "http://ems.example/mtosi",
        "correlation_id": "case-1",
        "communication_pattern": CommunicationPatternType(pattern),
        "communication_style": CommunicationStyleType.MSG,
    }
    return Envelope(header=Header(**given | fields), body=body, version=version).to_bytes()


def answer(dispatcher: Dispatcher, wire: bytes) -> list[Envelope]:
    """What an endpoint does: parse, dispatch, write; and what its peer reads."""
    return [parse(reply.to_bytes()) for reply in dispatcher.dispatch(parse(wire))]


def one(dispatcher: Dispatcher, wire: bytes) -> Any:
    (reply,) = answer(dispatcher, wire)
    return reply


def test_one_response() -> None:
    reply = one(Dispatcher([SmallEms(3)], sender_uri="http://ems.example/mtosi"), request(ALL))
    assert numbers(reply.body) == [1, 2, 3]
    header = reply.header
    assert (header.msg_type, header.msg_name, header.activity_name) == (
        "RESPONSE",
        "getAllManagedElementsResponse",
        "getAllManagedElements",
    )
    assert (header.correlation_id, header.activity_status.value) == ("case-1", "SUCCESS")
    assert (header.sender_uri, header.destination_uri) == ("http://ems.example/mtosi", "http://os.example/replies")
    assert (header.batch_sequence_number, header.communication_pattern) == (None, "SimpleResponse")


class Noting(ManagedElementRetrieval.Supplier):
    """Notes how far its handler has come."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def get_all_managed_elements(self, request: Any, context: RequestContext) -> Iterator[ManagedElementType]:
        assert context.message is None
        try:
            for number in range(1, 7):
                self.steps.append(f"NE-{number}")
                yield ManagedElementType(name=name(f"ME=NE-{number}"))
        finally:
            self.steps.append("closed")


def test_a_handler_runs_no_further_than_the_reply_at_hand_needs() -> None:
    ems = Noting()
    replies = Dispatcher([ems]).dispatch(parse(request(ALL, "MultipleBatchResponse", requested_batch_size=2)))
    assert ems.steps == []
    next(replies)
    assert ems.steps == ["NE-1", "NE-2", "NE-3"], "the third object shows that the batch is not the last"
    next(replies)
    assert ems.steps[-1] == "NE-5"
    replies.close()
    assert ems.steps == ["NE-1", "NE-2", "NE-3", "NE-4", "NE-5", "closed"]


@pytest.mark.obligation("001-S10")
def test_several_services() -> None:
    dispatcher = Dispatcher([SmallEms(1), Equipment()])
    assert type(one(dispatcher, request(ALL)).body) is mer.GetAllManagedElementsResponse
    assert type(one(dispatcher, request(eir.GetEquipmentRequest())).body) is eir.GetEquipmentResponse
    with pytest.raises(ConfigError, match=r"two services on one destination take {.*}getAllManagedElementsRequest"):
        Dispatcher([SmallEms(), SmallEms()])


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize(
    ("body", "named"), [(rir.GetInventoryRequest(), "getInventoryRequest"), (None, "an empty body")]
)
def test_an_unknown_operation_is_a_fault_that_blames_the_requestor(version: str, body: Any, named: str) -> None:
    errors: list[BaseException] = []
    reply = one(Dispatcher([SmallEms()], on_error=errors.append), request(body, version=version))
    assert reply.version == version
    assert (reply.fault.fault_code, reply.fault.reason) == (
        {"1.1": "Client", "1.2": "Sender"}[version],
        f"no operation here takes {named}",
    )
    assert (reply.header.msg_type, reply.header.activity_name, reply.header.correlation_id) == (
        "ERROR",
        "activity",
        "case-1",
    )
    assert [type(error) for error in errors] == [ProtocolError]


def test_an_unknown_notification_gets_no_answer_and_is_reported() -> None:
    errors: list[BaseException] = []
    dispatcher = Dispatcher([SmallEms()], on_error=errors.append)
    assert answer(dispatcher, request(EVENT, msg_type=MessageTypeType.NOTIFICATION)) == []
    assert "no operation here takes notify" in str(errors[0])


def test_a_reply_that_cannot_be_encoded_is_replaced_by_a_fault() -> None:
    """`send_all` throws what the sender raised back to the dispatcher."""

    def some() -> Iterator[Any]:
        yield ManagedElementType(name=name("ME=NE-1"))
        yield ManagedElementType(location="no \x00 in XML")
        yield ManagedElementType()

    errors: list[BaseException] = []
    dispatcher = Dispatcher([FaultyEms(some)], on_error=errors.append)
    wire = request(ALL, "MultipleBatchResponse", requested_batch_size=1)
    sent: list[bytes] = []
    send_all(dispatcher.dispatch(parse(wire)), lambda reply: sent.append(reply.to_bytes()))
    batch, fault = map(parse, sent)
    assert numbers(batch.body) == [1]
    assert fault.fault is not None
    assert fault.fault.reason == "getAllManagedElements failed with EncodeError"
    assert [type(error) for error in errors] == [EncodeError]


def test_where_no_exception_can_be_sent_at_all_a_bare_fault_is() -> None:
    """The requestor is not left without an answer."""

    def fail() -> Any:
        raise CommLossFault("gone")

    sent: list[Envelope] = []

    def send(reply: Envelope) -> None:
        if reply.body is not None:
            raise EncodeError("not today")
        sent.append(parse(reply.to_bytes()))

    send_all(Dispatcher([FaultyEms(fail)]).dispatch(parse(request(ALL))), send)
    [bare] = sent
    assert type(bare.fault) is MtosiFault
    assert bare.fault.reason == "getAllManagedElements failed with EncodeError"


def test_a_sender_that_never_succeeds_is_given_up_and_reported() -> None:
    errors: list[BaseException] = []
    tried: list[Envelope] = []

    def send(reply: Envelope) -> None:
        tried.append(reply)
        raise OSError("no way out")

    send_all(Dispatcher([SmallEms(1)], on_error=errors.append).dispatch(parse(request(ALL))), send)
    assert [reply.fault is not None for reply in tried] == [False, True, True, True]
    assert [type(error) for error in errors] == [OSError] * 4


@pytest.mark.parametrize("who", ["sender", "handler"])
def test_an_abandoned_request_gets_no_answer(who: str) -> None:
    sent: list[Envelope] = []
    ems = Noting()

    def give_up(*reply: Envelope) -> Any:
        raise Abandoned("nobody is there")

    services = [ems] if who == "sender" else [FaultyEms(give_up)]
    wire = request(ALL, "MultipleBatchResponse", requested_batch_size=1)
    with pytest.raises(Abandoned):
        send_all(Dispatcher(services).dispatch(parse(wire)), give_up if who == "sender" else sent.append)
    assert sent == []
    assert ems.steps == (["NE-1", "NE-2", "closed"] if who == "sender" else [])


def test_without_services_everything_is_refused() -> None:
    assert one(Dispatcher([]), request(ALL)).fault.fault_code == "Client"
