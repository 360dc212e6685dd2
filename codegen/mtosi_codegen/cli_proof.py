"""The commands `verify` (checks generated stubs against their schemas) and `sample` (prints an example envelope)."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from mtosi_codegen.report import counted
from mtosi_jms.cli.arguments import local
from mtosi_jms.cli.terminal import say, tell

_MOST_SHOWN: Final = 200
"""The most differences that the text output shows; JSON has all."""


def add_parsers(commands: Any, names: Callable[[str], list[str]], package: Callable[[str], str]) -> None:
    """Add the parsers of these commands."""
    about = "check a generated package against the WSDLs and schemas that it was generated from"
    verify: argparse.ArgumentParser = commands.add_parser(
        "verify", help=about, description=f"{about[0].upper()}{about[1:]}."
    )
    verify.set_defaults(run=_verify)
    _add_sources(verify)
    verify.add_argument("--package", type=package, required=True, help="name of the package, dots allowed")
    verify.add_argument("--out", type=local, required=True, help="folder that contains the package: --out of generate")
    verify.add_argument(
        "--operations", type=names, metavar="A,B", help="only these operations, each [SERVICE.]OPERATION"
    )
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
        ("--min", "least", "only required content (the default)"),
        ("--max", "greatest", "also optional content, with two entries in each list; about 400 elements at most"),
        ("--random", "random", "a random part of the optional content"),
    ):
        kinds.add_argument(option, dest="kind", action="store_const", const=kind, default="least", help=what)
    sample.add_argument("--seed", type=int, default=0, metavar="N", help="seed for --random (0)")
    roles = sample.add_mutually_exclusive_group()
    for option, what in (
        ("response", "the operation's response instead of its request"),
        ("fault", "the first fault that the operation declares, instead of its request"),
    ):
        roles.add_argument(f"--{option}", dest="role", action="store_const", const=option, default="request", help=what)


def _add_sources(command: argparse.ArgumentParser) -> None:
    command.add_argument("sources", nargs="+", metavar="SOURCE", help="a WSDL, an XML Schema, or a folder of them")
    command.add_argument(
        "--bindings", choices=("jms", "all"), default="jms", help="all: include SOAP over HTTP (%(default)s)"
    )


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
        print(end="\r\033[K", file=sys.stderr)  # erases the progress bar
    seconds = round(time.perf_counter() - start, 3)
    failed = [finding for finding in proof.findings if finding.failed]
    for finding in failed:
        tell(str(finding))
    for doubt in proof.doubts:
        tell(f"note: {doubt}; xmlschema alone judges")
    verified = not (proof.differences or failed)
    operation_counts = Counter(message.service for message in proof.messages if message.role == "request")
    if args.json:
        content = {
            "verified": verified,
            "operations": operation_counts.total(),
            "messages": len(proof.messages),
            "types": proof.types,
            "instances": proof.instances,
            "elements": proof.elements,
            "differences": [{"path": one.path, "schema": one.schema, "stub": one.stub} for one in proof.differences],
            "skipped": [message.path for message in proof.skipped],
            "findings": [finding.as_json() for finding in failed],
            "doubts": proof.doubts,
            "seconds": seconds,
        }
        print(json.dumps(content, indent=2))
        return int(not verified)
    message_counts = Counter(message.service for message in proof.messages)
    width = max(map(len, ["service", *operation_counts]))
    say(f"{'service':{width}}  operations  messages  differences")
    for service, count in operation_counts.items():
        # Differences outside messages, such as in a type that no message uses, count only in the total.
        differing = sum(1 for one in proof.differences if one.path.startswith(f"{service}."))
        say(f"{service:{width}}  {count:10}  {message_counts[service]:8}  {differing:11}")
    for difference in proof.differences[:_MOST_SHOWN]:
        for line in (f"{difference.path}:", f"    schema: {difference.schema}", f"    stub:   {difference.stub}"):
            say(line)
    if len(proof.differences) > _MOST_SHOWN:
        say(f"and {len(proof.differences) - _MOST_SHOWN} more")
    for message in proof.skipped:
        say(f"{message.path}: not compared: no schema declares the element {message.element}")
    say(
        f"{package}: {counted(len(proof.differences), 'difference')}; {counted(operation_counts.total(), 'operation')},"
        f" {counted(len(proof.messages), 'message')}, {counted(proof.types, 'type')},"
        f" {counted(proof.instances, 'document')} with {counted(proof.elements, 'element')}, {seconds} s"
    )
    return int(not verified)


def _progress(done: int, total: int) -> None:
    filled = done * 40 // max(total, 1)  # schemas without operations have no messages
    print(f"\r[{'#' * filled}{'.' * (40 - filled)}] {done}/{total} messages", end="", file=sys.stderr, flush=True)


def _sample(args: argparse.Namespace) -> int:
    from mtosi_codegen.proof.sample import sample

    envelope = sample(
        args.operation, args.sources, kind=args.kind, seed=args.seed, role=args.role, bindings=args.bindings
    )
    print(envelope.decode(), end="")
    return 0
