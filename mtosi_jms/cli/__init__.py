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
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Final

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import SHOWING, Parser, complete, nearest, shown_as
from mtosi_jms.cli.program import WRONG_USAGE, run_program
from mtosi_jms.registry import registered, registered_module

__all__ = ["COMMANDS", "EXAMPLES", "GROUPS", "check_command", "main", "parser_for"]

COMMANDS: Final = {name: command["does"] for name, command in registered("commands").items()}
"""Each command and what it does, in the order of the help."""
EXAMPLES: Final = {name: command["example"] for name, command in registered("commands").items()}
"""For each command the arguments of an example, which `--help` shows."""
GROUPS: Final = ("exchange", "landing", "broker", "bridge", "tools")
"""The groups of commands, in the order of the help."""


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
    if argv is None:
        complete(parser_for)
    return run_program(_run, argv)


class _Parser(Parser):
    """Lists the commands in groups."""

    def format_help(self) -> str:
        width = max(map(len, COMMANDS))
        groups: dict[str, list[str]] = {title: [] for title in GROUPS}
        for name, command in registered("commands").items():
            groups[command["group"]].append(f"  {name.ljust(width)}  {command['does']}")
        columns = max(shutil.get_terminal_size().columns - 2, 40)
        lines = [f"usage: {self.prog} COMMAND [options]", "", *textwrap.wrap(self.description or "", columns)]
        for title, commands in groups.items():
            lines += ["", f"{title}:", *commands]
        lines += [
            "",
            "options of every command:",
            *(f"  {name.ljust(width)}  {does}" for name, does in SHOWING.items()),
        ]
        lines += ["", f"{self.prog} help COMMAND explains a command, with an example; {self.prog} --version"]
        hang = " " * (width + 4)
        cut = (
            textwrap.wrap(line, columns, subsequent_indent=hang if line[:1] == " " else "") or [""] for line in lines
        )
        return "\n".join(itertools.chain.from_iterable(cut)) + "\n"


def parser_for(command: str | None) -> argparse.ArgumentParser:
    """The parser of the command line, with the arguments of one command; otherwise with the list of commands. Raises
    MissingExtraError: the command lacks an optional library."""
    parser = _Parser(
        prog="mtosi-jms",
        description="MTOSI over JMS: send, receive, inspect and analyse requests, replies and notifications of an OSS.",
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show program's version number and exit")
    for option, does in SHOWING.items():
        parser.add_argument(option, action="store_true", help=does)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    for name in (command,) if command in COMMANDS else COMMANDS:
        subparser = subparsers.add_parser(name, help=COMMANDS[name])
        if name == command:
            module = registered_module("commands", name)
            subparser.description = module.__doc__
            subparser.epilog = f"Example: mtosi-jms {name} {EXAMPLES[name]}"
            module.add_arguments(subparser)
            for option in SHOWING:  # so that a shell completes them; `shown_as` has taken them
                subparser.add_argument(option, action="store_true", help=argparse.SUPPRESS)
            subparser.set_defaults(run=module.run)
    return parser


def check_command(name: str) -> None:
    """Raises ArgumentError: there is no such command; it suggests one."""
    if name not in COMMANDS:
        hint = f"{nearest(name, COMMANDS)} (usage: mtosi-jms COMMAND; mtosi-jms help lists them)"
        raise argparse.ArgumentError(None, f"there is no command {name!r}; {hint}")


def _run(arguments: list[str]) -> int:
    arguments = shown_as(arguments)
    command = next((argument for argument in arguments if not argument.startswith("-")), None)
    if command is not None:
        check_command(command)
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
