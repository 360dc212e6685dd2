"""The full names of objects in a stream, and of the objects that contain them.

    for found in iter_placed("inventory.xml.gz", ConnectionTerminationPointType):
        place = place_of(found)
        print(place.name, place.parents)

prints `MD=EMS1/ME=NE-7/PTP=p1/CTP=1` with `("MD=EMS1", "MD=EMS1/ME=NE-7", "MD=EMS1/ME=NE-7/PTP=p1")`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from mtosi_jms.inventory._layout import Above, Node, composed_name, node_of, parents_of
from mtosi_jms.inventory._objects import is_object
from mtosi_jms.xmlbind import ClassTable, DistinguishedNameMixin, Placed, XmlObject
from mtosi_jms.xmlbind.columns import plan_of


@dataclass(frozen=True, slots=True)
class Place:
    """The name of an object and of the objects that contain it.

    Attributes:
        name: full name as text, `MD=EMS1/ME=NE-7`; None if the document does not give it.
        parents: full names of the objects that contain it, outermost first; an empty text for an object without a name.
    """

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
    """Whether an object is the attributes of the node directly above it."""
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
    """Return the name among the attributes of an object as text; empty if it has none."""
    field = _name_field(value.__xml__)
    name = getattr(value, field) if field else None
    return str(name) if isinstance(name, DistinguishedNameMixin) else ""


@cache
def _name_field(table: ClassTable) -> str:
    """Return the field with the name of an object; empty if the class has none."""
    return next((slot.name for slot in plan_of(table).slots.values() if slot.field.local == "name"), "")
