"""The ledger: what is complete, missing, double, in conflict."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.patterns import standing_of
from mtosi_jms.tables.sequences import LISTED, Receipt, ReplySequence, reckon, time_of, time_text

Fact = Receipt | tuple[str | None, int | None, bool | None, str]


def receipts_of(*facts: Fact) -> list[Receipt]:
    """Receipts of their own or as (correlationId, number, end, digest); each is of a file of its own."""
    return [
        fact if isinstance(fact, Receipt) else Receipt(*fact, source=f"f{number}") for number, fact in enumerate(facts)
    ]


def one(*facts: Fact) -> ReplySequence:
    found = reckon(receipts_of(*facts))
    assert len(found) == 1
    return found[0]


def test_complete_in_any_order() -> None:
    found = one(("c", 3, True, "z"), ("c", 1, False, "x"), ("c", 2, False, "y"))
    assert (found.batches, found.expected, found.received, found.complete) == (3, 3, (1, 2, 3), True)
    assert found.missing == ()


@pytest.mark.obligation("BAT8")
def test_gap_and_late_end() -> None:
    found = one(("c", 5, True, "e"), ("c", 2, False, "b"))
    assert (found.expected, found.missing, found.missing_count, found.complete) == (5, (1, 3, 4), 3, False)


def test_end_not_seen() -> None:
    found = one(("c", 1, False, "a"), ("c", 3, None, "c"))
    assert (found.expected, found.missing, found.complete) == (None, (2,), False)


def test_zero_based_peer() -> None:
    found = one(("c", 0, False, "a"), ("c", 1, False, "b"), ("c", 2, True, "c"))
    assert (found.expected, found.missing, found.complete) == (3, (), True)


@pytest.mark.obligation("BAT6")
def test_duplicate_is_counted_and_nothing_else() -> None:
    found = one(("c", 1, True, "a"), ("c", 1, True, "a"), ("c", 1, True, "a"))
    assert (found.batches, found.duplicates, found.conflicts, found.complete) == (1, 2, (), True)


@pytest.mark.obligation("BAT7")
def test_same_number_other_body_is_a_conflict() -> None:
    found = one(("c", 1, False, "a"), ("c", 1, False, "b"), ("c", 2, True, "c"))
    assert (found.conflicts, found.duplicates, found.batches, found.complete) == ((1,), 0, 2, False)


def test_copies_removed_by_a_reader_count() -> None:
    assert one(Receipt("c", 1, True, "a", copies=4)).duplicates == 3


def test_correlation_id_is_compared_as_it_came() -> None:
    found = reckon(receipts_of(("7", 1, True, "a"), (" 7", 1, True, "a"), ("7 ", 1, True, "a")))
    assert [sequence.correlation_id for sequence in found] == [" 7", "7", "7 "]
    assert sum(sequence.duplicates for sequence in found) == 0


def test_without_correlation_id_each_is_its_own() -> None:
    found = reckon(receipts_of((None, 1, False, "a"), (None, 1, False, "a"), Receipt(None, None, None, "b", "one.xml")))
    assert [sequence.complete for sequence in found] == [False, False, True]
    assert found[2].source == "one.xml"


def test_lone_reply_without_number_is_complete() -> None:
    found = one(("c", None, None, "a"))
    assert (found.batches, found.expected, found.received, found.complete) == (1, 1, (), True)


@pytest.mark.obligation("BAT1")
@pytest.mark.parametrize(
    "facts",
    [
        [(None, None, "a"), (None, None, "b")],
        [(None, True, "a"), (None, False, "b")],
        [(None, False, "a")],
        [(None, False, "a"), (None, True, "a")],
        [(1, True, "a"), (None, None, "b")],
        [(1, False, "a"), (None, False, "c"), (2, True, "b")],
    ],
)
def test_content_without_a_place_makes_a_sequence_incomplete(facts: list[tuple[int | None, bool | None, str]]) -> None:
    found = one(*(("c", *fact) for fact in facts))
    assert (found.complete, found.conflicts) == (False, (None,))


def test_another_end_mark_is_a_conflict() -> None:
    found = one(("c", 1, False, "a"), ("c", 2, True, "b"), ("c", 2, False, "b"))
    assert (found.complete, found.conflicts) == (False, (2,))


def test_two_ends_are_not_complete() -> None:
    found = one(("c", 1, False, "a"), ("c", 2, True, "b"), ("c", 3, True, "c"))
    assert (found.complete, found.unexpected) == (False, (3,))


@pytest.mark.obligation("BAT5")
@pytest.mark.parametrize(
    ("first_batch", "senders", "known", "complete", "missing"),
    [
        ("auto", ("EMS", "EMS"), (), False, (0,)),
        ("auto", ("EMS", "other"), (), True, ()),
        ("auto", ("other", "EMS"), ("EMS",), False, (0,)),
        ("auto", ("", ""), (), False, (0,)),
        (0, ("EMS", "other"), (), False, (0,)),
        (1, ("EMS", "EMS"), ("EMS",), True, ()),
    ],
)
def test_a_sender_of_which_a_zero_was_seen_counts_from_zero(
    first_batch: Any, senders: tuple[str, str], known: tuple[str, ...], complete: bool, missing: tuple[int, ...]
) -> None:
    zero = [Receipt("a", number, number == 1, str(number), sender=senders[0]) for number in (0, 1)]
    one_on = [Receipt("b", number, number == 2, str(number), sender=senders[1]) for number in (1, 2)]
    first, second = reckon([*zero, *one_on], first_batch, known)
    assert (second.complete, second.missing) == (complete, missing)
    assert first.complete == (first_batch != 1)
    assert first.unexpected == ((0,) if first_batch == 1 else ())


@pytest.mark.obligation("BAT9")
def test_number_beyond_the_end() -> None:
    found = one(("c", 1, False, "a"), ("c", 2, True, "b"), ("c", 4, False, "d"))
    assert (found.expected, found.missing, found.unexpected, found.complete) == (2, (), (4,), False)


def test_fault_ends_the_exchange() -> None:
    found = one(("c", 1, True, "a"), Receipt("c", None, None, "f", fault=True))
    assert (found.faults, found.batches, found.complete) == (1, 1, False)


def test_faults_alone_make_no_sequence() -> None:
    assert reckon([Receipt("c", None, None, "f", fault=True)]) == []


def test_absurd_number_costs_nothing() -> None:
    found = one(("c", 1, False, "a"), ("c", 4_294_967_295, True, "b"))
    assert found.missing_count == 4_294_967_293
    assert found.missing == tuple(range(2, 2 + LISTED))


RECEIPTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", " a", None]),
        st.one_of(st.none(), st.integers(0, 6)),
        st.sampled_from([True, False, None]),
        st.sampled_from(["x", "y"]),
    ),
    max_size=25,
)


@given(RECEIPTS, st.randoms(use_true_random=False))
def test_order_does_not_matter(
    receipts: list[tuple[str | None, int | None, bool | None, str]], chance: random.Random
) -> None:
    named = [Receipt(*item, source=f"f{position}") for position, item in enumerate(receipts)]
    shuffled = named.copy()
    chance.shuffle(shuffled)
    assert reckon(named) == reckon(shuffled)


@given(RECEIPTS)
def test_nothing_is_lost_or_counted_twice(receipts: list[tuple[str | None, int | None, bool | None, str]]) -> None:
    found = reckon(Receipt(*item, source=f"f{position}") for position, item in enumerate(receipts))
    keys = {(*item[:2], standing_of(item[1], item[2]), item[3]) for item in receipts if item[0] is not None}
    alone = sum(item[0] is None for item in receipts)
    known = [sequence for sequence in found if sequence.correlation_id is not None]
    assert len(keys) + sum(sequence.duplicates for sequence in known) + alone == len(receipts)
    assert sum(sequence.correlation_id is None for sequence in found) == alone


@given(st.integers(1, 40), st.data())
def test_faults_injected_into_a_whole_reply_are_named(size: int, data: st.DataObject) -> None:
    base = data.draw(st.sampled_from([0, 1]))
    numbers = list(range(base, size + base))
    # Number 0 says that counting starts there, so it must not be the one that is lost.
    lost = set(data.draw(st.lists(st.sampled_from(numbers), max_size=5))) - ({0} if base == 0 else set())
    again = data.draw(st.lists(st.sampled_from(numbers), max_size=5))
    sent = [Receipt("c", number, number == numbers[-1], f"body {number}") for number in numbers]
    arrived = [item for item in [*sent, *(sent[number - base] for number in again)] if item.batch_number not in lost]
    data.draw(st.randoms(use_true_random=False)).shuffle(arrived)
    found = reckon(arrived)
    if not arrived:
        assert found == []
        return
    kept = [number for number in numbers if number not in lost]
    end_seen = numbers[-1] not in lost
    last = numbers[-1] if end_seen else kept[-1]
    assert found[0].received == tuple(kept)
    assert found[0].expected == (size if end_seen else None)
    assert set(found[0].missing) == {number for number in lost if number <= last}
    assert found[0].duplicates == sum(number not in lost for number in again)
    assert found[0].complete == (not lost)


@pytest.mark.parametrize("size", [1, 2, 500])
def test_long_sequences(size: int) -> None:
    found = one(*(("c", number, number == size, str(number)) for number in range(1, size + 1)))
    assert found.complete
    assert found.batches == found.expected == size


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2024-01-01T12:00:00+02:00", "2024-01-01T10:00:00Z"),
        (" 2024-01-01T12:00:00.25 ", "2024-01-01T12:00:00.250000Z"),
        ("20240101120000.0Z", "2024-01-01T12:00:00Z"),
        ("yesterday", None),
        ("", None),
        (None, None),
        ("2024-02-30T00:00:00Z", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("99999-01-01T00:00:00Z", None),
    ],
)
def test_times_of_headers(text: str | None, shown: str | None) -> None:
    assert time_text(time_of(text)) == shown


def test_first_and_last_time() -> None:
    def receipt(number: int, text: str | None, *, fault: bool = False) -> Receipt:
        return Receipt("c", number, False, str(number), fault=fault, time=time_of(text))

    noon = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    found = one(
        receipt(1, "2024-01-01T12:30:00Z"),
        receipt(2, "2024-01-01T14:00:00+02:00"),
        receipt(3, None),
        receipt(4, "soon"),
    )
    assert (found.first_time, found.last_time) == (noon, noon + dt.timedelta(minutes=30))
    ended = one(receipt(1, "2024-01-01T12:00:00Z"), receipt(0, "2024-01-01T13:00:00Z", fault=True))
    assert (ended.first_time, ended.last_time) == (noon, noon + dt.timedelta(hours=1))
    unknown = one(receipt(1, None), receipt(2, "soon"))
    assert (unknown.first_time, unknown.last_time) == (None, None)
