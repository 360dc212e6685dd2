"""From the groups of a pattern to an object: functions made of the cells of a shape."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from lxml import etree

from mtosi_jms.xmlbind._canonical import declaration
from mtosi_jms.xmlbind._fast import Itself, Known, Odd
from mtosi_jms.xmlbind._issues import Issues
from mtosi_jms.xmlbind._parser import make_parser
from mtosi_jms.xmlbind._plan import STRING, Slot, plan_of
from mtosi_jms.xmlbind._reader import Reader
from mtosi_jms.xmlbind._scanplan import ISLAND, TEXT, Cell, Shape
from mtosi_jms.xmlbind._table import XmlObject
from mtosi_jms.xmlbind._values import BLANKS, Nil

_LARGEST_ISLAND: Final = 4096
_DEEPEST_ISLAND: Final = 64
_PREFIX: Final = re.compile(r"(?<![^\s<>/=:\"'&;])([^\s<>/=:\"'&;]++):")
"""What may be a prefix, in names and in content."""
_DEEPER: Final = etree.XPath(f"boolean(/*{'/*' * (_DEEPEST_ISLAND + 1)})")


class Islands:
    """Reads elements that no pattern describes, each from a small tree of its own.

    Args:
        names: the namespaces in scope, by prefix.
    """

    __slots__ = ("_declared", "_default", "_parser")

    def __init__(self, names: Mapping[str | None, str]) -> None:
        self._declared = {prefix: declaration(prefix, space) for prefix, space in names.items() if prefix}
        self._default = declaration("", names[None]) if None in names else ""
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
        if any(element.tag != slot.field.tag or (element.tail or "").strip(BLANKS) for element in root):
            raise Odd
        if len(root) > 1 and not slot.many:  # one that ended where no pattern sees it, and the next
            raise Odd
        return list(root)

    def parsed(self, text: str) -> etree._Element:
        """Any elements, below one that declares the namespaces in scope.

        Raises:
            NOT_PLAIN: as above.
        """
        if len(text) > _LARGEST_ISLAND:  # and so not too crowded
            raise Odd
        # To read all declarations again for each island would cost the product of their numbers.
        prefixes = self._declared.keys() if "&#" in text else self._declared.keys() & set(_PREFIX.findall(text))
        declared = [self._declared[prefix] for prefix in sorted(prefixes)]
        try:
            root = etree.fromstring(f"<sea{self._default}{''.join(declared)}>{text}</sea>", self._parser)
        except etree.XMLSyntaxError:
            raise Odd from None
        if text.count("</") > _DEEPEST_ISLAND and _DEEPER(root):
            raise Odd
        return root


REFERENCES: Final = 1
"""There are references in a text."""
OCTETS: Final = 2
"""The octets of a text stand as characters, and some are of characters beyond ASCII."""

_ENTITIES: Final = {"amp;": "&", "lt;": "<", "gt;": ">", "quot;": '"', "apos;": "'"}


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


def real(text: str) -> str:
    """What a text says whose octets stand as characters."""
    return text if text.isascii() else text.encode("latin-1").decode()


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
    lines = [f"def make({', '.join(f'v{number}' for number in range(len(names)))}):", " o = new()"]
    for number, field in enumerate(dataclasses.fields(cls)):
        if field.name in names:
            value = f"v{names.index(field.name)}"
        elif field.default_factory is list:
            value = "[]"
        else:
            value = f"d{number}"
            constants[value] = field.default
        lines.append(f" o.{field.name} = {value}")
    exec("\n".join([*lines, " return o"]), constants)  # noqa: S102
    made: Callable[..., Any] = constants["make"]
    return made


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

    def take(self, text: str, at: int, care: int) -> tuple[Any, int] | None:
        """What stands at a position, and where it ends; None where it does not match.

        Args:
            text: the document.
            at: the position.
            care: REFERENCES, OCTETS, both or 0.
        """
        found = self.match(text, at)
        if found is None:
            return None
        end = found.end()
        if care & OCTETS:
            return self._with_octets(found), end
        build = self.careful if care and text.find("&", at, end) >= 0 else self.build
        return build(*found.groups()), end

    def take_all(self, text: str, at: int, care: int) -> tuple[list[Any], int]:
        """What stands at a position one after the other, and where the last ends; as `take`."""
        match, build, careful, find = self.match, self.build, self.careful, text.find
        taken: list[Any] = []
        while found := match(text, at):
            end = found.end()
            if care & OCTETS:
                taken.append(self._with_octets(found))
            elif care and find("&", at, end) >= 0:
                taken.append(careful(*found.groups()))
            else:
                taken.append(build(*found.groups()))
            at = end
        return taken, at

    def _with_octets(self, found: re.Match[str]) -> Any:
        text = found[0]
        if not text.isascii():
            again = self.match(real(text))
            if again is None:
                raise Odd
            found = again
        return (self.careful if "&" in text else self.build)(*found.groups())


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
        group = names[cell.at] if cell.at < len(names) else ""  # of an object with nothing that can be in it
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
        places = names[0] if len(names) == 1 else f"({variables})"
        if cell.inner is None or is_certain(cell.inner):
            return f"[{each} for {places} in {self._constant(item.findall)}({group})]"
        find = "column" if len(names) == 1 else "rows"
        return f"[{each} for {places} in {find}({self._constant(item)}, {group})]"


def is_certain(shape: Shape) -> bool:
    """Whether all groups take part in every match, so that an empty one is an empty text."""
    inner = (cell.inner is None or is_certain(cell.inner) for cell in shape.cells if not cell.slot.many)
    return all(cell.slot.many or cell.required for cell in shape.cells) and all(inner)
