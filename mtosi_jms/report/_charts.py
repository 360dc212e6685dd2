"""The geometry of charts: horizontal bars and a timeline, as numbers. What they look like is in `templates/`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mtosi_jms.report._model import Event

WIDTH: Final = 720
LABEL: Final = 190
_ROW: Final = 30
_VALUE: Final = 84
_LANE: Final = 44
_AXIS: Final = 28
_MARGIN: Final = 30
_DOTS: Final = 24
_MARKS: Final = 240
_BINS: Final = 120


def number(value: float) -> str:
    """A number for people: thousands parted by thin spaces."""
    return f"{value:,.0f}".replace(",", "\u2009")


def duration(seconds: float) -> str:
    """A duration for people: `12 ms`, `3.4 s`, `2 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: the middle of its row from the top, and its width."""

    name: str
    value: float
    middle: float
    width: float


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars in a chart of some height."""

    height: float
    rows: list[Bar]


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment at `x`; or how many fell into a slot that begins there, as a bar of a height."""

    x: float
    at: float
    label: str = ""
    count: int = 0
    height: float = 0


@dataclass(frozen=True, slots=True)
class Lane:
    """One kind of moments; `kind` says how they are drawn: `dot`, `line` where dots would cover each other, `slot`."""

    name: str
    count: int
    middle: float
    kind: str
    marks: list[Mark]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Lanes over an axis: the height of all, that of the lanes, the width of a slot, and where ticks stand."""

    height: float
    floor: float
    slot: float
    ticks: list[tuple[float, str]]
    lanes: list[Lane]


def bars(values: Mapping[str, float], most: int = 12) -> Bars:
    """Horizontal bars, one a value.

    Args:
        values: in the order to show; beyond `most`, the rest is summed up as one bar.
    """
    items = list(values.items())
    if len(items) > most:
        rest = items[most - 1 :]
        items = [*items[: most - 1], (f"{len(rest)} others", sum(value for _, value in rest))]
    largest = max((value for _, value in items), default=0) or 1
    room = WIDTH - LABEL - _VALUE
    rows = [
        Bar(name, value, row * _ROW + _ROW / 2, max(2.0, value / largest * room) if value else 0.0)
        for row, (name, value) in enumerate(items)
    ]
    return Bars(len(items) * _ROW + 4, rows)


def timeline(events: Sequence[Event]) -> Timeline:
    """Moments on a time axis, one lane for each kind; a lane with very many shows how many fell into each slot."""
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
    """A round distance of ticks that gives four to eight of them."""
    rough = end / 6
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
