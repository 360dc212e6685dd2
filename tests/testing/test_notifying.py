"""A publisher and subscribers in memory, and every fault injector at work on notifications."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.profile import TopicCategory
from mtosi_jms.errors import ConfigError, IllegalStateError, MalformedXmlError
from mtosi_jms.jms import JmsMessage, Topic
from mtosi_jms.simulator import Network
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.stubs.nra.alm import Alarm, AlarmType
from mtosi_jms.stubs.nra.com import AcknowledgeIndicationType, PerceivedSeverityType
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.testing import Late, ManualClock, delay, duplicate, gap, late, notifications, reorder, truncate


def alarms(count: int = 4) -> list[Alarm]:
    return [
        Alarm(
            notification_id=str(number),
            perceived_severity=PerceivedSeverityType.MAJOR,
            acknowledge_indication=AcknowledgeIndicationType.UNACKNOWLEDGED,
        )
        for number in range(count)
    ]


def ids(events: list[Any]) -> str:
    return "".join(event.notification_id for event in events)


def test_what_the_publisher_publishes_has_arrived() -> None:
    with notifications() as pair:
        pair.publisher.publish(alarms()[0])
        pair.publisher.publish(ResourceObjectCreation(object_type="ME"))
        assert ids(pair.received("Fault")) == "0"
        assert [type(event) for event in pair.received(TopicCategory.INVENTORY)] == [ResourceObjectCreation]
        assert pair.received("Fault") == pair.received("Protection") == []
        pair.publisher.publish(alarms()[3])
        assert ids(pair.received("Fault")) == "3"


def test_events_of_no_category_go_where_the_pair_says() -> None:
    with notifications(generic=TopicCategory.PROTECTION) as pair:
        pair.publish([Heartbeat(), *alarms(1)])
        assert (len(pair.received("Protection")), len(pair.received("Fault"))) == (1, 1)


def test_messages_are_those_that_a_publisher_sends() -> None:
    profile = BindingProfile(filter_properties=frozenset({"EventType"}))
    with notifications(profile=profile) as pair:
        (made,) = pair.messages(alarms(1))
        assert pair.received("Fault") == []
        sent = pair.publisher.publish(alarms(1)[0])
        assert (made.destination, dict(made.properties)) == (sent.destination, dict(sent.properties))
        assert made.destination == Topic("FAULT")
        assert made.properties["MTOSI_EventType"] == "AlarmInformation"
        assert made.time_to_live_ms == sent.time_to_live_ms


Tampering = Callable[[list[JmsMessage]], Any]


@pytest.mark.parametrize(
    ("tamper", "arrives"),
    [
        (lambda messages: gap(messages, at=1), "023"),
        (lambda messages: duplicate(messages, at=0, distance=1), "0102 3".replace(" ", "")),
        (lambda messages: delay(messages, at=0, behind=2), "1203"),
        (lambda messages: list(reversed(messages)), "3210"),
        (lambda messages: reorder(messages, seed=1, span=2), None),
        (lambda messages: gap(duplicate(messages, at=2), at=0), "1223"),
    ],
)
def test_faults_of_notifications(tamper: Tampering, arrives: str | None) -> None:
    with notifications() as pair:
        pair.publish(alarms(), tamper=tamper)
        found = ids(pair.received("Fault"))
    assert found == arrives if arrives else (sorted(found) == list("0123") and found != "0123")


def test_a_notification_that_is_cut() -> None:
    errors: list[Exception] = []
    with notifications(on_error=errors.append) as pair:
        pair.publish(alarms(), tamper=lambda messages: truncate(messages, at=1, keep=100))
        assert ids(pair.received("Fault")) == "023"
    assert [type(error) for error in errors] == [MalformedXmlError]


def test_a_notification_that_is_late() -> None:
    clock = ManualClock()
    with notifications(timer=clock) as pair:
        pair.publish(alarms(), tamper=lambda messages: late(messages, at=[0, 1], seconds=60))
        assert ids(pair.received("Fault")) == "23"
        clock.advance(60)
        assert ids(pair.received("Fault")) == "01"


def test_late_needs_a_timer_and_the_end_is_the_end() -> None:
    clock = ManualClock()
    with notifications() as pair:
        (message,) = pair.messages(alarms(1))
        with pytest.raises(ConfigError, match="timer"):
            pair.send([Late(message, 1)])
    with notifications(timer=clock) as pair:
        pair.send([Late(message, 1)])
    clock.advance(1)
    with pytest.raises(IllegalStateError):
        pair.send([message])


def test_what_has_expired_does_not_arrive() -> None:
    clock = ManualClock(1_700_000_000)
    with notifications(provider={"clock": clock}) as pair:
        pair.publish(alarms(1))
        clock.advance(1801)
        assert pair.received("Fault") == []


def test_the_events_of_a_network_arrive_as_they_are() -> None:
    network = Network(elements=5, technology="OTN")
    events = list(network.events(80))
    with notifications() as pair:
        pair.publish(events)
        received = [*pair.received("Inventory"), *pair.received("Fault")]
    arrived = sorted(received, key=lambda event: int(event.notification_id.removeprefix("EMS1-")))
    assert arrived == events
    assert network.after(arrived) == network.after(events)
    assert any(isinstance(event, AlarmType) for event in arrived)
