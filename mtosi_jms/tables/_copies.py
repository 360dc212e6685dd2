"""One row for each object of a sequence: an answer in batches repeats the objects around those of each batch.

Of several rows with one name in one sequence, the row with the most attributes stays; among such rows it is that of the
first batch. Rows without a name stay, and so do those of a sequence in which batches with one number differ, because
nobody knows which of them counts.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from mtosi_jms.tables.columns import PROVENANCE, own_columns

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
            score = sum(_is_given(row[column]) for column in content)
            order = tuple(_LAST if row[column] is None else (0, row[column]) for column in place)
            text = json.dumps([row[column] for column in content], default=str, sort_keys=True)
            key = (row[name], row[sequence], row[file] if row[sequence] is None else None)
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            yield key, _Row((-score, *order), number + at, score, digest)
        number += batch.num_rows


def _is_given(value: Any) -> bool:
    """Whether an attribute has a value; lists and maps have one if they are not empty."""
    return value is not None and value not in ([], {})


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
