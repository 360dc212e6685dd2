"""Notifications: Figure 10 of the specification, then seven selectors.

Run it: python examples/e04_notifications.py
"""

from __future__ import annotations

import datetime as dt

import mtosi_jms as mtosi
from mtosi_jms.binding.profile import FILTER_ATTRIBUTES
from mtosi_jms.binding.selector import P
from mtosi_jms.notifications import Snapshot, SystemProfile, apply_notification
from mtosi_jms.simulator import Network
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nra.com import AcknowledgeIndicationType, PerceivedSeverityType
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType, ProbableCauseType
from mtosi_jms.stubs.nrb.lay import LayerRateEnumType, LayerRateType
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrb.rscodel import ResourceObjectDeletion
from mtosi_jms.transport import Connection

NAMES = {"jms/InventoryTopic": "topic:INVENTORY", "jms/FaultTopic": "topic:FAULT"}
TOPICS = {"Inventory": "jms/InventoryTopic", "Fault": "jms/FaultTopic"}

# One for all publishers of the system, so that each selector works for all of them.
SYSTEM = SystemProfile(
    binding=mtosi.BindingProfile(
        topic_routing="figure10",
        filter_properties=FILTER_ATTRIBUTES,
        time_form="millis",  # selectors can compare times as numbers
    )
)
NOON = dt.datetime(2026, 5, 4, 12, 0, tzinfo=dt.UTC)

SELECTORS = {
    "severity": P.perceivedSeverity == "CRITICAL",
    "event type": P.EventType == "AlarmInformation",
    "name prefix": P.objectName.startswith("MD=EMS1/ME=NE-1/"),
    "layer rate": P.layerRate == "LR_Ethernet",
    "boolean": P.isEdgePointRelated == True,  # noqa: E712 - the condition of a selector, not of Python
    "number": P.osTime >= int((NOON + dt.timedelta(minutes=3)).timestamp() * 1000),
    "types": P.EventType.in_("ObjectCreation", "ObjectDeletion"),
}


def alarm(port: str, severity: str, layer: str, *, edge: bool = False) -> Alarm:
    """An alarm on a port."""
    return Alarm(
        object_type="PTP",
        object_name=name(f"MD=EMS1/{port}"),
        is_edge_point_related=edge,
        layer_rate=LayerRateType(value=LayerRateEnumType(layer)),
        probable_cause=ProbableCauseType(probable_cause=ProbableCauseEnumType.LOS),
        perceived_severity=PerceivedSeverityType(severity),
        acknowledge_indication=AcknowledgeIndicationType.UNACKNOWLEDGED,
    )


EVENTS = [
    ResourceObjectCreation(object_type="ME", object_name=name("MD=EMS1/ME=NE-9")),
    ResourceObjectDeletion(object_type="ME", object_name=name("MD=EMS1/ME=NE-8")),
    alarm("ME=NE-1/PTP=1", "CRITICAL", "LR_Ethernet", edge=True),
    alarm("ME=NE-1/PTP=2", "MINOR", "LR_Optical_Channel"),
    alarm("ME=NE-11/PTP=1", "CLEARED", "LR_Ethernet"),
]
for minute, event in enumerate(EVENTS):
    event.os_time = NOON + dt.timedelta(minutes=minute)


def figure_10(connection: Connection) -> None:
    """One OS publishes on two topics; two OSs subscribe to both."""
    listening = {
        f"{system} on {topic}": mtosi.Subscriber(connection, topic, timeout=0)
        for system in ("first OS", "second OS")
        for topic in TOPICS.values()
    }
    with mtosi.Publisher(connection, TOPICS, sender_uri="jms/EmsOS", system=SYSTEM) as publisher:
        publisher.publish_all([EVENTS[0], EVENTS[2]])
    for who, subscriber in listening.items():
        print(who, "got", *(type(event).__name__ for event, _, _ in subscriber))


def selected(connection: Connection) -> None:
    """The same five events, selected in seven ways."""
    found = {
        what: [
            mtosi.Subscriber(connection, topic, selector=condition, profile=SYSTEM.binding, timeout=0)
            for topic in TOPICS.values()
        ]
        for what, condition in SELECTORS.items()
    }
    with mtosi.Publisher(connection, TOPICS, sender_uri="jms/EmsOS", system=SYSTEM) as publisher:
        publisher.publish_all(EVENTS)
    for what, subscribers in found.items():
        messages = [received.message for subscriber in subscribers for received in subscriber]
        names = [str(message.properties["MTOSI_objectName"]) for message in messages]
        print(f"{what}: {SELECTORS[what]}: {', '.join(one.removeprefix('MD=EMS1/') for one in names)}")


def followed(connection: Connection) -> None:
    """A picture of a network, kept current by its events."""
    network = Network(elements=5)
    snapshot = Snapshot(network.objects())
    subscriber = mtosi.Subscriber(connection, "jms/InventoryTopic", timeout=0)
    with mtosi.Publisher(connection, TOPICS, sender_uri="jms/EmsOS", system=SYSTEM) as publisher:
        publisher.publish_all(network.events(100), category="Inventory")
    changed = sum(len(apply_notification(snapshot, received.event).changes) for received in subscriber)
    print("changes:", changed, "as the network is now:", dict(snapshot) == network.after(network.events(100)))


def main() -> None:
    """Run the three."""
    with mtosi.connect("memory:e04", names=NAMES) as connection:
        figure_10(connection)
        selected(connection)
        followed(connection)


if __name__ == "__main__":
    main()
