"""Objects from a message that is too large for memory, in constant memory.

The parser reports only the elements that the routes of the class of the message name. Each object is yielded when its
element ends, and is then removed from the tree. An inventory node is yielded at its end, after the objects inside it,
because its references come last; its number is still that of its place in document order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from lxml import etree

from mtosi_jms.errors import ForbiddenXmlError
from mtosi_jms.inventory import Above, Hit, Route, Routes, above_of, actual_table, global_elements, is_object, node_hit
from mtosi_jms.xmlbind import DEFAULT_LIMITS, HARDENED, ClassTable, Scopes, syntax_error


@dataclass(slots=True, eq=False)
class _Frame:
    """An open element that leads to objects."""

    element: etree._Element
    route: Route
    above: Above
    scopes: Scopes
    number: int = 0
    inner: Above | None = None

    def inside(self) -> Above:
        """Return what is above the objects in this element. It is computed when the first of them begins."""
        if self.route.node is None:
            return self.above
        if self.inner is None:
            self.inner = above_of(
                node_hit(self.element, self.route.node, self.above, self.scopes), self.route.node, self.above
            )
        return self.inner


def stream_objects(stream: IO[bytes], body_tag: str, routes: Routes, source: str) -> Iterator[tuple[int, Hit]]:
    """Yield the wanted objects of an envelope, each with its number in document order, from 1."""
    counted = _Counted(stream, source)
    walker = _Walker(body_tag, routes, counted)
    tags = walker.tags()
    events = etree.iterparse(counted, events=("start", "end"), tag=tags, huge_tree=False, **HARDENED)
    try:
        for event, element in events:
            if event == "start":
                walker.start(element)
            else:
                yield from walker.end(element)
    except etree.XMLSyntaxError as error:
        raise syntax_error(error, source) from None


class _Counted:
    """A stream that counts elements and attributes in what it reads: the parser keeps those that no route names.
    `nodes`: how many there are since an object was removed, or a few more: texts and comments are not told apart."""

    def __init__(self, stream: IO[bytes], source: str) -> None:
        self.nodes = 0
        self._stream = stream
        self._source = source
        self._lines = 1

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.nodes += data.count(b"<") - data.count(b"</") + data.count(b"=")
        self._lines += data.count(b"\n")
        if self.nodes > DEFAULT_LIMITS.max_nodes:
            text = f"more than {DEFAULT_LIMITS.max_nodes} elements and attributes in one object or between two"
            raise ForbiddenXmlError(text, source=self._source, line=self._lines)
        return data


class _Walker:
    """Keeps the open frames, and removes elements that are done."""

    def __init__(self, body_tag: str, routes: Routes, counted: _Counted) -> None:
        self._counted = counted
        self._body_tag = body_tag
        self._routes = routes
        self._frames: list[_Frame] = []
        self._object: tuple[int, etree._Element, ClassTable] | None = None
        self._count = 0
        self._done: list[etree._Element] = []
        self._scopes = Scopes()

    def tags(self) -> list[str] | None:
        """Return the elements that the parser must report; None for all, if no stub knows the message."""
        table, route = self._routes.for_tag(self._body_tag)
        if table is None:
            return None
        found = {self._body_tag, *(tag for tag, element in global_elements() if self._routes.wanted(element))}
        seen: set[int] = set()
        waiting = [route]
        while waiting:
            current = waiting.pop()
            if id(current) in seen:
                continue
            seen.add(id(current))
            found.update(current.targets, current.steps)
            waiting.extend(current.steps.values())
        return sorted(found)

    def start(self, element: etree._Element) -> None:
        """Handle the start of an element."""
        self._forget(element)
        if self._object is not None:
            return
        if not self._frames:
            if element.tag == self._body_tag:
                self._enter(element, None)
            return
        top = self._frames[-1]
        tag = str(element.tag)
        route = top.route if top.route.table is not None else self._routes.guess(tag)
        if element.getparent() is top.element:
            target = route.targets.get(tag)
            if target is not None:
                self._open_object(element, target, top)
                return
            step = route.steps.get(tag)
            if step is not None:
                self._push(element, step, top.inside())
                return
        if not self._passed_over(element, top, route):
            self._enter(element, top)

    def _passed_over(self, element: etree._Element, top: _Frame, route: Route) -> bool:
        """Whether an element is in a branch that the class knows and that leads to no object."""
        branch = element
        while (parent := branch.getparent()) is not None and parent is not top.element:
            branch = parent
        return route.knows(str(branch.tag))

    def _enter(self, element: etree._Element, top: _Frame | None) -> None:
        """Handle the start of an element that no route names: an object, a message, or an unknown wrapper."""
        table, route = self._routes.for_tag(str(element.tag))
        if table is not None and self._routes.wanted(table):
            self._open_object(element, table, top)
        elif table is None or not is_object(table):
            self._push(element, route, top.inside() if top else Above())

    def _open_object(self, element: etree._Element, table: ClassTable, top: _Frame | None) -> None:
        if top is not None:
            top.inside()
        self._count += 1
        self._object = (self._count, element, table)

    def _push(self, element: etree._Element, route: Route, above: Above) -> None:
        frame = _Frame(element, route, above, self._scopes)
        if route.node is not None and self._routes.wanted(route.node.attrs):
            self._count += 1
            frame.number = self._count
        self._frames.append(frame)

    def end(self, element: etree._Element) -> Iterator[tuple[int, Hit]]:
        """Handle the end of an element; yield the object that is complete now, if any."""
        if self._object is not None:
            number, start, table = self._object
            if element is start:
                self._object = None
                yield number, Hit(actual_table(element, table, self._scopes), element, element)
                self._clear(element)
            return
        if self._frames and self._frames[-1].element is element:
            frame = self._frames.pop()
            if frame.route.node is not None and frame.number:
                hit = node_hit(element, frame.route.node, frame.above, self._scopes)
                if self._routes.wanted(hit.table):
                    yield frame.number, hit
            self._clear(element)

    def _clear(self, element: etree._Element) -> None:
        element.clear(keep_tail=True)
        self._done.append(element)
        self._counted.nodes = 0

    def _forget(self, element: etree._Element) -> None:
        """Remove elements that are done from the tree, now that a later element has begun."""
        for done in self._done:
            parent = done.getparent()
            if parent is not None:
                parent.remove(done)
        self._done.clear()
