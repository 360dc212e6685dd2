"""`mtosi-jms deployment`: checks a deployment file and prints its sheet, for the operators of both sides (O12b)."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from mtosi_jms.cli import _console as console
from mtosi_jms.cli._arguments import words
from mtosi_jms.deployment import read_deployment
from mtosi_jms.jms import NamingContext
from mtosi_jms.service.registry import services_of


def add_parser(subparsers: Any) -> None:
    """Add the parser of this command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "deployment",
        help="check the deployment of an OS and show its sheet",
        description="Checks which interfaces of an OS are reached at which destinations, and shows the sheet: "
        "destinations, properties for selectors, times to live. Exit code 1 if something is wrong; what is only "
        "unusual is noted.",
    )
    parser.add_argument("file", metavar="FILE", help="a deployment, TOML")
    parser.add_argument(
        "--names", metavar="FILE", help="jndi.properties or TOML, in place of the deployment's own names"
    )
    parser.add_argument(
        "--stubs", type=words, default=(), metavar="PACKAGE", help="generated packages, joined by commas"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(args: argparse.Namespace) -> int:
    """Show the sheet; 1 if the deployment has a problem."""
    for package in args.stubs:
        services_of(package)
    deployment = read_deployment(args.file)
    names = deployment.names if args.names is None else NamingContext.of(args.names)
    problems = deployment.problems(names)
    for problem in problems:
        tell = console.problem if problem.fatal else console.note
        tell(f"{args.file}: {problem.message}")
    if any(problem.fatal for problem in problems):
        return 1
    sheet = deployment.sheet(names)
    if args.json:
        console.print_json(sheet)
    else:
        _show(sheet)
    return 0


def _show(sheet: Mapping[str, Any]) -> None:
    columns = ("role", "interfaces", "name", "kind", "physical name")
    rows = [
        (entry["role"], ", ".join(entry["services"] + entry["categories"]), *(entry[key] for key in _WHERE))
        for entry in sheet["destinations"]
    ]
    console.table(f"destinations of {sheet['name']}", columns, rows)
    messages, notifications = sheet["messages"], sheet["notifications"]
    lives = [(f"messages of type {kind}", life) for kind, life in messages["time_to_live_ms"].items()]
    if notifications is not None:
        table = [tuple(entry[key] for key in ("property", "type", "form")) for entry in notifications["properties"]]
        console.table("properties of notifications", ("property", "type", "form"), table)
        lives += [
            (f"{entry['event']} on {entry['category']}", entry["time_to_live_ms"]) for entry in notifications["events"]
        ]
        lives.append(("other events", notifications["time_to_live_ms"]))
    console.table("time to live", ("what", "ms, 0 for ever"), lives)
    console.say(f"delivery {messages['delivery_mode']}, priority {messages['priority']} unless a call says otherwise")


_WHERE = ("name", "kind", "physical")
