"""What the commands that run a Spark job share: arguments, progress, and how their results are shown."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, as_usage, local, processors

SHOWN: Final = 20
"""Most lines of a list that are shown to people."""
FORMATS: Final = "parquet,json,csv"
"""Formats of tables that are replaced whole; JSON has an object a line, CSV has JSON in nested columns."""
NO_MESSAGE: Final = "make empty tables if the landing has no readable message"
NO_TABLE: Final = "treat a folder without tables as a snapshot without objects"


class Result(Protocol):
    """The result of a job."""

    def summary(self) -> dict[str, Any]:
        """The result as plain values."""
        ...


Options = TypeVar("Options")
R = TypeVar("R", bound=Result)


def add_job(
    parser: argparse.ArgumentParser,
    *,
    out: str,
    allow_empty: str,
    formats: tuple[str, str] = (FORMATS, "of the tables"),
) -> None:
    """Add the arguments that every job has. `out`: the folder that results go to by default. `allow_empty`: what
    `--allow-empty` does. `formats`: of the tables, joined by commas, the default first, and what to know of them."""
    names = formats[0].split(",")
    parser.add_argument("--out", type=local, default=Path(out), help="folder for the result (%(default)s)")
    parser.add_argument("--allow-empty", action="store_true", help=allow_empty)
    parser.add_argument("--format", default=names[0], choices=names, help=f"{formats[1]} ({names[0]})")
    parser.add_argument(
        "--where",
        default="",
        metavar="EXPR",
        help="write only rows that meet this condition in Spark SQL, such as complete",
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a Spark setting, such as spark.jars; may be repeated",
    )
    parser.add_argument("--cores", type=processors, help="processors to use (all)")
    add_json(parser, "the summary as one JSON document")


def add_engine(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--engine`. `what`: the local engine is chosen for."""
    parser.add_argument(
        "--engine",
        default="auto",
        choices=("auto", "local", "spark"),
        help=f"what reads and writes: local needs no Java; auto: local for {what}, from up to 4 GiB of files, "
        "otherwise spark (auto)",
    )


def shared(args: argparse.Namespace) -> dict[str, Any]:
    """The options of a job, from the arguments of `add_job`."""
    names = ("out", "cores", "allow_empty", "format", "where")
    return {**{name: getattr(args, name) for name in names}, "conf": dict(args.conf)}


def _setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def run_job(
    args: argparse.Namespace,
    label: str,
    job: Callable[[terminal.Stages | None], R],
    show: Callable[[R], None],
) -> int:
    """Run a job and show its result; 0. `label`: what the command does, in front of each stage. `job`: the job; its
    argument is told how far it is, or None where nobody is to be told. `show`: prints the result for people."""
    with contextlib.nullcontext() if args.json else terminal.stages(label) as progress:
        result = job(progress)
    if args.json:
        terminal.print_json(result.summary())
    else:
        show(result)
    return 0


def run_on_engine(
    args: argparse.Namespace,
    label: str,
    options: Options,
    choose: Callable[[Options, Any], tuple[str, str]],
    job_of: Callable[[str], Callable[..., R]],
    show: Callable[[R], None],
) -> int:
    """Choose the engine that `--engine` leaves open, run a job on it as `run_job` does, and say which it was; 0.

    Args:
        label: what the command does, in front of each stage.
        options: of the job.
        choose: returns the engine for these options, and why.
        job_of: returns the function that runs the job on an engine; Spark is imported only if it is the one.
        show: prints the result for people.
    """
    with as_usage() if args.engine == "local" else contextlib.nullcontext():
        engine, why = choose(options, args.engine)
    done = run_job(args, label, lambda progress: job_of(engine)(options, progress=progress), show)
    if not args.json:
        terminal.note(f"engine {engine}: {why}")
    return done


def say_more(count: int, where: str) -> None:
    """Print where the rest of a long list is."""
    if count > SHOWN:
        terminal.say(f"and {count - SHOWN} more, in {where}", "dim")
