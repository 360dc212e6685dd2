"""`mtosi-codegen verify` and `sample`: proof of generated stubs, and envelopes to begin with."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_SHOWN: Final = 200


def add_parsers(commands: Any, names: Callable[[str], list[str]], package: Callable[[str], str]) -> None:
    """Add the parsers of these commands.

    Args:
        names: reads a list of operations.
        package: reads the name of a package.
    """
    about = "prove a generated package against its sources, message by message"
    verify: argparse.ArgumentParser = commands.add_parser(
        "verify", help=about, description=f"{about[0].upper()}{about[1:]}."
    )
    verify.set_defaults(run=_verify)
    _add_sources(verify)
    verify.add_argument("--package", type=package, required=True, help="name of the package, dots allowed")
    verify.add_argument("--out", type=Path, required=True, help="folder that the package is in")
    verify.add_argument("--operations", type=names, metavar="A,B", help="only these ([SERVICE.]OPERATION)")
    verify.add_argument("--json", action="store_true", help="print JSON")
    about = "print a valid envelope with a message of an operation"
    sample: argparse.ArgumentParser = commands.add_parser(
        "sample", help=about, description=f"{about[0].upper()}{about[1:]}."
    )
    sample.set_defaults(run=_sample)
    sample.add_argument("operation", metavar="OPERATION", help="[SERVICE.]OPERATION")
    _add_sources(sample)
    kinds = sample.add_mutually_exclusive_group()
    for option, kind, what in (
        ("--min", "least", "what is required (the default)"),
        ("--max", "greatest", "everything, lists twice, to some 400 elements"),
        ("--random", "random", "a part by chance"),
    ):
        kinds.add_argument(option, dest="kind", action="store_const", const=kind, default="least", help=what)
    sample.add_argument("--seed", type=int, default=0, metavar="N", help="what chance starts from (0)")
    roles = sample.add_mutually_exclusive_group()
    for option in ("response", "fault"):
        what = f"the operation's {option} instead of its request"
        roles.add_argument(f"--{option}", dest="role", action="store_const", const=option, default="request", help=what)


def _add_sources(command: argparse.ArgumentParser) -> None:
    command.add_argument("sources", nargs="+", metavar="SOURCE", help="a WSDL, an XML Schema, or a folder of them")
    command.add_argument("--bindings", choices=("jms", "all"), default="jms", help="all takes HTTP bindings too")


def _verify(args: argparse.Namespace) -> int:
    from mtosi_codegen.proof.verify import verify

    start = time.perf_counter()
    package: Path = args.out.joinpath(*args.package.split("."))
    proof = verify(
        args.sources,
        package,
        operations=args.operations,
        bindings=args.bindings,
        progress=_progress if sys.stderr.isatty() else None,
    )
    if sys.stderr.isatty():
        print(end="\r\033[K", file=sys.stderr)
    seconds = round(time.perf_counter() - start, 3)
    failed = [finding for finding in proof.findings if finding.failed]
    for finding in failed:
        print(finding, file=sys.stderr)
    operations = Counter(message.service for message in proof.messages if message.role == "request")
    if args.json:
        content = {
            "verified": not proof.differences and not failed,
            "operations": operations.total(),
            "messages": len(proof.messages),
            "types": proof.types,
            "instances": proof.instances,
            "elements": proof.elements,
            "differences": [{"path": one.path, "schema": one.schema, "stub": one.stub} for one in proof.differences],
            "skipped": [message.path for message in proof.skipped],
            "findings": [finding.as_json() for finding in failed],
            "seconds": seconds,
        }
        print(json.dumps(content, indent=2))
        return int(bool(proof.differences or failed))
    messages = Counter(message.service for message in proof.messages)
    width = max(map(len, ["service", *operations]))
    print(f"{'service':{width}}  operations  messages  differences")
    for service, count in operations.items():
        differing = sum(1 for one in proof.differences if one.path.startswith(f"{service}."))
        print(f"{service:{width}}  {count:10}  {messages[service]:8}  {differing:11}")
    for difference in proof.differences[:_SHOWN]:
        print(f"{difference.path}:\n    schema: {difference.schema}\n    stub:   {difference.stub}")
    for message in proof.skipped:
        print(f"{message.path}: not compared, no schema has the element {message.element}")
    if len(proof.differences) > _SHOWN:
        print(f"and {len(proof.differences) - _SHOWN} more")
    print(
        f"{package}: {len(proof.differences)} differences; {operations.total()} operations, {len(proof.messages)}"
        f" messages, {proof.types} types, {proof.instances} instances of {proof.elements} elements, {seconds} s"
    )
    return int(bool(proof.differences or failed))


def _progress(done: int, total: int) -> None:
    filled = done * 40 // total
    print(f"\r[{'#' * filled}{'.' * (40 - filled)}] {done}/{total} messages", end="", file=sys.stderr, flush=True)


def _sample(args: argparse.Namespace) -> int:
    from mtosi_codegen.proof.sample import sample

    envelope = sample(
        args.operation, args.sources, kind=args.kind, seed=args.seed, role=args.role, bindings=args.bindings
    )
    print(envelope.decode(), end="")
    return 0
