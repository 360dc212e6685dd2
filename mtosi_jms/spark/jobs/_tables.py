"""The writer of Parquet tables by object type; Spark reads the files of a planned landing once.

A single object type is written as it is read. Several types are read together, each into a struct column of its own,
and Spark then splits them into tables. A few messages that a merge needs are read in this process, because a Spark job
would take longer to start.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from pyspark.sql import Observation
from pyspark.sql import functions as f

from mtosi_jms.inventory import ALL, MESSAGE, class_for, label_of
from mtosi_jms.spark._engine import EnginePlan, KnownMessages, Messages, messages_of, write_parquet
from mtosi_jms.spark.jobs._job import where
from mtosi_jms.tables.landing import Plan, PlannedFile
from mtosi_jms.tables.options import SourceOptions
from mtosi_jms.tables.writer import CORRUPT, TableWriter, Written, column_paths, weight

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_FILE_BYTES: Final = 128 * 1024 * 1024
_AT_ONCE: Final = 4
_FEW_BYTES: Final = 96 * 1024 * 1024


class SparkTableWriter(TableWriter):
    """Writes the tables of one landing into a folder.

    Args:
        condition: in Spark SQL, selects the rows that are written; empty for all rows.
        here: whether to read a few messages in this process and write their tables with Arrow, without `condition`.
        known: gives the sequences that are left out, as `sequence_key` names them.
    """

    def __init__(
        self,
        spark: SparkSession,
        options: SourceOptions,
        folder: Path,
        condition: str = "",
        *,
        here: bool = False,
        known: Callable[[], Collection[str]] = tuple,
    ) -> None:
        super().__init__(options, folder)
        self._spark = spark
        self._condition = condition
        self._here = here
        self._known = known
        self._landed: Messages

    def write(self, plan: Plan | EnginePlan) -> Written | None:
        """Make the tables; None if a file turns out to be damaged, because the plan is then wrong."""
        if isinstance(plan, Plan) and (known := self._known()):
            plan = replace(plan, files=tuple(file for file in plan.files if sequence_key(file) not in known))
        self._landed = messages_of(self._spark, plan, self._options)
        return self._write({found.correlation_id for found in plan.sequences if found.conflicts})

    def _body_tags(self) -> set[str]:
        return self._landed.body_tags()

    def _messages(self, tags: set[str]) -> Iterable[Any]:
        rows = self._read((MESSAGE,), self._landed.of_tags(tags))
        return rows.select("source_file", "body_element", "objects", "warnings", CORRUPT).collect()

    def _is_damaged(self) -> bool:
        rows = self._read((MESSAGE,), self._landed).select("kind", CORRUPT)
        return bool(rows.where(f.col(CORRUPT).isNotNull()).take(1))

    def _read(self, types: Sequence[str], landed: Messages) -> DataFrame:
        return landed.rows(self._reading(types))

    def _fill(self, types: Sequence[str]) -> int:
        if self._here and is_few(self._landed):
            self._files = self._landed.files
            return super()._fill(types)
        return self._one(types[0]) if len(types) == 1 else self._several(types)

    def _one(self, name: str) -> int:
        """Write one object type as it is read. Return how many files were rejected."""
        rows, observed = self._observed(self._read((name,), self._landed))
        write_parquet(where(rows, self._condition), self._table(name))
        return int(observed.get["rejected"])

    def _several(self, types: Sequence[str]) -> int:
        """Read several object types at once into a temporary folder, and split them into tables; return how many files
        were rejected."""
        partitioned = self._folder / "aside"
        rows, observed = self._observed(self._read(types, self._landed))
        write_parquet(rows, partitioned, by=("object_type",))
        rejected = int(observed.get["rejected"])
        if not rejected:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(lambda name: self._part(name, partitioned, rows), types))
        shutil.rmtree(partitioned)
        return rejected

    def _part(self, name: str, partitioned: Path, rows: DataFrame) -> None:
        """Write the table of one object type from its rows in the temporary folder."""
        folder = partitioned / f"object_type={label_of(class_for(name))}"
        if folder.exists():
            stored = self._spark.read.schema(rows.schema).parquet(str(folder))
            rows = where(stored.select(*type_columns(name, self._schema(name).names)), self._condition)
            write_parquet(rows.coalesce(_files(folder)), self._table(name))
        elif self._options.object_types != (ALL,):
            write_parquet(
                rows.limit(0).select(*type_columns(name, self._schema(name).names)).coalesce(1), self._table(name)
            )

    def split(self, name: str, columns: Sequence[str]) -> None:
        folder = self._table(name)
        new = folder.with_name(f"{folder.name}.split")
        names = [f.col(column) for column in columns]
        write_parquet(self._spark.read.parquet(str(folder)).repartition(*names), new, by=columns)
        shutil.rmtree(folder)
        new.rename(folder)

    def _observed(self, rows: DataFrame) -> tuple[DataFrame, Any]:
        """Return the rows without those of rejected files, and an observation that counts the rejected files."""
        observed = Observation("rejects")
        counted = rows.observe(observed, f.count(f.col(CORRUPT)).alias("rejected"))
        return counted.where(f.col(CORRUPT).isNull()).drop(CORRUPT), observed


def _files(folder: Path) -> int:
    """Return into how many files a table should be written, from the size of its rows in a folder."""
    size = sum(file.stat().st_size for file in folder.glob("*.parquet"))
    return max(1, math.ceil(size / _FILE_BYTES))


def sequence_key(file: PlannedFile) -> str:
    """Return what names the sequence of a message: its correlationId, or its own path if it has none."""
    return file.path if file.correlation_id is None else file.correlation_id


def is_few(messages: Messages) -> TypeGuard[KnownMessages]:
    """Whether this process can read messages, and sooner than Spark would."""
    if not isinstance(messages, KnownMessages):
        return False
    return sum(weight(file.path, file.size) for file in messages.files) < _FEW_BYTES


def type_columns(name: str, columns: Sequence[str]) -> list[Column]:
    """Return some columns of one object type, taken from rows with several types."""
    return [f.col(".".join(path)).alias(column) for column, path in column_paths(name, columns).items()]
