"""Mapping alarms of MTNM to MTOSI and publishing them.

No other Python library does the same work. The limits show each half alone.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

from measure import Comparison, Side, compare

import mtosi_jms as mtosi
from mtosi_jms.bridge.events import Any, Member, Property, StructuredEvent, TCKind, TypeCode
from mtosi_jms.bridge.mtnm import notification_of, publish
from mtosi_jms.notifications import Publisher

ALARMS = 1_000
NAMES = {"jms/FaultTopic": "topic:FAULT"}
IDL = "IDL:mtnm.tmforum.org"
STRING = TypeCode.of(TCKind.string)
STEP = TypeCode.struct(
    f"{IDL}/globaldefs/NameAndStringValue_T:1.0", "NameAndStringValue_T", (("name", STRING), ("value", STRING))
)
NAME = TypeCode.alias(f"{IDL}/globaldefs/NamingAttributes_T:1.0", "NamingAttributes_T", TypeCode.sequence(STEP))


def mtnm(*, quick: bool) -> Comparison:
    """Alarms with twelve properties, mapped and published over memory:, in one thread."""
    events = [alarm(number) for number in range(ALARMS // 10 if quick else ALARMS)]
    mapped = [notification_of(event) for event in events]
    with ExitStack() as stack:
        connection = stack.enter_context(mtosi.connect("memory:mapping", names=NAMES))
        publisher = stack.enter_context(Publisher(connection, {"Fault": "jms/FaultTopic"}, sender_uri="E"))

        def whole() -> int:
            return sum(len(publish(publisher, notification_of(event))) for event in events)

        def mapping() -> int:
            return sum(not notification_of(event).refused for event in events)

        def publishing() -> int:
            return sum(bool(publisher.publish(one.notification)) for one in mapped)

        sides = [
            Side("mapping and publishing", "ours", whole),
            Side("mapping alone", "limit", mapping),
            Side("publishing alone", "limit", publishing),
        ]
        title = "alarms of MTNM, twelve properties each, to notifications over memory:"
        found = compare("mtnm", title, "alarms", sides, rounds=3 if quick else 7)
        started = time.process_time()
        done = mapping()
        found.notes.append(f"mapping alone: {done / (time.process_time() - started):,.0f} alarms a CPU second")
    return found


def enumeration(name: str, *members: str) -> TypeCode:
    """Return the type of an enumeration of MTNM."""
    return TypeCode(TCKind.enum, f"{IDL}/notifications/{name}:1.0", name, tuple(Member(one) for one in members))


SEVERITY = enumeration("PerceivedSeverity_T", "PS_INDETERMINATE", "PS_CRITICAL", "PS_MAJOR", "PS_MINOR")
AFFECTING = enumeration("ServiceAffecting_T", "SA_UNKNOWN", "SA_SERVICE_AFFECTING", "SA_NON_SERVICE_AFFECTING")
OBJECT_TYPE = enumeration("ObjectType_T", "OT_EMS", "OT_MANAGED_ELEMENT", "OT_PHYSICAL_TERMINATION_POINT")


def alarm(number: int) -> StructuredEvent:
    """Return an alarm of a port; each number gives another one."""
    port = f"/rack=1/shelf=1/slot={number % 20}/domain=sdh/port=1"
    values = {
        "notificationId": Any(STRING, str(number)),
        "objectName": Any(NAME, (("EMS", "V/EMS1"), ("ManagedElement", str(number % 100)), ("PTP", port))),
        "nativeEMSName": Any(STRING, f"NE-{number % 100} slot {number % 20}"),
        "objectType": Any(OBJECT_TYPE, "OT_PHYSICAL_TERMINATION_POINT"),
        "emsTime": Any(STRING, "20140725140203.0+0800"),
        "neTime": Any(STRING, "20140725140201.0+0800"),
        "isClearable": Any(TypeCode.of(TCKind.boolean), True),
        "layerRate": Any(TypeCode.of(TCKind.short), 20),
        "probableCause": Any(STRING, "LOS"),
        "nativeProbableCause": Any(STRING, "R_LOS"),
        "perceivedSeverity": Any(SEVERITY, "PS_MAJOR"),
        "serviceAffecting": Any(AFFECTING, "SA_SERVICE_AFFECTING"),
    }
    return StructuredEvent("tmf_mtnm", "NT_ALARM", "", (), tuple(Property(*one) for one in values.items()))
