"""Turns landed envelopes into Parquet, one table for each object type, with a ledger of complete and incomplete
sequences.

Reads a landing, or any folder of envelopes (*.xml, *.xml.gz, *.xml.zst, also inside *.zip, *.tar, *.tar.gz, *.tgz,
*.tar.zst), and writes OUT/objectType=X/*.parquet and OUT/_report/. Rejected files do not fail the job; they are listed.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_stubs, as_usage
from mtosi_jms.jobs._jobs import NO_MESSAGE, SHOWN, add_engine, add_job, run_on_engine, say_more, setting, shared

if TYPE_CHECKING:
    from mtosi_jms.tables.ingest import IngestResult
    from mtosi_jms.tables.sequences import ReplySequence

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
    from mtosi_jms.tables.ingest import IngestOptions, check_write

    with as_usage():
        _check_types(args)
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
    return run_on_engine(args, "ingesting", "ingest", options, show)


def _check_types(args: argparse.Namespace) -> None:
    """Check that the stubs are there and have the requested object types; a ConfigError if not."""
    from mtosi_jms.inventory import ALL, MESSAGE, class_for, load_stubs
    from mtosi_jms.tables.options import SourceOptions

    options = SourceOptions.parse({"path": args.landing, "objectType": args.object, "stubs": ",".join(args.stubs)})
    load_stubs(options.stubs)
    for name in options.object_types:
        if name not in (ALL, MESSAGE):
            class_for(name)


def show(result: IngestResult) -> None:
    """Print what an ingest brought, as tables."""
    terminal.table("rows", ("object type", "rows"), [(name, f"{rows:,}") for name, rows in result.rows.items()])
    if result.vendors:
        makers = [(name, f"{count:,}") for name, count in result.vendors.items()]
        terminal.table("objects by manufacturer", ("manufacturer", "objects"), makers)
    if result.sequences:
        sequences = sorted(result.sequences, key=lambda found: (found.complete, not found.conflicts))
        heads = ("sequence", "batches", "expected", "missing", "duplicates", "conflicts", "complete")
        terminal.table("sequences", heads, [_sequence(found) for found in sequences[:SHOWN]])
        say_more(result.ledger.get("sequences", 0), f"{result.out}/_report/ledger.jsonl")
    if result.rejected:
        rejects = [(reject.file, reject.line, reject.reason) for reject in result.rejected[:SHOWN]]
        terminal.table("rejected", ("file", "line", "reason"), rejects)
        say_more(len(result.rejected), f"{result.out}/_report/rejects.jsonl")
    for reply in result.unfollowed[:SHOWN]:
        terminal.say(f"warning: {reply.file} {reply.reason}", "warn")
    if len(result.unfollowed) > SHOWN:
        terminal.say(f"warning: {len(result.unfollowed) - SHOWN} more, in {result.out}/_report/summary.json", "warn")
    _say_more(result)
    terminal.table("time", ("stage", "seconds"), [(name, f"{seconds:.1f}") for name, seconds in result.stages.items()])
    others = ", ".join(f"{count} {kind}s" for kind, count in sorted(result.messages.items()))
    terminal.say(f"{others or 'no messages'}; {sum(result.rows.values()):,} rows in {result.seconds:.1f} s", "title")
    if result.dry_run:
        terminal.say(f"dry run: nothing was written to {result.out}", "title")
        return
    terminal.say(f"{result.out}/_report/report.html")
    if result.submit:
        terminal.say(f"on a cluster: spark-submit {result.submit}")


def _say_more(result: IngestResult) -> None:
    """Print what happened to objects, and what to know about it."""
    from mtosi_jms.tables.ingest import LOADED

    loaded = {kind: getattr(result, kind) for kind in LOADED}
    if labels := dict.fromkeys(label for found in loaded.values() for label in found):
        rows = [(label, *(f"{found.get(label, 0):,}" for found in loaded.values())) for label in labels]
        terminal.table("objects", ("object type", *loaded), rows)
    for name, count in result.copies.items():
        differing = result.differing.get(name, 0)
        terminal.say(f"{count:,} rows of {name} left out: their sequence has the object already")
        if differing:
            terminal.say(f"warning: {differing:,} of them have other attributes than the row that stays", "warn")
    for name, columns in result.added.items():
        terminal.say(f"warning: new columns of {name}: {', '.join(columns)}", "warn")
    if result.foreign:
        terminal.say(
            f"warning: something else has changed the tables since the last ingest: {', '.join(result.foreign)}", "warn"
        )
    if result.unnamed:
        terminal.say(f"warning: {result.unnamed:,} objects without a name were left out", "warn")
    if result.waiting:
        terminal.say(f"{result.waiting:,} responses wait for the rest of their sequences")
    if result.stuck:
        why = "batches are in conflict, or a fault came; --on-incomplete mark writes their rows"
        terminal.say(f"warning: {result.stuck:,} of them wait for ever: {why}", "warn")


def _sequence(found: ReplySequence) -> tuple[object, ...]:
    numbers = ", ".join(map(str, found.missing[:10])) + (", ..." if found.missing_count > 10 else "")
    return (
        found.correlation_id if found.correlation_id is not None else found.source,
        found.batches,
        "unknown" if found.expected is None else found.expected,
        numbers or ("the end" if found.expected is None else ""),
        found.duplicates,
        len(found.conflicts),
        "yes" if found.complete else "no",
    )
