"""Facts that the driver needs about staged tables. It reads them from the files with Arrow, one batch at a time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from mtosi_jms.inventory import class_for, label_of
from mtosi_jms.spark.jobs._events import GONE, REJECTED
from mtosi_jms.tables.columns import own_columns
from mtosi_jms.tables.files import Reject

_FORMAT: Final = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))


@dataclass
class EventSummary:
    """A summary of events.

    Attributes:
        deleted: names of deleted objects, with the time of the deletion.
        earliest: the time of the first event.
        changed_columns: by object type that has creations or changes: the columns that changes set.
        rejects: events that cannot be used, with reasons.
    """

    deleted: set[tuple[str, dt.datetime]] = field(default_factory=set)
    earliest: dt.datetime | None = None
    changed_columns: dict[str, set[str]] = field(default_factory=dict)
    rejects: tuple[Reject, ...] = ()


@dataclass(frozen=True)
class Objects:
    """The rows of one type: their number, how many have no name, and the files that they come from."""

    rows: int
    unnamed: int
    files: frozenset[str]


def scan_events(folder: Path, names: Sequence[str], sent: Mapping[str, dt.datetime]) -> EventSummary:
    """Summarise the rows of `event_rows` about some object types."""
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
                continue
            time = _utc(row["_time"]) or sent[file]
            summary.earliest = min(summary.earliest or time, time)
            if row["_fact"] == GONE:
                summary.deleted.add((row["_name"], time))
            else:
                summary.changed_columns.setdefault(alone or row["object_type"], set()).update(row["_told"] or ())
    summary.rejects = tuple(rejects)
    return summary


def scan_objects(folder: Path, own: Mapping[str, str]) -> Objects:
    """Count the objects in a table of the news."""
    rows, unnamed, files = 0, 0, set[str]()
    for batch in batches(folder, [own["name_text"], own["source_file"]]):
        rows += batch.num_rows
        unnamed += batch.column(0).null_count
        files.update(pc.unique(batch.column(1)).to_pylist())
    return Objects(rows, unnamed, frozenset(files))


def scan_sequences(folder: Path, keys: Collection[str]) -> set[str]:
    """Return those sequences that have rows in a Parquet table: by correlationId, or by file if they have none."""
    found: set[str] = set()
    files = sorted(map(str, folder.glob("*.parquet")))
    if files and keys:
        table = ds.dataset(files, format=_FORMAT)
        own = own_columns(table.schema.names)
        key = pc.coalesce(*(ds.field(own[name]) for name in ("correlation_id", "source_file")))
        for batch in table.to_batches(columns={"key": key}, filter=pc.is_in(key, pa.array(keys, pa.string()))):
            found.update(pc.unique(batch.column(0)).to_pylist())
    return found


def scan_names(folder: Path, column: str, events: Path, label: str | None) -> pa.ChunkedArray:
    """Return the names in the news, each as often as it is there."""
    found: list[pa.Array] = [batch.column(0) for batch in batches(folder, [column])]
    for batch in batches(events, None):
        of_type = pc.is_valid(batch.column("_name"))
        if label is not None:
            of_type = pc.and_(of_type, pc.equal(batch.column("object_type"), label))
        found.append(batch.filter(of_type).column("_name"))
    return pa.chunked_array(found, pa.string()).drop_null()


def batches(folder: Path, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a Parquet table; with None, the columns of events."""
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
