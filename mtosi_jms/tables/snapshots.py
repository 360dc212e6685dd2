"""Snapshots as `ingest` writes them: a folder with one table for each object type, in any format."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import parquet

from mtosi_jms.errors import ConfigError, MissingExtraError, MtosiError, SpoolError
from mtosi_jms.tables.columns import own_columns
from mtosi_jms.tables.files import folder_here
from mtosi_jms.tables.ingest import Engine, choose_engine
from mtosi_jms.tables.job import PARQUET, PREFIX, REPORT, JobOptions, format_of, recover
from mtosi_jms.tables.writer import PACKED, type_order

__all__ = ["FACTS", "Snapshot"]

FACTS: Final = "_facts"
"""The column that only tables of a merge, or with a history, have."""
_HAS_DUCKDB: Final = find_spec("duckdb") is not None
_SUMMARY: Final = "summary.json"


class Snapshot:
    """The tables of one ingest. `tables`: the folder of each object type. `at`: the time of the state that is asked
    for; None for the last."""

    def __init__(self, path: str | Path, *, allow_empty: bool = False, at: dt.datetime | None = None) -> None:
        """Find the tables. If an ingest was killed while it replaced them, finish its swap first. `allow_empty`:
        whether the folder may have no table. `at`: the time of the state that is read from tables with a history; by
        default the last state.

        Raises SpoolError: the folder does not exist, or only some of its tables were replaced; ConfigError: the folder
        has no table and `allow_empty` is false, or it is not on this machine.
        """
        self.at = at
        self.path = folder_here(path, "a snapshot")
        if not self.path.is_dir():
            raise SpoolError(str(path), "no such folder; a snapshot is what `mtosi-jms ingest --out` writes")
        recover(self.path)
        self._inodes = self._found()
        if not self._inodes and not allow_empty:
            raise ConfigError(
                f"{path}: no {PREFIX}... tables in it; a snapshot is what `mtosi-jms ingest` writes; "
                "allow_empty (--allow-empty) takes the folder as a snapshot without objects"
            )
        found = {table.name.removeprefix(PREFIX): table for table in self._inodes}
        self.tables: Mapping[str, Path] = dict(sorted(found.items(), key=lambda item: type_order(item[0])))

    def _found(self) -> dict[Path, int]:
        """Return the inodes of the present tables; a table that is replaced gets another inode."""
        # Java has a working folder of its own, so Spark gets absolute paths only.
        tables = self.path.absolute().glob(f"{PREFIX}*")
        return {table: table.stat().st_ino for table in tables if _is_table(table)}

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Check that the tables stay the same while the block reads them. Raises MtosiError: the tables were replaced
        after they were found, so the block may have read a mixture."""
        try:
            yield
        except Exception as error:
            self._check(error)
            raise
        self._check(None)

    def _check(self, cause: Exception | None) -> None:
        if self._found() != self._inodes:
            raise MtosiError(f"{self.path}: the tables were replaced while they were read: try again") from cause

    @property
    def complete(self) -> bool | None:
        """Whether all sequences of its landing were complete and nothing was rejected; None if there is no report.

        If a snapshot is not complete, objects may be missing in it, and a comparison shows them as deleted.
        """
        try:
            document = json.loads((self.path / REPORT / _SUMMARY).read_text(encoding="utf-8"))
            return not document["rejected"] and all(found["complete"] for found in document["sequences"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None


def _is_table(folder: Path) -> bool:
    return folder.is_dir() and (format_of(folder) != PARQUET or any(folder.rglob("*.parquet")))


def name_column(columns: Sequence[str]) -> str:
    """Return the column with the full names of objects. Raises ConfigError: there is none."""
    name = own_columns(columns)["name_text"]
    if name not in columns:
        raise ConfigError("a table of objects has a column name_text; this one has none")
    return name


def choose_for(engine: Engine, options: JobOptions, snapshots: Callable[[], Sequence[Snapshot]]) -> tuple[Engine, str]:
    """Choose the engine of a job that reads snapshots, and say why; as `mtosi_jms.tables.ingest.choose`. Raises
    ConfigError: the local engine is asked for, and cannot do it; or a folder is no snapshot; SpoolError: a snapshot
    does not exist."""
    if engine == "spark":
        return engine, "asked for"
    if engine == "local" and not _HAS_DUCKDB:
        raise MissingExtraError("duckdb", "tables")
    held = snapshots()
    files = (path for each in held for folder in each.tables.values() for path in folder.rglob("*.parquet"))
    sizes = (path.stat().st_size * PACKED for path in files)
    return choose_engine(engine, options, _only_spark(held), sizes)


def _only_spark(snapshots: Sequence[Snapshot]) -> str:
    """Return what of some snapshots only Spark can read; empty if nothing."""
    if not _HAS_DUCKDB:
        return "DuckDB is not installed"
    for snapshot in snapshots:
        if snapshot.at is not None:
            return "the state at a time is for Spark"
        for folder in snapshot.tables.values():
            if format_of(folder) != PARQUET:
                return f"{folder.name} is a table of {format_of(folder)}"
            if FACTS in _columns(next(folder.rglob("*.parquet"))):
                return f"{folder.name} is the table of a merge"
    return ""


def _columns(path: Path) -> list[str]:
    try:
        names: list[str] = parquet.read_schema(path).names
    except (OSError, pa.ArrowException) as error:
        raise SpoolError(str(path), f"no Parquet file: {error}") from error
    return names
