"""What the commands that run a Spark job share: arguments, progress, and how their results are shown."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, as_usage, local, processors

if TYPE_CHECKING:
    from mtosi_jms.report import Report, SequenceLine

SHOWN: Final = 20
"""Most lines of a list that are shown to people."""
FORMATS: Final = "parquet,json,csv"
"""Formats of tables that are replaced whole; JSON has an object a line, CSV has JSON in nested columns."""
NO_MESSAGE: Final = "make empty tables if the landing has no readable message"
_SEQUENCE: Final = ("sequence", "batches", "expected", "missing", "duplicates", "conflicts", "complete")
NO_TABLE: Final = "treat a folder without tables as a snapshot without objects"


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
        help="write only rows that meet this SQL condition, such as complete; in Spark SQL, or local in DuckDB's",
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=setting,
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


def setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def run_on_engine(args: argparse.Namespace, label: str, name: str, options: Any) -> int:
    """Choose the engine that `--engine` leaves open, run a job on it, show its result, and say which it was; 0.
    `label`: what the command does, in front of each stage. `name`: of the job: `mtosi_jms.tables.NAME` chooses, and has
    the job; Spark's is `run_NAME`. `options`: of the job."""
    local = import_module(f"mtosi_jms.tables.{name}")
    with as_usage() if args.engine == "local" else contextlib.nullcontext():
        engine, why = local.choose(options, args.engine)
    # Spark is imported only if it is the one.
    run = local.run_local if engine == "local" else getattr(import_module("mtosi_jms.spark.jobs"), f"run_{name}")
    with contextlib.nullcontext() if args.json else terminal.stages(label) as progress:
        result = run(options, progress=progress)
    if args.json:
        terminal.print_json(result.summary())
        return 0
    _show(local.page_of(result, options), result.stages)
    if not getattr(result, "dry_run", False):
        terminal.say(f"{result.out}/_report/{'report' if name == 'ingest' else name}.html")
    terminal.note(f"engine {engine}: {why}")
    return 0


def _show(page: Report, stages: Mapping[str, float]) -> None:
    """Print what is on the page of a job, but for samples, pictures and links."""
    for table in page.tables:
        _table(table.title, table.columns, table.rows)
    for title, counts in page.charts.items():
        _table(title, ("", "number"), list(counts.items()))
    sequences = sorted(page.sequences, key=lambda line: (line.complete, not line.conflicts))
    _table("Sequences", _SEQUENCE, [_sequence(line) for line in sequences], page.sequence_count)
    _table("Rejected", ("file", "line", "reason"), [(line.file, line.line, line.reason) for line in page.rejects])
    for note in page.notes:
        terminal.say(note, "warn")
    _table("Time", ("stage", "seconds"), [(name, f"{seconds:.1f}") for name, seconds in stages.items()])
    for text, command in page.steps.items():
        terminal.note(f"{text}: {command}")
    facts = {fact.label: fact.value for fact in page.facts}
    spent = facts.pop("time")
    terminal.say(f"{', '.join(f'{value} {label}' for label, value in facts.items())}; in {spent}", "title")


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], count: int = 0) -> None:
    """Print the beginning of a table that may be long; nothing if it is empty."""
    if rows:
        shown = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows[:SHOWN]]
        terminal.table(title, columns, shown)
    if (more := max(count, len(rows)) - SHOWN) > 0:
        terminal.say(f"and {more:,} more", "dim")


def _sequence(line: SequenceLine) -> tuple[object, ...]:
    numbers = ", ".join(map(str, line.missing[:10])) + (", ..." if line.missing_count > 10 else "")
    is_open = line.expected is None
    expected, missing = "unknown" if is_open else line.expected, numbers or ("the end" if is_open else "")
    complete = "yes" if line.complete else "no"
    return line.name, line.batches, expected, missing, line.duplicates, line.conflicts, complete
