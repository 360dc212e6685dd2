"""`mtosi-jms ingest` by Spark: `mtosi_jms.tables.ingest` says what it makes.

For tables of Delta or Iceberg, Spark commits a table instead of writing Parquet files. With `write` merge or append the
job adds to its tables instead of replacing them. It reads only *news*, what the landing has and the checkpoint does
not:

checkpoint -> news -> plan -> tables of the news (TableWriter) and events -> merge -> commit -> checkpoint

docs/design/lake.md explains the steps.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from mtosi_jms.errors import ConfigError, MtosiError, SpoolError, SpoolInUseError
from mtosi_jms.inventory import ALL, MESSAGE, OBJECT_TYPES, class_for, label_of
from mtosi_jms.spark._engine import check_readable, for_engine, messages_of, plan_by_engine, write_parquet
from mtosi_jms.spark._session import check_java
from mtosi_jms.spark.jobs._checkpoint import Checkpoint, Closing, Table
from mtosi_jms.spark.jobs._events import (
    GONE,
    REJECTED,
    event_batches,
    event_rows,
    event_schema,
    scan_events,
    scan_names,
    scan_objects,
    scan_sequences,
)
from mtosi_jms.spark.jobs._job import (
    FEW,
    INTERPRETED,
    ONE_JOB,
    SparkJob,
    SparkTableWriter,
    is_few,
    sequence_key,
    settings,
    type_columns,
)
from mtosi_jms.spark.jobs._lake import Lake, jar_errors, session_settings, submit_line
from mtosi_jms.spark.jobs._merge import REMOVED, Counts, News, TableMerge, changed_columns_of
from mtosi_jms.tables.columns import full_schema, own_columns, row_schema
from mtosi_jms.tables.envelope import NOTIFICATION, RESPONSE
from mtosi_jms.tables.files import Reject, disk_file, state_of
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
from mtosi_jms.tables.job import PARQUET, PREFIX, REPORT, Progress, Staging, check_format
from mtosi_jms.tables.landing import Plan, PlannedFile, plan_landing
from mtosi_jms.tables.options import Mode, OnIncomplete, SourceOptions, Verify
from mtosi_jms.tables.reader import reader_for
from mtosi_jms.tables.sequences import time_of
from mtosi_jms.tables.snapshots import FACTS
from mtosi_jms.tables.writer import Written, count_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


READ: Final = "read"
"""The folder of the tables of the news, inside the folder of the staged tables."""
_EVENTS: Final = "events"
_PRESENT: Final = "present"
_AGAIN: Final = "again"
_MERGED: Final = "merged"
_FEW_NAMES: Final = 5_000
"""So many names are put into the condition of a query."""
_MOST_NAMES: Final = 1_000_000
"""More names than this the driver does not hold: Spark then sorts all news by name."""


@dataclass(frozen=True)
class Grown:
    """What an ingest did to its tables, as `IngestResult` tells it. `tables`: the folders of Parquet tables that were
    made again."""

    counts: dict[str, Counts]
    added: dict[str, list[str]]
    rejects: tuple[Reject, ...]
    unnamed: int
    closings: tuple[Closing, ...]
    tables: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()


class Growth:
    """The news of one run."""

    def __init__(self, options: IngestOptions, source: SourceOptions, out: Path, checkpoint: Checkpoint) -> None:
        self._source = source
        self._wait = source.on_incomplete is OnIncomplete.FILTER
        self._snapshot = options.snapshot
        self._write = options.write
        self._out = out
        self._since_last = options.since_last or options.format == PARQUET
        self._merged: dict[str, DataFrame] = {}
        self._counts: dict[str, Counts] = {}
        self._unwritten: dt.datetime | None = None
        self._versions: dict[str, str] = {}
        self._changed_columns: dict[str, list[str]] = {}
        self.checkpoint = checkpoint
        if not options.table:
            self._check_there({folder.name.removeprefix(PREFIX) for folder in out.glob(f"{PREFIX}*")})

    def look(self) -> bool:
        """List the landing, and look at what is new in it; return whether there is anything to do or to report."""
        source = replace(self._source, verify=Verify.FULL) if self._source.mode is Mode.FAILFAST else self._source
        self.news = self.checkpoint.look(source, since_last=self._since_last)
        self._verify: Verify | None = source.verify
        return not self.checkpoint.exists or not self.news.empty or bool(self.news.changed)

    def plan(self, source: SourceOptions) -> Plan:
        """Return the plan of the news; if `source` asks for another verification than before, look again."""
        if source.verify is not self._verify:
            self.news = self.checkpoint.look(source, since_last=self._since_last)
        self._verify = None
        return self.news.plan(replace(source, from_zero=self.checkpoint.from_zero))

    def merge(  # noqa: PLR0915 - one step after the other
        self, lake: Lake, plan: Plan, written: Written, staged: Staging
    ) -> Grown:
        """Merge the tables of the news, and the events among them, into tables of Delta or Iceberg; only staged.

        The driver reads the facts that it needs from the files of the news, without Spark.
        """
        spark = lake.spark
        names = _types(self._source, written, lake)
        self._alone = len(names) == 1
        there = set(lake.labels(names))
        self._check_there(there)
        sent = {file.path: self._time(file) for file in plan.files if file.kind in (RESPONSE, NOTIFICATION)}
        sequences = {file.path: _sequence(file.correlation_id, file.path) for file in plan.files if file.complete}
        events = self._events(spark, plan, staged.folder, names, _times(spark, sent, sequences))
        summary = scan_events(staged.folder / _EVENTS, names, sent)
        first = min((*sent.values(), *filter(None, [summary.earliest])), default=None)
        again = self._read_again(spark, plan, staged.folder, first)
        times = _times(spark, {**again, **sent}, sequences)
        deletions = [Closing(time, name=name) for name, time in sorted(summary.deleted)]
        closings = list(deletions)
        merges: dict[str, TableMerge] = {}
        versions: dict[str, str] = {}
        foreign: list[str] = []
        changed_columns: dict[str, list[str]] = {}
        unnamed = 0
        for name in names:
            label = label_of(class_for(name))
            objects = self._objects(spark, name, staged.folder)
            rows, nameless, files = scan_objects(
                staged.folder / READ / f"{PREFIX}{label}", own_columns(objects.columns)
            )
            unnamed += nameless
            answers = self._answers(files - again.keys(), sequences, sent, label)
            type_closings = [*deletions, *answers]
            closings += answers
            if not (rows or label in summary.changed_columns) and not (label in there and type_closings):
                continue
            of_type = _of_type(events, names, name) if events is not None and label in summary.changed_columns else None
            table = lake.read(label) if label in there else None
            before = self.checkpoint.tables.get(label)
            columns = set(summary.changed_columns.get(label, ()))
            if table is not None:
                versions[label] = lake.version(label)
                if before is not None and before.version == versions[label]:
                    columns |= set(before.changed_columns)
                else:
                    columns |= changed_columns_of(table) if FACTS in table.columns else set()
                    foreign += [label] if before is not None else []
            changed_columns[label] = sorted(columns)
            news = News(objects, times, of_type, type_closings, self.checkpoint.closings, changed_columns[label])
            merges[label] = TableMerge(spark, self._write, label, table, news, few=rows < FEW)
        self._stage(lake, merges, staged)
        kept = any(found.unchanged for found in self._counts.values())
        responses = (sent[file.path] for file in plan.files if file.kind == RESPONSE)
        self._unwritten = max(responses, default=None) if kept else None
        added = {label: [name for name, _ in merge.added] for label, merge in merges.items() if merge.added}
        self._merges = merges
        self._changed = tuple(self._merged)
        self._versions = versions
        self._changed_columns = changed_columns
        return Grown(self._counts, added, summary.rejects, unnamed, tuple(closings), foreign=tuple(foreign))

    def written(self, lake: Lake) -> set[str]:
        """Return the sequences of the news of which Parquet tables have rows: by correlationId, or else by file.

        The tables say so, because the checkpoint forgets files that are gone from the landing, and they may come back.
        """
        scanned = (each[0] for each in self.news.scanned if isinstance(each, tuple))
        keys = {sequence_key(file) for file in scanned}
        labels = lake.labels(self._source.object_types)
        return set[str]().union(*(scan_sequences(lake.folder(label), sorted(keys)) for label in labels))

    def add(self, lake: Lake, written: Written, staged: Staging) -> Grown:
        """Stage Parquet tables with the rows of the news: their files beside links to the present ones."""
        there = set(lake.labels(self._source.object_types))
        self._check_there(there)
        self._versions = {label: lake.version(label) for label in sorted(there)}
        before = self.checkpoint.tables
        foreign = (label for label, now in self._versions.items() if label in before and before[label].version != now)
        counts: dict[str, Counts] = {}
        for name, rows in written.rows.items():
            label = label_of(class_for(name))
            if label in there and not rows:
                continue
            counts[label] = Counts(created=rows)
            new = staged.folder / f"{PREFIX}{label}"
            (staged.folder / READ / new.name).rename(new)
            for path in [*new.glob("*.parquet")]:
                path.rename(path.with_name(f"{uuid.uuid4().hex}.parquet"))
            if label not in there:
                continue
            present = sorted(lake.folder(label).glob("*.parquet"))
            if present and _leaves(present[0]) != _leaves(next(new.glob("*.parquet"))):
                raise ConfigError(f"the table of {label} has other columns than its news: ingest into another folder")
            for path in present:
                _link(path, new / path.name)
        self._changed = tuple(counts)
        made = tuple(f"{PREFIX}{label}" for label in counts)
        return Grown(counts, {}, (), 0, (), made, tuple(foreign))

    def _check_there(self, there: Collection[str]) -> None:
        gone = sorted(set(self.checkpoint.tables) - set(there))
        if gone and self._since_last:
            raise SpoolError(
                str(self._out),
                f"the table of {', '.join(gone)} is gone, which an earlier ingest made: put it back, or ingest "
                "everything into another folder",
            )

    def _read_again(
        self, spark: SparkSession, plan: Plan, folder: Path, first: dt.datetime | None
    ) -> dict[str, dt.datetime]:
        """Add the rows of earlier responses that changed nothing, and so are not in the tables, if the news has a fact
        that is older; return the times of these responses by file."""
        if first is None or self.checkpoint.unwritten is None or first > self.checkpoint.unwritten:
            return {}
        known = {file.path for file in plan.files}
        earlier = (file for file in self.checkpoint.unwritten_files() if file.path not in known)
        files = {file: time for file in earlier if (time := self._time(file)) >= first}
        if files:
            aside = folder / _AGAIN
            aside.mkdir()
            if SparkTableWriter(spark, self._source, aside, here=True).write(Plan(tuple(files), (), (), {})) is None:
                raise SpoolError(next(iter(files)).path, "this or a later file has changed since it was read")
            for path in aside.glob(f"{PREFIX}*/*.parquet"):
                table = folder / READ / path.parent.name
                table.mkdir(exist_ok=True)
                path.rename(table / f"{uuid.uuid4().hex}.parquet")
        return {file.path: time for file, time in files.items()}

    def _stage(self, lake: Lake, merges: Mapping[str, TableMerge], staged: Staging) -> None:
        """Count what happens to objects, and write rows that replace others to folders of their own."""
        for label, merge in merges.items():
            folder = staged.folder / _MERGED / label
            names = self._names(label, merge, staged.folder)
            few = merge.in_one_job = names is not None and len(names) <= _FEW_NAMES and not merge.closes
            once = names is not None and len(names.unique()) == len(names)
            with settings(lake.spark, ONE_JOB if few else {}):
                table = self._present(lake, label, merge, names if few else None, staged.folder)
                rows, observed = merge.rows(once=once) if table is None else merge.changes(table)
                if observed is not None:
                    write_parquet(rows, folder)
                    found = Counts(**observed.get)
                    rows = lake.spark.read.schema(rows.schema).parquet(str(folder))
                else:
                    count = 0 if names is None else len(names)
                    found = Counts(created=count, rows=count)
            self._counts[label] = found
            if found.rows or not merge.exists:
                self._merged[label] = rows

    def _names(self, label: str, merge: TableMerge, folder: Path) -> pa.ChunkedArray | None:
        """Return the names in the news; None if the driver cannot hold them."""
        objects = folder / READ / f"{PREFIX}{label}"
        if count_rows(objects) > _MOST_NAMES:
            return None
        return scan_names(objects, merge.key, folder / _EVENTS, None if self._alone else label)

    def _present(
        self, lake: Lake, label: str, merge: TableMerge, names: pa.ChunkedArray | None, folder: Path
    ) -> DataFrame | None:
        """Return the rows of the table that a merge needs; None if it needs none. Of a few names Spark looks for the
        rows once, and keeps them beside the news: it would read the table in three places of the merge."""
        if not merge.exists:
            return None
        table = lake.read(label)
        if names is None:
            return table if merge.added or merge.closes or merge.knows() else None
        place = folder / _PRESENT / label
        few = merge.only(table, names.unique().to_pylist())
        return lake.spark.read.schema(table.schema).parquet(str(place)) if write_parquet(few, place) else None

    def check(self, lake: Lake) -> None:
        """Check before a commit that files, checkpoint and tables have not changed since they were read."""
        self.checkpoint.check_unchanged()
        for label in self._changed:
            if label in self._versions and lake.version(label) != self._versions[label]:
                raise SpoolInUseError(
                    str(lake.folder(label)), "another program has changed the table meanwhile; nothing was written"
                )

    def commit(self, lake: Lake, staged: Staging) -> None:
        """Commit the staged rows to tables of Delta or Iceberg."""
        new = lake.folders(label for label in self._changed if not self._merges[label].exists)
        staged.begin_commits(len(self._changed), new)
        for label in self._changed:
            merge, rows, found = self._merges[label], self._merged[label], self._counts[label]
            lake.add_columns(label, merge.added)
            before = lake.version(label) if merge.added else self._versions.get(label)
            with settings(lake.spark, lake.ways(label, found.rows)):
                if not merge.exists:
                    lake.replace(label, rows, grows=True)
                elif REMOVED in rows.columns:
                    lake.merge(label, rows, merge.keys, REMOVED, found)
                else:
                    rows.writeTo(lake.name(label)).append()
            if before is not None and lake.version(label, before=True) != before:
                raise SpoolInUseError(
                    str(lake.folder(label)), "another program has changed the table in the same moment: ingest again"
                )

    def advance(
        self, lake: Lake, plan: Plan, rejects: Sequence[Reject], grown: Grown, staged: Staging, *, committed: bool
    ) -> None:
        """Write the checkpoint, see `Checkpoint.save`."""
        tables = dict(self.checkpoint.tables)
        for label in {*self._versions, *self._changed_columns, *self._changed}:
            staged_table = staged.folder / f"{PREFIX}{label}"
            folder = staged_table if staged_table.is_dir() else None
            if folder is not None or (committed and label in self._changed):
                version = lake.version(label, folder)
            else:
                version = self._versions.get(label, "")
            tables[label] = Table(version, self._changed_columns.get(label, ()))
        folder = staged.folder / REPORT
        self.checkpoint.save(folder, self.news, plan, rejects, grown.closings, tables, self._unwritten, wait=self._wait)

    def _time(self, message: PlannedFile) -> dt.datetime:
        if (time := time_of(message.timestamp)) is not None:
            return time
        file = disk_file(message.path, self.checkpoint)
        state = None if file is None else self.checkpoint.state(file)
        return dt.datetime.fromtimestamp((state or state_of(message.path)).modified_ns / 1e9, dt.UTC)

    def _objects(self, spark: SparkSession, name: str, folder: Path) -> DataFrame:
        table = folder / READ / f"{PREFIX}{label_of(class_for(name))}"
        schema = from_arrow_schema(row_schema((name,)))
        return spark.read.schema(schema).parquet(str(table)) if table.is_dir() else spark.createDataFrame([], schema)

    def _events(
        self, spark: SparkSession, plan: Plan, folder: Path, names: Sequence[str], times: DataFrame
    ) -> DataFrame | None:
        files = tuple(file for file in plan.files if file.kind == NOTIFICATION)
        if not files:
            return None
        place = folder / _EVENTS
        options = replace(
            self._source,
            object_types=(MESSAGE,),
            columns=("body", "source_file"),
            mode=Mode.FAILFAST,  # planning has read these files to their ends: one that fails now has changed
            on_incomplete=OnIncomplete.WARN,
        )
        messages = messages_of(spark, replace(plan, files=files), options)
        if is_few(messages):
            place.mkdir()
            with parquet.ParquetWriter(place / "part-0.parquet", event_schema(names)) as writer:
                envelopes = reader_for(options, full_schema(options)).read(files)
                for batch in event_batches(envelopes, names):
                    writer.write(batch)
        else:
            write_parquet(event_rows(messages.rows(options), names, options.stubs), place)
        rows = spark.read.schema(from_arrow_schema(event_schema(names))).parquet(str(place))
        sent = times.select("source_file", f.col("_time").alias("_sent"))
        timed = rows.join(f.broadcast(sent), "source_file", "left")
        return timed.withColumn("_time", f.coalesce("_time", "_sent")).drop("_sent").select(*rows.columns)

    def _answers(
        self, files: Collection[str], sequences: Mapping[str, str], sent: Mapping[str, dt.datetime], label: str
    ) -> list[Closing]:
        """Return the closings of complete answers that have objects of a type; none without `snapshot`."""
        if not self._snapshot:
            return []
        keys = {sequences[path] for path in files if path in sequences}
        firsts: dict[str, dt.datetime] = {}
        for path, key in sequences.items():
            if key in keys and path in sent:
                firsts[key] = min(firsts.get(key, sent[path]), sent[path])
        return [Closing(time, object_type=label, sequence=key) for key, time in sorted(firsts.items())]


def _times(spark: SparkSession, sent: Mapping[str, dt.datetime], sequences: Mapping[str, str]) -> DataFrame:
    rows = pa.table(
        {
            "source_file": pa.array(list(sent), pa.string()),
            "_time": pa.array(list(sent.values()), pa.timestamp("us", tz="UTC")),
            "_sequence": pa.array([sequences.get(path) for path in sent], pa.string()),
        }
    )
    return spark.createDataFrame(rows)


def _leaves(path: Path) -> list[str]:
    schema = parquet.read_metadata(path).schema
    return [schema.column(number).path for number in range(len(schema))]


def _link(old: Path, new: Path) -> None:
    """Link an unchanged file under a second path, or copy it if the file system has no hard links."""
    try:
        os.link(old, new)
    except OSError:
        shutil.copy2(old, new)


def _sequence(correlation_id: str | None, path: str) -> str:
    return f"file {path}" if correlation_id is None else f"id {correlation_id}"


def _types(source: SourceOptions, written: Written, lake: Lake) -> tuple[str, ...]:
    if source.object_types != (ALL,):
        return source.object_types
    return tuple(dict.fromkeys((*OBJECT_TYPES, *written.rows, *lake.labels(OBJECT_TYPES))))


def _of_type(events: DataFrame, names: Sequence[str], name: str) -> DataFrame:
    """Return the events about objects of one type, with the columns of this type."""
    facts = ("_fact", "_name", "_time", "_told")
    changes = events.where(~f.col("_fact").isin(GONE, REJECTED))
    if len(names) == 1:
        return changes
    return changes.where(f.col("object_type") == label_of(class_for(name))).select(
        *facts, *type_columns(name, row_schema((name,)).names)
    )
