"""What the jobs of Spark have in common: a session, its errors, and the tables that they write.

A landing is read once. A single object type is written as it is read. Several types are read together, each into a
struct column of its own, and Spark then splits them into tables. A few messages that a merge needs are read in this
process, because a Spark job would take longer to start.
"""

from __future__ import annotations

import logging
import math
import re
import shutil
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import pyarrow as pa
from pyspark.sql import Observation
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.inventory import ALL, MESSAGE, class_for, label_of
from mtosi_jms.spark._engine import EnginePlan, KnownMessages, Messages, messages_of, write_parquet
from mtosi_jms.spark._workers import map_batches
from mtosi_jms.spark.jobs._merge import state_of
from mtosi_jms.tables.job import Staging, format_of, staging
from mtosi_jms.tables.landing import Plan, PlannedFile
from mtosi_jms.tables.options import SourceOptions
from mtosi_jms.tables.snapshots import Snapshot
from mtosi_jms.tables.sql import ROW, Batches, SqlJob, as_text
from mtosi_jms.tables.writer import CORRUPT, TableWriter, Written, column_paths, weight

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_FILE_BYTES: Final = 128 * 1024 * 1024
_AT_ONCE: Final = 4
_FEW_BYTES: Final = 96 * 1024 * 1024
_CALLING: Final = "An error occurred while calling"
_CAUSES: Final = (": ", "Caused by: ")
_ERROR_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_PAUSE: Final = 0.5
"""Seconds between two looks at the tasks of Spark."""
FEW: Final = 20_000
"""Fewer rows of news than this are merged by one task, and Spark interprets its plan: to compile it takes longer."""
INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Spark interprets its plans, which for few rows is sooner done than to compile them."""
ONE_JOB: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "1",
}
"""Spark does a query in one job: otherwise each exchange is a job, which costs more than a few rows do."""


@contextmanager
def settings(spark: SparkSession, given: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in given}
    try:
        for name, value in given.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, was in before.items():
            if was is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, was)


class SparkSql:
    """`mtosi_jms.tables.sql.Sql` by Spark."""

    row: str = f"struct({ROW}.*)"
    json: str = f"to_json({row}, map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'))"

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def schema(self, table: DataFrame) -> pa.Schema:
        return to_arrow_schema(table.schema)

    def select(self, table: DataFrame, columns: Sequence[str], **constants: str) -> DataFrame:
        return table.select(*(table[name] for name in columns)).withColumns(
            {name: f.lit(value) for name, value in constants.items()}
        )

    def sql(self, text: str, **tables: Any) -> DataFrame:
        return self.spark.sql(text, **tables)

    def each(self, table: DataFrame, make: Batches, schema: pa.Schema) -> DataFrame:
        return map_batches(table, make, schema)

    def rows(self, table: DataFrame) -> Sequence[Any]:
        return table.collect()


def table_of(spark: SparkSession, snapshot: Snapshot, object_type: str) -> DataFrame:
    folder = snapshot.tables[object_type]
    return state_of(spark.read.format(format_of(folder)).load(str(folder)), snapshot.at)


class SparkJob(SqlJob["DataFrame"]):
    """One run of a job that uses Spark; arguments as for `Job`, and the `format` of the tables that `write` makes."""

    sql: SparkSql

    @contextmanager
    def working(
        self,
        spark: SparkSession | None,
        cores: int | None,
        *,
        settings: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> Iterator[tuple[Staging, SparkSession]]:
        """Provide a staging folder and a session: the caller's, or a new one that stops at the end of the block."""
        from mtosi_jms.spark._session import local_session

        with staging(self.out, lake=self._lake, dry_run=dry_run) as staged, ExitStack() as stack:
            with self.stage("start Spark") if spark is None else nullcontext():
                active = spark or stack.enter_context(local_session(cores=cores, settings=settings))
            report = self._progress
            if report is not None:
                stack.enter_context(_watching(active, lambda done, tasks: report(self._stage, done, tasks)))
            self.sql = SparkSql(active)
            with _spark_errors():
                yield staged, active

    def write(
        self, table: DataFrame, folder: Path, *, filtered: bool = True, like: DataFrame | None = None
    ) -> DataFrame:
        """Write a table as Parquet, and return it as it was written."""
        write_parquet(where(table, self._where) if filtered else table, folder)
        return table.sparkSession.read.parquet(str(folder))

    def convert(self, paths: Sequence[Path]) -> None:
        rows = self.sql.spark.createDataFrame([(str(path),) for path in paths], "path string")
        work = partial(_as_texts, self._format)
        self.sql.each(rows.repartition(len(paths)), work, pa.schema([("path", pa.string())])).collect()


def _as_texts(format: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for path in map(Path, batch.column(0).to_pylist()):
            if path.exists():  # else a task did it, and was run again
                as_text(path, format)
        yield batch


@contextmanager
def _watching(spark: SparkSession, report: Callable[[int, int], None]) -> Iterator[None]:
    """Report the tasks of the active Spark stages while the block runs; nothing for a remote session."""
    from pyspark import InheritableThread
    from pyspark.sql.utils import is_remote

    if is_remote():
        yield
        return
    done = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def watch() -> None:
        before = (0, 0)
        while not done.wait(_PAUSE):
            found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            stages = [stage for stage in found if stage is not None]
            now = sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
            if stages and now != before:
                report(*now)
                before = now

    thread = InheritableThread(target=watch, name="spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def _spark_errors() -> Iterator[None]:
    """Turn errors of Spark into an MtosiError of one line, while the session can still describe them.

    PySpark also logs some of its errors to standard error, each with a long Java stack trace. The block turns this off.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger

    def drop(record: logging.LogRecord) -> bool:
        return False

    loggers = [PySparkLogger.getLogger(name) for name in _ERROR_LOGGERS]
    for logger in loggers:
        logger.addFilter(drop)
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        messages = re.findall(r"^(?:mtosi_jms\.errors\.\w+|pyarrow\.lib\.\w+|\w*Error): (.+)$", text, re.MULTILINE)
        raise MtosiError(f"Spark: {messages[-1] if messages else _first_line(error)}") from error
    finally:
        for logger in loggers:
            logger.removeFilter(drop)


def where(rows: DataFrame, condition: str) -> DataFrame:
    """Return the rows for which a condition in SQL holds; if empty, all. Raises ConfigError with Spark's reason."""
    from pyspark.errors import AnalysisException, ParseException

    if not condition:
        return rows
    try:
        return rows.where(condition)
    except (AnalysisException, ParseException) as error:
        raise ConfigError(f"where {condition!r}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """Return the first line of an error of Spark, or the last cause where that only names a call; the plans that follow
    do not help users."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    if lines and lines[0].startswith(_CALLING):
        lines = [line.removeprefix(mark) for line in lines for mark in _CAUSES if line.startswith(mark)][-1:] or lines
    return lines[0] if lines else type(error).__name__


class SparkTableWriter(TableWriter):
    """Writes the tables of one landing into a folder.

    Args:
        condition: in Spark SQL, selects the rows that are written; empty for all rows.
        here: whether to read a few messages in this process and write their tables with Arrow, without `condition`.
        known: gives the sequences that are left out, as `sequence_key` names them.
    """

    def __init__(
        self,
        spark: SparkSession,
        options: SourceOptions,
        folder: Path,
        condition: str = "",
        *,
        here: bool = False,
        known: Callable[[], Collection[str]] = tuple,
    ) -> None:
        super().__init__(options, folder)
        self._spark = spark
        self._condition = condition
        self._here = here
        self._known = known
        self._landed: Messages

    def write(self, plan: Plan | EnginePlan) -> Written | None:
        """Make the tables; None if a file turns out to be damaged, because the plan is then wrong."""
        if isinstance(plan, Plan) and (known := self._known()):
            plan = replace(plan, files=tuple(file for file in plan.files if sequence_key(file) not in known))
        self._landed = messages_of(self._spark, plan, self._options)
        return self._write({found.correlation_id for found in plan.sequences if found.conflicts})

    def _body_tags(self) -> set[str]:
        return self._landed.body_tags()

    def _messages(self, tags: set[str]) -> Iterable[Any]:
        rows = self._read((MESSAGE,), self._landed.of_tags(tags))
        return rows.select("source_file", "body_element", "objects", "warnings", CORRUPT).collect()

    def _is_damaged(self) -> bool:
        rows = self._read((MESSAGE,), self._landed).select("kind", CORRUPT)
        return bool(rows.where(f.col(CORRUPT).isNotNull()).take(1))

    def _read(self, types: Sequence[str], landed: Messages) -> DataFrame:
        return landed.rows(self._reading(types))

    def _fill(self, types: Sequence[str]) -> int:
        if self._here and is_few(self._landed):
            self._files = self._landed.files
            return super()._fill(types)
        return self._one(types[0]) if len(types) == 1 else self._several(types)

    def _one(self, name: str) -> int:
        """Write one object type as it is read. Return how many files were rejected."""
        rows, observed = self._observed(self._read((name,), self._landed))
        write_parquet(where(rows, self._condition), self._table(name))
        return int(observed.get["rejected"])

    def _several(self, types: Sequence[str]) -> int:
        """Read several object types at once into a temporary folder, and split them into tables; return how many files
        were rejected."""
        partitioned = self._folder / "aside"
        rows, observed = self._observed(self._read(types, self._landed))
        write_parquet(rows, partitioned, by=("object_type",))
        rejected = int(observed.get["rejected"])
        if not rejected:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(lambda name: self._part(name, partitioned, rows), types))
        shutil.rmtree(partitioned)
        return rejected

    def _part(self, name: str, partitioned: Path, rows: DataFrame) -> None:
        """Write the table of one object type from its rows in the temporary folder."""
        folder = partitioned / f"object_type={label_of(class_for(name))}"
        if folder.exists():
            stored = self._spark.read.schema(rows.schema).parquet(str(folder))
            rows = where(stored.select(*type_columns(name, self._schema(name).names)), self._condition)
            write_parquet(rows.coalesce(_files(folder)), self._table(name))
        elif self._options.object_types != (ALL,):
            write_parquet(
                rows.limit(0).select(*type_columns(name, self._schema(name).names)).coalesce(1), self._table(name)
            )

    def split(self, name: str, columns: Sequence[str]) -> None:
        folder = self._table(name)
        new = folder.with_name(f"{folder.name}.split")
        names = [f.col(column) for column in columns]
        write_parquet(self._spark.read.parquet(str(folder)).repartition(*names), new, by=columns)
        shutil.rmtree(folder)
        new.rename(folder)

    def _observed(self, rows: DataFrame) -> tuple[DataFrame, Any]:
        """Return the rows without those of rejected files, and an observation that counts the rejected files."""
        observed = Observation("rejects")
        counted = rows.observe(observed, f.count(f.col(CORRUPT)).alias("rejected"))
        return counted.where(f.col(CORRUPT).isNull()).drop(CORRUPT), observed


def _files(folder: Path) -> int:
    """Return into how many files a table should be written, from the size of its rows in a folder."""
    size = sum(file.stat().st_size for file in folder.glob("*.parquet"))
    return max(1, math.ceil(size / _FILE_BYTES))


def sequence_key(file: PlannedFile) -> str:
    """Return what names the sequence of a message: its correlationId, or its own path if it has none."""
    return file.path if file.correlation_id is None else file.correlation_id


def is_few(messages: Messages) -> TypeGuard[KnownMessages]:
    """Whether this process can read messages, and sooner than Spark would."""
    if not isinstance(messages, KnownMessages):
        return False
    return sum(weight(file.path, file.size) for file in messages.files) < _FEW_BYTES


def type_columns(name: str, columns: Sequence[str]) -> list[Column]:
    """Return some columns of one object type, taken from rows with several types."""
    return [f.col(".".join(path)).alias(column) for column, path in column_paths(name, columns).items()]
