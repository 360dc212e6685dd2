"""Where the objects stand in the body of a message, for flat list responses and for the nested inventory layout.

From the table of a message's class follows, once for each class, which child elements lead to objects: a `Route`. A
search then touches no element that leads nowhere. Elements that no stub knows are searched all the same, so that an
unknown wrapper hides nothing.

In the nested layout an object is a node: its short name (`meNm`), its attributes (`meAttrs`), lists of nodes below it,
lists of references to other objects, and an indicator of quality. Its full name is the name among its attributes if it
is there, else that of the node above followed by its type and short name. A node of the type of the node above (a
holder in a holder) is named within the node above that one, since such short names are complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from lxml import etree

from mtosi_jms.inventory._objects import is_object, tables_of_namespace
from mtosi_jms.namespaces import split_clark
from mtosi_jms.xmlbind import XSI_TYPE, ClassTable, DistinguishedNameMixin, Scopes, find_element, find_type
from mtosi_jms.xmlbind.columns import OBJECT, Slot, plan_of

_ATTRS: Final = "Attrs"
_NM: Final = "Nm"
_ESCAPES: Final = str.maketrans({"%": "%25", "/": "%2F", "=": "%3D"})
_special = re.compile("[%/=]").search


@dataclass(frozen=True, slots=True)
class Node:
    """The class of an inventory node.

    Attributes:
        rdn_type: type in a name, from the short name's element (`meNm`: ME).
        name_tag: Clark name of the element of the short name, empty where there is none.
        attrs_tag: Clark name of the element of the attributes.
        attrs: class of the attributes.
        references: Clark names of lists of names to their Python names.
        quality_tag: Clark name of the indicator of quality, empty where there is none.
    """

    rdn_type: str
    name_tag: str
    attrs_tag: str
    attrs: ClassTable
    references: Mapping[str, str]
    quality_tag: str


@dataclass(slots=True, eq=False)
class Hit:
    """One object that was found.

    Attributes:
        table: its class.
        element: its attributes' element; None for a node of which only the name is given.
        start: the element whose line is the object's.
        name: full name as text, None where it cannot be known yet or at all; flat objects carry theirs inside.
        parents: full names of the objects around it, outermost first; None for flat objects.
        layout: the class of the inventory node, None for flat objects.
    """

    table: ClassTable
    element: etree._Element | None
    start: etree._Element
    name: str | None = None
    parents: list[str] | None = None
    layout: Node | None = None


def node_of(table: ClassTable) -> Node | None:
    """The node that a class is, None if it is none."""
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
    """Where the objects stand below an element of one class.

    Attributes:
        table: the class; None for elements that no stub knows.
        node: the inventory node that the class is, or None.
        steps: routes of the child elements that lead somewhere, by Clark name; None marks an object itself.
        targets: classes of the objects among the children, by Clark name.
        known: Clark names of the elements that the class has a place for.
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
        """Whether the class has a place for an element, also one that leads nowhere."""
        return tag in self.known


class Routes:
    """All routes to the objects that one reading wants."""

    def __init__(self, wanted: Wanted) -> None:
        """Prepare routes to the objects whose class `wanted` accepts."""
        self.wanted = wanted
        self._routes: dict[ClassTable | None, Route] = {}
        self._leads: dict[ClassTable, bool] = {}
        self._guesses: dict[str, Route] = {}

    def route(self, table: ClassTable | None) -> Route:
        """The route of a class, made at first use; classes may hold each other."""
        found = self._routes.get(table)
        if found is None:
            found = self._routes[table] = Route.__new__(Route)
            found.__init__(table, self)  # type: ignore[misc]
        return found

    def leads(self, table: ClassTable) -> bool:
        """Whether objects that are wanted can stand below an element of a class."""
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
        """The class and the route of an element that stands for itself or that its parent's class does not know."""
        cls = find_element(tag)
        table = cls.__xml__ if cls is not None else None
        return table, self.route(table)

    def guess(self, tag: str) -> Route:
        """The route of an element that no stub knows, by one of its children.

        It is that of the class which has a place for such a child and leads to objects, where there is one such class
        or several that agree on the child; so a response that is not in the stubs gives the objects of lists that are.
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
        """The classes of the objects that a message can hold; None for an element that no stub knows."""
        table, first = self.for_tag(tag)
        if table is None:
            return None
        found: set[ClassTable] = set()
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
    """The class of an element, which xsi:type may narrow.

    Args:
        element: the element.
        table: its declared class.
        scopes: of its document.
    """
    text = element.get(XSI_TYPE)
    if text is None:
        return table
    name = scopes.qname(str(text), element)
    found = find_type(name, table.module.root) if name is not None else None
    derived = getattr(found, "__xml__", None)
    return derived if isinstance(derived, ClassTable) and derived.is_a(table) else table


def find_objects(body: etree._Element, routes: Routes) -> list[Hit]:
    """The objects that are wanted in a SOAP body, in document order, an object before those inside it."""
    found: list[Hit] = []
    scopes = Scopes()
    for child in body:
        _visit(child, routes, Above(), found, scopes)
    return found


@dataclass(slots=True)
class Above:
    """The objects around an element: their full names, outermost first, and the types of those names' last parts."""

    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


def _visit(element: etree._Element, routes: Routes, above: Above, found: list[Hit], scopes: Scopes) -> None:
    """Search one element that no route of its parent names."""
    table, route = routes.for_tag(str(element.tag))
    if table is not None and routes.wanted(table):
        found.append(Hit(actual_table(element, table, scopes), element, element))
    elif table is None or not is_object(table):
        _below(element, route, routes, above, found, scopes)


def _below(
    element: etree._Element, route: Route, routes: Routes, above: Above, found: list[Hit], scopes: Scopes
) -> None:
    """Search below an element."""
    node = route.node
    if node is not None:
        hit = node_hit(element, node, above, scopes)
        if routes.wanted(hit.table):
            found.append(hit)
        above = above_of(hit, node, above)
    for child in element:
        tag = str(child.tag)
        known = route if route.table is not None else routes.guess(tag)
        target = known.targets.get(tag)
        if target is not None:
            found.append(Hit(actual_table(child, target, scopes), child, child))
            continue
        step = known.steps.get(tag)
        if step is not None:
            _below(child, step, routes, above, found, scopes)
        elif not known.knows(tag):
            _visit(child, routes, above, found, scopes)


def node_hit(element: etree._Element, node: Node, above: Above, scopes: Scopes) -> Hit:
    """The object of an inventory node, named; `scopes` are those of the document."""
    attrs = element.find(node.attrs_tag)
    table = node.attrs if attrs is None else actual_table(attrs, node.attrs, scopes)
    name = given_name(attrs, table) if attrs is not None and len(attrs) else ""
    if not name:
        name = composed_name(element.findtext(node.name_tag) if node.name_tag else None, node, above)
    return Hit(table, attrs, element, name or None, list(above.names), node)


def above_of(hit: Hit, node: Node, above: Above) -> Above:
    """What stands above the objects inside a node."""
    return Above((*above.names, hit.name or ""), (*above.types, node.rdn_type))


def composed_name(short: str | None, node: Node, above: Above) -> str:
    """The name of a node that gives only its short name, empty where it gives none."""
    if not short:
        return ""
    step = f"{node.rdn_type}={escaped(short)}"
    for name, kind in zip(reversed(above.names), reversed(above.types), strict=True):
        if kind != node.rdn_type:
            return f"{name}/{step}" if name else step
    return step


def given_name(element: etree._Element, table: ClassTable) -> str:
    """The text form of an object's own name, empty where it has none."""
    tag = name_tag(table)
    name = element.find(tag) if tag else None
    return "" if name is None else name_text(name)


@cache
def name_tag(table: ClassTable) -> str:
    """Clark name of the element of an object's name, empty where the class has none."""
    tags = [tag for tag, slot in plan_of(table).slots.items() if slot.field.local == "name" and slot.kind == OBJECT]
    return "".join(tags[:1])


def name_text(name: etree._Element) -> str:
    """A name as text, `MD=EMS1/ME=NE-7`, with `/`, `=` and `%` in a part written `%2F`, `%3D`, `%25`."""
    return "/".join("=".join(escaped(text) for text in _rdn(rdn)) for rdn in name)


def _rdn(rdn: etree._Element) -> tuple[str, str]:
    texts: dict[str, Any] = {split_clark(str(part.tag))[1]: part.text for part in rdn}
    return str(texts.get("type") or ""), str(texts.get("value") or "")


def escaped(text: str) -> str:
    """A part of a name as its text form writes it."""
    return text.translate(_ESCAPES) if _special(text) else text


def parents_of(name: str | None) -> list[str]:
    """The names around a name: its beginnings, outermost first."""
    found: list[str] = []
    end = name.find("/") if name else -1
    while name and end >= 0:
        found.append(name[:end])
        end = name.find("/", end + 1)
    return found


@dataclass(slots=True)
class Relations:
    """What an inventory node says of an object besides its attributes.

    Attributes:
        related: names of other objects, by the name of the list that holds them.
        quality: the indicator of quality: isSuspect, isDescendant, reason.
    """

    related: dict[str, list[str]] = field(default_factory=dict)
    quality: dict[str, Any] | None = None


_TRUTH: Final = {"true": True, "1": True, "false": False, "0": False}


def relations_of(hit: Hit) -> Relations:
    """The references and the quality of a node's object; nothing for flat objects."""
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
    """The indicator of quality, from local names and texts of its parts."""
    texts = {local: text.strip() for local, text in parts}
    return {
        "is_suspect": _TRUTH.get(texts.get("isSuspect", "")),
        "is_descendant": _TRUTH.get(texts.get("isDescendant", "")),
        "reason": texts.get("reason"),
    }
