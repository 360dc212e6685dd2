"""Notifications: our Publisher and Java subscribers, a Java publisher and our Subscriber."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.binding.profile import TopicCategory
from mtosi_jms.jms import Topic
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nra.com import PerceivedSeverityType
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.transport import Connection

from .peer import PATIENCE, Peer

pytestmark = pytest.mark.broker
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def alarm(severity: PerceivedSeverityType, element: str) -> Alarm:
    return Alarm(object_type="ME", object_name=name(f"MD=EMS1/ME={element}"), perceived_severity=severity, os_time=NOW)


@pytest.mark.obligation("P8", "O10a")
def test_two_topics_with_two_java_subscribers_each(peer: Peer, connection: Connection, topic: Topic) -> None:
    topics = {TopicCategory.FAULT: Topic(f"{topic.name}.F"), TopicCategory.INVENTORY: Topic(f"{topic.name}.I")}
    severe = "MTOSI_perceivedSeverity = 'CRITICAL'"
    for id_, where, selector in (("f1", "F", ""), ("f2", "F", severe), ("i1", "I", ""), ("i2", "I", "")):
        peer.ask("consume", id_, f"topic:{topic.name}.{where}", selector)
    created = ResourceObjectCreation(object_type="ME", object_name=name("MD=EMS1/ME=NE-9"), os_time=NOW)
    with mtosi.Publisher(connection, topics, sender_uri="jms/EmsOS") as publisher:
        publisher.publish(alarm(PerceivedSeverityType.MINOR, "NE-1"))
        publisher.publish(alarm(PerceivedSeverityType.CRITICAL, "NE-2 \U0001f600"))
        publisher.publish(created)

    def seen(id_: str) -> tuple[str, str]:
        found = peer.receive(id_)
        assert found is not None
        assert found["MTOSI_msgType"] == "String NOTIFICATION"
        body = found["body"].replace("&#x1F600;", "\U0001f600")  # what ActiveMQ's wire needs, for any reader the same
        return found["MTOSI_EventType"], body.partition("ME</nam:type><nam:value>")[2].partition("<")[0]

    minor, critical = ("String AlarmInformation", "NE-1"), ("String AlarmInformation", "NE-2 \U0001f600")
    assert [seen("f1"), seen("f1")] == [minor, critical]
    assert seen("f2") == critical
    assert [seen("i1"), seen("i2")] == [("String ObjectCreation", "NE-9")] * 2
    for id_ in ("f1", "f2", "i1", "i2"):
        peer.ask("close", id_)


@pytest.mark.obligation("P8", "C62")
def test_a_java_publisher(peer: Peer, connection: Connection, topic: Topic) -> None:
    with mtosi.connect("memory:java-publisher") as embedded:
        publisher = mtosi.Publisher(embedded, {TopicCategory.FAULT: topic}, sender_uri="jms/JavaOS")
        bodies = [
            publisher.publish(alarm(severity, element)).body
            for severity, element in (
                (PerceivedSeverityType.MINOR, "NE-1"),
                (PerceivedSeverityType.CRITICAL, "NE-2 \U0001f600"),
            )
        ]
    with (
        mtosi.Subscriber(connection, topic, timeout=PATIENCE) as every,
        mtosi.Subscriber(
            connection, topic, selector="MTOSI_rootCauseAlarmIndication = TRUE", timeout=PATIENCE
        ) as roots,
    ):
        for body, flag in zip(bodies, ("false", "true"), strict=True):
            peer.send(
                f"topic:{topic.name}",
                body,
                "String MTOSI_msgType=NOTIFICATION",
                f"Boolean MTOSI_rootCauseAlarmIndication={flag}",
            )
        heard: list[Any] = [next(every), next(every), next(roots)]
    assert [str(received.event.object_name) for received in heard] == [
        *("MD=EMS1/ME=NE-1", "MD=EMS1/ME=NE-2 \U0001f600"),
        "MD=EMS1/ME=NE-2 \U0001f600",
    ]
