"""Shapes made from class tables: what the text of a plain object looks like, and where its values stand in it.

A class becomes regular expressions that match its elements exactly as the schema orders them, without attributes.
Every quantifier is possessive, so that a text is walked once whether it matches or not. Whatever a pattern does not
foresee does not match, and is left to the tree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from mtosi_jms.namespaces import split_clark
from mtosi_jms.xmlbind._fast import is_plain
from mtosi_jms.xmlbind._plan import LEAF, OBJECT, STRING, Plan, Slot, plan_of
from mtosi_jms.xmlbind._table import ClassTable

BLANK: Final = "[ \t\n]*+"

TEXT: Final = "text"
CONTENT: Final = "content"
INSIDE: Final = "inside"
ISLAND: Final = "island"

_GROUPS_OF_PIECE: Final = 200
_GROUPS_INSIDE: Final = 60
_GROUPS_OF_ITEM: Final = 16
_RUNS_IN_RUNS: Final = 2
_DEEPEST: Final = 60
_CAPTURE: Final = re.compile(r"(?<!\\)\((?!\?)")


class Unable(Exception):
    """A class or field that no pattern can stand for."""


@dataclass(slots=True)
class Cell:
    """Where the value of a field stands.

    Attributes:
        slot: the field.
        kind: TEXT, of a simple type; CONTENT, an object of simple content; INSIDE, an object within the pattern;
            ISLAND, the element itself, for a tree.
        at: its first group. That of a list holds all its elements; that of an object tells whether it is there, and
            those of its fields follow; they begin there where the object is required.
        inner: the shape of an object, or of one object of a list.
        item: one element of a list of texts or of objects; its groups begin at 0.
        tag: the name in the tags of the element, as a pattern; empty for an island.
    """

    slot: Slot
    kind: str
    at: int
    inner: Shape | None = None
    item: re.Pattern[str] | None = None
    tag: str = ""

    @property
    def required(self) -> bool:
        """Whether the element has to be there."""
        return bool(self.slot.field.min)


@dataclass(slots=True)
class Shape:
    """The text of an object, or of some neighbouring fields of it.

    Attributes:
        table: the table of the class.
        pattern: its regular expression, blanks after the last tag included.
        groups: how many groups that has.
        cells: the fields, in the order of the schema.
        runs: how deep lists stand in lists.
        tag: the name in the tags around all that, as a pattern; empty where they are no part of it.
    """

    table: ClassTable
    pattern: str = ""
    groups: int = 0
    cells: list[Cell] = field(default_factory=list)
    runs: int = 0
    tag: str = ""

    def add(self, pattern: str, cell: Cell, groups: int) -> None:
        """Append a field whose groups are counted from 0."""
        cell.at = self.groups
        self.pattern += pattern
        self.groups += groups
        self.cells.append(cell)
        inside = cell.inner.runs if cell.inner is not None else 0
        self.runs = max(self.runs, inside + (cell.slot.many and cell.kind != ISLAND))


@dataclass(slots=True)
class Child:
    """A field whose elements are found one by one, since they are large or many."""

    slot: Slot
    layout: Layout


@dataclass(slots=True)
class Steps:
    """The text of an object too large for one pattern: shapes of its fields, and children between them."""

    table: ClassTable
    steps: list[Shape | Child]


Layout: TypeAlias = Shape | Steps
_Found: TypeAlias = tuple[str, Cell, int]


class ScanCompiler:
    """Makes the layouts of documents that name their namespaces in one way.

    Args:
        names: the namespaces in scope, by prefix.
        text: a document; where a namespace has several prefixes, one that it uses is meant.
    """

    def __init__(self, names: Mapping[str | None, str], text: str) -> None:
        self._prefixes = {} if None in names else {"": ""}
        for prefix, namespace in names.items():
            if namespace not in self._prefixes or (prefix and f"<{prefix}:" in text):
                self._prefixes[namespace] = prefix or ""
        self._made: dict[tuple[str, ClassTable], Layout | None] = {}
        self._open: list[ClassTable] = []

    def content(self, table: ClassTable) -> Layout:
        """The layout of what stands inside an element of a class.

        Raises:
            Unable: the class is not plain.
        """
        return self._compose("", table)

    def _element(self, name: str, table: ClassTable) -> Layout:
        """The layout of the elements of a name and a class; large ones are made once."""
        key = (name, table)
        if key not in self._made:
            self._made[key] = None
            try:
                made = self._compose(name, table)
            except Unable:
                made = None
            if isinstance(made, Shape) and made.groups <= _GROUPS_INSIDE:
                del self._made[key]
                return made
            self._made[key] = made
        layout = self._made[key]
        if layout is None:
            raise Unable
        return layout

    def _compose(self, name: str, table: ClassTable) -> Layout:
        plan = plan_of(table)
        if not is_plain(plan) or not _able(table) or table in self._open or len(self._open) > _DEEPEST:
            raise Unable
        self._open.append(table)
        try:
            fields = [made for slot in _own_slots(plan) if (made := self._field(slot)) is not None]
        finally:
            self._open.pop()
        known = {(made.slot if isinstance(made, Child) else made[1].slot).name for made in fields}
        if set(plan.required) - known:
            raise Unable
        return _layout(table, fields, name)

    def _name(self, tag: str) -> str | None:
        """The name that stands in the tags of an element, as a pattern; None where it cannot occur."""
        namespace, local = split_clark(tag)
        prefix = self._prefixes.get(namespace)
        return None if prefix is None else re.escape(f"{prefix}:{local}" if prefix else local)

    def _field(self, slot: Slot) -> _Found | Child | None:
        """What stands for a field; None where its elements cannot occur."""
        name = self._name(slot.field.tag)
        if name is None:
            return None
        if slot.kind in (STRING, LEAF):
            return _leaf(name, slot, TEXT)
        if slot.kind == OBJECT and _able(slot.target):
            if plan_of(slot.target).text is not None:
                return _leaf(name, slot, CONTENT)
            try:
                return self._inner(name, slot)
            except Unable:
                pass
        # Found by the first end tag of its name, which the parser then confirms or denies.
        one = rf"(?><{name}(?:[ \t\n][^<>]*+)?+(?<!/)>[\s\S]*?</{name}>){BLANK}"
        return _repeated(one, slot) if slot.many else _optional(f"({one})", slot), Cell(slot, ISLAND, 0), 1

    def _inner(self, name: str, slot: Slot) -> _Found | Child:
        """A child object: within the pattern where it is small.

        Raises:
            Unable: no pattern can stand for it.
        """
        made = self._element(name, slot.target)
        if isinstance(made, Steps):
            return Child(slot, made)
        if slot.many:
            if made.groups > _GROUPS_OF_ITEM or made.runs >= _RUNS_IN_RUNS:
                return Child(slot, made)
            return _repeated(made.pattern, slot), Cell(slot, INSIDE, 0, made, re.compile(made.pattern)), 1
        if made.groups > _GROUPS_INSIDE:
            return Child(slot, made)
        cell = Cell(slot, INSIDE, 0, made)
        return (
            (made.pattern, cell, made.groups) if cell.required else (f"(?:(){made.pattern})?+", cell, made.groups + 1)
        )


def _layout(table: ClassTable, fields: list[_Found | Child], name: str) -> Layout:
    """Fields as shapes, each as large as it may be, and the children between them."""
    last = Shape(table, f"<{name}>{BLANK}" if name else BLANK, tag=name)
    steps: list[Shape | Child] = [last]
    for made in fields:
        if isinstance(made, Child):
            last = Shape(table)
            steps += (made, last)
            continue
        if last.groups + made[2] > _GROUPS_OF_PIECE:
            last = Shape(table)
            steps.append(last)
        last.add(*made)
    last.pattern += f"</{name}>{BLANK}" if name else ""
    return last if len(steps) == 1 else Steps(table, steps)


def _leaf(name: str, slot: Slot, kind: str) -> _Found:
    """An element of text, or a run of them."""
    one = f"<{name}>([^<]*+)</{name}>{BLANK}"
    if slot.many:
        return _repeated(one, slot), Cell(slot, kind, 0, item=re.compile(one), tag=name), 1
    return _optional(one, slot), Cell(slot, kind, 0, tag=name), 1


def _optional(one: str, slot: Slot) -> str:
    return one if slot.field.min else f"(?:{one})?+"


def _repeated(one: str, slot: Slot) -> str:
    """All elements of a list as one group."""
    return f"((?:{without_groups(one)}){'++' if slot.field.min else '*+'})"


def without_groups(pattern: str) -> str:
    """A pattern that finds the same and keeps nothing."""
    return _CAPTURE.sub("(?:", pattern)


def _able(table: ClassTable) -> bool:
    """Whether an element of the class may stand without attributes."""
    return not table.abstract and not any(slot.field.min for slot in plan_of(table).attributes.values())


def _own_slots(plan: Plan) -> list[Slot]:
    """The fields of a plan in order, without the members of substitution groups."""
    return sorted((slot for tag, slot in plan.slots.items() if slot.field.tag == tag), key=lambda slot: slot.order)
