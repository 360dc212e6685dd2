"""What a report shows, as plain values; nobody but the page knows HTML."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Tone = Literal["plain", "good", "bad"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One number of the summary.

    Attributes:
        label: what it counts.
        value: the number or word, as shown.
        tone: whether it is good or bad news; shown by a mark and colour.
    """

    label: str
    value: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Event:
    """One moment of an exchange.

    Attributes:
        at: seconds since the exchange began.
        lane: what kind of thing it is (`request`, `batch`, `notification`); one row of the timeline each.
        label: what happened, for the tooltip.
    """

    at: float
    lane: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class SequenceLine:
    """One sequence of replies in the ledger.

    Attributes:
        name: correlationId, or the file of a response without one.
        batches: how many different batches arrived.
        expected: how many there should be, None where the end was not seen.
        missing: numbers known to be missing, the first of them.
        missing_count: how many are missing.
        duplicates: copies that were left out.
        conflicts: how many numbers arrived with different bodies.
        complete: whether all is there.
        first_time, last_time: times of its first and its last message, empty where unknown.
    """

    name: str
    batches: int
    expected: int | None
    missing: Sequence[int] = ()
    missing_count: int = 0
    duplicates: int = 0
    conflicts: int = 0
    complete: bool = True
    first_time: str = ""
    last_time: str = ""


@dataclass(frozen=True, slots=True)
class RejectLine:
    """A file that was rejected.

    Attributes:
        file: its path.
        line: line of the fault, from 1, or None.
        reason: what is wrong.
    """

    file: str
    line: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that a page shows; what is empty is left out.

    Attributes:
        title: heading of the page.
        subtitle: one line below it: what was read, where to.
        made: when, in UTC.
        facts: the summary.
        timeline: moments of an exchange, in any order.
        objects: number of objects by type.
        vendors: number of objects by manufacturer.
        sequences: the ledger.
        rejects: rejected files.
        seconds: duration of each stage, in order.
        notes: sentences worth knowing.
    """

    title: str
    subtitle: str = ""
    made: dt.datetime | None = None
    facts: Sequence[Fact] = ()
    timeline: Sequence[Event] = ()
    objects: Mapping[str, int] = field(default_factory=dict)
    vendors: Mapping[str, int] = field(default_factory=dict)
    sequences: Sequence[SequenceLine] = ()
    rejects: Sequence[RejectLine] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    notes: Sequence[str] = ()
