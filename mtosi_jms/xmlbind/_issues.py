"""Warnings of lenient reading: one typed warning for each departure from the schema.

The reader keeps content that does not fit and adds a warning. With `strict=True` the first warning is raised as a
`DecodeError` instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from lxml import etree

from mtosi_jms.errors import DecodeError
from mtosi_jms.masking import MASK, is_secret
from mtosi_jms.namespaces import split_clark


@dataclass(frozen=True, slots=True)
class XmlWarning:
    """One departure of a document from its schema, or of a header from the rules.

    Attributes:
        rule: short id of the kind of departure (`unknown-element`, `bad-value`, `missing-element`, or a rule such as
            `R16`).
        path: element path with local names, and positions from 1 among siblings of the same name.
        line: line in the document, from 1; None if unknown.
    """

    rule: str
    message: str
    path: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = f"line {self.line} " if self.line else ""
        return f"{place}{self.path}: {self.message}".lstrip(": ")


_LONGEST_SHOWN: Final = 60


def shown(text: str, element: etree._Element, name: str = "") -> str:
    """Return a text of a document for a warning: shortened, or masked if it may be a credential (C55)."""
    names = (split_clark(str(node.tag))[1] for node in (element, *element.iterancestors()))
    if is_secret(name) or any(map(is_secret, names)):
        return MASK
    return repr(text[:_LONGEST_SHOWN])


class _Children:
    """The children of an element, counted by name up to the last child whose path was needed."""

    __slots__ = ("_coming", "_is_known", "_last", "_parent", "_passed", "_totals", "path")

    def __init__(self, parent: etree._Element, path: str) -> None:
        self.path = path
        self._parent = parent
        self._totals: Counter[Any] | None = None
        self._passed: Counter[Any] = Counter()
        self._coming: Iterator[etree._Element] = iter(())
        self._is_known = False
        self._last: etree._Element | None = None

    def step(self, child: etree._Element) -> str:
        tag = child.tag
        number = self._number(child, tag)
        local = split_clark(str(tag))[1]
        return f"{self.path}/{local}[{number}]" if number else f"{self.path}/{local}"

    def _number(self, child: etree._Element, tag: Any) -> int:
        """Return the position of a child among those of the same name; 0 if it is the only one."""
        if not self._is_known:
            self._is_known = True
            number = 1 + sum(1 for _ in child.itersiblings(tag, preceding=True))
            return 0 if number == 1 and next(child.itersiblings(tag), None) is None else number
        if self._totals is None:  # the second call: now it is worth counting all children
            self._totals = Counter([sibling.tag for sibling in self._parent])
        if self._totals[tag] == 1:
            return 0
        if child is not self._last and not self._count_to(child):
            self._passed.clear()
            self._coming = iter(self._parent)  # this child comes before the last one, or is the first
            self._count_to(child)
        return self._passed[tag]

    def _count_to(self, child: etree._Element) -> bool:
        for sibling in self._coming:
            self._passed[sibling.tag] += 1
            if sibling is child:
                self._last = child
                return True
        return False


class ElementPaths:
    """Paths of elements of one document, `/Envelope/Body/notify/message[2]`.

    Counts are remembered, so warnings in each of a hundred thousand siblings, whatever their names, take linear time.
    """

    def __init__(self) -> None:
        self._known: dict[etree._Element, _Children] = {}
        self._top: etree._Element | None = None
        self._above = ""

    def start_at(self, element: etree._Element, path: str) -> None:
        """Set the path of an element, for a document that is not in memory as a whole; forget all counts."""
        self._known.clear()
        self._top = element
        self._above = path

    def of(self, element: etree._Element) -> str:
        """Return the path of an element from the root: local names, with positions if siblings have the same name."""
        children = self._known.get(element.getparent()) if element is not self._top else None
        if children is not None:
            return children.step(element)
        steps = [element]
        while steps[-1] is not self._top and steps[-1] not in self._known:
            parent = steps[-1].getparent()
            if parent is None:
                break
            steps.append(parent)
        node = steps.pop()
        path = self._known[node].path if node in self._known else self._first(node)
        while steps:
            children = self._known.get(node)
            if children is None:
                children = self._known[node] = _Children(node, path)
            node = steps.pop()
            path = children.step(node)
        return path

    def _first(self, element: etree._Element) -> str:
        return self._above if element is self._top else f"/{split_clark(str(element.tag))[1]}"


@dataclass(slots=True)
class Issues:
    """Collects the warnings of a reader.

    Attributes:
        strict: whether the first warning is raised as a `DecodeError` instead of kept.
        lines_before: number of lines of the document before the part that was parsed.
    """

    strict: bool = False
    found: list[XmlWarning] = field(default_factory=list)
    source: str | None = None
    paths: ElementPaths = field(default_factory=ElementPaths)
    lines_before: int = 0

    def add(self, rule: str, message: str, element: etree._Element | None = None) -> None:
        """Keep one warning about an element, or raise it. Raises DecodeError: in strict mode."""
        if element is None:
            self.tell(rule, message, "", None)
        else:
            line = element.sourceline
            self.tell(rule, message, self.paths.of(element), line + self.lines_before if line else line)

    def tell(self, rule: str, message: str, path: str, line: int | None) -> None:
        """Keep one warning about a given place, or raise it. Raises DecodeError: in strict mode."""
        if self.strict:
            raise DecodeError(message, source=self.source, line=line, path=path)
        self.found.append(XmlWarning(rule, message, path, line))

    def __iter__(self) -> Iterator[XmlWarning]:
        return iter(self.found)


@dataclass(slots=True)
class Once(Issues):
    """Issues of elements that may be read twice, separately and inside a larger object; each is reported once."""

    _reported: set[tuple[etree._Element, str, str]] = field(default_factory=set)
    _fresh: list[tuple[etree._Element, str, str]] = field(default_factory=list)

    def add(self, rule: str, message: str, element: etree._Element | None = None) -> None:
        if element is not None:
            if (element, rule, message) in self._reported:
                return
            self._fresh.append((element, rule, message))
        Issues.add(self, rule, message, element)

    def read(self, *, again: bool) -> None:
        """Note whether the elements that were read since the last call will be read again."""
        if again:
            self._reported.update(self._fresh)
        else:
            self._reported.clear()
        self._fresh.clear()

    @property
    def reported(self) -> bool:
        """Whether there is a warning about an element that will be read again."""
        return bool(self._reported)
