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


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the page.

    Attributes:
        title: heading above it.
        columns: heading of each column.
        rows: cells by row; numbers are aligned and grouped, times are in UTC, None is an empty cell.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of a graph.

    Attributes:
        id: what edges call it.
        label: what stands beside it.
        size: how much it stands for; a node of more is drawn larger.
        known: whether it was seen itself, or only referred to; such a node is drawn hollow.
    """

    id: str
    label: str
    size: int = 1
    known: bool = True


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge of a graph; direction does not count.

    Attributes:
        a, z: the nodes at its ends, by id. An edge with an end that the graph has not is left out.
        count: how much it stands for; an edge of more is drawn thicker.
    """

    a: str
    z: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Graph:
    """A network as a picture. The same graph is always drawn the same way.

    Attributes:
        nodes: at most `GRAPH_NODES` are drawn, the largest ones.
        edges: between them.
        caption: one sentence on what nodes and edges are.
    """

    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge] = ()
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that a page shows; what is empty is left out.

    Attributes:
        title: heading of the page.
        subtitle: one line below it: what was read, where to.
        made: when, in UTC.
        facts: the summary.
        notes: sentences worth knowing.
        timeline: moments of an exchange, in any order.
        graph: the network.
        charts: by title, what is counted, by name.
        tables: further tables, samples of rows for example.
        sequences: the ledger.
        rejects: rejected files.
        seconds: duration of each stage, in order.
        links: files beside the page, relative to it, by what is in them.
        steps: command lines that go on from here, by what they do.
    """

    title: str
    subtitle: str = ""
    made: dt.datetime | None = None
    facts: Sequence[Fact] = ()
    notes: Sequence[str] = ()
    timeline: Sequence[Event] = ()
    graph: Graph | None = None
    charts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    sequences: Sequence[SequenceLine] = ()
    rejects: Sequence[RejectLine] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    steps: Mapping[str, str] = field(default_factory=dict)
