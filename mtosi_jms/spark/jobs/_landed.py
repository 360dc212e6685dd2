"""A landing as the jobs see it: planned in this process or by Spark, checked, and read. The result is the same."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from mtosi_jms.spark._engine import EnginePlan, KnownMessages, Messages
from mtosi_jms.tables import checks
from mtosi_jms.tables.checks import Shown
from mtosi_jms.tables.files import list_files
from mtosi_jms.tables.landing import Plan, readable
from mtosi_jms.tables.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MANY: Final = 100_000
"""Spark plans a landing with more files than this. Of fewer the driver is sooner done, and holds at most 170 MB."""


def for_engine(options: SourceOptions) -> bool:
    """Whether Spark plans a landing, because it is on other machines or has many files."""
    if options.bulk_files:
        return False
    return not options.is_local or any(islice(list_files(options.paths, [], options.sieve), _MANY, None))


def messages_of(spark: SparkSession, plan: Plan | EnginePlan, options: SourceOptions) -> Messages:
    """Return the messages of a plan that have to be read with these options."""
    if isinstance(plan, EnginePlan):
        return plan.readable(options)
    return KnownMessages(spark, tuple(file for file in readable(plan, options) if options.reads(file.kind)))


def check_readable(plan: Plan | EnginePlan, options: SourceOptions, shown: Shown = lambda reject: reject) -> None:
    """Check that at least one message of a landing can be read, so that tables are not replaced by empty ones."""
    if not isinstance(plan, EnginePlan):
        checks.check_readable(plan, options, shown)
    elif (refusals := plan.refusals(options)) is not None:
        raise checks.nothing_readable(options, [*plan.rejects, *refusals], shown)
