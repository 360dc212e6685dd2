"""What the commands that run a Spark job share: arguments, progress, and how their results are shown."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from mtosi_jms.cli import _console as console
from mtosi_jms.cli._arguments import add_json, processors

SHOWN: Final = 20
"""Lines of a list that people are shown."""
NO_MESSAGE: Final = "make empty tables of a landing without a readable message"
NO_TABLE: Final = "take a folder without tables as a snapshot without objects"


class Result(Protocol):
    """What a job brought."""

    def summary(self) -> dict[str, Any]:
        """The result as plain values."""
        ...


R = TypeVar("R", bound=Result)


def add_job(parser: argparse.ArgumentParser, *, out: str, allow_empty: str) -> None:
    """Add the arguments that every job has.

    Args:
        parser: of the command.
        out: the folder that results go to by default.
        allow_empty: what `--allow-empty` does.
    """
    parser.add_argument("--out", type=Path, default=Path(out), help="folder for the result (%(default)s)")
    parser.add_argument("--allow-empty", action="store_true", help=allow_empty)
    parser.add_argument("--cores", type=processors, help="processors to use (all)")
    add_json(parser, "the summary as one JSON document")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the argument for settings of Spark."""
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a setting of Spark, such as spark.jars; may be given again",
    )


def _setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def run_job(
    args: argparse.Namespace,
    label: str,
    stages: int | None,
    job: Callable[[Callable[[str], None]], R],
    show: Callable[[R], None],
) -> int:
    """Run a job and show its result; 0.

    Args:
        args: of the command line.
        label: what the progress bar says.
        stages: how many stages the job has, None if unknown.
        job: the job; its argument is called at the beginning of each stage.
        show: prints the result for people.
    """
    with console.progress(label, stages) as advance:
        result = job(lambda stage: advance(1))
    if args.json:
        console.print_json(result.summary())
    else:
        show(result)
    return 0


def say_more(count: int, where: str) -> None:
    """Say where the rest of a long list is."""
    if count > SHOWN:
        console.say(f"and {count - SHOWN} more, in {where}", "dim")
