"""MQTT and JMS at one broker: MTOSI's notifications both ways, and what paho and the broker say to each other."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.binding.profile import FILTER_ATTRIBUTES
from mtosi_jms.jms import JmsMessage, MessageType, Topic
from mtosi_jms.notifications import SystemProfile
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.fmw.notmsg import NotifyMessage
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nra.com import PerceivedSeverityType
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType, ProbableCauseType

from .wire import CONNACK_ACCEPTED, Wire, connect_packet

pytestmark = pytest.mark.broker
PATIENCE = 20
SYSTEM = SystemProfile(binding=mtosi.BindingProfile(filter_properties=FILTER_ATTRIBUTES))


def alarm(element: str, severity: str = "CRITICAL") -> Alarm:
    return Alarm(
        object_type="ME",
        object_name=name(element),
        perceived_severity=PerceivedSeverityType(severity),
        probable_cause=ProbableCauseType(probable_cause=ProbableCauseEnumType.LOS),
    )


def publisher_at(connection: Any, topic: Topic) -> mtosi.Publisher:
    return mtosi.Publisher(connection, {"Fault": topic}, sender_uri="queue:EMS", system=SYSTEM)


def envelope_of(*events: Any) -> bytes:
    """The notification that a device publishes: as the SDK would write it."""
    with mtosi.connect("memory:device") as connection, publisher_at(connection, Topic("F")) as publisher:
        return publisher.publish_message(NotifyMessage(common_event_information=list(events))).body


def test_an_alarm_of_a_device_reaches_a_subscriber(bench: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Without properties; the header says it all."""
    in_mqtt, topic = bench.topic()
    device = bench.device()
    with (
        mtosi.Subscriber(bench.connection, topic, timeout=PATIENCE) as subscriber,
        caplog.at_level(logging.WARNING, "mtosi_jms"),
    ):
        for qos in (0, 1, 2):
            device.publish(in_mqtt, envelope_of(alarm(f"MD=EMS1/ME=NE-{qos}")), qos)
            event, envelope, message = next(subscriber)
            assert isinstance(event, Alarm)
            assert str(event.object_name) == f"MD=EMS1/ME=NE-{qos}"
            assert message.properties == {}
            assert envelope.header is not None
            assert envelope.header.msg_name == "notify"
    rules = ["O1"] if message.message_type is MessageType.BYTES else []
    assert [warning.rule for warning in envelope.warnings] == rules
    assert len(caplog.records) == 3 * len(rules)


@pytest.mark.obligation("001-M25")
def test_a_batch_of_a_device_becomes_messages_of_one_event(bench: Any) -> None:
    """The relay of docs/mqtt.md: with properties, so that selectors work."""
    in_mqtt, of_devices = bench.topic()
    _, faults = bench.topic()
    critical = mtosi.Subscriber(
        bench.connection, faults, timeout=PATIENCE, selector="MTOSI_perceivedSeverity = 'CRITICAL'"
    )
    devices = mtosi.Subscriber(bench.connection, of_devices, timeout=PATIENCE)
    with critical, devices, publisher_at(bench.connection, faults) as publisher:
        events = [alarm(f"MD=EMS1/ME=NE-{number}", "MINOR" if number == 2 else "CRITICAL") for number in (1, 2, 3)]
        bench.device().publish(in_mqtt, envelope_of(*events))
        for _ in events:
            publisher.publish(next(devices).event)
        received = [next(critical) for _ in range(2)]
    assert [one.message.properties["MTOSI_objectName"] for one in received] == ["MD=EMS1/ME=NE-1", "MD=EMS1/ME=NE-3"]
    assert len({one.message.message_id for one in received}) == 2
    assert {one.message.properties["MTOSI_msgName"] for one in received} == {"notify"}


@pytest.mark.parametrize("version", ["3.1", "3.1.1", "5"])
def test_a_notification_reaches_a_device(bench: Any, version: str) -> None:
    in_mqtt, topic = bench.topic()
    device = bench.device(version=version)
    if not device.is_connected:
        assert (bench.kind, version) == ("activemq", "5")
        return
    device.subscribe(in_mqtt)
    with publisher_at(bench.connection, topic) as publisher:
        sent = publisher.publish(alarm("MD=EMS1/ME=NE-7"))
    message = device.receive()
    assert (message.topic, message.payload) == (in_mqtt, sent.body)
    with mtosi.connect("memory:at-the-device") as connection:
        reader = mtosi.Subscriber(connection, "topic:at-the-device", timeout=0)
        connection.session().send(reader.destination, JmsMessage(body=message.payload))
        assert str(next(reader).event.object_name) == "MD=EMS1/ME=NE-7"  # type: ignore[union-attr]


@pytest.mark.obligation("001-M12")
def test_a_will_is_an_alarm(bench: Any) -> None:
    """The device prepares it; the broker publishes it when the device is gone."""
    in_mqtt, topic = bench.topic()
    with mtosi.Subscriber(bench.connection, topic, timeout=PATIENCE) as subscriber:
        with Wire(bench.broker) as wire:
            wire.send(connect_packet(bench, bench.name(), will=(in_mqtt, envelope_of(alarm("MD=EMS1/ME=NE-7")), 1)))
            assert wire.packet() == CONNACK_ACCEPTED
        event = next(subscriber).event
    assert isinstance(event, Alarm)
    assert str(event.object_name) == "MD=EMS1/ME=NE-7"


@pytest.mark.obligation("001-M19")
def test_a_device_that_unsubscribes_gets_no_more(bench: Any) -> None:
    first, _ = bench.topic()
    second, _ = bench.topic()
    device, other = bench.device(), bench.device()
    assert device.subscribe(first, second) == [2, 2]
    device.unsubscribe(first)
    other.publish(first, b"no more")
    other.publish(second, b"the end")
    assert device.receive().payload == b"the end"
