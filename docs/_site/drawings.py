"""The patterns as drawings, from the state tables that the code runs.

States that still wait stand in a row, with arrows between them. A state that ends the exchange is a box below, which
says from which states and by which events it is reached: arrows for all of these would cover the picture.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from enum import StrEnum
from html import escape
from typing import Final

from mtosi_jms.patterns import _batch_table, _simple

Table = Mapping[StrEnum, Mapping[StrEnum, StrEnum]]

_WIDTH: Final = 130
_HEIGHT: Final = 40
_GAP: Final = 120
_LINE: Final = 18
_COLUMNS: Final = 3


def pattern_drawings() -> dict[str, str]:
    """SVG drawings by the name of their table."""
    return {
        "simple": _drawing("SimpleResponse", _simple.TABLE, _simple.FINAL),
        "batches": _drawing("MultipleBatchResponse", _batch_table.TABLE, _batch_table.FINAL),
    }


def _drawing(title: str, table: Table, final: frozenset[StrEnum]) -> str:
    live = [state for state in table if state not in final]
    arcs = _arcs(table, live)
    stays = {state: [event for event, to in table[state].items() if to is state] for state in live}
    top = 50 + 34 * max((to - start for start, to, _ in arcs), default=1)
    below = top + _HEIGHT + 30 + _LINE * max((len(events) for events in stays.values()), default=0)
    ends = {state: list(_ways(table, live, state)) for state in table if state in final}
    width = max(len(live) * (_WIDTH + _GAP) - _GAP, _COLUMNS * 270) + 40
    parts = [_live_state(state, _x(number), top, stays[state]) for number, state in enumerate(live)]
    parts += [_arc(*arc, top) for arc in arcs]
    y = below
    column = (width - 40) / _COLUMNS
    states = list(ends)
    for start in range(0, len(states), _COLUMNS):
        row = states[start : start + _COLUMNS]
        height = _HEIGHT + _LINE * max(len(ends[state]) for state in row)
        parts += [
            _end(state, ends[state], 20 + place * column, y, column - 20, height) for place, state in enumerate(row)
        ]
        y += height + 20
    return (
        f'<svg class="pattern" viewBox="0 0 {width:.0f} {y:.0f}" role="img" aria-label="State machine of {title}" '
        f'xmlns="http://www.w3.org/2000/svg">{_ARROW}{"".join(parts)}</svg>'
    )


_ARROW: Final = (
    '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 L10 5 L0 10 z"/></marker></defs>'
)


def _x(number: int) -> float:
    return 20 + number * (_WIDTH + _GAP)


def _arcs(table: Table, live: list[StrEnum]) -> list[tuple[int, int, list[str]]]:
    """From, to, and the events that lead there, of states that wait."""
    found = []
    for start, state in enumerate(live):
        for to, other in enumerate(live):
            events = [str(event) for event, next_state in table[state].items() if next_state is other]
            if events and to != start:
                found.append((start, to, events))
    return found


def _ways(table: Table, live: list[StrEnum], end: StrEnum) -> Iterator[str]:
    """How a final state is reached: one line for each set of states that share events."""
    events: dict[tuple[StrEnum, ...], list[str]] = {}
    for event in dict.fromkeys(event for state in live for event in table[state]):
        states = tuple(state for state in live if table[state].get(event) is end)
        if states:
            events.setdefault(states, []).append(str(event))
    for states, names in events.items():
        whence = "any state" if len(states) == len(live) else ", ".join(states)
        yield f"{', '.join(names)} ({whence})"


def _live_state(state: StrEnum, x: float, y: float, stays: list[StrEnum]) -> str:
    middle = x + _WIDTH / 2
    lines = [f'<text x="{middle}" y="{y + _HEIGHT + 18}" class="note">stays at: {stays[0]}</text>'] if stays else []
    lines += [
        f'<text x="{middle}" y="{y + _HEIGHT + 18 + _LINE * number}" class="note">{escape(event)}</text>'
        for number, event in enumerate(stays[1:], start=1)
    ]
    box = f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="20"/>'
    return f'{box}<text x="{middle}" y="{y + 25}" class="state">{escape(state)}</text>{"".join(lines)}'


def _arc(start: int, to: int, events: list[str], y: float) -> str:
    label = escape(" / ".join(events))
    if to == start + 1:
        x1, x2, middle = _x(start) + _WIDTH, _x(to), y + _HEIGHT / 2
        lines = [line for event in events for line in textwrap.wrap(event, 17)]
        words = "".join(
            f'<text x="{(x1 + x2) / 2}" y="{middle - 8 - 14 * number}" class="note">{escape(line)}</text>'
            for number, line in enumerate(reversed(lines))
        )
        return f'<path d="M{x1} {middle} L{x2} {middle}" class="arrow"/>{words}'
    x1, x2 = _x(start) + _WIDTH * 0.6, _x(to) + _WIDTH * 0.4
    lift = 34 * (to - start)
    curve = f'<path d="M{x1} {y} C{x1} {y - lift * 1.3} {x2} {y - lift * 1.3} {x2} {y}" class="arrow"/>'
    return f'{curve}<text x="{(x1 + x2) / 2}" y="{y - lift - 4}" class="note">{label}</text>'


def _end(state: StrEnum, ways: list[str], x: float, y: float, width: float, height: float) -> str:
    lines = "".join(
        f'<text x="{x + 12}" y="{y + 42 + _LINE * number}" class="way">{escape(way)}</text>'
        for number, way in enumerate(ways)
    )
    box = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" class="end"/>'
    return f'{box}<text x="{x + 12}" y="{y + 23}" class="state left">{escape(state)}</text>{lines}'
