"""What a publisher sends: one selection of attributes for a system, events and messages, what all topics get."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.events import EVENT_NAMES, events_of
from mtosi_jms.binding.profile import FILTER_ATTRIBUTES
from mtosi_jms.errors import ConfigError, IllegalStateError, ResourceLimitError, TransportError
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue, Topic
from mtosi_jms.notifications import ProducerService, Publisher, Subscriber, SystemProfile, event_name
from mtosi_jms.soap import parse
from mtosi_jms.spool import Outbox
from mtosi_jms.stubs.fmw.elc import EventLossCleared
from mtosi_jms.stubs.fmw.elo import EventLossOccured
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.fmw.notmsg import NotifyMessage, SubscribeRequest
from mtosi_jms.stubs.nra.alm import Alarm, AlarmType
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrb.rscodel import ResourceObjectDeletion
from mtosi_jms.testing import connect_privately
from mtosi_jms.transport.memory import MemoryConnection
from mtosi_jms.xmlbind import RawXml

from ...waiting import PATIENCE, background
from .conftest import alarm, events

STRICT = BindingProfile(validation="strict")
NO_FILTERS = BindingProfile(filter_properties=frozenset())
TCA = RawXml(
    b'<v:thresholdCrossingAlert xmlns:v="urn:vendor"><v:objectType>PTP</v:objectType></v:thresholdCrossingAlert>'
)


def table4(message: Any) -> set[str]:
    return {name.removeprefix("MTOSI_") for name in message.properties} & FILTER_ATTRIBUTES


@pytest.mark.obligation("R9a", "R9b", "R9c")
def test_publishers_of_a_system_map_the_same(connection: Any, topics: Any) -> None:
    """Some attributes for all events, others for alarms; two publishers, one result."""
    system = SystemProfile(
        binding=BindingProfile(filter_properties=frozenset({"EventType", "objectType"})),
        attributes={"AlarmInformation": frozenset({"EventType", "probableCause", "layerRate"})},
    )
    sent = [
        Publisher(connection, topics, sender_uri=sender, system=system).publish(event)
        for event in (alarm(), ResourceObjectCreation(object_type="ME"))
        for sender in ("jms/EmsOS", "jms/NocOS")
    ]
    alarms = {"EventType", "probableCause"}
    assert [table4(message) for message in sent] == [alarms, alarms, *[{"EventType", "objectType"}] * 2]


@pytest.mark.obligation("R9c")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param({"filter_properties": frozenset({"EventType"})}, "differ in mapping objectType", id="fewer"),
        pytest.param({"filter_properties": FILTER_ATTRIBUTES}, "differ in mapping acknowledgeIndication", id="more"),
        pytest.param({"time_form": "millis"}, "time_form", id="times"),
        pytest.param({"severity_form": "code"}, "severity_form", id="severities"),
        pytest.param({"event_names": {"Heartbeat": "BEAT"}}, "event_names", id="names"),
    ],
)
def test_a_publisher_that_differs_is_refused(
    change: dict[str, Any], told: str, connection: Any, topics: dict[str, str]
) -> None:
    profile = BindingProfile(**change)
    with pytest.raises(ConfigError, match=told):
        Publisher(connection, topics, sender_uri="jms/EmsOS", system=SystemProfile(), profile=profile)
    assert connection.provider.held() == 0


def test_other_switches_are_each_publishers_own(connection: Any, topics: Any) -> None:
    profile = BindingProfile(priority=7, ttl={"AlarmInformation": 1000})
    publisher = Publisher(connection, topics, sender_uri="jms/EmsOS", system=SystemProfile(), profile=profile)
    sent = publisher.publish(alarm())
    assert (sent.priority, sent.time_to_live_ms) == (7, 1000)


@pytest.mark.obligation("R9b")
def test_the_selection_cannot_change() -> None:
    chosen = {"AlarmInformation": frozenset({"EventType"})}
    system = SystemProfile(attributes=chosen)
    chosen["AlarmInformation"] = frozenset()
    assert system.attributes_of("AlarmInformation") == {"EventType"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        system.binding = STRICT  # type: ignore[misc]
    with pytest.raises(TypeError):
        system.attributes["AlarmInformation"] = frozenset()  # type: ignore[index]
    assert hash(system) == hash(SystemProfile(attributes={"AlarmInformation": frozenset({"EventType"})}))


@pytest.mark.obligation("R20a")
def test_a_system_has_no_attribute_beyond_the_table() -> None:
    with pytest.raises(ConfigError, match="AlarmInformation: Table 4 has no serviceAffecting"):
        SystemProfile(attributes={"AlarmInformation": frozenset({"EventType", "serviceAffecting"})})


@pytest.mark.obligation("O10b")
def test_a_topic_for_two_categories_is_told_of(connection: Any, caplog: pytest.LogCaptureFixture) -> None:
    shared = {"Inventory": "jms/FaultTopic", "Fault": "topic:FAULT"}
    with caplog.at_level(logging.WARNING):
        Publisher(connection, shared, sender_uri="jms/EmsOS")
    assert caplog.messages == ["topic:FAULT serves Inventory and Fault; a topic is for one category (O10b)"]
    with pytest.raises(ConfigError, match="O10b"):
        Publisher(connection, shared, sender_uri="jms/EmsOS", profile=STRICT)


@pytest.mark.obligation("O2", "O12a")
def test_a_queue_is_told_of(connection: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        Publisher(connection, {"Fault": Queue("ALARMS")}, sender_uri="jms/EmsOS", profile=STRICT)
    assert caplog.messages == ["Fault goes to queue:ALARMS; topics are recommended for notifications (O2, O12)"]


@pytest.mark.obligation("R7")
def test_nothing_is_sent_at_the_start(connection: Any, topics: dict[str, str]) -> None:
    """Topics and queue keep whatever is sent: there is nothing before the first event."""
    listening = [Subscriber(connection, topic, timeout=0) for topic in topics.values()]
    with Publisher(connection, {**topics, "Fault": Queue("KEPT")}, sender_uri="jms/EmsOS"):
        assert connection.session().browse(Queue("KEPT")) == []
    assert [list(subscriber) for subscriber in listening] == [[], [], []]


@pytest.mark.obligation("C30")
def test_events_share_messages_only_where_no_selector_goes_by_them(connection: Any, topics: Any) -> None:
    published = [alarm(), alarm("LOF"), ResourceObjectCreation(object_type="ME"), alarm("AIS")]
    with Publisher(connection, topics, sender_uri="jms/EmsOS") as filterable:
        assert [len(_events(message)) for message in filterable.publish_all(published)] == [1, 1, 1, 1]
    faults, inventory = (Subscriber(connection, topic, timeout=0) for topic in ("jms/FaultTopic", "jms/InventoryTopic"))
    with Publisher(connection, topics, sender_uri="jms/EmsOS", profile=NO_FILTERS) as plain:
        sent = plain.publish_all(published)
    assert [(str(m.destination), len(_events(m)), m.time_to_live_ms) for m in sent] == [
        ("topic:FAULT", 2, 1_800_000),
        ("topic:INVENTORY", 1, 86_400_000),
        ("topic:FAULT", 1, 1_800_000),
    ]
    assert [table4(message) for message in sent] == [set()] * 3
    assert events(faults) == [published[0], published[1], published[3]]
    assert events(inventory) == [published[2]]


@pytest.mark.obligation("C30")
def test_long_runs_are_cut(connection: Any, topics: dict[str, str]) -> None:
    many = [alarm()] * 101
    with Publisher(connection, topics, sender_uri="jms/EmsOS", profile=NO_FILTERS) as publisher:
        assert [len(_events(message)) for message in publisher.publish_all(many)] == [100, 1]
        assert publisher.publish_all([]) == []


@pytest.mark.obligation("C30")
def test_of_a_message_of_the_callers_what_all_events_share(publisher: Publisher) -> None:
    message = NotifyMessage(common_event_information=[alarm(severity="MAJOR"), alarm(severity="MINOR")])
    sent = publisher.publish_message(message)
    assert {key: sent.properties.get(f"MTOSI_{key}") for key in ("EventType", "objectType", "perceivedSeverity")} == {
        "EventType": "AlarmInformation",
        "objectType": "ME",
        "perceivedSeverity": None,
    }
    mixed = NotifyMessage(common_event_information=[alarm(), ResourceObjectDeletion(object_type="ME")])
    with pytest.raises(ConfigError, match="several topics"):
        publisher.publish_message(mixed)
    assert publisher.publish_message(mixed, category="Fault").properties.get("MTOSI_EventType") is None
    for nothing in (NotifyMessage(), alarm()):
        with pytest.raises(ConfigError, match="a NotifyMessage with events"):
            publisher.publish_message(nothing)


def test_attributes_that_one_event_does_not_map_are_not_mapped(connection: Any, topics: Any) -> None:
    system = SystemProfile(attributes={"ObjectDeletion": frozenset({"EventType"})})
    publisher = Publisher(connection, topics, sender_uri="jms/EmsOS", system=system)
    mixed = NotifyMessage(common_event_information=[alarm(), ResourceObjectDeletion(object_type="ME")])
    assert table4(publisher.publish_message(mixed, category="Fault")) == set()


@pytest.mark.obligation("C29")
def test_what_concerns_all_goes_to_each_topic_once(connection: Any, topics: dict[str, str]) -> None:
    shared = {**topics, "Protection": "jms/FaultTopic"}
    publisher = Publisher(connection, shared, sender_uri="jms/EmsOS")
    listening = [Subscriber(connection, topic, timeout=0) for topic in ("jms/InventoryTopic", "jms/FaultTopic")]
    sent = publisher.broadcast(Heartbeat(object_type="OS"))
    assert [message.destination for message in sent] == [Topic("INVENTORY"), Topic("FAULT")]
    assert [len(list(subscriber)) for subscriber in listening] == [1, 1]
    with pytest.raises(ConfigError, match="is a type"):
        publisher.broadcast(AlarmType())


@pytest.mark.obligation("C29")
def test_losses_are_told_on_all_topics(publisher: Publisher, connection: Any) -> None:
    subscriber = Subscriber(connection, "jms/InventoryTopic", timeout=0)
    about = name("MD=EMS1")
    occurred = publisher.event_loss_occurred(object_name=about, first_event_lost_notification_id="n-7")
    cleared = publisher.event_loss_cleared(object_type="MD", object_name=about)
    assert [len(occurred), len(cleared)] == [3, 3]
    assert [message.properties["MTOSI_EventType"] for message in (occurred[0], cleared[0])] == [
        "EventLossOccurred",
        "EventLossCleared",
    ]
    began, ended = events(subscriber)
    assert (type(began), str(began.object_name), began.first_event_lost_notification_id) == (
        EventLossOccured,
        "MD=EMS1",
        "n-7",
    )
    assert (type(ended), ended.end_time >= began.start_time) == (EventLossCleared, True)


def test_an_event_that_no_package_knows_goes_out_as_it_is(publisher: Publisher, connection: Any) -> None:
    subscriber = Subscriber(connection, "jms/FaultTopic", timeout=0)
    sent = publisher.publish(TCA)
    assert (sent.properties["MTOSI_EventType"], sent.properties["MTOSI_objectType"], sent.time_to_live_ms) == (
        "ThresholdCrossingAlert",
        "PTP",
        1_800_000,
    )
    assert events(subscriber) == [TCA]


# What is given to a publisher, and how long it may take.


def test_what_it_is(connection: Any, topics: dict[str, str]) -> None:
    shown = "<Publisher jms/EmsOS, Inventory to topic:INVENTORY, Fault to topic:FAULT, Protection to topic:PROTECTION"
    with Publisher(connection, topics, sender_uri="jms/EmsOS") as publisher:
        assert repr(publisher) == f"{shown}, open>"
    assert repr(publisher) == f"{shown}, closed>"
    with Publisher(connection, topics, sender_uri="jms:queue:EMS?password=secret") as publisher:
        assert "secret" not in repr(publisher)


WRONG_TOPICS: list[Any] = ["jms/FaultTopic", ["jms/FaultTopic"], None, {}]


@pytest.mark.parametrize("wrong", WRONG_TOPICS)
def test_topics_that_are_no_table(wrong: Any, connection: Any) -> None:
    with pytest.raises(ConfigError, match="topics: give a topic by category"):
        Publisher(connection, wrong, sender_uri="jms/EmsOS")


def test_one_event_is_no_list_of_events(publisher: Publisher) -> None:
    wrong: Any
    for wrong in (alarm(), TCA):
        with pytest.raises(ConfigError, match=r"publish_all takes a list of events, not \w+; publish takes one"):
            publisher.publish_all(wrong)
    wrong = [alarm()]
    with pytest.raises(ConfigError, match="give an event, such as an Alarm, not list"):
        publisher.publish(wrong)


FULL = Queue("FULL")
CALLS: dict[str, Callable[[Publisher, Alarm, float], Any]] = {
    "publish": lambda publisher, event, timeout: publisher.publish(event, timeout=timeout),
    "publish_all": lambda publisher, event, timeout: publisher.publish_all([event], timeout=timeout),
    "publish_message": lambda publisher, event, timeout: publisher.publish_message(
        NotifyMessage(common_event_information=[event]), timeout=timeout
    ),
    "broadcast": lambda publisher, event, timeout: publisher.broadcast(event, timeout=timeout),
    "event_loss_occurred": lambda publisher, event, timeout: publisher.event_loss_occurred(timeout=timeout),
    "event_loss_cleared": lambda publisher, event, timeout: publisher.event_loss_cleared(timeout=timeout),
    "aio.publish": lambda publisher, event, timeout: asyncio.run(publisher_aio(publisher, event, timeout)),
}


async def publisher_aio(publisher: Publisher, event: Alarm, timeout: float) -> JmsMessage:
    return await publisher.aio.publish(event, timeout=timeout)


@pytest.fixture
def crowded() -> Iterator[Publisher]:
    """A publisher to a destination that is full."""
    with (
        connect_privately({}, capacity=1, send_timeout=60) as connection,
        Publisher(connection, {"Fault": FULL}, sender_uri="queue:OS") as publisher,
    ):
        publisher.publish(alarm())
        yield publisher


@pytest.mark.parametrize("way", CALLS)
def test_a_call_ends_in_its_time(way: str, crowded: Publisher) -> None:
    with pytest.raises(TransportError, match=r"not sent within 0\.01 s"):
        CALLS[way](crowded, alarm(), 0.01)
    wrong: Any
    for wrong in ("3", -1, 0, True):
        with pytest.raises(ConfigError, match=f"timeout: .*not .*{wrong}"):
            CALLS[way](crowded, alarm(), wrong)


@pytest.mark.parametrize("way", ["publish", "aio.publish"])
def test_a_call_behind_another_ends_in_its_time(way: str, crowded: Publisher) -> None:
    waiting = background(lambda: CALLS["aio.publish" if way == "publish" else "publish"](crowded, alarm(), PATIENCE))
    with pytest.raises(TransportError, match=r"not sent within 0\.0\d s"):
        CALLS[way](crowded, alarm(), 0.05)
    crowded.close()
    assert isinstance(waiting.exception(PATIENCE), IllegalStateError | TransportError)


def test_the_time_of_several_messages_is_one(crowded: Publisher) -> None:
    """Events before the one at fault may have been published: here none was."""
    with pytest.raises(ResourceLimitError, match="not sent within"):
        crowded.publish_all([alarm(), alarm()], timeout=0.01)


def test_what_an_outbox_holds_is_sent_in_time(tmp_path: Path) -> None:
    with (
        connect_privately({}, capacity=1, send_timeout=60) as connection,
        Outbox(tmp_path) as outbox,
        Publisher(connection, {"Fault": FULL}, sender_uri="queue:OS", outbox=outbox) as publisher,
    ):
        publisher.publish(alarm(), timeout=60)
        with pytest.raises(ResourceLimitError, match=r"AlarmInformation to queue:FULL: not sent within 0\.01 s"):
            publisher.publish(alarm(), timeout=0.01)
        assert len(outbox) == 1
        assert connection.session().consumer(FULL).receive(0) is None, "the connection is stopped"
        connection.start()
        delivery = connection.session().consumer(FULL).receive(60)
        assert delivery is not None
        delivery.acknowledge()
        assert publisher.resend(timeout=60) == 1


def test_names_of_events() -> None:
    assert {event_name(event) for event in (TCA, Heartbeat(), ResourceObjectCreation())} <= EVENT_NAMES
    wrong: Any
    for wrong, told in ((AlarmType(), "AlarmType is a type, not an event"), ("alarm", "give an event.*, not str")):
        with pytest.raises(ConfigError, match=told):
            event_name(wrong)


def _events(message: Any) -> list[Any]:
    return events_of(parse(message.body).body)


# What the provider stores: the publisher's delivery mode, and a durable subscriber's warning.

STORED = BindingProfile(delivery_mode=DeliveryMode.PERSISTENT)


@pytest.fixture
def noc(connection: Any) -> Any:
    with MemoryConnection(connection.provider, connection.names, client_id="noc") as made:
        yield made


@pytest.mark.obligation("O6a", "C53")
@pytest.mark.parametrize(
    ("options", "address", "stored"),
    [
        ({}, "jms/FaultTopic", False),
        ({"persistent": True}, "jms/FaultTopic", True),
        ({"persistent": True}, "jms:jndi:jms/FaultTopic?deliveryMode=NON_PERSISTENT&timeToLive=5000", False),
        ({"persistent": False}, "jms:jndi:jms/FaultTopic?deliveryMode=PERSISTENT", True),
        ({"profile": STORED}, "topic:FAULT", True),
        ({"profile": STORED, "persistent": False}, "topic:FAULT", False),
    ],
)
def test_the_delivery_mode(options: dict[str, Any], address: str, stored: bool, connection: Any) -> None:
    """The address says, else the publisher, else the profile. The header names the topic as the address does."""
    with Publisher(connection, {"Fault": address}, sender_uri="jms/EmsOS", **options) as publisher:
        sent = publisher.publish(alarm())
    assert (sent.delivery_mode is DeliveryMode.PERSISTENT) is stored
    assert ("MTOSIX_messageId" in sent.properties) is stored
    assert sent.time_to_live_ms == (5000 if "timeToLive" in address else 1_800_000)
    header = parse(sent.body).header
    assert header is not None
    assert header.destination_uri == sent.properties["MTOSI_destinationURI"] == address.partition("?")[0]


def test_what_a_producer_sends_is_stored_too(connection: Any) -> None:
    publisher = Publisher(connection, {"Fault": "jms/FaultTopic"}, sender_uri="jms/EmsOS", persistent=True)
    producer = ProducerService(connection, publisher)
    producer.subscribe(SubscribeRequest(consumer_epr="jms/Consumer", topic="Fault"), None)
    assert [one.delivery_mode for one in producer.publish(alarm())] == [DeliveryMode.PERSISTENT]


@pytest.mark.obligation("NOT2")
@pytest.mark.parametrize("way", ["iteration", "asyncio"])
@pytest.mark.parametrize("durable", ["kept", None])
@pytest.mark.parametrize("stored", [False, True])
def test_a_durable_subscriber_warns_of_what_is_not_stored_once(
    way: str, durable: str | None, stored: bool, connection: Any, noc: Any
) -> None:
    subscriber = Subscriber(noc, "jms/FaultTopic", durable=durable, timeout=0)
    with Publisher(connection, {"Fault": "jms/FaultTopic"}, sender_uri="jms/EmsOS", persistent=True) as publisher:
        publisher.publish(alarm())
    with Publisher(connection, {"Fault": "jms/FaultTopic"}, sender_uri="jms/EmsOS", persistent=stored) as publisher:
        for _ in range(3):
            publisher.publish(alarm())

    async def received() -> list[Any]:
        return [one async for one in subscriber.aio]

    found = list(subscriber) if way == "iteration" else asyncio.run(received())
    warned = [[warning.rule for warning in one.envelope.warnings] for one in found]
    assert warned == [[], [] if stored or durable is None else ["O6b"], [], []]
    subscriber.close()
