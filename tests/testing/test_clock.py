"""The clock that a test moves."""

from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError
from mtosi_jms.testing import ManualClock, Timer


def test_it_stands_until_it_is_moved() -> None:
    clock = ManualClock(5)
    assert (clock(), clock.now) == (5.0, 5.0)
    clock.advance(0)
    clock.advance(2.5)
    assert (clock(), clock.now, repr(clock)) == (7.5, 7.5, "ManualClock(7.5)")


@pytest.mark.parametrize("seconds", [-1, -0.001, float("nan")])
def test_it_does_not_go_back(seconds: float) -> None:
    clock = ManualClock()
    for move in (lambda: clock.advance(seconds), lambda: clock.call_later(seconds, print)):
        with pytest.raises(ConfigError):
            move()
    assert (clock.now, clock.waiting) == (0.0, 0)


@given(st.lists(st.integers(0, 20)), st.lists(st.integers(0, 9)))
def test_actions_come_in_the_order_of_their_time_each_at_its_own(delays: list[int], steps: list[int]) -> None:
    clock = ManualClock()
    seen: list[tuple[int, int, float]] = []
    for number, delay in enumerate(delays):
        clock.call_later(delay, lambda at=(delay, number): seen.append((*at, clock.now)))  # type: ignore[misc]
    for step in steps:
        clock.advance(step)
    due = sorted((delay, number) for number, delay in enumerate(delays) if steps and delay <= sum(steps))
    assert seen == [(delay, number, float(delay)) for delay, number in due]
    assert clock.waiting == len(delays) - len(due)
    assert clock.now == sum(steps)


def test_an_action_may_ask_for_another() -> None:
    clock = ManualClock()
    seen: list[float] = []

    def beat() -> None:
        seen.append(clock.now)
        clock.call_later(2, beat)

    clock.call_later(2, beat)
    clock.advance(7)
    assert seen == [2, 4, 6]
    assert clock.waiting == 1


def test_an_action_that_moves_the_clock_never_sets_it_back() -> None:
    clock = ManualClock()
    clock.call_later(1, lambda: clock.advance(10))
    clock.advance(2)
    assert clock.now == 11


def test_what_an_action_raises_is_seen_and_the_clock_goes_on_later() -> None:
    clock = ManualClock()
    clock.call_later(1, lambda: 1 / 0)
    clock.call_later(2, lambda: None)
    with pytest.raises(ZeroDivisionError):
        clock.advance(5)
    assert (clock.now, clock.waiting) == (1, 1)
    clock.advance(1)
    assert (clock.now, clock.waiting) == (2, 0)


def test_others_may_look_at_it_while_an_action_runs() -> None:
    """Providers do, with their own locks held: a clock that made them wait would never go on."""
    clock = ManualClock()
    seen: list[float] = []

    def look() -> None:
        thread = threading.Thread(target=lambda: seen.append(clock()))
        thread.start()
        thread.join(60)

    clock.call_later(3, look)
    clock.advance(4)
    assert seen == [3]


def test_a_timer_of_asyncio_is_one_as_well() -> None:
    async def main() -> bool:
        timer: Timer = asyncio.get_running_loop()
        done = asyncio.Event()
        timer.call_later(0, done.set)
        return await done.wait()

    assert asyncio.run(main())
