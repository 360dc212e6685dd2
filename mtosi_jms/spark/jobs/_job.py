"""What the jobs have in common: checks of the output folder, stages, a session, errors of Spark, and the result.

Each job owns some folders of tables below its `out`, and a summary and an HTML page in `out/_report/`. If `out` has
such tables but no summary of the job, something else made them, and the job refuses the folder.
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
from mtosi_jms.spark._writing import write_parquet
from mtosi_jms.spark.jobs._progress import Progress, watching
from mtosi_jms.spark.jobs._swap import REPORT, Staging, recover, staging
from mtosi_jms.tables.files import folder_here

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
    """The options of all jobs; each job adds its own.

    Attributes:
        out: folder for the result, on a file system of this machine; made if it does not exist. An earlier result of
            the same job there is replaced.
        cores: number of processors for a session that the job makes; by default all.
        allow_empty: whether an empty input makes empty tables; by default it is an error.
        format: of the tables: parquet, delta or iceberg for an ingest, and parquet, json or csv for the other jobs.
        where: a condition in Spark SQL that selects the rows to write; empty for all rows.
        conf: further settings of Spark for a session that the job makes, for example jars and catalogs.
    """

    out: str | Path
    cores: int | None = None
    allow_empty: bool = False
    format: str = "parquet"
    where: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """The result of a job; each job adds its own numbers.

    Attributes:
        stages: seconds by stage.
        seconds: duration of the job.
        out: the folder of the result.
        where: the condition that selected the rows; empty for all rows.
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
        condition = {"where": self.where} if self.where else {}
        return {**own, **condition, "seconds": round(self.seconds, 3), "stages": stages, "out": str(self.out)}


@contextmanager
def interpreted(spark: SparkSession, few: bool) -> Iterator[None]:
    """Let Spark interpret its plans in this block instead of compiling them, if they are for `few` rows."""
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
        """Check that the job may write its result into `out`.

        Args:
            name: of the job; its summary is `_report/NAME.json`, or `_report/summary.json` for an ingest.
            out: the folder; it need not exist.
            tables: glob patterns of the folders of tables that the job makes.
            progress: called when a stage begins and when Spark has finished tasks.
            lake: whether Spark commits the tables (Delta or Iceberg).
            format: of the tables that `write` makes.
            where: the condition that selects the rows that `write` writes.

        Raises:
            ConfigError: the format is unknown, `out` is not on a file system of this machine, or it has tables
                that this job did not make.
        """
        if not lake and format not in FORMATS:
            raise ConfigError(f"format is {format!r}; there are {', '.join(FORMATS)}")
        self.out = folder_here(out, "the folder for the result")
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
        interrupted = recover(self.out, lake=lake)
        foreign = [pattern for pattern in tables if list(self.out.glob(pattern))]
        if foreign and not interrupted and not (self.out / REPORT / self._summary).is_file():
            shown = foreign[0].replace("*", "...")
            raise ConfigError(f"{out} holds {shown} folders that no {name} of ours made: choose another folder")

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure the time of the block as that of a stage."""
        self._stage = name
        if self._progress is not None:
            self._progress(name, 0, 0)
        started = time.perf_counter()
        yield
        self._stages[name] = self._stages.get(name, 0.0) + time.perf_counter() - started

    @property
    def facts(self) -> dict[str, Any]:
        """The values for the fields of `JobResult`, at this moment."""
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
        """Provide a staging folder and a session: the caller's, or a new one that stops at the end of the block.

        Args:
            spark: the session of the caller, if any.
            cores, settings: for a new session.
        """
        from mtosi_jms.spark._session import local_session

        with staging(self.out, lake=self._lake) as staged, ExitStack() as stack:
            with self.stage("start Spark") if spark is None else nullcontext():
                active = spark or stack.enter_context(local_session(cores=cores, settings=settings))
            report = self._progress
            if report is not None:
                stack.enter_context(watching(active, lambda done, tasks: report(self._stage, done, tasks)))
            with _spark_errors():
                yield staged, active

    def write(self, rows: DataFrame, folder: Path, *, filtered: bool = True) -> DataFrame:
        """Write a table as Parquet, and return it as it was written; `finish` converts it to the format of the job.

        Args:
            rows: of the table.
            folder: of the table.
            filtered: whether to write only the rows for which the condition of the job holds.
        """
        write_parquet(where(rows, self._where) if filtered else rows, folder)
        written = rows.sparkSession.read.parquet(str(folder))
        self._written.append((written, folder))
        return written

    def finish(self, staged: Staging, result: JobResult, page: Report, tables: Sequence[str] | None = None) -> None:
        """Write the summary and the page, and replace the earlier result by what the job made.

        Args:
            staged: the staging folder with the tables.
            result: of the job.
            page: content of the page; its time, the times of stages and a link to the summary are added.
            tables: patterns of the tables that are replaced, by default all tables of the job; others stay.
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


def load(spark: SparkSession, **options: str) -> DataFrame:
    """Return what the source `mtosi` reads with some options."""
    from mtosi_jms.spark._source import InventorySource

    spark.dataSource.register(InventorySource)
    return spark.read.format(InventorySource.name()).options(**options).load()


def where(rows: DataFrame, condition: str) -> DataFrame:
    """Return the rows for which a condition in Spark SQL holds; all rows if the condition is empty.

    Raises:
        ConfigError: the condition does not fit these rows; the text has Spark's reason.
    """
    from pyspark.errors import AnalysisException, ParseException

    if not condition:
        return rows
    try:
        return rows.where(condition)
    except (AnalysisException, ParseException) as error:
        raise ConfigError(f"where {condition!r}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """Return the first line of an error of Spark; the plans that follow do not help users."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _convert(rows: DataFrame, folder: Path, format: str) -> None:
    """Replace a Parquet table by the same table as JSON or CSV."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    output = folder.with_name(f"{folder.name}.{format}")
    if format == CSV:  # CSV has no nested columns, so they are written as JSON
        nested = [name for name in rows.schema if isinstance(name.dataType, ArrayType | MapType | StructType)]
        rows = rows.withColumns({column.name: f.to_json(column.name) for column in nested})
        texts = [name for name, kind in rows.dtypes if kind == "string"]
        # A spreadsheet runs a text that begins like a formula; after an apostrophe it is text.
        plain = {name: f.regexp_replace(name, r"^(?=\s*[=+\-@]|[\t\r\n])", "'") for name in texts}
        writer = rows.withColumns(plain).write.option("header", True).option("escape", '"')
        # Spark would cut white space, at the beginning of a text too.
        for side in ("Leading", "Trailing"):
            writer = writer.option(f"ignore{side}WhiteSpace", False)
        writer.csv(str(output))
    else:
        rows.write.json(str(output))
    for checksum in output.glob(".*.crc"):
        checksum.unlink()
    shutil.rmtree(folder)
    output.rename(folder)
