"""`mtosi-jms ingest` by Spark: `mtosi_jms.tables.ingest` says what it makes.

For tables of Delta or Iceberg, Spark commits a table instead of writing Parquet files. With `write` merge or append the
job adds to its tables instead of replacing them: see `_growth`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.spark._engine import check_readable, for_engine, plan_by_engine
from mtosi_jms.spark._session import check_java
from mtosi_jms.spark.jobs._checkpoint import Checkpoint
from mtosi_jms.spark.jobs._growth import READ, Growth
from mtosi_jms.spark.jobs._job import FEW, INTERPRETED, SparkJob, SparkTableWriter, settings
from mtosi_jms.spark.jobs._lake import Lake, jar_errors, session_settings, submit_line
from mtosi_jms.tables.ingest import (
    LOADED,
    REPLACE,
    TABLES,
    Ingest,
    IngestOptions,
    IngestResult,
    check_replaces,
    check_write,
    source_options,
)
from mtosi_jms.tables.job import PARQUET, REPORT, Progress, Staging, check_format
from mtosi_jms.tables.landing import Plan, plan_landing
from mtosi_jms.tables.options import Mode, SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLAN: Final = "plan"


def run_ingest(
    options: IngestOptions, *, spark: SparkSession | None = None, progress: Progress | None = None
) -> IngestResult:
    """Write `OUT/objectType=X/*.parquet` and `OUT/_report/`; see the module docstring.

    Raises:
        ExchangeError: `on_incomplete` is fail and a sequence is incomplete.
        MtosiError: `mode` is FAILFAST and something is rejected; the text has one line for each reject. Other errors
            are those of all jobs.
    """
    source = source_options(options)
    job = SparkJob("ingest", options.out, TABLES, progress, lake=options.format != PARQUET, where=options.where)
    check_format(options.format, job.out, options.table)
    with _growth(options, source, job.out) as growth:
        return _run(options, source, job, growth, spark)


def _run(
    options: IngestOptions, source: SourceOptions, job: SparkJob, growth: Growth | None, spark: SparkSession | None
) -> IngestResult:
    from mtosi_jms.spark._session import pyspark_version

    is_new = growth is None or not growth.checkpoint.exists
    planner = plan_landing if growth is None else growth.plan
    ingest = _Ingest(job, options, source, planner, check_readable if is_new else None)
    if growth is not None and not growth.look():
        return ingest.nothing(growth)
    plan = None if growth is None and for_engine(source) else ingest.plan(source)
    if spark is None:
        check_java()
        own = session_settings(options.format, pyspark_version(), options.conf)
    else:
        own = {}
    working = job.working(spark, options.cores, settings=own, dry_run=options.dry_run)
    with working as (staged, active), jar_errors(active, options.format):
        lake = Lake(active, options.format, job.out, options.table)
        if plan is None:
            plan = ingest.plan(source, partial(plan_by_engine, active, scratch=staged.folder / _PLAN))
        if growth is not None and isinstance(plan, Plan):
            result = ingest.grow(plan, staged, lake, growth)
        else:
            writer = SparkTableWriter(active, source, staged.folder, options.where)
            result = ingest.commit(ingest.replace(plan, writer), staged, lake)
        result = replace(result, submit=_submit(options.format, active.version))
        ingest.finish(result, staged, ingest.tables)
        if growth is not None and not options.dry_run:
            growth.checkpoint.finish()
    return result


@contextmanager
def _growth(options: IngestOptions, source: SourceOptions, out: Path) -> Iterator[Growth | None]:
    """Provide the part of the job that merges or appends; None if the tables are replaced."""
    check_write(options)
    if options.write == REPLACE:
        check_replaces(options, out)
        yield None
        return
    if options.where:
        raise ConfigError(
            f"where (--where) goes with write {REPLACE}: rows left out of a table that grows would be stale"
        )
    identity = {name: getattr(options, name) for name in ("write", "format", "table")}
    with closing(Checkpoint(out / REPORT, source, {"stubs": list(source.stubs), **identity})) as checkpoint:
        yield Growth(options, source, out, checkpoint)


def _submit(name: str, version: str) -> str:
    try:
        return submit_line(name, version)
    except ConfigError:
        return ""  # no jars are pinned for this version of Spark: the session has a jar of the user's choice


class _Ingest(Ingest):
    """An ingest that Spark may do."""

    tables: tuple[str, ...] | None = None
    """The tables that are replaced; None for all."""

    def nothing(self, growth: Growth) -> IngestResult:
        nothing: dict[str, int] = {}
        facts = {"rows": nothing, "sequences": (), "rejected": (), "messages": nothing, "vendors": nothing}
        left = growth.checkpoint.left_out()
        return IngestResult(**facts, **left, **self._job.facts, dry_run=self._options.dry_run)  # type: ignore[arg-type]

    def commit(self, result: IngestResult, staged: Staging, lake: Lake) -> IngestResult:
        """Let Spark commit the tables that were made, if they are of Delta or Iceberg."""
        if lake.format == PARQUET or self._options.dry_run:
            return result
        with self._job.stage("commit"):
            labels = lake.all_labels(staged.folder, self._source.object_types)
            there = lake.labels(self._source.object_types)
            staged.begin_commits(len(labels), lake.folders(set(labels) - set(there)))
            lake.replace_all(staged.folder, labels)
        return replace(result, **self._job.facts)

    def grow(self, plan: Plan, staged: Staging, lake: Lake, growth: Growth) -> IngestResult:
        """Make tables of the news, and merge them into the existing tables, or add them to those of plain Parquet."""
        folder = staged.folder / READ
        folder.mkdir()
        # A merge takes the same message twice; rows of plain Parquet would be there twice.
        known = partial(growth.written, lake) if lake.format == PARQUET else tuple
        plan, written, seen = self._read(
            plan, SparkTableWriter(lake.spark, self._source, folder, here=True, known=known)
        )
        ways = INTERPRETED if sum(written.rows.values()) < FEW else {}
        with self._job.stage("merge"), settings(lake.spark, ways):
            if lake.format == PARQUET:
                grown = growth.add(lake, written, staged)
            else:
                grown = growth.merge(lake, plan, written, staged)
        rejects = (*written.rejects, *grown.rejects)
        if rejects and self._source.mode is Mode.FAILFAST:
            raise MtosiError("\n".join(str(self.shown(reject)) for reject in rejects))
        with self._job.stage("commit"), settings(lake.spark, ways):
            growth.check(lake)
            commits = lake.format != PARQUET and not self._options.dry_run
            if commits:
                growth.commit(lake, staged)
            growth.advance(lake, plan, (*plan.rejects, *rejects), grown, staged, committed=commits)
        self.tables = grown.tables
        result = self._result(plan, replace(written, rejects=rejects), seen)
        counted = {name: {label: getattr(found, name) for label, found in grown.counts.items()} for name in LOADED}
        facts = {
            **{name: {label: count for label, count in found.items() if count} for name, found in counted.items()},
            "added": grown.added,
            "unnamed": grown.unnamed,
            "foreign": list(grown.foreign),
        }
        return replace(result, **growth.checkpoint.left_out(), **facts)  # type: ignore[arg-type]
