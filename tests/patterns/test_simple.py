"""SimpleResponse: every state with every event, and what the caller is told to do (R3, C58, C61)."""

from __future__ import annotations

import pytest

from mtosi_jms.errors import ConfigError, ReplyTimeoutError
from mtosi_jms.patterns import (
    Clock,
    Complete,
    Fail,
    Fault,
    Flag,
    Orphan,
    Release,
    Reply,
    ReplyType,
    SimpleEvent,
    SimpleExchange,
    SimpleState,
    Timeouts,
)
from mtosi_jms.patterns._simple import FINAL, TABLE

ANSWER = Reply(payload="answer")
SECOND = Reply(payload="second")
ERROR = Reply(payload="fault", message_type=ReplyType.ERROR)
ACK = Reply(payload="ack", has_body=False)


def exchange_in(state: SimpleState) -> SimpleExchange[str]:
    exchange: SimpleExchange[str] = SimpleExchange("c-1", started=100.0, expect_ack=True)
    match state:
        case SimpleState.ACKNOWLEDGED:
            exchange.receive(ACK, 101.0)
        case SimpleState.ANSWERED:
            exchange.receive(ANSWER, 101.0)
        case SimpleState.FAULTED:
            exchange.receive(ERROR, 101.0)
        case SimpleState.UNANSWERED:
            exchange.tick(1000.0)
        case SimpleState.ABANDONED:
            exchange.abandon()
    assert exchange.state is state
    return exchange


def trigger(exchange: SimpleExchange[str], event: SimpleEvent) -> tuple[object, ...]:
    match event:
        case SimpleEvent.ACK:
            return exchange.receive(ACK, 102.0)
        case SimpleEvent.RESPONSE:
            return exchange.receive(SECOND, 102.0)
        case SimpleEvent.ERROR:
            return exchange.receive(ERROR, 102.0)
        case SimpleEvent.TIMEOUT:
            return exchange.tick(5000.0)
        case SimpleEvent.EXHAUSTED:
            return exchange.exhaust()
        case SimpleEvent.ABANDON:
            exchange.abandon()
            return ()


@pytest.mark.parametrize("state", SimpleState)
@pytest.mark.parametrize("event", SimpleEvent)
def test_every_state_with_every_event(state: SimpleState, event: SimpleEvent) -> None:
    exchange = exchange_in(state)
    actions = trigger(exchange, event)
    assert exchange.state is TABLE[state][event]
    assert exchange.finished is (exchange.state in FINAL)
    kinds = [type(action) for action in actions]
    is_reply = event in (SimpleEvent.ACK, SimpleEvent.RESPONSE, SimpleEvent.ERROR)
    if state in FINAL:
        assert kinds == ([Orphan] if is_reply else [])
        assert exchange.deadline is None
    else:
        expected = {
            SimpleEvent.ACK: [Flag] if state is SimpleState.ACKNOWLEDGED else [],
            SimpleEvent.RESPONSE: [Release, Complete],
            SimpleEvent.ERROR: [Fault],
            SimpleEvent.TIMEOUT: [Fail],
            SimpleEvent.EXHAUSTED: [Fail],
            SimpleEvent.ABANDON: [],
        }
        assert kinds == expected[event]


def test_the_table_is_total_and_final_states_are_never_left() -> None:
    assert set(TABLE) == set(SimpleState)
    for state, row in TABLE.items():
        assert set(row) == set(SimpleEvent)
        if state in FINAL:
            assert set(row.values()) == {state}


@pytest.mark.obligation("C58")
def test_a_second_reply_is_an_orphan() -> None:
    exchange: SimpleExchange[str] = SimpleExchange("c-1", started=0.0)
    assert exchange.receive(ANSWER, 1.0) == (Release("answer", None), Complete())
    assert exchange.receive(SECOND, 2.0) == (Orphan(SECOND),)
    assert exchange.receive(ERROR, 3.0) == (Orphan(ERROR),)
    assert exchange.state is SimpleState.ANSWERED


@pytest.mark.obligation("C58")
def test_an_answer_with_batch_fields_is_taken_and_flagged_only_when_it_announces_more() -> None:
    exchange: SimpleExchange[str] = SimpleExchange("c", started=0.0)
    assert exchange.receive(Reply(payload="x", batch_number=1, end_of_reply=True), 1.0) == (Release("x", 1), Complete())
    exchange = SimpleExchange("c", started=0.0)
    flag, release, complete = exchange.receive(Reply(payload="x", batch_number=1, end_of_reply=False), 1.0)
    assert isinstance(flag, Flag)
    assert flag.rule == "C58"
    assert (release, complete) == (Release("x", 1), Complete())


@pytest.mark.obligation("C61")
def test_a_reply_without_body_is_the_answer_unless_an_acknowledgement_is_expected() -> None:
    exchange: SimpleExchange[str] = SimpleExchange("c", started=0.0)
    assert exchange.receive(ACK, 1.0) == (Release("ack", None), Complete())


@pytest.mark.parametrize(
    ("timeouts", "fires", "clock"),
    [
        (Timeouts(first_reply=5, total=9), 5.0, Clock.FIRST_REPLY),
        (Timeouts(first_reply=9, total=5), 5.0, Clock.TOTAL),
        (Timeouts(first_reply=None, total=5), 5.0, Clock.TOTAL),
        (Timeouts(first_reply=5, total=5), 5.0, Clock.TOTAL),
    ],
)
def test_the_clock_that_fires_first_is_named(timeouts: Timeouts, fires: float, clock: Clock) -> None:
    exchange: SimpleExchange[str] = SimpleExchange("c-9", started=10.0, timeouts=timeouts)
    assert exchange.deadline == (10.0 + fires, clock)
    assert exchange.tick(10.0 + fires - 0.001) == ()
    (fail,) = exchange.tick(10.0 + fires)
    assert isinstance(fail, Fail)
    assert isinstance(fail.error, ReplyTimeoutError)
    assert isinstance(fail.error, TimeoutError)
    assert (fail.error.clock, fail.error.correlation_id) == (clock, "c-9")
    assert f"within {fires:g} s, {clock.value} clock" in str(fail.error)


def test_without_limits_it_waits_for_ever() -> None:
    exchange: SimpleExchange[str] = SimpleExchange("c", started=0.0, timeouts=Timeouts(first_reply=None, gap=None))
    assert exchange.deadline is None
    assert exchange.tick(1e12) == ()


@pytest.mark.obligation("C61")
def test_after_an_acknowledgement_the_gap_clock_runs() -> None:
    timeouts = Timeouts(first_reply=5, gap=7)
    exchange: SimpleExchange[str] = SimpleExchange("c", started=0.0, timeouts=timeouts, expect_ack=True)
    assert exchange.receive(ACK, 4.0) == ()
    assert exchange.deadline == (11.0, Clock.GAP)
    assert exchange.receive(ANSWER, 10.0) == (Release("answer", None), Complete())


@pytest.mark.parametrize("name", ["first_reply", "gap", "total", "grace"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_must_be_positive(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        Timeouts(**{name: value})
