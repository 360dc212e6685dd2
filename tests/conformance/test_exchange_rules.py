"""Requests and replies by the rules: ids, routes, patterns over any destination, and what is refused unsent."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import to_jms
from mtosi_jms.errors import ConfigError, HeaderError, IncompleteBatchError, MtosiFault, NamingError
from mtosi_jms.exchange import Requestor, Supplier
from mtosi_jms.jms import DeliveryMode, JmsMessage, NamingContext, Queue, Topic
from mtosi_jms.patterns import Timeouts
from mtosi_jms.service import CallOptions
from mtosi_jms.soap import Header, parse
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, MessageTypeType
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import REQUESTOR, SUPPLIER, Recorder, connect_privately, exchange
from mtosi_jms.xmlbind import RawXml


def sizes(batches: Any) -> list[int]:
    return [len(batch.me_list.me) for batch in batches]


# What must not be sent


@pytest.mark.obligation("R3b", "R4a", "C14", "C25", "T2.12", "R16c")
@pytest.mark.parametrize(
    ("header", "error", "words"),
    [
        pytest.param({"correlation_id": None}, HeaderError, "correlationId", id="R3b"),
        pytest.param({"requested_batch_size": None}, HeaderError, "requestedBatchSize", id="R4a"),
        pytest.param({"sender_uri": None}, HeaderError, "senderURI", id="C14"),
        pytest.param({"requested_batch_size": 2**31}, HeaderError, "requestedBatchSize", id="C25"),
        pytest.param({"requested_batch_size": -1}, HeaderError, "requestedBatchSize", id="R15c"),
        pytest.param({"priority": "10"}, HeaderError, "priority", id="T2.12"),
        pytest.param({"msg_type": None}, HeaderError, "msgType", id="R13a"),
        pytest.param({"nonsense": 1}, ConfigError, "nonsense", id="no field"),
        pytest.param({"reply_to_uri": "jms/Nowhere"}, NamingError, "jms/Nowhere", id="R16c"),
    ],
)
def test_what_a_requestor_must_not_send_never_leaves(
    header: dict[str, Any], error: type[Exception], words: str, mtosi_exchange: Any
) -> None:
    pair = mtosi_exchange()
    with pytest.raises(error, match=words):
        pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(
            batch_size=2, options=CallOptions(header=header)
        )
    assert (pair.provider.held(), pair.requestor.pending) == (0, 0)


@pytest.mark.obligation("R5a")
@pytest.mark.parametrize("absent", ["batch_sequence_number", "batch_sequence_end_of_reply"])
def test_a_supplier_cannot_send_half_a_place_in_the_sequence(absent: str, mtosi_exchange: Any, elements: Any) -> None:
    """A handler that takes one of them away fails; nothing without it reaches the requestor."""

    class Half(type(elements)):  # type: ignore[misc]
        def get_all_managed_elements(self, request: Any, context: Any) -> Any:
            context.reply_fields[absent] = None
            yield from super().get_all_managed_elements(request, context)

    pair = mtosi_exchange()
    pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
    (fault,) = pair.scripted.take().replies([Half()])
    assert parse(fault.body).fault is not None
    header = Header(
        msg_type=MessageTypeType.RESPONSE,
        correlation_id="1",
        communication_pattern=CommunicationPatternType.MultipleBatchResponse,
        batch_sequence_number=1,
        batch_sequence_end_of_reply=True,
    )
    to_jms(header, RawXml(b"<x></x>"))
    with pytest.raises(HeaderError, match="R5a"):
        to_jms(dataclasses.replace(header, **{absent: None}), RawXml(b"<x></x>"))


# Where replies go


@pytest.mark.obligation("R2e")
def test_replies_come_to_an_administered_destination_unless_asked_otherwise() -> None:
    """The name of the requestor has to have a destination; without one only `temporary_reply` will do."""
    with connect_privately({REQUESTOR: "queue:R", SUPPLIER: "queue:S"}) as connection:
        for arguments, temporary in (({"sender_uri": REQUESTOR}, False), ({"sender_uri": "x"}, True)):
            with Requestor(connection, **arguments, temporary_reply=temporary) as requestor:  # type: ignore[arg-type]
                ManagedElementRetrieval(requestor, SUPPLIER).get_managed_element.batches(batch_size=1)
                connection.start()
                delivery = connection.session().consumer(Queue("S")).receive(60)
                assert delivery is not None
                assert delivery.message.reply_to is not None
                assert delivery.message.reply_to.is_temporary is temporary
                delivery.acknowledge()
        with pytest.raises(NamingError):
            Requestor(connection, sender_uri="x")


@pytest.mark.obligation("R16d", "P30", "P38")
@pytest.mark.parametrize("reply_to", [Queue("REQUESTOR.OS"), Queue("FAILURE.OS"), Queue("SUPPLIER.OS")], ids=str)
@pytest.mark.parametrize("pattern", ["one", "batches", "fault"])
def test_a_supplier_answers_to_jmsreplyto_whatever_the_header_says(
    reply_to: Queue, pattern: str, mtosi_exchange: Any, elements: Any, ne1: Any
) -> None:
    pair = mtosi_exchange()
    stub = pair.stub(ManagedElementRetrieval)
    if pattern == "batches":
        stub.get_all_managed_elements.batches(batch_size=2)
    else:
        stub.get_managed_element.batches(me_ref=ne1 if pattern == "one" else None, batch_size=0)
    asked = pair.scripted.take().message
    body = asked.body.replace(b"senderURI>jms/RequestorOS<", b"senderURI>jms/FailureOS<")
    body = body.replace(b"</hdr:senderURI>", b"</hdr:senderURI><hdr:replyToURI>jms/SupplierOS</hdr:replyToURI>")
    assert body.count(b"replyToURI") == 2
    recorder = Recorder()
    supplier = Supplier(pair.connection, SUPPLIER, [elements])
    supplier.answer(dataclasses.replace(asked, body=body, reply_to=reply_to), recorder)
    assert [message.destination for message in recorder.sent] == [reply_to] * (3 if pattern == "batches" else 1)
    assert (parse(recorder.sent[0].body).fault is not None) is (pattern == "fault")


@pytest.mark.obligation("F7")
def test_figure_7(mtosi_exchange: Any, elements: Any, ne1: Any) -> None:
    """The request is in the supplier's destination until it is taken, the reply in the requestor's."""
    pair = mtosi_exchange()
    batches = pair.stub(ManagedElementRetrieval).get_managed_element.batches(me_ref=ne1, batch_size=1)
    provider = pair.provider
    assert (provider.depth(Queue("SUPPLIER.OS")), provider.depth(Queue("REQUESTOR.OS"))) == (1, 0)
    asked = pair.scripted.take()
    assert asked.message.destination == Queue("SUPPLIER.OS")
    pair.scripted.send(asked.replies([elements]))
    assert (provider.depth(Queue("SUPPLIER.OS")), provider.depth(Queue("REQUESTOR.OS"))) == (0, 1)
    assert str(next(batches).me.name) == "MD=EMS1/ME=NE-1"
    assert provider.held() == 0


@pytest.mark.obligation("C53")
def test_a_destinationuri_that_is_not_the_destination_is_warned_of(
    mtosi_exchange: Any, elements: Any, ne1: Any, caplog: pytest.LogCaptureFixture
) -> None:
    pair = mtosi_exchange([elements])
    stub = pair.stub(ManagedElementRetrieval)
    assert stub.get_managed_element(me_ref=ne1).me is not None
    assert "C53" not in caplog.text
    elsewhere = CallOptions(header={"destination_uri": "jms/Elsewhere"})
    assert stub.get_managed_element(me_ref=ne1, options=elsewhere).me is not None
    assert "C53: the header's destinationURI is jms/Elsewhere, the request goes to jms/SupplierOS" in caplog.text


# Patterns


@pytest.mark.obligation("O8b", "P25")
def test_one_stub_asks_in_both_patterns(mtosi_exchange: Any, elements: Any) -> None:
    retrieval = mtosi_exchange([elements]).stub(ManagedElementRetrieval)
    for _ in range(2):
        assert len(retrieval.get_all_managed_elements().me_list.me) == 5
        assert sizes(retrieval.get_all_managed_elements.batches(batch_size=2)) == [2, 2, 1]


@pytest.mark.obligation("O2")
@pytest.mark.parametrize("requests", ["queue", "topic"])
@pytest.mark.parametrize("replies", ["queue", "topic"])
def test_requests_and_replies_over_queues_and_topics(requests: str, replies: str, elements: Any, ne1: Any) -> None:
    names = {REQUESTOR: f"{replies}:R", SUPPLIER: f"{requests}:S"}
    with exchange([elements], names=names, reply_to=REQUESTOR) as pair:
        retrieval = pair.stub(ManagedElementRetrieval)
        assert retrieval.get_managed_element(me_ref=ne1).me is not None
        assert sizes(retrieval.get_all_managed_elements.batches(batch_size=2)) == [2, 2, 1]
        with pytest.raises(MtosiFault):
            retrieval.get_managed_element()


@pytest.mark.obligation("P1", "C19")
def test_a_call_that_waits_is_msg_unless_rpc_is_asked_for(mtosi_exchange: Any, elements: Any, ne1: Any) -> None:
    seen: list[Any] = []
    asked: list[Any] = []

    def script(one: Any) -> list[JmsMessage]:
        asked.append(one.envelope.header.communication_style)
        return list(one.replies([elements]))

    pair = mtosi_exchange()
    pair.scripted.start(script)
    stub = pair.stub(ManagedElementRetrieval)
    for header in ({}, {"communication_style": "RPC"}):
        stub.get_managed_element(me_ref=ne1, options=CallOptions(header=header, on_reply=seen.append))
    assert asked == ["MSG", "RPC"]
    assert [envelope.header.communication_style for envelope in seen] == ["MSG", "RPC"]


# Delivery


@pytest.mark.obligation("O6a", "O6b", "C20")
@pytest.mark.parametrize("mode", DeliveryMode)
def test_the_delivery_mode_of_requests_and_replies_is_the_profiles(
    mode: DeliveryMode, mtosi_exchange: Any, elements: Any
) -> None:
    """On every message, the partial responses too; NON_PERSISTENT without a profile that says otherwise."""
    assert BindingProfile().delivery_mode is DeliveryMode.NON_PERSISTENT
    profile = BindingProfile(delivery_mode=mode)
    pair = mtosi_exchange(profile=profile)
    pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
    asked = pair.scripted.take()
    replies = asked.replies([elements], profile=profile)
    assert {one.delivery_mode for one in (asked.message, *replies)} == {mode}


@pytest.mark.obligation("C60")
def test_a_batch_that_expired_is_missed_by_its_number(elements: Any) -> None:
    """The life time runs at the provider; what it ate is a gap like any other."""
    now = [1_700_000_000.0]
    timeouts = Timeouts(first_reply=0.05, gap=0.05)
    with exchange(provider={"clock": lambda: now[0]}, timeouts=timeouts) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
        first, second, third = pair.scripted.take().replies([elements])
        assert {one.time_to_live_ms for one in (first, second, third)} == {1_800_000}
        pair.scripted.send([first, dataclasses.replace(second, time_to_live_ms=1000), third])
        now[0] += 60
        assert len(next(batches).me_list.me) == 2
        with pytest.raises(IncompleteBatchError) as caught:
            next(batches)
        assert (caught.value.missing, sorted(caught.value.batches)) == ((2,), [3])


@pytest.mark.obligation("C60", "O7b")
def test_a_call_and_a_profile_set_the_life_time(mtosi_exchange: Any, elements: Any) -> None:
    profile = BindingProfile(ttl={"RESPONSE": 5000})
    pair = mtosi_exchange(profile=profile)
    stub = pair.stub(ManagedElementRetrieval)
    lives = []
    for options in (CallOptions(), CallOptions(time_to_live=2)):
        stub.get_all_managed_elements.batches(batch_size=2, options=options)
        asked = pair.scripted.take()
        lives.append(
            (asked.message.time_to_live_ms, {r.time_to_live_ms for r in asked.replies([elements], profile=profile)})
        )
    assert lives == [(1_800_000, {5000}), (2000, {5000})]


@pytest.mark.obligation("R15b", "C13")
@pytest.mark.parametrize("destination", [Queue("A"), Topic("A")], ids=str)
def test_the_kind_of_the_reply_destination_is_that_of_the_name(destination: Any) -> None:
    header = Header(msg_type=MessageTypeType.REQUEST, sender_uri="jms/A", correlation_id="1")
    message = to_jms(header, RawXml(b"<x></x>"), names=NamingContext({"jms/A": destination}))
    assert (type(message.reply_to), message.reply_to) == (type(destination), destination)
