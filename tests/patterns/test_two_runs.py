"""A supplier that dies, comes back and answers again: one of its answers as it was, or an error; never a mixture (P32).

Whatever data it has the second time, wherever it died, whatever was lost on the way, and in whatever order the rest
comes: replies that say which run of the supplier they are of are never joined to something that no run has said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ExchangeError, IncompleteBatchError, ProtocolError
from mtosi_jms.patterns import BatchAssembler, BatchRules, Complete, Fail, Release, Reply, cut_batches

World = Sequence[int]


def answer(world: World, size: int, run: str) -> list[Reply[list[int]]]:
    """All the batches with which a supplier that has this data answers."""
    return [
        Reply(
            payload=batch.objects,
            batch_number=batch.position.number,
            end_of_reply=batch.position.end_of_reply,
            body_digest=repr(batch.objects),
            run=run,
        )
        for batch in cut_batches(world, size)
    ]


def heard(replies: Iterable[Reply[list[int]]], rules: BatchRules | None = None) -> list[int] | ExchangeError:
    """The objects of a whole reply, or the error in which it ends."""
    machine: BatchAssembler[list[int]] = BatchAssembler("c", started=0.0, rules=rules)
    actions = [action for reply in replies for action in machine.receive(reply, 0.0)]
    actions += machine.tick(1e9)
    failed = [action.error for action in actions if isinstance(action, Fail)]
    if failed:
        assert not any(isinstance(action, Complete) for action in actions)
        return failed[0]
    assert any(isinstance(action, Complete) for action in actions)
    return [item for action in actions if isinstance(action, Release) for item in action.payload]


WORLDS = st.lists(st.integers(0, 9), max_size=9)
"""Few objects of few kinds: the same batches come about in different answers."""


@given(WORLDS, WORLDS, st.integers(1, 4))
@pytest.mark.parametrize("runs", [("one", "two"), ("", "")], ids=["told apart", "not told apart"])
def test_a_restart_at_every_point_of_the_sequence(
    runs: tuple[str, str], before: list[int], after: list[int], size: int
) -> None:
    """In the order in which a queue hands them on; then not even a word of which run they are of is needed."""
    first, second = answer(before, size, runs[0]), answer(after, size, runs[1])
    for died in range(len(first) + 1):
        result = heard([*first[:died], *second])
        assert isinstance(result, ProtocolError) or result == (before if died == len(first) else after)
        if before == after:
            assert result == after


@given(st.lists(WORLDS, min_size=1, max_size=3), st.integers(1, 3), st.data())
def test_whatever_is_lost_and_in_whatever_order_the_rest_comes(
    worlds: list[list[int]], size: int, data: st.DataObject
) -> None:
    answers = [answer(world, size, f"run {place}") for place, world in enumerate(worlds)]
    sent = [reply for replies in answers for reply in replies]
    result = heard(data.draw(st.lists(st.sampled_from(sent), max_size=20) | st.permutations(sent)))
    assert isinstance(result, ExchangeError) or result in worlds


@given(WORLDS, st.integers(1, 3), st.data())
def test_a_second_answer_from_the_same_data_does_no_harm(world: list[int], size: int, data: st.DataObject) -> None:
    """As soon as one of the two is there, whatever is lost of the other."""
    first, second = answer(world, size, "one"), answer(world, size, "two")
    kept = data.draw(st.lists(st.sampled_from(first), unique_by=id))
    assert heard(data.draw(st.permutations([*kept, *second]))) == world


def test_a_hole_of_the_first_run_is_not_filled_from_the_second() -> None:
    """The case that numbers and conflicts alone do not tell: each number is there, and none of them twice."""
    first, second = answer([1, 2, 3, 4], 1, "one"), answer([1, 2, 9, 3, 4], 1, "two")
    joined = [first[0], first[1], second[2], first[3]]
    error = heard(joined)
    assert isinstance(error, IncompleteBatchError)
    assert error.missing == (1, 2, 4)
    assert isinstance(heard([*joined, *second[3:]]), ProtocolError)
    assert heard([*joined, *first[2:]], BatchRules(on_conflict="keep_first")) == [1, 2, 9, 4]


def test_what_proves_a_run_whole_restarts_the_gap() -> None:
    machine: BatchAssembler[list[int]] = BatchAssembler("c", started=0.0)
    first, second = answer([1, 2, 3], 1, "one"), answer([1, 2, 3], 1, "two")
    for at, reply in enumerate([first[0], first[2], second[1], second[0], second[0]]):
        machine.receive(reply, float(at))
    assert (machine.deadline or (0,))[0] == 3.0 + 60.0
    assert machine.missing == (3,)
    assert machine.receive(second[2], 50.0)[-1] == Complete()
