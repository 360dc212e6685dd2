"""The inventory objects and events in a message, by type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from lxml import etree

from mtosi_jms.binding.events import events_of, logical_name
from mtosi_jms.binding.release1 import fields_of
from mtosi_jms.inventory import Hit, Routes, find_objects, given_name, is_object, label_of, name_text
from mtosi_jms.namespaces import local_name
from mtosi_jms.xmlbind import RawXml

_NAMES: Final = ("objectName", "name", "aliasName", "id")
"""Elements with the name of an item of a list, the best first."""
_DEEP: Final = 3


@dataclass(slots=True)
class Group:
    """Objects or events of one type.

    Attributes:
        type: ME, PTP, ...; for events their logical name.
        names: the first few names, as `MD=EMS1/ME=NE-7`.
    """

    type: str
    count: int = 0
    named: int = 0
    names: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        return {"type": self.type, "count": self.count, "names": self.names}


def objects_in(body: etree._Element, names: int) -> list[Group]:
    return _groups(map(_object, find_objects(body, Routes(is_object))), names)


def listed_in(response: etree._Element, depth: int, names: int) -> list[Group]:
    """The inventory objects in a response; where what it lists is not of that kind, its items by element.

    Args:
        response: the response; it gets a parent for the time of the call.
        depth: how many elements lead from it to an item of its list; 0 if that is not known.
    """
    around = etree.Element("body")
    around.append(response)
    hits = find_objects(around, Routes(is_object))
    items = _items(response, depth)
    inventory = {one for hit in hits for one in (hit.start, *hit.start.iterancestors())}
    of_1x = bool(hits) and around not in inventory  # they were translated, into a tree of their own
    found = map(_object, hits) if of_1x or (hits and inventory.issuperset(items)) else map(_item, items)
    groups = _groups(found, names)
    around.remove(response)
    return groups


def _items(response: etree._Element, depth: int) -> list[etree._Element]:
    """The elements that a response lists. Without a depth: elements of one name, as deep as there is only one name."""
    level = list(_inside([response]))
    for _ in range(depth - 1 if depth else _DEEP):
        below = list(_inside(level))
        if not depth and (len({one.tag for one in below}) != 1 or any(map(_is_rdn, below))):
            break
        level = below
    return level


def _inside(level: Iterable[etree._Element]) -> Iterator[etree._Element]:
    for element in level:
        yield from (one for one in element.iterchildren("*") if local_name(one) != "vendorExtensions")


def _item(element: etree._Element) -> tuple[str, str]:
    """An item of a list by its element, with its own name or that of its object, else the first text in it."""
    children = list(element.iterchildren("*"))
    named = [one for wanted in _NAMES for one in children if local_name(one) == wanted]
    name = element if any(map(_is_rdn, children)) else named[0] if named else None
    if name is not None and any(map(_is_rdn, name.iterchildren("*"))):
        return local_name(element), name_text(name)
    texts = (str(text).strip() for text in (element if name is None else name).itertext())
    return local_name(element), next(filter(None, texts), "")


def _is_rdn(element: etree._Element) -> bool:
    return local_name(element) == "rdn"


def events_in(notify: etree._Element, names: int) -> list[Group]:
    return _groups(map(_event, events_of(RawXml.from_element(notify))), names)


def _object(hit: Hit) -> tuple[str, str]:
    name = hit.name or (given_name(hit.element, hit.table) if hit.element is not None else "")
    return label_of(hit.table), name


def _event(event: etree._Element) -> tuple[str, str]:
    name = fields_of(event).get("objectName")
    return logical_name(local_name(event)), "" if name is None else name_text(name)


def _groups(items: Iterable[tuple[str, str]], names: int) -> list[Group]:
    groups: dict[str, Group] = {}
    for kind, name in items:
        group = groups.setdefault(kind, Group(kind))
        group.count += 1
        if name:
            group.named += 1
            if len(group.names) < names:
                group.names.append(name)
    return list(groups.values())
