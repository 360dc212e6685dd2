"""What reads objects from the text of a document: patterns, functions of their groups, and islands of other XML."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from lxml import etree

from mtosi_jms.xmlbind.decoder import Reader
from mtosi_jms.xmlbind.fast import Odd
from mtosi_jms.xmlbind.issues import Issues
from mtosi_jms.xmlbind.parser import make_parser
from mtosi_jms.xmlbind.plan import Slot
from mtosi_jms.xmlbind.values import Nil

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
        if len(text) > _LARGEST_ISLAND:  # and so neither too deep nor too crowded
            raise Odd
        try:
            root = etree.fromstring(f"{self._opening}{text}</sea>", self._parser)
        except etree.XMLSyntaxError:
            raise Odd from None
        issues = Issues()
        reader = Reader(issues)
        values = [reader.child(element, slot) for element in root if element.tag == slot.field.tag]
        lost = len(values) != len(root) or any(value is None for value in values)
        if lost or issues.found or any(isinstance(value, Nil) and not slot.field.nillable for value in values):
            raise Odd
        return values


class Piece:
    """A pattern, and a function from its groups to what was found.

    Attributes:
        match: finds it at a position.
        build: the values from the groups, where no text holds a reference.
        careful: the same where one may.
    """

    __slots__ = ("build", "careful", "match")

    def __init__(self, pattern: str, names: list[str], value: str, constants: dict[str, Any]) -> None:
        """Arguments:

        Args:
            pattern: regular expression.
            names: a variable for each of its groups.
            value: expression of what was found, in which texts stand as `unescaped(variable)`.
            constants: what the expression may name besides.
        """
        self.match = re.compile(pattern).match
        head = f"lambda {', '.join(names)}: "
        self.build = _function(head + value.replace("unescaped(", "("), constants)
        self.careful = _function(head + value, constants)

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


def _function(source: str, constants: dict[str, Any]) -> Callable[..., Any]:
    """The function of an expression that consists of field names of a generated class and of names made here."""
    made: Callable[..., Any] = eval(source, constants)  # noqa: S307
    return made


@dataclass(slots=True)
class Child:
    """A child element with a scanner of its own."""

    name: str
    scanner: Scanner
    many: bool
    required: bool


class Scanner:
    """Reads the elements of one class from text.

    Attributes:
        whole: the one pattern of the class, None where it takes several steps.
        steps: pieces, each giving a dictionary of values, and children.
    """

    __slots__ = ("cls", "steps", "whole")

    def __init__(self, cls: Any, whole: Piece | None, steps: list[Piece | Child]) -> None:
        self.cls = cls
        self.whole = whole
        self.steps = steps

    def read(self, text: str, at: int, escapes: bool) -> tuple[Any, int] | None:
        """The object that stands at a position, and where it ends; None where none begins there.

        Args:
            text: the document.
            at: where the object begins.
            escapes: whether the document holds references anywhere.

        Raises:
            NOT_PLAIN: it has to be read from the tree.
        """
        if self.whole is not None:
            return self.whole.take(text, at, escapes)
        values: dict[str, Any] = {}
        begun = False
        for step in self.steps:
            if isinstance(step, Piece):
                taken = step.take(text, at, escapes)
                if taken is None:
                    if begun:
                        raise Odd
                    return None
                values |= taken[0]
                at = taken[1]
            else:
                at = _read_child(step, values, text, at, escapes)
            begun = True
        return self.cls(**values), at

    def read_all(self, text: str, at: int, escapes: bool) -> tuple[list[Any], int]:
        """The objects that stand at a position one after the other, and where the last ends; as `read`."""
        if self.whole is not None:
            return self.whole.take_all(text, at, escapes)
        found: list[Any] = []
        while (taken := self.read(text, at, escapes)) is not None:
            found.append(taken[0])
            at = taken[1]
        return found, at


def _read_child(child: Child, values: dict[str, Any], text: str, at: int, escapes: bool) -> int:
    if child.many:
        found, end = child.scanner.read_all(text, at, escapes)
        if found:
            values[child.name] = found
    else:
        taken = child.scanner.read(text, at, escapes)
        found, end = ([], at) if taken is None else ([taken[0]], taken[1])
        if found:
            values[child.name] = found[0]
    if child.required and not found:
        raise Odd
    return end
