"""Completeness of reply sequences: what arrived, what is missing, what arrived twice (P32, C23, C58, C59, C60).

The rules, which hold for every reader of a landing:

- A sequence is all responses with one correlationId, compared with its white space. A response without a correlationId
  is a sequence of its own.
- What a response says of its place is read by `mtosi_jms.patterns.read_place`, as a requestor reads it.
- A duplicate has the key (correlationId, batchSequenceNumber), the body and the end mark of another message. The same
  key with another body or end mark is a conflict: both messages are kept, and the sequence is not complete.
- Numbers start at 1, or at 0 if a 0 of the same sender has arrived, in this sequence or in another one (C23), or where
  `first_batch` says so. The batch with the end-of-reply mark says how many there are.
- A response without a number that is alone in its sequence is complete, unless it says that it is one of several (C58).
- Complete means: the end is known, every number up to it has arrived, no number is beyond it, nothing is in conflict or
  without a number among others, and no fault ended the exchange.
- The first and the last time are the earliest and the latest timestamp in the headers of responses and faults, in UTC;
  a timestamp without a zone is taken as UTC. Messages without a readable timestamp are ignored; if no message has one,
  both times are unknown. If a reader has removed copies, only the copy that it kept counts.

The ledger of a landing is the result of `reckon` for its messages: one row for each sequence.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

from mtosi_jms.binding.profile import FirstBatch
from mtosi_jms.errors import ExchangeError
from mtosi_jms.patterns import Standing, standing_of
from mtosi_jms.xmlbind import parse_date_time, parse_loose_date_time

__all__ = ["NO_FILE", "Receipt", "ReplySequence", "check_complete", "reckon", "time_of"]

NO_FILE: Final = "#"
"""The beginning of the origin of a message that is in no file."""
LISTED: Final = 1000
"""No more missing numbers than this are listed: a wrong batch number of four billion must not make a list as long."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The facts about one message that its completeness depends on.

    Attributes:
        correlation_id: correlationId of the header, as received; None if absent.
        batch_number, end: as in `mtosi_jms.patterns.Place`.
        digest: a text that is equal for equal bodies and different for different ones.
        source: file or other origin; identifies a sequence without a correlationId.
        copies: how often this message was found; more than 1 if a reader has already removed duplicates.
        fault: whether the message is a fault, which ends the exchange and is not a batch (C59).
        time: timestamp of the header, with a zone (`time_of`); None if absent or unreadable.
        sender: senderURI; empty if absent.
    """

    correlation_id: str | None
    batch_number: int | None
    end: bool | None
    digest: str = ""
    source: str = ""
    copies: int = 1
    fault: bool = False
    time: dt.datetime | None = None
    sender: str = ""


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
        conflicts: numbers that arrived with different bodies or end marks; None is a response without a number that
            differs from another one, or that says that it is one of several.
        unexpected: numbers beyond the end of the reply, or below the first.
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
    def is_stuck(self) -> bool:
        """Whether no further message makes it complete: messages are in conflict, or one is a fault."""
        return bool(self.conflicts or self.faults)

    @property
    def source_file(self) -> str | None:
        """The file of a response without a correlationId; None for other sequences, or for a response in no file."""
        return None if self.source is None or self.source.startswith(NO_FILE) else self.source


SequenceKey = tuple[str | None, str | None]


def time_of(timestamp: str | None) -> dt.datetime | None:
    """Return the timestamp of a header in UTC; None if it is absent, unreadable, or not within the years 1 to 9999.
    `timestamp`: the text: xsd:dateTime, or one of the other forms that real systems send (C03)."""
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


def reckon(
    receipts: Iterable[Receipt], first_batch: FirstBatch = "auto", from_zero: Collection[str] = ()
) -> list[ReplySequence]:
    """Return the sequences of some messages, sorted by correlationId, those without one last. `receipts`: messages in
    any order. `first_batch`: number of the first batch of each sequence; "auto": 0 for senders of which a 0 was seen,
    else 1. `from_zero`: further senders of which a 0 was seen.

    Returns one entry for each sequence with at least one response. Faults alone make no sequence.
    """
    groups: dict[SequenceKey, _Group] = {}
    for receipt in receipts:
        key = sequence_key(receipt.correlation_id, receipt.source)
        groups.setdefault(key, _Group()).add(receipt)
    zero = {*from_zero, *(group.sender for group in groups.values() if 0 in group.digests)}
    sequences = [
        group.sequence(key, (0 if group.sender in zero else 1) if first_batch == "auto" else first_batch)
        for key, group in groups.items()
        if group.digests
    ]
    return sorted(
        sequences, key=lambda found: (found.correlation_id is None, found.correlation_id or "", found.source or "")
    )


def check_complete(sequences: Iterable[ReplySequence]) -> None:
    """Check, for `onIncomplete=fail`, that all sequences are complete. Raises ExchangeError: a sequence is incomplete;
    the text names the first ten, and what they lack."""
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
        lacks.append(f"numbers beyond the end, or below the first: {', '.join(map(str, found.unexpected[:10]))}")
    if found.conflicts:
        named = ("no number" if number is None else str(number) for number in found.conflicts[:10])
        lacks.append(f"different responses with one number, or one of several without a number: {', '.join(named)}")
    if found.faults:
        lacks.append("ended by a fault")
    return f"{name} {', '.join(lacks) or 'complete'}"


@dataclass(slots=True)
class _Group:
    digests: dict[int | None, dict[tuple[str, Standing], int]] = field(default_factory=dict)
    senders: set[str] = field(default_factory=set)
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
        standing = standing_of(receipt.batch_number, receipt.end)
        copies[receipt.digest, standing] = copies.get((receipt.digest, standing), 0) + receipt.copies
        self.senders.add(receipt.sender)
        if standing is Standing.LAST and receipt.batch_number is not None:
            self.ends.add(receipt.batch_number)

    @property
    def sender(self) -> str:
        """Who has sent the responses: the first by name, should there be several."""
        return min(filter(None, self.senders), default="")

    def sequence(self, key: SequenceKey, first: int) -> ReplySequence:
        numbers = sorted(number for number in self.digests if number is not None)
        end = min(self.ends, default=None)
        gaps = _Gaps(numbers, end, first)
        unplaced = any(standing is Standing.UNPLACED for _, standing in self.digests.get(None, ()))
        alone = not numbers and not unplaced
        expected = 1 if alone else None if end is None else max(end - first + 1, 0)
        unexpected = tuple(number for number in numbers if number < first or (end is not None and number > end))
        conflicts = [number for number, copies in self.digests.items() if len(copies) > 1]
        if None in self.digests and not alone and None not in conflicts:
            conflicts.append(None)
        certain = expected is not None and not gaps.count and not unexpected and not conflicts
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
    """The missing numbers from `first` on, found without counting through all numbers."""

    def __init__(self, numbers: Sequence[int], end: int | None, first: int) -> None:
        last = first - 1 if not numbers else max(numbers) if end is None else end
        within = [number for number in numbers if first <= number <= last]
        self._bounds = [first - 1, *within, last + 1]
        self.count = max(last - first + 1 - len(within), 0)

    def __iter__(self) -> Iterator[int]:
        pairs = zip(self._bounds, self._bounds[1:], strict=False)
        return chain.from_iterable(range(before + 1, after) for before, after in pairs)
