"""Reads objects from the text of a document: by the patterns of shapes, and functions made of their cells."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from lxml import etree

from mtosi_jms.xmlbind.decoder import Reader
from mtosi_jms.xmlbind.fast import Itself, Known, Odd
from mtosi_jms.xmlbind.issues import Issues
from mtosi_jms.xmlbind.parser import make_parser
from mtosi_jms.xmlbind.plan import STRING, Slot, plan_of
from mtosi_jms.xmlbind.scanplan import ISLAND, TEXT, Cell, Child, Layout, Shape, Steps
from mtosi_jms.xmlbind.values import Nil, XmlObject

_ENTITIES: Final = {"amp;": "&", "lt;": "<", "gt;": ">", "quot;": '"', "apos;": "'"}
_LARGEST_ISLAND: Final = 4096


def unescaped(text: str | None) -> str | None:
    """Text with its references resolved.

    Raises:
        KeyError: one of them is not predefined; character references are left to the parser.
    """
    if text is None or "&" not in text:
        return text
    first, *rest = text.split("&")
    parts = [first]
    for part in rest:
        name, end, after = part.partition(";")
        parts += (_ENTITIES[name + end], after)
    return "".join(parts)


def rows(item: re.Pattern[str], text: str) -> Iterable[tuple[str | None, ...]]:
    """The groups of all that a pattern of several groups finds; None where one took no part."""
    found: list[tuple[str, ...]] = item.findall(text)
    for row in found:
        if "" in row:  # empty, or not there: `findall` does not tell
            return map(re.Match.groups, item.finditer(text))
    return found


def column(item: re.Pattern[str], text: str) -> Sequence[str | None]:
    """The same for a pattern of one group."""
    found: list[str] = item.findall(text)
    return [one[1] for one in item.finditer(text)] if "" in found else found


def constructor(cls: type[XmlObject], names: Sequence[str]) -> Callable[..., Any]:
    """What makes objects of a class of the values of some fields, in that order; faster than the class itself.

    Args:
        cls: a generated class.
        names: the fields, all that have no default among them.
    """
    constants: dict[str, Any] = {"new": partial(cls.__new__, cls)}
    lines = [f"def make({', '.join(names)}):", " o = new()"]
    for field in dataclasses.fields(cls):
        value = field.name
        if field.name not in names and field.default_factory is list:
            value = "[]"
        elif field.name not in names:
            value = f"d_{field.name}"
            constants[value] = field.default
        lines.append(f" o.{field.name} = {value}")
    exec("\n".join([*lines, " return o"]), constants)  # noqa: S102
    made: Callable[..., Any] = constants["make"]
    return made


class Islands:
    """Reads elements that no pattern describes, each from a small tree of its own.

    Args:
        names: the namespaces in scope, by prefix.
    """

    __slots__ = ("_opening", "_parser")

    def __init__(self, names: Mapping[str | None, str]) -> None:
        declared = (
            f" xmlns{':' if prefix else ''}{prefix or ''}={quoteattr(space)}" for prefix, space in names.items()
        )
        self._opening = f"<sea{''.join(declared)}>"
        self._parser = make_parser()

    def __call__(self, text: str, slot: Slot) -> list[Any]:
        """The values of the elements of a slot that stand one after the other.

        Raises:
            NOT_PLAIN: they have to be read with the whole document: they are large, or leave something to report.
        """
        issues = Issues()
        reader = Reader(issues)
        values = [reader.child(element, slot) for element in self.elements(text, slot)]
        lost = issues.found or any(value is None for value in values)
        if lost or any(isinstance(value, Nil) and not slot.field.nillable for value in values):
            raise Odd
        return values

    def elements(self, text: str, slot: Slot) -> list[etree._Element]:
        """The elements of a slot that stand one after the other.

        Raises:
            NOT_PLAIN: as above.
        """
        root = self.parsed(text)
        if any(element.tag != slot.field.tag for element in root):
            raise Odd
        return list(root)

    def parsed(self, text: str) -> etree._Element:
        """Any elements, below one that declares the namespaces in scope.

        Raises:
            NOT_PLAIN: as above.
        """
        if len(text) > _LARGEST_ISLAND:  # and so neither too deep nor too crowded
            raise Odd
        try:
            return etree.fromstring(f"{self._opening}{text}</sea>", self._parser)
        except etree.XMLSyntaxError:
            raise Odd from None


class Piece:
    """The pattern of a shape, and a function from its groups to what was found.

    Attributes:
        match: finds it at a position.
        build: the values from the groups, where no text holds a reference.
        careful: the same where one may.
    """

    __slots__ = ("build", "careful", "match")

    def __init__(self, shape: Shape, maker: Callable[..., Any], islands: Islands) -> None:
        """Make the functions.

        Args:
            shape: what is matched.
            maker: takes the values of its fields: the class, or `dict` where there is more to come.
            islands: reads the elements that no pattern describes.
        """
        self.match = re.compile(shape.pattern).match
        writer = _Writer(islands)
        names = [f"v{number}" for number in range(shape.groups)]
        source = f"lambda {', '.join(names)}: {writer.made(shape, names, maker)}"
        self.build = writer.function(source.replace("unescaped(", "("))
        self.careful = writer.function(source)

    def take(self, text: str, at: int, escapes: bool) -> tuple[Any, int] | None:
        """What stands at a position, and where it ends; None where it does not match."""
        found = self.match(text, at)
        if found is None:
            return None
        end = found.end()
        build = self.careful if escapes and text.find("&", at, end) >= 0 else self.build
        return build(*found.groups()), end

    def take_all(self, text: str, at: int, escapes: bool) -> tuple[list[Any], int]:
        """What stands at a position one after the other, and where the last ends."""
        match, build, careful, find = self.match, self.build, self.careful, text.find
        taken: list[Any] = []
        while found := match(text, at):
            end = found.end()
            if escapes and find("&", at, end) >= 0:
                taken.append(careful(*found.groups()))
            else:
                taken.append(build(*found.groups()))
            at = end
        return taken, at


class _Writer:
    """Writes the expression that makes an object of the groups of its shape.

    It consists of field names of generated classes, and of names made here for classes and functions. Texts stand in
    it as `unescaped(variable)`.
    """

    def __init__(self, islands: Islands) -> None:
        self._constants: dict[str, Any] = {"unescaped": unescaped, "rows": rows, "column": column, "islands": islands}
        self._lists = 0

    def function(self, source: str) -> Callable[..., Any]:
        """The function of an expression."""
        made: Callable[..., Any] = eval(source, self._constants)  # noqa: S307
        return made

    def made(self, shape: Shape, names: list[str], maker: Callable[..., Any]) -> str:
        """The expression of an object.

        Args:
            shape: its shape.
            names: a variable for each group.
            maker: takes the values.
        """
        values = [self._value(cell, names) for cell in shape.cells]
        return self._call(maker, [cell.slot.name for cell in shape.cells], values)

    def _call(self, maker: Callable[..., Any], names: list[str], values: list[str]) -> str:
        """The expression that makes something of the values of some fields."""
        if isinstance(maker, type) and issubclass(maker, XmlObject):
            return f"{self._constant(constructor(maker, names))}({', '.join(values)})"
        given = (f"{name}={value}" for name, value in zip(names, values, strict=True))
        return f"{self._constant(maker)}({', '.join(given)})"

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._constants)}"
        self._constants[name] = value
        return name

    def _value(self, cell: Cell, names: list[str]) -> str:
        group = names[cell.at]
        if cell.kind == ISLAND:
            value = f"islands({group}, {self._constant(cell.slot)})" + ("" if cell.slot.many else "[0]")
        elif cell.slot.many:
            value = self._list(cell, group)
        elif cell.inner is not None:
            value = self.made(cell.inner, names[cell.at + (not cell.required) :], cell.inner.table.cls)
        else:
            value = self._text(cell, group)
        if cell.required or value == f"unescaped({group})":
            return value
        return f"{value} if {group} else []" if cell.slot.many else f"{value} if {group} is not None else None"

    def _text(self, cell: Cell, group: str) -> str:
        """The expression of a value of simple type, or of an object that holds one."""
        if cell.kind == TEXT:
            slot = cell.slot
            return f"unescaped({group})" if slot.kind == STRING else f"{self._known(slot)}[unescaped({group})]"
        text: Any = plan_of(cell.slot.target).text
        return self._call(cell.slot.target.cls, [text.name], [f"{self._known(text)}[unescaped({group})]"])

    def _known(self, slot: Slot) -> str:
        return self._constant(Itself() if slot.kind == STRING else Known(slot.target))

    def _list(self, cell: Cell, group: str) -> str:
        item: Any = cell.item
        self._lists += 1
        names = [f"l{self._lists}_{number}" for number in range(item.groups)]
        variables = "".join(f"{name}, " for name in names)
        each = self._text(cell, names[0]) if cell.inner is None else self.made(cell.inner, names, cell.inner.table.cls)
        if len(names) == 1:
            return f"[{each} for {names[0]} in column({self._constant(item)}, {group})]"
        return f"[{each} for ({variables}) in rows({self._constant(item)}, {group})]"


class Scanner:
    """Reads the elements of one layout from text.

    Args:
        layout: what they look like.
        islands: reads the elements that no pattern describes.
    """

    __slots__ = ("_cls", "_steps", "_whole")

    def __init__(self, layout: Layout, islands: Islands) -> None:
        self._cls: Any = layout.table.cls
        self._whole = Piece(layout, self._cls, islands) if isinstance(layout, Shape) else None
        self._steps: list[Piece | tuple[Slot, Scanner]] = []
        for step in layout.steps if isinstance(layout, Steps) else ():
            if isinstance(step, Child):
                self._steps.append((step.slot, Scanner(step.layout, islands)))
            else:
                self._steps.append(Piece(step, dict, islands))

    def read(self, text: str, at: int, escapes: bool) -> tuple[Any, int] | None:
        """The object that stands at a position, and where it ends; None where none begins there.

        Args:
            text: the document.
            at: where the object begins.
            escapes: whether the document holds references anywhere.

        Raises:
            NOT_PLAIN: it has to be read from the tree.
        """
        if self._whole is not None:
            return self._whole.take(text, at, escapes)
        values: dict[str, Any] = {}
        for number, step in enumerate(self._steps):
            if isinstance(step, Piece):
                taken = step.take(text, at, escapes)
                if taken is None and number:
                    raise Odd
                if taken is None:
                    return None
                values |= taken[0]
                at = taken[1]
            else:
                at = step[1]._add(values, step[0], text, at, escapes)
        return self._cls(**values), at

    def read_all(self, text: str, at: int, escapes: bool) -> tuple[list[Any], int]:
        """The objects that stand at a position one after the other, and where the last ends; as `read`."""
        if self._whole is not None:
            return self._whole.take_all(text, at, escapes)
        found: list[Any] = []
        while (taken := self.read(text, at, escapes)) is not None:
            found.append(taken[0])
            at = taken[1]
        return found, at

    def _add(self, values: dict[str, Any], slot: Slot, text: str, at: int, escapes: bool) -> int:
        """Read the elements of a field; the position behind them."""
        if slot.many:
            found, end = self.read_all(text, at, escapes)
        else:
            taken = self.read(text, at, escapes)
            found, end = ([], at) if taken is None else ([taken[0]], taken[1])
        if found:
            values[slot.name] = found if slot.many else found[0]
        elif slot.field.min:
            raise Odd
        return end
