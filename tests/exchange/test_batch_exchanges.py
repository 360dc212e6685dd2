"""MultipleBatchResponse end to end: order, duplicates, gaps, faults, slow callers, and what is kept of it."""

from __future__ import annotations

import dataclasses
import gc
import re
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import (
    IllegalStateError,
    IncompleteBatchError,
    MtosiFault,
    ProtocolError,
    ReplyTimeoutError,
)
from mtosi_jms.exchange import Supplier
from mtosi_jms.jms import JmsMessage, TemporaryQueue
from mtosi_jms.patterns import Timeouts
from mtosi_jms.service import CallOptions, RequestContext
from mtosi_jms.simulator import InventoryEms, Network
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.stubs.fmw.msg import CommLossFault, InternalErrorFault
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.resource_inventory_retrieval import ResourceInventoryRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import SUPPLIER, ManualClock, Tamper, duplicate, exchange, gap, reorder

from ..waiting import PATIENCE, background, until
from .conftest import NE1, NE7, SmallEms, numbers, with_bodies

SHORT = Timeouts(gap=0.02)
END = "MTOSI_batchSequenceEndOfReply"


@pytest.mark.obligation("R4b", "P25", "F9", "C24")
def test_batches_come_in_order(mtosi_exchange: Any) -> None:
    """R4b: the scenario of SD2-10, five elements in batches of two."""
    retrieval = mtosi_exchange([SmallEms(5)]).stub(ManagedElementRetrieval)
    assert [numbers(one) for one in retrieval.get_all_managed_elements.batches(batch_size=2)] == [[1, 2], [3, 4], [5]]


@pytest.mark.obligation("P32", "F9")
@pytest.mark.parametrize(
    "tamper",
    [
        lambda replies: reorder(replies, seed=1),
        lambda replies: reorder(replies, seed=2, span=3),
        lambda replies: replies[::-1],
        lambda replies: duplicate(replies, at=range(10)),
        lambda replies: duplicate(replies, at=0, copies=3, distance=5),
        lambda replies: reorder(duplicate(replies, at=range(9), distance=3), seed=3),
    ],
    ids=["shuffled", "overtaken", "reversed", "doubled", "late copies", "all at once"],
)
@pytest.mark.obligation("BAT6")
def test_batches_are_put_in_order_each_once(tamper: Tamper) -> None:
    """P32."""
    with exchange([SmallEms(20)], tamper=tamper) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
        found = [number for batch in batches for number in numbers(batch)]
        assert found == list(range(1, 21))
        assert batches.counts.released == 10


@pytest.mark.obligation("P32")
@pytest.mark.parametrize(
    ("lost", "handed_out", "missing", "end_seen", "held"),
    [
        (1, [[1, 2]], (2,), True, [3, 4, 5]),
        ([1, 3], [[1, 2]], (2, 4), True, [3, 5]),
        (0, [], (1,), True, [2, 3, 4, 5]),
        (-1, [[1, 2], [3, 4], [5, 6], [7, 8]], (), False, []),
        ([2, -1], [[1, 2], [3, 4]], (3,), False, [4]),
        (range(1, 4), [[1, 2]], (2, 3, 4), True, [5]),
    ],
)
@pytest.mark.obligation("BAT8")
def test_missing_batches_are_named(lost: Any, handed_out: Any, missing: Any, end_seen: bool, held: Any) -> None:
    with exchange(timeouts=SHORT) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
        pair.scripted.send(gap(pair.scripted.take().replies([SmallEms(10)]), at=lost))
        got: list[Any] = []
        with pytest.raises(IncompleteBatchError) as caught:
            got.extend(numbers(batch) for batch in batches)
        error = caught.value
        assert got == handed_out
        assert (error.missing, error.end_seen, error.clock) == (missing, end_seen, "gap")
        assert sorted(error.batches) == held
        assert {number: numbers(batch) for number, batch in error.batches.items()} == {
            number: [2 * number - 1, 2 * number] for number in held
        }
        assert error.correlation_id == batches.correlation_id
        assert pair.requestor.pending == 0
        assert list(batches) == []


@pytest.mark.obligation("C59")
def test_what_a_fault_overtook_is_not_lost() -> None:
    """Batches whose turn never came are in `held`."""

    class Ems(SmallEms):  # type: ignore[misc]
        def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[Any]:
            yield from super().get_all_managed_elements(request, context)
            raise CommLossFault("gone")

    with exchange([Ems(7)], tamper=lambda replies: gap(replies, at=1)) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
        assert numbers(next(batches)) == [1, 2]
        with pytest.raises(CommLossFault):
            next(batches)
        assert {number: numbers(batch) for number, batch in batches.held.items()} == {3: [5, 6]}


def test_an_exception_in_mid_sequence_is_an_internal_error(mtosi_exchange: Any) -> None:
    class Ems(ManagedElementRetrieval.Supplier):
        def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[Any]:
            yield ManagedElementType(name=name("ME=NE-1"))
            yield ManagedElementType(name=name("ME=NE-2"))
            yield "no element"
            yield ManagedElementType()

    batches = mtosi_exchange([Ems()]).stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
    assert [numbers(next(batches)), numbers(next(batches))] == [[1], [2]]
    with pytest.raises(InternalErrorFault, match="getAllManagedElements failed with"):
        next(batches)


@pytest.mark.obligation("C58")
def test_one_plain_reply_is_the_whole_answer(mtosi_exchange: Any) -> None:
    """C58: accepted, and told as a warning."""
    pair = mtosi_exchange()
    stub, seen = pair.stub(ManagedElementRetrieval), list[Any]()
    options = CallOptions(correlation_id="id", on_reply=seen.append)
    batches = stub.get_all_managed_elements.batches(batch_size=2, options=options)
    pair.scripted.take()
    stub.get_all_managed_elements.invoke_batches(None, 0, CallOptions(correlation_id="other")).close()
    asked = pair.scripted.take()
    (reply,) = asked.replies([SmallEms(3)])
    plain = _without_place(reply)
    plain = dataclasses.replace(plain, body=plain.body.replace(b">other<", b">id<"))
    pair.scripted.send([plain])
    assert [numbers(batch) for batch in batches] == [[1, 2, 3]]
    assert [warning.rule for warning in seen[0].warnings if warning.rule == "C58"] == ["C58"]


def _without_place(reply: JmsMessage) -> JmsMessage:
    """The same as an answer that says nothing of batches."""
    body = _without_batch_fields(reply.body).replace(b">MultipleBatchResponse<", b">SimpleResponse<")
    kept = {name: value for name, value in reply.properties.items() if "batchSequence" not in name}
    return dataclasses.replace(reply, body=body, properties=kept | {"MTOSI_communicationPattern": "SimpleResponse"})


def _without_batch_fields(body: bytes) -> bytes:
    return re.sub(rb"<(\w+:batchSequence\w+)>\w+</\1>", b"", body)


@pytest.mark.obligation("C24")
def test_a_size_of_zero_asks_for_one_reply(mtosi_exchange: Any) -> None:
    """C24."""
    seen: list[Any] = []
    retrieval = mtosi_exchange([SmallEms(5)]).stub(ManagedElementRetrieval)
    options = CallOptions(on_reply=seen.append)
    batches = retrieval.get_all_managed_elements.batches(batch_size=0, options=options)
    assert [numbers(batch) for batch in batches] == [[1, 2, 3, 4, 5]]
    header = seen[0].header
    assert (header.batch_sequence_number, header.batch_sequence_end_of_reply, header.requested_batch_size) == (
        1,
        True,
        0,
    )


@pytest.mark.obligation("C23")
@pytest.mark.parametrize("first", [0, 1, "auto"])
def test_peers_count_from_zero_or_one(first: Any) -> None:
    """C23."""
    with exchange([SmallEms(5)], profile=BindingProfile(first_batch=first)) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
        assert [numbers(batch) for batch in batches] == [[1, 2], [3, 4], [5]]


@pytest.mark.obligation("P31")
@pytest.mark.parametrize(("eager", "made", "rest"), [(False, 3, [[3, 4]]), (True, 2, [[3, 4], []])])
def test_a_batch_leaves_before_much_more_is_made(eager: bool, made: int, rest: list[list[int]]) -> None:
    """P31: the handler stands still until the requestor has the first batch.

    An eager supplier, for handlers that are slow between objects, sends it when it is full, at the price of an empty
    batch at the end; another one with the next object.
    """
    received = threading.Event()

    class Ems(SmallEms):
        def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[ManagedElementType]:
            for number, element in enumerate(super().get_all_managed_elements(request, context)):
                if number == made:
                    assert received.wait(PATIENCE)
                yield element

    with exchange([Ems(4)], supplier={"eager": eager}) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
        assert numbers(next(batches)) == [1, 2]
        received.set()
        assert [numbers(batch) for batch in batches] == rest


def living(*classes: type) -> int:
    """How many instances there are, once the garbage is away."""
    gc.collect()
    return sum(type(one) in classes for one in gc.get_objects())


@pytest.mark.obligation("P33")
def test_nothing_of_a_request_is_kept() -> None:
    """P33: neither at the supplier nor, once its batches were taken, at the requestor."""
    kept = (RequestContext, Envelope, Header, JmsMessage, ManagedElementType)
    before = living(*kept)
    ems = SmallEms(4)
    with exchange([ems]) as pair:
        retrieval = pair.stub(ManagedElementRetrieval)
        for _ in range(3):
            assert sum(1 for _ in retrieval.get_all_managed_elements.batches(batch_size=2)) == 2
        pair.supplier.stop()
        assert len(ems.contexts) == 3
        ems.contexts.clear()
        assert pair.requestor.pending == 0
        until(lambda: living(*kept) <= before)  # a thread, also of another test, may be about to let go


def test_a_response_is_forgotten_when_its_reader_is_done(mtosi_exchange: Any) -> None:
    """The memory of a batch call does not grow with the number of batches."""
    pair = mtosi_exchange()
    before = living(ManagedElementType, Envelope)
    batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
    pair.scripted.send(pair.scripted.take().replies([SmallEms(4)]))
    for batch in batches:
        del batch
        assert living(ManagedElementType, Envelope) == before


def test_a_slow_caller_is_not_timed_out_by_itself(mtosi_exchange: Any) -> None:
    """The time that a caller takes for a batch is not the peer's; neither for the gap nor in all."""
    clock = ManualClock()
    pair = mtosi_exchange([SmallEms(6)], clock=clock, timeouts=Timeouts(first_reply=5, gap=5, total=9))
    batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
    found = []
    clock.advance(100)
    for batch in batches:
        found += numbers(batch)
        clock.advance(100)
    assert found == [1, 2, 3, 4, 5, 6]


def test_what_has_arrived_is_used_before_a_clock_is_looked_at(mtosi_exchange: Any) -> None:
    clock = ManualClock()
    passing = threading.Event()

    def look() -> float:
        if passing.is_set():  # every look at the clock takes an hour
            clock.advance(3600)
        return clock.now

    pair = mtosi_exchange(clock=look, timeouts=Timeouts(first_reply=1, gap=1))
    stub = pair.stub(ManagedElementRetrieval)
    batches = stub.get_all_managed_elements.batches(batch_size=1)
    pair.scripted.send(pair.scripted.take().replies([SmallEms(3)]))
    passing.set()
    assert [numbers(batch) for batch in batches] == [[1], [2], [3]]


def test_a_caller_waits_for_its_own_time_only(mtosi_exchange: Any) -> None:
    """The clocks run while a caller waits, and then they do run out."""
    pair = mtosi_exchange(timeouts=Timeouts(first_reply=0.02, gap=0.02))
    stub = pair.stub(ManagedElementRetrieval)
    first = stub.get_all_managed_elements.batches(batch_size=1)
    second = stub.get_all_managed_elements.batches(batch_size=1)
    pair.scripted.take()
    replies = pair.scripted.take().replies([SmallEms(2)])
    with pytest.raises(ReplyTimeoutError):
        next(first)
    pair.scripted.send(replies)
    assert [numbers(batch) for batch in second] == [[1], [2]]


def test_the_gap_time_of_a_call(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange()
    options = CallOptions(gap_timeout=0.02)
    batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1, options=options)
    pair.scripted.send(pair.scripted.take().replies([SmallEms(3)])[:2])
    assert [numbers(next(batches)), numbers(next(batches))] == [[1], [2]]
    with pytest.raises(IncompleteBatchError) as caught:
        next(batches)
    assert (caught.value.clock, caught.value.missing, caught.value.end_seen) == ("gap", (), False)


def test_closing_early_makes_orphans_of_the_rest(mtosi_exchange: Any) -> None:
    orphans: SimpleQueue[Any] = SimpleQueue()
    pair = mtosi_exchange(on_orphan=orphans.put)
    stub = pair.stub(ManagedElementRetrieval)
    with stub.get_all_managed_elements.batches(batch_size=1) as batches:
        pair.scripted.send(pair.scripted.take().replies([SmallEms(3)]))
        assert numbers(next(batches)) == [1]
    assert pair.requestor.pending == 0
    assert list(batches) == []
    batches.close()
    after = stub.get_all_managed_elements.batches(batch_size=5)
    pair.scripted.send(pair.scripted.take().replies([SmallEms(2)]))
    assert [numbers(batch) for batch in after] == [[1, 2]]
    late = [orphans.get(timeout=PATIENCE) for _ in range(2)]
    assert [(one.reply.batch_number, one.reason.name) for one in late] == [(2, "LATE"), (3, "LATE")]
    assert pair.requestor.orphans == 2


def test_what_was_received_and_not_taken_goes_with_the_rest(mtosi_exchange: Any) -> None:
    """Replies that another caller received for this one are not handed out after it was closed."""
    pair = mtosi_exchange()
    stub = pair.stub(ManagedElementRetrieval)
    first = stub.get_all_managed_elements.batches(batch_size=1)
    pair.scripted.send(pair.scripted.take().replies([SmallEms(3)]))
    second = stub.get_all_managed_elements.batches(batch_size=9)
    pair.scripted.send(pair.scripted.take().replies([SmallEms(2)]))
    assert [numbers(batch) for batch in second] == [[1, 2]]
    assert numbers(next(first)) == [1]
    first.close()
    assert list(first) == []


def test_leaving_the_loop_gives_the_rest_up(mtosi_exchange: Any) -> None:
    """Whoever breaks out of the loop need not close anything."""
    pair = mtosi_exchange([SmallEms(5)])
    stub = pair.stub(ManagedElementRetrieval)
    for batch in stub.get_all_managed_elements.batches(batch_size=1):
        assert numbers(batch) == [1]
        break
    gc.collect()
    assert stub.get_managed_element(me_ref=NE1).me is not None
    assert pair.requestor.pending == 0
    assert pair.requestor.orphans == 4


def test_calls_inside_a_batch_loop(mtosi_exchange: Any) -> None:
    retrieval = mtosi_exchange([SmallEms(4)], threads=2).stub(ManagedElementRetrieval)
    found = []
    for outer in retrieval.get_all_managed_elements.batches(batch_size=1):
        (number,) = numbers(outer)
        one = retrieval.get_managed_element(me_ref=name(f"MD=EMS1/ME=NE-{number}")).me
        inner = [numbers(batch) for batch in retrieval.get_all_managed_elements.batches(batch_size=3)]
        found.append((str(one.name), inner))
    assert found == [(f"MD=EMS1/ME=NE-{number}", [[1, 2, 3], [4]]) for number in range(1, 5)]


@pytest.mark.obligation("C58")
def test_a_second_reply_to_a_simple_request_is_an_orphan(mtosi_exchange: Any) -> None:
    """C58."""
    orphans: SimpleQueue[Any] = SimpleQueue()
    pair = mtosi_exchange(on_orphan=orphans.put)
    pair.scripted.start(lambda asked: duplicate(asked.replies([SmallEms()]), at=0))
    stub = pair.stub(ManagedElementRetrieval)
    for _ in range(3):
        assert stub.get_managed_element(me_ref=NE1).me is not None
    assert pair.requestor.orphans == 2  # the third copy is still in the queue
    assert [orphans.get(timeout=PATIENCE).reason.name for _ in range(2)] == ["LATE"] * 2


@pytest.mark.obligation("BAT10")
def test_orphans_without_a_hook_are_logged(mtosi_exchange: Any, caplog: pytest.LogCaptureFixture) -> None:
    pair = mtosi_exchange()
    pair.scripted.start(lambda asked: duplicate(asked.replies([SmallEms()]), at=0))
    for _ in range(2):
        pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1)
    assert "an orphan" in caplog.text
    assert pair.requestor.orphans == 1


def test_an_orphan_hook_may_call_and_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    """It is called without locks, by a thread of its own; its own failure is logged and hurts nobody."""
    answers: SimpleQueue[Any] = SimpleQueue()

    def hook(orphan: Any) -> None:
        if answers.empty():
            answers.put(stub.get_managed_element(me_ref=NE1).me)
        else:
            again.set()  # so the first failure is logged
        raise ZeroDivisionError("in the hook")

    again = threading.Event()
    with exchange(on_orphan=hook) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        pair.scripted.start(lambda asked: duplicate(asked.replies([SmallEms()]), at=0))
        for _ in range(4):
            assert stub.get_managed_element(me_ref=NE1).me is not None
        assert again.wait(PATIENCE)
    assert answers.get_nowait() is not None
    assert "the orphan hook failed" in caplog.text


def test_batches_are_for_one_thread_at_a_time(mtosi_exchange: Any) -> None:
    """The second thread is told, and the first one still gets everything."""
    pair = mtosi_exchange()
    batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
    other = background(lambda: [numbers(batch) for batch in batches])
    while not pair.requestor.waiting:
        assert not other.done()
    with pytest.raises(IllegalStateError, match="another caller waits"):
        next(batches)
    pair.scripted.send(pair.scripted.take().replies([SmallEms(3)]))
    assert other.result(PATIENCE) == [[1], [2], [3]]


@pytest.mark.obligation("BAT9")
def test_contradictions_are_protocol_errors(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange()
    batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
    asked = pair.scripted.take()
    one, two = asked.replies([SmallEms(2)])
    body = one.body.replace(b"EndOfReply>false<", b"EndOfReply>true<")
    ends_twice = dataclasses.replace(one, body=body, properties=dict(one.properties) | {END: True})
    pair.scripted.send([two, ends_twice])
    with pytest.raises(ProtocolError, match="two ends"):
        next(batches)


@pytest.mark.obligation("BAT2", "R5b")
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({END: True}, "EndOfReply is false and True"),
        ({END.lower(): True}, "EndOfReply is false and False and True"),  # beside the usual one, which agrees
        ({"MTOSI_batchsequenceNumber": 2}, "Number is 1 and 2"),
    ],
)
def test_header_and_properties_that_disagree_are_protocol_errors(
    mtosi_exchange: Any, said: dict[str, Any], why: str
) -> None:
    pair = mtosi_exchange()
    batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
    one, _ = pair.scripted.take().replies([SmallEms(2)])
    pair.scripted.send([dataclasses.replace(one, properties=dict(one.properties) | said)])
    with pytest.raises(ProtocolError, match=f"batchSequence{why}"):
        next(batches)


@pytest.mark.obligation("BAT1")
def test_a_place_in_the_properties_alone_is_enough() -> None:
    seen: list[Any] = []

    with exchange([SmallEms(3)], tamper=with_bodies(_without_batch_fields)) as pair:
        retrieval = pair.stub(ManagedElementRetrieval)
        options = CallOptions(on_reply=seen.append)
        batches = retrieval.get_all_managed_elements.batches(batch_size=2, options=options)
        assert [numbers(batch) for batch in batches] == [[1, 2], [3]]
    assert [one.header.batch_sequence_number for one in seen] == [1, 2]
    assert any("only the properties have it" in warning.message for warning in seen[0].warnings)


def test_a_supplier_that_answers_again_makes_duplicates_not_conflicts(mtosi_exchange: Any) -> None:
    """After a crash between the last reply and the acknowledgement the request is answered twice, at another time."""
    pair = mtosi_exchange()
    batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
    asked = pair.scripted.take()
    once = asked.replies([SmallEms(3)])
    again = [dataclasses.replace(one, body=_later(one.body)) for one in asked.replies([SmallEms(3)])]
    pair.scripted.send([once[0], again[0], again[1], once[1], once[2]])
    assert [numbers(batch) for batch in batches] == [[1], [2], [3]]
    assert (batches.counts.duplicates, batches.counts.conflicts) == (2, 0)


def _later(body: bytes) -> bytes:
    return re.sub(rb"timestamp>[^<]*<", b"timestamp>2031-01-01T00:00:00Z<", body)


def test_whole_responses_as_batches(mtosi_exchange: Any) -> None:
    """Where a response has no list to cut, each response that the handler yields is a batch."""
    pair = mtosi_exchange([InventoryEms(Network(elements=5, ports=1))])
    inventory = pair.stub(ResourceInventoryRetrieval)
    sizes = [
        len(batch.inventory_data.md_list.md[0].me_list.me_inv)
        for batch in inventory.get_inventory.batches(batch_size=2)
    ]
    assert sizes == [2, 2, 1]
    assert len(inventory.get_inventory().inventory_data.md_list.md[0].me_list.me_inv) == 5


def test_a_handler_is_closed_when_its_requestor_stops_caring(mtosi_exchange: Any) -> None:
    """Its `finally` runs at once, not when the garbage collector comes by."""
    ended: list[str] = []

    class Ems(ManagedElementRetrieval.Supplier):
        def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[Any]:
            try:
                yield from SmallEms(9).get_all_managed_elements(request, context)
            finally:
                ended.append("yes")

    pair = mtosi_exchange()
    pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
    message = pair.scripted.take().message
    supplier = Supplier(pair.connection, SUPPLIER, [Ems()])
    gone = TemporaryQueue("of-nobody", "nobody")
    supplier.answer(dataclasses.replace(message, reply_to=gone), pair.connection.session())
    assert ended == ["yes"]


@pytest.mark.obligation("C61")
def test_an_acknowledgement_is_not_the_answer_where_peers_send_them() -> None:
    """C61."""

    def with_ack(replies: list[JmsMessage]) -> list[JmsMessage]:
        bare = _without_batch_fields(re.sub(rb"<soap:Body>.*</soap:Body>", b"<soap:Body/>", replies[0].body))
        kept = {name: value for name, value in replies[0].properties.items() if "batchSequence" not in name}
        return [dataclasses.replace(replies[0], body=bare, properties=kept), *replies]

    with exchange([SmallEms(2)], tamper=with_ack, expect_ack=True) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        assert [numbers(batch) for batch in stub.get_all_managed_elements.batches(batch_size=1)] == [[1], [2]]
        assert stub.get_managed_element(me_ref=NE1).me is not None
    with exchange([SmallEms(2)], tamper=with_ack) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        with pytest.raises(ProtocolError, match="got an empty body"):
            stub.get_managed_element(me_ref=NE1)


@pytest.mark.obligation("O13d")
def test_replies_by_other_rules_are_told_as_warnings(mtosi_exchange: Any) -> None:
    """R3c: matched by JMSCorrelationID alone, because the peer did not copy the id."""
    pair = mtosi_exchange()
    seen: list[Any] = []
    options = CallOptions(on_reply=seen.append)
    batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=9, options=options)
    (reply,) = pair.scripted.take().replies([SmallEms(1)])
    changed = reply.body.replace(batches.correlation_id.encode(), b"mine")
    pair.scripted.send([dataclasses.replace(reply, body=changed)])
    assert len(list(batches)) == 1
    assert "R3c" in [warning.rule for warning in seen[0].warnings]


def test_a_hook_that_fails_fails_the_call(mtosi_exchange: Any) -> None:
    def hook(envelope: Any) -> None:
        raise ZeroDivisionError

    retrieval = mtosi_exchange([SmallEms()]).stub(ManagedElementRetrieval)
    with pytest.raises(ZeroDivisionError):
        retrieval.get_managed_element(me_ref=NE1, options=CallOptions(on_reply=hook))
    faults: list[Any] = []
    with pytest.raises(MtosiFault):
        retrieval.get_managed_element(me_ref=NE7, options=CallOptions(on_reply=faults.append))
    assert faults[0].fault.kind == "entityNotFound"
