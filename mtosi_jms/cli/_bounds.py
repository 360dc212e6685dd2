"""The bounds, as `mtosi-jms doctor` prints them."""

from __future__ import annotations

from typing import Any

from mtosi_jms.bounds import table
from mtosi_jms.cli import terminal


def bounds() -> dict[str, Any]:
    """The bounds for `--json`, under `bounds`."""
    return {"bounds": [bound._asdict() for bound in table()]}


def show_bounds() -> None:
    """Prints the bounds, by door."""
    door = ""
    terminal.say("bounds: what others can make it spend by default")
    for bound in table():
        if bound.door != door:
            door = bound.door
            terminal.say(f"  {door}")
        changed = f" ({', '.join(bound.options)})" if bound.options else ""
        terminal.say(f"    {bound.shown.rjust(20)}  {bound.counts}{changed}")
