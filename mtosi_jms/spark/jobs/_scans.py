"""Facts that the driver needs about staged tables. It reads them from the files with Arrow, one batch at a time."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import parquet

from mtosi_jms.inventory import class_for, label_of
from mtosi_jms.spark.jobs._events import GONE, REJECTED
from mtosi_jms.spark.jobs._merge import BEFORE, DIFFERS, REMOVED
from mtosi_jms.tables.columns import own_columns
from mtosi_jms.tables.files import Reject
from mtosi_jms.tables.writer import count_rows

_GROUP_ROWS: Final = 100_000
_FORMAT: Final = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))


@dataclass
class EventSummary:
    """A summary of events.

    Attributes:
        deleted: names of deleted objects, with the time of the deletion.
        changed_columns: by object type that has creations or changes: the columns that changes set.
        rejects: events that cannot be used, with reasons.
    """

    deleted: set[tuple[str, dt.datetime]] = field(default_factory=set)
    changed_columns: dict[str, set[str]] = field(default_factory=dict)
    rejects: tuple[Reject, ...] = ()


@dataclass(frozen=True)
class Objects:
    """The rows of one type: their number, how many have no name, and the files that they come from."""

    rows: int
    unnamed: int
    files: frozenset[str]


@dataclass(frozen=True)
class Names:
    """The different names of objects in the news, and whether each of them occurs once."""

    names: pa.Array
    once: bool


@dataclass(frozen=True)
class Changes:
    """Changed rows.

    Attributes:
        rows: their number.
        differing: how many of them are new, have other content than the row that they replace, or are removed.
        files: the files of the rows that they replace.
        removes: whether any row is removed.
    """

    rows: int
    differing: int
    files: frozenset[str]
    removes: bool


def scan_events(folder: Path, names: Sequence[str], sent: Mapping[str, dt.datetime]) -> EventSummary:
    """Summarise the rows of `event_rows` about some object types.

    Args:
        folder: of these rows; it need not exist.
        names: the object types.
        sent: when each message was sent, for events without a time.
    """
    summary = EventSummary()
    rejects: list[Reject] = []
    alone = label_of(class_for(names[0])) if len(names) == 1 else None
    for batch in batches(folder, None):
        own = own_columns(batch.schema.names)
        wanted = ["_fact", "_name", "_time", "_told", own["source_file"], own["source_line"]]
        if alone is None:
            wanted.append("object_type")
        for row in batch.select(wanted).to_pylist():
            file = row[own["source_file"]]
            if row["_fact"] == REJECTED:
                rejects.append(Reject(file, row[own["source_line"]], row["_name"]))
            elif row["_fact"] == GONE:
                summary.deleted.add((row["_name"], _utc(row["_time"]) or sent[file]))
            else:
                summary.changed_columns.setdefault(alone or row["object_type"], set()).update(row["_told"] or ())
    summary.rejects = tuple(rejects)
    return summary


def scan_objects(folder: Path, own: Mapping[str, str]) -> Objects:
    """Count the objects in a table of the news.

    Args:
        folder: of the table; it need not exist.
        own: the names of our columns in the table.
    """
    rows, unnamed, files = 0, 0, set[str]()
    for batch in batches(folder, [own["name_text"], own["source_file"]]):
        rows += batch.num_rows
        unnamed += batch.column(0).null_count
        files.update(pc.unique(batch.column(1)).to_pylist())
    return Objects(rows, unnamed, frozenset(files))


def scan_names(folder: Path, column: str, events: Path, label: str | None) -> Names:
    """Read the names of the objects in the news.

    Args:
        folder: of the table of the news; it need not exist.
        column: its column of names.
        events: folder of the rows of `event_rows`; it need not exist.
        label: the object type; None if all events are of this type.
    """
    found: list[pa.Array] = [batch.column(0) for batch in batches(folder, [column])]
    for batch in batches(events, None):
        of_type = pc.is_valid(batch.column("_name"))
        if label is not None:
            of_type = pc.and_(of_type, pc.equal(batch.column("object_type"), label))
        found.append(batch.filter(of_type).column("_name"))
    names = pa.chunked_array(found, pa.string()).drop_null()
    different = names.unique()
    return Names(different, once=len(different) == len(names))


def holding(table: Path, column: str, names: pa.Array) -> list[Path]:
    """Return the files of a Parquet table that have rows with some names, by their statistics and then their rows."""
    if not len(names):
        return []
    first, last = pc.min(names), pc.max(names)
    there = (ds.field(column) >= first) & (ds.field(column) <= last)
    wanted = there & ds.field(column).isin(names)
    files = sorted(table.glob("*.parquet"))
    return [path for path in files if ds.dataset(path, format=_FORMAT).scanner([], filter=wanted).head(1).num_rows]


def scan_rows(folder: Path) -> Changes:
    """Count the rows of a table in which all rows are new."""
    rows = count_rows(folder)
    return Changes(rows, rows, frozenset(), False)


def scan_changes(folder: Path) -> Changes:
    """Summarise the rows that `TableMerge.changes` gave."""
    rows, differing, removes, files = 0, 0, False, set[str]()
    for batch in batches(folder, [REMOVED, BEFORE, DIFFERS]):
        rows += batch.num_rows
        removes = removes or bool(pc.any(batch.column(0)).as_py())
        files.update(name for name in pc.unique(batch.column(1)).to_pylist() if name is not None)
        differing += batch.column(2).true_count
    return Changes(rows, differing, frozenset(files), removes)


def join_files(files: Sequence[Path], folder: Path) -> bool:
    """Write the rows of some files of a Parquet table as one file, in a tenth of the time that Spark needs.

    Args:
        files: all with the same columns.
        folder: for the new file, which gets a unique name.

    Returns:
        Whether the file was written. Files with times as INT96 are not joined: Arrow cannot write these times in a way
        that Spark reads as the same type.
    """
    if any(column.physical_type == "INT96" for path in files for column in _columns(path)):
        return False
    table = ds.dataset(list(map(str, files)), format=_FORMAT)
    # A column that has no null in the first file may have one in another.
    nullable = pa.schema([field.with_nullable(True) for field in table.schema], table.schema.metadata)
    ds.write_dataset(
        table.replace_schema(nullable),
        folder,
        format=_FORMAT,
        basename_template=f"joined-{uuid.uuid4().hex}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        min_rows_per_group=_GROUP_ROWS,
        use_threads=False,
    )
    return True


def _columns(path: Path) -> Iterator[parquet.ColumnSchema]:
    """Return the leaf columns of a Parquet file."""
    schema = parquet.read_metadata(path).schema
    return (schema.column(number) for number in range(len(schema)))


def batches(folder: Path, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a Parquet table; with None, the columns that `scan_events` and `scan_names` need."""
    files = sorted(map(str, folder.glob("*.parquet")))
    if not files:
        return
    table = ds.dataset(files, format=_FORMAT)
    if columns is None:
        inside = ("_fact", "_name", "_time", "_told", "object_type", "source_file", "source_line")
        columns = [name for name in table.schema.names if name.rstrip("_") in {each.rstrip("_") for each in inside}]
    yield from table.to_batches(columns=columns)


def _utc(time: dt.datetime | None) -> dt.datetime | None:
    return time if time is None or time.tzinfo is not None else time.replace(tzinfo=dt.UTC)
