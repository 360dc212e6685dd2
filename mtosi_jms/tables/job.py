"""What all jobs have in common: checks of the output folder, stages, and the result.

Each job owns some folders of tables below its `out`, and a summary and an HTML page in `out/_report/`. If `out` has
such tables but no summary of the job, something else made them, and the job refuses the folder.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from mtosi_jms.errors import ConfigError
from mtosi_jms.report import Report, render
from mtosi_jms.tables.files import folder_here
from mtosi_jms.tables.swap import REPORT, Staging, recover

__all__ = ["Job", "JobOptions", "JobResult", "Progress"]

Progress = Callable[[str, int, int], None]
"""Called with the name of a stage, the number of finished Spark tasks, and the number of tasks known so far.

Both numbers are 0 when the stage begins. Calls may come from another thread.
"""


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """The options of all jobs; each job adds its own.

    Attributes:
        out: folder for the result, on a file system of this machine; made if it does not exist. An earlier result of
            the same job there is replaced.
        cores: number of processors for a session that the job makes; by default all.
        allow_empty: whether an empty input makes empty tables; by default it is an error.
        format: of the tables: parquet, delta or iceberg for an ingest, and parquet, json or csv for the other jobs.
        where: a condition in SQL (of Spark, in this process of DuckDB) that selects the rows to write; empty for all.
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


class Job:
    """One run of a job."""

    def __init__(
        self,
        name: str,
        out: str | Path,
        tables: Sequence[str],
        progress: Progress | None,
        *,
        lake: bool = False,
        where: str = "",
    ) -> None:
        """Check that the job may write its result into `out`.

        Args:
            name: of the job; its summary is `_report/NAME.json`, or `_report/summary.json` for an ingest.
            out: the folder; it need not exist.
            tables: glob patterns of the folders of tables that the job makes.
            progress: called when a stage begins and when Spark has finished tasks.
            lake: whether Spark commits the tables (Delta or Iceberg).
            where: the condition that selects the rows that are written.

        Raises:
            ConfigError: `out` is not on a file system of this machine, or it has tables that this job did not make.
        """
        self.out = folder_here(out, "the folder for the result")
        ingest = name == "ingest"
        self._summary, self._page = ("summary.json", "report.html") if ingest else (f"{name}.json", f"{name}.html")
        self._tables = tables
        self._lake = lake
        self._where = where
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

    def finish(self, staged: Staging, result: JobResult, page: Report, tables: Sequence[str] | None = None) -> None:
        """Write the summary and the page, and replace the earlier result by what the job made.

        Args:
            page: content of the page; its time, the times of stages and a link to the summary are added.
            tables: patterns of the tables that are replaced, by default all tables of the job; others stay.
        """
        staged.report_json(self._summary, result.summary())
        links = {**page.links, "the summary as JSON": self._summary}
        notes = [f"Only rows where {result.where} are in the tables."] if result.where else []
        page = replace(
            page, made=dt.datetime.now(dt.UTC), seconds=result.stages, links=links, notes=[*notes, *page.notes]
        )
        staged.report(self._page, render(page))
        staged.swap(() if self._lake else self._tables if tables is None else tables)
