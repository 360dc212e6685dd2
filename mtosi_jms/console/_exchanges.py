"""Exchanges as somebody sees them who only watches: which batches came, which are missing, which came again.

The rules are those of a landing's ledger: numbers start at 1, or at 0 where a 0 was seen; the batch with the
end-of-reply mark says how many there are; a fault ends the exchange and is no batch. But a watcher may come late, and
where it looks now and then it may miss what passed in between. So a number that is missing is a gap only if all that
passed was seen; else it is just not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from mtosi_jms.console._facts import Facts
from mtosi_jms.console._numbers import Numbers

State = Literal["open", "gap", "complete", "incomplete", "ended", "fault"]
"""`gap`: batches are missing, and the end was not seen; `incomplete`: it was; `ended`: it was, but other batches may
have passed unseen."""

SHOWN: Final = 100
"""Most numbers that came again of which an exchange remembers which they are."""
_SEGMENTS: Final = 240
"""Most pieces of a drawing."""
_AHEAD: Final = 1.08
"""How much longer than what has come a drawing is whose end is not known."""


class Segment(NamedTuple):
    """A piece of the drawing of an exchange.

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


class ExchangeView(NamedTuple):
    """An exchange at one moment; see `Exchange`. `gaps` and `again` are numbers for people: `3, 5–9`."""

    key: str
    number: int
    operation: str
    state: State
    first_ms: int
    last_ms: int
    destination: str
    asked: bool
    replies: int
    size: int
    batches: int
    expected: int | None
    missing: int
    gaps: str
    unseen: int
    duplicates: int
    again: str
    faults: int
    is_whole: bool
    sources: str
    segments: list[Segment]


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and its replies.

    Attributes:
        key: correlationId, or where there is none the message id of the request.
        number: tells it from others, in the order in which they began.
        operation: its name.
        first_ms, last_ms: when its first and its last message were seen, milliseconds since 1970 UTC.
        destination: where the request went, or the replies came.
        asked: the request was seen.
        replies: how many responses came, faults left out.
        size: octets of all its messages.
        numbers: batch numbers that came.
        end: the number with the end-of-reply mark; None where it was not seen.
        answered: a response without a number came.
        duplicates: replies that came again under another message id.
        again: the first hundred numbers that came again.
        faults: faults that came.
        is_whole: nothing of it can have passed unseen.
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
    duplicates: int = 0
    again: Numbers = field(default_factory=Numbers)
    faults: int = 0
    is_whole: bool = True
    sources: set[str] = field(default_factory=set)
    _from: int = 0

    def add(self, facts: Facts, *, at_ms: int, size: int, from_first: bool) -> None:
        """A message of the exchange was seen, which was not seen before.

        Args:
            facts: what it says.
            at_ms: when, milliseconds since 1970 UTC.
            size: its octets.
            from_first: whoever saw it has seen all that went before.
        """
        self.first_ms, self.last_ms = min(self.first_ms, at_ms), max(self.last_ms, at_ms)
        self.operation = self.operation or facts.operation
        self.size += size
        if facts.kind == "request":
            self.asked = True
        elif facts.kind == "fault":
            self.faults += 1
        elif facts.kind == "response":
            self._reply(facts, from_first)

    def _reply(self, facts: Facts, from_first: bool) -> None:
        self.replies += 1
        if facts.batch is None:
            self.duplicates += self.answered
            self.answered = True
            return
        if not self.numbers:
            # Who comes late cannot say what went before.
            self._from = 0 if self.asked or from_first else facts.batch
        if not self.numbers.add(facts.batch) and facts.batch in self.numbers:
            self.duplicates += 1
            if self.again.count < SHOWN:
                self.again.add(facts.batch)
        if facts.is_last:
            self.end = facts.batch if self.end is None else max(self.end, facts.batch)

    @property
    def first_number(self) -> int:
        """The first batch number of the reply."""
        return 0 if self.numbers and self.numbers.low == 0 else 1

    @property
    def last_number(self) -> int:
        """The last number that is known of: the end, or the greatest that came."""
        return self.end if self.end is not None else self.numbers.high if self.numbers else 0

    @property
    def expected(self) -> int | None:
        """How many batches there are; None while that is not known."""
        return None if self.end is None else self.end - self.first_number + 1

    def gaps(self) -> list[tuple[int, int]]:
        """The ranges of numbers that are missing."""
        return [(low, high) for kind, low, high in self._absent() if kind == "gap"]

    @property
    def missing(self) -> int:
        """How many batches are missing."""
        return sum(high - low + 1 for low, high in self.gaps())

    @property
    def unseen(self) -> int:
        """How many batches were not seen, which may have passed."""
        return sum(high - low + 1 for kind, low, high in self._absent() if kind == "unseen")

    def _absent(self) -> Iterator[tuple[str, int, int]]:
        if not self.numbers:
            return
        certain = self.is_whole and not self.numbers.is_full
        for low, high in self.numbers.gaps(self.first_number, self.last_number):
            if not certain or high < self._from:
                yield "unseen", low, high
            elif low < self._from:
                yield "unseen", low, self._from - 1
                yield "gap", self._from, high
            else:
                yield "gap", low, high

    @property
    def state(self) -> State:
        """How it stands."""
        if self.faults:
            return "fault"
        if any(True for _ in self.gaps()):
            return "gap" if self.end is None else "incomplete"
        if not self.numbers:
            return "complete" if self.answered else "open"
        if self.end is None:
            return "open"
        return "ended" if self.unseen else "complete"

    def view(self) -> ExchangeView:
        """The exchange as it stands now, which does not change any more."""
        return ExchangeView(
            key=self.key,
            number=self.number,
            operation=self.operation,
            state=self.state,
            first_ms=self.first_ms,
            last_ms=self.last_ms,
            destination=self.destination,
            asked=self.asked,
            replies=self.replies,
            size=self.size,
            batches=self.numbers.count,
            expected=self.expected,
            missing=self.missing,
            gaps=ranges_text(self.gaps()),
            unseen=self.unseen,
            duplicates=self.duplicates,
            again=ranges_text(list(self.again.ranges)),
            faults=self.faults,
            is_whole=self.is_whole,
            sources=", ".join(sorted(self.sources)),
            segments=self.segments(),
        )

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to be told of it."""
        return self.state == "complete" and not self.duplicates

    def segments(self) -> list[Segment]:
        """The exchange as a drawing of a thousand units, in order."""
        if not self.numbers:
            return []
        first, last = self.first_number, self.last_number
        span = max(last - first + 1, self.numbers.high - first + 1) * (1.0 if self.end is not None else _AHEAD)
        pieces = [("came", low, high) for low, high in self.numbers.ranges] + list(self._absent())
        if len(pieces) > _SEGMENTS:  # where there is no room for all, those show that matter
            pieces = [("came", self.numbers.low, self.numbers.high)] + [one for one in pieces if one[0] != "came"]
            pieces = pieces[:_SEGMENTS]
        pieces += [("again", low, high) for low, high in self.again.ranges]
        scale = 1000 / max(span, 1)
        return [
            Segment(kind, low, high, round((low - first) * scale, 2), round(max((high - low + 1) * scale, 1.5), 2))
            for kind, low, high in pieces
        ]


def ranges_text(ranges: list[tuple[int, int]], most: int = 12) -> str:
    """Ranges for people: `3, 5-9`."""
    shown = [str(low) if low == high else f"{low}–{high}" for low, high in ranges[:most]]
    return ", ".join(shown) + (", …" if len(ranges) > most else "")
