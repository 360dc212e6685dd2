"""SimpleResponse end to end: results, faults of every kind, and whatever a handler or a request may do wrong."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from mtosi_jms.errors import (
    ConfigError,
    EncodeError,
    MtosiFault,
    NamingError,
    ProtocolError,
    ReplyTimeoutError,
    TransportError,
)
from mtosi_jms.exchange import Supplier
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.patterns import Timeouts
from mtosi_jms.service import CallOptions
from mtosi_jms.soap import fault_class, fault_kinds, parse
from mtosi_jms.stubs.fmw import msg
from mtosi_jms.stubs.fmw.notification_consumer import NotificationConsumer
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.resource_inventory_retrieval import ResourceInventoryRetrieval
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import SUPPLIER, Recorder

from .conftest import NE1, NE7, FaultyEms, SmallEms

SERVICE = ManagedElementRetrieval.__service__
GET_ONE = SERVICE.by_name["getManagedElement"]
KINDS = sorted(fault_kinds(SERVICE.load(GET_ONE.fault)))


@pytest.mark.obligation("P25")
def test_a_result_comes_back(mtosi_exchange: Any) -> None:
    retrieval = mtosi_exchange([SmallEms()]).stub(ManagedElementRetrieval)
    element = retrieval.get_managed_element(me_ref=NE1).me
    assert (str(element.name), element.location) == ("MD=EMS1/ME=NE-1", "Hall 1")


def test_a_fault_is_a_typed_error_with_its_facts(mtosi_exchange: Any) -> None:
    retrieval = mtosi_exchange([SmallEms()]).stub(ManagedElementRetrieval)
    with pytest.raises(msg.EntityNotFoundFault, match="there is no MD=EMS1/ME=NE-7") as caught:
        retrieval.get_managed_element(me_ref=NE7)
    fault = caught.value
    assert (fault.kind, fault.reason, fault.fault_code) == ("entityNotFound", "there is no MD=EMS1/ME=NE-7", "Server")
    assert (fault.header.msg_type, fault.header.activity_status.value) == ("ERROR", "FAILURE")
    assert fault.header.msg_name == "getManagedElementException"
    assert fault.raw is not None


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_that_the_operation_declares(kind: str, mtosi_exchange: Any) -> None:
    cls = fault_class(kind, SERVICE.load(GET_ONE.fault))
    assert cls is not MtosiFault

    def act() -> Any:
        raise cls(f"because of {kind}")

    retrieval = mtosi_exchange([FaultyEms(act)]).stub(ManagedElementRetrieval)
    with pytest.raises(cls, match=f"because of {kind}") as caught:
        retrieval.get_managed_element(me_ref=NE1)
    assert type(caught.value) is cls
    assert caught.value.kind == kind


def test_a_fault_may_bring_its_detail(mtosi_exchange: Any) -> None:
    def act() -> Any:
        raise msg.CommLossFault("gone", detail=msg.CommLoss(reason="link 7 is down"))

    retrieval = mtosi_exchange([FaultyEms(act)]).stub(ManagedElementRetrieval)
    with pytest.raises(msg.CommLossFault, match="gone") as caught:
        retrieval.get_managed_element(me_ref=NE1)
    assert caught.value.reason == "link 7 is down"
    assert caught.value.detail.header.correlation_id == caught.value.header.correlation_id


def test_a_kind_that_is_not_declared_goes_as_internal_error_that_names_it(mtosi_exchange: Any) -> None:
    def act() -> Any:
        raise msg.TooManyOpenIteratorsFault("it is busy")

    assert "tooManyOpenIterators" not in KINDS
    retrieval = mtosi_exchange([FaultyEms(act)]).stub(ManagedElementRetrieval)
    with pytest.raises(msg.InternalErrorFault) as caught:
        retrieval.get_managed_element(me_ref=NE1)
    assert caught.value.reason == "tooManyOpenIterators: it is busy"


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyError, TimeoutError, NamingError, TransportError])
def test_whatever_a_handler_raises_is_internal_error_without_its_text(
    error: type[Exception], mtosi_exchange: Any
) -> None:
    reported: list[Exception] = []

    def act() -> Any:
        raise error("password=hunter2")

    pair = mtosi_exchange([FaultyEms(act)], supplier={"on_error": reported.append})
    retrieval = pair.stub(ManagedElementRetrieval)
    for _ in range(2):  # the supplier goes on
        with pytest.raises(msg.InternalErrorFault) as caught:
            retrieval.get_managed_element(me_ref=NE1)
        assert caught.value.reason == f"getManagedElement failed with {error.__name__}"
        assert b"hunter2" not in caught.value.raw
    assert [type(one) for one in reported] == [error, error]


def test_a_fault_that_cannot_be_written_is_told_without_its_words(mtosi_exchange: Any) -> None:
    reported: list[Exception] = []

    def act() -> Any:
        raise msg.CommLossFault("no \x00 in XML")

    pair = mtosi_exchange([FaultyEms(act)], supplier={"on_error": reported.append})
    with pytest.raises(msg.InternalErrorFault, match="getManagedElement failed with EncodeError"):
        pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1)
    assert [type(one) for one in reported] == [EncodeError]


def test_an_operation_that_is_not_overridden_is_not_implemented(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange([ResourceInventoryRetrieval.Supplier()])
    with pytest.raises(msg.NotImplementedFault, match="getInventory is not implemented"):
        pair.stub(ResourceInventoryRetrieval).get_inventory()


def test_not_implemented_where_the_operation_does_not_declare_it(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange([ManagedElementRetrieval.Supplier()])
    with pytest.raises(msg.InternalErrorFault) as caught:
        pair.stub(ManagedElementRetrieval).get_all_managed_elements()
    assert caught.value.reason.startswith("notImplemented: getAllManagedElements is not implemented")


@pytest.mark.parametrize(
    "result",
    [
        None,
        42,
        ManagedElementType(),
        mer.GetAllManagedElementsResponse(),
        [],
        [ManagedElementType()],
        "text",
        [mer.GetManagedElementResponse(), mer.GetManagedElementResponse()],
        mer.GetManagedElementResponse(me="no element"),  # type: ignore[arg-type]
        mer.GetManagedElementResponse(me=ManagedElementType(location="no \x0b in XML")),
    ],
    ids=lambda result: type(result).__name__,
)
def test_a_handler_that_returns_the_wrong_thing(result: Any, mtosi_exchange: Any) -> None:
    pair = mtosi_exchange([FaultyEms(lambda: result)])
    retrieval = pair.stub(ManagedElementRetrieval)
    if result == []:  # an empty result is a response without content
        assert retrieval.get_managed_element(me_ref=NE1).me is None
        return
    with pytest.raises(msg.InternalErrorFault, match="getManagedElement failed with"):
        retrieval.get_managed_element(me_ref=NE1)


@pytest.mark.parametrize(
    "result", ["text", [1, 2], ["text"], [msg.CommLoss()], {"a": 1}], ids=["str", "ints", "strings", "other", "dict"]
)
def test_a_handler_that_yields_the_wrong_things(result: Any, mtosi_exchange: Any) -> None:
    pair = mtosi_exchange([FaultyEms(lambda: result)])
    with pytest.raises(msg.InternalErrorFault, match="getAllManagedElements failed with"):
        pair.stub(ManagedElementRetrieval).get_all_managed_elements()


def test_a_handler_adds_header_fields_to_its_response(mtosi_exchange: Any) -> None:
    class Ems(ManagedElementRetrieval.Supplier):
        def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
            context.reply_fields["originator_uri"] = "jms/Probe"
            return mer.GetManagedElementResponse()

    seen: list[Any] = []
    retrieval = mtosi_exchange([Ems()]).stub(ManagedElementRetrieval)
    retrieval.get_managed_element(me_ref=NE1, options=CallOptions(on_reply=seen.append))
    assert [envelope.header.originator_uri for envelope in seen] == ["jms/Probe"]


def test_header_fields_that_do_not_exist_are_the_suppliers_failure(mtosi_exchange: Any) -> None:
    class Ems(ManagedElementRetrieval.Supplier):
        def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
            context.reply_fields["nonsense"] = 1
            return mer.GetManagedElementResponse()

    with pytest.raises(msg.InternalErrorFault, match="TypeError"):
        mtosi_exchange([Ems()]).stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1)


ONE_EVENT = NotifyMessage(common_event_information=[ResourceObjectCreation(object_type="ME")])


class Listener(NotificationConsumer.Supplier):
    def __init__(self) -> None:
        self.topics: list[str] = []

    def notify(self, request: Notify, context: Any) -> None:
        if request.topic == "bad":
            raise msg.InvalidTopicFault("no such topic")
        if request.topic == "worse":
            raise ZeroDivisionError
        self.topics.append(str(request.topic))


@pytest.mark.obligation("P24", "C13")
def test_a_one_way_message_as_it_goes_out(mtosi_exchange: Any) -> None:
    """C13, T1.8: nobody is to answer, so there is no reply address of any kind."""
    pair = mtosi_exchange(temporary_reply=True)
    pair.stub(NotificationConsumer).notify(topic="T", message=ONE_EVENT)
    asked = pair.scripted.take()
    header = asked.envelope.header
    assert (header.msg_type, header.communication_pattern) == ("NOTIFICATION", "Notification")
    assert (header.correlation_id, header.reply_to_uri, header.failure_replyto_uri) == (None, None, None)
    assert asked.message.reply_to is None
    assert asked.message.properties["MTOSI_senderURI"] == "jms/RequestorOS"


@pytest.mark.obligation("P24")
def test_a_one_way_message_reaches_the_handler_and_its_failures_are_reported(mtosi_exchange: Any) -> None:
    """Failures of one-way operations have no requestor to hear of them: `on_error` does."""
    listener, reported = Listener(), list[Exception]()
    pair = mtosi_exchange()
    consumer = pair.stub(NotificationConsumer)
    for topic in ("bad", "fine", "worse"):
        consumer.notify(topic=topic, message=ONE_EVENT)
    supplier = Supplier(pair.connection, Queue("elsewhere"), [listener], on_error=reported.append)
    session = pair.connection.session()
    for _ in range(3):
        supplier.answer(pair.scripted.take().message, session)
    assert listener.topics == ["fine"]
    assert [type(error) for error in reported] == [msg.InvalidTopicFault, ZeroDivisionError]
    assert pair.provider.held() == 0


def test_batches_of_a_one_way_operation_are_refused(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange()
    with pytest.raises(ConfigError, match="one-way"):
        pair.stub(NotificationConsumer).notify.invoke_batches(Notify(topic="T", message=ONE_EVENT), 5, None)


@pytest.mark.obligation("O13d", "C17")
def test_an_unknown_operation_is_a_bare_fault_paired_by_message_id(mtosi_exchange: Any) -> None:
    """C17, O13d: such a fault has no exception element; the requestor still gets it."""
    pair = mtosi_exchange([SmallEms()])
    inventory = pair.stub(ResourceInventoryRetrieval)
    with pytest.raises(MtosiFault, match="no operation here takes getInventoryRequest") as caught:
        inventory.get_inventory()
    assert (type(caught.value), caught.value.kind, caught.value.fault_code) == (MtosiFault, "", "Client")
    assert caught.value.header.msg_type == "ERROR"


@pytest.mark.parametrize(
    "body",
    [b"", b"not XML", b"<a>", b"<a/>", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', b"\xff\xfe\x00"],
    ids=["empty", "text", "cut", "no-soap", "dtd", "bytes"],
)
def test_a_request_that_cannot_be_read_is_answered(body: bytes, mtosi_exchange: Any) -> None:
    reported: list[Exception] = []
    pair = mtosi_exchange([SmallEms()], supplier={"on_error": reported.append})
    session = pair.connection.session()
    answers = session.consumer(session.temporary_queue())
    sent = session.send(pair.destination, JmsMessage(body=body, reply_to=answers.destination))
    delivery = answers.receive(60)
    assert delivery is not None
    assert delivery.message.correlation_id == sent.message_id
    envelope = parse(delivery.message.body)
    assert envelope.fault is not None
    assert envelope.fault.reason.startswith("the request cannot be read")
    assert len(reported) == 1


def test_what_is_no_request_is_never_answered(mtosi_exchange: Any) -> None:
    """Two suppliers that answer each other's faults would never come to an end."""
    reported: list[Exception] = []
    pair = mtosi_exchange()
    retrieval = pair.stub(ManagedElementRetrieval)
    retrieval.get_all_managed_elements.batches(batch_size=2)
    asked = pair.scripted.take()
    supplier = Supplier(pair.connection, SUPPLIER, [SmallEms()], on_error=reported.append)
    recorder = Recorder()
    response = asked.replies([SmallEms()])[0]
    fault = asked.replies([ResourceInventoryRetrieval.Supplier()])[0]
    torn = dataclasses.replace(response, body=response.body[:300])
    for message in (response, fault, torn):
        supplier.answer(dataclasses.replace(message, reply_to=Queue("other")), recorder)
    assert recorder.sent == []
    assert [type(one).__name__ for one in reported] == ["ProtocolError", "ProtocolError", "MalformedXmlError"]


def test_a_response_of_another_operation_is_a_protocol_error(mtosi_exchange: Any) -> None:
    def script(asked: Any) -> list[JmsMessage]:
        other = asked.replies([SmallEms()])[0]
        return [asked.reply(other.body.replace(b"getManagedElementResponse", b"getAllManagedElementsResponse"))]

    pair = mtosi_exchange()
    pair.scripted.start(script)
    with pytest.raises(ProtocolError, match="expected GetManagedElementResponse") as caught:
        pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1)
    assert caught.value.correlation_id


def test_no_answer_is_a_time_out_that_names_its_clock(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange(timeouts=Timeouts(first_reply=0.02))
    retrieval = pair.stub(ManagedElementRetrieval)
    with pytest.raises(ReplyTimeoutError) as caught:
        retrieval.get_managed_element(me_ref=NE1)
    assert caught.value.clock == "first reply"
    with pytest.raises(ReplyTimeoutError) as caught:
        retrieval.get_managed_element(me_ref=NE1, options=CallOptions(timeout=0.01))
    assert caught.value.clock == "total"
    assert pair.requestor.pending == 0


def test_nothing_is_sent_when_the_call_is_wrong(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange()
    retrieval = pair.stub(ManagedElementRetrieval)
    request = mer.GetManagedElementRequest(me_ref=NE1)
    with pytest.raises(ConfigError, match="not both"):
        retrieval.get_managed_element(request, me_ref=NE1)
    with pytest.raises(NamingError):
        ManagedElementRetrieval(pair.requestor, "jms/NobodyOS").get_managed_element(request)
    with pytest.raises(EncodeError):
        retrieval.get_managed_element(mer.GetManagedElementRequest(me_ref="NE-1"))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="timeout"):
        retrieval.get_managed_element(request, options=CallOptions(timeout=0))
    assert (pair.provider.held(), pair.requestor.pending) == (0, 0)
