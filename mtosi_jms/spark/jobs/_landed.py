"""A landing as the jobs see it: planned in this process or by Spark, checked, and read. The result is the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mtosi_jms.compression import scheme_of
from mtosi_jms.spark._engine import EnginePlan, KnownMessages, Messages, SparkRunner, plan_by_engine
from mtosi_jms.tables import checks
from mtosi_jms.tables.checks import Shown
from mtosi_jms.tables.files import list_files, local_path
from mtosi_jms.tables.landing import Plan, readable
from mtosi_jms.tables.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MANY: Final = 20_000
"""Spark plans a landing with more files than this."""


def is_local(options: SourceOptions) -> bool:
    """Whether a landing is on this machine's file systems."""
    return all(scheme_of(path) in ("", "file") for path in options.paths)


def for_engine(options: SourceOptions) -> bool:
    """Whether Spark plans a landing, because it is on a Hadoop file system or has many files.

    Raises:
        SpoolError: the landing does not exist or cannot be read.
    """
    if not is_local(options):
        return True
    return not options.bulk_files and any(islice(list_files(options.paths, [], options.sieve), _MANY, None))


def plan_by_spark(spark: SparkSession, scratch: Path, options: SourceOptions) -> EnginePlan:
    """Let Spark plan a landing; `scratch` is for the tables of the plan. A path without a scheme is of this machine."""
    if is_local(options):
        options = replace(options, paths=tuple(Path(local_path(path)).as_uri() for path in options.paths))
    return plan_by_engine(spark, options, scratch)


def messages_of(spark: SparkSession, plan: Plan | EnginePlan, options: SourceOptions) -> Messages:
    """Return the messages of a plan that have to be read with these options.

    Raises:
        ExchangeError: `onIncomplete=fail` and a sequence is incomplete.
    """
    if isinstance(plan, EnginePlan):
        return plan.readable(options)
    files = tuple(file for file in readable(plan, options) if options.reads(file.kind))
    return KnownMessages(spark, files, None if plan.landing is None else plan.landing.files)


def check_readable(plan: Plan | EnginePlan, options: SourceOptions, shown: Shown = lambda reject: reject) -> None:
    """Check that at least one message of a landing can be read, so that tables are not replaced by empty ones.

    Raises:
        SpoolError: there is none; the text lists the first rejects, one for each line, after `shown` has changed their
            paths.
    """
    if isinstance(plan, EnginePlan):
        messages: Messages = plan
    elif plan.landing is not None and isinstance(plan.landing.runner, SparkRunner):
        messages = KnownMessages(plan.landing.runner.spark, plan.files, plan.landing.files)
    else:
        checks.check_readable(plan, options, shown)
        return
    refusals = messages.refusals(options)
    if refusals is not None:
        raise checks.nothing_readable(options, [*plan.rejects, *refusals], shown)
