"""The `mtosi-jms` command.

Each command is a module of this package with `add_parser(subparsers)`, which adds the parser named like the module,
and `run(args) -> int`, which returns the exit code. A command is imported when it is asked for, so that a missing
optional library breaks that command alone.

Exit codes: 0 done; 1 the input or the peer is at fault; 2 wrong usage; 130 interrupted. What was wrong stands on
standard error, one problem a line; a traceback is shown only where the environment sets MTOSI_JMS_DEBUG.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from types import ModuleType
from typing import Final

from mtosi_jms.cli import _console as console
from mtosi_jms.errors import MissingExtraError, MtosiError

__all__ = ["COMMANDS", "main"]

COMMANDS: Final = (
    "demo",
    "map",
    "validate",
    "inspect",
    "ingest",
    "diff",
    "topology",
    "alarms",
    "doctor",
    "deployment",
    "serve",
    "request",
    "publish",
    "subscribe",
    "replay",
    "queue",
    "spool",
    "broker",
)
DONE: Final = 0
AT_FAULT: Final = 1
WRONG_USAGE: Final = 2
INTERRUPTED: Final = 130
# What a shell reports for a program that lost its reader.
PIPE_CLOSED: Final = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        argv: the arguments without the program's name; by default those of the process.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A file name or a value that the terminal cannot show must not end the command.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(arguments)
        if isinstance(sys.stdout, io.TextIOBase):  # the caller may have closed it
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        console.problem("interrupted")
        return INTERRUPTED
    except (MtosiError, OSError) as error:
        return _report(error, _one_line(error))
    except Exception as error:  # noqa: BLE001 - the last place where a defect can be told without a traceback
        return _report(error, f"internal error, please report it: {type(error).__name__}: {_text_of(error)}")
    return code


def _text_of(error: Exception) -> str:
    """The error's own words; some foreign errors cannot even say them."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever it is, the user gets one line
        return "no further words"


def _run(arguments: list[str]) -> int:
    modules, missing = _commands(arguments)
    parser = _parser(modules, missing)
    try:
        args = parser.parse_args(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else WRONG_USAGE
    if args.command is None:
        parser.print_help(sys.stderr)
        return WRONG_USAGE
    code: int = modules[args.command].run(args)
    return code


def _commands(arguments: Sequence[str]) -> tuple[dict[str, ModuleType], dict[str, str]]:
    """The modules to offer, and for those that cannot be imported the reason.

    Raises:
        MissingExtraError: the very command that was asked for lacks an optional library.
    """
    asked = next((argument for argument in arguments if not argument.startswith("-")), None)
    modules: dict[str, ModuleType] = {}
    missing: dict[str, str] = {}
    for name in (asked,) if asked in COMMANDS else COMMANDS:
        try:
            modules[name] = importlib.import_module(f"{__name__}._{name}")
        except MissingExtraError as error:
            if name == asked:
                raise
            missing[name] = str(error)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}._{name}":
                missing[name] = f"needs {error.name}, which is not installed"
    return modules, missing


def _parser(modules: dict[str, ModuleType], missing: dict[str, str]) -> argparse.ArgumentParser:
    lines = "\n".join(f"  {name}: {reason}" for name, reason in missing.items())
    parser = argparse.ArgumentParser(
        prog="mtosi-jms",
        description="MTOSI over JMS: requests, replies and notifications of an OSS, and what they hold.",
        epilog=f"not available here:\n{lines}" if lines else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mtosi-jms {version()}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for module in modules.values():
        module.add_parser(subparsers)
    return parser


def version() -> str:
    """The version of the installed distribution; `unknown` where the package runs without one."""
    try:
        return metadata.version("mtosi-jms")
    except metadata.PackageNotFoundError:
        return "unknown"


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, MtosiError):
        reason = error.strerror or str(error) or type(error).__name__
        return f"{error.filename}: {reason}" if error.filename is not None else reason
    return str(error) or type(error).__name__


def _report(error: BaseException, text: str) -> int:
    console.problem(text)
    if os.environ.get("MTOSI_JMS_DEBUG"):
        raise error
    return AT_FAULT


def _discard_output() -> None:
    """Point standard output at nothing, or the interpreter complains once more when it flushes at its end."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
