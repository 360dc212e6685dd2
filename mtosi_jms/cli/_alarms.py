"""Turns landed alarms, notified or requested, into a table.

Reads a spool, or any folder of envelopes, and writes OUT/alarms/*.parquet, one row each time an alarm was sent, and
OUT/_report/alarms.json. Rejected files do not fail the job; they are listed.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mtosi_jms.cli import _console as console
from mtosi_jms.cli._arguments import add_stubs, as_usage
from mtosi_jms.cli._jobs import NO_MESSAGE, SHOWN, add_job, add_settings, run_job, say_more

if TYPE_CHECKING:
    from mtosi_jms.spark.jobs import AlarmResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("landing", metavar="LANDING", help="a spool, a folder, a file or a glob; also a URL, s3a://...")
    parser.add_argument("--latest", action="store_true", help="write OUT/latest/*.parquet too: each alarm's last state")
    parser.add_argument("--object", metavar="CLASS", help="the class of alarms, for stubs that call it otherwise")
    add_settings(parser)
    add_stubs(parser)
    add_job(parser, out="out/alarms", allow_empty=NO_MESSAGE)


def run(args: argparse.Namespace) -> int:
    """Make the table; errors are those of `mtosi_jms.spark.jobs.run_alarms`."""
    from mtosi_jms.inventory import class_for, load_stubs
    from mtosi_jms.spark.jobs import ALARM, AlarmOptions, run_alarms

    with as_usage():
        load_stubs(args.stubs)
        class_for(args.object or ALARM)
    options = AlarmOptions(
        landing=args.landing,
        out=args.out,
        object_type=args.object or ALARM,
        latest=args.latest,
        stubs=",".join(args.stubs),
        cores=args.cores,
        conf=dict(args.conf),
        allow_empty=args.allow_empty,
    )
    return run_job(args, "reading alarms", None, lambda progress: run_alarms(options, progress=progress), show)


def show(result: AlarmResult) -> None:
    """Print what was found."""
    rows = [(name, f"{number:,}") for name, number in result.severities.items()]
    console.table("alarms", ("perceived severity", "rows"), rows)
    for reject in result.rejected[:SHOWN]:
        console.say(f"rejected {reject}", "warn")
    say_more(len(result.rejected), f"{result.out}/_report/alarms.json")
    found = f"{result.rows:,} rows"
    if result.latest is not None:
        found += f" of {result.latest:,} alarms, {result.active:,} of them active"
    console.say(f"{found}; in {result.seconds:.1f} s", "title")
    console.say(f"{result.out}/alarms")
