"""What the jobs have in common: a folder that is filled all at once at the end, a session, Spark's errors as ours.

Each job owns some folders of tables below its `out`, and a summary in `out/_report/`. Tables without that summary were
made by somebody else, and such a folder is refused.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.errors import ConfigError, MtosiError, SpoolError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPORT: Final = "_report"
_STAGING: Final = "_staging"

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


def check_out(out: Path, tables: Sequence[str], summary: str) -> None:
    """See that `out` is a place for the result of a job.

    Args:
        out: the folder; made if need be.
        tables: glob patterns of the folders of tables that the job makes.
        summary: file name of the job's summary in `_report`.

    Raises:
        ConfigError: it holds tables that this job did not make.
        SpoolError: it cannot be made.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpoolError(str(out), error.strerror or str(error)) from error
    if (out / REPORT / summary).is_file():
        return
    for pattern in tables:
        if list(out.glob(pattern)):
            shown = pattern.replace("*", "...")
            kind = "ingest" if summary == "summary.json" else Path(summary).stem
            raise ConfigError(f"{out} holds {shown} folders that no {kind} of ours made: choose another folder")


@contextmanager
def staging(out: Path) -> Iterator[Path]:
    """An empty folder inside `out` that is gone after the block."""
    folder = out.absolute() / _STAGING
    _remove(folder)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        _remove(folder)


def move_in(folder: Path, out: Path, tables: Sequence[str]) -> None:
    """Put new tables in the place of the old ones."""
    for pattern in tables:
        for old in out.glob(pattern):
            _remove(old)
        for new in folder.glob(pattern):
            new.rename(out / new.name)


def write_parquet(rows: DataFrame, folder: Path) -> None:
    """Write a table, without the check sums that Hadoop leaves beside its files."""
    rows.write.mode("overwrite").parquet(str(folder))
    for checksum in folder.glob(".*.crc"):
        checksum.unlink()


def write_summary(out: Path, name: str, document: dict[str, Any]) -> None:
    """Write the summary of a job.

    Raises:
        SpoolError: it cannot be written.
    """
    folder = out / REPORT
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise SpoolError(str(folder), error.strerror or str(error)) from error


def _remove(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)
