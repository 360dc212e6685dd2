"""The writer of Parquet tables by object type; it reads the files of a planned landing once.

Spark reads the files. A few messages that a merge needs are read in this process, because a Spark job would take longer
to start.
"""

from __future__ import annotations

import math
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import Observation
from pyspark.sql import functions as f

from mtosi_jms.compression import COMPRESSED
from mtosi_jms.inventory import ALL, MESSAGE, Routes, class_for, is_object, label_of
from mtosi_jms.report import Table
from mtosi_jms.spark._engine import EnginePlan
from mtosi_jms.spark._writing import count_rows, write_parquet
from mtosi_jms.spark.jobs._copies import Copies, leave_out_copies
from mtosi_jms.spark.jobs._job import where
from mtosi_jms.spark.jobs._landed import Landed, LocalFiles, landed_by
from mtosi_jms.spark.jobs._page import sample
from mtosi_jms.spark.jobs._scans import batches
from mtosi_jms.spark.jobs._snapshots import type_order
from mtosi_jms.tables.checks import unknown_body
from mtosi_jms.tables.columns import arrow_schema, full_schema, row_schema, shown_names, struct_name
from mtosi_jms.tables.files import Reject, split_member
from mtosi_jms.tables.landing import Plan, PlannedFile
from mtosi_jms.tables.options import Mode, SourceOptions
from mtosi_jms.tables.reader import reader_for

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CORRUPT: Final = "_corrupt_record"
_FILE_BYTES: Final = 128 * 1024 * 1024
_VENDORS: Final = 50
_SAMPLED: Final = ("name_text", "user_label", "manufacturer", "product_name", "location", "complete")
_AT_ONCE: Final = 4
_FEW_BYTES: Final = 96 * 1024 * 1024
_PART_ROWS: Final = 5_000
"""So many rows are worth a file of their own, for a task of its own."""
_PACKED: Final = 16
"""One byte of a compressed file counts as this many bytes."""


@dataclass(frozen=True, slots=True)
class Written:
    """The written tables.

    Attributes:
        rows: number of rows by object type.
        rejects: messages in which no stub finds anything.
        copies: what was left out because its sequence has the object already, by object type.
    """

    rows: dict[str, int]
    rejects: tuple[Reject, ...] = ()
    copies: dict[str, Copies] = field(default_factory=dict)


class TableWriter:
    """Writes the tables of one landing into a folder.

    Args:
        spark: the session.
        options: of the landing.
        folder: for the tables.
        condition: in Spark SQL, selects the rows that are written; empty for all rows.
        here: whether to read a few messages in this process and write their tables with Arrow, without `condition`.
    """

    def __init__(
        self, spark: SparkSession, options: SourceOptions, folder: Path, condition: str = "", *, here: bool = False
    ) -> None:
        self._spark = spark
        self._options = options
        self._folder = folder
        self._condition = condition
        self._here = here

    def write(self, plan: Plan | EnginePlan) -> Written | None:
        """Make the tables; None if a file turns out to be damaged, because the plan is then wrong."""
        landed = landed_by(self._spark, plan, self._options, self._folder)
        types, rejects = self._types(landed)
        if types is None:
            return None
        for old in self._folder.glob("objectType=*"):
            shutil.rmtree(old)
        if not types:
            return None if self._damaged(landed) else Written({}, rejects)
        if self._here and isinstance(landed, LocalFiles) and few_bytes(landed.plan.files):
            rejected = self._read_here(types, landed.plan.files)
        else:
            rejected = self._one(types[0], landed) if len(types) == 1 else self._several(types, landed)
        if rejected:
            return None
        conflicting = {found.correlation_id for found in plan.sequences if found.conflicts and found.correlation_id}
        there = [name for name in types if self._table(name).exists()]
        copies = {
            name: leave_out_copies(self._spark, self._table(name), row_schema((name,)), conflicting) for name in there
        }
        rows = {name: count_rows(self._table(name)) for name in there}
        if self._options.object_types == (ALL,):
            for name in [name for name, count in rows.items() if not count]:
                shutil.rmtree(self._table(name))
                del rows[name]
        return Written(rows, rejects, {name: found for name, found in copies.items() if found.rows})

    def _damaged(self, landed: Landed) -> bool:
        """Whether a file is damaged; needed if there is no table, because then nothing else reads whole files."""
        rows = self._read((MESSAGE,), landed).select("kind", _CORRUPT)
        return bool(rows.where(f.col(_CORRUPT).isNotNull()).take(1))

    def _table(self, name: str) -> Path:
        return self._folder / f"objectType={label_of(class_for(name))}"

    def _read(self, types: Sequence[str], landed: Landed) -> DataFrame:
        return landed.rows(self._reading(types))

    def _reading(self, types: Sequence[str]) -> SourceOptions:
        return replace(self._options, object_types=tuple(types), mode=Mode.PERMISSIVE, corrupt_column=_CORRUPT)

    def _types(self, landed: Landed) -> tuple[tuple[str, ...] | None, tuple[Reject, ...]]:
        """Return the object types to write, and rejects of messages in which no stub finds anything.

        The types are None if a file is damaged.
        """
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

    def _read_here(self, types: Sequence[str], files: Sequence[PlannedFile]) -> int:
        """Read without Spark, and write at most as many files a table as this machine has cores.

        Returns:
            How many files were rejected.
        """
        options = replace(self._reading(types), batch_rows=min(self._options.batch_rows, _PART_ROWS))
        cores = os.cpu_count() or 1
        rejected = 0
        with ExitStack() as stack:
            writers: dict[tuple[str, int], parquet.ParquetWriter] = {}
            for name in types if self._options.object_types != (ALL,) else ():
                writers[name, 0] = stack.enter_context(self._writer(name, 0))
            for number, batch in enumerate(reader_for(options, full_schema(options)).read(files)):
                good = pc.is_null(batch.column(_CORRUPT))
                rejected += batch.num_rows - (pc.sum(good).as_py() or 0)
                if rejected:
                    continue
                for name, rows in _parted(batch, types):
                    part = (name, number % cores)
                    if part not in writers:
                        writers[part] = stack.enter_context(self._writer(*part))
                    writers[part].write(rows)
        return rejected

    def _writer(self, name: str, part: int) -> parquet.ParquetWriter:
        self._table(name).mkdir(exist_ok=True)
        return parquet.ParquetWriter(self._table(name) / f"part-{part}.parquet", row_schema((name,)))

    def _one(self, name: str, landed: Landed) -> int:
        """Write one object type as it is read. Return how many files were rejected."""
        rows, observed = self._observed(self._read((name,), landed))
        write_parquet(where(rows, self._condition), self._table(name))
        return int(observed.get["rejected"])

    def _several(self, types: Sequence[str], landed: Landed) -> int:
        """Read several object types at once, write them to a temporary folder, and split them into tables.

        Returns:
            How many files were rejected.
        """
        partitioned = self._folder / "aside"
        rows, observed = self._observed(self._read(types, landed))
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
            rows = where(stored.select(*type_columns(name)), self._condition)
            write_parquet(rows.coalesce(_files(folder)), self._table(name))
        elif self._options.object_types != (ALL,):
            write_parquet(rows.limit(0).select(*type_columns(name)).coalesce(1), self._table(name))

    def _observed(self, rows: DataFrame) -> tuple[DataFrame, Any]:
        """Return the rows without those of rejected files, and an observation that counts the rejected files."""
        observed = Observation("rejects")
        counted = rows.observe(observed, f.count(f.col(_CORRUPT)).alias("rejected"))
        return counted.where(f.col(_CORRUPT).isNull()).drop(_CORRUPT), observed

    def samples(self, rows: dict[str, int]) -> tuple[Table, ...]:
        """Return the first rows of each table."""
        return tuple(sample(f"{name}: the first rows", self._table(name), _SAMPLED) for name in rows)

    def vendors(self, rows: dict[str, int]) -> dict[str, int]:
        """Return the number of objects by manufacturer, the most frequent manufacturers first."""
        counts = Counter[str]()
        for name, number in rows.items():
            if number and "manufacturer" in row_schema((name,)).names:
                for batch in batches(self._table(name), ["manufacturer"]):
                    for found in pc.value_counts(batch.column(0)).to_pylist():
                        counts[found["values"] or "not given"] += found["counts"]
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_VENDORS])


def _files(folder: Path) -> int:
    """Return into how many files a table should be written, from the size of its rows in a folder."""
    size = sum(file.stat().st_size for file in folder.glob("*.parquet"))
    return max(1, math.ceil(size / _FILE_BYTES))


def few_bytes(files: Sequence[PlannedFile]) -> bool:
    """Whether files are so small that this process reads them sooner than Spark would."""
    sizes = (file.size * (_PACKED if split_member(file.path)[0].endswith(COMPRESSED) else 1) for file in files)
    return sum(sizes) < _FEW_BYTES


def type_columns(name: str) -> list[Column]:
    """Return the columns of one object type, taken from rows with several types."""
    return [f.col(".".join(path)).alias(column) for column, path in _paths(name).items()]


def _paths(name: str) -> dict[str, tuple[str, ...]]:
    """Return where each column of an object type is in rows with several types: a column, or a struct and a field."""
    table = class_for(name)
    inside = arrow_schema(table.cls).names
    ours = {shown: own for own, shown in shown_names(inside).items()}
    return {
        column: (struct_name(table), column) if column in inside else (ours[column],)
        for column in row_schema((name,)).names
    }


def _parted(batch: pa.RecordBatch, types: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield for each object type its rows, with its columns only."""
    if len(types) == 1:
        yield types[0], batch.select(row_schema(types).names)
        return
    for name in types:
        of_type = batch.filter(pc.equal(batch.column("object_type"), label_of(class_for(name))))
        if of_type.num_rows:
            schema = row_schema((name,))
            arrays = [
                of_type.column(path[0]) if len(path) == 1 else pc.struct_field(of_type.column(path[0]), path[1])
                for path in _paths(name).values()
            ]
            yield name, pa.RecordBatch.from_arrays(arrays, schema=schema)
