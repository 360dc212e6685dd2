"""Parquet by object type, out of a planned landing, in one reading of its files."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.errors import SpoolError, XmlError
from mtosi_jms.inventory import ALL, MESSAGE, OBJECT_TYPES, Routes, class_for, is_object, label_of
from mtosi_jms.namespaces import split_clark
from mtosi_jms.spark._discover import Reject
from mtosi_jms.spark._landed import verify
from mtosi_jms.spark._landing import Landing, PlannedFile, readable
from mtosi_jms.spark._rows import row_schema, shown_names, struct_name
from mtosi_jms.spark.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CORRUPT: Final = "_corrupt_record"
_FILE_BYTES: Final = 128 * 1024 * 1024
_VENDORS: Final = 50
_AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True)
class Written:
    """Tables that were made.

    Attributes:
        rows: number of rows by object type.
        rejects: messages in which no stub finds anything.
    """

    rows: dict[str, int]
    rejects: tuple[Reject, ...] = ()


class TableWriter:
    """Writes the tables of one landing into a folder."""

    def __init__(self, spark: SparkSession, options: SourceOptions, folder: Path) -> None:
        from mtosi_jms.spark._source import InventorySource

        self._spark = spark
        self._options = options
        self._folder = folder
        spark.dataSource.register(InventorySource)

    def write(self, landing: Landing) -> Written | None:
        """Make the tables; None if a file turned out to be damaged, so that the plan is wrong."""
        files = readable(landing, self._options)
        types, rejects = self._types(landing, files)
        if types is None:
            return None
        for old in self._folder.glob("objectType=*"):
            shutil.rmtree(old)
        if not types:
            return None if any(map(self._damaged, files)) else Written({}, rejects)
        plan = self._save(replace(landing, files=tuple(files), rejects=()))
        rejected = self._one(types[0], plan) if len(types) == 1 else self._several(types, plan)
        if rejected:
            return None
        rows = {name: self._count(name) for name in types if self._table(name).exists()}
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
        return self._folder / f"objectType={folder_name(name)}"

    def _save(self, landing: Landing) -> Path:
        plan = self._folder / "plan.json"
        replace(landing, unfollowed=()).save(plan)  # told once, not by every reading of the plan
        return plan

    def _read(self, types: Sequence[str], plan: Path) -> DataFrame:
        reader = self._spark.read.format("mtosi").option("objectType", ",".join(types)).option("planFile", str(plan))
        reader = reader.option("columnNameOfCorruptRecord", _CORRUPT)
        if self._options.stubs:
            reader = reader.option("stubs", ",".join(self._options.stubs))
        return reader.load()

    def _types(
        self, landing: Landing, files: Sequence[PlannedFile]
    ) -> tuple[tuple[str, ...] | None, tuple[Reject, ...]]:
        """The object types to write, and messages in which no stub finds anything; no types if a file is damaged."""
        if self._options.object_types != (ALL,):
            return self._options.object_types, ()
        routes = Routes(is_object)
        found: set[str] = set()
        unknown: list[PlannedFile] = []
        by_tag: dict[str, set[str] | None] = {}
        for file in files:
            if not self._options.reads(file.kind):
                continue
            if file.body_tag not in by_tag:
                tables = routes.reachable(file.body_tag)
                by_tag[file.body_tag] = None if tables is None else {label_of(table) for table in tables}
            labels = by_tag[file.body_tag]
            if labels is None:
                unknown.append(file)
            else:
                found |= labels
        strange, rejects, damaged = self._strange(landing, unknown)
        if damaged:
            return None, ()
        return tuple(sorted(found | strange, key=_rank)), rejects

    def _strange(self, landing: Landing, files: Sequence[PlannedFile]) -> tuple[set[str], tuple[Reject, ...], bool]:
        """Object types in messages that no stub knows, messages without any, and whether one is damaged."""
        if not files:
            return set(), (), False
        plan = self._save(replace(landing, files=tuple(files), rejects=()))
        rows = self._read((MESSAGE,), plan).select("source_file", "objects", _CORRUPT).collect()
        known = {file.path: file for file in files}
        labels: set[str] = set()
        rejects: list[Reject] = []
        for row in rows:
            if row[_CORRUPT] is not None:
                return set(), (), True
            labels.update(row["objects"])
            if not row["objects"]:
                rejects.append(unknown_body(known[row["source_file"]]))
        return labels, tuple(rejects), False

    def _one(self, name: str, plan: Path) -> int:
        """Write one object type as it is read; how many files were rejected."""
        rows, observed = self._observed(self._read((name,), plan))
        self._to_parquet(rows, name)
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
            self._to_parquet(held.select(*_columns(name)), name, _files(folder))
        elif self._options.object_types != (ALL,):
            self._to_parquet(rows.limit(0).select(*_columns(name)), name, 1)

    def _observed(self, rows: DataFrame) -> tuple[DataFrame, Any]:
        """Rows without those of rejected files, and a count of the latter."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        observed = Observation("rejects")
        counted = rows.observe(observed, f.count(f.col(_CORRUPT)).alias("rejected"))
        return counted.where(f.col(_CORRUPT).isNull()).drop(_CORRUPT), observed

    def _to_parquet(self, rows: DataFrame, name: str, files: int | None = None) -> None:
        rows = rows if files is None else rows.coalesce(files)
        rows.write.mode("overwrite").parquet(str(self._table(name)))
        for checksum in self._table(name).glob(".*.crc"):
            checksum.unlink()

    def _count(self, name: str) -> int:
        """The rows of a table, by the footers of its files."""
        from pyarrow import parquet

        return sum(parquet.read_metadata(file).num_rows for file in self._table(name).glob("*.parquet"))

    def vendors(self, rows: dict[str, int]) -> dict[str, int]:
        """How many objects each manufacturer made, the most frequent ones first."""
        from pyspark.sql import functions as f

        counts: dict[str, int] = {}
        for name, number in rows.items():
            if number and "manufacturer" in row_schema((name,)).names:
                table = self._spark.read.parquet(str(self._table(name)))
                groups = table.groupBy("manufacturer").count().orderBy(f.desc("count"), "manufacturer")
                for row in groups.limit(_VENDORS).collect():
                    vendor = row["manufacturer"] or "not given"
                    counts[vendor] = counts.get(vendor, 0) + row["count"]
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def unknown_body(file: PlannedFile) -> Reject:
    """The reject of a message in which no stub finds anything."""
    namespace, local = split_clark(file.body_tag)
    reason = f"wrong kind: no stub knows its body element {local} ({namespace or 'no namespace'})"
    return Reject(file.path, None, f"{reason}, nor any object in it")


def folder_name(name: str) -> str:
    """The value of `objectType=` for an object type: its short name, or the name of the class."""
    return label_of(class_for(name))


def _rank(label: str) -> tuple[int, str]:

    return (OBJECT_TYPES.index(label), "") if label in OBJECT_TYPES else (len(OBJECT_TYPES), label)


def _files(folder: Path) -> int:
    """How many files of a fair size a table makes."""
    size = sum(file.stat().st_size for file in folder.glob("*.parquet"))
    return max(1, math.ceil(size / _FILE_BYTES))


def _columns(name: str) -> list[Column]:
    """The columns of one object type, taken out of rows of several."""
    from pyspark.sql import functions as f

    struct = struct_name(class_for(name))
    schema = row_schema((name,))
    own = {shown: ours for ours, shown in shown_names([]).items()}
    made: list[Column] = []
    inside = _class_columns(name)
    shown = {name: ours for ours, name in shown_names(inside).items()}
    for field in schema:
        column = f.col(f"{struct}.{field.name}") if field.name in inside else f.col(own[shown[field.name]])
        made.append(column.alias(field.name))
    return made


def _class_columns(name: str) -> list[str]:
    from mtosi_jms.spark._columns import Struct

    return list(Struct(class_for(name)).fields)
