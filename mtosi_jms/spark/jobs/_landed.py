"""A landing as the jobs see it: planned by the driver or by the engine (Spark), checked, and read.

The driver plans small landings on its own file system; Spark plans all others. The result is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa

from mtosi_jms.compression import scheme_of
from mtosi_jms.inventory import load_stubs
from mtosi_jms.spark._engine import REJECTS, EnginePlan, ListedPlan, documents, plan_by_engine
from mtosi_jms.spark.jobs._job import load
from mtosi_jms.tables import checks
from mtosi_jms.tables.checks import Shown
from mtosi_jms.tables.files import Reject, input_files
from mtosi_jms.tables.landing import Plan, plan_landing, readable
from mtosi_jms.tables.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MANY: Final = 20_000
"""The engine plans a landing with more files than this."""
_SHOWN: Final = 20


def is_local(options: SourceOptions) -> bool:
    """Whether a landing is on this machine's file systems."""
    return all(scheme_of(path) in ("", "file") for path in options.paths)


def for_engine(options: SourceOptions) -> bool:
    """Whether the engine plans a landing, because it is on a Hadoop file system or has many files.

    Raises:
        SpoolError: the landing does not exist or cannot be read.
    """
    if not is_local(options):
        return True
    return (
        not options.bulk_files and len(list(islice(input_files(options.paths, [], options.sieve), _MANY + 1))) > _MANY
    )


class Planner:
    """Plans a landing, on the driver or in a session."""

    def __init__(self, spark: SparkSession | None = None, scratch: Path | None = None) -> None:
        """Prepare to plan on the driver, or with a session, which writes the tables of the plan into `scratch`."""
        self._spark = spark
        self._scratch = scratch

    def __call__(self, options: SourceOptions) -> Plan | EnginePlan:
        """Return the plan, as `plan_landing` or `plan_by_engine` does."""
        if self._spark is None or self._scratch is None:
            return plan_landing(options)
        return plan_by_engine(self._spark, options, self._scratch)


class Landed(Protocol):
    """The messages of a landing that are to be read."""

    def body_tags(self) -> set[str]:
        """The different body elements of the messages."""

    def of_tags(self, tags: Iterable[str]) -> Landed:
        """The messages with some body elements."""

    def rows(self, options: SourceOptions) -> DataFrame:
        """The rows of the messages."""


def landed_by(spark: SparkSession, plan: Plan | EnginePlan, options: SourceOptions, folder: Path) -> Landed:
    """Return the messages of a plan that have to be read.

    Args:
        spark: the session that reads.
        plan: of the landing.
        options: say which messages are read.
        folder: where the plan is saved as a file for Spark.

    Raises:
        ExchangeError: `onIncomplete=fail` and a sequence is incomplete.
    """
    if isinstance(plan, EnginePlan):
        return plan.readable(options)
    files = tuple(file for file in readable(plan, options) if options.reads(file.kind))
    if isinstance(plan, ListedPlan):
        return plan.of(files)
    return LocalFiles(spark, replace(plan, files=files, rejects=(), unfollowed=()), folder)


@dataclass(frozen=True)
class LocalFiles:
    """Messages that the driver has planned and the source reads."""

    spark: SparkSession
    plan: Plan
    folder: Path

    def body_tags(self) -> set[str]:
        return {file.body_tag for file in self.plan.files}

    def of_tags(self, tags: Iterable[str]) -> LocalFiles:
        wanted = set(tags)
        files = tuple(file for file in self.plan.files if file.body_tag in wanted)
        return replace(self, plan=replace(self.plan, files=files))

    def rows(self, options: SourceOptions) -> DataFrame:
        saved = self.folder / "plan.json"
        self.plan.save(saved)
        columns = {"columns": ",".join(options.columns)} if options.columns else {}
        corrupt = {} if options.corrupt_column is None else {"columnNameOfCorruptRecord": options.corrupt_column}
        return load(
            self.spark,
            objectType=options.object_type,
            messageTypes=",".join(options.message_types),
            mode=options.mode.value,
            planFile=str(saved),
            stubs=",".join(options.stubs),
            **columns,
            **corrupt,
        )


def check_readable(plan: Plan | EnginePlan, options: SourceOptions, shown: Shown = lambda reject: reject) -> None:
    """Check that at least one message of a landing can be read, so that tables are not replaced by empty ones.

    Raises:
        SpoolError: there is none; the text lists the first rejects, one for each line, after `shown` has changed their
            paths.
    """
    by_engine = plan.of(plan.files) if isinstance(plan, ListedPlan) else plan
    if isinstance(by_engine, Plan):
        checks.check_readable(by_engine, options, shown)
        return
    tried = by_engine.each_file(_Try(options), REJECTS)
    if not tried.where("file is null").take(1):
        rejects = [Reject(**row.asDict()) for row in tried.collect()]
        raise checks.nothing_readable(options, [*plan.rejects, *rejects], shown)


@dataclass(frozen=True)
class _Try:
    """What the workers run: for each message, why nothing can be read from it, or nulls if something can."""

    options: SourceOptions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        load_stubs(self.options.stubs)
        for file in documents(batches, self.options.whole_file_bytes):
            reject = checks.refusal(file, self.options)
            yield pa.RecordBatch.from_pylist([{} if reject is None else asdict(reject)], REJECTS)
