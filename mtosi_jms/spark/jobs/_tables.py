"""Parquet by object type, out of a planned landing, in one reading of its files."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc
from pyspark.sql import Observation
from pyspark.sql import functions as f

from mtosi_jms.inventory import ALL, MESSAGE, Routes, class_for, is_object, label_of
from mtosi_jms.spark._columns import arrow_schema, row_schema, shown_names, struct_name
from mtosi_jms.spark._engine import EnginePlan
from mtosi_jms.spark._files import Reject
from mtosi_jms.spark._landing import Plan
from mtosi_jms.spark._options import Mode, SourceOptions
from mtosi_jms.spark.jobs._job import write_parquet
from mtosi_jms.spark.jobs._landed import Landed, landed_by, unknown_body
from mtosi_jms.spark.jobs._scans import batches
from mtosi_jms.spark.jobs._snapshots import type_order

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CORRUPT: Final = "_corrupt_record"
_FILE_BYTES: Final = 128 * 1024 * 1024
_VENDORS: Final = 50
_AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True)
class Written:
    """Tables that were made: number of rows by object type, and messages in which no stub finds anything."""

    rows: dict[str, int]
    rejects: tuple[Reject, ...] = ()


class TableWriter:
    """Writes the tables of one landing into a folder."""

    def __init__(self, spark: SparkSession, options: SourceOptions, folder: Path) -> None:
        self._spark = spark
        self._options = options
        self._folder = folder

    def write(self, plan: Plan | EnginePlan) -> Written | None:
        """Make the tables; None if a file turned out to be damaged, so that the plan is wrong."""
        landed = landed_by(self._spark, plan, self._options, self._folder)
        types, rejects = self._types(landed)
        if types is None:
            return None
        for old in self._folder.glob("objectType=*"):
            shutil.rmtree(old)
        if not types:
            return None if self._damaged(landed) else Written({}, rejects)
        rejected = self._one(types[0], landed) if len(types) == 1 else self._several(types, landed)
        if rejected:
            return None
        rows = {name: _count(self._table(name)) for name in types if self._table(name).exists()}
        if self._options.object_types == (ALL,):
            for name in [name for name, count in rows.items() if not count]:
                shutil.rmtree(self._table(name))
                del rows[name]
        return Written(rows, rejects)

    def _damaged(self, landed: Landed) -> bool:
        """Whether a file that nothing else reads to its end cannot be."""
        rows = self._read((MESSAGE,), landed).select("kind", _CORRUPT)
        return bool(rows.where(f.col(_CORRUPT).isNotNull()).take(1))

    def _table(self, name: str) -> Path:
        return self._folder / f"objectType={label_of(class_for(name))}"

    def _read(self, types: Sequence[str], landed: Landed) -> DataFrame:
        options = replace(self._options, object_types=tuple(types), mode=Mode.PERMISSIVE, corrupt_column=_CORRUPT)
        return landed.rows(options)

    def _types(self, landed: Landed) -> tuple[tuple[str, ...] | None, tuple[Reject, ...]]:
        """The object types to write, and messages in which no stub finds anything; no types if a file is damaged."""
        if self._options.object_types != (ALL,):
            return self._options.object_types, ()
        routes = Routes(is_object)
        reachable = {tag: routes.reachable(tag) for tag in landed.body_tags()}
        found = {label_of(table) for tables in reachable.values() for table in tables or ()}
        unknown = [tag for tag, tables in reachable.items() if tables is None]
        rejects: list[Reject] = []
        if unknown:
            rows = self._read((MESSAGE,), landed.of_tags(unknown))
            for row in rows.select("source_file", "body_element", "objects", _CORRUPT).collect():
                if row[_CORRUPT] is not None:
                    return None, ()
                found.update(row["objects"])
                if not row["objects"]:
                    rejects.append(unknown_body(row["source_file"], row["body_element"] or ""))
        return tuple(sorted(found, key=type_order)), tuple(rejects)

    def _one(self, name: str, landed: Landed) -> int:
        """Write one object type as it is read; how many files were rejected."""
        rows, observed = self._observed(self._read((name,), landed))
        write_parquet(rows, self._table(name))
        return int(observed.get["rejected"])

    def _several(self, types: Sequence[str], landed: Landed) -> int:
        """Read several object types at once, write them aside, and part them."""
        aside = self._folder / "aside"
        rows, observed = self._observed(self._read(types, landed))
        rows.write.mode("overwrite").partitionBy("object_type").parquet(str(aside))
        rejected = int(observed.get["rejected"])
        if not rejected:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(lambda name: self._part(name, aside, rows), types))
        shutil.rmtree(aside)
        return rejected

    def _part(self, name: str, aside: Path, rows: DataFrame) -> None:
        """Write the table of one object type out of rows of several that lie aside."""
        folder = aside / f"object_type={label_of(class_for(name))}"
        if folder.exists():
            held = self._spark.read.schema(rows.schema).parquet(str(folder))
            write_parquet(held.select(*type_columns(name)).coalesce(_files(folder)), self._table(name))
        elif self._options.object_types != (ALL,):
            write_parquet(rows.limit(0).select(*type_columns(name)).coalesce(1), self._table(name))

    def _observed(self, rows: DataFrame) -> tuple[DataFrame, Any]:
        """Rows without those of rejected files, and a count of the latter."""
        observed = Observation("rejects")
        counted = rows.observe(observed, f.count(f.col(_CORRUPT)).alias("rejected"))
        return counted.where(f.col(_CORRUPT).isNull()).drop(_CORRUPT), observed

    def vendors(self, rows: dict[str, int]) -> dict[str, int]:
        """How many objects each manufacturer made, the most frequent ones first."""
        counts = Counter[str]()
        for name, number in rows.items():
            if number and "manufacturer" in row_schema((name,)).names:
                for batch in batches(self._table(name), ["manufacturer"]):
                    for found in pc.value_counts(batch.column(0)).to_pylist():
                        counts[found["values"] or "not given"] += found["counts"]
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_VENDORS])


def _count(table: Path) -> int:
    """The rows of a table, by the footers of its files."""
    from pyarrow import parquet

    return sum(parquet.read_metadata(file).num_rows for file in table.glob("*.parquet"))


def _files(folder: Path) -> int:
    """How many files of a fair size a table makes."""
    size = sum(file.stat().st_size for file in folder.glob("*.parquet"))
    return max(1, math.ceil(size / _FILE_BYTES))


def type_columns(name: str) -> list[Column]:
    """The columns of one object type, taken out of rows of several."""
    table = class_for(name)
    inside = arrow_schema(table.cls).names
    ours = {shown: own for own, shown in shown_names(inside).items()}

    def source(column: str) -> str:
        return f"{struct_name(table)}.{column}" if column in inside else ours[column]

    return [f.col(source(column)).alias(column) for column in row_schema((name,)).names]
