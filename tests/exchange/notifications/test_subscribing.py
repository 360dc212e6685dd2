"""Subscribers: selectors of all forms, durable subscriptions, events of any package, and what may have been missed."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.profile import FILTER_ATTRIBUTES
from mtosi_jms.binding.selector import P
from mtosi_jms.errors import ConfigError, DecodeError, IllegalStateError, TransportError
from mtosi_jms.jms import JmsMessage, Queue, Topic
from mtosi_jms.jms.selector import parse
from mtosi_jms.notifications import Heartbeats, Loss, LossCause, Publisher, Subscriber
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.spool import Inbox, InboxEntry
from mtosi_jms.stubs.fmw.elc import EventLossCleared
from mtosi_jms.stubs.fmw.elo import EventLossOccured
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrb.rscodel import ResourceObjectDeletion
from mtosi_jms.stubs.nrb.rscsc import ResourceStateChange
from mtosi_jms.testing import ManualClock
from mtosi_jms.transport.memory import MemoryConnection
from mtosi_jms.xmlbind import RawXml

from ...waiting import PATIENCE, background
from .conftest import alarm, events

NOTMSG = "http://www.tmforum.org/mtop/fmw/xsd/notmsg/v1"
MAJOR = "MTOSI_perceivedSeverity = 'MAJOR'"


def subscribe(connection: Any, destination: Any = "jms/FaultTopic", **options: Any) -> Subscriber:
    return Subscriber(connection, destination, **{"timeout": 0, **options})


@pytest.mark.obligation("R10", "P39")
@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(MAJOR, id="text"),
        pytest.param(parse(MAJOR), id="parsed"),
        pytest.param(P.perceivedSeverity == "MAJOR", id="built"),
    ],
)
def test_a_selector_in_any_form(selector: Any, connection: Any, publisher: Publisher) -> None:
    subscriber = subscribe(connection, selector=selector)
    for severity in ("MINOR", "MAJOR", "CLEARED"):
        publisher.publish(alarm(severity=severity))
    assert [event.perceived_severity for event in events(subscriber)] == ["MAJOR"]


@pytest.mark.obligation("R10", "P16")
def test_the_selector_of_the_specification(connection: Any, publisher: Publisher) -> None:
    """Section 3.3.3: creations and deletions, no state changes; the spelling of section 2.6 meets none (C27)."""
    words = ("ObjectCreation", "ObjectDeletion"), ("OBJECTCREATION", "OBJECTDELETION")
    selectors = [" OR ".join(f"MTOSI_EventType = '{word}'" for word in pair) for pair in words]
    told, shouted = (subscribe(connection, "jms/InventoryTopic", selector=selector) for selector in selectors)
    for event in (ResourceObjectCreation(), ResourceStateChange(), ResourceObjectDeletion()):
        publisher.publish(event)
    assert [type(event) for event in events(told)] == [ResourceObjectCreation, ResourceObjectDeletion]
    assert list(shouted) == []


@pytest.mark.obligation("R20c", "C34")
def test_what_no_notification_can_meet_is_told(connection: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        subscribe(connection, selector="MTOSI_serviceAffecting = 'TRUE' AND MTOSI_msgType = 'NOTIFICATION'")
        subscribe(connection, selector="MTOSI_probableCause = 'LOS'")
        assert [text.partition(" at ")[0] for text in caplog.messages] == ["selector: error: MTOSI_serviceAffecting"]
        caplog.clear()
        subscribe(connection, selector="MTOSI_probableCause = 'LOS'", profile=BindingProfile())
    assert "the publishers do not map this attribute" in caplog.messages[0]
    strict = BindingProfile(validation="strict", filter_properties=FILTER_ATTRIBUTES)
    subscribe(connection, selector="MTOSI_probableCause = 'LOS'", profile=strict)
    with pytest.raises(ConfigError, match="by the attributes of Table 4 alone"):
        subscribe(connection, selector="MTOSI_msgType = 'NOTIFICATION'", profile=strict)


@pytest.mark.obligation("P8")
def test_a_durable_subscription_keeps_what_nobody_receives(connection: Any, publisher: Publisher) -> None:
    def connect() -> MemoryConnection:
        return MemoryConnection(connection.provider, connection.names, client_id="noc")

    with connect() as first:
        subscribe(first, durable="faults", selector=MAJOR).close()
    publisher.publish(alarm(severity="MAJOR"))
    publisher.publish(alarm(severity="MINOR"))
    with connect() as second:
        subscriber = subscribe(second, durable="faults", selector=MAJOR)
        assert [event.perceived_severity for event in events(subscriber)] == ["MAJOR"]
        publisher.publish(alarm(severity="MAJOR"))
        subscriber.unsubscribe()
        assert list(subscribe(second, durable="faults", selector=MAJOR)) == []
        with pytest.raises(ConfigError):
            subscribe(second, Queue("ALARMS"), durable="faults")


def body_of(*events: str) -> bytes:
    """A notification with events as XML."""
    inside = "".join(events)
    notify = f'<n:notify xmlns:n="{NOTMSG}"><n:topic>T</n:topic><n:message>{inside}</n:message></n:notify>'
    return Envelope(header=Header(activity_name="notify"), body=RawXml(notify.encode())).encode()


TCA = '<v:tca xmlns:v="urn:vendor"><v:value>7</v:value></v:tca>'
BEAT = '<h:heartbeat xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hbt/v1"/>'
SWITCH = '<v:protectionSwitch xmlns:v="urn:vendor"/>'


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        ((TCA,), ["tca"]),
        ((BEAT, TCA), ["Heartbeat", "tca"]),
        ((TCA, SWITCH, BEAT, SWITCH, BEAT, TCA), ["tca", "protectionSwitch", "Heartbeat", "protectionSwitch"]),
        ((), []),
    ],
)
def test_unknown_events_keep_their_places(given: tuple[str, ...], kinds: list[str], connection: Any) -> None:
    subscriber = subscribe(connection)
    connection.session().send(Topic("FAULT"), JmsMessage(body=body_of(*given)))
    found = []
    for event, _, message in subscriber:
        found.append(event.tag.rpartition("}")[2] if isinstance(event, RawXml) else type(event).__name__)
        assert message.body == body_of(*given)
    assert found[: len(kinds)] == kinds
    assert len(found) == len(given)


def test_a_strict_subscriber_takes_no_unknown_event(connection: Any) -> None:
    errors: list[Exception] = []
    strict = BindingProfile(validation="strict")
    subscriber = subscribe(connection, profile=strict, on_error=errors.append)
    connection.session().send(Topic("FAULT"), JmsMessage(body=body_of(TCA)))
    assert list(subscriber) == []
    assert [type(error) for error in errors] == [DecodeError]


def test_what_it_is(connection: Any) -> None:
    with subscribe(connection) as subscriber:
        assert repr(subscriber) == "<Subscriber topic:FAULT, open>"
    assert repr(subscriber) == "<Subscriber topic:FAULT, closed>"
    with MemoryConnection(connection.provider, connection.names, client_id="noc") as durable:
        subscriber = subscribe(durable, durable="faults")
        assert repr(subscriber) == "<Subscriber topic:FAULT, durable faults, open>"
        subscriber.unsubscribe()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"timeout": "3"}, "timeout: give seconds as a number, not '3'"),
    ({"timeout": -1}, "timeout: seconds must be 0 or more, not -1"),
    ({"heartbeat": "30"}, "heartbeat: give seconds as a number, not '30'"),
    ({"heartbeat": 0}, "heartbeat: seconds must be more than 0, not 0"),
    ({"on_error": "log"}, "on_error: give a function, not str"),
    ({"on_loss": []}, "on_loss: give a function, not list"),
]


@pytest.mark.parametrize(("options", "told"), WRONG)
def test_wrong_arguments_are_refused(options: dict[str, Any], told: str, connection: Any) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        subscribe(connection, **options)
    assert connection.consumers(Topic("FAULT")) == 0


# What may have been missed.


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(100)


def told(losses: list[Loss]) -> list[tuple[str, str, bool]]:
    return [(loss.cause.name, loss.sender or loss.object_name, loss.over) for loss in losses]


def test_heartbeats_come_by_the_timer(publisher: Publisher, connection: Any, clock: ManualClock) -> None:
    subscriber = subscribe(connection)
    with Heartbeats(publisher, 30, object_name=name("OS=EMS1"), timer=clock) as beats:
        assert beats.start() is beats
        assert (beats.published, len(list(subscriber))) == (1, 1)
        clock.advance(29)
        assert list(subscriber) == []
        clock.advance(61)
        found = events(subscriber)
        assert [(str(event.object_name), event.object_type) for event in found] == [("OS=EMS1", "OS")] * 3
    clock.advance(60)
    assert (beats.published, list(subscriber), clock.waiting) == (4, [], 0)
    with beats:
        clock.advance(30)
    assert beats.published == 6


def test_a_heartbeat_that_fails_does_not_end_them(connection: Any, topics: Any, clock: ManualClock) -> None:
    errors: list[Exception] = []
    publisher = Publisher(connection, topics, sender_uri="jms/EmsOS")
    with Heartbeats(publisher, 30, timer=clock, on_error=errors.append) as beats:
        publisher.close()
        clock.advance(60)
    assert (beats.published, [type(error) for error in errors]) == (1, [IllegalStateError] * 2)
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ConfigError, match="interval: seconds must be"):
            Heartbeats(publisher, wrong)


def test_the_thread_timer_beats(publisher: Publisher, connection: Any) -> None:
    """The default timer: what comes is waited for, and stopping stops."""
    subscriber = Subscriber(connection, "jms/FaultTopic", timeout=PATIENCE)
    beats = Heartbeats(publisher, 0.001).start()
    assert [type(next(subscriber).event) for _ in range(3)] == [Heartbeat] * 3
    beats.stop()
    assert [type(next(subscriber).event) for _ in range(beats.published - 3)] == [Heartbeat] * (beats.published - 3)
    assert connection.provider.held() == 0


def test_a_heartbeat_that_is_overdue(publisher: Publisher, connection: Any, clock: ManualClock) -> None:
    losses: list[Loss] = []
    subscriber = subscribe(connection, heartbeat=30, clock=clock, on_loss=losses.append)
    clock.advance(29)
    assert (list(subscriber), told(losses), subscriber.losses) == ([], [], ())
    clock.advance(1)
    assert list(subscriber) == []
    assert told(losses) == [("HEARTBEAT", "", False)]
    assert losses[0].since == 100
    clock.advance(1)
    assert (list(subscriber), len(losses)) == ([], 1)
    publisher.broadcast(Heartbeat())
    assert len(list(subscriber)) == 1
    assert told(losses) == [("HEARTBEAT", "", False), ("HEARTBEAT", "", True)]
    assert isinstance(losses[1].event, Heartbeat)
    clock.advance(30)
    assert list(subscriber) == []
    assert told(losses)[2:] == [("HEARTBEAT", "jms/EmsOS", False)]
    assert [loss.cause for loss in subscriber.losses] == [LossCause.HEARTBEAT]


def test_each_sender_is_watched(connection: Any, topics: Any, clock: ManualClock) -> None:
    losses: list[Loss] = []
    subscriber = subscribe(connection, heartbeat=30, clock=clock, on_loss=losses.append)
    one, other = (Publisher(connection, topics, sender_uri=uri) for uri in ("A", "B"))
    for publisher in (one, other):
        publisher.broadcast(Heartbeat())
    list(subscriber)
    clock.advance(20)
    one.broadcast(Heartbeat())
    list(subscriber)
    clock.advance(20)
    assert list(subscriber) == []
    assert told(losses) == [("HEARTBEAT", "B", False)]
    other.broadcast(Heartbeat())
    list(subscriber)
    assert told(losses)[1:] == [("HEARTBEAT", "B", True)]


def test_other_events_are_no_heartbeat(publisher: Publisher, connection: Any, clock: ManualClock) -> None:
    """They came, the heartbeat before them did not: it is lost, and others may be."""
    subscriber = subscribe(connection, heartbeat=30, clock=clock)
    clock.advance(40)
    publisher.publish(alarm())
    assert len(list(subscriber)) == 1
    assert len(subscriber.losses) == 1


def test_who_waits_is_told_when_a_heartbeat_is_overdue(connection: Any) -> None:
    """It waits in real time; the loss is told while no message comes, and it goes on waiting."""
    losses: Future[Loss] = Future()
    with Subscriber(connection, "jms/FaultTopic", heartbeat=0.01, on_loss=losses.set_result) as subscriber:
        received = background(lambda: list(subscriber))
        loss = losses.result(PATIENCE)
        assert not received.done()
    assert received.result(PATIENCE) == []
    assert told([loss]) == [("HEARTBEAT", "", False)]


def test_a_coroutine_is_told_too(publisher: Publisher, connection: Any) -> None:
    """It waits for an event, in its place a heartbeat becomes overdue, and then the event comes."""
    losses: list[Loss] = []

    def tell(loss: Loss) -> None:
        losses.append(loss)
        publisher.broadcast(Heartbeat())

    async def receive() -> Any:
        subscriber = Subscriber(connection, "jms/FaultTopic", heartbeat=0.01, on_loss=tell)
        async with subscriber.aio as coming:
            return (await anext(coming)).event

    assert type(asyncio.run(receive())) is Heartbeat
    assert told(losses)[:2] == [("HEARTBEAT", "", False), ("HEARTBEAT", "", True)]


def test_a_subscriber_ends_in_time_whatever_the_heartbeat(connection: Any) -> None:
    with Subscriber(connection, "jms/FaultTopic", heartbeat=0.01, timeout=0.05) as subscriber:
        assert list(subscriber) == []
        assert len(subscriber.losses) == 1
    with Subscriber(connection, "jms/FaultTopic", heartbeat=3600, timeout=0.01) as subscriber:
        assert list(subscriber) == []
        assert subscriber.losses == ()


def test_what_the_sender_says_of_losses(publisher: Publisher, connection: Any, clock: ManualClock) -> None:
    losses: list[Loss] = []
    subscriber = subscribe(connection, clock=clock, on_loss=losses.append)
    about = name("MD=EMS1")
    publisher.event_loss_occurred(object_name=about)
    publisher.event_loss_occurred(object_name=about)
    publisher.event_loss_occurred(object_name=name("MD=EMS2"))
    assert [type(event) for event in events(subscriber)] == [EventLossOccured] * 3
    assert [(loss.object_name, loss.sender, loss.since) for loss in subscriber.losses] == [
        ("MD=EMS1", "jms/EmsOS", 100),
        ("MD=EMS2", "jms/EmsOS", 100),
    ]
    clock.advance(5)
    publisher.event_loss_cleared(object_name=about)
    assert [type(event) for event in events(subscriber)] == [EventLossCleared]
    assert [loss.object_name for loss in subscriber.losses] == ["MD=EMS2"]
    assert (losses[-1].over, losses[-1].since, losses[-1].object_name) == (True, 100, "MD=EMS1")
    assert len(losses) == 3


def test_the_end_of_a_loss_that_nobody_saw_begin(publisher: Publisher, connection: Any) -> None:
    """Whoever subscribed later has to ask for what was missed, too."""
    losses: list[Loss] = []
    subscriber = subscribe(connection, on_loss=losses.append)
    publisher.event_loss_cleared()
    assert len(list(subscriber)) == 1
    assert told(losses) == [("SENDER", "jms/EmsOS", True)]


def test_a_provider_that_fails_in_between(publisher: Publisher, connection: Any, tmp_path: Path) -> None:
    class Failing(Inbox):
        """Looked at before the provider."""

        failures = 2

        def take(self) -> InboxEntry | None:
            self.failures -= 1
            if self.failures >= 0:
                raise TransportError("the broker is gone")
            return super().take()

    losses: list[Loss] = []
    inbox = Failing(tmp_path)
    subscriber = subscribe(connection, on_loss=losses.append, inbox=inbox)
    for _ in range(2):
        with pytest.raises(TransportError):
            next(subscriber)
    assert [(loss.cause, loss.reason) for loss in losses] == [(LossCause.TRANSPORT, "the broker is gone")]
    publisher.publish(alarm())
    assert len(list(subscriber)) == 1
    assert told(losses) == [("TRANSPORT", "", False), ("TRANSPORT", "", True)]
    subscriber.interrupted("connected anew")
    assert losses[-1].reason == "connected anew"
    assert len(subscriber.losses) == 1
    inbox.close()


def test_being_closed_is_no_loss(connection: Any) -> None:
    losses: list[Loss] = []
    subscriber = subscribe(connection, heartbeat=30, on_loss=losses.append)
    subscriber.close()
    with pytest.raises(IllegalStateError):
        next(subscriber)
    assert losses == []


def test_a_hook_that_fails_stops_nothing(
    publisher: Publisher, connection: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(loss: Loss) -> None:
        raise RuntimeError("no screen")

    subscriber = subscribe(connection, on_loss=fail)
    publisher.event_loss_occurred()
    assert len(list(subscriber)) == 1
    assert "on_loss failed" in caplog.text


# Events of a generated package with one that the shipped profile lacks: published, received, applied.

SCHEMA = """<?xml version="1.0" encoding="UTF-8"?>
<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns="urn:vendor:tca" targetNamespace="urn:vendor:tca"
    xmlns:cei="http://www.tmforum.org/mtop/fmw/xsd/cei/v1" xmlns:ei="http://www.tmforum.org/mtop/fmw/xsd/ei/v1"
    elementFormDefault="qualified">
  <xsd:import namespace="http://www.tmforum.org/mtop/fmw/xsd/cei/v1" schemaLocation="../fmw/cei.xsd"/>
  <xsd:import namespace="http://www.tmforum.org/mtop/fmw/xsd/ei/v1" schemaLocation="../fmw/ei.xsd"/>
  <xsd:complexType name="ThresholdCrossingAlertType">
    <xsd:complexContent>
      <xsd:extension base="ei:EventInformationType">
        <xsd:sequence>
          <xsd:element name="perceivedSeverity" type="xsd:string" minOccurs="0"/>
          <xsd:element name="value" type="xsd:int"/>
        </xsd:sequence>
      </xsd:extension>
    </xsd:complexContent>
  </xsd:complexType>
  <xsd:element name="thresholdCrossingAlert" type="ThresholdCrossingAlertType"
      substitutionGroup="cei:commonEventInformation"/>
</xsd:schema>
"""


def run(root: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), str(root / "codegen")))}
    done = subprocess.run([sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_events_that_a_generated_package_adds(root: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    for folder in ("wsdl", "xsd"):
        shutil.copytree(root / folder, source / folder)
    (source / "xsd" / "vendor").mkdir()
    (source / "xsd" / "vendor" / "tca.xsd").write_text(SCHEMA, encoding="utf-8")
    run(root, "-m", "mtosi_codegen", "generate", str(source), "--package", "acme", "--out", str(tmp_path))
    said = run(root, str(Path(__file__).with_name("vendor_events_process.py")), str(tmp_path))
    assert said.splitlines() == [
        "topic:F ['MAJOR', 'MD=1/ME=2', 'ThresholdCrossingAlert']",
        "topic:I ['MD=1/ME=2', 'ObjectCreation']",
        "acme ResourceObjectCreation created True",
        "acme ThresholdCrossingAlert Refusal.UNKNOWN_EVENT True",
        "{'MD=1/ME=2': 'acme.nrf.me'}",
        "the events of a message must be of one generated package, and at least one",
    ]
