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

from mtosi_jms.errors import SpoolError, XmlError
from mtosi_jms.inventory import ALL, MESSAGE, Routes, class_for, is_object, label_of
from mtosi_jms.report import Table
from mtosi_jms.spark._columns import arrow_schema, row_schema, shown_names, struct_name
from mtosi_jms.spark._envelope import verify
from mtosi_jms.spark._files import Reject
from mtosi_jms.spark._landing import Plan, PlannedFile, readable
from mtosi_jms.spark._options import SourceOptions
from mtosi_jms.spark.jobs._job import load, unknown_body, where, write_parquet
from mtosi_jms.spark.jobs._page import sample
from mtosi_jms.spark.jobs._scans import batches
from mtosi_jms.spark.jobs._snapshots import type_order

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CORRUPT: Final = "_corrupt_record"
_FILE_BYTES: Final = 128 * 1024 * 1024
_VENDORS: Final = 50
_SAMPLED: Final = ("name_text", "user_label", "manufacturer", "product_name", "location", "complete")
_AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True)
class Written:
    """Tables that were made: number of rows by object type, and messages in which no stub finds anything."""

    rows: dict[str, int]
    rejects: tuple[Reject, ...] = ()


class TableWriter:
    """Writes the tables of one landing into a folder, of the rows for which a condition holds."""

    def __init__(self, spark: SparkSession, options: SourceOptions, folder: Path, condition: str = "") -> None:
        self._spark = spark
        self._options = options
        self._folder = folder
        self._condition = condition

    def write(self, plan: Plan) -> Written | None:
        """Make the tables; None if a file turned out to be damaged, so that the plan is wrong."""
        files = readable(plan, self._options)
        types, rejects = self._types(plan, files)
        if types is None:
            return None
        for old in self._folder.glob("objectType=*"):
            shutil.rmtree(old)
        if not types:
            return None if any(map(self._damaged, files)) else Written({}, rejects)
        saved = self._save(plan, files)
        rejected = self._one(types[0], saved) if len(types) == 1 else self._several(types, saved)
        if rejected:
            return None
        rows = {name: _count(self._table(name)) for name in types if self._table(name).exists()}
        if self._options.object_types == (ALL,):
            for name in [name for name, count in rows.items() if not count]:
                shutil.rmtree(self._table(name))
                del rows[name]
        return Written(rows, rejects)

    def _damaged(self, file: PlannedFile) -> bool:
        """Whether a file that nothing else reads to its end cannot be."""
        try:
            verify(file.path, self._options.whole_file_bytes)
        except (XmlError, SpoolError):
            return True
        return False

    def _table(self, name: str) -> Path:
        return self._folder / f"objectType={label_of(class_for(name))}"

    def _save(self, plan: Plan, files: Sequence[PlannedFile]) -> Path:
        """Write the plan of some files, without what a reading of it would log again."""
        path = self._folder / "plan.json"
        replace(plan, files=tuple(files), rejects=(), unfollowed=()).save(path)
        return path

    def _read(self, types: Sequence[str], plan: Path) -> DataFrame:
        return load(
            self._spark,
            objectType=",".join(types),
            planFile=str(plan),
            columnNameOfCorruptRecord=_CORRUPT,
            stubs=",".join(self._options.stubs),
        )

    def _types(self, plan: Plan, files: Sequence[PlannedFile]) -> tuple[tuple[str, ...] | None, tuple[Reject, ...]]:
        """The object types to write, and messages in which no stub finds anything; no types if a file is damaged."""
        if self._options.object_types != (ALL,):
            return self._options.object_types, ()
        routes = Routes(is_object)
        read = [file for file in files if self._options.reads(file.kind)]
        reachable = {tag: routes.reachable(tag) for tag in {file.body_tag for file in read}}
        found = {label_of(table) for tables in reachable.values() for table in tables or ()}
        unknown = {file.path: file for file in read if reachable[file.body_tag] is None}
        rejects: list[Reject] = []
        if unknown:
            rows = self._read((MESSAGE,), self._save(plan, list(unknown.values())))
            for row in rows.select("source_file", "objects", _CORRUPT).collect():
                if row[_CORRUPT] is not None:
                    return None, ()
                found.update(row["objects"])
                if not row["objects"]:
                    rejects.append(unknown_body(unknown[row["source_file"]]))
        return tuple(sorted(found, key=type_order)), tuple(rejects)

    def _one(self, name: str, plan: Path) -> int:
        """Write one object type as it is read; how many files were rejected."""
        rows, observed = self._observed(self._read((name,), plan))
        write_parquet(where(rows, self._condition), self._table(name))
        return int(observed.get["rejected"])

    def _several(self, types: Sequence[str], plan: Path) -> int:
        """Read several object types at once, write them aside, and part them."""
        aside = self._folder / "aside"
        rows, observed = self._observed(self._read(types, plan))
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
            rows = where(held.select(*type_columns(name)), self._condition)
            write_parquet(rows.coalesce(_files(folder)), self._table(name))
        elif self._options.object_types != (ALL,):
            write_parquet(rows.limit(0).select(*type_columns(name)).coalesce(1), self._table(name))

    def _observed(self, rows: DataFrame) -> tuple[DataFrame, Any]:
        """Rows without those of rejected files, and a count of the latter."""
        observed = Observation("rejects")
        counted = rows.observe(observed, f.count(f.col(_CORRUPT)).alias("rejected"))
        return counted.where(f.col(_CORRUPT).isNull()).drop(_CORRUPT), observed

    def samples(self, rows: dict[str, int]) -> tuple[Table, ...]:
        """The first rows of each table."""
        return tuple(sample(f"{name}: the first rows", self._table(name), _SAMPLED) for name in rows)

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
