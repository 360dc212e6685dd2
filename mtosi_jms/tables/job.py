"""What all jobs have in common: the output folder and the formats of tables in it, stages, the result, and the swap.

Each job owns some folders of tables below its `out`, and a summary and an HTML page in `out/_report/`. If `out` has
such tables but no summary of the job, something else made them, and the job refuses the folder.

Old tables are swapped for new ones: all are replaced or none, even if the job is killed.

    OUT/_lock              locked by the job that works on OUT; a second job is refused
    OUT/_staging-XXXX/     what the job makes; removed at its end, or by the next job
    OUT/_swap.json         the journal of a swap that has begun

docs/design/spark.md explains the steps; each can be repeated. A table is in place if it has the inode that the journal
names. Tables of Delta and Iceberg are committed by Spark: their journal only says that the commits have begun, and
which tables are new: the next ingest removes their folders if their first commit was not done.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import errno
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from mtosi_jms.errors import ConfigError, MtosiError, SpoolError, SpoolInUseError
from mtosi_jms.files import FileLock, sync
from mtosi_jms.tables.files import folder_here

if TYPE_CHECKING:
    from mtosi_jms.report import Report, Table

__all__ = [
    "CSV",
    "DELTA",
    "FOLDERS",
    "FORMATS",
    "ICEBERG",
    "JSON",
    "PARQUET",
    "PREFIX",
    "REPORT",
    "Job",
    "JobOptions",
    "JobResult",
    "Progress",
    "Staging",
    "check_format",
    "format_of",
    "recover",
    "staging",
]


PARQUET: Final = "parquet"
JSON: Final = "json"
CSV: Final = "csv"
DELTA: Final = "delta"
ICEBERG: Final = "iceberg"
FORMATS: Final = (PARQUET, DELTA, ICEBERG)
"""Of an ingest."""
_OF_JOBS: Final = (PARQUET, JSON, CSV)
PREFIX: Final = "objectType="
FOLDERS: Final = {DELTA: "_delta_log", ICEBERG: "metadata"}
REPORT: Final = "_report"
_LOCK: Final = "_lock"
_STAGING: Final = "_staging"
_JOURNAL: Final = "_swap.json"
_OLD: Final = "_old"
_PATIENCE: Final = 60.0
_PAUSE: Final = 0.02
_NO_SYNC: Final = (errno.EINVAL, errno.ENOTSUP)
"""Errors of file systems, such as network file systems, that cannot sync a folder."""
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2

Progress = Callable[[str, int, int], None]
"""Called with the name of a stage, the number of finished Spark tasks, and the number of tasks known so far.

Both numbers are 0 when the stage begins. Calls may come from another thread.
"""

_OF_THE_PAGE: Final = ("busiest", "graph", "vendors")
"""Fields of results that are on the page and not in the summary."""


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
    """The result of a job; each job adds its own numbers. `stages`: seconds by stage. `where`: the condition that
    selected the rows; empty for all rows. `samples`: the first rows of each table, for the page."""

    stages: dict[str, float]
    seconds: float
    out: Path
    where: str = ""
    samples: tuple[Table, ...] = ()

    def summary(self) -> dict[str, Any]:
        """The JSON document of the command."""
        shared = {*_OF_THE_PAGE, *(field.name for field in fields(JobResult))}
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
            format: of the tables of a job that is no ingest.
            where: the condition that selects the rows that are written.

        Raises ConfigError: `out` is not on a file system of this machine, or it has tables that this job did not make;
        there is no such format.
        """
        if format not in _OF_JOBS:
            raise ConfigError(f"format is {format!r}; there are {', '.join(_OF_JOBS)}")
        self._format = format
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
        """Write the summary and the page, and replace the earlier result by what the job made. `page`: content of the
        page; its time, the times of stages and a link to the summary are added. `tables`: patterns of the tables that
        are replaced, by default all tables of the job; others stay."""
        from mtosi_jms.report import render  # takes long to load

        staged.report_json(self._summary, result.summary())
        links = {**page.links, "the summary as JSON": self._summary}
        notes = [f"Only rows where {result.where} are in the tables."] if result.where else []
        page = replace(
            page, made=dt.datetime.now(dt.UTC), seconds=result.stages, links=links, notes=[*notes, *page.notes]
        )
        staged.report(self._page, render(page))
        staged.swap(() if self._lake else self._tables if tables is None else tables)


def format_of(folder: Path) -> str:
    """Return the format of a table, found by the content of its folder."""
    return next((name for name, inside in FOLDERS.items() if (folder / inside).is_dir()), PARQUET)


def is_committed(folder: Path) -> bool:
    """Whether a table of Delta or Iceberg has any version."""
    logs = ((folder / FOLDERS[DELTA]).glob("[0-9]*"), (folder / FOLDERS[ICEBERG]).glob("v*.metadata.json"))
    return any(True for log in logs for _ in log)


def check_format(name: str, out: Path, table: str = "") -> None:
    """Check that the job can write tables in a format. Raises ConfigError: the format is unknown, `out` has tables of
    another format, `table` is not a name, or it is given with Parquet."""
    if name not in FORMATS:
        raise ConfigError(f"format is {name!r}; there are {', '.join(FORMATS)}")
    if table and name == PARQUET:
        raise ConfigError(f"tables of a catalog are of the format {DELTA} or {ICEBERG}, not {PARQUET}")
    if table and not re.fullmatch(r"\w+(\.\w+)*", table):
        raise ConfigError(f"table is {table!r}; give a name such as lake.network.inventory")
    others = {format_of(folder) for folder in out.glob(f"{PREFIX}*")} - {name}
    if others:
        raise ConfigError(f"{out} holds tables of the format {others.pop()}: choose it, or another folder")


class Staging:
    """The tables and the report of a job, before they replace the earlier ones. `folder`: the staging folder; the
    tables in it have their final names."""

    def __init__(self, out: Path, folder: Path) -> None:
        self.folder = folder
        self._out = out
        (folder / REPORT).mkdir()

    def report(self, name: str, *text: str, lines: Iterable[str] = ()) -> None:
        """Add a file of the report."""
        path = self.folder / REPORT / name
        with disk_errors(path), path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.writelines(chain(text, lines))

    def report_json(self, name: str, document: dict[str, Any]) -> None:
        """Add a JSON document of the report."""
        self.report(name, json.dumps(document, indent=2) + "\n")

    def begin_commits(self, tables: int, new: Sequence[str]) -> None:
        """Note in the journal that Spark commits tables one after the other; `swap` ends this. `tables`: their number;
        a single table that is there already needs no note. `new`: names of the folders of tables that are not there
        yet."""
        if tables > 1 or new:
            with disk_errors(self._out):
                self._journal({"lake": True, "new": list(new)})

    def swap(self, tables: Sequence[str]) -> None:
        """Replace the earlier tables and files of the report by the staged ones. `tables`: glob patterns of the tables
        that the job owns; tables that it did not make again are removed. Raises SpoolError: an error of the disk or
        missing rights. If the journal is already in OUT, the next command finishes the swap."""
        with disk_errors(self._out):
            made = sorted(path.name for pattern in tables for path in self.folder.glob(pattern))
            gone = sorted({path.name for pattern in tables for path in self._out.glob(pattern)} - set(made))
            reports = sorted(path.name for path in (self.folder / REPORT).iterdir())
            for name in (*made, REPORT):
                _sync_tree(self.folder / name)
            inodes = {name: _inode(self.folder / name) for name in made}
            self._journal({"staging": self.folder.name, "tables": inodes, "gone": gone, "reports": reports})
            _finish(self._out)

    def _journal(self, document: dict[str, Any]) -> None:
        draft = self.folder / _JOURNAL
        draft.write_text(json.dumps(document), encoding="utf-8")
        for path in (draft, self.folder, self._out):
            _sync(path)
        draft.replace(self._out / _JOURNAL)
        _sync(self._out)


@contextmanager
def staging(out: Path, *, lake: bool = False, dry_run: bool = False) -> Iterator[Staging]:
    """Lock OUT until the block ends, and provide a staging folder in it. `out`: the folder; made if it does not exist.
    `lake`: whether to accept that an earlier job has committed only some of its tables of Delta or Iceberg. `dry_run`:
    whether to remove `out` at the end if it is empty.

    Raises SpoolInUseError: another job works on `out`; SpoolError: `out` cannot be written, or the swap of a killed job
    cannot be finished.
    """
    out = out.absolute()
    with disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    with _locked(out, dry_run=dry_run):
        with disk_errors(out):
            _finish(out, lake=lake)
            for left in out.glob(f"{_STAGING}*"):
                shutil.rmtree(left, ignore_errors=True)
            folder = (
                out / f"{_STAGING}-{uuid.uuid4().hex[:8]}"
            )  # a new name: processes that a killed job started may still write into its staging folder
            folder.mkdir()
            staged = Staging(out, folder)
        try:
            yield staged
        finally:
            if not os.path.lexists(out / _JOURNAL):
                shutil.rmtree(folder, ignore_errors=True)


def recover(out: Path, *, lake: bool = False) -> bool:
    """Finish the swap of a killed job, or wait for the end of a swap that a running job does. `out`: the folder; it
    need not exist. `lake`: whether to accept that an earlier job has committed only some of its tables of Delta or
    Iceberg.

    Returns whether an earlier job has committed only some of its tables. Raises SpoolInUseError: a running job does not
    finish its swap in time; SpoolError: the swap cannot be finished, or only some tables were committed.
    """
    deadline = time.monotonic() + _PATIENCE
    while os.path.lexists(out / _JOURNAL):
        try:
            with _locked(out), disk_errors(out):
                _finish(out, lake=lake)
            return os.path.lexists(out / _JOURNAL)
        except SpoolInUseError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        except SpoolError as error:
            text = f"a job was killed while it replaced the tables, and that cannot be finished: {error}"
            raise SpoolError(str(out), text) from error
    return False


def _finish(out: Path, *, lake: bool = False) -> None:
    """Do the steps of the journal that are not done yet; nothing if there is no journal."""
    plan = _plan(out)
    if plan is None:
        return
    if lake and "lake" in plan:
        for name in plan["new"]:
            if (out / name).exists() and not is_committed(out / name):
                shutil.rmtree(out / name)
        return
    if "lake" in plan:
        raise SpoolError(str(out), "tables were committed in part, and may not belong together: ingest again")
    staged = out / plan["staging"]
    old = staged / _OLD
    old.mkdir(exist_ok=True)
    for name in plan["gone"]:
        if os.path.lexists(out / name):
            (out / name).rename(old / name)
    for name, inode in plan["tables"].items():
        _place(staged / name, out / name, old / name, inode)
    (out / REPORT).mkdir(exist_ok=True)
    for name in plan["reports"]:
        if (staged / REPORT / name).exists():
            (staged / REPORT / name).replace(out / REPORT / name)
    for folder in (out / REPORT, old, staged, out):
        _sync(folder)
    (out / _JOURNAL).unlink()
    _sync(out)
    shutil.rmtree(staged, ignore_errors=True)


def _plan(out: Path) -> dict[str, Any] | None:
    """Return the content of the journal; None if there is no journal."""
    try:
        plan: dict[str, Any] = json.loads((out / _JOURNAL).read_text(encoding="utf-8"))
        names = plan["new"] if "lake" in plan else [plan["staging"], *plan["tables"], *plan["gone"], *plan["reports"]]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise SpoolError(str(out / _JOURNAL), f"is damaged, so that the swap cannot be finished: {error}") from error
    wrong = [name for name in names if Path(name).name != name]
    if wrong:
        raise SpoolError(str(out / _JOURNAL), f"is damaged: {wrong[0]!r} is not a name of a table")
    return plan


def _place(new: Path, place: Path, old: Path, inode: int) -> None:
    """Replace the old table by the new one, unless that is already done."""
    if _inode(place) == inode:
        return
    if _inode(new) != inode:
        raise SpoolError(str(new), f"is not the folder that {_JOURNAL} means, so that the swap cannot be finished")
    if os.path.lexists(place):
        if _exchange(new, place):
            return
        place.rename(old)
    new.rename(place)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step; false if the system cannot do that."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError, TypeError):  # the last is Windows'
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)


def _inode(path: Path) -> int | None:
    try:
        return path.lstat().st_ino
    except FileNotFoundError:
        return None


@contextmanager
def _locked(out: Path, *, dry_run: bool = False) -> Iterator[None]:
    """Lock a folder against other jobs; the system releases the lock when the process ends."""
    with FileLock(out / _LOCK) as lock:
        with disk_errors(out):
            if not lock.take():
                raise SpoolInUseError(str(out), "another job works on it: wait for its end")
        try:
            yield
        finally:
            with suppress(OSError):
                (out / _LOCK).unlink()
                if dry_run:
                    out.rmdir()  # if it is empty


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn errors of Arrow and of the system while files are written into a SpoolError."""
    try:
        yield
    except MtosiError:
        raise
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SpoolError(str(getattr(error, "filename", None) or path), f"cannot be written: {reason}") from error


def _sync_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    try:
        sync(path)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
