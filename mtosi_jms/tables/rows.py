"""The builder of rows: it takes objects one by one and gives record batches."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from struct import pack
from typing import Any, Final, NamedTuple

import pyarrow as pa
from lxml import etree

from mtosi_jms.inventory import (
    ALL,
    OBJECT_TYPES,
    Hit,
    Relations,
    class_for,
    escaped,
    given_name,
    is_object,
    label_of,
    relations_of,
)
from mtosi_jms.namespaces import XSI, split_clark
from mtosi_jms.tables._leaves import Leaf, Odd, texts_of, xml_text
from mtosi_jms.tables._structs import Many, Struct
from mtosi_jms.tables.columns import OF_OBJECT, SOURCE_FILE, Objects, shown_names, struct_name
from mtosi_jms.tables.files import Reject
from mtosi_jms.xmlbind import ClassTable, ElementPaths, Issues, Scopes, XmlObject, XmlWarning, decode_root
from mtosi_jms.xmlbind.columns import plan_of

__all__ = [
    "RowBuilder",
    "wanted",
]

_XSI: Final = f"{{{XSI}}}"
_FEW: Final = 64
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NAME: Final = frozenset({"name"})


def wanted(object_types: Sequence[str]) -> Callable[[ClassTable], bool]:
    """Return a condition: whether objects of a class become rows. Raises ConfigError: no stub has one of the types."""
    if object_types == (ALL,):
        return is_object
    labels = frozenset(name for name in object_types if name in OBJECT_TYPES)
    classes = tuple(class_for(name).cls for name in object_types if name not in OBJECT_TYPES)

    def accepts(table: ClassTable) -> bool:
        return issubclass(table.cls, classes) or (is_object(table) and label_of(table) in labels)

    return accepts


class Origin(NamedTuple):
    """The place in its message of an object that was parsed separately. `lines_before`: number of lines of the message
    before the parsed octets. `relations`: references and quality from its inventory node; None for flat objects.
    `path`: gives the path of its element; None if that is unknown."""

    line: int
    lines_before: int
    relations: Relations | None
    path: Callable[[], str] | None


class RowBuilder:
    """Takes objects and rejected files, and gives record batches. `rows`: number of rows that wait for the next batch.
    `paths`: of the elements of a message that is in memory; None for a message that is read piece by piece. `begin`
    sets it to None."""

    def __init__(self, schema: pa.Schema, object_types: tuple[str, ...], corrupt: str | None = None) -> None:
        """Prepare the columns of a schema: some or all columns of the object types, and the column of rejects."""
        self.rows = 0
        self.paths: ElementPaths | None = None
        self.schema = schema
        self._corrupt = corrupt if corrupt in schema.names else None
        self._long = object_types == (ALL,)
        structs = [] if self._long else [Struct(class_for(name)) for name in object_types]
        single = structs[0] if len(structs) == 1 else None
        shown = shown_names(single.fields if single else ())
        self.own = {name: own for own, name in shown.items()}
        self.of_object = {name: column for column in OF_OBJECT if (name := shown[column.name]) in schema.names}
        names = {column.name for column in self.of_object.values()}
        self._has_names = bool(names & {"name_text", "parent_names"})
        self._has_relations = bool(names & {"related", "quality"})
        self.structs = {"" if single else struct_name(struct.table): struct for struct in structs}
        if single:
            single.narrow(schema.names, hidden=("name",))
        self._by_table: dict[ClassTable, Struct | None] = {}
        self._objects = Objects()
        self._runs: list[tuple[int, Mapping[str, Any]]] = []
        self._current: Mapping[str, Any] = {}
        self._scopes = Scopes()
        self._run_start = 0
        self._position = 0

    def begin(self, values: Mapping[str, Any]) -> None:
        """Start the rows of another message; `values` has the columns that are the same in all of them."""
        self._end_run()
        self.paths = None
        self._scopes = Scopes()
        self._current = values
        self._position = 0

    def _end_run(self) -> None:
        if self.rows > self._run_start:
            self._runs.append((self.rows - self._run_start, self._current))
        self._run_start = self.rows

    def add(self, hit: Hit, position: int | None = None, origin: Origin | None = None) -> None:
        """Add one object. `position`: its number in the message, by default the next one. `origin`: its place in the
        message, if its element was parsed separately."""
        row = self.rows
        self.rows += 1
        self._position += 1
        objects = self._objects
        objects.types.append(label_of(hit.table))
        objects.names.append(self._content(hit, row, origin))
        objects.parents.append(hit.parents)
        objects.lines.append(origin.line if origin else hit.start.sourceline)
        objects.positions.append(position or self._position)
        relations = origin.relations if origin else relations_of(hit) if hit.layout is not None else None
        if relations is not None and self._has_relations:
            objects.rare["related"][row] = list(relations.related.items())
            objects.rare["quality"][row] = relations.quality

    def _content(self, hit: Hit, row: int, origin: Origin | None) -> str | None:
        """Store the attributes of an object; return its full name."""
        element = hit.element
        if element is None:
            return hit.name
        name = ""
        struct = self.struct_of(hit.table)
        if self._long:
            self._objects.rare["attributes"][row] = texts_of(element, _NAME)
            self._objects.rare["xml"][row] = xml_text(element)
        elif struct is not None:
            try:
                if len(hit.table.fields) != len(struct.table.fields):
                    raise Odd
                struct.take(element, row)
            except Odd:
                struct.truncate(row)
                self._decoded(hit.table, element, struct, row, origin)
            name = _names_at(struct, row, 1)[0] or ""
        return hit.name or name or given_name(element, hit.table) or None

    def struct_of(self, table: ClassTable) -> Struct | None:
        if table not in self._by_table:
            fitting = (struct for struct in self.structs.values() if _fits(table, struct.table))
            self._by_table[table] = next(fitting, None)
        return self._by_table[table]

    def _decoded(
        self, table: ClassTable, element: etree._Element, struct: Struct, row: int, origin: Origin | None
    ) -> None:
        """Store an object the general way: decode it, store its values, and keep content that has no column."""
        before = origin.lines_before if origin else 0
        issues = Issues(paths=self.paths or ElementPaths(), lines_before=before)
        if origin and origin.path:
            issues.paths.start_at(element, "")
        decoded = decode_root(element, table.cls, issues, scopes=self._scopes)
        notes: list[str] = []
        struct.put(decoded, row, element, notes)
        if origin and origin.path and issues.found:
            above = origin.path()
            issues.found = [replace(found, path=f"{above}{found.path}") for found in issues.found]
        issues.found.extend(XmlWarning("column", note, line=before + (element.sourceline or 0)) for note in notes)
        self._objects.rare["warnings"][row] = [asdict(found) for found in issues.found]
        self._objects.rare["unknown"][row] = [*_unknown(decoded, ""), *_beyond(element, table, struct.table)]

    def reject(self, reject: Reject, values: Mapping[str, Any]) -> None:
        """Add the row of a rejected file, if there is a column for it; `values` has what else is known of it."""
        if self._corrupt is None:
            return
        self.begin({SOURCE_FILE.name: reject.file or None, self._corrupt: str(reject), **values})
        objects = self._objects
        for facts in (objects.types, objects.names, objects.parents, objects.positions):
            facts.append(None)
        objects.lines.append(reject.line)
        self.rows += 1

    def flush(self) -> pa.RecordBatch:
        """Return the rows so far as a batch; the message may continue afterwards."""
        self._end_run()
        arrays: dict[str, pa.Array] = {}
        for name, struct in self.structs.items():
            arrays.update({name: struct.finish(self.rows)} if name else struct.arrays(self.rows))
        for field in self.schema:
            column = self.of_object.get(field.name)
            if column is not None:
                arrays[field.name] = pa.array(column.value(self._objects), type=field.type)
            elif field.name not in arrays:
                own = self.own.get(field.name, field.name)
                arrays[field.name] = constant([(count, values.get(own)) for count, values in self._runs], field.type)
        self._runs = []
        self._objects = Objects()
        self.rows = self._run_start = 0
        return pa.RecordBatch.from_arrays([arrays[name] for name in self.schema.names], schema=self.schema)


def _fits(table: ClassTable, struct: ClassTable) -> bool:
    """Whether objects of a class fit the columns of another class: derived from it, or of the same object type."""
    return issubclass(table.cls, struct.cls) or (is_object(table) and label_of(table) == label_of(struct))


def _names_at(struct: Struct, first: int, count: int) -> list[str | None]:
    """Return the names in the last `count` rows, from row `first` on, as text; None for a row without a name."""
    names: list[str | None] = [None] * count
    name = struct.field("name")
    rdn = name.fields.get("rdn") if isinstance(name, Struct) else None
    if not isinstance(rdn, Many) or not isinstance(rdn.inner, Struct):
        return names
    kinds, values = rdn.inner.fields.get("type"), rdn.inner.fields.get("value")
    if not isinstance(kinds, Leaf) or not isinstance(values, Leaf):
        return names
    end = rdn.items
    for row, start in zip(reversed(rdn.rows), reversed(rdn.starts), strict=True):
        if row < first:
            break
        parts = [f"{_part(kinds.values, item)}={_part(values.values, item)}" for item in range(start, end)]
        names[row - first] = "/".join(parts) or None
        end = start
    return names


def _part(values: list[Any], item: int) -> str:
    return escaped((values[item] if item < len(values) else None) or "")


def _unknown(value: Any, path: str) -> Iterator[dict[str, str]]:
    """Yield the content of an object that has no field: kept elements, attributes and text."""
    if isinstance(value, list):
        for number, item in enumerate(value, start=1):
            yield from _unknown(item, path if number == 1 else f"{path}[{number}]")
    if not isinstance(value, XmlObject):
        return
    if value.extras is not None:
        for kept in value.extras.elements:
            yield {"path": _join(path, split_clark(kept.xml.tag)[1]), "content": kept.xml.xml.decode()}
        for name, text in value.extras.attributes.items():
            if not name.startswith(_XSI):
                yield {"path": _join(path, f"@{split_clark(name)[1]}"), "content": text}
        if value.extras.text:
            yield {"path": _join(path, "text()"), "content": value.extras.text}
    for field in value.__xml__.fields:
        yield from _unknown(getattr(value, field.name), _join(path, field.name))


def _beyond(element: etree._Element, table: ClassTable, columns: ClassTable) -> Iterator[dict[str, str]]:
    known = {field.name for field in columns.fields}
    slots = plan_of(table).slots
    for child in element:
        slot = slots.get(str(child.tag))
        if slot is not None and slot.name not in known:
            yield {"path": slot.name, "content": xml_text(child)}


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def constant(runs: list[tuple[int, Any]], kind: pa.DataType) -> pa.Array:
    """Return a column in which each value is repeated for a run of rows."""
    if 0 < len(runs) <= _FEW and not pa.types.is_nested(kind):
        chunks = [pa.repeat(_scalar(value, kind), count) for count, value in runs]
        return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    return pa.array([value for count, value in runs for _ in range(count)], type=kind)


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return a value as `pyarrow.scalar` does. That, and `pyarrow.array`, import pandas if it is installed: 0.3 s."""
    if value is None:
        return pa.nulls(1, kind)[0]
    if pa.types.is_string(kind):
        text = value.encode()
        return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(pack("<2i", 0, len(text))), pa.py_buffer(text)])[0]
    if pa.types.is_timestamp(kind):
        value = (value - _EPOCH) // dt.timedelta(microseconds=1)
    if pa.types.is_boolean(kind) or pa.types.is_int64(kind) or pa.types.is_timestamp(kind):
        return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(pack("<q", value))])[0]
    return pa.scalar(value, type=kind)
