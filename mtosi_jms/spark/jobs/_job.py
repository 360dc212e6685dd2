"""What the jobs have in common: whose folder it is, their stages, a session, Spark's errors as ours, the result.

Each job owns some folders of tables below its `out`, and a summary in `out/_report/`. A folder that has such tables
but not the summary was made by something else, and is refused.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.spark.jobs._swap import REPORT, Staging, recover, staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[str], None]

_INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """What all jobs are told; each job adds what is its own.

    Attributes:
        out: folder for the result; made if need be. An earlier result of the same job there is replaced.
        cores: processors for a session of the job's own, by default all.
        allow_empty: whether an input with nothing in it makes empty tables; by default it is an error.
    """

    out: str | Path
    cores: int | None = None
    allow_empty: bool = False


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """What a job brought; each job adds its own numbers.

    Attributes:
        stages: seconds by stage.
        seconds: in all.
        out: where the result lies.
    """

    stages: dict[str, float]
    seconds: float
    out: Path

    def summary(self) -> dict[str, Any]:
        """The JSON document of the command."""
        shared = {field.name for field in fields(JobResult)}
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in shared}
        own = {
            name: [asdict(item) for item in value] if isinstance(value, tuple) else value
            for name, value in values.items()
        }
        stages = {name: round(value, 3) for name, value in self.stages.items()}
        return {**own, "seconds": round(self.seconds, 3), "stages": stages, "out": str(self.out)}


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
        self, name: str, out: str | Path, tables: Sequence[str], progress: Progress | None, *, lake: bool = False
    ) -> None:
        """See that `out` is a place for the result of a job.

        Args:
            name: of the job; its summary is `_report/NAME.json`, that of an ingest `_report/summary.json`.
            out: the folder; it need not exist.
            tables: glob patterns of the folders of tables that the job makes.
            progress: called with the name of each stage as it begins.
            lake: whether Spark commits the tables, those of Delta or Iceberg.
        """
        self.out = Path(out)
        self._summary = "summary.json" if name == "ingest" else f"{name}.json"
        self._tables = tables
        self._lake = lake
        self._progress = progress or (lambda stage: None)
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
        self._progress(name)
        started = time.perf_counter()
        yield
        self._stages[name] = self._stages.get(name, 0.0) + time.perf_counter() - started

    @property
    def facts(self) -> dict[str, Any]:
        """The fields of `JobResult` as they are now."""
        return {"stages": self._stages, "seconds": time.perf_counter() - self._started, "out": self.out}

    @contextmanager
    def working(
        self,
        spark: SparkSession | None,
        cores: int | None,
        *,
        settings: Mapping[str, str] | None = None,
        stage: str | None = None,
    ) -> Iterator[tuple[Staging, SparkSession]]:
        """A place to make the tables, and a session: the caller's, or one of the job's own that ends with the block.

        Args:
            spark: a session of the caller's.
            cores, settings: of a session of the job's own.
            stage: the stage that its start is counted as.
        """
        from mtosi_jms.spark._session import local_session

        with staging(self.out, lake=self._lake) as staged, ExitStack() as stack:
            with self.stage(stage) if stage else nullcontext():
                active = spark or stack.enter_context(local_session(cores=cores, settings=settings))
            with _spark_errors():
                yield staged, active

    def finish(self, staged: Staging, result: JobResult, tables: Sequence[str] | None = None) -> None:
        """Write the summary and put all that was made in the place of what was there.

        Args:
            staged: where it was made.
            result: of the job.
            tables: patterns of the tables that are replaced, by default all of the job's; others stay.
        """
        staged.report_json(self._summary, result.summary())
        staged.swap(() if self._lake else self._tables if tables is None else tables)


@contextmanager
def _spark_errors() -> Iterator[None]:
    """Turns an error of Spark's into an MtosiError of one line, while the session can still describe it."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        ours = re.findall(r"^(?:mtosi_jms\.errors\.\w+|pyarrow\.lib\.\w+|\w*Error): (.+)$", text, re.MULTILINE)
        first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
        raise MtosiError(f"Spark: {ours[-1] if ours else first}") from error


def load(spark: SparkSession, **options: str) -> DataFrame:
    """What the source `mtosi` gives for some options."""
    from mtosi_jms.spark._source import InventorySource

    spark.dataSource.register(InventorySource)
    return spark.read.format(InventorySource.name()).options(**options).load()


def write_parquet(rows: DataFrame, folder: Path) -> None:
    """Write a table, without the check sums that Hadoop leaves beside its files."""
    rows.write.mode("overwrite").parquet(str(folder))
    for checksum in folder.glob(".*.crc"):
        checksum.unlink()
