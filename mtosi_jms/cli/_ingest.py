"""`mtosi-jms ingest`: landed envelopes into Parquet by object type, with a ledger of what is complete."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.cli import _console as console
from mtosi_jms.cli._arguments import processors
from mtosi_jms.errors import ConfigError

if TYPE_CHECKING:
    from mtosi_jms.spark import ReplySequence
    from mtosi_jms.spark.jobs import IngestResult

_STAGES: Final = 4
_SHOWN: Final = 20


def add_parser(subparsers: Any) -> None:
    """Add the parser of this command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "ingest",
        help="turn landed envelopes into Parquet, by Spark, with a ledger of what is complete",
        description="Reads a spool, or any folder of envelopes (*.xml, *.xml.gz, or these in *.zip, *.tar, *.tar.gz, "
        "*.tgz), and writes OUT/objectType=X/*.parquet and OUT/_report/. Rejected files do not fail the job; they are "
        "listed.",
    )
    parser.add_argument("landing", metavar="LANDING", help="a spool, a folder, a file or a glob")
    parser.add_argument("--out", type=Path, default=Path("out/inventory"), help="folder for the result (out/inventory)")
    parser.add_argument(
        "--object",
        default="ME",
        metavar="TYPE",
        help="ME EQ EH PTP CTP FTP TL OS MD TMD, a class of the stubs, several joined by commas, or ALL (ME)",
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
        choices=("warn", "filter", "fail"),
        help="rows of incomplete sequences: keep and mark, leave out, or fail (warn)",
    )
    parser.add_argument(
        "--format",
        default="parquet",
        choices=("parquet", "delta"),
        help="of the tables; delta needs delta-spark and keeps their history (parquet)",
    )
    parser.add_argument("--stubs", default="", metavar="PACKAGE", help="generated packages, joined by commas")
    parser.add_argument(
        "--bulk-files",
        action="append",
        default=[],
        metavar="DIR",
        help="experimental: read files below DIR that replies of BulkResponse name (none); may be given again",
    )
    parser.add_argument(
        "--allow-empty", action="store_true", help="make empty tables of a landing without a readable message"
    )
    parser.add_argument("--cores", type=processors, help="processors to use (all)")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON document")


def run(args: argparse.Namespace) -> int:
    """Run the job; 0 whenever it came to its end.

    Raises:
        MtosiError: it did not, for the reasons that `mtosi_jms.spark.jobs.run_ingest` lists.
    """
    from mtosi_jms.spark.jobs import IngestOptions, run_ingest

    try:
        _check_types(args)
    except ConfigError as error:
        console.problem(str(error))
        return 2
    options = IngestOptions(
        landing=args.landing,
        out=args.out,
        object_type=args.object,
        mode=args.mode,
        on_incomplete=args.on_incomplete,
        stubs=args.stubs,
        cores=args.cores,
        bulk_files=tuple(args.bulk_files),
        format=args.format,
        allow_empty=args.allow_empty,
    )
    with console.progress("ingesting", _STAGES) as advance:
        result = run_ingest(options, progress=_after_first(advance))
    if args.json:
        console.print_json(result.summary())
    else:
        show(result)
    return 0


def _check_types(args: argparse.Namespace) -> None:
    """See that the stubs are there and have the object types that are asked for.

    Raises:
        ConfigError: they have not.
    """
    from mtosi_jms.inventory.objects import ALL, MESSAGE, class_for, load_stubs
    from mtosi_jms.spark import SourceOptions

    options = SourceOptions.parse({"path": args.landing, "objectType": args.object, "stubs": args.stubs})
    load_stubs(options.stubs)
    for name in options.object_types:
        if name not in (ALL, MESSAGE):
            class_for(name)


def _after_first(advance: Callable[[int], None]) -> Callable[[str], None]:
    """Counts a stage when the next one begins."""
    begun: list[str] = []

    def begin(stage: str) -> None:
        if begun:
            advance(1)
        begun.append(stage)

    return begin


def show(result: IngestResult) -> None:
    """Print what an ingest brought, as tables."""
    console.table("rows", ("object type", "rows"), [(name, f"{rows:,}") for name, rows in result.rows.items()])
    if result.vendors:
        makers = [(name, f"{count:,}") for name, count in result.vendors.items()]
        console.table("objects by manufacturer", ("manufacturer", "objects"), makers)
    if result.sequences:
        worst = sorted(result.sequences, key=lambda found: (found.complete, not found.conflicts))
        heads = ("sequence", "batches", "expected", "missing", "duplicates", "conflicts", "complete")
        console.table("sequences", heads, [_sequence(found) for found in worst[:_SHOWN]])
        _more(len(worst), result, "ledger.jsonl")
    if result.rejected:
        rejects = [(reject.file, reject.line, reject.reason) for reject in result.rejected[:_SHOWN]]
        console.table("rejected", ("file", "line", "reason"), rejects)
        _more(len(result.rejected), result, "rejects.jsonl")
    for reply in result.unfollowed[:_SHOWN]:
        console.say(f"warning: {reply.file} {reply.reason}", "warn")
    if len(result.unfollowed) > _SHOWN:
        console.say(f"warning: {len(result.unfollowed) - _SHOWN} more, in {result.out}/_report/summary.json", "warn")
    console.table("time", ("stage", "seconds"), [(name, f"{spent:.1f}") for name, spent in result.stages.items()])
    others = ", ".join(f"{count} {kind}s" for kind, count in sorted(result.messages.items()))
    console.say(f"{others or 'no messages'}; {sum(result.rows.values()):,} rows in {result.seconds:.1f} s", "title")
    console.say(f"{result.out}/_report/report.html")


def _more(count: int, result: IngestResult, file: str) -> None:
    """Say where the rest of a long list is."""
    if count > _SHOWN:
        console.say(f"and {count - _SHOWN} more, in {result.out}/_report/{file}", "dim")


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
