"""Checks the interfaces and destinations of an OS, and shows the sheet for the operators of both sides (O12b).

The sheet lists destinations, properties for selectors, and times to live. The exit code is 1 if something is wrong.
Something that is only unusual is a note.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, add_stubs
from mtosi_jms.deployment import read_deployment
from mtosi_jms.jms import NamingContext
from mtosi_jms.service.registry import services_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a deployment in TOML")
    parser.add_argument(
        "--names", metavar="FILE", help="jndi.properties or TOML, in place of the deployment's own names"
    )
    add_stubs(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    for package in args.stubs:
        services_of(package)
    deployment = read_deployment(args.file)
    names = deployment.names if args.names is None else NamingContext.of(args.names)
    problems = deployment.problems(names)
    for problem in problems:
        (terminal.problem if problem.fatal else terminal.note)(f"{args.file}: {problem.message}")
    if any(problem.fatal for problem in problems):
        return 1
    sheet = deployment.sheet(names)
    if args.json:
        terminal.print_json(sheet)
    else:
        _show(sheet)
    return 0


def _show(sheet: Mapping[str, Any]) -> None:
    columns = ("role", "interfaces", "name", "kind", "physical")
    rows = [
        (entry["role"], ", ".join(entry["services"] + entry["categories"]), *map(entry.get, columns[2:]))
        for entry in sheet["destinations"]
    ]
    terminal.table(f"destinations of {sheet['name']}", columns, rows)
    messages, notifications = sheet["messages"], sheet["notifications"]
    times = [(f"messages of type {kind}", life) for kind, life in messages["time_to_live_ms"].items()]
    if notifications is not None:
        table = [tuple(entry[key] for key in ("property", "type", "form")) for entry in notifications["properties"]]
        terminal.table("properties of notifications", ("property", "type", "form"), table)
        times += [
            (f"{entry['event']} on {entry['category']}", entry["time_to_live_ms"]) for entry in notifications["events"]
        ]
        times.append(("other events", notifications["time_to_live_ms"]))
    terminal.table("time to live", ("what", "ms, 0 for ever"), times)
    terminal.say(f"delivery {messages['delivery_mode']}, priority {messages['priority']} unless a call says otherwise")
