"""An ingest that adds to its tables: only news are read, and merged into what is there.

checkpoint -> news -> plan -> tables of the news (TableWriter) and events -> merge -> commit -> checkpoint
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from mtosi_jms.inventory import ALL, MESSAGE, OBJECT_TYPES, class_for, label_of
from mtosi_jms.spark._columns import own_columns, row_schema
from mtosi_jms.spark._envelope import NOTIFICATION, RESPONSE
from mtosi_jms.spark._files import Reject, split_member
from mtosi_jms.spark._landing import Plan, plan_landing
from mtosi_jms.spark._options import OnIncomplete, SourceOptions
from mtosi_jms.spark._sequences import time_of
from mtosi_jms.spark.jobs._checkpoint import Checkpoint, Closing, check_unchanged
from mtosi_jms.spark.jobs._events import GONE, REJECTED, event_rows
from mtosi_jms.spark.jobs._job import load, write_parquet
from mtosi_jms.spark.jobs._lake import PARQUET, PREFIX, Lake
from mtosi_jms.spark.jobs._merge import REMOVED, News, TableMerge
from mtosi_jms.spark.jobs._swap import REPORT, Staging
from mtosi_jms.spark.jobs._tables import Written, type_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READ: Final = "read"
"""The folder, in that of the staged tables, of the tables of the news."""
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Grown:
    """What an ingest did to its tables.

    Attributes:
        changed: number of rows that were added, replaced or removed, by object type.
        added: new columns by object type.
        rejects: events that say nothing that can be used.
        unnamed: number of objects without a name, which are left out.
        closings: of this run.
        tables: names of the folders that were made again.
    """

    changed: dict[str, int]
    added: dict[str, list[str]]
    rejects: tuple[Reject, ...]
    unnamed: int
    closings: tuple[Closing, ...]
    tables: tuple[str, ...]


class Growth:
    """The news of one run.

    Args:
        source: of the landing.
        out: folder of the tables.
        identity: what the checkpoint belongs to besides the source.
        since_last: whether only what is new since the last run is read.
        snapshot: whether a complete answer closes what it does not have.
        write: merge or append.
    """

    def __init__(
        self,
        source: SourceOptions,
        out: Path,
        identity: Mapping[str, str],
        *,
        since_last: bool,
        snapshot: bool,
        write: str,
    ) -> None:
        self._wait = source.on_incomplete is OnIncomplete.FILTER
        self._snapshot = snapshot
        self._write = write
        whose = {
            "landing": list(source.paths),
            "object types": list(source.object_types),
            "stubs": list(source.stubs),
            "write": write,
            **identity,
        }
        self.checkpoint = Checkpoint(out / REPORT, whose)
        self.news = self.checkpoint.look(source.paths, since_last=since_last, wait=self._wait)

    def plan(self, source: SourceOptions) -> Plan:
        """The plan of the news, with what has changed since it was read among the rejects."""
        plan = plan_landing(source, self.news.found, self.news.known, self.news.recalled)
        return replace(plan, rejects=(*plan.rejects, *self.news.changed))

    def merge(
        self, spark: SparkSession, lake: Lake, source: SourceOptions, plan: Plan, written: Written, staged: Staging
    ) -> Grown:
        """Merge the tables of the news, and the events among them, into the tables; Parquet is only staged."""
        names = _types(source, written, lake)
        times = self._times(spark, plan)
        events = self._events(spark, source, plan, staged.folder, names, times)
        closings = [] if events is None else _deletions(events)
        rejects = () if events is None else _rejects(events)
        there = set(lake.labels(names))
        merges: dict[str, TableMerge] = {}
        unnamed = 0
        for name in names:
            label = label_of(class_for(name))
            objects = self._objects(spark, name, staged.folder)
            own = own_columns(objects.columns)
            of_type = None if events is None else _of_type(events, names, name)
            has_events = of_type is not None and not of_type.isEmpty()
            answers = self._answers(objects.withColumnRenamed(own["source_file"], "source_file"), times, plan, label)
            closings += answers
            told = has_events or written.rows.get(label)
            if not told and not (label in there and any(one.name for one in closings)):
                continue
            unnamed += objects.where(f.col(own["name_text"]).isNull()).count() if written.rows.get(label) else 0
            table = lake.read(label) if label in there else None
            news = News(objects, times, of_type if has_events else None, closings, self.checkpoint.closings)
            merges[label] = TableMerge(spark, self._write, label, table, news)
        changed = self._stage(lake, merges, staged)
        added = {label: [name for name, _ in merge.added] for label, merge in merges.items() if merge.added}
        made = tuple(f"{PREFIX}{label}" for label in changed) if lake.format == PARQUET else ()
        self._changed = {label: merges[label] for label in changed}
        return Grown(changed, added, rejects, unnamed, tuple(closings), made)

    def _stage(self, lake: Lake, merges: Mapping[str, TableMerge], staged: Staging) -> dict[str, int]:
        """Write the rows that change aside, and Parquet tables as they will be; the number of such rows by type."""
        changed: dict[str, int] = {}
        for label, merge in merges.items():
            steps = itertools.count()

            def stage(rows: DataFrame, label: str = label, steps: Iterator[int] = steps) -> DataFrame:
                folder = staged.folder / "facts" / f"{label}-{next(steps)}"
                write_parquet(rows, folder)
                return lake.spark.read.parquet(str(folder))

            aside = staged.folder / "merged" / label
            write_parquet(merge.changes(stage), aside)
            rows = self._aside(lake, aside)
            count = rows.count()
            if not count and merge.exists:
                continue
            changed[label] = count
            if lake.format == PARQUET:
                kept = rows.where(~f.col(REMOVED)).drop(REMOVED)
                if merge.exists:
                    stays = merge.fitted().join(rows.select(*merge.keys), [*merge.keys], "left_anti")
                    kept = stays.unionByName(kept)
                write_parquet(kept, staged.folder / f"{PREFIX}{label}")
        return changed

    def _aside(self, lake: Lake, folder: Path) -> DataFrame:
        return lake.spark.read.parquet(str(folder))

    def check(self) -> None:
        """Check before a commit that neither the files nor the checkpoint have changed meanwhile."""
        check_unchanged(self.news)
        self.checkpoint.check_alone()

    def commit(self, lake: Lake, staged: Staging) -> None:
        """Commit what was staged to tables of Delta or Iceberg."""
        staged.begin_commits(len(self._changed))
        for label, merge in self._changed.items():
            rows = self._aside(lake, staged.folder / "merged" / label)
            if merge.exists:
                lake.add_columns(label, merge.added)
                lake.merge(label, rows, merge.keys, REMOVED)
            else:
                lake.replace(label, rows.where(~f.col(REMOVED)).drop(REMOVED))

    def advance(self, plan: Plan, rejects: Sequence[Reject], grown: Grown, staged: Staging) -> int:
        """Stage the checkpoint; how many responses wait."""
        after = self.checkpoint.advance(self.news, plan, rejects, grown.closings, wait=self._wait)
        after.save(staged.folder / REPORT)
        return after.waiting

    def _file_time(self, path: str) -> dt.datetime:
        facts = self.news.files.get(split_member(path)[0])
        stamp = facts.time_ns / 1e9 if facts is not None else Path(split_member(path)[0]).stat().st_mtime
        return dt.datetime.fromtimestamp(stamp, dt.UTC)

    def _times(self, spark: SparkSession, plan: Plan) -> DataFrame:
        """When each message was sent, and of which complete sequence it is."""
        files = [file for file in plan.files if file.kind in (RESPONSE, NOTIFICATION)]
        rows = pa.table(
            {
                "source_file": pa.array([file.path for file in files], pa.string()),
                "_time": pa.array(
                    [time_of(file.timestamp) or self._file_time(file.path) for file in files],
                    pa.timestamp("us", tz="UTC"),
                ),
                "_sequence": pa.array(
                    [_sequence(file.correlation_id, file.path) if file.complete else None for file in files],
                    pa.string(),
                ),
            }
        )
        return spark.createDataFrame(rows)

    def _objects(self, spark: SparkSession, name: str, folder: Path) -> DataFrame:
        table = folder / READ / f"{PREFIX}{label_of(class_for(name))}"
        if table.is_dir():
            return spark.read.parquet(str(table))
        return spark.createDataFrame([], from_arrow_schema(row_schema((name,))))

    def _events(
        self,
        spark: SparkSession,
        source: SourceOptions,
        plan: Plan,
        folder: Path,
        names: Sequence[str],
        times: DataFrame,
    ) -> DataFrame | None:
        """What the notifications say, written aside."""
        files = tuple(file for file in plan.files if file.kind == NOTIFICATION)
        if not files:
            return None
        saved = folder / "events.json"
        replace(plan, files=files, rejects=(), unfollowed=()).save(saved)
        stubs = ",".join(source.stubs)
        messages = load(spark, planFile=str(saved), objectType=MESSAGE, columns="body,source_file", stubs=stubs)
        write_parquet(event_rows(messages, names, source.stubs), folder / "events")
        rows = spark.read.parquet(str(folder / "events"))
        sent = times.select("source_file", f.col("_time").alias("_sent"))
        timed = rows.join(f.broadcast(sent), "source_file", "left")
        return timed.withColumn("_time", f.coalesce("_time", "_sent")).drop("_sent").select(*rows.columns)

    def _answers(self, objects: DataFrame, times: DataFrame, plan: Plan, label: str) -> list[Closing]:
        """The complete answers that have objects of a type."""
        if not self._snapshot:
            return []
        held = objects.join(times, "source_file").select("_sequence").distinct().collect()
        keys = {row["_sequence"] for row in held} - {None}
        firsts: dict[str, dt.datetime] = {}
        for file in plan.files:
            key = _sequence(file.correlation_id, file.path)
            if key in keys:
                time = time_of(file.timestamp) or self._file_time(file.path)
                firsts[key] = min(firsts.get(key, time), time)
        return [Closing(time, object_type=label, sequence=key) for key, time in sorted(firsts.items())]


def _sequence(correlation_id: str | None, path: str) -> str:
    return f"file {path}" if correlation_id is None else f"id {correlation_id}"


def _types(source: SourceOptions, written: Written, lake: Lake) -> tuple[str, ...]:
    """The object types that may have news."""
    if source.object_types != (ALL,):
        return source.object_types
    return tuple(dict.fromkeys((*OBJECT_TYPES, *written.rows, *lake.labels(OBJECT_TYPES))))


def _of_type(events: DataFrame, names: Sequence[str], name: str) -> DataFrame:
    """The events about objects of one type, in its columns."""
    facts = ("_fact", "_name", "_time", "_told")
    told = events.where(~f.col("_fact").isin(GONE, REJECTED))
    if len(names) == 1:
        return told
    return told.where(f.col("object_type") == label_of(class_for(name))).select(*facts, *type_columns(name))


def _deletions(events: DataFrame) -> list[Closing]:
    micros = f.unix_micros("_time").alias("micros")
    rows = events.where(f.col("_fact") == GONE).select("_name", micros).distinct().collect()
    closed = [Closing(_EPOCH + dt.timedelta(microseconds=row["micros"]), name=row["_name"]) for row in rows]
    return sorted(closed, key=lambda one: (one.time, one.name))


def _rejects(events: DataFrame) -> tuple[Reject, ...]:
    place = own_columns(events.columns)
    rows = (
        events.where(f.col("_fact") == REJECTED).select(place["source_file"], place["source_line"], "_name").collect()
    )
    return tuple(Reject(file, line, reason) for file, line, reason in rows)
