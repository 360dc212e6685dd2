"""`mtosi-jms doctor`: what this installation can do, each shortcoming with its fix."""

from __future__ import annotations

import argparse
from typing import Any

from mtosi_jms.cli import _checkup as checkup
from mtosi_jms.cli import _console as console
from mtosi_jms.cli._providers import mask_url
from mtosi_jms.transport import login

_MARKS: dict[checkup.Status, tuple[str, console.Style]] = {
    "ok": ("ok", "good"),
    "missing": ("--", "warn"),
    "fault": ("!!", "bad"),
}


def add_parser(subparsers: Any) -> None:
    """Add the parser of this command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "doctor",
        help="say what this installation can do, and how to get the rest",
        description="Looks at Python, the optional libraries, Java, schemas and stubs, and at a broker if one is "
        "given. Exit code 1 if something that is always needed, or the broker, is out of order.",
    )
    parser.add_argument(
        "--url",
        default=login.url_from_environment(),
        help=f"a broker to reach, such as stomp://host:61613 or memory:; else from {login.URL}",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(args: argparse.Namespace) -> int:
    """Show the checks; 1 if something that is needed is at fault."""
    if args.url is not None:
        mask_url(args.url)
    checks = checkup.all_checks(args.url)
    healthy = all(check.status != "fault" for check in checks)
    if args.json:
        console.print_json({"ok": healthy, "checks": [check.to_json() for check in checks]})
        return 0 if healthy else 1
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark, style = _MARKS[check.status]
        fix = f"; {check.fix}" if check.fix else ""
        console.say(f"{mark}  {check.name.ljust(width)}  {check.detail}{fix}", style)
    return 0 if healthy else 1
