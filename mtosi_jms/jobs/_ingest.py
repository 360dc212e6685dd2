"""Turns landed envelopes into Parquet, one table for each object type, with a ledger of complete and incomplete
sequences.

Reads a landing, or any folder of envelopes (*.xml, *.xml.gz, *.xml.zst, also inside *.zip, *.tar, *.tar.gz, *.tgz,
*.tar.zst), and writes OUT/objectType=X/*.parquet and OUT/_report/. Rejected files do not fail the job; they are listed.
"""

from __future__ import annotations

import argparse
from typing import Final

from mtosi_jms.cli.arguments import add_stubs, as_usage
from mtosi_jms.jobs._jobs import NO_MESSAGE, add_engine, add_job, run_on_engine, setting, shared

_FORMATS: Final = "parquet,delta,iceberg"
_LAKE: Final = "format of the tables; Spark downloads the jar of delta or iceberg, unless --conf names it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("landing", metavar="LANDING", help="a landing, a folder of envelopes, a file or a glob")
    parser.add_argument(
        "--object",
        default="ME",
        metavar="TYPE",
        help="ME EQ EH PTP CTP FTP TL OS MD TMD SNC MLSN, or a class of the stubs; several, with commas; or ALL (ME)",
    )
    parser.add_argument(
        "--mode",
        default="PERMISSIVE",
        type=str.upper,
        choices=("PERMISSIVE", "DROPMALFORMED", "FAILFAST"),
        help="FAILFAST: a rejected file fails the job (PERMISSIVE)",
    )
    parser.add_argument(
        "--on-incomplete",
        default="warn",
        choices=("warn", "mark", "filter", "wait", "fail"),
        help="rows of incomplete sequences. warn, mark: keep and mark them; filter, wait: leave them out, with merge "
        "or append until the sequence is complete; fail: write nothing (warn)",
    )
    parser.add_argument(
        "--first-batch",
        default="auto",
        choices=("auto", "0", "1"),
        help="number of the first batch of a sequence; auto: 0 for senders of which a 0 was seen, else 1 (auto)",
    )
    parser.add_argument(
        "--table",
        default="",
        metavar="NAME",
        help="write tables NAME_me, ... of a catalog that --conf configures (below --out)",
    )
    parser.add_argument(
        "--write",
        default="replace",
        choices=("replace", "merge", "append"),
        help="replace the tables; delta, iceberg: merge the last state of each object, or append to its history; "
        "parquet: append rows of new messages (replace)",
    )
    parser.add_argument(
        "--since-last",
        action="store_true",
        help="with merge or append: read only files that came since the last ingest; parquet does so always",
    )
    parser.add_argument(
        "--snapshot",
        action="store_true",
        help="with merge or append: treat a complete answer as all objects of its types, and end those that it lacks",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="read and merge, tell what would be written, and write nothing"
    )
    parser.add_argument(
        "--bulk-files",
        action="append",
        default=[],
        metavar="DIR",
        help="experimental: read the files below DIR that replies of BulkResponse name (none); may be repeated",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=setting,
        metavar="NAME=VALUE",
        help="an option of the Spark source, such as modifiedAfter=2026-01-31T00:00:00 or folderColumns=day; "
        "may be repeated",
    )
    parser.add_argument(
        "--partition-by",
        default="",
        metavar="COLUMNS",
        help="write the rows of Parquet tables into folders COLUMN=VALUE; several columns with commas",
    )
    add_engine(parser, "Parquet tables that are replaced")
    add_stubs(parser)
    add_job(parser, out="out/inventory", allow_empty=NO_MESSAGE, formats=(_FORMATS, _LAKE))


def run(args: argparse.Namespace) -> int:
    """Run the job; 0 whenever it finished. Errors are those of the engine's `run_local` or `run_ingest`."""
    from mtosi_jms.tables.ingest import IngestOptions, check_write, source_options

    options = IngestOptions(
        landing=args.landing,
        object_type=args.object,
        mode=args.mode,
        on_incomplete=args.on_incomplete,
        stubs=",".join(args.stubs),
        bulk_files=tuple(args.bulk_files),
        table=args.table,
        write=args.write,
        since_last=args.since_last,
        snapshot=args.snapshot,
        dry_run=args.dry_run,
        first_batch="auto" if args.first_batch == "auto" else 1 if args.first_batch == "1" else 0,
        source=dict(args.option),
        partition_by=tuple(name.strip() for name in args.partition_by.split(",") if name.strip()),
        **shared(args),
    )
    with as_usage():
        check_write(options)
        source_options(options)
    return run_on_engine(args, "ingesting", "ingest", options)
