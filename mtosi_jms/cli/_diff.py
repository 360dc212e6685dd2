"""`mtosi-jms diff`: what changed between two snapshots that `ingest` made."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.cli import _console as console
from mtosi_jms.cli._arguments import processors, words

if TYPE_CHECKING:
    from mtosi_jms.spark.jobs import DiffResult

_SHOWN: Final = 20


def add_parser(subparsers: Any) -> None:
    """Add the parser of this command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "diff",
        help="compare two snapshots: objects created and deleted, attributes changed",
        description="Compares the tables of two ingests, object by object, by full name. Writes "
        "OUT/changes/objectType=X/*.parquet and OUT/_report/diff.json. Differences do not fail the command.",
    )
    parser.add_argument("old", metavar="OLD", help="folder of the snapshot before, as ingest writes it")
    parser.add_argument("new", metavar="NEW", help="folder of the snapshot after")
    parser.add_argument("--out", type=Path, default=Path("out/diff"), help="folder for the result (out/diff)")
    parser.add_argument("--object", type=words, default=(), metavar="TYPE,...", help="object types to compare (all)")
    parser.add_argument("--ignore", type=words, default=(), metavar="COLUMN,...", help="columns that do not count")
    parser.add_argument(
        "--allow-empty", action="store_true", help="take a folder without tables as a snapshot without objects"
    )
    parser.add_argument("--cores", type=processors, help="processors to use (all)")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON document")


def run(args: argparse.Namespace) -> int:
    """Compare; 0 whether or not something differs.

    Raises:
        MtosiError: it could not, for the reasons that `mtosi_jms.spark.jobs.run_diff` lists.
    """
    from mtosi_jms.spark.jobs import DiffOptions, run_diff

    options = DiffOptions(
        old=args.old,
        new=args.new,
        out=args.out,
        object_types=args.object,
        ignore=args.ignore,
        cores=args.cores,
        allow_empty=args.allow_empty,
    )
    with console.progress("comparing") as advance:
        result = run_diff(options, progress=lambda stage: advance(1))
    if args.json:
        console.print_json(result.summary())
    else:
        show(result)
    return 0


def show(result: DiffResult) -> None:
    """Print what differs, as tables, and what to know about it."""
    from mtosi_jms.spark.jobs import KINDS

    rows = [(name, *(f"{counts[key]:,}" for key in ("old", "new", *KINDS))) for name, counts in result.types.items()]
    console.table("objects", ("object type", "old", "new", *KINDS), rows)
    attributes = [
        (name, attribute, f"{number:,}")
        for name, counts in result.attributes.items()
        for attribute, number in list(counts.items())[:_SHOWN]
    ]
    if attributes:
        console.table("changed attributes", ("object type", "attribute", "objects"), attributes)
    for note in result.columns:
        console.note(str(note))
    for which, complete in (("old", result.old_complete), ("new", result.new_complete)):
        if complete is False:
            console.note(f"the {which} snapshot is not complete: what it lacks counts as {_lacking(which)}")
    told = ", ".join(f"{result.count(kind):,} {kind}" for kind in KINDS[:3])
    console.say(f"{told}; in {result.seconds:.1f} s", "title")
    console.say(f"{result.out}/changes")


def _lacking(which: str) -> str:
    return "created" if which == "old" else "deleted"
