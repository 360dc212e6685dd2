"""The public fault injectors: pure, exact, and never without effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError, IncompleteBatchError
from mtosi_jms.patterns import BatchAssembler, Fail, Release, Reply
from mtosi_jms.testing import duplicate, gap, reorder, truncate


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Something with a body."""

    body: bytes
    number: int = 0


LETTERS = list("abcdef")


@pytest.mark.parametrize(
    ("at", "left"),
    [
        (0, "bcdef"),
        (-1, "abcde"),
        ([1, 3], "acef"),
        ({0, -6}, "bcdef"),
        (range(6), ""),
        (lambda letter: letter in "ace", "bdf"),
    ],
)
def test_gap(at: Any, left: str) -> None:
    assert gap(LETTERS, at) == list(left)
    assert list("abcdef") == LETTERS


@pytest.mark.parametrize(
    ("at", "options", "out"),
    [
        (0, {}, "aabcdef"),
        (-1, {}, "abcdeff"),
        ([0, 2], {"copies": 2}, "aaabcccdef"),
        (0, {"distance": 2}, "abcadef"),
        (4, {"distance": 9}, "abcdefe"),
        ([0, 1], {"distance": 2}, "abcadbef"),
        (lambda letter: letter == "c", {"distance": 1, "copies": 2}, "abcdccef"),
    ],
)
def test_duplicate(at: Any, options: dict[str, int], out: str) -> None:
    assert duplicate(LETTERS, at, **options) == list(out)


def test_a_duplicate_is_the_same_object() -> None:
    messages = [Message(body=b"x")]
    first, second = duplicate(messages, 0)
    assert first is second is messages[0]


@pytest.mark.parametrize(
    ("keep", "left"), [(0.5, b"<a>\xc3"), (0, b""), (0.0, b""), (3, b"<a>"), (-1, b"<a>\xc3\xa9</"), (4, b"<a>\xc3")]
)
def test_truncate(keep: float, left: bytes) -> None:
    body = "<a>é</a".encode()
    messages = [b"first", body]
    assert truncate(messages, 1, keep=keep) == [b"first", left]
    assert truncate([Message(body=body, number=7)], 0, keep=keep) == [Message(body=left, number=7)]
    assert messages == [b"first", body]


@pytest.mark.parametrize("keep", [8, 100, 1.0, 1.5, -0.5])
def test_truncate_must_cut(keep: float) -> None:
    with pytest.raises(ConfigError, match="does not cut"):
        truncate([b"12345678"], 0, keep=keep)


@pytest.mark.parametrize("message", ["text", 7, Message, None])
def test_truncate_takes_only_what_has_bytes(message: object) -> None:
    with pytest.raises(ConfigError, match="bytes"):
        truncate([message], 0)


INJECTORS: list[Callable[[list[bytes], Any], list[bytes]]] = [gap, duplicate, truncate]


@pytest.mark.parametrize("inject", INJECTORS)
@pytest.mark.parametrize("at", [2, -3, [0, 5], [], lambda message: False])
def test_a_fault_that_would_not_happen_is_refused(inject: Callable[..., Any], at: Any) -> None:
    with pytest.raises(ConfigError):
        inject([b"one", b"two"], at)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: duplicate("ab", 0, copies=0),
        lambda: duplicate("ab", 0, distance=-1),
        lambda: reorder("a", 1),
        lambda: reorder("ab", 1, span=1),
        lambda: gap([], 0),
    ],
)
def test_wrong_arguments(wrong: Callable[[], object]) -> None:
    with pytest.raises(ConfigError):
        wrong()


@given(st.integers(2, 40), st.integers(), st.none() | st.integers(2, 10))
def test_reorder_keeps_all_is_repeatable_and_never_the_same_order(count: int, seed: int, span: int | None) -> None:
    given_order = list(range(count))
    out = reorder(given_order, seed, span=span)
    assert sorted(out) == given_order
    assert out != given_order
    assert out == reorder(iter(given_order), seed, span=span)
    if span is not None:
        assert all(later - earlier < span for at, later in enumerate(out) for earlier in out[at:] if later > earlier)


@given(st.lists(st.integers(), min_size=1, max_size=20), st.data())
def test_gap_and_duplicate_change_exactly_what_was_chosen(messages: list[int], data: st.DataObject) -> None:
    at = data.draw(st.sets(st.integers(0, len(messages) - 1), min_size=1))
    copies, distance = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 5))
    left = gap(messages, at)
    assert left == [message for position, message in enumerate(messages) if position not in at]
    more = duplicate(messages, at, copies=copies, distance=distance)
    extra = Counter(messages[position] for position in at for _ in range(copies))
    assert Counter(more) == Counter(messages) + extra


def test_injectors_take_any_iterable() -> None:
    def stream() -> Iterator[bytes]:
        yield from (b"one", b"two")

    assert gap(stream(), 0) == [b"two"]
    assert truncate(stream(), 0, keep=1) == [b"o", b"two"]


def test_together_they_make_the_faults_that_the_assembler_reports() -> None:
    replies = [Reply(payload=n, batch_number=n, end_of_reply=n == 9, body_digest=f"{n}") for n in range(1, 10)]
    faulty = reorder(duplicate(gap(replies, 3), 0), seed=7)
    machine: BatchAssembler[int] = BatchAssembler("c", started=0.0)
    actions = [action for reply in faulty for action in machine.receive(reply, 0.0)]
    assert [action.number for action in actions if isinstance(action, Release)] == [1, 2, 3]
    assert machine.counts.duplicates == 1
    (fail,) = machine.tick(1e6)
    assert isinstance(fail, Fail)
    assert isinstance(fail.error, IncompleteBatchError)
    assert fail.error.missing == (4,)
