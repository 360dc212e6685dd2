"""Snapshots as `ingest` writes them: a folder with one table for each object type, in any format."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mtosi_jms.errors import ConfigError, MtosiError, SpoolError
from mtosi_jms.spark.jobs._merge import state_of
from mtosi_jms.tables.files import folder_here
from mtosi_jms.tables.formats import PARQUET, format_of
from mtosi_jms.tables.swap import REPORT, recover
from mtosi_jms.tables.writer import type_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PREFIX: Final = "objectType="
_SUMMARY: Final = "summary.json"


class Snapshot:
    """The tables of one ingest."""

    def __init__(self, path: str | Path, *, allow_empty: bool = False, at: dt.datetime | None = None) -> None:
        """Find the tables. If an ingest was killed while it replaced them, finish its swap first.

        Args:
            allow_empty: whether the folder may have no table.
            at: the time of the state that is read from tables with a history; by default the last state.

        Raises:
            SpoolError: the folder does not exist, or only some of its tables were replaced.
            ConfigError: the folder has no table and `allow_empty` is false, or it is not on this machine.
        """
        self._at = at
        self.path = folder_here(path, "a snapshot")
        if not self.path.is_dir():
            raise SpoolError(str(path), "no such folder; a snapshot is what `mtosi-jms ingest --out` writes")
        recover(self.path)
        self._inodes = self._found()
        if not self._inodes and not allow_empty:
            raise ConfigError(
                f"{path}: no {_PREFIX}... tables in it; a snapshot is what `mtosi-jms ingest` writes; "
                "allow_empty (--allow-empty) takes the folder as a snapshot without objects"
            )
        found = {table.name.removeprefix(_PREFIX): table for table in self._inodes}
        self.tables: Mapping[str, Path] = dict(sorted(found.items(), key=lambda item: type_order(item[0])))

    def _found(self) -> dict[Path, int]:
        """Return the inodes of the present tables; a table that is replaced gets another inode."""
        # Java has a working folder of its own, so Spark gets absolute paths only.
        tables = self.path.absolute().glob(f"{_PREFIX}*")
        return {table: table.stat().st_ino for table in tables if _is_table(table)}

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Check that the tables stay the same while the block reads them.

        Raises:
            MtosiError: the tables were replaced after they were found, so the block may have read a mixture.
        """
        try:
            yield
        except Exception as error:
            self._check(error)
            raise
        self._check(None)

    def _check(self, cause: Exception | None) -> None:
        if self._found() != self._inodes:
            raise MtosiError(f"{self.path}: the tables were replaced while they were read: try again") from cause

    def read(self, spark: SparkSession, object_type: str) -> DataFrame:
        """Return the objects of a type, which must be one of `tables`, as `state_of` gives them."""
        folder = self.tables[object_type]
        return state_of(spark.read.format(format_of(folder)).load(str(folder)), self._at)

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
    return folder.is_dir() and (format_of(folder) != PARQUET or any(folder.glob("*.parquet")))
