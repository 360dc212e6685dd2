"""What the driver must know of tables that Spark has written aside, read from their files a batch at a time."""

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
from mtosi_jms.spark._columns import own_columns
from mtosi_jms.spark._files import Reject
from mtosi_jms.spark.jobs._events import GONE, REJECTED
from mtosi_jms.spark.jobs._merge import BEFORE, REMOVED

_GROUP_ROWS: Final = 100_000
_FORMAT: Final = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))


@dataclass
class Heard:
    """What events say.

    Attributes:
        gone: names of deleted objects, and when.
        told: by object type of which there is news, the columns that changes tell of.
        rejects: events that say nothing that can be used.
    """

    gone: set[tuple[str, dt.datetime]] = field(default_factory=set)
    told: dict[str, set[str]] = field(default_factory=dict)
    rejects: tuple[Reject, ...] = ()


@dataclass(frozen=True)
class Objects:
    """Rows of one type: their number, that of those without a name, and the files that they come from."""

    rows: int
    unnamed: int
    files: frozenset[str]


@dataclass(frozen=True)
class Changes:
    """Rows to be written: their number, the files of rows that they replace, and whether some are only removed."""

    rows: int
    files: frozenset[str]
    removes: bool


def scan_events(folder: Path, names: Sequence[str], sent: Mapping[str, dt.datetime]) -> Heard:
    """Read the rows of `event_rows` about some object types.

    Args:
        folder: where they are; it need not exist.
        names: the object types.
        sent: when each message was sent, for events without a time.
    """
    heard = Heard()
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
                heard.gone.add((row["_name"], _utc(row["_time"]) or sent[file]))
            else:
                heard.told.setdefault(alone or row["object_type"], set()).update(row["_told"] or ())
    heard.rejects = tuple(rejects)
    return heard


def scan_objects(folder: Path, own: Mapping[str, str]) -> Objects:
    """Read which objects a table of the news has.

    Args:
        folder: of the table; it need not exist.
        own: what our columns are called in it.
    """
    rows, unnamed, files = 0, 0, set[str]()
    for batch in batches(folder, [own["name_text"], own["source_file"]]):
        rows += batch.num_rows
        unnamed += batch.column(0).null_count
        files.update(pc.unique(batch.column(1)).to_pylist())
    return Objects(rows, unnamed, frozenset(files))


def scan_names(folder: Path, column: str, told: Path, label: str | None) -> pa.Array:
    """Read the names of objects that news are about, each once.

    Args:
        folder: of the news' table; it need not exist.
        column: of the names in it.
        told: where the rows of `event_rows` are; it need not exist.
        label: the object type; None where the events are of this type alone.
    """
    found: list[pa.Array] = [batch.column(0) for batch in batches(folder, [column])]
    for batch in batches(told, None):
        of_type = pc.is_valid(batch.column("_name"))
        if label is not None:
            of_type = pc.and_(of_type, pc.equal(batch.column("object_type"), label))
        found.append(batch.filter(of_type).column("_name"))
    return pc.unique(pa.chunked_array(found, pa.string())).drop_null()


def holding(table: Path, column: str, names: pa.Array) -> list[Path]:
    """The files of a Parquet table that have rows with some names, by the statistics and then the names in them."""
    if not len(names):
        return []
    first, last = pc.min(names), pc.max(names)
    there = (ds.field(column) >= first) & (ds.field(column) <= last)
    wanted = there & ds.field(column).isin(names)
    files = sorted(table.glob("*.parquet"))
    return [path for path in files if ds.dataset(path, format=_FORMAT).scanner([], filter=wanted).head(1).num_rows]


def scan_rows(folder: Path) -> Changes:
    """Read how many rows a table has that are all new."""
    return Changes(sum(parquet.read_metadata(path).num_rows for path in folder.glob("*.parquet")), frozenset(), False)


def scan_changes(folder: Path) -> Changes:
    """Read what is to become of the rows of a table."""
    rows, removes, files = 0, False, set[str]()
    for batch in batches(folder, [REMOVED, BEFORE]):
        rows += batch.num_rows
        removes = removes or bool(pc.any(batch.column(0)).as_py())
        files.update(name for name in pc.unique(batch.column(1)).to_pylist() if name is not None)
    return Changes(rows, frozenset(files), removes)


def join_files(files: Sequence[Path], folder: Path) -> bool:
    """Write the rows of some files of a Parquet table as one file, which costs a tenth of what Spark takes for it.

    Args:
        files: all with the same columns.
        folder: gets the new file, under a name that no other has.

    Returns:
        Whether that was done. It is not where Spark has written times as INT96, which Arrow cannot write so that Spark
        takes both for one type.
    """
    if any(column.physical_type == "INT96" for path in files for column in _columns(path)):
        return False
    ds.write_dataset(
        ds.dataset(list(map(str, files)), format=_FORMAT),
        folder,
        format=_FORMAT,
        basename_template=f"joined-{uuid.uuid4().hex}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        min_rows_per_group=_GROUP_ROWS,
        use_threads=False,
    )
    return True


def _columns(path: Path) -> Iterator[parquet.ColumnSchema]:
    """The leaf columns of a Parquet file."""
    schema = parquet.read_metadata(path).schema
    return (schema.column(number) for number in range(len(schema)))


def batches(folder: Path, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet table, some columns of them; by default those of events."""
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
