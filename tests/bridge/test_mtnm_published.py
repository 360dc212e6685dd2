"""Notifications made of MTNM's events pass the publisher and the subscriber, on the right topics with properties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any as Anything
from typing import NamedTuple

import pytest

import mtosi_jms as mtosi
from mtosi_jms.binding.profile import FILTER_ATTRIBUTES, TopicCategory
from mtosi_jms.binding.selector import P
from mtosi_jms.bridge.events import Any
from mtosi_jms.bridge.mtnm import Mapped, notification_of, publish
from mtosi_jms.errors import ConfigError
from mtosi_jms.notifications import Event, Publisher, Snapshot, Subscriber, apply_notification, event_name
from mtosi_jms.transport import Connection

from . import mtnm_events as m

TOPICS = {"Inventory": "jms/Inventory", "Fault": "jms/Fault", "Protection": "jms/Protection"}
NAMES = {"jms/EmsOS": "queue:EMS", **{f"jms/{name}": f"topic:MTOSI.{name}" for name in TOPICS}}
ALL = set(TOPICS)
WHERE = {
    "NT_ALARM": {"Fault"},
    "NT_TCA": {"Fault"},
    "NT_OBJECT_CREATION": {"Inventory"},
    "NT_OBJECT_DELETION": {"Inventory"},
    "NT_OBJECT_DISCOVERY": {"Inventory"},
    "NT_ATTRIBUTE_VALUE_CHANGE": {"Inventory"},
    "NT_STATE_CHANGE": {"Inventory"},
    "NT_PROTECTION_SWITCH": {"Protection"},
    "NT_EPROTECTION_SWITCH": {"Protection"},
    "NT_ROUTE_CHANGE": {"Inventory"},
    "NT_HEARTBEAT": ALL,
    "NT_FILE_TRANSFER_STATUS": ALL,
    "NT_BACKUP_STATUS": ALL,
}


class Ends(NamedTuple):
    """Both ends of the topics."""

    connection: Connection
    publisher: Publisher
    subscribers: dict[str, Subscriber]

    def received(self) -> dict[str, list[Event]]:
        """What has come on each topic where something has."""
        told = {name: [one.event for one in subscriber] for name, subscriber in self.subscribers.items()}
        return {name: events for name, events in told.items() if events}


@pytest.fixture
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    with mtosi.connect(f"memory:{request.node.name}", names=NAMES) as connection:
        profile = mtosi.BindingProfile(filter_properties=FILTER_ATTRIBUTES)
        with Publisher(connection, TOPICS, sender_uri="jms/EmsOS", profile=profile) as publisher:
            subscribers = {name: Subscriber(connection, topic, timeout=0) for name, topic in TOPICS.items()}
            yield Ends(connection, publisher, subscribers)
            for subscriber in subscribers.values():
                subscriber.close()


def test_there_is_a_place_for_each_type() -> None:
    assert set(WHERE) == set(m.REALISTIC)


@pytest.mark.parametrize("type_name", WHERE)
def test_it_comes_where_it_belongs_as_it_was(type_name: str, ends: Ends) -> None:
    mapped = notification_of(m.REALISTIC[type_name])
    sent = publish(ends.publisher, mapped)
    assert len(sent) == len(WHERE[type_name])
    assert ends.received() == {name: [mapped.notification] for name in WHERE[type_name]}
    assert {one.properties["MTOSI_EventType"] for one in sent} == {event_name(mapped.notification)}


def test_the_properties_of_an_alarm(ends: Ends) -> None:
    (sent,) = publish(ends.publisher, notification_of(m.REALISTIC["NT_ALARM"]))
    told = {name: value for name, value in sent.properties.items() if name.removeprefix("MTOSI_") in FILTER_ATTRIBUTES}
    assert told == {
        "MTOSI_EventType": "AlarmInformation",
        "MTOSI_objectName": str(notification_of(m.REALISTIC["NT_ALARM"]).notification.object_name),  # type: ignore[attr-defined]
        "MTOSI_objectType": "PTP",
        "MTOSI_osTime": "2014-07-25T14:02:03+08:00",
        "MTOSI_sourceTime": "2014-07-25T14:02:01+08:00",
        "MTOSI_isEdgePointRelated": True,
        "MTOSI_layerRate": "LR_Section_OC3_STS3_and_RS_STM1",
        "MTOSI_aliasNameList": "nativeEMSName=NE-7 slot 5 port 1",
        "MTOSI_probableCause": "LOS",
        "MTOSI_probableCauseQualifier": "1",
        "MTOSI_nativeProbableCause": "R_LOS",
        "MTOSI_perceivedSeverity": "CRITICAL",
        "MTOSI_rootCauseAlarmIndication": False,
        "MTOSI_acknowledgeIndication": "UNACKNOWLEDGED",
    }


def test_selectors_find_alarms(ends: Ends) -> None:
    selector = (P.perceivedSeverity == "CRITICAL") & P.objectName.startswith("MD=Huawei%2FU2000/ME=3145729/")
    with Subscriber(ends.connection, "jms/Fault", timeout=0, selector=selector) as critical:
        for number, severity in enumerate(["PS_MINOR", "PS_CRITICAL", "PS_CLEARED", "PS_CRITICAL"]):
            publish(ends.publisher, notification_of(m.alarm(notificationId=str(number), perceivedSeverity=severity)))
        found: list[Anything] = [one.event for one in critical]
    assert [one.notification_id for one in found] == ["1", "3"]


@pytest.mark.parametrize(
    ("mapped", "where"),
    [
        (notification_of(m.alarm(objectName=None)), {"Fault"}),
        (notification_of(m.event("NT_OBJECT_DELETION")), {"Inventory"}),
        (notification_of(m.event("NT_PROTECTION_SWITCH")), {"Protection"}),
        (notification_of(m.event("NT_LICENCE", own=m.text("x"))), ALL),
    ],
    ids=["alarm", "deletion", "switch", "own"],
)
def test_vendor_notifications_go_where_the_event_belongs(mapped: Mapped, where: set[str], ends: Ends) -> None:
    publish(ends.publisher, mapped)
    assert ends.received() == {name: [mapped.notification] for name in where}


def test_a_category_without_a_topic(ends: Ends) -> None:
    with (
        Publisher(ends.connection, {"Fault": "jms/Fault"}, sender_uri="jms/EmsOS") as publisher,
        pytest.raises(ConfigError, match="no topic for the category Inventory"),
    ):
        publish(publisher, notification_of(m.REALISTIC["NT_ROUTE_CHANGE"]))


def test_the_profile_may_route_otherwise(ends: Ends) -> None:
    profile = mtosi.BindingProfile(topic_routing={"BackupStatus": TopicCategory.INVENTORY})
    with Publisher(ends.connection, TOPICS, sender_uri="jms/EmsOS", profile=profile) as publisher:
        assert len(publish(publisher, notification_of(m.REALISTIC["NT_BACKUP_STATUS"]))) == 1


def test_a_picture_of_the_network_follows(ends: Ends) -> None:
    snapshot = Snapshot()
    later = {"emsTime": "20140725140300.0+0800", "neTime": "20140725140300.0+0800"}
    state = (("communicationState", Any(m.COMMUNICATION, "CS_UNAVAILABLE")),)
    for event in (
        m.REALISTIC["NT_OBJECT_CREATION"],
        m.event("NT_STATE_CHANGE", objectName=m.name(m.NE), attributeList=state, **later),
        m.alarm(),
    ):
        publish(ends.publisher, notification_of(event))
    applied = [apply_notification(snapshot, event) for events in ends.received().values() for event in events]
    assert [one.refused for one in applied] == [None, None, None]
    element: Anything = snapshot["MD=Huawei%2FU2000/ME=3145729"]
    assert (element.user_label, element.communication_state) == ("north", "CS_UNAVAILABLE")
    assert len(snapshot.alarms) == 1
