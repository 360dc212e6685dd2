"""Messages that come later: behind others, or when the clock of the test says so. Nothing here sleeps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError, IllegalStateError, IncompleteBatchError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.patterns import Timeouts
from mtosi_jms.simulator import ManagedElementEms, Network
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import Late, ManualClock, delay, exchange, gap, late, truncate

EMS = ManagedElementEms(Network(elements=4))
LETTERS = list("abcdef")


def elements(batch: Any) -> list[str]:
    return [one.name.rdn[-1].value for one in batch.me_list.me]


@pytest.mark.parametrize(
    ("at", "behind", "out"),
    [
        (0, 1, "bacdef"),
        (0, 3, "bcdaef"),
        (-2, 9, "abcdfe"),
        ([0, 1], 1, "cabdef"),
        ([0, 2], 1, "badcef"),
        ([1, 5], 2, "acdbef"),
        (lambda letter: letter in "ab", 2, "cdabef"),
    ],
)
def test_delay(at: Any, behind: int, out: str) -> None:
    assert delay(LETTERS, at, behind=behind) == list(out)
    assert list("abcdef") == LETTERS


@pytest.mark.parametrize(
    ("at", "behind"), [(-1, 1), ([4, 5], 3), (range(6), 1), (0, 0), (0, -1), (6, 1), ([], 1), (lambda _: False, 1)]
)
def test_a_delay_that_would_not_happen_is_refused(at: Any, behind: int) -> None:
    with pytest.raises(ConfigError):
        delay(LETTERS, at, behind=behind)


@given(st.integers(2, 20), st.data(), st.integers(1, 5))
def test_each_is_overtaken_by_so_many_and_nothing_else_moves(count: int, data: st.DataObject, behind: int) -> None:
    at = data.draw(st.sets(st.integers(0, count - 2), min_size=1))
    others = [position for position in range(count) if position not in at]
    assume(others and max(others) > min(at))
    out = delay(range(count), at, behind=behind)
    assert sorted(out) == list(range(count))
    assert [message for message in out if message not in at] == others
    assert [message for message in out if message in at] == sorted(at)
    for message in at:
        overtaking = [other for other in out[: out.index(message)] if other > message and other not in at]
        assert len(overtaking) == min(behind, len([other for other in others if other > message]))


def test_late_messages_are_marked() -> None:
    assert late("abc", [0, 2], seconds=5) == [Late("a", 5), "b", Late("c", 5)]
    assert late(gap("abc", 1), -1, seconds=0.5) == ["a", Late("c", 0.5)]


@pytest.mark.parametrize(("at", "seconds"), [(0, 0), (0, -1), (0, float("nan")), (3, 1), ([], 1)])
def test_what_would_not_be_late_is_refused(at: Any, seconds: float) -> None:
    with pytest.raises(ConfigError):
        late("abc", at, seconds=seconds)


def test_late_comes_last() -> None:
    with pytest.raises(ConfigError, match="bytes"):
        truncate(late([b"one", b"two"], 0, seconds=1), 0)


def test_a_late_reply_comes_when_the_clock_says_so() -> None:
    clock = ManualClock()
    with exchange([EMS], tamper=lambda replies: late(replies, at=1, seconds=30), timer=clock) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
        assert elements(next(batches)) == ["NE-1", "NE-2"]
        assert clock.waiting == 1
        clock.advance(29)
        assert (clock.waiting, pair.provider.held()) == (1, 0)
        clock.advance(1)
        assert [elements(batch) for batch in batches] == [["NE-3", "NE-4"]]


def test_a_reply_that_is_too_late_is_missing_and_then_an_orphan() -> None:
    clock = ManualClock()

    def tamper(replies: list[JmsMessage]) -> Any:
        return late(replies, at=0, seconds=30) if len(replies) > 1 else replies

    with exchange([EMS], tamper=tamper, timer=clock, timeouts=Timeouts(gap=0.02)) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        with pytest.raises(IncompleteBatchError) as caught:
            list(stub.get_all_managed_elements.batches(batch_size=2))
        assert caught.value.missing == (1,)
        clock.advance(30)
        assert pair.provider.held() == 1
        assert len(list(stub.get_all_managed_elements.batches(batch_size=9))) == 1
        assert pair.requestor.orphans == 1


def test_what_is_late_when_all_is_over_is_never_sent() -> None:
    clock = ManualClock()
    with exchange([EMS], tamper=lambda replies: late(replies, at=1, seconds=30), timer=clock) as pair:
        next(pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2))
    clock.advance(60)
    assert clock.waiting == 0


def test_replies_by_hand_may_be_late_too() -> None:
    clock = ManualClock()
    with exchange(timer=clock) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
        replies = pair.scripted.take().replies([EMS])
        pair.scripted.send(late(replies, at=[0, 1], seconds=1))
        assert pair.provider.held() == 0
        clock.advance(1)
        assert [elements(batch) for batch in batches] == [["NE-1", "NE-2"], ["NE-3", "NE-4"]]


def test_late_without_a_timer_and_messages_to_nowhere() -> None:
    with exchange(timer=None) as pair:
        message = JmsMessage(body=b"", destination=Queue("REQUESTOR.OS"))
        with pytest.raises(ConfigError, match="timer"):
            pair.scripted.send([message, Late(message, 1)])
        assert pair.provider.held() == 0
        with pytest.raises(IllegalStateError, match="without destination"):
            pair.scripted.send([Late(JmsMessage(body=b""), 1)])
