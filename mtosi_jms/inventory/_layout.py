"""Where objects are in the body of a message, for flat list responses and for the nested inventory layout.

A `Route` says which child elements of a class lead to objects. It is made once for each class, from its table. A search
skips elements that lead nowhere. It does search elements that no stub knows, so an unknown wrapper hides no object.

In the nested layout an object is a node. A node has a short name (`meNm`), attributes (`meAttrs`), lists of nodes below
it, lists of references to other objects, and an indicator of quality. Its full name is the name among its attributes.
Without such a name it is the full name of the node above, followed by its type and short name. If the node above has
the same type (a holder in a holder), it is skipped, because such short names already contain that of the outer holder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from lxml import etree

from mtosi_jms.inventory._objects import is_object, tables_of_namespace
from mtosi_jms.inventory._release1 import classes, converted, is_release1, looks_like_object
from mtosi_jms.namespaces import split_clark
from mtosi_jms.xmlbind import (
    XSI_TYPE,
    ClassTable,
    DistinguishedNameMixin,
    Placed,
    Scopes,
    XmlObject,
    attribute_parts,
    find_element,
    find_type,
)
from mtosi_jms.xmlbind.columns import OBJECT, Slot, plan_of

_ATTRS: Final = "Attrs"
_NM: Final = "Nm"
_MOST_TAGS: Final = 4096
"""Names of elements whose classes are kept: messages decide which names there are."""
_ESCAPES: Final = str.maketrans({"%": "%25", "/": "%2F", "=": "%3D"})
_special = re.compile("[%/=]").search


@dataclass(frozen=True, slots=True)
class Node:
    """The class of an inventory node.

    Attributes:
        rdn_type: the type in a full name, from the element of the short name (`meNm`: ME).
        name_tag: Clark name of the element of the short name; empty if there is none.
        references: Python names of the lists of references, by Clark name.
        quality_tag: Clark name of the indicator of quality; empty if there is none.
    """

    rdn_type: str
    name_tag: str
    attrs_tag: str
    attrs: ClassTable
    references: Mapping[str, str]
    quality_tag: str


@dataclass(slots=True, eq=False)
class Hit:
    """An object that was found.

    Attributes:
        element: the element of its attributes; None for a node without attributes.
        start: the first element of the object, which has its line number.
        name: full name as text; None if it is unknown, or for a flat object, which has its name among its attributes.
        parents: full names of the objects that contain it, outermost first; None for flat objects.
        layout: the class of the inventory node; None for flat objects.
    """

    table: ClassTable
    element: etree._Element | None
    start: etree._Element
    name: str | None = None
    parents: list[str] | None = None
    layout: Node | None = None


def node_of(table: ClassTable) -> Node | None:
    """Return the node for a class; None if the class is not a node."""
    if is_object(table):
        return None
    slots = plan_of(table).slots
    attrs = [
        (tag, slot)
        for tag, slot in slots.items()
        if slot.kind == OBJECT and not slot.many and slot.field.local.endswith(_ATTRS) and is_object(slot.target)
    ]
    if len(attrs) != 1:
        return None
    tag, slot = attrs[0]
    stem = slot.field.local.removesuffix(_ATTRS)
    names = [name for name, other in slots.items() if other.field.local == stem + _NM]
    quality = [name for name, other in slots.items() if other.field.local == "qualityIndicator"]
    references = {name: other.name for name, other in slots.items() if _is_reference_list(other)}
    return Node(stem.upper(), "".join(names[:1]), tag, slot.target, references, "".join(quality[:1]))


def _is_reference_list(slot: Slot) -> bool:
    if slot.kind != OBJECT or slot.many:
        return False
    inner = [other for other in plan_of(slot.target).slots.values() if other.kind == OBJECT]
    return len(inner) == 1 and issubclass(inner[0].target.cls, DistinguishedNameMixin)


Wanted = Callable[[ClassTable], bool]


class Route:
    """Where objects are below an element of a class.

    Attributes:
        table: the class; None for elements that no stub knows.
        steps: routes of the child elements that lead to objects, by Clark name.
        targets: classes of the child elements that are objects, by Clark name.
        known: Clark names of all child elements of the class.
    """

    def __init__(self, table: ClassTable | None, routes: Routes) -> None:
        self.table = table
        self.node = node_of(table) if table is not None else None
        self.targets: dict[str, ClassTable] = {}
        self.steps: dict[str, Route] = {}
        self.known: frozenset[str] = frozenset()
        if table is not None:
            self._fill(table, routes)

    def _fill(self, table: ClassTable, routes: Routes) -> None:
        slots = plan_of(table).slots
        self.known = frozenset(slots)
        for tag, slot in slots.items():
            if slot.kind != OBJECT or (self.node is not None and tag == self.node.attrs_tag):
                continue
            target: ClassTable = slot.target
            if routes.wanted(target):
                self.targets[tag] = target
            elif not is_object(target) and routes.leads(target):
                self.steps[tag] = routes.route(target)

    def knows(self, tag: str) -> bool:
        """Whether the class has a child element with this name, even if it leads to no object."""
        return tag in self.known


class Routes:
    """All routes to the objects that a reader wants."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self._routes: dict[ClassTable | None, Route] = {}
        self._leads: dict[ClassTable, bool] = {}
        self._guesses: dict[str, Route] = {}
        self._tags: dict[str, tuple[ClassTable | None, Route]] = {}

    def route(self, table: ClassTable | None) -> Route:
        """Return the route of a class. It is made at first use; classes may contain each other."""
        found = self._routes.get(table)
        if found is None:
            found = self._routes[table] = Route.__new__(Route)
            found.__init__(table, self)  # type: ignore[misc]
        return found

    def leads(self, table: ClassTable) -> bool:
        """Whether wanted objects can be below an element of a class."""
        known = self._leads.get(table)
        if known is not None:
            return known
        reached: set[ClassTable] = set()
        waiting = [table]
        while waiting:
            current = waiting.pop()
            if current in reached:
                continue
            reached.add(current)
            if self.wanted(current) or self._node_wanted(current):
                self._leads[table] = True
                return True
            if not is_object(current):
                waiting.extend(slot.target for slot in plan_of(current).slots.values() if slot.kind == OBJECT)
        self._leads[table] = False
        return False

    def _node_wanted(self, table: ClassTable) -> bool:
        node = node_of(table)
        return node is not None and self.wanted(node.attrs)

    def for_tag(self, tag: str) -> tuple[ClassTable | None, Route]:
        """Return class and route of an element by its own name, for a root or a child that its parent does not know."""
        found = self._tags.get(tag)
        if found is None:
            cls = find_element(tag)
            table = cls.__xml__ if cls is not None else None
            found = table, self.route(table)
            if len(self._tags) < _MOST_TAGS:
                self._tags[tag] = found
        return found

    def guess(self, tag: str) -> Route:
        """Return the route of an element that no stub knows, found by one of its children.

        The route is that of a class that has such a child element and leads to objects. If there are several such
        classes, they must agree on the class of the child. So an unknown response still gives the objects of known
        lists. `tag`: Clark name of the child.
        """
        if tag not in self._guesses:
            self._guesses[tag] = self._guessed(tag) or self.route(None)
        return self._guesses[tag]

    def _guessed(self, tag: str) -> Route | None:
        if find_element(tag) is not None:
            return None
        found: dict[ClassTable, Route] = {}
        for table in tables_of_namespace(split_clark(tag)[0]):
            slot = plan_of(table).slots.get(tag)
            if slot is not None and slot.kind == OBJECT and self.leads(table):
                route = self.route(table)
                if route.node is None and not is_object(table):
                    found[slot.target] = route
        return next(iter(found.values())) if len(found) == 1 else None

    def reachable(self, tag: str) -> set[ClassTable] | None:
        """Return the classes of the objects that a message can contain; None if no stub knows the element."""
        table, first = self.for_tag(tag)
        if table is None:
            return None
        found = {known for known in classes() if self.wanted(known)} if is_release1(tag) else set()
        seen: set[Route] = set()
        waiting = [first]
        while waiting:
            route = waiting.pop()
            if route in seen:
                continue
            seen.add(route)
            found.update(route.targets.values())
            if route.node is not None and self.wanted(route.node.attrs):
                found.add(route.node.attrs)
            waiting.extend(route.steps.values())
        return found


def actual_table(element: etree._Element, table: ClassTable, scopes: Scopes) -> ClassTable:
    """Return the class of an element: the declared class, or a derived class that its xsi:type names."""
    text = element.get(XSI_TYPE)
    if text is None:
        return table
    name = scopes.qname(str(text), element)
    found = find_type(name, table.module.root) if name is not None else None
    derived = getattr(found, "__xml__", None)
    return derived if isinstance(derived, ClassTable) and derived.is_a(table) else table


def find_objects(body: etree._Element, routes: Routes, unread: list[etree._Element] | None = None) -> list[Hit]:
    """Return the wanted objects of a SOAP body, in document order, an object before those inside it. Objects for which
    no stub has a class are added to `unread`."""
    search = _Search(routes, tells_unread=unread is not None)
    for child in body:
        search.visit(child, Above())
    if not search.found and any(is_release1(str(child.tag)) for child in body):
        search.unread.clear()
        for element, table in converted(body):
            if table is None:
                search.unread.append(element)
            elif routes.wanted(table):
                search.found.append(Hit(table, element, element))
            elif not is_object(table):
                search.below(element, routes.route(table), Above())
    if unread is not None:
        unread += search.unread
    return search.found


@dataclass(slots=True)
class Above:
    """The objects that contain an element: their full names, outermost first, and the types in the last steps."""

    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


class _Search:
    def __init__(self, routes: Routes, *, tells_unread: bool) -> None:
        self.found: list[Hit] = []
        self.unread: list[etree._Element] = []
        self._routes = routes
        self._tells_unread = tells_unread
        self._scopes = Scopes()

    def visit(self, element: etree._Element, above: Above) -> None:
        table, route = self._routes.for_tag(str(element.tag))
        if table is not None and self._routes.wanted(table):
            self.found.append(Hit(actual_table(element, table, self._scopes), element, element))
        elif table is None or not is_object(table):
            if self._tells_unread and table is None and looks_like_object(element):
                self.unread.append(element)
            self.below(element, route, above)

    def below(self, element: etree._Element, route: Route, above: Above) -> None:
        node = route.node
        if node is not None:
            hit = node_hit(element, node, above, self._scopes)
            if self._routes.wanted(hit.table):
                self.found.append(hit)
            above = above_of(hit, node, above)
        for child in element:
            tag = str(child.tag)
            known = route if route.table is not None else self._routes.guess(tag)
            target = known.targets.get(tag)
            if target is not None:
                self.found.append(Hit(actual_table(child, target, self._scopes), child, child))
                continue
            step = known.steps.get(tag)
            if step is not None:
                self.below(child, step, above)
            elif not known.knows(tag):
                self.visit(child, above)


def node_hit(element: etree._Element, node: Node, above: Above, scopes: Scopes) -> Hit:
    """Return the object of an inventory node with its name; `scopes` are those of the document."""
    attrs = element.find(node.attrs_tag)
    table = node.attrs if attrs is None else actual_table(attrs, node.attrs, scopes)
    name = given_name(attrs, table) if attrs is not None and len(attrs) else ""
    if not name:
        name = composed_name(element.findtext(node.name_tag) if node.name_tag else None, node, above)
    return Hit(table, attrs, element, name or None, list(above.names), node)


def above_of(hit: Hit, node: Node, above: Above) -> Above:
    """Return what is above the objects inside a node."""
    return Above((*above.names, hit.name or ""), (*above.types, node.rdn_type))


def composed_name(short: str | None, node: Node, above: Above) -> str:
    """Return the full name of a node that has only a short name; empty if it has none."""
    if not short:
        return ""
    step = f"{node.rdn_type}={escaped(short)}"
    for name, kind in zip(reversed(above.names), reversed(above.types), strict=True):
        if kind != node.rdn_type:
            return f"{name}/{step}" if name else step
    return step


def given_name(element: etree._Element, table: ClassTable) -> str:
    """Return the name among the attributes of an object as text; empty if it has none."""
    tag = name_tag(table)
    name = element.find(tag) if tag else None
    return "" if name is None else name_text(name)


@cache
def name_tag(table: ClassTable) -> str:
    """Return the Clark name of the element with the name of an object; empty if the class has none."""
    tags = [tag for tag, slot in plan_of(table).slots.items() if slot.field.local == "name" and slot.kind == OBJECT]
    return "".join(tags[:1])


def name_text(name: etree._Element) -> str:
    """Return a name as text, `MD=EMS1/ME=NE-7`; `/`, `=` and `%` in a part are written `%2F`, `%3D`, `%25`."""
    if len(name) and str(name[0].tag).endswith(_NM):  # of MTOSI 1.x: an element for each type
        fields = ((split_clark(str(part.tag))[1], part.text or "") for part in name)
        return "/".join(f"{kind}={escaped(value)}" for kind, value in attribute_parts(fields))
    return "/".join("=".join(escaped(text) for text in _rdn(rdn)) for rdn in name)


def _rdn(rdn: etree._Element) -> tuple[str, str]:
    texts: dict[str, Any] = {split_clark(str(part.tag))[1]: part.text for part in rdn}
    return str(texts.get("type") or ""), str(texts.get("value") or "")


def escaped(text: str) -> str:
    """Return a part of a name in its text form."""
    return text.translate(_ESCAPES) if _special(text) else text


def parents_of(name: str | None) -> list[str]:
    """Return the names of the objects that contain an object, taken from its own name, outermost first."""
    found: list[str] = []
    end = name.find("/") if name else -1
    while name and end >= 0:
        found.append(name[:end])
        end = name.find("/", end + 1)
    return found


@dataclass(slots=True)
class Relations:
    """The facts about an object that its inventory node has in addition to its attributes. `related`: names of other
    objects, by the name of the list that has them. `quality`: the indicator of quality: isSuspect, isDescendant,
    reason."""

    related: dict[str, list[str]] = field(default_factory=dict)
    quality: dict[str, Any] | None = None


_TRUTH: Final = {"true": True, "1": True, "false": False, "0": False}


def relations_of(hit: Hit) -> Relations:
    """Return the references and the quality of the object of a node; empty for flat objects."""
    relations = Relations()
    node = hit.layout
    if node is None:
        return relations
    for child in hit.start:
        tag = str(child.tag)
        reference = node.references.get(tag)
        if reference is not None:
            relations.related.setdefault(reference, []).extend(name_text(name) for name in child)
        elif tag == node.quality_tag:
            relations.quality = quality_of((split_clark(str(part.tag))[1], str(part.text or "")) for part in child)
    return relations


def quality_of(parts: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the indicator of quality, made from the local names and texts of its parts."""
    texts = {local: text.strip() for local, text in parts}
    return {
        "is_suspect": _TRUTH.get(texts.get("isSuspect", "")),
        "is_descendant": _TRUTH.get(texts.get("isDescendant", "")),
        "reason": texts.get("reason"),
    }


@dataclass(frozen=True, slots=True)
class Place:
    """The name of an object and of the objects that contain it. `name`: full name as text, `MD=EMS1/ME=NE-7`; None if
    the document does not give it. `parents`: full names of the objects that contain it, outermost first; an empty text
    for an object without a name."""

    name: str | None
    parents: tuple[str, ...]


def place_of(found: Placed[Any]) -> Place:
    """Return the full names of an object of a stream and of the objects that contain it.

    In the nested inventory layout `found` may be of the class of the node or of that of its attributes. The name is the
    one among the attributes; otherwise it is made from the short name and the name of the object above. A flat object
    has its full name among its attributes, and this name also gives those of its parents.
    """
    above = Above()
    nodes: list[Above] = []
    for around in found.above:
        node = _node(around.value.__xml__) if around.value is not None else None
        if around.value is not None and node is not None:
            nodes.append(above)
            own = found.value if around is found.above[-1] and found.tag == node.attrs_tag else None
            above = _inside(around.value, node, above, own)
    if found.above and above.names and _is_attributes(found):
        return Place(above.names[-1] or None, nodes[-1].names)
    node = _node(found.value.__xml__)
    if node is not None:
        return Place(_inside(found.value, node, above, None).names[-1] or None, above.names)
    name = _given(found.value) if is_object(found.value.__xml__) else ""
    return Place(name or None, above.names or tuple(parents_of(name)))


_node = cache(node_of)


def _is_attributes(found: Placed[Any]) -> bool:
    value = found.above[-1].value
    node = _node(value.__xml__) if value is not None else None
    return node is not None and found.tag == node.attrs_tag


def _inside(value: XmlObject, node: Node, above: Above, attributes: XmlObject | None) -> Above:
    """Return what is above the objects inside a node, by its attributes, which it may not have yet itself."""
    slots = plan_of(value.__xml__).slots
    attrs = attributes if attributes is not None else getattr(value, slots[node.attrs_tag].name)
    name = _given(attrs) if isinstance(attrs, XmlObject) else ""
    if not name and node.name_tag:
        short = getattr(value, slots[node.name_tag].name)
        name = composed_name(short if isinstance(short, str) else None, node, above)
    return Above((*above.names, name), (*above.types, node.rdn_type))


def _given(value: XmlObject) -> str:
    field = _name_field(value.__xml__)
    name = getattr(value, field) if field else None
    return str(name) if isinstance(name, DistinguishedNameMixin) else ""


@cache
def _name_field(table: ClassTable) -> str:
    return next((slot.name for slot in plan_of(table).slots.values() if slot.field.local == "name"), "")
