"""Which message may be handled next, whatever the order in which things happen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError
from mtosi_jms.runtime import Backoff, Health, RuntimeRules, State
from mtosi_jms.runtime._workers import Lanes, Task

KEYS = st.sampled_from(["a", "b", None])


def task(key: Any) -> Task:
    return Task(None, key, 0)  # type: ignore[arg-type]  # lanes do not look at the delivery


@given(keys=st.lists(KEYS, max_size=12), data=st.data())
def test_each_task_is_taken_once_and_those_of_a_key_in_order(keys: list[str | None], data: st.DataObject) -> None:
    """Arrivals, retries, ends and time in any order."""
    lanes, now = Lanes(), 0.0
    coming = [task(key) for key in keys]
    order = {one: number for number, one in enumerate(coming)}
    waiting, running, done, retries = list(coming), [], [], 0
    vain: set[str] = set()  # what changed nothing, and would change nothing again
    while waiting or running or len(lanes):
        steps = {"add": waiting, "finish": running, "retry": running}
        possible = [*(name for name, needs in steps.items() if needs), *sorted({"take", "time"} - vain)]
        assert possible, "what is left can never be taken"
        step = data.draw(st.sampled_from(possible))
        before = len(lanes), len(running)
        if step == "add":
            lanes.add(waiting.pop(0))
        elif step == "take":
            taken = lanes.take()
            if taken is not None:
                assert taken.key is None or taken.key not in {one.key for one in running}
                running.append(taken)
        elif step == "time":
            now += 1
            if lanes.due(now):
                vain.clear()
        else:
            one = running.pop(data.draw(st.integers(0, len(running) - 1)))
            if step == "retry" and retries < 5:
                retries += 1
                lanes.retry(one, now + 1)
            else:
                done.append(one)
                lanes.finish(one)
        vain = vain | {step} if (len(lanes), len(running)) == before else set()
        assert len(lanes) + len(running) + len(waiting) + len(done) == len(coming)
    for key in ("a", "b"):
        own = [order[one] for one in done if one.key == key]
        assert own == sorted(own)


def test_clear_keeps_the_keys_of_running_tasks() -> None:
    lanes = Lanes()
    first, second, other, later = task("a"), task("a"), task("b"), task("c")
    for one in (first, second, other, later):
        lanes.add(one)
    assert lanes.take() is first
    assert lanes.take() is other
    assert lanes.take() is later
    lanes.retry(later, 5.0)
    assert lanes.clear() == [later, second]
    lanes.finish(other)
    again = [task("a"), task("c")]
    for one in again:
        lanes.add(one)
    assert lanes.take() is again[1]
    assert lanes.take() is None, "the first of its key still runs"
    lanes.finish(first)
    assert lanes.take() is again[0]


@given(failures=st.integers(1, 200), initial=st.floats(0, 10), jitter=st.floats(0, 10))
def test_back_off_grows_to_its_maximum(failures: int, initial: float, jitter: float) -> None:
    seconds = Backoff(initial, 60.0, jitter).seconds(failures)
    least = min(initial * 2.0 ** (failures - 1), 60.0)
    assert least <= seconds <= least + jitter


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": 0},
        {"concurrency": True},
        {"in_flight": 0},
        {"max_stuck": 0},
        {"max_stuck": 1.0},
        {"attempts": 1.5},
        {"deadline": 0},
        {"deadline": float("nan")},
        {"drain": -1},
    ],
)
def test_rules_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        RuntimeRules(**wrong)


@pytest.mark.parametrize("wrong", [(-1, 1, 0), (2, 1, 0), (0, 1, -1)])
def test_back_off_out_of_range(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(ConfigError, match="back-off"):
        Backoff(*wrong)


@pytest.mark.parametrize(
    ("changes", "alive"),
    [
        ({}, True),
        ({"state": State.CONNECTING}, False),
        ({"state": State.DRAINING}, True),
        ({"state": State.STUCK}, False),
        ({"state": State.ENDED}, False),
        ({"in_flight": 1}, True),
        ({"in_flight": 1, "now": 131.0}, False),
        ({"backlog": 1, "last_progress": None}, False),
        ({"now": 9_999.0}, True),
    ],
)
def test_is_alive(changes: dict[str, Any], alive: bool) -> None:
    facts = {"state": State.RUNNING, "now": 110.0, "last_progress": 100.0, "in_flight": 0, "backlog": 0}
    counts = {"handled": 5, "parked": 0, "failures": 0, "consecutive_failures": 0, "stuck": 0}
    assert Health(**{**facts, **counts, **changes}).is_alive(30.0) is alive
