"""The actions `down` and `status` of a command that starts a service in the background."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mtosi_jms.cli import terminal

__all__ = ["down_or_status"]


def down_or_status(
    args: argparse.Namespace,
    name: str,
    stop: Callable[[Path], bool],
    find: Callable[[Path], Any],
    show: Callable[..., Any],
) -> int:
    """Stop the service of a folder, or show it; return the exit code, 1 where `status` finds none that runs.

    Args:
        args: the command's: `action`, `command`, `dir` and `json`.
        stop: stops it, and returns whether one ran.
        find: returns it; None: none was started there.
        show: shows it, by a keyword as JSON.
    """
    if args.action == "down":
        ended = stop(args.dir)
        if args.json:
            terminal.print_json({"running": False, "ended": ended})
        else:
            terminal.say(f"the {name} has stopped" if ended else f"no {name} runs there")
        return 0
    found = find(args.dir)
    if found is not None and found.is_running():
        show(found, as_json=args.json)
        return 0
    if args.json:
        terminal.print_json({"running": False})
    else:
        terminal.say(f"no {name} runs there; mtosi-jms {args.command} up starts one", "warn")
    return 1
