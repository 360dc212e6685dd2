"""Charts as inline SVG: horizontal bars and a timeline. They are drawn with the page's colour variables, so they follow
light and dark; each mark has a tooltip, and the numbers stand beside the bars, so nothing is told by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Final

from mtosi_jms.report._model import Event

_WIDTH: Final = 720
_ROW: Final = 30
_BAR: Final = 16
_LABEL: Final = 190
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


def bars(values: Mapping[str, float], label: str, *, shown: Callable[[float], str] = number, most: int = 12) -> str:
    """Horizontal bars, one a value, the value beside it.

    Args:
        values: in the order to show; beyond `most`, the rest is summed up as one bar.
        label: what the chart shows, for readers who do not see it.
        shown: how a value is written.
        most: most bars.
    """
    items = list(values.items())
    if len(items) > most:
        rest = items[most - 1 :]
        items = [*items[: most - 1], (f"{len(rest)} others", sum(value for _, value in rest))]
    largest = max((value for _, value in items), default=0) or 1
    room = _WIDTH - _LABEL - _VALUE
    rows = [
        _bar(name, shown(value), row * _ROW, max(2.0, value / largest * room) if value else 0.0)
        for row, (name, value) in enumerate(items)
    ]
    return _svg(label, len(items) * _ROW + 4, "".join(rows))


def _bar(name: str, value: str, top: float, width: float) -> str:
    middle = top + _ROW / 2
    shown = name if len(name) <= 26 else f"{name[:25]}\u2026"
    return (
        f'<g class="row"><title>{escape(name)}: {escape(value)}</title>'
        f'<text class="name" x="{_LABEL - 12}" y="{middle:.1f}" text-anchor="end">{escape(shown)}</text>'
        f'<path class="bar" d="{_rounded(_LABEL, middle - _BAR / 2, width, _BAR)}"/>'
        f'<text class="value" x="{_LABEL + width + 8:.1f}" y="{middle:.1f}">{escape(value)}</text></g>'
    )


def _rounded(left: float, top: float, width: float, height: float) -> str:
    """A bar with round corners at the end that carries the value, square at the base line."""
    corner = min(4.0, width / 2)
    return (
        f"M{left:.1f} {top:.1f}h{width - corner:.1f}q{corner:.1f} 0 {corner:.1f} {corner:.1f}"
        f"v{height - 2 * corner:.1f}q0 {corner:.1f} -{corner:.1f} {corner:.1f}h-{width - corner:.1f}z"
    )


def timeline(events: Sequence[Event], label: str) -> str:
    """Moments on a time axis, one lane for each kind; a lane with very many shows how many fell into each slot.

    Args:
        events: in any order.
        label: what the chart shows, for readers who do not see it.
    """
    lanes = list(dict.fromkeys(event.lane for event in events))
    end = max((event.at for event in events), default=0.0) or 1.0
    step = _step(end)
    span = math.ceil(end / step) * step
    height = len(lanes) * _LANE + _AXIS
    parts = [_grid(span, step, len(lanes) * _LANE)]
    for row, lane in enumerate(lanes):
        found = sorted((event for event in events if event.lane == lane), key=lambda event: event.at)
        middle = row * _LANE + _LANE / 2
        count = number(len(found))
        parts.append(
            f'<text class="name" x="{_LABEL - 12}" y="{middle - 7:.1f}" text-anchor="end">{escape(lane)}</text>'
            f'<text class="count" x="{_LABEL - 12}" y="{middle + 8:.1f}" text-anchor="end">{count}</text>'
        )
        draw = _marks if len(found) <= _MARKS else _density
        parts.append(draw(found, span, middle))
    return _svg(label, height, "".join(parts))


def _x(at: float, span: float) -> float:
    return _LABEL + at / span * (_WIDTH - _LABEL - _MARGIN)


def _marks(events: Sequence[Event], span: float, middle: float) -> str:
    """A dot for each moment, or a line where dots would cover each other."""
    return "".join(_mark(event, _x(event.at, span), middle, dot=len(events) <= _DOTS) for event in events)


def _mark(event: Event, x: float, middle: float, *, dot: bool) -> str:
    title = f"<title>{escape(event.label or event.lane)} at {duration(event.at)}</title>"
    if dot:
        return f'<circle class="mark" cx="{x:.1f}" cy="{middle:.1f}" r="5">{title}</circle>'
    return f'<rect class="bar" x="{x - 1:.1f}" y="{middle - 9:.1f}" width="2" height="18">{title}</rect>'


def _density(events: Sequence[Event], span: float, middle: float) -> str:
    counts = [0] * _BINS
    for event in events:
        counts[min(_BINS - 1, int(event.at / span * _BINS))] += 1
    largest = max(counts)
    width = (_WIDTH - _LABEL - _MARGIN) / _BINS
    base = middle + _LANE / 2 - 8
    shapes = []
    for slot, count in enumerate(counts):
        if count:
            tall = max(2.0, count / largest * (_LANE - 14))
            at = duration(slot * span / _BINS)
            left = _LABEL + slot * width
            shapes.append(
                f'<rect class="bar" x="{left:.1f}" y="{base - tall:.1f}" width="{max(1, width - 1):.1f}" '
                f'height="{tall:.1f}"><title>{number(count)} from {at}</title></rect>'
            )
    return "".join(shapes)


def _grid(span: float, step: float, height: float) -> str:
    lines = []
    for tick in range(round(span / step) + 1):
        x = _x(tick * step, span)
        lines.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height:.1f}"/>'
            f'<text class="tick" x="{x:.1f}" y="{height + 18:.1f}" text-anchor="middle">'
            f"{_tick(tick * step, step)}</text>"
        )
    return "".join(lines)


def _tick(at: float, step: float) -> str:
    if step < 1:
        return f"{at * 1000:.0f} ms" if step < 0.01 else f"{at:.{max(0, -math.floor(math.log10(step)))}f} s"
    return f"{at:.0f} s"


def _step(end: float) -> float:
    """A round distance of ticks that gives four to eight of them."""
    rough = end / 6
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)


def _svg(label: str, height: float, content: str) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(label, quote=True)}" '
        f'xmlns="http://www.w3.org/2000/svg">{content}</svg>'
    )
