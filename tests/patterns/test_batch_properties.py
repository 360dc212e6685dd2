"""What holds of the batch assembler for any order, any duplicates and any losses (P32)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import IncompleteBatchError, ProtocolError, ReplyTimeoutError
from mtosi_jms.patterns import (
    Action,
    BatchAssembler,
    BatchRules,
    BatchState,
    Complete,
    Conflict,
    Duplicate,
    Fail,
    Fault,
    Orphan,
    Release,
    Reply,
    ReplyType,
    Stray,
)


def batch(number: int, last: int, body: str = "") -> Reply[str]:
    text = body or f"b{number}"
    return Reply(payload=text, batch_number=number, end_of_reply=number == last, body_digest=text)


@st.composite
def deliveries(draw: st.DrawFn, bases: tuple[int, ...] = (0, 1)) -> tuple[int, int, list[int]]:
    """(base, last, numbers in order of arrival): some lost, some more than once."""
    base = draw(st.sampled_from(bases))
    last = base + draw(st.integers(0, 24))
    copies = [draw(st.sampled_from([1, 1, 1, 1, 0, 2, 3])) for _ in range(base, last + 1)]
    numbers = [number for number, count in zip(range(base, last + 1), copies, strict=True) for _ in range(count)]
    return base, last, draw(st.permutations(numbers))


def prefix(base: int, arrived: set[int]) -> list[int]:
    """What may be handed out when these have arrived."""
    top = base
    while top in arrived:
        top += 1
    return list(range(base, top))


def numbers_of(actions: list[Action[str]]) -> list[int | None]:
    return [action.number for action in actions if isinstance(action, Release)]


@given(deliveries())
def test_released_is_always_the_longest_run_in_order(delivery: tuple[int, int, list[int]]) -> None:
    base, last, order = delivery
    machine: BatchAssembler[str] = BatchAssembler("c", started=0.0, rules=BatchRules(first=base))  # type: ignore[arg-type]
    everything = set(range(base, last + 1))
    out: list[int | None] = []
    arrived: set[int] = set()
    for number in order:
        complete_before = machine.state is BatchState.COMPLETE
        actions = list(machine.receive(batch(number, last), 0.0))
        if complete_before:
            assert [type(action) for action in actions] == [Orphan]
        elif number in arrived:
            assert [type(action) for action in actions] == [Duplicate]
        arrived.add(number)
        out += numbers_of(actions)
        assert out == prefix(base, arrived)
        assert (machine.state is BatchState.COMPLETE) == (arrived == everything)
        assert any(isinstance(action, Complete) for action in actions) == (
            arrived == everything and not complete_before
        )
        assert machine.held == (0 if machine.finished else len(arrived) - len(out))


@given(deliveries(), st.booleans())
def test_the_missing_numbers_are_exact(delivery: tuple[int, int, list[int]], by_clock: bool) -> None:
    base, last, order = delivery
    machine: BatchAssembler[str] = BatchAssembler("c", started=0.0, rules=BatchRules(first=base))  # type: ignore[arg-type]
    for number in order:
        machine.receive(batch(number, last), 0.0)
    arrived = set(order)
    actions = machine.tick(1e9) if by_clock else machine.exhaust()
    if arrived == set(range(base, last + 1)):
        assert actions == ()
        return
    (fail,) = actions
    assert isinstance(fail, Fail)
    if not arrived:
        assert isinstance(fail.error, ReplyTimeoutError)
        return
    assert isinstance(fail.error, IncompleteBatchError)
    assert fail.error.end_seen == (last in arrived)
    assert fail.error.missing == tuple(n for n in range(base, max(arrived) + 1) if n not in arrived)
    kept = arrived - set(prefix(base, arrived))
    assert fail.error.batches == {n: f"b{n}" for n in sorted(kept)}
    assert bool(fail.error.clock) == by_clock


@given(deliveries())
def test_auto_finds_the_base_or_says_that_it_cannot(delivery: tuple[int, int, list[int]]) -> None:
    _, last, order = delivery
    machine: BatchAssembler[str] = BatchAssembler("c", started=0.0)
    actions = [action for number in order for action in machine.receive(batch(number, last), 0.0)]
    out = numbers_of(actions)
    zero_overtaken = 0 in order and 1 in order and order.index(1) < order.index(0)
    if not zero_overtaken:
        known = 0 if 0 in order else 1
        assert out == prefix(known, set(order))
    elif machine.state is BatchState.COMPLETE:
        assert Orphan(batch(0, last)) in actions
    else:
        assert machine.state is BatchState.BROKEN
        assert any(isinstance(a, Fail) and isinstance(a.error, ProtocolError) for a in actions)
    assert out == sorted(set(out), key=lambda n: n or 0)


@pytest.mark.obligation("C59")
@given(deliveries(bases=(1,)), st.data())
def test_an_error_ends_it_wherever_it_comes(delivery: tuple[int, int, list[int]], data: st.DataObject) -> None:
    _, last, order = delivery
    at = data.draw(st.integers(0, len(order)))
    machine: BatchAssembler[str] = BatchAssembler("c", started=0.0)
    before = [action for number in order[:at] for action in machine.receive(batch(number, last), 0.0)]
    error: Reply[str] = Reply(payload="fault", message_type=ReplyType.ERROR)
    complete = machine.state is BatchState.COMPLETE
    (said,) = machine.receive(error, 0.0)
    after = [action for number in order[at:] for action in machine.receive(batch(number, last), 0.0)]
    assert all(isinstance(action, Orphan) for action in after)
    if complete:
        assert said == Orphan(error)
        return
    arrived = set(order[:at])
    kept = arrived - set(prefix(1, arrived))
    assert numbers_of(before) == prefix(1, arrived)
    assert said == Fault("fault", {n: f"b{n}" for n in sorted(kept)})


@given(deliveries(bases=(1,)), st.lists(st.tuples(st.integers(1, 25), st.integers(0, 60)), max_size=6))
def test_conflicts_change_nothing_where_the_first_batch_is_kept(
    delivery: tuple[int, int, list[int]], inserted: list[tuple[int, int]]
) -> None:
    _, last, order = delivery
    replies = [batch(number, last) for number in order]
    for number, at in inserted:
        first = next((i for i, reply in enumerate(replies) if reply.batch_number == number), None)
        if first is not None:
            replies.insert(max(at % (len(replies) + 1), first + 1), batch(number, last, body="other"))
    machine: BatchAssembler[str] = BatchAssembler("c", started=0.0, rules=BatchRules(on_conflict="keep_first"))
    actions = [action for reply in replies for action in machine.receive(reply, 0.0)]
    assert numbers_of(actions) == prefix(1, set(order))
    assert all(a.payload == f"b{a.number}" for a in actions if isinstance(a, Release))
    assert machine.counts.conflicts == sum(isinstance(a, Conflict) for a in actions)


REPLIES = st.builds(
    Reply[str],
    payload=st.sampled_from(["x", "y"]),
    message_type=st.sampled_from([ReplyType.RESPONSE] * 9 + [ReplyType.ERROR]),
    batch_number=st.none() | st.integers(-2, 8) | st.sampled_from([2**31, 2**32 - 1]),
    end_of_reply=st.sampled_from([None, False, False, False, True]),
    body_digest=st.sampled_from(["", "x", "y"]),
    has_body=st.booleans(),
    run=st.sampled_from(["", "", "one", "two"]),
    object_count=st.none() | st.integers(0, 9),
)


@given(
    st.lists(st.tuples(REPLIES, st.floats(0, 30)), max_size=30),
    st.fixed_dictionaries(
        {
            "first": st.sampled_from(["auto", 0, 1]),
            "strict": st.booleans(),
            "on_conflict": st.sampled_from(["error", "keep_first"]),
            "expect_ack": st.booleans(),
            "window": st.integers(1, 10),
            "remember": st.integers(0, 4),
            "strict_size": st.none() | st.integers(0, 9),
        }
    ),
)
def test_whatever_comes_every_reply_is_accounted_for(
    steps: list[tuple[Reply[str], float]], rules: dict[str, Any]
) -> None:
    machine: BatchAssembler[str] = BatchAssembler("c", started=0.0, rules=BatchRules(**rules))
    now, actions = 0.0, list[Action[str]]()
    for reply, pause in steps:
        now += pause
        actions += machine.receive(reply, now)
    actions += machine.exhaust()
    out = [number for number in numbers_of(actions) if number is not None]
    assert out == list(range(out[0], out[0] + len(out))) if out else True
    endings = [action for action in actions if isinstance(action, Complete | Fail | Fault)]
    assert len(endings) == 1
    (ending,) = endings
    held = {} if isinstance(ending, Complete) else ending.held
    aside = [a for a in actions if isinstance(a, Duplicate | Conflict | Stray | Orphan)]
    acks = len(steps) - len(aside) - len(numbers_of(actions)) - len(held) - isinstance(ending, Fault)
    assert acks == 0 if not rules["expect_ack"] else acks >= 0
    assert machine.held == 0
