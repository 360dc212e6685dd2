"""The content of a report as plain values; only `_page` knows HTML."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Tone = Literal["plain", "good", "bad"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One number of the summary. `value`: the number or word, as shown. `tone`: whether it is good or bad news, shown
    by a mark and a colour."""

    label: str
    value: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class SequenceLine:
    """One sequence of replies in the ledger. `name`: correlationId, or the file of a response without one. `expected`:
    number of batches; None if the end was not seen. `missing`: the first numbers that are known to be missing.
    `conflicts`: how many numbers arrived with different bodies. `first_time`, `last_time`: of its messages; empty if
    unknown."""

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
    """A file that was rejected. `line`: line of the error, from 1, or None."""

    file: str
    line: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the page. `rows`: cells by row; numbers are aligned and grouped, times are in UTC, None is an empty
    cell."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of a graph. `size`: number of things that it represents; larger nodes represent more. `known`: whether it
    was seen itself; a node that was only referred to is drawn hollow."""

    id: str
    label: str
    size: int = 1
    known: bool = True


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge of a graph; direction does not count. `a`, `z`: ids of the nodes at its ends. An edge to a node that the
    graph does not have is left out. `count`: number of things that it represents; thicker edges represent more."""

    a: str
    z: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Graph:
    """A network as a picture. The same graph is always drawn the same way. `caption`: a sentence that says what nodes
    and edges are."""

    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge] = ()
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The content of a page; empty parts are left out.

    Attributes:
        made: when the report was made, in UTC.
        charts: by title, the counts by name.
        tables: further tables.
        samples: the first rows of tables.
        sequence_count: how many sequences there are, if `sequences` has not all.
        seconds: duration of each stage, in order.
        links: files near the page, relative to it, by their content.
        steps: command lines for next steps, by what they do.
    """

    title: str
    subtitle: str = ""
    made: dt.datetime | None = None
    facts: Sequence[Fact] = ()
    notes: Sequence[str] = ()
    graph: Graph | None = None
    charts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    samples: Sequence[Table] = ()
    sequences: Sequence[SequenceLine] = ()
    sequence_count: int = 0
    rejects: Sequence[RejectLine] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    steps: Mapping[str, str] = field(default_factory=dict)
