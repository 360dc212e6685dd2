"""The writer of Parquet tables by object type; it reads the files of a planned landing once, in this process.

A table has one row for each object of a sequence: an answer in batches repeats the objects around those of each batch.
Of several rows with one name in one sequence, the row with the most attributes stays; among such rows it is that of the
first batch. Rows without a name stay, and so do those of a sequence in which batches with one number differ, because
nobody knows which of them counts.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import shutil
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import parquet

from mtosi_jms.compression import COMPRESSED
from mtosi_jms.errors import ConfigError
from mtosi_jms.inventory import ALL, MESSAGE, OBJECT_TYPES, Routes, class_for, is_object, is_release1, label_of
from mtosi_jms.report import Table
from mtosi_jms.tables.columns import PROVENANCE, arrow_schema, full_schema, own_columns, shown_names, struct_name
from mtosi_jms.tables.files import Reject, split_member
from mtosi_jms.tables.job import PREFIX, disk_errors
from mtosi_jms.tables.landing import Plan, PlannedFile, readable
from mtosi_jms.tables.options import Mode, SourceOptions
from mtosi_jms.tables.reader import NO_CLASS, reader_for, unknown_body
from mtosi_jms.tables.sql import Condition

__all__ = ["CORRUPT", "Copies", "TableWriter", "Written", "column_paths", "count_rows", "sample", "weight"]


CORRUPT: Final = "_corrupt_record"
"""The column with the reason of a rejected file, while tables are made."""
SAMPLE: Final = 5
"""The number of rows of a table that a page shows."""
_CELL: Final = 80
_VENDORS: Final = 50
_SAMPLED: Final = ("name_text", "user_label", "manufacturer", "product_name", "location", "complete")
_FOLDERS: Final = 10_000
_PART_ROWS: Final = 5_000
"""So many rows are worth a file of their own, for a task of its own."""
PACKED: Final = 16
"""One byte of a compressed file counts as this many bytes."""


@dataclass(frozen=True, slots=True)
class Written:
    """The written tables. `rows`: number of rows by object type. `rejects`: messages in which no stub finds anything,
    and objects for which no stub has a class. `copies`: what was left out because its sequence has the object already,
    by object type."""

    rows: dict[str, int]
    rejects: tuple[Reject, ...] = ()
    copies: dict[str, Copies] = field(default_factory=dict)


class TableWriter:
    """Writes the tables of one landing into a folder. `condition`: selects the rows to write; by default all."""

    def check_split(self, names: Iterable[str], columns: Sequence[str]) -> None:
        """Check that tables can be split by columns. Raises ConfigError: one has no such column, or it is nested."""
        for name in names:
            schema = self._schema(name)
            for column in columns:
                if column not in schema.names or pa.types.is_nested(schema.field(column).type):
                    raise ConfigError(f"partition_by (--partition-by): {name} has no plain column {column!r}")

    def __init__(self, options: SourceOptions, folder: Path, condition: Condition | None = None) -> None:
        self._where = condition or Condition("")
        self._options = options
        self._folder = folder
        self._files: Sequence[PlannedFile] = ()

    def write(self, plan: Plan) -> Written | None:
        """Make the tables; None if a file turns out to be damaged, because the plan is then wrong. Raises SpoolError: a
        file cannot be read, has changed, or the disk is full."""
        self._files = tuple(file for file in readable(plan, self._options) if self._options.reads(file.kind))
        return self._write({found.correlation_id for found in plan.sequences if found.conflicts})

    def _write(self, conflicting: set[str | None]) -> Written | None:
        types, rejects = self._types()
        if types is None:
            return None
        for old in self._folder.glob(f"{PREFIX}*"):
            shutil.rmtree(old)
        if not types:
            return None if self._is_damaged() else Written({}, rejects)
        if self._fill(types):
            return None
        there = [name for name in types if self._table(name).exists()]
        known = {name for name in conflicting if name is not None}
        copies = {name: leave_out_copies(self._table(name), self._schema(name), known) for name in there}
        rows = {name: count_rows(self._table(name)) for name in there}
        if self._options.object_types == (ALL,):
            for name in [name for name, count in rows.items() if not count]:
                shutil.rmtree(self._table(name))
                del rows[name]
        return Written(rows, rejects, {name: found for name, found in copies.items() if found.rows})

    def _table(self, name: str) -> Path:
        return self._folder / f"{PREFIX}{label_of(class_for(name))}"

    def _schema(self, name: str) -> pa.Schema:
        return full_schema(replace(self._options, object_types=(name,)))

    def _reading(self, types: Sequence[str]) -> SourceOptions:
        return replace(self._options, object_types=tuple(types), mode=Mode.PERMISSIVE, corrupt_column=CORRUPT)

    def _types(self) -> tuple[tuple[str, ...] | None, tuple[Reject, ...]]:
        """Return the object types to write, and rejects of messages in which no stub finds anything, or not all.

        The types are None if a file is damaged.
        """
        if self._options.object_types != (ALL,):
            return self._options.object_types, ()
        routes = Routes(is_object)
        reachable = {tag: routes.reachable(tag) for tag in self._body_tags()}
        found = {label_of(table) for tables in reachable.values() for table in tables or ()}
        unknown = {tag for tag, tables in reachable.items() if tables is None or is_release1(tag)}
        rejects: list[Reject] = []
        for row in self._messages(unknown) if unknown else ():
            if row[CORRUPT] is not None:
                return None, ()
            found.update(row["objects"])
            unread = [one for one in row["warnings"] if one["rule"] == NO_CLASS]
            rejects += [Reject(row["source_file"], one["line"], one["message"]) for one in unread]
            if not row["objects"] and not unread:
                rejects.append(unknown_body(row["source_file"], row["body_element"] or ""))
        return tuple(sorted(found, key=type_order)), tuple(rejects)

    # What another engine does in its own way:

    def _body_tags(self) -> set[str]:
        return {file.body_tag for file in self._files}

    def _messages(self, tags: set[str]) -> Iterable[Any]:
        """The messages with some body elements: `source_file`, `body_element`, `objects`, `warnings`, and why one is
        rejected."""
        options = self._reading((MESSAGE,))
        wanted = ("source_file", "body_element", "objects", "warnings", CORRUPT)
        schema = pa.schema([full_schema(options).field(name) for name in wanted])
        for batch in reader_for(options, schema).read([file for file in self._files if file.body_tag in tags]):
            yield from batch.to_pylist(maps_as_pydicts="lossy")

    def _is_damaged(self) -> bool:
        """Whether a file is damaged; needed if there is no table, because then nothing else reads whole files."""
        return any(row[CORRUPT] is not None for row in self._messages(self._body_tags()))

    def _fill(self, types: Sequence[str]) -> int:
        """Write the rows, at most as many files a table as this machine has cores. Return how many files are damaged;
        with the first one it ends."""
        options = replace(self._reading(types), batch_rows=min(self._options.batch_rows, _PART_ROWS))
        cores = os.cpu_count() or 1
        schemas = {name: self._schema(name) for name in types}
        reader = reader_for(options, full_schema(options))
        with disk_errors(self._folder), ExitStack() as stack:
            writers: dict[tuple[str, int], parquet.ParquetWriter] = {}
            for name in types if self._options.object_types != (ALL,) else ():
                writers[name, 0] = stack.enter_context(self._writer(name, 0))
            for number, batch in enumerate(reader.read(self._files)):
                if reader.rejected:
                    break
                for name, rows in _parted(batch, schemas):
                    part = (name, number % cores)
                    if part not in writers:
                        writers[part] = stack.enter_context(self._writer(*part))
                    writers[part].write(self._where.of(rows))
        return len(reader.rejected)

    def _writer(self, name: str, part: int) -> parquet.ParquetWriter:
        self._where.check(self._schema(name))
        self._table(name).mkdir(exist_ok=True)
        return parquet.ParquetWriter(self._table(name) / f"part-{part}.parquet", self._schema(name))

    def split(self, name: str, columns: Sequence[str]) -> None:
        """Distribute the rows of a written table to folders `column=value`."""
        folder = self._table(name)
        new = folder.with_name(f"{folder.name}.split")
        by = ds.partitioning(pa.schema([self._schema(name).field(column) for column in columns]), flavor="hive")
        rows = ds.dataset(folder, format="parquet", schema=self._schema(name))
        with disk_errors(folder):
            ds.write_dataset(rows, new, format="parquet", partitioning=by, max_partitions=_FOLDERS)
        shutil.rmtree(folder)
        new.rename(folder)

    def samples(self, rows: dict[str, int]) -> tuple[Table, ...]:
        """Return the first rows of each table."""
        return tuple(sample(f"{name}: the first rows", self._table(name), _SAMPLED) for name in rows)

    def vendors(self, rows: dict[str, int]) -> dict[str, int]:
        """Return the number of objects by manufacturer, the most frequent manufacturers first."""
        counts = Counter[str]()
        for name, number in rows.items():
            if number and "manufacturer" in self._schema(name).names:
                for batch in batches(self._table(name), ["manufacturer"]):
                    for found in pc.value_counts(batch.column(0)).to_pylist():
                        counts[found["values"] or "not given"] += found["counts"]
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_VENDORS])


def weight(path: str, size: int) -> int:
    """Return about how many bytes a file has when it is not compressed."""
    return size * (PACKED if split_member(path)[0].endswith(COMPRESSED) else 1)


def type_order(label: str) -> tuple[int, str]:
    """Return a sort key of object types: MTOSI's own types first, the others by name."""
    return (OBJECT_TYPES.index(label), "") if label in OBJECT_TYPES else (len(OBJECT_TYPES), label)


def sample(title: str, folder: Path, columns: Sequence[str]) -> Table:
    """Return the first rows of a written table. Columns that are missing or null in all these rows are left out."""
    rows = _head(folder, columns)
    shown = [name for name in columns if any(row.get(name) is not None for row in rows)]
    return Table(title, shown, [[_cell(row.get(name)) for name in shown] for row in rows] if shown else ())


def _head(folder: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    for file in sorted(folder.glob("*.parquet")):
        table = ds.dataset(file, format="parquet")
        found: list[dict[str, Any]] = table.head(
            SAMPLE, columns=[name for name in columns if name in table.schema.names]
        ).to_pylist()
        if found:
            return found
    return []


def _cell(value: Any) -> object:
    """Return a value as a cell: a nested value as JSON, long text shortened."""
    if value is None or isinstance(value, bool | int | dt.datetime):
        return value
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"


def column_paths(name: str, columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return where some columns of an object type are in rows with several types: a column, or a struct and a field."""
    table = class_for(name)
    inside = arrow_schema(table.cls).names
    ours = {shown: own for own, shown in shown_names(inside).items()}
    return {
        column: (struct_name(table), column) if column in inside else (ours.get(column, column),) for column in columns
    }


def _parted(batch: pa.RecordBatch, schemas: Mapping[str, pa.Schema]) -> Iterator[tuple[str, pa.RecordBatch]]:
    for name, schema in schemas.items():
        if len(schemas) == 1:
            yield name, batch.select(schema.names)
            return
        of_type = batch.filter(pc.equal(batch.column("object_type"), label_of(class_for(name))))
        if of_type.num_rows:
            arrays = [
                of_type.column(path[0]) if len(path) == 1 else pc.struct_field(of_type.column(path[0]), path[1])
                for path in column_paths(name, schema.names).values()
            ]
            yield name, pa.RecordBatch.from_arrays(arrays, schema=schema)


_NAMES: Final = 10_000_000
"""The hashes of so many names are held at a time: 80 MB."""
_REPEATED: Final = 500_000
"""The rows of so many names that come more than once are held at a time."""
_LAST: Final = (1,)
"""Sorts after all values: nulls come last."""


@dataclass(frozen=True, slots=True)
class Copies:
    """How many rows were left out, and how many of these have other attributes than the row that stays."""

    rows: int = 0
    differing: int = 0


class _Row(NamedTuple):
    """A row with a name that comes more than once, and what decides whether it stays."""

    order: tuple[Any, ...]
    number: int
    score: int
    content: bytes


def leave_out_copies(folder: Path, schema: pa.Schema, conflicting: Collection[str]) -> Copies:
    """Remove the copies from a Parquet table of any size, which is read batch by batch."""
    own = own_columns(schema.names)
    out = array("q")
    differing = 0
    parts = 1 + count_rows(folder) // _NAMES
    for part in range(parts):
        repeated = sorted(_repeated(folder, own["name_text"], part, parts))
        for start in range(0, len(repeated), _REPEATED):
            groups: defaultdict[tuple[Any, ...], list[_Row]] = defaultdict(list)
            for key, row in _rows(folder, schema, own, {*repeated[start : start + _REPEATED]}):
                if key[1] not in conflicting:
                    groups[key].append(row)
            for rows in groups.values():
                first, *copies = sorted(rows)
                out.extend(row.number for row in copies)
                differing += sum(row.content != first.content and row.score > 0 for row in copies)
    if out:
        _without(folder, array("q", sorted(out)))
    return Copies(len(out), differing)


def count_rows(folder: Path) -> int:
    """Return the number of rows of a Parquet table, from the footers of its files."""
    return sum(parquet.read_metadata(path).num_rows for path in folder.rglob("*.parquet"))


def content_columns(names: Sequence[str], own: dict[str, str]) -> list[str]:
    """Return the columns of a table that tell of an object, not of its name and the place of its row."""
    outside = {own.get(column, column) for column in (*PROVENANCE, "name_text", "parent_names")}
    return [column for column in names if column not in outside]


def batches(folder: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield some columns, or all, of a Parquet table, file by file."""
    for path in sorted(folder.glob("*.parquet")):
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=10_000, columns=columns)


def _repeated(folder: Path, name: str, part: int, parts: int) -> set[int]:
    """Return the hashes of names that come more than once, of one part of all hashes."""
    hashes = array("q")
    for batch in batches(folder, [name]):
        found = (hash(value) for value in batch.column(0).to_pylist() if value is not None)
        hashes.extend(value for value in found if value % parts == part)
    counted = pa.Array.from_buffers(pa.int64(), len(hashes), [None, pa.py_buffer(hashes)])
    if pc.count_distinct(counted).as_py() == len(hashes):
        return set()
    return {found["values"] for found in pc.value_counts(counted).to_pylist() if found["counts"] > 1}


def _rows(
    folder: Path, schema: pa.Schema, own: dict[str, str], repeated: Collection[int]
) -> Iterator[tuple[tuple[Any, ...], _Row]]:
    """Yield the rows whose name comes more than once, each with its name and its sequence."""
    content = content_columns(schema.names, own)
    name, sequence, file = (own[column] for column in ("name_text", "correlation_id", "source_file"))
    place = [own[column] for column in ("batch_number", "source_file", "source_position")]
    number = 0
    for batch in batches(folder):
        names = batch.column(name).to_pylist()
        taken = [at for at, value in enumerate(names) if value is not None and hash(value) in repeated]
        rows = batch.take(pa.array(taken, pa.int64())).to_pylist(maps_as_pydicts="lossy")
        for at, row in zip(taken, rows, strict=True):
            score = sum(row[column] not in (None, [], {}) for column in content)
            order = tuple(_LAST if row[column] is None else (0, row[column]) for column in place)
            text = json.dumps([row[column] for column in content], default=str, sort_keys=True)
            key = (row[name], row[sequence], row[file] if row[sequence] is None else None)
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            yield key, _Row((-score, *order), number + at, score, digest)
        number += batch.num_rows


def _without(folder: Path, out: Sequence[int]) -> None:
    """Write the files of a table again without some rows: their numbers in the order of `batches`, sorted."""
    number = 0
    for path in sorted(folder.glob("*.parquet")):
        new = path.with_name(f"once-{path.name}")
        with parquet.ParquetFile(path) as file, parquet.ParquetWriter(new, file.schema_arrow) as writer:
            for batch in file.iter_batches(batch_size=10_000):
                stays = [True] * batch.num_rows
                first, number = number, number + batch.num_rows
                for at in out[bisect_left(out, first) : bisect_left(out, number)]:
                    stays[at - first] = False
                writer.write(batch.filter(pa.array(stays)))
        new.replace(path)
