"""Compares the tables of two ingests. Objects are matched by their full names.

Writes OUT/changes/objectType=X/*.parquet and OUT/_report/diff.json. Differences do not fail the command.
"""

from __future__ import annotations

import argparse

from mtosi_jms.cli.arguments import time, words
from mtosi_jms.jobs._jobs import NO_TABLE, add_engine, add_job, run_on_engine, shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="folder of the earlier snapshot, as ingest writes it")
    parser.add_argument("new", metavar="NEW", help="folder of the later snapshot")
    for side in ("old", "new"):
        what = f"state of {side.upper()} at TIME, after ingest --write append (last)"
        parser.add_argument(f"--{side}-at", type=time, metavar="TIME", help=what)
    parser.add_argument("--object", type=words, default=(), metavar="TYPE,...", help="object types to compare (all)")
    parser.add_argument("--ignore", type=words, default=(), metavar="COLUMN,...", help="columns to leave out")
    add_engine(parser, "Parquet tables")
    add_job(parser, out="out/diff", allow_empty=NO_TABLE)


def run(args: argparse.Namespace) -> int:
    """Compare; 0 whether or not something differs. Errors are those of the engine's `run_local` or `run_diff`."""
    from mtosi_jms.tables.diff import DiffOptions

    options = DiffOptions(
        old=args.old,
        new=args.new,
        old_at=args.old_at,
        new_at=args.new_at,
        object_types=args.object,
        ignore=args.ignore,
        **shared(args),
    )
    return run_on_engine(args, "comparing", "diff", options)
