"""What the jobs of Spark have in common: a session, its errors, and tables in the formats of the job."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.report import Report
from mtosi_jms.spark._writing import write_parquet
from mtosi_jms.spark.jobs._progress import watching
from mtosi_jms.tables.job import Job, JobResult, Progress
from mtosi_jms.tables.swap import Staging, staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARQUET: Final = "parquet"
JSON: Final = "json"
CSV: Final = "csv"
FORMATS: Final = (PARQUET, JSON, CSV)
_ERROR_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


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


class SparkJob(Job):
    """One run of a job that uses Spark; arguments as for `Job`, and the `format` of the tables that `write` makes."""

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
        if not lake and format not in FORMATS:
            raise ConfigError(f"format is {format!r}; there are {', '.join(FORMATS)}")
        super().__init__(name, out, tables, progress, lake=lake, where=where)
        self._format = format
        self._written: list[tuple[DataFrame, Path]] = []

    @contextmanager
    def working(
        self,
        spark: SparkSession | None,
        cores: int | None,
        *,
        settings: Mapping[str, str] | None = None,
    ) -> Iterator[tuple[Staging, SparkSession]]:
        """Provide a staging folder and a session: the caller's, or a new one that stops at the end of the block."""
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
        """Write a table as Parquet, and return it as it was written; `finish` converts it to the format of the job."""
        write_parquet(where(rows, self._where) if filtered else rows, folder)
        written = rows.sparkSession.read.parquet(str(folder))
        self._written.append((written, folder))
        return written

    def finish(self, staged: Staging, result: JobResult, page: Report, tables: Sequence[str] | None = None) -> None:
        """Write the tables in the format of the job, then the report, and replace the earlier result."""
        if self._format in (JSON, CSV):
            for written, folder in self._written:
                _convert(written, folder, self._format)
        super().finish(staged, result, page, tables)


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
    """Return the rows for which a condition in SQL holds; if empty, all. Raises ConfigError with Spark's reason."""
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
