"""The walker: it follows a parser through a document and yields the wanted objects, in memory that does not grow.

Every open element outside of objects has a frame. Elements that no frame needs are removed from the tree at once. The
tree keeps an element only

- while a wanted object that contains it is being read, or
- as a *part* of an open element, because it may be needed to describe what is around an object. Parts are children that
  occur once, are not lists, and have a limited size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from lxml import etree

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import DecodeError, ForbiddenXmlError
from mtosi_jms.namespaces import SOAP11, SOAP12, split_clark
from mtosi_jms.xmlbind._issues import Issues, Once
from mtosi_jms.xmlbind._names import DistinguishedNameMixin
from mtosi_jms.xmlbind._objects import XmlObject, find_element
from mtosi_jms.xmlbind._parser import Declared, XmlLimits, make_parser, refuse_dtd, syntax_error, too_deep, too_many
from mtosi_jms.xmlbind._plan import KEEP, OBJECT, Slot, plan_of
from mtosi_jms.xmlbind._reader import Keeper, Reader, decode_root
from mtosi_jms.xmlbind._registry import XSI_NIL, XSI_TYPE
from mtosi_jms.xmlbind._table import ClassTable

T_co = TypeVar("T_co", bound=XmlObject, covariant=True)
U = TypeVar("U", bound=XmlObject)


@dataclass(frozen=True, slots=True)
class Around:
    """An element around an object, with what had been read of it when the object was found.

    Attributes:
        path: its path: local names, and positions for the second and later siblings of the same name.
        value: an object of its class with the fields that had been read: attributes, simple values, and parts that
            occur once; None if no class is known. Fields that come later or are never kept are None or empty. Objects
            with the same surroundings share this value.
        left_out: names of fields that had occurred but are not in `value`: lists, and fields with wanted objects.
    """

    tag: str
    path: str
    line: int | None
    value: XmlObject | None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed(Generic[T_co]):
    """An object and its place in the document; the elements around it are `above`, outermost first."""

    value: T_co
    tag: str
    path: str
    line: int | None
    above: tuple[Around, ...]

    def around(self, cls: type[U]) -> U | None:
        """Return the nearest object of a class around this one, with what had been read of it.

        The object is an element around this one, or a part of such an element. In the nested inventory layout, both
        `ManagedElementInventoryType` and `ManagedElementType` lead to the managed element.

        Returns:
            The object; None if no element around this one has the class or a field of the class, or if that field had
            no value in the nearest such element.
        """
        for place in reversed(self.above):
            if isinstance(place.value, cls):
                return place.value
            if place.value is None:
                continue
            names = {
                slot.name
                for slot in plan_of(place.value.__xml__).slots.values()
                if slot.kind == OBJECT and not slot.many and issubclass(slot.target.cls, cls)
            }
            if names:
                parts = (getattr(place.value, name) for name in sorted(names))
                return next((part for part in parts if isinstance(part, cls)), None)
        return None


Classes = tuple[type[XmlObject], ...]

LARGEST_PART: Final = 10_000
"""The most elements in a part; a larger part is left out, because memory would grow with it."""

_MOST_KNOWN: Final = 4096
_MOST_QUIET: Final = BOUNDS.stream_quiet
"""Octets in which an element must begin or end: libxml2 holds a comment or tag whole before it sees that it is long."""
_WRAPPERS: Final = {f"{{{space}}}{name}" for space in (SOAP11, SOAP12) for name in ("Envelope", "Body")}


class _Known(NamedTuple):
    """The class of an element by its parent or its name, and whether it is nillable."""

    table: ClassTable | None
    nillable: bool = False


class _Part(NamedTuple):
    """A part of an open element. It is read when the next object after it is found."""

    element: etree._Element
    path: str
    value: Any


class _Frame:
    """An open element.

    Attributes:
        left: the wanted classes that are still searched inside it.
        begins: the wanted classes of which it is an object.
        held: whether its content stays in the tree until it ends.
        part: whether it is a part of the element above.
    """

    __slots__ = ("around", "begins", "counts", "element", "held", "keeper", "known", "left", "left_out", "news",
                 "odd", "part", "path", "table", "waiting")  # fmt: skip

    def __init__(self, element: etree._Element, known: _Known, left: Classes) -> None:
        self.element = element
        self.known = known
        self.table = known.table
        self.path = ""
        self.counts: dict[str, int] = {}
        self.left = left
        self.begins: Classes = ()
        self.held = False
        self.part = False
        self.keeper: Keeper | None = None
        self.waiting: list[_Part] = []
        self.left_out: dict[str, None] = {}
        self.odd: set[str] = set()
        self.news: list[tuple[str, str, str, int | None]] = []
        self.around: Around | None = None

    def place(self) -> tuple[str, str, int | None]:
        return str(self.element.tag), self.path, self.element.sourceline

    def leave_out(self, name: str) -> None:
        if name not in self.left_out:
            self.left_out[name] = None
            self.around = None

    def report(self, rule: str, message: str, inner: _Frame) -> None:
        """Note a warning about a child, once for each name. It is reported if an object is found in this element."""
        tag = str(inner.element.tag)
        if tag not in self.odd:
            self.odd.add(tag)
            self.news.append((rule, message, inner.path, inner.element.sourceline))


class Walker:
    """Yields the wanted objects.

    Args:
        limits: bounds the depth, and the elements and attributes of each object.
        placed: whether to yield objects as `Placed`, with the elements around them.
    """

    def __init__(self, parser: Any, classes: Classes, issues: Once, limits: XmlLimits, *, placed: bool) -> None:
        self.line: int | None = None
        self.parser = parser
        self._classes = classes
        self._issues = issues
        self._limits = limits
        self._placed = placed
        self._declared = Declared(limits, issues.source)
        self._is_declaring = False
        self._reader = Reader(issues)
        self._frames: list[_Frame] = []
        self._skipping = False  # inside an object that is not searched for others
        self._below = 0  # open elements below it
        self._known: dict[tuple[ClassTable | None, str], _Known] = {}
        self._parts: dict[ClassTable, frozenset[str]] = {}
        self._holds: dict[ClassTable, bool] = {}
        self._large: _Frame | None = None  # the outermost open element that is held only because it is a part
        self._size = 0
        self._quiet = 0
        self._nodes = 0  # elements and attributes of the outermost element that is held

    def go_on(self, above: Sequence[tuple[str, dict[str, int]]]) -> None:
        """Set path and number of children by name of each open element, outermost first: the parser only got their
        start tags."""
        deque(self.found(), maxlen=0)
        for frame, (path, counts) in zip(self._frames, above, strict=False):
            frame.path = path
            frame.counts = counts

    def again(self, document: bytes, depth: int, path: str, lines_before: int, table: ClassTable) -> Any:
        """Return an object that the native core left to Python; None if it is nil.

        Args:
            document: the octets of its element, inside the start tags of the elements around it.
            depth: number of elements around it.
            lines_before: number of lines by which it comes later in the real document.
        """
        try:
            element = etree.fromstring(document, make_parser(self._limits))
        except etree.XMLSyntaxError as error:
            error.lineno = (error.lineno or 1) + lines_before
            raise syntax_error(error, self._issues.source) from None
        above: ClassTable | None = None
        for _ in range(depth):
            above = declared(above, str(element.tag)).table
            element = element[0]
        nillable = declared(above, str(element.tag)).nillable
        if nillable and str(element.get(XSI_NIL)).strip() in ("true", "1"):
            return None
        self._issues.lines_before = lines_before
        self._issues.paths.start_at(element, path)
        value = decode_root(element, table.cls, self._issues)
        self._issues.read(again=False)
        self._issues.lines_before = 0
        return value if isinstance(value, self._classes) else None

    def feed(self, chunk: bytes) -> Iterator[Any]:
        """Parse more of the document, and yield the objects that end in it. Raises ForbiddenXmlError: the parser holds
        too much of the document in which no element begins or ends, such as a comment without end. The limit `huge`
        lifts this bound."""
        self.parser.feed(chunk)
        self._quiet += len(chunk)
        yield from self.found()
        if self._quiet > _MOST_QUIET and not self._limits.huge:
            text = f"no element begins or ends within {_MOST_QUIET} bytes"
            raise ForbiddenXmlError(text, source=self._issues.source, line=self.line)

    def found(self) -> Iterator[Any]:
        """Yield the objects that have ended since the last call."""
        depth = self._limits.max_depth
        for event, element in self.parser.read_events():
            self._quiet = 0
            if event != "end" and (event != "start" or self._is_declaring):
                self._is_declaring = event == "start-ns"
                self._declared.note(event, element)
                if event != "start":
                    continue
            if self._skipping:
                if event == "start":
                    self._below += 1
                    self._count(element)
                    if len(self._frames) + self._below > depth:
                        raise too_deep(self._limits, self._issues.source, element.sourceline)
                    continue
                if self._below:
                    self._below -= 1
                    continue
                self._skipping = False
            if event == "start":
                self._start(element)
            else:
                yield from self._end()

    def _start(self, element: etree._Element) -> None:
        if len(self._frames) >= self._limits.max_depth:
            raise too_deep(self._limits, self._issues.source, element.sourceline)
        above = self._frames[-1] if self._frames else None
        if above is None:
            refuse_dtd(element, self._issues.source)
        self.line = element.sourceline
        tag = str(element.tag)
        known = self._class_of(element, tag, above)
        frame = _Frame(element, known, above.left if above is not None else self._classes)
        local = split_clark(tag)[1]
        if above is None:
            frame.path = f"/{local}"
        else:
            frame.held = above.held
            count = above.counts[tag] = above.counts.get(tag, 0) + 1
            frame.path = f"{above.path}/{local}" if count == 1 else f"{above.path}/{local}[{count}]"
        table = frame.table
        if table is not None and issubclass(table.cls, frame.left):
            frame.begins = tuple(cls for cls in frame.left if issubclass(table.cls, cls))
            frame.left = tuple(cls for cls in frame.left if cls not in frame.begins)
            frame.held = True
            self._skipping = not frame.left
        if self._placed and above is not None:
            self._place(frame, above, above.table)
        if above is None or not above.held:
            self._nodes = 0
        self._count(element)
        self._frames.append(frame)

    def _count(self, element: etree._Element) -> None:
        """Count an element and its attributes, which stay in the tree until the object around them ends."""
        self._nodes += 1 + len(element.attrib)
        if self._nodes > self._limits.max_nodes:
            raise too_many(self._limits.max_nodes, self._issues.source, element.sourceline)

    def _class_of(self, element: etree._Element, tag: str, above: _Frame | None) -> _Known:
        table = above.table if above is not None else None
        known = self._known.get((table, tag))
        if known is None:
            known = declared(table, tag)
            if len(self._known) < _MOST_KNOWN:
                self._known[table, tag] = known
        if known.table is None or (text := element.get(XSI_TYPE)) is None:
            return known
        derived = Reader(Issues(), scopes=self._reader.scopes).derived(element, text, known.table)
        return known._replace(table=derived) if derived is not None else known

    def _end(self) -> Iterator[Any]:
        frame = self._frames.pop()
        above = self._frames[-1] if self._frames else None
        held = above is not None and above.held
        value: Any = None
        if frame.begins and frame.table is not None:
            around = tuple([self._around(outer) for outer in self._frames]) if self._placed else ()
            value = self._object(frame, frame.table, again=held)
            if value is not None:
                yield Placed(value, *frame.place(), around) if self._placed else value
        if frame is self._large:
            self._large = None
        if above is not None and frame.part and (value is not None or not frame.begins):
            above.waiting.append(_Part(frame.element, frame.path, value))
            if self._issues.reported and not held:  # objects were found in it: this is the second reading
                self._settle(above)
        elif not held:
            _forget(frame.element, above)

    def _object(self, frame: _Frame, table: ClassTable, *, again: bool) -> Any:
        if frame.known.nillable and str(frame.element.get(XSI_NIL)).strip() in ("true", "1"):
            return None
        self._issues.paths.start_at(frame.element, frame.path)
        value = decode_root(frame.element, table.cls, self._issues, scopes=self._reader.scopes)
        self._issues.read(again=again)
        return value if isinstance(value, frame.begins) else None

    # The elements around an object.

    def _place(self, frame: _Frame, above: _Frame, table: ClassTable | None) -> None:
        """Decide whether an element is a part of the one above."""
        if self._large is not None:
            self._size += 1
            if self._size > LARGEST_PART:
                self._let_go()
                frame.held = bool(frame.begins) or above.held
        if table is None:
            return
        tag = str(frame.element.tag)
        slot = plan_of(table).slots.get(tag)
        if slot is None:
            self._foreign(frame, above, table)
        elif above.counts[tag] > 1 and not slot.many:
            above.report("repeated", "more than one where one is allowed: objects asked for are taken from it", frame)
        elif tag not in self._parts_of(table):
            above.leave_out(slot.name)
        else:
            frame.part = True
            if not frame.held:
                self._large, self._size = frame, 0
            frame.held = True

    def _foreign(self, frame: _Frame, above: _Frame, table: ClassTable) -> None:
        """Handle a child without a field: for a wildcard, a late member of a substitution group, or unknown."""
        plan = plan_of(table)
        tag = str(frame.element.tag)
        namespace, local = split_clark(tag)
        wild = next((wild for wild in plan.wildcards if wild.admits(namespace)), None)
        if wild is not None:
            above.leave_out(wild.name)
            return
        head = plan.head_for(frame.table.cls) if plan.heads and frame.table is not None else None
        if head is not None:
            above.leave_out(head.name)
            return
        above.report("unknown-element", f"unknown element {local}: objects asked for are taken from it", frame)

    def _let_go(self) -> None:
        """Stop holding a part that is too large; remove its ended elements from the tree, except wanted objects."""
        large, self._large = self._large, None
        at = next(at for at, frame in enumerate(self._frames) if frame is large)
        above = self._frames[at - 1]
        above.leave_out(plan_of(above.table).slots[str(self._frames[at].element.tag)].name if above.table else "")
        self._frames[at].part = False
        for frame in self._frames[at:]:
            if frame.begins:
                return
            frame.held = False
            kept = [part.element for part in frame.waiting]
            for child in frame.element[:-1]:
                if child not in kept:
                    frame.element.remove(child)
        self._issues.read(again=False)

    def _parts_of(self, table: ClassTable) -> frozenset[str]:
        if table not in self._parts:
            slots = plan_of(table).slots
            self._parts[table] = frozenset(tag for tag, slot in slots.items() if self._is_part(slot))
        return self._parts[table]

    def _is_part(self, slot: Slot) -> bool:
        if slot.many or slot.kind == KEEP:
            return False
        if slot.kind != OBJECT or issubclass(slot.target.cls, self._classes):
            return True
        return not _is_list(slot.target) and not self._may_hold(slot.target)

    def _may_hold(self, table: ClassTable) -> bool:
        """Whether the schema allows wanted objects anywhere inside an element of a class."""
        if table not in self._holds:
            seen: set[ClassTable] = set()
            waiting = [table]
            while waiting and not any(self._could_be(known) for known in waiting):
                seen.update(waiting)
                inner = (slot for known in waiting for slot in plan_of(known).slots.values() if slot.kind == OBJECT)
                waiting = list({slot.target: None for slot in inner if slot.target not in seen})
            self._holds[table] = bool(waiting)
        return self._holds[table]

    def _could_be(self, table: ClassTable) -> bool:
        return any(issubclass(table.cls, cls) or issubclass(cls, table.cls) for cls in self._classes)

    def _around(self, frame: _Frame) -> Around:
        if frame.waiting or frame.news or (frame.keeper is None and frame.table is not None):
            self._settle(frame)
        if frame.around is None:
            value = frame.keeper.so_far() if frame.keeper is not None else None
            frame.around = Around(*frame.place(), value, tuple(frame.left_out))
        return frame.around

    def _settle(self, frame: _Frame) -> None:
        """Read the parts of an open element so far, and report what does not fit."""
        frame.around = None
        try:
            self._read_parts(frame)
        except RecursionError:
            raise DecodeError("nested too deep", source=self._issues.source, line=frame.element.sourceline) from None
        if not frame.held:  # a held element is read as a whole later, which reports this
            for news in frame.news:
                self._issues.tell(*news)
        frame.news.clear()
        self._issues.read(again=self._frames[-1].held)

    def _read_parts(self, frame: _Frame) -> None:
        keeper = frame.keeper
        if keeper is None and frame.table is not None:
            keeper = frame.keeper = Keeper(frame.element, plan_of(frame.table), self._reader)
            self._issues.paths.start_at(frame.element, frame.path)
            keeper.bind_attributes(self._reader.attributes_of(frame.element, but=XSI_TYPE))
        for element, path, value in frame.waiting:
            if keeper is not None:
                self._issues.paths.start_at(element, path)
                if value is None:
                    keeper.take(element)
                else:
                    keeper.give(element, value)
            if not frame.held:
                element.clear(keep_tail=True)
        frame.waiting.clear()


def declared(table: ClassTable | None, tag: str) -> _Known:
    """Return the class of an element by its parent, otherwise by its name."""
    if tag in _WRAPPERS:
        return _Known(None)
    slot = plan_of(table).slots.get(tag) if table is not None else None
    if slot is not None and slot.kind == OBJECT:
        return _Known(slot.target, slot.field.nillable)
    found = find_element(tag, table.module.root if table is not None else None)
    return _Known(found.__xml__ if found is not None else None)


def _is_list(table: ClassTable) -> bool:
    """Whether the content of a class is a single list. A name is not a list but a value."""
    plan = plan_of(table)
    only = len(plan.content) == 1 and plan.content[0] in plan.lists
    return only and not issubclass(table.cls, DistinguishedNameMixin)


def _forget(element: etree._Element, above: _Frame | None) -> None:
    """Remove an element that was read, and those before it, so that memory does not grow with the document."""
    element.clear(keep_tail=False)
    if above is None:
        return
    waiting = [part.element for part in above.waiting] if above.waiting else ()
    while (before := element.getprevious()) is not None and before not in waiting:
        above.element.remove(before)
