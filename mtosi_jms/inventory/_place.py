"""Full names for objects of a stream, and of the objects around them.

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
    """Which object something is, and inside which others it stands.

    Attributes:
        name: full name as text, `MD=EMS1/ME=NE-7`; None where the document does not say it.
        parents: full names of the objects around it, outermost first; an empty text for one that is not named.
    """

    name: str | None
    parents: tuple[str, ...]


def place_of(found: Placed[Any]) -> Place:
    """The full name of an object of a stream, and those of the objects around it.

    In the nested inventory layout the object may be asked for by the class of its node or by that of its attributes;
    its name is the one among the attributes, else it is made of its short name and the name of the object around it. A
    flat object carries its full name, and with it those of its parents.

    Args:
        found: what `mtosi_jms.xmlbind.iter_placed` gave.
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
    """Whether an object is the attributes of the node right above it."""
    value = found.above[-1].value
    node = _node(value.__xml__) if value is not None else None
    return node is not None and found.tag == node.attrs_tag


def _inside(value: XmlObject, node: Node, above: Above, attributes: XmlObject | None) -> Above:
    """What stands above the objects inside a node.

    Args:
        value: the node.
        node: what its class says.
        above: what stands above it.
        attributes: its attributes, where the node itself does not have them yet.
    """
    slots = plan_of(value.__xml__).slots
    attrs = attributes if attributes is not None else getattr(value, slots[node.attrs_tag].name)
    name = _given(attrs) if isinstance(attrs, XmlObject) else ""
    if not name and node.name_tag:
        short = getattr(value, slots[node.name_tag].name)
        name = composed_name(short if isinstance(short, str) else None, node, above)
    return Above((*above.names, name), (*above.types, node.rdn_type))


def _given(value: XmlObject) -> str:
    """The text form of an object's own name, empty where it has none."""
    field = _name_field(value.__xml__)
    name = getattr(value, field) if field else None
    return str(name) if isinstance(name, DistinguishedNameMixin) else ""


@cache
def _name_field(table: ClassTable) -> str:
    """The field of an object's name, empty where the class has none."""
    return next((slot.name for slot in plan_of(table).slots.values() if slot.field.local == "name"), "")
