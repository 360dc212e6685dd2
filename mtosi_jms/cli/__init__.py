"""The `mtosi-jms` command.

Each command is a module with `add_arguments(parser)`, which declares its arguments, and `run(args) -> int`, which
returns the exit code; its docstring is what `--help` shows. The package that has the module names it in its
`registration.toml`. A command is imported when a user asks for it, so that a missing optional library breaks that
command alone. The public modules of this package are for commands.

Exit codes: 0 done; 1 the input or the peer is at fault; 2 wrong usage; the others are those of `program`.
Standard error says what was wrong, one problem a line.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Sequence
from typing import Final

from mtosi_jms.cli import terminal
from mtosi_jms.cli.program import WRONG_USAGE, run_program
from mtosi_jms.registry import registered, registered_module

__all__ = ["COMMANDS", "EXAMPLES", "main", "parser_for"]

COMMANDS: Final = {name: command["does"] for name, command in registered("commands").items()}
"""Each command and what it does, in the order of the help."""
EXAMPLES: Final = {name: command["example"] for name, command in registered("commands").items()}
"""For each command the arguments of an example, which `--help` shows."""
_GLOBAL_OPTIONS: Final = ("--quiet", "--no-color")


class _HelpFormatter(argparse.HelpFormatter):
    """Keeps the paragraphs of a description apart."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.strip().split("\n\n")
        return "\n\n".join(super(_HelpFormatter, self)._fill_text(one, width, indent) for one in paragraphs)


class _ShowVersion(argparse.Action):
    """Looks the version up only where it is asked for: that takes a tenth of a second."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib import metadata

        try:
            version = metadata.version("mtosi-jms")
        except metadata.PackageNotFoundError:
            version = "unknown"
        print(f"mtosi-jms {version}")
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, by default that of the process's arguments, and return its exit code."""
    return run_program(_run, argv)


def parser_for(command: str | None) -> argparse.ArgumentParser:
    """The parser of the command line, with the arguments of one command; otherwise with the list of commands. Raises
    MissingExtraError: the command lacks an optional library."""
    parser = argparse.ArgumentParser(
        prog="mtosi-jms",
        description="MTOSI over JMS: send, receive, inspect and analyse requests, replies and notifications of an OSS.",
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show program's version number and exit")
    parser.add_argument("--quiet", action="store_true", help="print only results and problems, no notes or progress")
    parser.add_argument("--no-color", action="store_true", help="print no colours, as with the variable NO_COLOR")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name in (command,) if command in COMMANDS else COMMANDS:
        subparser = subparsers.add_parser(name, help=COMMANDS[name])
        if name == command:
            module = registered_module("commands", name)
            subparser.description = module.__doc__
            subparser.formatter_class = _HelpFormatter
            subparser.epilog = f"Example: mtosi-jms {name} {EXAMPLES[name]}"
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    return parser


def _run(arguments: list[str]) -> int:
    arguments = _shown_as(arguments)
    command = next((argument for argument in arguments if not argument.startswith("-")), None)
    if command is not None and command not in COMMANDS:
        from mtosi_jms.cli.arguments import nearest

        terminal.problem(f"there is no command {command!r}; {nearest(command, COMMANDS)}")
        terminal.write("usage: mtosi-jms COMMAND ...; mtosi-jms --help lists the commands", stream=sys.stderr)
        return WRONG_USAGE
    parser = parser_for(command)
    try:
        args = parser.parse_args(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else WRONG_USAGE
    if args.command is None:
        parser.print_help(sys.stderr)
        return WRONG_USAGE
    if "log_json" in args:
        from mtosi_jms.cli.log import all_in_json

        with all_in_json(args):
            return _carried_out(args)
    return _carried_out(args)


def _carried_out(args: argparse.Namespace) -> int:
    if "provider_required" in args:
        from mtosi_jms.cli.providers import find_provider

        find_provider(args)
    if registered("commands")[args.command].get("reads_much"):
        _tell_slow_core()
    code: int = args.run(args)
    return code


def _tell_slow_core() -> None:
    from mtosi_jms.xmlbind import core

    if os.environ.get("MTOSI_JMS_CORE") != "python" and core().name == "python":
        terminal.note(
            "XML is read by the Python core, slower than by the native one: mtosi-jms doctor says how to get it"
        )


def _shown_as(arguments: list[str]) -> list[str]:
    """The arguments without those before the command that say how it shows things; they are obeyed."""
    own = list(itertools.takewhile(_GLOBAL_OPTIONS.__contains__, arguments))
    terminal.be_quiet("--quiet" in own)
    if "--no-color" in own:
        os.environ["NO_COLOR"] = "1"
    return arguments[len(own) :]
