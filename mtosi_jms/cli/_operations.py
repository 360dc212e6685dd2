"""Lists the operations of the stubs: what `request` can call and `serve` can offer.

A word selects the services and operations whose names contain it, in upper or lower case.
"""

from __future__ import annotations

import argparse
from typing import Any

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, add_stubs, completed_by
from mtosi_jms.inventory import load_stubs
from mtosi_jms.service import OperationInfo, ServiceInfo
from mtosi_jms.service.registry import services_of
from mtosi_jms.xmlbind import registered_packages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    word = parser.add_argument("word", nargs="?", default="", help="part of a service's or operation's name")
    completed_by(word, operation_names)
    add_stubs(parser)
    add_json(parser, "a line of JSON for each operation")


def operation_names() -> list[str]:
    """The operations of the shipped stubs that need no --release."""
    load_stubs(())
    return sorted({one.name for service in services_of("mtosi_jms.stubs") for one in service.operations})


def run(args: argparse.Namespace) -> int:
    """List the operations; 1 where none has the word."""
    load_stubs(args.stubs)
    found = [
        (package, service, operation)
        for package in registered_packages()
        for service in services_of(package)
        for operation in service.operations
        if args.word.lower() in f"{service.name}.{operation.name}".lower()
    ]
    if args.json:
        for one in found:
            terminal.print_json(_facts(*one))
    elif found:
        rows = [(service.name, operation.name, _answers(operation), package) for package, service, operation in found]
        terminal.table("", ("service", "operation", "answers", "stubs"), rows)
    if not found:
        terminal.problem(f"no operation has {args.word!r} in its name" if args.word else "the stubs have no operation")
        return 1
    return 0


def _facts(package: str, service: ServiceInfo, operation: OperationInfo) -> dict[str, Any]:
    return {
        "service": service.name,
        "operation": operation.name,
        "python_name": operation.python_name,
        "mep": operation.mep,
        "batches": bool(operation.batch_path),
        "stubs": package,
    }


def _answers(operation: OperationInfo) -> str:
    if operation.mep == "one-way":
        return "nothing"
    return "one response, or batches of objects" if operation.batch_path else "one response"
