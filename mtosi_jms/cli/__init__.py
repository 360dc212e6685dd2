"""The `mtosi-jms` command.

Each command is a module of this package, `_NAME.py`, with `add_arguments(parser)`, which declares its arguments, and
`run(args) -> int`, which returns the exit code; its docstring is what `--help` shows. `COMMANDS` is the one table of
them. A command is imported when a user asks for it, so that a missing optional library breaks that command alone.

Exit codes: 0 done; 1 the input or the peer is at fault; 2 wrong usage; the others are those of `program`.
Standard error says what was wrong, one problem a line.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Final

from mtosi_jms.cli import _console as console
from mtosi_jms.cli.program import WRONG_USAGE, run_program

__all__ = ["COMMANDS", "EXAMPLES", "main", "parser_for"]

COMMANDS: Final = {
    "demo": "run the main job end to end on a generated network",
    "map": "show the JMS headers and properties that an envelope gets",
    "validate": "check documents against the schemas",
    "inspect": "show the operation, header and objects of envelopes",
    "ingest": "turn landed envelopes into Parquet with Spark, and report which sequences are complete",
    "diff": "compare two snapshots: objects created and deleted, attributes changed",
    "topology": "turn a snapshot into nodes and edges, ready for GraphFrames",
    "alarms": "turn landed alarms into a table",
    "doctor": "show what this installation can do, and how to get the rest",
    "new": "make a project that runs: a requestor, supplier, subscriber or Spark job",
    "operations": "list the operations that can be called or served",
    "deployment": "check the deployment of an OS and show its sheet",
    "serve": "answer requests as a supplier OS, from a generated or a recorded network",
    "request": "call an operation of a supplier and show its replies",
    "publish": "send notifications in files to a topic",
    "subscribe": "show the notifications that arrive on a topic",
    "replay": "send landed messages again",
    "queue": "browse, count, copy, move or purge the messages of a queue",
    "spool": "list, show, verify, redrive or withdraw the messages of an outbox or inbox",
    "mq": "convert files of IBM MQ messages into a landing, and back",
    "jvm": "fetch the Java clients of JMS providers",
    "broker": "start, stop or show a real Apache ActiveMQ broker for development",
    "console": "watch exchanges, destinations, notifications and dead letters in the browser",
    "gateway": "pass requests between HTTP and JMS, both ways",
    "bridge": "forward events of a CORBA channel to JMS, or JMS messages to a channel",
    "channel": "start a notification service for development; publish and subscribe to event channels",
    "completion": "print a script that completes commands and options for a shell",
}
"""Each command and what it does, in the order of the help."""
EXAMPLES: Final = {
    "demo": "--elements 2000 --batch-size 200",
    "map": "landing/*.xml --json",
    "validate": "landing --explain",
    "inspect": "reply.xml",
    "ingest": "landing --out inventory",
    "diff": "monday tuesday",
    "topology": "inventory",
    "alarms": "landing",
    "doctor": "--url stomp://broker:61613",
    "new": "requestor my-requestor",
    "operations": "managedElement",
    "deployment": "os.toml",
    "serve": "--url stomp://broker:61613 --destination queue:EMS.OS --elements 5000",
    "request": "getAllManagedElements --url stomp://broker:61613 --to queue:EMS.OS --batch-size 500",
    "publish": "alarm.xml --url stomp://broker:61613 --topic topic:FAULT",
    "subscribe": "--url stomp://broker:61613 --topic topic:FAULT",
    "replay": "landing --url stomp://broker:61613 --to queue:TEST",
    "queue": "browse queue:EMS.OS --url stomp://broker:61613",
    "spool": "list /var/lib/os/outbox",
    "mq": "read unloaded/ --out landing",
    "jvm": "fetch artemis",
    "broker": "up",
    "gateway": "--to queue:EMS.OS --listen 127.0.0.1:8080 --url stomp://broker:61613",
    "bridge": "--from corbaloc::ems:4711/NotificationService --to topic:FAULT --url stomp://broker:61613",
    "channel": "up",
    "console": "--url stomp://broker:61613 --watch queue:EMS.OS",
    "completion": "bash",
}
"""For each command the arguments of an example, which `--help` shows."""
_GLOBAL_OPTIONS: Final = ("--quiet", "--no-color")
_READS_MUCH: Final = ("demo", "ingest", "serve", "gateway", "console")
"""Commands that say so where the slower core reads their XML, though nobody asked for it."""
_ELSEWHERE: Final = {"console": "_console_command"}
"""Modules of commands whose name another module has: `_console` is how all commands write."""


class _HelpFormatter(argparse.HelpFormatter):
    """Keeps the paragraphs of a description apart."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.strip().split("\n\n")
        return "\n\n".join(super(_HelpFormatter, self)._fill_text(one, width, indent) for one in paragraphs)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        argv: the arguments without the program's name; by default those of the process.
    """
    return run_program(_run, argv)


def parser_for(command: str | None) -> argparse.ArgumentParser:
    """The parser of the command line, with the arguments of one command; otherwise with the list of commands.

    Raises:
        MissingExtraError: the command lacks an optional library.
    """
    parser = argparse.ArgumentParser(
        prog="mtosi-jms",
        description="MTOSI over JMS: send, receive, inspect and analyse requests, replies and notifications of an OSS.",
    )
    parser.add_argument("--version", action="version", version=f"mtosi-jms {version()}")
    parser.add_argument("--quiet", action="store_true", help="print only results and problems, no notes or progress")
    parser.add_argument("--no-color", action="store_true", help="print no colours, as with the variable NO_COLOR")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name in (command,) if command in COMMANDS else COMMANDS:
        subparser = subparsers.add_parser(name, help=COMMANDS[name])
        if name == command:
            module = importlib.import_module(f"{__name__}.{_ELSEWHERE.get(name, f'_{name}')}")
            subparser.description = module.__doc__
            subparser.formatter_class = _HelpFormatter
            subparser.epilog = f"Example: mtosi-jms {name} {EXAMPLES[name]}"
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    return parser


def version() -> str:
    """The version of the installed distribution; `unknown` where the package runs without one."""
    try:
        return metadata.version("mtosi-jms")
    except metadata.PackageNotFoundError:
        return "unknown"


def _run(arguments: list[str]) -> int:
    arguments = _shown_as(arguments)
    command = next((argument for argument in arguments if not argument.startswith("-")), None)
    if command is not None and command not in COMMANDS:
        from mtosi_jms.cli._arguments import nearest

        console.problem(f"there is no command {command!r}; {nearest(command, COMMANDS)}")
        console.write("usage: mtosi-jms COMMAND ...; mtosi-jms --help lists the commands", stream=sys.stderr)
        return WRONG_USAGE
    parser = parser_for(command)
    try:
        args = parser.parse_args(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else WRONG_USAGE
    if args.command is None:
        parser.print_help(sys.stderr)
        return WRONG_USAGE
    if "provider_required" in args:
        from mtosi_jms.cli._providers import find_provider

        find_provider(args)
    if command in _READS_MUCH:
        _tell_slow_core()
    code: int = args.run(args)
    return code


def _tell_slow_core() -> None:
    from mtosi_jms.xmlbind import core

    if os.environ.get("MTOSI_JMS_CORE") != "python" and core().name == "python":
        console.note(
            "XML is read by the Python core, slower than by the native one: mtosi-jms doctor says how to get it"
        )


def _shown_as(arguments: list[str]) -> list[str]:
    """The arguments without those before the command that say how it shows things; they are obeyed."""
    own = list(itertools.takewhile(_GLOBAL_OPTIONS.__contains__, arguments))
    console.be_quiet("--quiet" in own)
    if "--no-color" in own:
        os.environ["NO_COLOR"] = "1"
    return arguments[len(own) :]
