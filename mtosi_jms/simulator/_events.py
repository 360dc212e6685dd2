"""Events about objects: makes them, reads objects from them, and finds the alarms that are active after them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Final

from mtosi_jms.notifications import alarm_key as identity_of
from mtosi_jms.simulator._parts import Resource
from mtosi_jms.stubs.fmw.cei import CommonEventInformationType
from mtosi_jms.stubs.fmw.gen import AnyListType
from mtosi_jms.stubs.nra.alm import AlarmType
from mtosi_jms.stubs.nra.com import PerceivedSeverityType
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrf.eq import Eq, EquipmentType
from mtosi_jms.stubs.nrf.me import ManagedElementType, Me
from mtosi_jms.stubs.nrf.ptp import PhysicalTerminationPointType, Ptp
from mtosi_jms.stubs.nrf.tl import Tl, TopologicalLinkType
from mtosi_jms.xmlbind import Nil

_ELEMENTS: Final[dict[type[Resource], tuple[str, type[Resource]]]] = {
    ManagedElementType: ("ME", Me),
    EquipmentType: ("EQ", Eq),
    PhysicalTerminationPointType: ("PTP", Ptp),
    TopologicalLinkType: ("TL", Tl),
}
"""For each class of object: the name of its type, and the class of its element, which events carry."""


def about(found: Resource) -> dict[str, Any]:
    """The fields of an event that identify its object."""
    return {"object_type": _ELEMENTS[type(found)][0], "object_name": found.name}


def creation(found: Resource) -> ResourceObjectCreation:
    """The event that an object is new."""
    whole = element_class(found)(**{field.name: getattr(found, field.name) for field in dataclasses.fields(found)})
    return ResourceObjectCreation(**about(found), object=AnyListType(any_=[whole]))


def element_class(found: Resource) -> type[Resource]:
    return _ELEMENTS[type(found)][1]


def created(event: ResourceObjectCreation) -> Resource:
    """The new object, as an instance of the class of its type."""
    (whole,) = event.object.any_ if event.object is not None else (None,)
    cls = next(parent for parent in type(whole).__mro__ if parent in _ELEMENTS)
    return cls(**{field.name: getattr(whole, field.name) for field in dataclasses.fields(cls)})


def new_values(changed: Any) -> dict[str, Any]:
    """The attributes that an event sets, and those that it removes."""
    new = {field.name: getattr(changed, field.name) for field in dataclasses.fields(changed) if field.name != "extras"}
    return {name: None if isinstance(value, Nil) else value for name, value in new.items() if value not in (None, [])}


def alarm_key(alarm: AlarmType) -> str:
    """The identity of an alarm, as text; see `mtosi_jms.notifications.AlarmKey`."""
    return " ".join(str(part) for part in identity_of(alarm) or () if part)


def standing_alarms(events: Iterable[CommonEventInformationType]) -> dict[str, AlarmType]:
    """The alarms that are active after the events, by identity, in the order in which they were raised."""
    found: dict[str, AlarmType] = {}
    for event in events:
        if isinstance(event, AlarmType):
            found.pop(alarm_key(event), None)
            if event.perceived_severity is not PerceivedSeverityType.CLEARED:
                found[alarm_key(event)] = event
    return found
