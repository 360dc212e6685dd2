"""Attributes in life cycle events: the object of a creation, and the new values of a change."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from lxml import etree

from mtosi_jms.inventory import is_object, type_class
from mtosi_jms.xmlbind import RawXml, XmlObject, decode, to_element
from mtosi_jms.xmlbind.values import Extras

_NEVER = frozenset({"name", "extras"})
"""A name does not change while the object lives; what is kept out of band is merged by itself."""


def created_object(event: Any) -> XmlObject | None:
    """The object that a creation event brings, as an instance of the class of its type; None where it brings none.

    The element of an object has a class of its own, `Me`; objects of answers are instances of `ManagedElementType`, and
    so are those of a snapshot.
    """
    for found in _inside(getattr(event, "object", None)):
        if isinstance(found, XmlObject) and is_object(found.__xml__):
            return _as(type_class(found.__xml__).cls, found)
    return None


def told_values(before: XmlObject, event: Any) -> tuple[dict[str, Any], list[str]]:
    """The attributes that an event tells, with their values, and what of the event is none of the object's.

    The event brings an object with just these attributes, or the attributes themselves. A nil value says that the
    attribute is empty now, and stays nil; an attribute that is not told stays as it was.

    Args:
        before: the object as it is known.
        event: an attribute value change or state change.
    """
    values: dict[str, Any] = {}
    strange: list[str] = []
    for told in _inside(getattr(event, "attribute_list", None)):
        holder = told if isinstance(told, XmlObject) and is_object(told.__xml__) else _alone(type(before), told)
        fields = {field.name for field in dataclasses.fields(before)}
        for name, value in _told(holder):
            if name in fields:
                values[name] = value
            else:
                strange.append(name)
        strange += [raw.tag for raw in holder.unknown_elements()]
    return values, strange


def replaced(before: XmlObject, values: Mapping[str, Any]) -> XmlObject:
    """The object with new values; how its old ones were written is forgotten for those."""
    after: XmlObject = dataclasses.replace(before, **values)
    if after.extras is not None:
        leaves = {place: leaf for place, leaf in after.extras.leaves.items() if place[0] not in values}
        after.extras = dataclasses.replace(after.extras, leaves=leaves)
    return after


def _inside(holder: Any) -> Iterator[XmlObject | RawXml]:
    """What the wildcard of a list holds, and what stands beside it."""
    if isinstance(holder, XmlObject):
        yield from getattr(holder, "any_", ())
        yield from holder.unknown_elements()


def _told(holder: XmlObject) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(holder):
        value = getattr(holder, field.name)
        if field.name not in _NEVER and value is not None and value != []:
            yield field.name, value


def _alone(cls: type[XmlObject], told: XmlObject | RawXml) -> XmlObject:
    """An attribute that stands by itself, read as the only one of an object of the class."""
    holder = etree.Element("attributes")
    holder.append(told.element() if isinstance(told, RawXml) else to_element(told))
    made: XmlObject = decode(etree.tostring(holder), cls)
    return made


def _as(cls: type[XmlObject], found: XmlObject) -> XmlObject:
    values = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    extras = values.pop("extras", None)
    made = cls(**values)
    made.extras = dataclasses.replace(extras, element="") if isinstance(extras, Extras) else None
    return made
