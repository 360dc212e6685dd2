"""Events of MTOSI 1.x in the terms of 2.x: their fields and words, as data.

An event of 1.x is a child of `notify/message`, as in 2.x. It has what all events about an object have in an element of
its own, `eventInfo`. Whoever reads events takes their fields from here, so one reading is enough for both releases.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from lxml import etree

from mtosi_jms.namespaces import split_clark
from mtosi_jms.xmlbind import ClassTable, XmlObject

__all__ = ["EVENT_INFO", "FIELDS", "SEVERITIES", "WORDS", "fields_of", "value_of", "word"]

EVENT_INFO: Final = "eventInfo"
"""The element with the fields that all events about an object have."""
FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "X733_BackUpObject": "X733_BackUpObjectRef",
        "X733_CorrelatedNotifications": "X733_CorrelatedNotificationList",
        "X733_ProposedRepairActions": "X733_ProposedRepairActionList",
        "affectedTPList": "affectedPtpRefList",
        "edgePointRelated": "isEdgePointRelated",
        "firstEvenlLostNotificationId": "firstEventLostNotificationId",
        "neTime": "sourceTime",
        "rcaiIndicator": "rootCauseAlarmIndication",
    }
)
"""The fields of events in 2.x by their names in 1.x; fields with one name in both are not here."""
SEVERITIES: Final = ("INDETERMINATE", "CRITICAL", "MAJOR", "MINOR", "WARNING", "CLEARED")
"""The values of perceivedSeverity; the index of each is its number in MTOSI 1.x (C26)."""
WORDS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "perceivedSeverity": {f"PS_{severity}": severity for severity in SEVERITIES},
        "serviceAffecting": {
            "SA_UNKNOWN": "UNKNOWN",
            "SA_SERVICE_AFFECTING": "SERVICE_AFFECTING",
            "SA_NON_SERVICE_AFFECTING": "NON_SERVICE_AFFECTING",
        },
        "acknowledgeIndication": {
            "AI_EVENT_ACKNOWLEDGED": "ACKNOWLEDGED",
            "AI_EVENT_UNACKNOWLEDGED": "UNACKNOWLEDGED",
            "AI_NA": "NOT_APPLICABLE",
        },
        "objectType": {
            "OT_OS": "OS",
            "OT_MANAGEMENT_DOMAIN": "MD",
            "OT_MANAGED_ELEMENT": "ME",
            "OT_MULTILAYER_SUBNETWORK": "MLSN",
            "OT_TOPOLOGICAL_LINK": "TL",
            "OT_SUBNETWORK_CONNECTION": "SNC",
            "OT_PHYSICAL_TERMINATION_POINT": "PTP",
            "OT_CONNECTION_TERMINATION_POINT": "CTP",
            "OT_TERMINATION_POINT_POOL": "TPPOOL",
            "OT_EQUIPMENT_HOLDER": "EH",
            "OT_EQUIPMENT": "EQ",
            "OT_PROTECTION_GROUP": "PG",
            "OT_EPROTECTION_GROUP": "EPG",
            "OT_TRANSMISSION_DESCRIPTOR": "TMD",
            "OT_AID": "AID",
        },
    }
)
"""The words of 2.x by those of 1.x, by the field in 2.x. Words of vendors, and OT_VENDOR_OBJECT, have none."""


def word(field: str, text: str) -> str:
    """Return the word of 2.x for the text of a field; the text itself where there is none."""
    return WORDS[field].get(text, text) if field in WORDS else text


def fields_of(event: etree._Element) -> dict[str, etree._Element]:
    """Return the elements of an event by the names of their fields in 2.x; of several with one name, the first."""
    found: dict[str, etree._Element] = {}
    for child in event:
        if isinstance(child.tag, str):
            local = split_clark(child.tag)[1]
            found.setdefault(FIELDS.get(local, local), child)
    info = found.pop(EVENT_INFO, None)
    return found if info is None else {**fields_of(info), **found}


def value_of(event: object, field: str) -> Any:
    """Return the value of a field of an event of any release; None for one that it lacks, and for anything else."""
    found: Any = event
    for name in _path(event.__xml__, field) if isinstance(event, XmlObject) else ("",):
        found = getattr(found, name, None)
    return found


@lru_cache(1024)
def _path(table: ClassTable, field: str) -> tuple[str, ...]:
    """Return the Python names that lead to a field from an object of a class; one that leads nowhere if it has none."""
    info = ""
    for one in table.fields:
        if one.kind == "element" and FIELDS.get(one.local, one.local) == field:
            return (one.name,)
        if one.local == EVENT_INFO:
            info = one.name
    return (info, *_path(table.field(info).table(), field)) if info else ("",)
