"""The data of charts: shares of bars, geometry of a timeline. Their look is in `templates/`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mtosi_jms.report._graph import WIDTH
from mtosi_jms.report._model import Event

LABEL: Final = 190
_LANE: Final = 44
_AXIS: Final = 28
_MARGIN: Final = 30
_DOTS: Final = 24
_MARKS: Final = 240
_BINS: Final = 120


def number(value: float) -> str:
    """A number for people, as all commands and pages write it: `12,000`."""
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """A duration for people: `12 ms`, `3.4 s`, `2 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar, with its length in percent of the longest bar."""

    name: str
    value: float
    share: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment at `x`; or the number of moments in a slot that begins at `x`, as the height of a bar."""

    x: float
    at: float
    label: str = ""
    count: int = 0
    height: float = 0


@dataclass(frozen=True, slots=True)
class Lane:
    """One kind of moments; `kind` sets their form: `dot`, `line` if dots would cover each other, or `slot`."""

    name: str
    count: int
    middle: float
    kind: str
    marks: list[Mark]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Lanes over an axis: total height, height of the lanes, width of a slot, and positions of ticks."""

    height: float
    floor: float
    slot: float
    ticks: list[tuple[float, str]]
    lanes: list[Lane]


def bars(values: Mapping[str, float], most: int = 12) -> list[Bar]:
    """Bars, one per value. `most`: most bars; further values are summed up in one bar."""
    items = list(values.items())
    if len(items) > most:
        rest = items[most - 1 :]
        items = [*items[: most - 1], (f"{len(rest)} others", sum(value for _, value in rest))]
    largest = max((value for _, value in items), default=0) or 1
    return [Bar(name, value, value / largest * 100) for name, value in items]


def timeline(events: Sequence[Event]) -> Timeline:
    """Moments on a time axis, one lane for each kind. A lane with very many shows their number in each slot."""
    lanes: dict[str, list[Event]] = {}
    for event in events:
        lanes.setdefault(event.lane, []).append(event)
    end = max((event.at for event in events), default=0.0) or 1.0
    step = _step(end)
    span = math.ceil(end / step) * step
    scale = (WIDTH - LABEL - _MARGIN) / span
    ticks = [(LABEL + tick * step * scale, _tick(tick * step, step)) for tick in range(round(span / step) + 1)]
    drawn = [
        _lane(name, found, row * _LANE + _LANE / 2, scale, span) for row, (name, found) in enumerate(lanes.items())
    ]
    floor = len(lanes) * _LANE
    return Timeline(floor + _AXIS, floor, (WIDTH - LABEL - _MARGIN) / _BINS, ticks, drawn)


def _lane(name: str, events: Sequence[Event], middle: float, scale: float, span: float) -> Lane:
    if len(events) > _MARKS:
        return Lane(name, len(events), middle, "slot", list(_slots(events, scale, span)))
    kind = "dot" if len(events) <= _DOTS else "line"
    ordered = sorted(events, key=lambda event: event.at)
    marks = [Mark(LABEL + event.at * scale, event.at, event.label or event.lane) for event in ordered]
    return Lane(name, len(events), middle, kind, marks)


def _slots(events: Sequence[Event], scale: float, span: float) -> Iterator[Mark]:
    counts = [0] * _BINS
    for event in events:
        counts[min(_BINS - 1, int(event.at / span * _BINS))] += 1
    largest = max(counts)
    for slot, count in enumerate(counts):
        if count:
            at = slot * span / _BINS
            yield Mark(LABEL + at * scale, at, count=count, height=max(2.0, count / largest * (_LANE - 14)))


def _tick(at: float, step: float) -> str:
    if step < 1:
        return f"{at * 1000:.0f} ms" if step < 0.01 else f"{at:.{max(0, -math.floor(math.log10(step)))}f} s"
    return f"{at:.0f} s"


def _step(end: float) -> float:
    """A round distance between ticks that gives four to eight ticks."""
    rough = end / 6
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
