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


A, B, C, FAULT = "a", "b", "c", Receipt("c", None, None, "f", fault=True)
UNPLACED: dict[str, Any] = {"complete": False, "conflicts": (None,)}


@pytest.mark.obligation("BAT1", "BAT6", "BAT7", "BAT8", "BAT9")
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([(3, True, C), (1, False, A), (2, False, B)], {"batches": 3, "expected": 3, "complete": True, "missing": ()}),
        ([(5, True, A), (2, False, B)], {"expected": 5, "missing": (1, 3, 4)}),
        ([(1, False, A), (3, None, C)], {"expected": None, "missing": (2,), "complete": False}),
        ([(0, False, A), (1, False, B), (2, True, C)], {"expected": 3, "missing": (), "complete": True}),
        ([(1, True, A)] * 3, {"batches": 1, "duplicates": 2, "conflicts": (), "complete": True}),
        (
            [(1, False, A), (1, False, B), (2, True, C)],
            {"conflicts": (1,), "duplicates": 0, "batches": 2, "complete": False},
        ),
        ([(1, False, A), (2, True, B), (2, False, B)], {"conflicts": (2,), "complete": False}),
        (
            [(1, False, A), (2, True, B), (4, False, C)],
            {"expected": 2, "missing": (), "unexpected": (4,), "complete": False},
        ),
        ([(1, False, A), (2, True, B), (3, True, C)], {"unexpected": (3,), "complete": False}),
        ([Receipt("c", 1, True, A, copies=4)], {"duplicates": 3}),
        ([(None, None, A)], {"batches": 1, "expected": 1, "received": (), "complete": True}),
        ([(1, True, A), FAULT], {"faults": 1, "batches": 1, "complete": False}),
        (
            [(1, False, A), (4_294_967_295, True, B)],
            {"missing_count": 4_294_967_293, "missing": tuple(range(2, 2 + LISTED))},
        ),
        *(
            (facts, UNPLACED)
            for facts in (
                [(None, None, A), (None, None, B)],
                [(None, True, A), (None, False, B)],
                [(None, False, A)],
                [(None, False, A), (None, True, A)],
                [(1, True, A), (None, None, B)],
                [(1, False, A), (None, False, C), (2, True, B)],
            )
        ),
    ],
)
def test_what_the_batches_of_a_reply_say(facts: list[Any], expected: dict[str, Any]) -> None:
    """By (number, end, digest), or receipts of their own; all of one correlationId."""
    found = one(*(fact if isinstance(fact, Receipt) else ("c", *fact) for fact in facts))
    assert {name: getattr(found, name) for name in expected} == expected


def test_correlation_id_is_compared_as_it_came() -> None:
    found = reckon(receipts_of(("7", 1, True, "a"), (" 7", 1, True, "a"), ("7 ", 1, True, "a")))
    assert [sequence.correlation_id for sequence in found] == [" 7", "7", "7 "]
    assert sum(sequence.duplicates for sequence in found) == 0


def test_without_correlation_id_each_is_its_own() -> None:
    found = reckon(receipts_of((None, 1, False, "a"), (None, 1, False, "a"), Receipt(None, None, None, "b", "one.xml")))
    assert [sequence.complete for sequence in found] == [False, False, True]
    assert found[2].source == "one.xml"


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


@pytest.mark.parametrize("first_batch", [0, 1, "auto"])
def test_a_response_without_a_number_lacks_none(first_batch: Any) -> None:
    [found] = reckon([Receipt("a", None, None, "x")], first_batch)
    assert (found.complete, found.missing, found.missing_count, found.expected) == (True, (), 0, 1)


def test_faults_alone_make_no_sequence() -> None:
    assert reckon([Receipt("c", None, None, "f", fault=True)]) == []


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
