"""Builders of columns: an element of a known class goes directly into Python lists, one for each column, then to Arrow.

Each builder is made once, from the table of a stub class. Rows are numbered. If the list of a builder is shorter than a
row number, the value of that row is null, so fields that a document leaves out cost nothing.

`take` accepts only what the schema allows. Anything else raises `Odd`: the row is then removed (`truncate`), the object
is decoded the general way (`xmlbind`), and its values are stored (`put`). So both ways give the same rows as
`xmlbind.decode`. The native core fills the same columns: `_native_rows` sends it these builders as data.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa
from lxml import etree

from mtosi_jms.namespaces import split_clark
from mtosi_jms.tables._leaves import (
    NIL,
    NILS,
    SKIP,
    Builder,
    Extensions,
    Leaf,
    Odd,
    Present,
    Xml,
    list_type,
)
from mtosi_jms.xmlbind import BLANKS, ClassTable, Field, Nil, SimpleType, XmlObject
from mtosi_jms.xmlbind.columns import OBJECT, Slot, plan_of


class Many:
    """A field that may occur several times: a list, which is empty if the element does not occur."""

    def __init__(self, inner: Builder) -> None:
        self.inner = inner
        self.type = list_type(inner.type)
        self.rows: list[int] = []
        self.starts: list[int] = []
        self.items = 0

    def next(self, row: int) -> int:
        """Add an item to a row, and return its number."""
        rows = self.rows
        if not rows or rows[-1] != row:
            rows.append(row)
            self.starts.append(self.items)
        self.items += 1
        return self.items - 1

    def take(self, element: etree._Element, row: int) -> None:
        self.inner.take(element, self.next(row))

    def put(self, value: Any, row: int, element: etree._Element | None, notes: list[str]) -> None:
        for item in value:
            at = self.next(row)
            if _is_given(item):
                self.inner.put(item, at, None, notes)

    def truncate(self, row: int) -> None:
        while self.rows and self.rows[-1] >= row:
            self.rows.pop()
            self.items = self.starts.pop()
        self.inner.truncate(self.items)

    def finish(self, rows: int) -> pa.Array:
        counts = [0] * rows
        ends = [*self.starts[1:], self.items]
        for row, start, end in zip(self.rows, self.starts, ends, strict=False):
            counts[row] = end - start
        offsets = pa.array(accumulate(counts, initial=0), type=pa.int32(), size=rows + 1)
        values = self.inner.finish(self.items)
        self.rows, self.starts, self.items = [], [], 0
        return pa.ListArray.from_arrays(offsets, values, type=self.type)


class Step(NamedTuple):
    """What is done with a child element: its order, whether it repeats, whether it is required, and its builder."""

    order: int
    many: bool
    required: int
    column: Any


class Struct:
    """An object: one builder for each of its fields.

    Attributes:
        fields: builders by column name, in schema order; open content is followed by its `..._raw`.
        present: the rows in which the object is present.
        text: the builder of simple content; None if the class has none.
        columns: the names of columns by field.
        places: builders by field, without fields that are not needed.
        steps: what is done with a child element, by Clark name.
        attributes, must: builders of attributes by Clark name, and the names of those that are required.
        required: number of required elements.
        is_ordered: whether the elements come in the order of their fields.
    """

    def __init__(self, table: ClassTable, *, nillable: bool = False, trail: tuple[ClassTable, ...] = ()) -> None:
        plan = plan_of(table)
        self.table = table
        self.fields: dict[str, Builder] = {}
        self.present: list[int] = []
        self.nillable = nillable
        self.is_ordered = plan.ordered and not table.abstract
        self.columns = column_names(table)
        self.places: dict[str, Builder] = {}
        self._plan = plan
        self._hidden: list[Builder] = []
        self._single: dict[str, str] = {}
        self.steps: dict[str, Step] = {}
        self.attributes: dict[str, Leaf] = {}
        self.must = [field.tag for field in table.fields if field.kind == "attribute" and field.min]
        self.text: Leaf | None = None
        self._wild: Many | None = None
        self.required = 0
        for field in table.fields:
            self._add(field, (*trail, table))
        self.type = self._type()

    def _type(self) -> pa.DataType:
        return pa.struct([pa.field(name, column.type) for name, column in self.fields.items()])

    def _add(self, field: Field, trail: tuple[ClassTable, ...]) -> None:
        if field.kind == "attribute":
            self.attributes[field.tag] = self._place(field.name, Leaf(self._plan.attributes[field.tag].target))
        elif field.kind == "text" and self._plan.text is not None:
            self.text = self._place(field.name, Leaf(self._plan.text.target))
        elif field.kind == "any" or (field.kind == "mixed" and self._plan.mixed is not None):
            self._wild = self._place(field.name, Many(Xml()))
        elif field.kind == "element":
            self._add_element(field.name, self._plan.slots[field.tag], trail)

    def _place(self, name: str, column: Any) -> Any:
        own = self.columns[name]
        self.places[name] = self.fields[own] = column
        if isinstance(column, Extensions):
            self.fields[f"{own}_raw"] = column.raw  # type: ignore[assignment]
        return column

    def _add_element(self, name: str, slot: Slot, trail: tuple[ClassTable, ...]) -> None:
        column = _element_column(slot, trail)
        self._place(name, Many(column) if slot.many else column)
        if not slot.many:
            self._single[name] = slot.field.tag
        required = int(bool(slot.field.min) and not slot.many)
        self.required += required
        step = Step(slot.order, slot.many, required, self.places[name])
        for tag, other in self._plan.slots.items():
            if other.name == name:
                self.steps[tag] = step

    def take(self, element: etree._Element, row: int) -> None:
        if (element.keys() or self.must) and not self._take_attributes(element, row):
            return
        self.present.append(row)
        if self.text is not None:
            if len(element):
                raise Odd
            self.text.add_text(element.text or "", row)
        elif self.is_ordered:
            self._take_children(element, row)
        else:
            raise Odd

    def _take_attributes(self, element: etree._Element, row: int) -> bool:
        """Store the attributes, or raise `Odd`; return false if the element is nil, so that it has no content."""
        if self.nillable and element.get(NIL) in NILS:
            if len(element.keys()) == 1 and not len(element) and not element.text:
                return False
            raise Odd
        for name, text in element.items():
            leaf = self.attributes.get(str(name))
            if leaf is None:
                raise Odd
            leaf.add(leaf.read_text(str(text)), row)
        if self.must and any(element.get(name) is None for name in self.must):
            raise Odd
        return True

    def _take_children(self, element: etree._Element, row: int) -> None:
        _refuse_text(element.text)
        last = -1
        found = 0
        for child in element:
            _refuse_text(child.tail)
            step = self.steps.get(str(child.tag))
            if step is None:
                self._take_wild(child, row)
                continue
            if step.order > last:
                last = step.order
                found += step.required
            elif not step.many or step.order != last:
                raise Odd
            step.column.take(child, row)
        if found != self.required:
            raise Odd

    def _take_wild(self, child: etree._Element, row: int) -> None:
        """Store a child that belongs to a wildcard. Raises Odd: none admits it, or its class is known."""
        wildcards = self._plan.wildcards
        if self._wild is None or len(wildcards) != 1 or self._plan.heads:
            raise Odd
        full = wildcards[0].limit is not None and bool(self._wild.rows) and self._wild.rows[-1] == row
        if full or not wildcards[0].admits(split_clark(str(child.tag))[0], self.table.module.namespace):
            raise Odd
        self._wild.take(child, row)

    def put(self, value: Any, row: int, element: etree._Element | None, notes: list[str]) -> None:
        if not isinstance(value, XmlObject):
            return
        self.present.append(row)
        for name, column in self.places.items():
            held = getattr(value, name)
            if _is_given(held):
                tag = self._single.get(name)
                column.put(held, row, None if element is None or tag is None else element.find(tag), notes)

    def truncate(self, row: int) -> None:
        while self.present and self.present[-1] >= row:
            self.present.pop()
        for column in self.places.values():
            column.truncate(row)

    def arrays(self, rows: int) -> dict[str, pa.Array]:
        """Return the columns by name, and empty the builders."""
        self.present = []
        for column in self._hidden:
            column.finish(rows)
        return {name: column.finish(rows) for name, column in self.fields.items()}

    def finish(self, rows: int) -> pa.Array:
        mask = None
        if len(self.present) != rows:
            absent = [True] * rows
            for row in self.present:
                absent[row] = False
            mask = pa.array(absent, type=pa.bool_())
        return pa.StructArray.from_arrays(list(self.arrays(rows).values()), fields=list(self.type), mask=mask)

    def narrow(self, names: Collection[str], hidden: Collection[str] = ()) -> None:
        """Leave out columns that are not in `names`; their elements are skipped.

        The columns in `hidden` are still filled, but not returned.
        """
        for name, column in list(self.places.items()):
            own = self.columns[name]
            shown = (own, f"{own}_raw") if isinstance(column, Extensions) else (own,)
            if name in hidden or not set(shown).isdisjoint(names):
                self._hidden.extend(self.fields[each] for each in shown if each not in names)
                continue
            del self.places[name]
            for tag, step in self.steps.items():
                if step.column is column:
                    self.steps[tag] = step._replace(column=SKIP)
        self.fields = {name: column for name, column in self.fields.items() if name in names}
        self.type = self._type()

    def field(self, name: str) -> Builder | None:
        return self.places.get(name)


def column_names(table: ClassTable) -> dict[str, str]:
    """Return the names of the columns of a class by field.

    Spark does not tell names apart that differ only by case, so the second of `x` and `X` becomes `X_2`.
    """
    taken: set[str] = set()
    names: dict[str, str] = {}
    for field in table.fields:
        name = field.name
        while name.casefold() in taken:
            name += "_2"
        taken.add(name.casefold())
        names[field.name] = name
    return names


def _is_given(value: Any) -> bool:
    return value is not None and not isinstance(value, Nil)


def _refuse_text(text: str | None) -> None:
    if text is not None and text.strip(BLANKS):
        raise Odd


def _element_column(slot: Slot, trail: tuple[ClassTable, ...]) -> Builder:
    if isinstance(slot.target, SimpleType):
        return Leaf(slot.target, nillable=slot.field.nillable)
    if slot.kind != OBJECT or slot.field.head or slot.target in trail:
        return Xml()
    plan = plan_of(slot.target)
    kinds = {field.kind for field in slot.target.fields}
    if plan.mixed is not None:
        return Xml()
    if kinds == {"any"}:
        return Extensions()
    if not kinds:
        return Present()
    return Struct(slot.target, nillable=slot.field.nillable, trail=trail)
