"""Publisher and Subscriber: routing by category, Table 4 as properties, life times, and reading of all sorts."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms import DurableLanding
from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.profile import FILTER_ATTRIBUTES, TopicCategory
from mtosi_jms.errors import (
    ConfigError,
    EncodeError,
    EnvelopeError,
    IllegalStateError,
    MalformedXmlError,
    NamingError,
    SelectorError,
    SpoolError,
)
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue, Topic
from mtosi_jms.notifications import Loss, Publisher, Subscriber
from mtosi_jms.soap import Envelope, Header, parse
from mtosi_jms.spool import entries, read_acknowledgements
from mtosi_jms.stubs.fmw.fts import FileTransferStatus
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage
from mtosi_jms.stubs.nra.alm import Alarm, AlarmType
from mtosi_jms.stubs.nra.com import PerceivedSeverityType
from mtosi_jms.stubs.nrb.rscavc import ResourceAttributeValueChange
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrb.rscodel import ResourceObjectDeletion
from mtosi_jms.stubs.nrb.rscodis import ResourceObjectDiscovery
from mtosi_jms.stubs.nrb.rscsc import ResourceStateChange
from mtosi_jms.validation import SchemaSet, Validator

from ...waiting import PATIENCE, background
from .conftest import alarm, events

DAY, HALF_HOUR = 86_400_000, 1_800_000


def subscribe(connection: Any, destination: Any, **options: Any) -> Subscriber:
    return Subscriber(connection, destination, timeout=0, **options)


@pytest.mark.obligation("O7a", "O7b", "O10a", "C21", "C29")
@pytest.mark.parametrize(
    ("event", "topic", "shown", "time_to_live"),
    [
        (ResourceObjectCreation(object_type="ME"), "INVENTORY", "ObjectCreation", DAY),
        (ResourceObjectDeletion(object_type="ME"), "INVENTORY", "ObjectDeletion", DAY),
        (ResourceObjectDiscovery(), "INVENTORY", "ObjectDiscovery", DAY),
        (ResourceAttributeValueChange(object_type="ME"), "INVENTORY", "AttributeValueChange", DAY),
        (ResourceStateChange(object_type="ME"), "INVENTORY", "StateChange", DAY),
        (Alarm(object_type="ME"), "FAULT", "AlarmInformation", HALF_HOUR),
    ],
    ids=lambda value: (
        type(value).__name__ if isinstance(value, object) and not isinstance(value, str | int) else str(value)
    ),
)
def test_events_go_to_the_topic_of_their_category(
    event: Any, topic: str, shown: str, time_to_live: int, publisher: Publisher
) -> None:
    """O10, C21, C27, C29."""
    sent = publisher.publish(event)
    assert sent.destination == Topic(topic)
    assert sent.properties["MTOSI_EventType"] == shown
    assert (sent.time_to_live_ms, sent.expiration_ms) == (time_to_live, (sent.timestamp_ms or 0) + time_to_live)


@pytest.mark.obligation("R9a", "R19", "C13", "C30")
def test_a_notification_as_it_goes_out(publisher: Publisher) -> None:
    """R13a, C13: no reply address, no correlation id; the configured attributes of Table 4 and no others."""
    sent = publisher.publish(alarm())
    properties = dict(sent.properties)
    assert properties == {
        "MTOSI_activityName": "notify",
        "MTOSI_communicationPattern": "Notification",
        "MTOSI_communicationStyle": "MSG",
        "MTOSI_destinationURI": "jms/FaultTopic",
        "MTOSI_msgName": "notify",
        "MTOSI_msgType": "NOTIFICATION",
        "MTOSI_senderURI": "jms/EmsOS",
        "MTOSI_EventType": "AlarmInformation",
        "MTOSI_objectType": "ME",
        "MTOSI_perceivedSeverity": "CRITICAL",
    }
    assert (sent.reply_to, sent.correlation_id, sent.delivery_mode) == (None, None, DeliveryMode.NON_PERSISTENT)
    envelope = parse(sent.body)
    assert envelope.warnings == []
    assert envelope.header is not None
    assert (envelope.header.correlation_id, envelope.header.reply_to_uri) == (None, None)
    assert (envelope.body.topic, len(envelope.body.message.common_event_information)) == ("FAULT", 1)


def test_what_is_published_is_valid(publisher: Publisher) -> None:
    validator = Validator(SchemaSet.load())
    now = dt.datetime(2026, 5, 4, 12, 0, tzinfo=dt.UTC)
    published = [
        alarm(source_time=now, os_time=now),
        ResourceObjectDeletion(object_name=name("MD=1"), object_type="ME", os_time=now),
    ]
    for event in published:
        report = validator.validate_bytes(publisher.publish(event).body)
        assert [issue.message for issue in report.issues] == []


@pytest.mark.obligation("R9a", "R19", "R20b")
@pytest.mark.parametrize(
    "chosen", [frozenset[str](), frozenset({"objectName"}), frozenset({"EventType", "sourceTime"})]
)
def test_the_profile_says_which_attributes_become_properties(
    chosen: frozenset[str], connection: Any, topics: Any
) -> None:
    """R9a, R19, R20b."""
    profile = BindingProfile(filter_properties=chosen)
    publisher = Publisher(connection, topics, sender_uri="jms/EmsOS", profile=profile)
    sent = publisher.publish(alarm(source_time=dt.datetime(2026, 5, 4, 12, 0, tzinfo=dt.UTC)))
    table4 = {f"MTOSI_{attribute}" for attribute in chosen}
    table2 = {
        "activityName",
        "communicationPattern",
        "communicationStyle",
        "destinationURI",
        "msgName",
        "msgType",
        "senderURI",
    }
    assert set(sent.properties) == table4 | {f"MTOSI_{field}" for field in table2}


@pytest.mark.obligation("C29")
def test_figure_10_routes_state_changes_to_faults(connection: Any, topics: Any) -> None:
    publisher = Publisher(connection, topics, sender_uri="jms/EmsOS", profile=BindingProfile(topic_routing="figure10"))
    assert publisher.publish(ResourceStateChange(object_type="ME")).destination == Topic("FAULT")


@pytest.mark.obligation("C29")
def test_events_of_no_category_go_where_the_caller_says(publisher: Publisher) -> None:
    """C29."""
    for event in (Heartbeat(), FileTransferStatus()):
        with pytest.raises(ConfigError, match="belongs to no category"):
            publisher.publish(event)
    for category in ("Protection", TopicCategory.PROTECTION):
        assert publisher.publish(Heartbeat(), category=category).destination == Topic("PROTECTION")
    assert publisher.publish(alarm(), category="Inventory").destination == Topic("INVENTORY")


def test_what_cannot_be_published(publisher: Publisher, connection: Any) -> None:
    with pytest.raises(ConfigError, match="AlarmType is a type, not an event"):
        publisher.publish(AlarmType(perceived_severity=PerceivedSeverityType.MAJOR, acknowledge_indication=None))  # type: ignore[arg-type]
    with pytest.raises(EncodeError):
        publisher.publish(alarm(object_type="no \x00 in XML"))
    with pytest.raises(ConfigError, match="no category 'Weather'; there are Inventory, Fault, Protection"):
        publisher.publish(alarm(), category="Weather")
    faults = Publisher(connection, {"Fault": "jms/FaultTopic"}, sender_uri="jms/EmsOS")
    with pytest.raises(ConfigError, match="no topic for the category Inventory"):
        faults.publish(ResourceObjectCreation(object_type="ME"))
    faults.close()
    with pytest.raises(IllegalStateError):
        faults.publish(alarm())


@pytest.mark.obligation("R2b")
def test_publishers_that_cannot_be(connection: Any) -> None:
    temporary = connection.session().temporary_topic()
    for topics, error in (
        ({}, ConfigError),
        ({"Fault": temporary}, ConfigError),
        ({"Fault": "jms/Nowhere"}, NamingError),
        ({"Weather": "jms/FaultTopic"}, ConfigError),
    ):
        with pytest.raises(error):
            Publisher(connection, topics, sender_uri="jms/EmsOS")  # type: ignore[arg-type]


@pytest.mark.obligation("C13")
def test_literal_rule_16_for_notifications(connection: Any, topics: Any) -> None:
    """C13: by the letter, the sender's destination stands in JMSReplyTo of everything."""
    profile = BindingProfile.preset("literal")
    sent = Publisher(connection, topics, sender_uri="jms/EmsOS", profile=profile).publish(alarm())
    assert sent.reply_to == Queue("EMS")


@pytest.mark.obligation("F10", "P25", "P34")
def test_figure_10_two_topics_two_subscribers(connection: Any, publisher: Publisher) -> None:
    """F10, P34: four receipts for a pair of events."""
    subscribers = [subscribe(connection, topic) for _ in range(2) for topic in ("jms/InventoryTopic", "jms/FaultTopic")]
    publisher.publish(ResourceObjectCreation(object_type="ME"))
    publisher.publish(alarm())
    received = [[type(event).__name__ for event in events(subscriber)] for subscriber in subscribers]
    assert received == [["ResourceObjectCreation"], ["Alarm"]] * 2


@pytest.mark.obligation("O11")
def test_several_publishers_share_a_topic(connection: Any, topics: Any) -> None:
    """O11."""
    subscriber = subscribe(connection, "jms/FaultTopic")
    for sender in ("A", "B"):
        Publisher(connection, topics, sender_uri=sender).publish(alarm())
    headers = [envelope.header for _, envelope, _ in subscriber]
    assert [header.sender_uri for header in headers if header is not None] == ["A", "B"]


@pytest.mark.obligation("O12a", "O2")
def test_notifications_over_a_queue(connection: Any) -> None:
    """O12a: each goes to one of the subscribers, and waits for one."""
    publisher = Publisher(connection, {"Fault": Queue("ALARMS")}, sender_uri="jms/EmsOS")
    publisher.publish(alarm())
    publisher.publish(alarm())
    both = [subscribe(connection, Queue("ALARMS")) for _ in range(2)]
    assert sum(len(list(subscriber)) for subscriber in both) == 2


def message_of(*events: Any, header: bool = True) -> bytes:
    body = Notify(topic="T", message=NotifyMessage(common_event_information=list(events)))
    return Envelope(header=Header(activity_name="notify") if header else None, body=body).encode()


def test_messages_that_cannot_be_read_go_to_the_hook(connection: Any, publisher: Publisher) -> None:
    errors: list[Exception] = []
    subscriber = subscribe(connection, "jms/FaultTopic", on_error=errors.append)
    session = connection.session()
    soap = b'<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body/></s:Envelope>'
    for body in (b"<torn", b"<a/>", soap, b""):
        session.send(Topic("FAULT"), JmsMessage(body=body))
    publisher.publish(alarm())
    assert [type(event).__name__ for event in events(subscriber)] == ["Alarm"]
    assert [type(error) for error in errors] == [MalformedXmlError, EnvelopeError, EnvelopeError, MalformedXmlError]


def test_without_a_hook_they_are_raised_and_iteration_may_go_on(connection: Any, publisher: Publisher) -> None:
    subscriber = subscribe(connection, "jms/FaultTopic")
    connection.session().send(Topic("FAULT"), JmsMessage(body=b"<torn"))
    publisher.publish(alarm())
    with pytest.raises(MalformedXmlError):
        next(subscriber)
    assert isinstance(next(subscriber).event, Alarm)
    assert connection.provider.held() == 0


def test_what_is_no_notification_is_handed_out_as_it_is(connection: Any) -> None:
    subscriber = subscribe(connection, "jms/FaultTopic")
    body = message_of(alarm()).replace(b"http://www.tmforum.org/mtop/fmw/xsd/notmsg/v1", b"urn:other")
    connection.session().send(Topic("FAULT"), JmsMessage(body=body))
    (found,) = events(subscriber)
    assert found.tag == "{urn:other}notify"


def test_a_subscriber_that_waits_gets_what_comes(connection: Any, publisher: Publisher) -> None:
    subscriber = Subscriber(connection, "jms/FaultTopic")
    received = background(lambda: next(subscriber))
    publisher.publish(alarm())
    assert isinstance(received.result(PATIENCE).event, Alarm)


def test_closing_ends_the_iteration(connection: Any) -> None:
    waiting: Future[Loss] = Future()
    with Subscriber(connection, "jms/FaultTopic", heartbeat=0.01, on_loss=waiting.set_result) as subscriber:
        received = background(lambda: list(subscriber))
        waiting.result(PATIENCE)
        subscriber.close()
        assert received.result(PATIENCE) == []
    assert connection.consumers(Topic("FAULT")) == 0


def test_a_time_out_ends_the_iteration_and_not_the_subscription(connection: Any, publisher: Publisher) -> None:
    subscriber = Subscriber(connection, "jms/FaultTopic", timeout=0.01)
    assert list(subscriber) == []
    publisher.publish(alarm())
    assert len(list(subscriber)) == 1


def test_subscribers_that_cannot_be(connection: Any) -> None:
    with pytest.raises(NamingError):
        Subscriber(connection, "jms/Nowhere")
    with pytest.raises(SelectorError):
        Subscriber(connection, "jms/FaultTopic", selector="((")
    assert connection.consumers(Topic("FAULT")) == 0


def test_every_message_is_landed(tmp_path: Path, connection: Any, publisher: Publisher) -> None:
    """Unreadable ones too; all are in the acknowledgement log."""
    errors: list[Exception] = []
    with DurableLanding(tmp_path / "landing", ack_log=tmp_path / "ack.jsonl") as landing:
        subscriber = subscribe(connection, "jms/FaultTopic", landing=landing, on_error=errors.append)
        publisher.publish(alarm())
        connection.session().send(Topic("FAULT"), JmsMessage(body=b"<torn"))
        assert len(list(subscriber)) == 1
    landed = list(entries(tmp_path / "landing", strict=True))
    assert [entry.read_body() == b"<torn" for entry in landed] == [False, True]
    assert [line.entry for line in read_acknowledgements(tmp_path / "ack.jsonl")] == [entry.name for entry in landed]
    assert len(errors) == 1


def test_a_message_that_cannot_be_landed_is_delivered_again(connection: Any, publisher: Publisher) -> None:
    class Failing:
        failures = 1

        def land(self, message: JmsMessage) -> None:
            self.failures -= 1
            if self.failures >= 0:
                raise SpoolError("landing", "the disk is full")

        def acknowledged(self, landed: Any, *, correlation_id: str | None, batch_number: int | None) -> None:
            assert landed is None

    subscriber = subscribe(connection, "jms/FaultTopic", landing=Failing())
    publisher.publish(alarm())
    with pytest.raises(SpoolError):
        next(subscriber)
    assert isinstance(next(subscriber).event, Alarm)
    assert connection.provider.held() == 0


def test_the_page_names_the_properties_of_filters(root: Path) -> None:
    page = (root / "docs" / "notifications.md").read_text(encoding="utf-8")
    table = page[page.index("| property |") : page.index("| the others |")]
    formed = {"EventType", "objectName", "aliasNameList", "perceivedSeverity", "osTime", "sourceTime"}
    formed |= {"isEdgePointRelated", "rootCauseAlarmIndication"}
    assert formed <= FILTER_ATTRIBUTES
    assert all(f"MTOSI_{attribute}" in table for attribute in formed)
