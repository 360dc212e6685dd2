"""What was read leniently: one typed warning for each thing that does not fit the schema.

Reading keeps what it cannot place and says so here; `strict=True` turns the first of them into a `DecodeError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml import etree

from mtosi_jms.errors import DecodeError
from mtosi_jms.namespaces import split_clark


@dataclass(frozen=True, slots=True)
class XmlWarning:
    """One departure of a document from its schema, or of a header from the rules.

    Attributes:
        rule: short id of what was found (`unknown-element`, `bad-value`, `missing-element`, a rule such as `R16`).
        message: what is wrong and what became of it.
        path: element path with local names, positions among equal siblings counted from 1.
        line: line in the document, from 1, or None.
    """

    rule: str
    message: str
    path: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = f"line {self.line} " if self.line else ""
        return f"{place}{self.path}: {self.message}".lstrip(": ")


class ElementPaths:
    """Paths of elements of one document, `/Envelope/Body/notify/message[2]`.

    Positions count on from the last one asked for among the same siblings, so that a warning in each of a hundred
    thousand siblings does not cost the square of that.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[etree._Element, str], tuple[etree._Element, int]] = {}
        self._top: etree._Element | None = None
        self._above = ""

    def start_at(self, element: etree._Element, path: str) -> None:
        """Take the path of an element from the caller: of a document that is not kept whole only he knows it.

        Args:
            element: paths below it begin with its own; what was remembered of others is forgotten.
            path: its path.
        """
        self._last.clear()
        self._top = element
        self._above = path

    def of(self, element: etree._Element) -> str:
        """The path of an element from its root; local names, positions where there are equal siblings."""
        steps: list[str] = []
        for node in (element, *element.iterancestors()):
            if node is self._top:
                return "/".join([self._above, *reversed(steps)])
            steps.append(self._step(node))
        return "/" + "/".join(reversed(steps))

    def _step(self, element: etree._Element) -> str:
        tag = str(element.tag)
        local = split_clark(tag)[1]
        parent = element.getparent()
        if parent is None:
            return local
        number = self._number(element, parent, tag)
        alone = number == 1 and next(element.itersiblings(tag), None) is None
        return local if alone else f"{local}[{number}]"

    def _number(self, element: etree._Element, parent: etree._Element, tag: str) -> int:
        known, number = self._last.get((parent, tag), (None, 0))
        if known is not element:
            number = self._count_on(element, known, number, tag)
            self._last[parent, tag] = element, number
        return number

    def _count_on(self, element: etree._Element, known: etree._Element | None, number: int, tag: str) -> int:
        if known is not None:
            for sibling in known.itersiblings(tag):
                number += 1
                if sibling is element:
                    return number
        return 1 + sum(1 for _ in element.itersiblings(tag, preceding=True))


@dataclass(slots=True)
class Issues:
    """Collects the warnings of one reading.

    Attributes:
        strict: whether the first warning is raised as a `DecodeError` instead of being kept.
        found: the warnings, in document order as far as the reading goes.
        source: name of the document for error texts.
    """

    strict: bool = False
    found: list[XmlWarning] = field(default_factory=list)
    source: str | None = None
    _paths: ElementPaths = field(default_factory=ElementPaths)

    def add(self, rule: str, message: str, element: etree._Element | None = None) -> None:
        """Keep one warning about an element, or raise it.

        Raises:
            DecodeError: in strict mode.
        """
        path = self._paths.of(element) if element is not None else ""
        self.tell(rule, message, path, element.sourceline if element is not None else None)

    def tell(self, rule: str, message: str, path: str, line: int | None) -> None:
        """Keep one warning about a place that the caller knows, or raise it.

        Raises:
            DecodeError: in strict mode.
        """
        if self.strict:
            raise DecodeError(message, source=self.source, line=line, path=path)
        self.found.append(XmlWarning(rule, message, path, line))

    def start_at(self, element: etree._Element, path: str) -> None:
        """Take the path of an element from the caller, as `ElementPaths.start_at`."""
        self._paths.start_at(element, path)

    def __iter__(self) -> Iterator[XmlWarning]:
        return iter(self.found)


@dataclass(slots=True)
class Once(Issues):
    """Issues of elements that may be read twice, by themselves and inside a larger object: reported once."""

    _told: set[tuple[etree._Element, str, str]] = field(default_factory=set)
    _fresh: list[tuple[etree._Element, str, str]] = field(default_factory=list)

    def add(self, rule: str, message: str, element: etree._Element | None = None) -> None:
        """Keep one warning about an element, or raise it; nothing where it was reported before."""
        if element is not None:
            if (element, rule, message) in self._told:
                return
            self._fresh.append((element, rule, message))
        Issues.add(self, rule, message, element)

    def read(self, *, again: bool) -> None:
        """What was read since the last call will be read again, or will not."""
        if again:
            self._told.update(self._fresh)
        else:
            self._told.clear()
        self._fresh.clear()

    @property
    def told(self) -> bool:
        """Whether something was reported of an element that will be read again."""
        return bool(self._told)
