"""Events as rows: what notifications of creations, deletions, attribute changes and state changes say about objects.

Each row has four columns in front of those of the object types:

- `_fact`: full, change, gone, or rejected;
- `_name`: the full name of the object; of a rejected event the reason;
- `_time`: the time of the event;
- `_told`: the columns that the event sets.

The file of the message is in `source_file`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from lxml import etree
from pyspark.sql.pandas.types import from_arrow_schema

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
    load_stubs,
    name_text,
)
from mtosi_jms.namespaces import split_clark
from mtosi_jms.tables.columns import OF_MESSAGE, Message, column_names, row_schema, values_of
from mtosi_jms.tables.envelope import envelope_facts, reject_of, soap_body
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


@dataclass(frozen=True, slots=True)
class _Fact:
    kind: str
    name: str
    time: dt.datetime | None
    columns: list[str] | None = None


def event_schema(object_types: Sequence[str]) -> pa.Schema:
    """Return the columns of facts about objects of some types."""
    return pa.schema([*_FACTS, *row_schema(tuple(object_types))])


def event_rows(messages: DataFrame, object_types: Sequence[str], stubs: Sequence[str]) -> DataFrame:
    """Return the facts that notifications contain about objects of some types."""
    parser = _EventParser(tuple(object_types), tuple(stubs))
    schema = from_arrow_schema(event_schema(object_types))
    return messages.select("body", "source_file").mapInArrow(parser, schema)


def event_batches(
    messages: Iterable[pa.RecordBatch], object_types: Sequence[str], stubs: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Return the facts as `event_rows` does, but from record batches and in this process."""
    return _EventParser(tuple(object_types), tuple(stubs))(messages)


class _EventParser:
    """Makes facts from batches of messages, in Spark's Python workers or in this process."""

    def __init__(self, object_types: tuple[str, ...], stubs: tuple[str, ...]) -> None:
        self._types = object_types
        self._stubs = stubs

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        load_stubs(self._stubs)
        routes = Routes(wanted(self._types))
        builder = RowBuilder(row_schema(self._types), self._types)
        for batch in batches:
            facts: list[_Fact] = []
            for row in batch.to_pylist():
                facts += self._message(row["body"], row["source_file"], routes, builder)
            if facts:
                rows = builder.flush()
                fields = [[getattr(fact, name) for fact in facts] for name in ("kind", "name", "time", "columns")]
                arrays = [pa.array(values, type=field.type) for values, field in zip(fields, _FACTS, strict=True)]
                schema = pa.schema([*_FACTS, *rows.schema])
                yield pa.RecordBatch.from_arrays([*arrays, *rows.columns], schema=schema)

    def _message(self, data: bytes | None, source: str, routes: Routes, builder: RowBuilder) -> list[_Fact]:
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
                    found = self._event(event, routes)
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

    def _event(self, event: etree._Element, routes: Routes) -> list[tuple[str, list[str] | None, Hit]]:
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
        hits = [] if holder is None else find_objects(holder, routes)
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
    """Yield the events in the body of a notification that say something about objects."""
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
