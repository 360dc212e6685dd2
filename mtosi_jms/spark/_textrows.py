"""Objects of flat list responses straight from the text of a message into columns, a message at a time.

The patterns are those that `xmlbind` decodes by. Their groups, column by column, go into the same builders as the
elements of a tree do, many times as fast. A message that does not match from end to end is read from its tree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from mtosi_jms.errors import XmlError
from mtosi_jms.inventory import Routes, is_object, node_of
from mtosi_jms.spark._envelope import EnvelopeFacts, envelope_facts, soap_body
from mtosi_jms.spark._leaves import Builder, Leaf, Odd, Present
from mtosi_jms.spark._structs import Many, Struct
from mtosi_jms.xmlbind import DEFAULT_LIMITS, find_element
from mtosi_jms.xmlbind.columns import (
    ISLAND,
    OBJECT,
    STRING,
    TEXT,
    Cell,
    Child,
    Islands,
    Layout,
    Recipes,
    Shape,
    Steps,
    Unable,
    cut_body,
    is_shell,
    matched,
    parsed_shell,
    unescaped,
)

_MOST_KNOWN: Final = 4096
_LONGEST_KNOWN: Final = 64

Groups = Sequence[Sequence[str | None]]


class TextHits(NamedTuple):
    """Objects of one class that stand one after the other.

    `rows` are the groups of each, `lines` the lines that they begin on, from 0 at the content's beginning. `islands`
    reads what no pattern describes.
    """

    shape: Shape
    islands: Islands
    rows: list[tuple[str | None, ...]]
    lines: list[int]


class TextMessage(NamedTuple):
    """A message that was read from its text.

    `hits` are in document order, `line` is that of the content's beginning, from 1, and `escapes` says whether texts
    may hold references.
    """

    facts: EnvelopeFacts
    hits: list[TextHits]
    line: int
    escapes: bool


class TextReader:
    """Reads messages whose text matches the patterns of their class."""

    def __init__(self, routes: Routes) -> None:
        """Prepare to read the objects that the routes want."""
        self._recipes = Recipes(lambda layout, islands: Finder(layout, islands, routes))

    def read(self, data: bytes) -> TextMessage | None:
        """The objects of a message; None where it has to be read from its tree."""
        cut = cut_body(data, DEFAULT_LIMITS)
        root = parsed_shell(cut, DEFAULT_LIMITS) if cut is not None else None
        if cut is None or root is None:
            return None
        try:
            facts = envelope_facts(root)
        except XmlError:
            return None
        body = soap_body(root)
        cls = find_element(facts.body_tag)
        if cls is None or body is None or len(body) != 1 or not is_shell(body[0]):
            return None
        recipe = self._recipes.of(cls.__xml__, body[0].nsmap)
        size = len(cut.content)
        finder = recipe.get(cut.content, 0, size)
        found = recipe.note(matched(finder.find, cut.content, 0, size)) if finder is not None else None
        return None if found is None else TextMessage(facts, found, cut.line, "&" in cut.content)


class _Walker(Protocol):
    """Walks over what stands in a text, and finds objects there."""

    def walk(self, text: str, at: int, found: list[TextHits]) -> int | None:
        """The end of what stands at a position, None where it does not match; `found` takes the objects in it.

        Raises:
            Odd: the message has to be read from its tree.
        """


class _Pattern:
    """Passes over a shape outside of objects; open content, in which anything may stand, is odd."""

    def __init__(self, shape: Shape) -> None:
        self._match = re.compile(shape.pattern).match
        self._islands = [group for cell in shape.cells for group in _open_groups(cell)]

    def walk(self, text: str, at: int, found: list[TextHits]) -> int | None:
        match = self._match(text, at)
        if match is None:
            return None
        if any(match.group(island + 1) for island in self._islands):
            raise Odd
        return match.end()


class _Wanted:
    """Takes objects of one shape that stand one after the other."""

    def __init__(self, shape: Shape, islands: Islands) -> None:
        self._shape = shape
        self._match = re.compile(shape.pattern).match
        self._islands = islands

    def walk(self, text: str, at: int, found: list[TextHits]) -> int | None:
        match = self._match
        hits = TextHits(self._shape, self._islands, [], [])
        rows, lines = hits.rows.append, hits.lines.append
        line = text.count("\n", 0, at)
        while one := match(text, at):
            end = one.end()
            rows(one.groups())
            lines(line)
            line += text.count("\n", at, end)
            at = end
        if not hits.rows:
            return None
        found.append(hits)
        return at


class Finder:
    """Finds the objects that are wanted in the content of a message's element.

    Raises:
        Unable: objects may stand where patterns do not tell them apart, or in the nested layout.
    """

    def __init__(self, layout: Layout, islands: Islands, routes: Routes) -> None:
        if node_of(layout.table) is not None or is_object(layout.table):
            raise Unable
        self._steps: list[_Pattern | tuple[Child, _Walker]] = []
        for step in layout.steps if isinstance(layout, Steps) else (layout,):
            if isinstance(step, Child):
                self._steps.append((step, _walker(step.layout, islands, routes)))
                continue
            targets = [cell.slot.target for cell in step.cells if cell.slot.kind == OBJECT]
            if any(routes.wanted(target) or routes.leads(target) for target in targets):
                raise Unable
            self._steps.append(_Pattern(step))

    def find(self, text: str, at: int, care: int) -> tuple[list[TextHits], int] | None:
        """The objects in a content, and where it ends; None where it does not match. `care` is that of `Piece.take`."""
        found: list[TextHits] = []
        try:
            end = self.walk(text, at, found)
        except Odd:
            return None
        return None if end is None else (found, end)

    def walk(self, text: str, at: int, found: list[TextHits]) -> int | None:
        for number, step in enumerate(self._steps):
            if not isinstance(step, _Pattern):
                at = _children(*step, text, at, found)
                continue
            end = step.walk(text, at, found)
            if end is None:
                if number:
                    raise Odd
                return None
            at = end
        return at


def _walker(layout: Layout, islands: Islands, routes: Routes) -> _Walker:
    wanted = routes.wanted(layout.table)
    if wanted:
        if isinstance(layout, Shape):
            return _Wanted(layout, islands)
        raise Unable
    if isinstance(layout, Shape) and not routes.leads(layout.table):
        return _Pattern(layout)
    return Finder(layout, islands, routes)


def _children(child: Child, walker: _Walker, text: str, at: int, found: list[TextHits]) -> int:
    before = at
    while (end := walker.walk(text, at, found)) is not None:
        at = end
        if not child.slot.many:
            break
    if child.slot.field.min and at == before:
        raise Odd
    return at


def _open_groups(cell: Cell) -> list[int]:
    """The groups of a cell that hold elements which no pattern describes, so that only a parser knows what they are."""
    if cell.kind == ISLAND:
        return [cell.at]
    inside = [group for inner in cell.inner.cells for group in _open_groups(inner)] if cell.inner is not None else []
    if cell.slot.many:
        return [cell.at] if inside else []
    return [cell.at + (not cell.required) + group for group in inside]


class _Field(Protocol):
    """Takes one field of many objects."""

    def put(self, groups: Groups, first: int, count: int, escapes: bool) -> None:
        """Put the values of the objects' groups, None where one is absent, at neighbouring rows.

        Raises:
            Odd: something has to be said about a value; some builders hold some of the values by then.
            NOT_PLAIN: the same, of references and open content.
        """


class Filler:
    """Puts the groups of many objects of one shape into the builders of their class.

    Raises:
        Unable: a builder needs elements where the shape has text.
    """

    def __init__(self, shape: Shape, struct: Struct, islands: Islands) -> None:
        places = [(cell, struct.field(cell.slot.name)) for cell in shape.cells]
        self._fields = [_field(cell, column, islands) for cell, column in places if column is not None]
        unasked = [group for cell, column in places if column is None for group in _open_groups(cell)]
        if unasked:
            self._fields.append(_Unasked(unasked, islands))

    def put(self, groups: Groups, first: int, count: int, escapes: bool) -> None:
        for field in self._fields:
            field.put(groups, first, count, escapes)


def _field(cell: Cell, column: Any, islands: Islands) -> _Field:
    if cell.kind == ISLAND:
        return _Trees(cell, column, islands)
    if cell.slot.many:
        return _Lists(cell, column, islands)
    if cell.kind == TEXT:
        return _Texts(cell.at, column, plain=cell.slot.kind == STRING)
    if isinstance(column, Present):
        return _Present(cell, column)
    if not isinstance(column, Struct):
        raise Unable
    if cell.inner is None:
        return _Objects(cell, column, _text_of(column), cell.at)
    return _Objects(cell, column, Filler(cell.inner, column, islands), cell.at + (not cell.required))


def _text_of(struct: Struct) -> _Texts:
    """What takes the text of objects of simple content."""
    leaf = struct.text
    if leaf is None:
        raise Unable
    return _Texts(0, leaf, plain=False)


class _Unasked:
    """Elements that no pattern describes and nobody asked for: they must be well-formed all the same."""

    def __init__(self, groups: Sequence[int], islands: Islands) -> None:
        self._groups = groups
        self._islands = islands

    def put(self, groups: Groups, first: int, count: int, escapes: bool) -> None:
        for group in self._groups:
            for text in groups[group]:
                if text:
                    self._islands.parsed(text)


class _Stored(dict[Any, Any]):
    """Texts of a leaf with what its column stores; the last ones are remembered, up to a bound."""

    def __init__(self, leaf: Leaf) -> None:
        super().__init__(leaf.codes or {})
        self[None] = None
        self._convert = leaf.read_text

    def __missing__(self, text: str) -> Any:
        value = self._convert(text)
        if len(self) < _MOST_KNOWN and len(text) <= _LONGEST_KNOWN and type(value) is not list:
            self[text] = value
        return value


class _Texts:
    """Values of a simple type."""

    def __init__(self, at: int, leaf: Leaf, *, plain: bool) -> None:
        self._at = at
        self._leaf = leaf
        self._stored = None if plain else _Stored(leaf)

    def put(self, groups: Groups, first: int, count: int, escapes: bool) -> None:
        values: Sequence[Any] = groups[self._at]
        if escapes and "&" in "".join(filter(None, values)):
            values = [unescaped(text) for text in values]
        if self._stored is not None:
            stored = self._stored
            values = [stored[text] for text in values]
        self._leaf.extend(values, first)


class _Objects:
    """Objects, each in the row of the one around it."""

    def __init__(self, cell: Cell, struct: Struct, inner: _Field, skip: int) -> None:
        self._at = None if cell.required else cell.at
        self._struct = struct
        self._inner = inner
        self._skip = skip

    def put(self, groups: Groups, first: int, count: int, escapes: bool) -> None:
        present = self._struct.present
        if self._at is None:
            present.extend(range(first, first + count))
        else:
            present.extend([row for row, mark in enumerate(groups[self._at], start=first) if mark is not None])
        self._inner.put(groups[self._skip :], first, count, escapes)


class _Present:
    """Objects without content."""

    def __init__(self, cell: Cell, column: Present) -> None:
        self._at = None if cell.required else cell.at
        self._column = column

    def put(self, groups: Groups, first: int, count: int, escapes: bool) -> None:
        for row in range(first, first + count):
            if self._at is None or groups[self._at][row - first] is not None:
                self._column.add(True, row)


class _Lists:
    """Lists of texts or of objects."""

    def __init__(self, cell: Cell, column: Many, islands: Islands) -> None:
        item: Any = cell.item
        self._at = cell.at
        self._column = column
        self._items = item.finditer
        self._inner: _Field
        if isinstance(column.inner, Leaf):
            self._inner = _Texts(0, column.inner, plain=cell.slot.kind == STRING)
        elif not isinstance(column.inner, Struct):
            raise Unable
        elif cell.inner is None:
            self._inner = _text_of(column.inner)
        else:
            self._inner = Filler(cell.inner, column.inner, islands)

    def put(self, groups: Groups, first: int, count: int, escapes: bool) -> None:
        column, items = self._column, self._items
        found: list[tuple[str | None, ...]] = []
        before = column.items
        for row, run in enumerate(groups[self._at], start=first):
            if run:
                column.rows.append(row)
                column.starts.append(before + len(found))
                found.extend([item.groups() for item in items(run)])
        if not found:
            return
        column.items += len(found)
        if isinstance(column.inner, Struct):
            column.inner.present.extend(range(before, column.items))
        inside = list(zip(*found, strict=True))
        self._inner.put(inside, before, len(found), escapes)


class _Trees:
    """Elements that no pattern describes, one by one."""

    def __init__(self, cell: Cell, column: Builder, islands: Islands) -> None:
        self._cell = cell
        self._column = column
        self._islands = islands

    def put(self, groups: Groups, first: int, count: int, escapes: bool) -> None:
        for row, text in enumerate(groups[self._cell.at], start=first):
            for element in self._islands.elements(text, self._cell.slot) if text else ():
                inside = element.iter()
                next(inside)
                self._column.take(element, row, inside)
