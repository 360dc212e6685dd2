"""State tables as Markdown, so that the documentation shows the tables that the code runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final, TypeVar

from mtosi_jms.patterns import _batch_table, _simple

S = TypeVar("S", bound=Enum)
V = TypeVar("V", bound=Enum)


def render_table(table: Mapping[S, Mapping[V, S]], final: Collection[S]) -> str:
    """A state table as a Markdown table: one row an event, one column a live state, the next state in the cell.

    `.` is the same state again, an empty cell a pair that cannot occur. Final states have no column: they are never
    left. The text ends with a line break.
    """
    live = [state for state in table if state not in final]
    events = list(dict.fromkeys(event for row in table.values() for event in row))
    lines = [
        "| event | " + " | ".join(f"in *{state.value}*" for state in live) + " |",
        "|---" * (len(live) + 1) + "|",
    ]
    for event in sorted(events, key=list(type(events[0])).index):
        cells = [_cell(state, table[state].get(event), final) for state in live]
        lines.append(f"| {event.value} | " + " | ".join(cells) + " |")
    lines += ["", "Final: " + ", ".join(f"**{state.value}**" for state in table if state in final) + "."]
    return "\n".join(lines) + "\n"


def _cell(state: S, following: S | None, final: Collection[S]) -> str:
    if following is None:
        return ""
    if following is state:
        return "."
    return f"**{following.value}**" if following in final else str(following.value)


TABLES: Final[dict[str, str]] = {
    "simple": render_table(_simple.TABLE, _simple.FINAL),
    "batches": render_table(_batch_table.TABLE, _batch_table.FINAL),
}
"""The rendered tables by the name that stands in the documentation's markers."""

_MARKED = re.compile(r"(<!-- table: (?P<name>\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def refresh(text: str) -> str:
    """A Markdown text with the tables between `<!-- table: NAME -->` and `<!-- end of table -->` made anew.

    Raises:
        KeyError: a marker that names no table.
    """
    return _MARKED.sub(lambda found: f"{found[1]}\n{TABLES[found['name']]}\n{found[3]}", text)
