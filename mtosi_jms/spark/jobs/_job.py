"""What the jobs have in common: whose folder it is, their stages, a session, Spark's errors as ours, the result.

Each job owns some folders of tables below its `out`, and a summary in `out/_report/`. A folder that has such tables
but not the summary was made by something else, and is refused. Beside the summary lies a page that shows the same.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f

from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.report import Report, render
from mtosi_jms.spark.jobs._progress import Progress, watching
from mtosi_jms.spark.jobs._swap import REPORT, Staging, recover, staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARQUET: Final = "parquet"
JSON: Final = "json"
CSV: Final = "csv"
FORMATS: Final = (PARQUET, JSON, CSV)
_ERROR_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """What all jobs are told; each job adds what is its own.

    Attributes:
        out: folder for the result; made if need be. An earlier result of the same job there is replaced.
        cores: processors for a session of the job's own, by default all.
        allow_empty: whether an input with nothing in it makes empty tables; by default it is an error.
        format: of the tables; of an ingest parquet, delta or iceberg, of the other jobs parquet, json or csv.
        where: a condition in Spark SQL on the columns of the rows that are written; empty for all rows.
        conf: further settings of Spark for a session of the job's own, jars and catalogs for example.
    """

    out: str | Path
    cores: int | None = None
    allow_empty: bool = False
    format: str = "parquet"
    where: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """What a job brought; each job adds its own numbers.

    Attributes:
        stages: seconds by stage.
        seconds: in all.
        out: where the result lies.
        where: the condition on the rows that were written; empty for all rows.
    """

    stages: dict[str, float]
    seconds: float
    out: Path
    where: str = ""

    def summary(self) -> dict[str, Any]:
        """The JSON document of the command."""
        shared = {field.name for field in fields(JobResult)}
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in shared}
        own = {
            name: [asdict(item) for item in value] if isinstance(value, tuple) else value
            for name, value in values.items()
        }
        stages = {name: round(value, 3) for name, value in self.stages.items()}
        told = {"where": self.where} if self.where else {}
        return {**own, **told, "seconds": round(self.seconds, 3), "stages": stages, "out": str(self.out)}


@contextmanager
def interpreted(spark: SparkSession, few: bool) -> Iterator[None]:
    """Have Spark interpret its plans in this block, where they are for few rows, instead of compiling them."""
    before = {name: spark.conf.get(name, None) for name in _INTERPRETED} if few else {}
    try:
        for name in before:
            spark.conf.set(name, _INTERPRETED[name])
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


class Job:
    """One run of a job.

    Attributes:
        out: folder for the result.
    """

    def __init__(
        self,
        name: str,
        out: str | Path,
        tables: Sequence[str],
        progress: Progress | None,
        *,
        lake: bool = False,
        format: str = PARQUET,
        where: str = "",
    ) -> None:
        """See that `out` is a place for the result of a job.

        Args:
            name: of the job; its summary is `_report/NAME.json`, that of an ingest `_report/summary.json`.
            out: the folder; it need not exist.
            tables: glob patterns of the folders of tables that the job makes.
            progress: told of each stage as it begins, and of Spark's tasks.
            lake: whether Spark commits the tables, those of Delta or Iceberg.
            format: of tables that `write` makes.
            where: the condition on the rows that `write` writes.

        Raises:
            ConfigError: the format is unknown, or `out` holds tables of something else.
        """
        if not lake and format not in FORMATS:
            raise ConfigError(f"format is {format!r}; there are {', '.join(FORMATS)}")
        self.out = Path(out)
        ingest = name == "ingest"
        self._summary, self._page = ("summary.json", "report.html") if ingest else (f"{name}.json", f"{name}.html")
        self._tables = tables
        self._lake = lake
        self._format = format
        self._where = where
        self._written: list[tuple[DataFrame, Path]] = []
        self._progress = progress
        self._stage = ""
        self._started = time.perf_counter()
        self._stages: dict[str, float] = {}
        recover(self.out, lake=lake)
        foreign = [pattern for pattern in tables if list(self.out.glob(pattern))]
        if foreign and not (self.out / REPORT / self._summary).is_file():
            shown = foreign[0].replace("*", "...")
            raise ConfigError(f"{out} holds {shown} folders that no {name} of ours made: choose another folder")

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the block as a stage."""
        self._stage = name
        if self._progress is not None:
            self._progress(name, 0, 0)
        started = time.perf_counter()
        yield
        self._stages[name] = self._stages.get(name, 0.0) + time.perf_counter() - started

    @property
    def facts(self) -> dict[str, Any]:
        """The fields of `JobResult` as they are now."""
        return {
            "stages": self._stages,
            "seconds": time.perf_counter() - self._started,
            "out": self.out,
            "where": self._where,
        }

    @contextmanager
    def working(
        self,
        spark: SparkSession | None,
        cores: int | None,
        *,
        settings: Mapping[str, str] | None = None,
    ) -> Iterator[tuple[Staging, SparkSession]]:
        """A place to make the tables, and a session: the caller's, or one of the job's own that ends with the block.

        Args:
            spark: a session of the caller's.
            cores, settings: of a session of the job's own.
        """
        from mtosi_jms.spark._session import local_session

        with staging(self.out, lake=self._lake) as staged, ExitStack() as stack:
            with self.stage("start Spark") if spark is None else nullcontext():
                active = spark or stack.enter_context(local_session(cores=cores, settings=settings))
            tell = self._progress
            if tell is not None:
                stack.enter_context(watching(active, lambda done, tasks: tell(self._stage, done, tasks)))
            with _spark_errors():
                yield staged, active

    def write(self, rows: DataFrame, folder: Path, *, filtered: bool = True) -> DataFrame:
        """Write a table as Parquet, and give it as it was written; `finish` brings it into the job's format.

        Args:
            rows: of the table.
            folder: where it is made.
            filtered: whether the job's condition holds for its rows.
        """
        write_parquet(where(rows, self._where) if filtered else rows, folder)
        written = rows.sparkSession.read.parquet(str(folder))
        self._written.append((written, folder))
        return written

    def finish(self, staged: Staging, result: JobResult, page: Report, tables: Sequence[str] | None = None) -> None:
        """Write the summary and its page, and put all that was made in the place of what was there.

        Args:
            staged: where it was made.
            result: of the job.
            page: what the page shows; its time, times of stages and the link to the summary are added.
            tables: patterns of the tables that are replaced, by default all of the job's; others stay.
        """
        if self._format in (JSON, CSV):
            for written, folder in self._written:
                _convert(written, folder, self._format)
        staged.report_json(self._summary, result.summary())
        links = {**page.links, "the summary as JSON": self._summary}
        notes = [f"Only rows where {result.where} are in the tables."] if result.where else []
        page = replace(
            page, made=dt.datetime.now(dt.UTC), seconds=result.stages, links=links, notes=[*notes, *page.notes]
        )
        staged.report(self._page, render(page))
        staged.swap(() if self._lake else self._tables if tables is None else tables)


@contextmanager
def _spark_errors() -> Iterator[None]:
    """Turns an error of Spark's into an MtosiError of one line, while the session can still describe it.

    PySpark logs some of its errors to standard error besides, with a page of Java in each; not while the block runs.
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
        ours = re.findall(r"^(?:mtosi_jms\.errors\.\w+|pyarrow\.lib\.\w+|\w*Error): (.+)$", text, re.MULTILINE)
        raise MtosiError(f"Spark: {ours[-1] if ours else _first_line(error)}") from error
    finally:
        for logger in loggers:
            logger.removeFilter(drop)


def load(spark: SparkSession, **options: str) -> DataFrame:
    """What the source `mtosi` gives for some options."""
    from mtosi_jms.spark._source import InventorySource

    spark.dataSource.register(InventorySource)
    return spark.read.format(InventorySource.name()).options(**options).load()


def where(rows: DataFrame, condition: str) -> DataFrame:
    """The rows for which a condition in Spark SQL holds; all for an empty one.

    Raises:
        ConfigError: it is no condition on these rows; the text says why, in Spark's words.
    """
    from pyspark.errors import AnalysisException, ParseException

    if not condition:
        return rows
    try:
        return rows.where(condition)
    except (AnalysisException, ParseException) as error:
        raise ConfigError(f"where {condition!r}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """What an error of Spark's begins with; the plans that follow tell users nothing."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def write_parquet(rows: DataFrame, folder: Path) -> None:
    """Write a table, without the check sums that Hadoop leaves beside its files."""
    rows.write.mode("overwrite").parquet(str(folder))
    for checksum in folder.glob(".*.crc"):
        checksum.unlink()


def _convert(rows: DataFrame, folder: Path, format: str) -> None:
    """Put a table of another format in the place of a Parquet table."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    aside = folder.with_name(f"{folder.name}.{format}")
    if format == CSV:  # which has no nested columns: they are JSON in it
        nested = [name for name in rows.schema if isinstance(name.dataType, ArrayType | MapType | StructType)]
        rows = rows.withColumns({column.name: f.to_json(column.name) for column in nested})
        rows.write.option("header", True).option("escape", '"').csv(str(aside))
    else:
        rows.write.json(str(aside))
    for checksum in aside.glob(".*.crc"):
        checksum.unlink()
    shutil.rmtree(folder)
    aside.rename(folder)
