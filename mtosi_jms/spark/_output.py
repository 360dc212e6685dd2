"""What the jobs have in common: whose folder it is, a session, Spark's errors as ours.

Each job owns some folders of tables below its `out`, and a summary in `out/_report/`. Tables without that summary were
made by somebody else, and such a folder is refused.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.spark._swap import REPORT, recover

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[str], None]


class Stages:
    """How long each stage of a job took."""

    def __init__(self, progress: Progress | None = None) -> None:
        """Prepare to count; `progress` is called with the name of each stage as it begins."""
        self._progress = progress or (lambda stage: None)
        self._started = time.perf_counter()
        self.seconds: dict[str, float] = {}

    @property
    def total(self) -> float:
        """Seconds since the job began."""
        return time.perf_counter() - self._started

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the block as a stage."""
        self._progress(name)
        started = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    def rounded(self) -> dict[str, float]:
        """The seconds as a summary shows them."""
        return {name: round(value, 3) for name, value in self.seconds.items()}


@contextmanager
def session_for(given: SparkSession | None, cores: int | None = None) -> Iterator[SparkSession]:
    """The session of the caller, or one of the job's own that ends with the block.

    Raises:
        MissingExtraError: PySpark is not installed.
        ConfigError: PySpark is too old, or there is no Java that runs it.
    """
    from mtosi_jms.spark.session import local_session

    if given is not None:
        yield given
        return
    with local_session(cores=cores) as spark:
        yield spark


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turns an error of Spark's into one of ours, in one line, while Spark can still tell it."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        ours = re.findall(r"^(?:mtosi_jms\.errors\.\w+|pyarrow\.lib\.\w+|\w*Error): (.+)$", text, re.MULTILINE)
        first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
        raise MtosiError(f"Spark: {ours[-1] if ours else first}") from error


def check_out(out: Path, tables: Sequence[str], summary: str, *, delta: bool = False) -> None:
    """See that `out` is a place for the result of a job.

    Args:
        out: the folder; it need not exist.
        tables: glob patterns of the folders of tables that the job makes.
        summary: file name of the job's summary in `_report`.
        delta: whether the job replaces Delta tables.

    Raises:
        ConfigError: it holds tables that this job did not make.
        SpoolError: the swap of a job that was killed cannot be finished.
    """
    recover(out, delta=delta)
    if (out / REPORT / summary).is_file():
        return
    for pattern in tables:
        if list(out.glob(pattern)):
            shown = pattern.replace("*", "...")
            kind = "ingest" if summary == "summary.json" else Path(summary).stem
            raise ConfigError(f"{out} holds {shown} folders that no {kind} of ours made: choose another folder")


def write_parquet(rows: DataFrame, folder: Path) -> None:
    """Write a table, without the check sums that Hadoop leaves beside its files."""
    rows.write.mode("overwrite").parquet(str(folder))
    for checksum in folder.glob(".*.crc"):
        checksum.unlink()
