"""Events as rows: what notifications of creations, deletions, attribute changes and state changes say about objects.

Each row has four columns in front of those of the object types:

- `_fact`: full, change, gone, or rejected;
- `_name`: the full name of the object; of a rejected event the reason;
- `_time`: the time of the event;
- `_told`: the columns that the event sets.

The file of the message is in `source_file`. What the driver must know of the news it reads from their files with Arrow,
one batch at a time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from lxml import etree

from mtosi_jms.binding.events import logical_name
from mtosi_jms.binding.release1 import fields_of, word
from mtosi_jms.errors import EnvelopeError, XmlError
from mtosi_jms.inventory import (
    Hit,
    Routes,
    class_for,
    converted_content,
    find_objects,
    is_release1,
    label_of,
    name_text,
)
from mtosi_jms.namespaces import split_clark
from mtosi_jms.spark._workers import map_batches
from mtosi_jms.tables.columns import OF_MESSAGE, Message, column_names, own_columns, row_schema, values_of
from mtosi_jms.tables.envelope import envelope_facts, reject_of, soap_body
from mtosi_jms.tables.files import Reject
from mtosi_jms.tables.landing import PlannedFile
from mtosi_jms.tables.rows import RowBuilder, wanted
from mtosi_jms.tables.sequences import time_of
from mtosi_jms.xmlbind import parse_xml
from mtosi_jms.xmlbind.columns import plan_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FULL: Final = "full"
CHANGE: Final = "change"
GONE: Final = "gone"
REJECTED: Final = "rejected"
_FACTS: Final = pa.schema(
    [
        ("_fact", pa.string()),
        ("_name", pa.string()),
        ("_time", pa.timestamp("us", tz="UTC")),
        ("_told", pa.list_(pa.string())),
    ]
)
_KINDS: Final = {
    "ObjectCreation": FULL,
    "ObjectDeletion": GONE,
    "AttributeValueChange": CHANGE,
    "StateChange": CHANGE,
}


class _Fact(NamedTuple):
    kind: str
    name: str
    time: dt.datetime | None
    columns: list[str] | None = None


def event_schema(object_types: Sequence[str]) -> pa.Schema:
    return pa.schema([*_FACTS, *row_schema(tuple(object_types))])


def event_rows(messages: DataFrame, object_types: Sequence[str], stubs: Sequence[str]) -> DataFrame:
    facts = partial(event_batches, object_types=tuple(object_types))
    return map_batches(messages.select("body", "source_file"), facts, event_schema(object_types), stubs)


def event_batches(messages: Iterable[pa.RecordBatch], object_types: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Return the facts as `event_rows` does, but from record batches and in this process."""
    parser = _EventParser(object_types)
    for batch in messages:
        facts = [fact for row in batch.to_pylist() for fact in parser.message(row["body"], row["source_file"])]
        if facts:
            rows = parser.builder.flush()
            arrays = [
                pa.array(values, type=field.type)
                for values, field in zip(zip(*facts, strict=True), _FACTS, strict=True)
            ]
            schema = pa.schema([*_FACTS, *rows.schema])
            yield pa.RecordBatch.from_arrays([*arrays, *rows.columns], schema=schema)


class _EventParser:
    """Makes facts, and the rows of their objects, from notifications."""

    def __init__(self, object_types: Sequence[str]) -> None:
        self._types = tuple(object_types)
        self._routes = Routes(wanted(self._types))
        self.builder = RowBuilder(row_schema(self._types), self._types)

    def message(self, data: bytes | None, source: str) -> list[_Fact]:
        builder = self.builder
        facts: list[_Fact] = []
        try:
            if data is None:
                raise EnvelopeError("a notification too large to be held", source=source)
            root = parse_xml(data, source=source)
            header = envelope_facts(root)
            file = PlannedFile(source, len(data), header.kind, None, None, None, header.body_tag)
            builder.begin(values_of(OF_MESSAGE, Message(header, file)))
            for event in _events(soap_body(root)):
                try:
                    found = self._event(event)
                except EnvelopeError as error:
                    builder.add(Hit(class_for(self._types[0]), None, event))
                    facts.append(_Fact(REJECTED, str(reject_of(error, source).reason), None))
                    continue
                fields = fields_of(event)
                times = (_text(fields, "sourceTime"), _text(fields, "osTime"), header.header.get("timestamp"))
                sent = time_of(next(filter(None, times), None))
                for kind, columns, hit in found:
                    builder.add(hit)
                    facts.append(_Fact(kind, hit.name or "", sent, columns))
        except XmlError as error:
            builder.begin({"source_file": source})
            builder.add(Hit(class_for(self._types[0]), None, etree.Element("none")))
            facts.append(_Fact(REJECTED, reject_of(error, source).reason, None))
        return facts

    def _event(self, event: etree._Element) -> list[tuple[str, list[str] | None, Hit]]:
        """Return the facts of an event: kind, the columns that it sets, and the object with the values.

        Raises:
            EnvelopeError: a deletion or a change names no object, or a creation contains none.
        """
        kind, fields = _KINDS[logical_name(split_clark(str(event.tag))[1])], fields_of(event)
        named = fields.get("objectName")
        name = "" if named is None else name_text(named)
        if kind == GONE:
            if not name:
                raise EnvelopeError("a deletion that names no object", line=event.sourceline)
            return [(GONE, None, Hit(class_for(self._types[0]), None, event, name=name))]
        holder = fields.get("object" if kind == FULL else "attributeList")
        hits = [] if holder is None else find_objects(holder, self._routes)
        if kind == FULL:
            if holder is None or not len(holder):
                raise EnvelopeError("a creation without an object", line=event.sourceline)
            return [(FULL, None, _named(hit, name if len(hits) == 1 else "")) for hit in hits]
        if not name:
            raise EnvelopeError("a change that names no object", line=event.sourceline)
        if not hits and holder is not None:
            hits = self._alone(event, holder, name)
        return [(CHANGE, _columns_set(hit), replace(hit, name=name)) for hit in hits]

    def _alone(self, event: etree._Element, holder: etree._Element, name: str) -> list[Hit]:
        """Return attributes that no object element encloses as an object; the event or the name says its type."""
        label = word("objectType", _text(fields_of(event), "objectType")) or name.rpartition("/")[2].partition("=")[0]
        if label not in self._types:
            return []
        table = class_for(label)
        slots = plan_of(table).slots
        if any(is_release1(str(child.tag)) for child in holder):
            holder = converted_content(holder, table)
        if not any(str(child.tag) in slots for child in holder):
            return []
        return [Hit(table, holder, event)]


def _events(body: etree._Element | None) -> Iterator[etree._Element]:
    for element in body.iter() if body is not None else ():
        if isinstance(element.tag, str) and logical_name(split_clark(element.tag)[1]) in _KINDS:
            yield element


def _columns_set(hit: Hit) -> list[str]:
    """Return the columns that the element of an object sets, including those with xsi:nil."""
    if hit.element is None:
        return []
    slots, columns = plan_of(hit.table).slots, column_names(hit.table)
    found = {slots[str(child.tag)].name for child in hit.element if str(child.tag) in slots} - {"name"}
    return sorted(columns[name] for name in found)


def _named(hit: Hit, name: str) -> Hit:
    return replace(hit, name=name) if name else hit


def _text(fields: Mapping[str, etree._Element], name: str) -> str:
    child = fields.get(name)
    return "" if child is None else (child.text or "").strip()


_FORMAT: Final = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))


@dataclass
class EventSummary:
    """A summary of events.

    Attributes:
        changed_columns: by object type that has creations or changes: the columns that changes set.
    """

    deleted: set[tuple[str, dt.datetime]] = field(default_factory=set)
    earliest: dt.datetime | None = None
    changed_columns: dict[str, set[str]] = field(default_factory=dict)
    rejects: tuple[Reject, ...] = ()


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


def scan_objects(folder: Path, own: Mapping[str, str]) -> tuple[int, int, set[str]]:
    """Return how many rows a table has, how many of them have no name, and the files that they come from."""
    rows, unnamed, files = 0, 0, set[str]()
    for batch in batches(folder, [own["name_text"], own["source_file"]]):
        rows += batch.num_rows
        unnamed += batch.column(0).null_count
        files.update(pc.unique(batch.column(1)).to_pylist())
    return rows, unnamed, files


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
