"""Exchanges as a passive observer sees them: which batches came, which are missing, which came again.

The rules are those of a landing's ledger: numbers start at 1, or at 0 if a 0 was seen; the batch with the end-of-reply
mark gives the number of batches; a fault ends the exchange and is not a batch. But an observer may start late, and one
that polls may miss messages between two looks. So an absent number is a gap only if the source sees every message;
otherwise the number counts as unseen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

from mtosi_jms.console._facts import Facts
from mtosi_jms.patterns import Standing

State = Literal["open", "gap", "complete", "incomplete", "ended", "fault"]
"""`gap`: batches are missing, and the end was not seen; `incomplete`: batches are missing, and the end was seen;
`ended`: the end was seen, and other batches may have passed unseen."""

RANGES: Final = 500
"""Most ranges in one set: a reply of a million batches takes no more memory than one of ten."""
SHOWN: Final = 100
"""Most repeated numbers that an exchange remembers."""
_SEGMENTS: Final = 240
"""Most segments of a drawing."""
_AHEAD: Final = 1.08
"""The length of a drawing without known end, relative to the part that has come."""


class Numbers:
    """Whole numbers, kept as ranges; at most `RANGES` of them. `is_full`: whether a number was left out because it
    would have made one range too many."""

    __slots__ = ("_ranges", "count", "is_full")

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        self.count = 0
        self.is_full = False

    def copied(self) -> Numbers:
        found = Numbers()
        found._ranges, found.count, found.is_full = list(self._ranges), self.count, self.is_full
        return found

    def add(self, number: int) -> bool:
        """Adds a number; returns False if it was there already, or there is no room."""
        at = bisect_right(self._ranges, (number, number))
        before = self._ranges[at - 1] if at else None
        after = self._ranges[at] if at < len(self._ranges) else None
        if (before is not None and before[1] >= number) or (after is not None and after[0] == number):
            return False
        joins_before = before is not None and before[1] == number - 1
        joins_after = after is not None and after[0] == number + 1
        if not joins_before and not joins_after and len(self._ranges) >= RANGES:
            self.is_full = True
            return False
        low = before[0] if joins_before and before is not None else number
        high = after[1] if joins_after and after is not None else number
        self._ranges[at - joins_before : at + joins_after] = [(low, high)]
        self.count += 1
        return True

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._ranges, (number, number))
        found = self._ranges[max(at - 1, 0) : at + 1]
        return any(low <= number <= high for low, high in found)

    def __bool__(self) -> bool:
        return bool(self._ranges)

    @property
    def low(self) -> int:
        """The least number; the set must not be empty."""
        return self._ranges[0][0]

    @property
    def high(self) -> int:
        """The greatest number; the set must not be empty."""
        return self._ranges[-1][1]

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """First and last number of each range, in order."""
        return tuple(self._ranges)

    def gaps(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The ranges of numbers from `first` to `last` that are not in the set."""
        at = first
        for low, high in self._ranges:
            if low > last:
                break
            if low > at:
                yield at, low - 1
            at = max(at, high + 1)
        if at <= last:
            yield at, last


class Segment(NamedTuple):
    """A segment of the drawing of an exchange.

    Attributes:
        kind: `came`, `gap`, `unseen` or `again`.
        first, last: batch numbers.
        start, width: in thousandths of the drawing.
    """

    kind: str
    first: int
    last: int
    start: float
    width: float


class Judged(NamedTuple):
    """What the messages of an exchange tell. `gaps`: the ranges of numbers that are missing; `unseen`: how many batches
    were not seen, but may have passed."""

    state: State
    gaps: list[tuple[int, int]]
    missing: int
    unseen: int


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and its replies.

    Attributes:
        key: correlationId, or without one the message id of the request.
        number: unique number, in the order in which exchanges began.
        first_ms, last_ms: when its first and its last message were seen, milliseconds since 1970 UTC.
        asked: whether the request was seen.
        size: octets of all its messages.
        end: the number with the end-of-reply mark; None if it was not seen.
        unplaced: number of responses that are one of several and have no number: with one the answer is not complete.
        duplicates: number of replies that came again under another message id.
        repeated: the first hundred numbers that came again.
        is_whole: whether none of its messages can have passed unseen.
        is_landed: whether a landing has it, which has all that arrived: what that lacks is missing.
        is_partial: whether its earlier messages were seen and forgotten.
        sources: where its messages were seen.
    """

    key: str
    number: int
    first_ms: int
    last_ms: int
    operation: str = ""
    destination: str = ""
    asked: bool = False
    replies: int = 0
    size: int = 0
    numbers: Numbers = field(default_factory=Numbers)
    end: int | None = None
    answered: bool = False
    unplaced: int = 0
    duplicates: int = 0
    repeated: Numbers = field(default_factory=Numbers)
    faults: int = 0
    is_whole: bool = True
    is_landed: bool = False
    is_partial: bool = False
    sources: set[str] = field(default_factory=set)
    _from: int = 0
    _judged: Judged | None = None

    def add(self, facts: Facts, *, at_ms: int, size: int, from_first: bool) -> None:
        """Adds a message of the exchange that was not seen before. `at_ms`: when it was seen, milliseconds since 1970
        UTC. `from_first`: whether its observer has seen all earlier messages."""
        self._judged = None
        self.first_ms, self.last_ms = min(self.first_ms, at_ms), max(self.last_ms, at_ms)
        self.operation = self.operation or facts.operation
        self.size += size
        self.is_landed = self.is_landed or from_first
        if facts.kind == "request":
            self.asked = True
        elif facts.kind == "fault":
            self.faults += 1
        elif facts.kind == "response":
            self._reply(facts, from_first)

    def _reply(self, facts: Facts, from_first: bool) -> None:
        self.replies += 1
        if facts.batch is None:
            whole = facts.standing is Standing.WHOLE
            self.duplicates += self.answered and whole
            self.answered |= whole
            self.unplaced += not whole
            return
        if not self.numbers:
            # An observer that started late cannot know earlier batches.
            self._from = 0 if self.asked else facts.batch
        if from_first:
            self._from = 0
        if not self.numbers.add(facts.batch) and facts.batch in self.numbers:
            self.duplicates += 1
            if self.repeated.count < SHOWN:
                self.repeated.add(facts.batch)
        if facts.is_last:
            self.end = facts.batch if self.end is None else max(self.end, facts.batch)

    @property
    def first_number(self) -> int:
        return 0 if self.numbers and self.numbers.low == 0 else 1

    @property
    def last_number(self) -> int:
        """The last known number: the end, or the greatest that came."""
        return self.end if self.end is not None else self.numbers.high if self.numbers else 0

    @property
    def expected(self) -> int | None:
        return None if self.end is None else self.end - self.first_number + 1

    def doubt(self) -> None:
        """Notes that some of its messages may have passed unseen."""
        self.is_whole, self._judged = False, None

    @property
    def judged(self) -> Judged:
        """What is known of it until its next message."""
        if self._judged is None:
            absent = list(self._absent())
            gaps = [(low, high) for kind, low, high in absent if kind == "gap"]
            missing, every = (sum(high - low + 1 for low, high in some) for some in (gaps, [one[1:] for one in absent]))
            self._judged = Judged(self._state(missing, every - missing), gaps, missing, every - missing)
        return self._judged

    def _absent(self) -> Iterator[tuple[str, int, int]]:
        if not self.numbers:
            return
        certain = (self.is_whole or self.is_landed) and not (self.is_partial or self.numbers.is_full)
        for low, high in self.numbers.gaps(self.first_number, self.last_number):
            if not certain or high < self._from:
                yield "unseen", low, high
            elif low < self._from:
                yield "unseen", low, self._from - 1
                yield "gap", self._from, high
            else:
                yield "gap", low, high

    def _state(self, missing: int, unseen: int) -> State:
        if self.faults:
            return "fault"
        if missing:
            return "gap" if self.end is None else "incomplete"
        if not self.numbers:
            return "complete" if self.answered and not self.unplaced else "open"
        if self.end is None:
            return "open"
        if self.answered or self.unplaced:
            return "incomplete"
        return "ended" if unseen else "complete"

    @property
    def state(self) -> State:
        return self.judged.state

    @property
    def missing(self) -> int:
        return self.judged.missing

    @property
    def unseen(self) -> int:
        return self.judged.unseen

    @property
    def batches(self) -> int:
        """How many different batches came."""
        return self.numbers.count

    @property
    def gaps(self) -> str:
        """The missing numbers for people: `3, 5–9`."""
        return _text(self.judged.gaps)

    @property
    def again(self) -> str:
        """The numbers that came again, for people."""
        return _text(self.repeated.ranges)

    def copied(self) -> Exchange:
        """A copy that does not change."""
        return replace(self, numbers=self.numbers.copied(), repeated=self.repeated.copied(), sources=set(self.sources))

    @property
    def is_done(self) -> bool:
        """Whether the exchange is complete without duplicates."""
        return self.judged.state == "complete" and not self.duplicates

    @property
    def standing(self) -> Literal["open", "troubled", "complete"]:
        if self.duplicates or self.judged.state in ("gap", "incomplete", "fault"):
            return "troubled"
        return "open" if self.judged.state == "open" else "complete"

    @property
    def segments(self) -> list[Segment]:
        """The segments of the drawing, in order; the drawing is a thousand units wide."""
        if not self.numbers:
            return []
        first, last = self.first_number, self.last_number
        span = max(last - first + 1, self.numbers.high - first + 1) * (1.0 if self.end is not None else _AHEAD)
        pieces = [("came", low, high) for low, high in self.numbers.ranges] + list(self._absent())
        if len(pieces) > _SEGMENTS:  # without room for all, keep those that matter
            pieces = [("came", self.numbers.low, self.numbers.high)] + [one for one in pieces if one[0] != "came"]
            pieces = pieces[:_SEGMENTS]
        pieces += [("again", low, high) for low, high in self.repeated.ranges]
        scale = 1000 / max(span, 1)
        return [
            Segment(kind, low, high, round((low - first) * scale, 2), round(max((high - low + 1) * scale, 1.5), 2))
            for kind, low, high in pieces
        ]


def _text(ranges: Sequence[tuple[int, int]], most: int = 12) -> str:
    shown = [str(low) if low == high else f"{low}–{high}" for low, high in ranges[:most]]
    return ", ".join(shown) + (", …" if len(ranges) > most else "")
