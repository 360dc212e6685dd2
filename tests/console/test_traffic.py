"""What a console keeps of the messages that it sees: exchanges, destinations, notifications; all of it bounded."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mtosi_jms as mtosi
from mtosi_jms.console import Bounds, Exchange, Tap, Traffic
from mtosi_jms.console._exchanges import RANGES, Numbers
from mtosi_jms.jms import JmsMessage
from mtosi_jms.service import RequestContext
from mtosi_jms.simulator import Network
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import REQUESTOR, SUPPLIER, connect_privately, notifications
from mtosi_jms.transport.memory import MemoryConnection


class Ems(ManagedElementRetrieval.Supplier):
    def get_all_managed_elements(self, request: Any, context: RequestContext) -> Any:
        for number in range(1, 8):
            yield ManagedElementType(name=name(f"MD=EMS1/ME=NE-{number}"))


def only(traffic: Traffic) -> Exchange:
    (found,) = traffic.exchanges()
    return found


def replies(make: Any, numbers: Iterable[int], end: int | None = None) -> list[JmsMessage]:
    return [make(batch=number, last=number == end) for number in numbers]


@pytest.mark.parametrize(
    ("asked", "numbers", "end", "state", "gaps", "unseen"),
    [
        (True, [1, 2, 3], 3, "complete", "", 0),
        (True, [1, 2], None, "open", "", 0),
        (True, [1, 4], None, "gap", "2–3", 0),
        (True, [2, 4], 4, "incomplete", "1, 3", 0),
        (True, [0, 1, 3], 3, "incomplete", "2", 0),
        (True, [3, 1, 2], 3, "complete", "", 0),
        (False, [5, 7], None, "gap", "6", 4),
        (False, [5, 6], 6, "ended", "", 4),
        (False, [5, 4, 3, 2, 1, 6], 6, "complete", "", 0),
    ],
)
def test_exchanges(
    traffic: Traffic, make: Any, asked: bool, numbers: list[int], end: int | None, state: str, gaps: str, unseen: int
) -> None:
    if asked:
        traffic.record(make("REQUEST"))
    for reply in replies(make, numbers, end):
        traffic.record(reply)
    found = only(traffic)
    assert (found.state, found.gaps, found.unseen) == (state, gaps, unseen)
    assert found.operation == "getAllManagedElements"


def test_what_may_have_passed_unseen_is_no_gap(traffic: Traffic, make: Any) -> None:
    traffic.record(make("REQUEST"), is_whole=False)
    for reply in replies(make, [1, 4], 4):
        traffic.record(reply, is_whole=False)
    found = only(traffic)
    assert (found.state, found.missing, found.unseen) == ("ended", 0, 2)
    assert [piece.kind for piece in found.segments] == ["came", "came", "unseen"]


def test_a_landing_has_all_that_came(traffic: Traffic, make: Any) -> None:
    for reply in replies(make, [3, 5], 5):
        traffic.record(reply, from_first=True)
    assert only(traffic).gaps == "1–2, 4"


def test_duplicates_are_other_messages_with_the_same_number(traffic: Traffic, make: Any) -> None:
    traffic.record(make("REQUEST"))
    first, second = replies(make, [1, 2], 2)
    for message in (first, second, first, make(batch=1)):  # the second time `first` is seen by somebody else
        traffic.record(message)
    found = only(traffic)
    assert (found.duplicates, found.again, found.state, found.replies) == (1, "1", "complete", 3)
    assert [one.key for one in traffic.exchanges("troubled")] == ["c-1"]


def test_a_fault_ends_an_exchange(traffic: Traffic, make: Any) -> None:
    traffic.record(make("REQUEST"))
    traffic.record(make("ERROR"))
    assert (only(traffic).state, only(traffic).faults) == ("fault", 1)


def test_without_correlation_ids_jms_tells_what_belongs_together(traffic: Traffic, make: Any) -> None:
    traffic.record(make("REQUEST", "", message_id="ID:request"))
    traffic.record(make("RESPONSE", "", correlation_id="ID:request"))
    assert (only(traffic).key, only(traffic).state) == ("ID:request", "complete")


def test_after_an_interruption_nothing_is_called_missing(traffic: Traffic, make: Any) -> None:
    traffic.record(make("REQUEST"))
    traffic.record(make(batch=1))
    traffic.interrupted()
    traffic.record(make(batch=4, last=True))
    assert only(traffic).state == "ended"


def test_what_comes_too_fast_is_counted_and_left_out(make: Any) -> None:
    traffic = Traffic(Bounds(backlog=3))
    traffic.record(make("REQUEST"))
    for reply in replies(make, [1, 2, 3, 4], 4):
        traffic.record(reply)
    overview = traffic.overview()
    assert (overview.seen, overview.left_out) == (5, 2)
    assert only(traffic).is_whole is False


def test_all_is_bounded(make: Any) -> None:
    traffic = Traffic(Bounds(messages=20, octets=10_000, exchanges=10, destinations=5))
    for number in range(200):
        traffic.record(make(correlation=f"c-{number}"), destination=f"queue:{number}")
        traffic.digest()
    traffic.record(make(body="x" * 50_000, correlation="large"))
    assert len(traffic.exchanges(most=1000)) == 10
    assert len(traffic.places()) == 5
    kept = traffic.messages(most=1000)
    assert len(kept) == 20
    assert sum(len(one.message.body) for one in kept) <= 10_000
    assert kept[0].size > 50_000
    assert not kept[0].has_body
    assert traffic.overview().seen == 201


def test_exchanges_with_problems_stay_longest(make: Any) -> None:
    traffic = Traffic(Bounds(exchanges=10))
    traffic.record(make("ERROR", "troubled"))
    for number in range(50):
        traffic.record(make(correlation=f"c-{number}"))
    assert traffic.exchange("troubled") is not None


def test_destinations_have_rates_and_depths(make: Any) -> None:
    now = [1000.0]
    traffic = Traffic(clock=lambda: now[0])
    for _ in range(10):
        traffic.record(make(), destination="queue:A")
    traffic.set_depth("queue:B", 4, 2)
    now[0] += 1
    (first, rate, series), (second, _, _) = traffic.places()
    assert (first.name, first.total, rate, series[-1]) == ("queue:A", 10, 2.0, 10)
    assert (second.name, second.depth, second.consumers, second.total) == ("queue:B", 4, 2, 0)
    now[0] += 120
    assert set(traffic.places()[0][2]) == {0}


def test_notifications_by_category_and_severity(traffic: Traffic) -> None:
    events = list(Network(elements=5).events(40, start=dt.datetime(2026, 1, 1, tzinfo=dt.UTC)))
    with notifications() as pair:
        messages = pair.messages(events)
    for number, message in enumerate(messages):
        bare = JmsMessage(body=message.body, message_id=f"ID:{number}")
        traffic.record(message.stamped(message.destination, message_id=f"ID:p{number}", timestamp_ms=0))  # type: ignore[arg-type]
        traffic.record(bare)  # its properties are gone: the body says as much
    counts = traffic.notified()
    assert sum(counts.values()) == 2 * len(messages)
    assert all(number % 2 == 0 for number in counts.values())
    assert {category for category, _ in counts} >= {"Fault", "Inventory"}
    faults, _ = traffic.notifications("Fault", "CRITICAL")
    assert {one.facts.event for one in faults} == {"AlarmInformation"}
    assert all(one.facts.object_name.startswith("MD=") for one in faults)


def test_both_ends_of_an_application_are_seen_once(traffic: Traffic) -> None:
    """A supplier does not learn the message ids of its replies, and the requestor gets them with ids."""
    with connect_privately() as ours:
        theirs = MemoryConnection(ours.provider, ours.names)
        ours.telemetry = theirs.telemetry = Tap(traffic)
        with (
            theirs,
            mtosi.Supplier(theirs, SUPPLIER, [Ems()]),
            mtosi.Requestor(ours, sender_uri=REQUESTOR) as requestor,
        ):
            stub = ManagedElementRetrieval(requestor, SUPPLIER)
            assert len(list(stub.get_all_managed_elements.batches(batch_size=2))) == 4
    found = only(traffic)
    assert (found.state, found.batches, found.duplicates, found.asked) == ("complete", 4, 0, True)
    assert traffic.overview().seen == 5
    assert {place.name: place.total for place, _, _ in traffic.places()} == {
        "queue:SUPPLIER.OS": 1,
        "queue:REQUESTOR.OS": 4,
    }


@pytest.mark.parametrize(
    "body", [b"", b"\x00\xff", b"<a", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", b"<a>" * 10_000]
)
def test_any_octets_are_taken(traffic: Traffic, body: bytes) -> None:
    traffic.record(JmsMessage(body=body, properties={"MTOSI_msgType": "RESPONSE", "MTOSI_correlationId": "c"}))
    assert only(traffic).key == "c"


@given(st.lists(st.integers(0, 60)))
def test_numbers_are_a_set(given_numbers: list[int]) -> None:
    numbers = Numbers()
    new = [numbers.add(number) for number in given_numbers]
    assert sum(new) == numbers.count == len(set(given_numbers))
    held = [number for low, high in numbers.ranges for number in range(low, high + 1)]
    assert held == sorted(set(given_numbers))
    missing = [number for low, high in numbers.gaps(0, 60) for number in range(low, high + 1)]
    assert missing == sorted(set(range(61)) - set(given_numbers))
    assert all((number in numbers) is (number in given_numbers) for number in range(61))


def test_numbers_have_room_for_so_many_ranges() -> None:
    numbers = Numbers()
    for number in range(0, 4 * RANGES, 2):
        numbers.add(number)
    assert len(numbers.ranges) == RANGES
    assert numbers.is_full
