"""Completeness of reply sequences: what arrived, what is missing, what arrived twice (P32, C23, C58, C59, C60).

The rules, which hold for every reader of a landing:

- A sequence is all responses with one correlationId, compared with its white space. A response without a correlationId
  is a sequence of its own.
- A duplicate has the key (correlationId, batchSequenceNumber) and the body of another message. The same key with
  another body is a conflict: both messages are kept.
- Numbers start at 1, or at 0 if a 0 has arrived (C23). The batch with the end-of-reply mark says how many there are.
- A response without a number that is alone in its sequence is complete (C58).
- Complete means: the end is known, every number up to it has arrived, no number is beyond it, and no fault ended the
  exchange.
- The first and the last time are the earliest and the latest timestamp in the headers of responses and faults, in UTC;
  a timestamp without a zone is taken as UTC. Messages without a readable timestamp are ignored; if no message has one,
  both times are unknown. If a reader has removed copies, only the copy that it kept counts.

The ledger of a landing is the result of `reckon` for its messages: one row for each sequence.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

from mtosi_jms.errors import ExchangeError
from mtosi_jms.xmlbind import parse_date_time, parse_loose_date_time

NO_FILE: Final = "#"
"""The beginning of the origin of a message that is in no file."""
LISTED: Final = 1000
"""No more missing numbers than this are listed: a wrong batch number of four billion must not make a list as long."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The facts about one message that its completeness depends on.

    Attributes:
        correlation_id: correlationId of the header, as received; None if absent.
        batch_number: batchSequenceNumber; None if absent.
        end: batchSequenceEndOfReply; None if absent.
        digest: a text that is equal for equal bodies and different for different ones.
        source: file or other origin; identifies a sequence without a correlationId.
        copies: how often this message was found; more than 1 if a reader has already removed duplicates.
        fault: whether the message is a fault, which ends the exchange and is not a batch (C59).
        time: timestamp of the header, with a zone (`time_of`); None if absent or unreadable.
    """

    correlation_id: str | None
    batch_number: int | None
    end: bool | None
    digest: str = ""
    source: str = ""
    copies: int = 1
    fault: bool = False
    time: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class ReplySequence:
    """What is known about one sequence of replies.

    Attributes:
        correlation_id: as received; None for a response without one.
        source: origin of a response without a correlationId; otherwise None.
        batches: number of different batches that arrived.
        expected: number of batches that should arrive; None while the end is unknown.
        received: the batch numbers that arrived, sorted, each once; empty for a response without numbers.
        missing: numbers known to be missing, sorted; the first 1000 of them.
        missing_count: how many numbers are known to be missing.
        duplicates: number of superfluous copies.
        conflicts: numbers that arrived with different bodies; None is a response without a number.
        unexpected: numbers beyond the end of the reply.
        faults: number of faults with this correlationId.
        complete: see the rules in the module docstring.
        first_time, last_time: see the rules in the module docstring.
    """

    correlation_id: str | None
    source: str | None
    batches: int
    expected: int | None
    received: tuple[int, ...]
    missing: tuple[int, ...]
    missing_count: int
    duplicates: int
    conflicts: tuple[int | None, ...]
    unexpected: tuple[int, ...]
    faults: int
    complete: bool
    first_time: dt.datetime | None = None
    last_time: dt.datetime | None = None

    @property
    def source_file(self) -> str | None:
        """The file of a response without a correlationId; None for other sequences, or for a response in no file."""
        return None if self.source is None or self.source.startswith(NO_FILE) else self.source


SequenceKey = tuple[str | None, str | None]


def time_of(timestamp: str | None) -> dt.datetime | None:
    """Return the timestamp of a header in UTC; None if it is absent, unreadable, or not within the years 1 to 9999.

    Args:
        timestamp: the text: xsd:dateTime, or one of the other forms that real systems send (C03).
    """
    for parse in (parse_date_time, parse_loose_date_time):
        try:
            value = parse((timestamp or "").strip())
            return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
        except (ValueError, OverflowError, OSError):
            continue
    return None


def time_text(time: dt.datetime | None) -> str | None:
    """Return a time of the ledger as text for JSON and for people: `2024-01-01T00:00:00Z`."""
    return None if time is None else time.isoformat().replace("+00:00", "Z")


def sequence_key(correlation_id: str | None, source: str) -> SequenceKey:
    """Return the key of a sequence: the correlationId, or the origin without one."""
    return (None, source) if correlation_id is None else (correlation_id, None)


def reckon(receipts: Iterable[Receipt]) -> list[ReplySequence]:
    """Return the sequences of some messages, sorted by correlationId, those without one last.

    Args:
        receipts: messages in any order.

    Returns:
        One entry for each sequence with at least one response. Faults alone make no sequence.
    """
    groups: dict[SequenceKey, _Group] = {}
    for receipt in receipts:
        key = sequence_key(receipt.correlation_id, receipt.source)
        groups.setdefault(key, _Group()).add(receipt)
    sequences = [group.sequence(key) for key, group in groups.items() if group.digests]
    return sorted(
        sequences, key=lambda found: (found.correlation_id is None, found.correlation_id or "", found.source or "")
    )


def check_complete(sequences: Iterable[ReplySequence]) -> None:
    """Check, for `onIncomplete=fail`, that all sequences are complete.

    Raises:
        ExchangeError: a sequence is incomplete; the text names the first ten, and what they lack.
    """
    lacking = [found for found in sequences if not found.complete]
    if lacking:
        shown = "; ".join(describe(found) for found in lacking[:10])
        more = f"; and {len(lacking) - 10} more" if len(lacking) > 10 else ""
        raise ExchangeError(f"{len(lacking)} incomplete sequences: {shown}{more}")


def describe(found: ReplySequence) -> str:
    """Return a text for people about one sequence and what it lacks."""
    name = repr(found.correlation_id) if found.correlation_id is not None else found.source or "without correlationId"
    lacks: list[str] = []
    if found.missing_count:
        numbers = ", ".join(map(str, found.missing[:10]))
        lacks.append(f"missing {numbers}{', ...' if found.missing_count > 10 else ''}")
    if found.expected is None:
        lacks.append("the end of the reply never came")
    if found.unexpected:
        lacks.append(f"numbers beyond the end: {', '.join(map(str, found.unexpected[:10]))}")
    if found.faults:
        lacks.append("ended by a fault")
    return f"{name} {', '.join(lacks) or 'complete'}"


@dataclass(slots=True)
class _Group:
    """The messages of one sequence while they are counted."""

    digests: dict[int | None, dict[str, int]] = field(default_factory=dict)
    ends: set[int] = field(default_factory=set)
    faults: int = 0
    first: dt.datetime | None = None
    last: dt.datetime | None = None

    def add(self, receipt: Receipt) -> None:
        if receipt.time is not None:
            self.first = min(self.first or receipt.time, receipt.time)
            self.last = max(self.last or receipt.time, receipt.time)
        if receipt.fault:
            self.faults += receipt.copies
            return
        copies = self.digests.setdefault(receipt.batch_number, {})
        copies[receipt.digest] = copies.get(receipt.digest, 0) + receipt.copies
        if receipt.end and receipt.batch_number is not None:
            self.ends.add(receipt.batch_number)

    def sequence(self, key: SequenceKey) -> ReplySequence:
        numbers = sorted(number for number in self.digests if number is not None)
        end = max(self.ends, default=None)
        gaps = _Gaps(numbers, end)
        expected = 1 if not numbers else None if end is None else end - gaps.base + 1
        unexpected = tuple(number for number in numbers if end is not None and number > end)
        certain = expected is not None and not gaps.count and not unexpected
        conflicts = [number for number, copies in self.digests.items() if len(copies) > 1]
        return ReplySequence(
            correlation_id=key[0],
            source=key[1],
            batches=len(self.digests),
            expected=expected,
            received=tuple(numbers),
            missing=tuple(islice(gaps, LISTED)),
            missing_count=gaps.count,
            duplicates=sum(sum(copies.values()) - len(copies) for copies in self.digests.values()),
            conflicts=tuple(sorted(conflicts, key=lambda number: -1 if number is None else number)),
            unexpected=unexpected,
            faults=self.faults,
            complete=certain and not self.faults,
            first_time=self.first,
            last_time=self.last,
        )


class _Gaps:
    """The missing numbers, found without counting through all numbers."""

    def __init__(self, numbers: Sequence[int], end: int | None) -> None:
        self.base = 0 if numbers and numbers[0] == 0 else 1
        last = end if end is not None else max(numbers, default=0)
        within = [number for number in numbers if number <= last]
        self._bounds = [self.base - 1, *within, last + 1]
        self.count = last - self.base + 1 - len(within) if numbers else 0

    def __iter__(self) -> Iterator[int]:
        pairs = zip(self._bounds, self._bounds[1:], strict=False)
        return chain.from_iterable(range(before + 1, after) for before, after in pairs)
