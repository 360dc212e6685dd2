"""Turns landed alarms into a table. They may come from notifications or from replies.

Reads a landing, or any folder of envelopes, and writes OUT/alarms/*.parquet, one row each time an alarm was sent, and
OUT/_report/alarms.json. Rejected files do not fail the job; they are listed.
"""

from __future__ import annotations

import argparse

from mtosi_jms.cli.arguments import add_stubs, as_usage
from mtosi_jms.jobs._jobs import NO_MESSAGE, add_engine, add_job, run_on_engine, shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "landing", metavar="LANDING", help="a landing, a folder of envelopes, a file or a glob; also as s3://..."
    )
    parser.add_argument(
        "--latest", action="store_true", help="also write each alarm's last state, OUT/latest/*.parquet"
    )
    parser.add_argument(
        "--class",
        dest="alarm_class",
        metavar="CLASS",
        help="the class of alarms, if your stubs have another name for it",
    )
    add_engine(parser, "Parquet tables")
    add_stubs(parser)
    add_job(parser, out="out/alarms", allow_empty=NO_MESSAGE)


def run(args: argparse.Namespace) -> int:
    """Make the table; errors are those of the engine's `run_local` or `run_alarms`."""
    from mtosi_jms.tables.alarms import ALARM, AlarmOptions, source_options

    options = AlarmOptions(
        landing=args.landing,
        object_type=args.alarm_class or ALARM,
        latest=args.latest,
        stubs=",".join(args.stubs),
        **shared(args),
    )
    with as_usage():
        source_options(options)
    return run_on_engine(args, "reading alarms", "alarms", options)
