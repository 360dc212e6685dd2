"""Fault injectors: gap, duplicate, reorder, delay, late, truncate.

They are pure functions: messages go in in order of sending, a new list comes out, the messages themselves stay as they
are. Messages are anything, replies and notifications alike; only `truncate` looks into them, and takes bytes or a
dataclass with a `body` of bytes such as `JmsMessage`. Injectors can be nested, `late` outermost:

    reorder(duplicate(gap(messages, at=3), at=0), seed=7)

An injector that would change nothing raises a ConfigError, as does an `at` that chooses no message or a position that
is not there: a test must not pass because its fault never happened.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from mtosi_jms.errors import ConfigError

M = TypeVar("M")

Chosen: TypeAlias = int | Iterable[int] | Callable[[Any], bool]
"""Which messages: a position (from 0; negative: from the end), several positions, or a predicate of the message."""


@dataclass(frozen=True, slots=True)
class Late(Generic[M]):
    """A message that is delivered later. `seconds`: how much later than the others, by the timer of whoever
    delivers."""

    message: M
    seconds: float


def gap(messages: Iterable[M], at: Chosen) -> list[M]:
    """Lose the messages that `at` chooses."""
    given = list(messages)
    lost = _positions(given, at)
    return [message for position, message in enumerate(given) if position not in lost]


def duplicate(messages: Iterable[M], at: Chosen, *, copies: int = 1, distance: int = 0) -> list[M]:
    """Deliver messages more than once; the copies are the same objects.

    Args:
        at: the messages that come again.
        copies: how many times each comes again.
        distance: how many other messages of the original order come between a message and its copies; at the end of
            the list there may be fewer.

    Raises:
        ConfigError: nothing would change; `copies` below 1 or `distance` below 0.
    """
    if copies < 1 or distance < 0:
        raise ConfigError(f"copies must be at least 1 and distance at least 0, not {copies} and {distance}")
    given = list(messages)
    again = _positions(given, at)
    slots: list[list[M]] = [[message] for message in given]
    for position in sorted(again):
        slots[min(position + distance, len(given) - 1)] += [given[position]] * copies
    return [message for slot in slots for message in slot]


def reorder(messages: Iterable[M], seed: int, *, span: int | None = None) -> list[M]:
    """Deliver messages in another order, the same for the same seed and number of messages; never the order given.
    `seed`: of the shuffle. `span`: no message is overtaken by one that was sent `span` or more positions later; None:
    any order. Raises ConfigError: fewer than two messages, or a `span` below 2."""
    given = list(messages)
    if len(given) < 2 or (span is not None and span < 2):
        raise ConfigError("reorder needs at least two messages, and a span of at least 2")
    rng = random.Random(seed)
    reach = len(given) if span is None else span
    order = sorted(range(len(given)), key=lambda position: position + rng.random() * reach)
    if span is None:
        rng.shuffle(order)
    if order == sorted(order):
        order[0], order[1] = order[1], order[0]
    return [given[position] for position in order]


def delay(messages: Iterable[M], at: Chosen, *, behind: int = 1) -> list[M]:
    """Deliver messages later: others that were sent after them overtake them. `at`: the messages that are delayed; they
    keep their order among themselves. `behind`: how many messages that are not delayed overtake each of them; at the
    end of the list there may be fewer. Raises ConfigError: nothing would change, since nothing follows the chosen
    messages; `behind` is below 1."""
    if behind < 1:
        raise ConfigError(f"behind must be at least 1, not {behind}")
    given = list(messages)
    delayed = _positions(given, at)
    others = [position for position in range(len(given)) if position not in delayed]
    slots: dict[int, list[int]] = {}
    for position in sorted(delayed):
        following = [other for other in others if other > position]
        slots.setdefault(following[:behind][-1] if following else len(given), []).append(position)
    order = [place for other in others for place in (other, *slots.get(other, ()))] + slots.get(len(given), [])
    if order == sorted(order):
        raise ConfigError("nothing follows the chosen messages: the delay would change nothing")
    return [given[position] for position in order]


def late(messages: Iterable[M], at: Chosen, *, seconds: float) -> list[M | Late[M]]:
    """Deliver messages when some time has passed, by a clock that the test moves.

    Whoever delivers needs a timer, `exchange(tamper=..., timer=ManualClock())` for one, and nothing sleeps:
    `ManualClock.advance` delivers what is due.

    Args:
        at: the messages that are late.
        seconds: how late.

    Returns:
        The messages in their order, the late ones marked.

    Raises:
        ConfigError: nothing would change; `seconds` is not above 0.
    """
    if not seconds > 0:
        raise ConfigError(f"seconds must be above 0, not {seconds}")
    given = list(messages)
    chosen = _positions(given, at)
    return [Late(message, seconds) if position in chosen else message for position, message in enumerate(given)]


def truncate(messages: Iterable[M], at: Chosen, *, keep: float = 0.5) -> list[M]:
    """Cut the end off the bytes of messages, be it in the middle of a tag or of a character.

    Args:
        messages: bytes, or dataclass instances with a `body` of bytes; the cut ones are copies.
        at: the messages that are cut.
        keep: how much stays: an int is a number of bytes (negative: all but so many), a float below 1 the fraction.

    Raises:
        ConfigError: nothing would change; a chosen message has no bytes, or would stay whole.
    """
    given = list(messages)
    for position in _positions(given, at):
        given[position] = _cut(given[position], keep)
    return given


def _cut(message: M, keep: float) -> M:
    if isinstance(message, bytes):
        return _shorter(message, keep)  # type: ignore[return-value]  # bytes are cut to bytes
    body = getattr(message, "body", None)
    if not isinstance(body, bytes) or not dataclasses.is_dataclass(message) or isinstance(message, type):
        raise ConfigError(f"truncate takes bytes or a dataclass with a body of bytes, not {type(message).__name__}")
    return dataclasses.replace(message, body=_shorter(body, keep))


def _shorter(body: bytes, keep: float) -> bytes:
    if isinstance(keep, int):
        cut = body[:keep]
    else:
        cut = body[: int(len(body) * keep)] if 0 <= keep < 1 else body
    if len(cut) == len(body):
        raise ConfigError(f"keep={keep!r} does not cut a body of {len(body)} bytes")
    return cut


def _positions(given: list[M], at: Chosen) -> set[int]:
    if callable(at):
        chosen = {position for position, message in enumerate(given) if at(message)}
    else:
        wanted = [at] if isinstance(at, int) else list(at)
        if wrong := [position for position in wanted if not -len(given) <= position < len(given)]:
            raise ConfigError(f"no message at {wrong[0]}: there are {len(given)}")
        chosen = {position % len(given) for position in wanted}
    if not chosen:
        raise ConfigError("no message was chosen: the fault would not happen")
    return chosen
