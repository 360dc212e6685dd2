"""`mtosi-jms alarms`: the alarms of landed notifications and answers as a table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.cli import _console as console
from mtosi_jms.cli._arguments import processors, words
from mtosi_jms.errors import ConfigError

if TYPE_CHECKING:
    from mtosi_jms.spark.jobs import AlarmResult

_SHOWN: Final = 20


def add_parser(subparsers: Any) -> None:
    """Add the parser of this command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "alarms",
        help="turn landed alarms, notified or asked for, into a table",
        description="Reads a spool, or any folder of envelopes, and writes OUT/alarms/*.parquet, one row each time an "
        "alarm was told, and OUT/_report/alarms.json. Rejected files do not fail the job; they are listed.",
    )
    parser.add_argument("landing", metavar="LANDING", help="a spool, a folder, a file or a glob")
    parser.add_argument("--out", type=Path, default=Path("out/alarms"), help="folder for the result (out/alarms)")
    parser.add_argument("--latest", action="store_true", help="write OUT/latest/*.parquet too: each alarm's last state")
    parser.add_argument("--object", metavar="CLASS", help="the class of alarms, for stubs that call it otherwise")
    parser.add_argument("--stubs", default="", metavar="PACKAGE", help="generated packages, joined by commas")
    parser.add_argument(
        "--allow-empty", action="store_true", help="make empty tables of a landing without a readable message"
    )
    parser.add_argument("--cores", type=processors, help="processors to use (all)")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON document")


def run(args: argparse.Namespace) -> int:
    """Make the table.

    Raises:
        MtosiError: it could not, for the reasons that `mtosi_jms.spark.jobs.run_alarms` lists.
    """
    from mtosi_jms.inventory.objects import class_for, load_stubs
    from mtosi_jms.spark.jobs import ALARM, AlarmOptions, run_alarms

    try:
        load_stubs(words(args.stubs) if args.stubs else ())
        class_for(args.object or ALARM)
    except ConfigError as error:
        console.problem(str(error))
        return 2
    options = AlarmOptions(
        landing=args.landing,
        out=args.out,
        object_type=args.object or ALARM,
        latest=args.latest,
        stubs=args.stubs,
        cores=args.cores,
        allow_empty=args.allow_empty,
    )
    with console.progress("reading alarms") as advance:
        result = run_alarms(options, progress=lambda stage: advance(1))
    if args.json:
        console.print_json(result.summary())
    else:
        show(result)
    return 0


def show(result: AlarmResult) -> None:
    """Print what was found."""
    rows = [(name, f"{number:,}") for name, number in result.severities.items()]
    console.table("alarms", ("perceived severity", "told"), rows)
    for reject in result.rejected[:_SHOWN]:
        console.say(f"rejected {reject}", "warn")
    if len(result.rejected) > _SHOWN:
        console.say(f"and {len(result.rejected) - _SHOWN} more, in {result.out}/_report/alarms.json", "dim")
    told = f"{result.rows:,} rows"
    if result.latest is not None:
        told += f" of {result.latest:,} alarms, {result.active:,} of them active"
    console.say(f"{told}; in {result.seconds:.1f} s", "title")
    console.say(f"{result.out}/alarms")
