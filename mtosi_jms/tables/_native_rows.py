"""Rows of messages, made by the native core. Python makes those that the core leaves out; the order stays the same.

This module describes the columns to the native core: it sends the builders of `_structs` and `_leaves` as data, and the
routes of `inventory` for each message. An object or message that the core leaves to Python is *odd*. See
docs/design/native.md.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from operator import itemgetter
from typing import IO, Any, Final

import pyarrow as pa

from mtosi_jms.errors import XmlError
from mtosi_jms.inventory import (
    Hit,
    Relations,
    Route,
    Routes,
    actual_table,
    is_object,
    is_release1,
    label_of,
    name_tag,
    quality_of,
)
from mtosi_jms.namespaces import split_clark
from mtosi_jms.tables._leaves import SKIP, Builder, Extensions, Leaf, Odd, Present, list_type
from mtosi_jms.tables._structs import Many, Step, Struct
from mtosi_jms.tables.columns import NOTES, RELATIONS
from mtosi_jms.tables.envelope import EnvelopeFacts, envelope_facts
from mtosi_jms.tables.rows import Origin, RowBuilder, constant
from mtosi_jms.xmlbind import DEFAULT_LIMITS, ClassTable, ListType, Scopes, SimpleType, parse_xml
from mtosi_jms.xmlbind.columns import native_bounds, native_module

_BOUNDS: Final = native_bounds(DEFAULT_LIMITS)
_MOST_OCTETS: Final = 64 * 1024 * 1024
_PIECE: Final = 1024 * 1024

# The columns of facts about objects, numbered as in `rows.rs`; _PARENT is the column of the items of _PARENTS.
_LABEL, _NAME, _PARENTS, _PARENT, _LINE, _POSITION, _IS_NODE = range(7)
_FACTS: Final = {
    "object_type": (_LABEL, pa.string()),
    "name_text": (_NAME, pa.string()),
    "parent_names": (_PARENTS, list_type(pa.string())),
    "source_line": (_LINE, pa.int64()),
    "source_position": (_POSITION, pa.int64()),
}
_TO_NOTHING, _TO_LEAF, _TO_OBJECT, _TO_MARK, _TO_OPEN, _TO_ODD = range(6)
_PASS, _OBJECT, _ENTER, _SHORT, _ATTRIBUTES, _REFERENCES, _QUALITY = range(7)
_PLAIN, _DATE, _MOMENT, _INTEGER, _BY_PYTHON = range(5)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


class _Plan:
    """The builders of columns as data; `rows.rs` describes the form."""

    def __init__(self) -> None:
        self.columns: list[tuple[str, list[int]]] = []
        self.leaves: list[Leaf] = []
        self._leaf_data: list[dict[str, Any]] = []
        self._classes: list[dict[str, Any]] = []
        self._opens: list[list[int]] = []
        self.ids: dict[int, int] = {}
        self.class_ids: dict[int, int] = {}
        self._targets: dict[int, tuple[int, int]] = {}
        for kind, *of in ("text",), ("text",), ("list", 3), ("text",), ("fixed", 8), ("fixed", 8), ("fixed", 1):
            self._column(str(kind), [int(number) for number in of])

    def data(self) -> dict[str, Any]:
        """Return what the core needs to fill the columns: leaves, classes and open content."""
        return {"leaves": self._leaf_data, "classes": self._classes, "opens": self._opens}

    def _column(self, kind: str, of: list[int]) -> int:
        self.columns.append((kind, of))
        return len(self.columns) - 1

    def add(self, builder: Builder) -> int:
        """Return the number of the column of a builder; a new builder is described first."""
        known = self.ids.get(id(builder))
        if known is None:
            known = self.ids[id(builder)] = self._described(builder)
        return known

    def _described(self, builder: Any) -> int:
        target, at = _TO_ODD, 0
        if isinstance(builder, Many):
            made = self._column("list", [self.add(builder.inner)])
            target, at = self._targets[id(builder.inner)]
        elif isinstance(builder, Struct):
            made = self._struct(builder)
            target, at = _TO_OBJECT, self.class_ids[id(builder)]
        elif isinstance(builder, Extensions):
            key, value = self._column("text", []), self._column("text", [])
            entry = self._column("struct", [key, value])
            made = self._column("map", [entry])
            raw = self.ids[id(builder.raw)] = self._column("text", [])
            target, at = _TO_OPEN, len(self._opens)
            self._opens.append([made, entry, key, value, raw])
        else:
            made = self._column(*_layout(builder.type, self))
            if isinstance(builder, Present):
                target, at = _TO_MARK, made
            elif isinstance(builder, Leaf) and not pa.types.is_nested(builder.type):
                target, at = _TO_LEAF, self._leaf(builder, made)
        self._targets[id(builder)] = target, at
        return made

    def _leaf(self, leaf: Leaf, column: int) -> int:
        form, least, most = _form(leaf)
        data = {"column": column, "form": form, "least": least, "most": most, "nillable": leaf.nillable}
        self._leaf_data.append(data)
        self.leaves.append(leaf)
        return len(self.leaves) - 1

    def _struct(self, struct: Struct) -> int:
        for builder in struct.places.values():
            self.add(builder)
        made = self._column("struct", [self.add(builder) for builder in struct.fields.values()])
        attributes = []
        for tag, leaf in struct.attributes.items():
            self.add(leaf)
            attributes.append((split_clark(tag), self._targets[id(leaf)], tag in struct.must))
        text = None
        if struct.text is not None:
            self.add(struct.text)
            text = self._targets[id(struct.text)]
        leaves = [target for _, target, _ in attributes] + ([text] if text else [])
        is_odd = (not struct.is_ordered and text is None) or any(target != _TO_LEAF for target, _ in leaves)
        data = {
            "column": made,
            "is_odd": is_odd,
            "nillable": struct.nillable,
            "text": text[1] if text else None,
            "required": struct.required,
            "names": [split_clark(tag) for tag in struct.steps],
            "steps": [self._step(step) for step in struct.steps.values()],
            "attributes": [(name, at, must) for name, (_, at), must in attributes],
        }
        self.class_ids[id(struct)] = len(self._classes)
        self._classes.append(data)
        return made

    def _step(self, step: Step) -> dict[str, Any]:
        target, at = (_TO_NOTHING, 0) if step.column is SKIP else self._targets[id(step.column)]
        return {
            "order": step.order,
            "many": step.many,
            "list": self.ids[id(step.column)] if isinstance(step.column, Many) else None,
            "required": bool(step.required),
            "target": target,
            "at": at,
        }


def _layout(kind: pa.DataType, plan: _Plan) -> tuple[str, list[int]]:
    if pa.types.is_list(kind):
        return "map", [plan._column(*_layout(kind.value_type, plan))]
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return "text", []
    return "fixed", [1 if pa.types.is_boolean(kind) else kind.bit_width // 8]


def _form(leaf: Leaf) -> tuple[int, int, int]:
    """Return how the core turns texts into the values of a column, and their bounds; `_BY_PYTHON` if Python does it."""
    simple: SimpleType = leaf.simple
    if simple.plain:
        return _PLAIN, 0, 0
    if isinstance(simple, ListType) or simple.canonical is None or pa.types.is_string(leaf.type):
        return _BY_PYTHON, 0, 0
    name, least, most = simple.canonical
    return {"date": _DATE, "dateTime": _MOMENT}.get(name, _INTEGER), least, most


def _number(value: Any) -> Any:
    """Return a value of a column in the form of the native core: text, octets, or a number as an integer."""
    if isinstance(value, dt.datetime):
        return (value - _EPOCH) // _MICROSECOND
    if isinstance(value, dt.date):
        return value.toordinal() - _EPOCH.toordinal()
    if isinstance(value, float):
        return int.from_bytes(struct.pack("<d", value), "little")
    if isinstance(value, Decimal):
        sign, digits, _ = value.as_tuple()
        return (-1 if sign else 1) * int("".join(map(str, digits)))
    return int(value) if isinstance(value, bool) else value


class _Bridge:
    """Answers the questions of the native core. `kinds`, `references`: classes of objects and names of lists of
    references that the core knows, by their numbers. `nested`: the body elements so far that have the nested layout."""

    def __init__(self, plan: _Plan, builder: RowBuilder, routes: Routes) -> None:
        self.kinds: list[ClassTable] = []
        self.references: list[str] = []
        self.nested: set[str] = set()
        self._plan = plan
        self._builder = builder
        self._routes = routes
        self._open = Extensions()

    def store(self, number: int, text: str) -> Any:
        """Return the value of a text in the column of a leaf; None if the text is odd."""
        leaf = self._plan.leaves[number]
        try:
            value = leaf.codes.get(text) if leaf.codes else None
            return _number(leaf.read_text(text) if value is None else value)
        except Odd:
            return None

    def open(self, document: bytes) -> tuple[list[tuple[str, str]], str] | None:
        """Return the texts of open content and its XML; None if it is odd."""
        try:
            self._open.take(parse_xml(document)[0], 0)
        except (Odd, XmlError):
            self._open.truncate(0)
            return None
        found = self._open.values[0], self._open.raw.values[0]
        self._open.truncate(0)
        return found

    def body(self, tag: str) -> tuple[list[Any] | None, list[Any]]:
        """Return the routes of a message and the new kinds of objects in them; the first route is that of `tag`.

        The routes are None if Python has to read the message.
        """
        table, first = self._routes.for_tag(tag)
        known = len(self.kinds)
        if table is None or self._routes.wanted(table) or is_object(table) or is_release1(tag):
            return None, []
        routes = [first]
        for route in routes:  # the loop adds routes to the list
            for step in route.steps.values():
                if step not in routes:
                    routes.append(step)
        if any(route.node is not None for route in routes):
            self.nested.add(tag)
        described = [self._route(route, routes) for route in routes]
        return described, [self._kind(table) for table in self.kinds[known:]]

    def _route(self, route: Route, routes: list[Route]) -> tuple[Any, ...]:
        actions = dict.fromkeys(route.known, (_PASS, 0))
        node = route.node
        if node is not None:
            actions |= {node.name_tag: (_SHORT, 0), node.attrs_tag: (_ATTRIBUTES, 0), node.quality_tag: (_QUALITY, 0)}
            for tag, name in node.references.items():
                actions[tag] = _REFERENCES, _index(self.references, name)
        actions |= {tag: (_OBJECT, self._number_of(table)) for tag, table in route.targets.items()}
        actions |= {tag: (_ENTER, routes.index(step)) for tag, step in route.steps.items()}
        actions.pop("", None)
        held = (node.rdn_type, self._number_of(node.attrs)) if node is not None else None
        return held, [(split_clark(tag), *action) for tag, action in actions.items()]

    def _number_of(self, table: ClassTable) -> int:
        return _index(self.kinds, table)

    def _kind(self, table: ClassTable) -> dict[str, Any]:
        columns = self._builder.struct_of(table)
        is_whole = columns is not None and len(table.fields) == len(columns.table.fields)
        number = self._plan.class_ids[id(columns)] if is_whole else None
        tag = name_tag(table)
        parts = None
        name = columns.field("name") if columns is not None else None
        rdn = name.places.get("rdn") if isinstance(name, Struct) else None
        if isinstance(rdn, Many) and isinstance(rdn.inner, Struct):
            kind, value = rdn.inner.places.get("type"), rdn.inner.places.get("value")
            if isinstance(kind, Leaf) and isinstance(value, Leaf):
                parts = tuple(self._plan.ids[id(builder)] for builder in (rdn, kind, value))
        return {
            "label": label_of(table),
            "class": number,
            "is_wanted": self._routes.wanted(table),
            "name": split_clark(tag) if tag else None,
            "parts": parts,
        }


def _index(items: list[Any], item: Any) -> int:
    if item not in items:
        items.append(item)
    return items.index(item)


class NativeRows:
    """Rows of messages in document order, made by the native core where possible.

    Rows that Python adds to the builder keep their place among them.
    """

    def __init__(self, module: Any, builder: RowBuilder, routes: Routes) -> None:
        self._module = module
        self._builder = builder
        self._routes = routes
        self._plan = _Plan()
        for columns in builder.structs.values():
            self._plan.add(columns)
        self._renew()
        self._forget()

    def _renew(self) -> None:
        """Start with a new core, which has learnt nothing yet."""
        self._bridge = _Bridge(self._plan, self._builder, self._routes)
        self._core = self._module.Rows(self._bridge, self._plan.columns, self._plan.data())
        self._is_worn = False

    def _forget(self) -> None:
        self._made = 0  # rows of the core
        self._octets = 0
        self._python = 0  # rows of the builder that are in `_order`
        self._order: list[tuple[bool, int, int]] = []  # whether by Python, the first row, the row after the last
        self._count = 0
        self._runs: list[tuple[int, Mapping[str, Any]]] = []
        self._related: dict[int, dict[str, list[str]]] = {}
        self._quality: dict[int, dict[str, Any]] = {}

    @property
    def rows(self) -> int:
        """The number of rows that wait for the next batch."""
        return self._count + self._builder.rows - self._python

    @property
    def is_large(self) -> bool:
        """Whether the rows need so much memory that a batch should be taken."""
        return self._octets >= _MOST_OCTETS

    def _place(self, by_python: bool, first: int, end: int) -> None:
        if end <= first:
            return
        if self._order and self._order[-1][0] == by_python and self._order[-1][2] == first:
            self._order[-1] = by_python, self._order[-1][1], end
        else:
            self._order.append((by_python, first, end))
        self._count += end - first

    def _follow(self) -> None:
        self._place(True, self._python, self._builder.rows)
        self._python = self._builder.rows

    def _read(self, data: bytes, is_first: bool, is_last: bool, is_dry: bool) -> tuple[int, dict[str, Any] | None]:
        """Let the core read a piece of a message; return its first row, and what the core found."""
        self._follow()
        first = self._made
        try:
            found = self._core.read(data, is_first, is_last, is_dry, _BOUNDS)
        finally:
            self._made, self._octets, self._is_worn = self._core.size()
            self._runs.append((self._made - first, {}))
        return first, found

    def add(self, data: bytes, values: Callable[[EnvelopeFacts], Mapping[str, Any] | None]) -> bool:
        """Add the objects of a message; false if it has to be read from its tree.

        `values` gives what is the same in all its rows, from the facts about it; None if it has no rows.
        """
        first, found = self._read(data, True, True, False)
        facts = _facts(data, found["content"]) if found is not None and found["content"] else None
        same = values(facts) if facts is not None else None
        if found is not None and same is not None:
            self._take(data, found, first, same, whole=True)
        return facts is not None

    def is_sound(self, stream: IO[bytes]) -> bool:
        """Whether the core is sure that a message is well-formed to its end."""
        return all(count is not None for count in self._pieces(stream, {}, None))

    def stream(self, stream: IO[bytes], body_tag: str, same: Mapping[str, Any]) -> Iterator[int | None]:
        """Add the objects of a message piece by piece. It pauses after each piece, so that full batches can be taken.

        Yields the number of objects so far. A None at the end means that Python has to read the rest. It always has to
        read a message in the nested layout, because the facts of a node come after the objects inside it.
        """
        self._builder.begin(same)
        return self._pieces(stream, same, body_tag)

    def _pieces(self, stream: IO[bytes], same: Mapping[str, Any], body_tag: str | None) -> Iterator[int | None]:
        data, size, count, is_first, is_last = b"", _PIECE, 0, True, False
        while not is_last:
            more = stream.read(size)
            data += more
            is_last = not more
            end = len(data) if is_last else data.rfind(b">") + 1  # a cut here splits no character and no start tag
            first, found = self._read(data[:end], is_first, is_last, body_tag is None)
            if found is None or body_tag in self._bridge.nested:
                yield None
                return
            count += self._take(data, found, first, same, whole=False)
            yield count
            done = found["done"]
            is_first = is_first and not done
            size = _PIECE if done else 2 * size
            data = data[done:]
            if len(data) > _MOST_OCTETS:
                yield None
                return

    def _take(self, data: bytes, found: dict[str, Any], first: int, same: Mapping[str, Any], *, whole: bool) -> int:
        """Add the rows of a piece to the order, odd ones by Python among them; return their number."""
        self._runs[-1] = self._made - first, same
        for row, key, names in found["related"]:
            self._related.setdefault(row, {}).setdefault(self._bridge.references[key], []).extend(names)
        for row, parts in found["quality"]:
            self._quality[row] = quality_of(parts)
        if found["odd"] and whole:
            self._builder.begin(same)
        before = self._count
        gaps: list[tuple[int, int, Any]] = [(odd["row"], odd["row"] + 1, odd) for odd in found["odd"]]
        gaps += [(start, end, None) for start, end in found["dropped"]]
        for start, end, odd in sorted(gaps, key=itemgetter(0)):
            self._place(False, first, start)
            first = end
            if odd is not None:
                self._add_odd(data, odd, whole=whole)
                self._follow()
        self._place(False, first, self._made)
        return self._count - before

    def _add_odd(self, data: bytes, odd: dict[str, Any], *, whole: bool) -> None:
        start, end = odd["octets"]
        before, after = odd["around"]
        element = parse_xml(before + data[start:end] + after)
        for _ in range(odd["depth"]):
            element = element[0]
        declared = self._bridge.kinds[odd["kind"]]
        hit = Hit(actual_table(element, declared, Scopes()), element, element)
        relations = None
        if odd["node"] is not None:
            name, hit.parents = odd["node"]
            hit.name = name or None
            relations = Relations(self._related.get(odd["row"], {}), self._quality.get(odd["row"]))
        path = (lambda: str(self._module.paths(data, [start])[0])) if whole else None
        self._builder.add(hit, odd["position"], Origin(odd["line"], odd["lines_before"], relations, path))

    def flush(self) -> pa.RecordBatch:
        """Return the rows so far as a batch."""
        self._follow()
        if not self._made:
            self._forget()
            return self._builder.flush()
        native = self._core_rows()
        order, made = self._order, self._made
        python = self._builder.flush() if self._builder.rows else native.slice(0, 0)
        self._forget()
        if self._is_worn:
            self._renew()
        if order == [(False, 0, made)]:
            return native
        rows = pa.concat_arrays(
            [pa.array(range(first + by * made, end + by * made), type=pa.int64()) for by, first, end in order]
        )
        joined = pa.Table.from_batches([native, python]).take(rows).combine_chunks()
        return joined.to_batches()[0] if joined.num_rows else native.slice(0, 0)

    def _core_rows(self) -> pa.RecordBatch:
        """Return the rows of the core, including rows that are not in the order."""
        builder, plan = self._builder, self._plan
        wanted: dict[str, tuple[int, pa.DataType]] = {}
        for name, columns in builder.structs.items():
            if name:
                wanted[name] = plan.ids[id(columns)], columns.type
            else:
                wanted |= {own: (plan.ids[id(field)], field.type) for own, field in columns.fields.items()}
        shown = {column.name: name for name, column in builder.of_object.items()}
        wanted |= {shown[name]: fact for name, fact in _FACTS.items() if name in shown}
        wanted = {name: wanted[name] for name in builder.schema.names if name in wanted}
        taken = self._core.take([_IS_NODE, *(number for number, _ in wanted.values())])
        is_node = _array(pa.bool_(), taken[0])
        arrays = {name: _array(kind, held) for (name, (_, kind)), held in zip(wanted.items(), taken[1:], strict=True)}
        for column in (*RELATIONS, *NOTES):
            if column.name in shown:
                arrays[shown[column.name]] = self._rare(column.name, column.type, is_node)
        for field in builder.schema:
            if field.name not in arrays:
                own = builder.own.get(field.name, field.name)
                arrays[field.name] = constant([(count, values.get(own)) for count, values in self._runs], field.type)
        return pa.RecordBatch.from_arrays([arrays[name] for name in builder.schema.names], schema=builder.schema)

    def _rare(self, name: str, kind: pa.DataType, is_node: pa.BooleanArray) -> pa.Array:
        held: Mapping[int, Any] = self._quality if name == "quality" else {}
        if name == "related":
            held = {row: list(related.items()) for row, related in self._related.items()}
        if held:
            blank: Any = [] if name == "related" else None
            values = [blank if node else None for node in is_node.to_pylist()]
            for row, value in held.items():
                values[row] = value
            return pa.array(values, type=kind)
        if name == "quality":
            return pa.nulls(self._made, kind)
        valid = is_node.buffers()[1] if name == "related" else None
        offsets = pa.py_buffer(bytes(4 * self._made + 4))
        inside = pa.nulls(0, kind.value_type if pa.types.is_list(kind) else _entries(kind))  # pa.array imports pandas
        return pa.Array.from_buffers(kind, self._made, [valid, offsets], children=[inside])


def _entries(kind: pa.DataType) -> pa.DataType:
    return pa.struct([kind.key_field, kind.item_field])


def _facts(data: bytes, content: tuple[int, int]) -> EnvelopeFacts | None:
    """Return the facts about an envelope, read without the content of its first body element; None if it is wrong."""
    start, end = content
    try:
        return envelope_facts(parse_xml(data[:start] + data[end:]))
    except XmlError:
        return None


def _array(kind: pa.DataType, taken: tuple[int, int, list[bytes | None], list[Any]]) -> pa.Array:
    """Return an array from the buffers that the core gave for a column."""
    length, nulls, octets, inside = taken
    buffers = [None if part is None else pa.py_buffer(part) for part in octets]
    if pa.types.is_struct(kind):
        children = [_array(field.type, held) for field, held in zip(kind, inside, strict=True)]
    elif pa.types.is_map(kind):
        children = [_array(_entries(kind), inside[0])]
    else:
        children = [_array(kind.value_type, held) for held in inside]
    return pa.Array.from_buffers(kind, length, buffers, nulls, 0, children)


def native_rows(builder: RowBuilder, routes: Routes) -> NativeRows | None:
    """Return a maker of native rows; None if the Python core is used."""
    module = native_module()
    return NativeRows(module, builder, routes) if module is not None else None
