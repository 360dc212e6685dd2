"""The inventory objects and events in a message, by type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lxml import etree

from mtosi_jms.inventory import Hit, Routes, find_objects, given_name, is_object, label_of, name_text
from mtosi_jms.jms.events import events_of, logical_name
from mtosi_jms.namespaces import split_clark
from mtosi_jms.xmlbind import RawXml


@dataclass(slots=True)
class Group:
    """Objects or events of one type.

    Attributes:
        type: ME, PTP, ...; for events their logical name.
        count: how many there are.
        named: how many of them have a name.
        names: the first few names, as `MD=EMS1/ME=NE-7`.
    """

    type: str
    count: int = 0
    named: int = 0
    names: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """The group as plain values."""
        return {"type": self.type, "count": self.count, "names": self.names}


def objects_in(body: etree._Element, names: int) -> list[Group]:
    """The inventory objects among the descendants of an element, by type.

    Args:
        body: a SOAP Body, or any element around messages.
        names: how many names to keep of each type.
    """
    return _groups(map(_object, find_objects(body, Routes(is_object))), names)


def events_in(notify: etree._Element, names: int) -> list[Group]:
    """The events in a notify element, by type."""
    return _groups(map(_event, events_of(RawXml.from_element(notify))), names)


def _object(hit: Hit) -> tuple[str, str]:
    name = hit.name or (given_name(hit.element, hit.table) if hit.element is not None else "")
    return label_of(hit.table), name


def _event(event: etree._Element) -> tuple[str, str]:
    kind, name = split_clark(str(event.tag))[1], ""
    for child in event:
        if split_clark(str(child.tag))[1] == "objectName":
            name = name_text(child)
    return logical_name(kind), name


def _groups(items: Iterable[tuple[str, str]], names: int) -> list[Group]:
    """Items by type, in the order of first appearance."""
    groups: dict[str, Group] = {}
    for kind, name in items:
        group = groups.setdefault(kind, Group(kind))
        group.count += 1
        if name:
            group.named += 1
            if len(group.names) < names:
                group.names.append(name)
    return list(groups.values())
