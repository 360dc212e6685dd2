"""subscribe and unsubscribe: a consumer and no message by default (R8, P35), requests to a producer on demand (C40)."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.binding.selector import P
from mtosi_jms.errors import ConfigError, IllegalStateError, MtosiFault, ResourceLimitError, SelectorError
from mtosi_jms.jms import Topic
from mtosi_jms.notifications import LocalBroker, ProducerService, Publisher, Subscriber, expression_of, selector_of
from mtosi_jms.stubs.fmw.gen import QueryExpressionType
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.stubs.fmw.msg import (
    InvalidFilterDefinitionFault,
    InvalidInputFault,
    InvalidTopicFault,
    NotImplementedFault,
)
from mtosi_jms.stubs.fmw.notification_broker import NotificationBroker
from mtosi_jms.stubs.fmw.notification_consumer import NotificationConsumer
from mtosi_jms.stubs.fmw.notification_producer import NotificationProducer
from mtosi_jms.stubs.fmw.notmsg import NotifyMessage, SubscribeRequest
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.testing import connect_privately
from mtosi_jms.xmlbind import RawXml

from ...waiting import PATIENCE
from .conftest import alarm, events

TOPICS = {"Inventory": "jms/InventoryTopic", "Fault": "jms/FaultTopic"}
MAJOR = "MTOSI_perceivedSeverity = 'MAJOR'"
BAD_FILTERS = [
    pytest.param(QueryExpressionType(dialect="http://www.w3.org/TR/xpath", content=["//alarm"]), id="xpath"),
    pytest.param(QueryExpressionType(dialect="ANSI-92", content=["(("]), id="no-selector"),
    pytest.param(QueryExpressionType(dialect="ANSI-92", content=[RawXml(b"<x/>")]), id="xml"),
]


@pytest.fixture
def broker(connection: Any, publisher: Publisher) -> Iterator[LocalBroker]:
    numbers = map(str, itertools.count(1))
    with LocalBroker(connection, TOPICS, publisher=publisher, new_id=lambda: next(numbers), timeout=0) as made:
        yield made


@pytest.fixture
def local(broker: LocalBroker) -> NotificationBroker:
    return NotificationBroker(broker, "")


@pytest.mark.obligation("R8", "P24", "P35", "C40")
def test_subscribe_makes_a_consumer_and_sends_nothing(
    local: NotificationBroker, broker: LocalBroker, connection: Any, publisher: Publisher
) -> None:
    others = [Subscriber(connection, topic, timeout=0) for topic in TOPICS.values()]
    told = local.subscribe(consumer_epr="jms/NocOS", topic="Fault", selector=expression_of(MAJOR))
    assert (told.subscription_id, connection.consumers(Topic("FAULT"))) == ("1", 2)
    assert [list(other) for other in others] == [[], []]
    assert connection.provider.held() == 0
    for severity in ("MINOR", "MAJOR"):
        publisher.publish(alarm(severity=severity))
    subscriber = broker.subscribers("1")["Fault"]
    assert [event.perceived_severity for event in events(subscriber)] == ["MAJOR"]
    local.unsubscribe(subscription_id="1")
    with pytest.raises(IllegalStateError):
        next(subscriber)
    with pytest.raises(MtosiFault, match="no subscription 1"):
        local.unsubscribe(subscription_id="1")


@pytest.mark.obligation("P35")
def test_without_a_topic_all_of_them(local: NotificationBroker, broker: LocalBroker, publisher: Publisher) -> None:
    told = local.subscribe(consumer_epr="jms/NocOS")
    publisher.broadcast(Heartbeat())
    found = broker.subscribers(told.subscription_id)
    assert {topic: len(list(subscriber)) for topic, subscriber in found.items()} == {"Inventory": 1, "Fault": 1}
    local.unsubscribe(subscription_id=told.subscription_id, topic="Fault")
    assert list(broker.subscribers(told.subscription_id)) == ["Inventory"]
    with pytest.raises(InvalidInputFault):
        local.unsubscribe(subscription_id=told.subscription_id, topic="Fault")
    local.unsubscribe(subscription_id=told.subscription_id, topic="Inventory")
    with pytest.raises(InvalidInputFault):
        broker.subscribers(told.subscription_id)


@pytest.mark.obligation("P35")
def test_a_topic_by_the_name_of_its_destination(local: NotificationBroker, broker: LocalBroker) -> None:
    told = local.subscribe(consumer_epr="jms/NocOS", topic="jms/ProtectionTopic")
    (subscriber,) = broker.subscribers(told.subscription_id).values()
    assert subscriber.destination == Topic("PROTECTION")


def test_what_a_broker_refuses(local: NotificationBroker, connection: Any) -> None:
    with pytest.raises(InvalidTopicFault):
        local.subscribe(consumer_epr="jms/NocOS", topic="jms/Nowhere")
    with pytest.raises(ConfigError, match="one answer at most"):
        local.subscribe.batches(consumer_epr="jms/NocOS", batch_size=1)
    with pytest.raises(ConfigError, match="without aio"):
        _ = local.caller.aio
    with pytest.raises(NotImplementedFault):
        ManagedElementRetrieval(local.caller, "").get_all_managed_elements()
    assert connection.consumers(Topic("FAULT")) == 0


@pytest.mark.parametrize("wrong", BAD_FILTERS)
def test_a_filter_that_is_none(wrong: QueryExpressionType, local: NotificationBroker) -> None:
    with pytest.raises(InvalidFilterDefinitionFault):
        local.subscribe(consumer_epr="jms/NocOS", topic="Fault", selector=wrong)


def test_when_one_topic_fails_no_consumer_stays(connection: Any) -> None:
    broker = LocalBroker(connection, TOPICS, durable="one name for two topics")
    with pytest.raises(IllegalStateError):
        NotificationBroker(broker, "").subscribe(consumer_epr="jms/NocOS")
    assert [connection.consumers(Topic(topic)) for topic in ("INVENTORY", "FAULT")] == [0, 0]


@pytest.mark.obligation("P26")
def test_notify_is_one_way(local: NotificationBroker, connection: Any) -> None:
    subscriber = Subscriber(connection, "jms/FaultTopic", timeout=0)
    message = NotifyMessage(common_event_information=[alarm(), ResourceObjectCreation(object_type="ME")])
    assert local.notify(topic="Fault", message=message) is None
    assert [type(event) for event in events(subscriber)] == [Alarm, ResourceObjectCreation]
    with pytest.raises(InvalidTopicFault):
        local.notify(topic="jms/NocOS", message=message)
    silent = NotificationBroker(LocalBroker(connection, TOPICS), "")
    with pytest.raises(NotImplementedFault):
        silent.notify(topic="Fault", message=message)


def test_selectors_as_expressions() -> None:
    for selector in (MAJOR, P.perceivedSeverity == "MAJOR"):
        expression = expression_of(selector)
        assert (expression.dialect, expression.content) == ("ANSI-92", [MAJOR])
        assert selector_of(expression).matches({"MTOSI_perceivedSeverity": "MAJOR"})
    assert selector_of(None).matches({})
    with pytest.raises(SelectorError):
        expression_of("((")


# Over SOAP: the producer keeps the subscriptions.


@pytest.fixture
def producer(connection: Any, publisher: Publisher) -> Iterator[ProducerService]:
    service = ProducerService(connection, publisher)
    with mtosi.Supplier(connection, "jms/EmsOS", [service]):
        yield service
    service.close()


@pytest.fixture
def remote(producer: ProducerService, connection: Any) -> Iterator[NotificationProducer]:
    with mtosi.Requestor(connection, sender_uri="jms/NocOS") as requestor:
        yield NotificationProducer(requestor, "jms/EmsOS")


@pytest.mark.obligation("C40", "P24")
def test_subscribe_over_soap(remote: NotificationProducer, producer: ProducerService, connection: Any) -> None:
    """The request goes to the producer; what meets the filter comes to the consumer's own queue."""
    told = remote.subscribe(consumer_epr="jms/Consumer", topic="Fault", selector=expression_of(MAJOR))
    (subscription,) = producer.subscriptions.values()
    assert (str(subscription.consumer), subscription.uri, subscription.topics) == (
        "queue:CONSUMER",
        "jms/Consumer",
        {"FAULT"},
    )
    for severity in ("MINOR", "MAJOR"):
        producer.publish(alarm(severity=severity))
    assert producer.publish(ResourceObjectCreation(object_type="ME")) == []
    consumer = Subscriber(connection, "jms/Consumer", timeout=0)
    ((event, envelope, message),) = consumer
    assert isinstance(event, Alarm)
    assert event.perceived_severity == "MAJOR"
    assert (envelope.body.topic, message.properties["MTOSI_destinationURI"]) == ("FAULT", "jms/Consumer")
    remote.unsubscribe(subscription_id=told.subscription_id)
    assert (producer.publish(alarm(severity="MAJOR")), producer.subscriptions) == ([], {})
    with pytest.raises(MtosiFault) as fault:
        remote.unsubscribe(subscription_id=told.subscription_id)
    assert fault.value.kind == "invalidInput"


@pytest.mark.obligation("C40")
def test_the_consumer_may_be_a_service(
    remote: NotificationProducer, producer: ProducerService, connection: Any
) -> None:
    """NotificationConsumer is served like any interface."""
    received: Future[Any] = Future()

    class Noc(NotificationConsumer.Supplier):
        def notify(self, request: Any, context: Any) -> None:
            received.set_result(request)

    remote.subscribe(consumer_epr="jms/Consumer", topic="jms/FaultTopic")
    with mtosi.Supplier(connection, "jms/Consumer", [Noc()]):
        producer.publish(alarm())
        assert len(received.result(PATIENCE).message.common_event_information) == 1


@pytest.mark.obligation("C40")
def test_topics_of_a_subscription(remote: NotificationProducer, producer: ProducerService, connection: Any) -> None:
    told = remote.subscribe(consumer_epr="jms/Consumer")
    given = [alarm(), ResourceObjectCreation(object_type="ME"), Heartbeat()]
    assert [len(producer.publish(event)) for event in given] == [1, 1, 1], "what concerns all topics comes once"
    remote.unsubscribe(subscription_id=told.subscription_id, topic="FAULT")
    assert [len(producer.publish(event)) for event in given] == [0, 1, 1]
    assert len(producer.publish(alarm(), category="Inventory")) == 1
    with pytest.raises(MtosiFault) as fault:
        remote.unsubscribe(subscription_id=told.subscription_id, topic="Fault")
    assert fault.value.kind == "invalidInput"


@pytest.mark.obligation("C43")
@pytest.mark.parametrize("consumer", ["jms/Nowhere", "queue:SOMEBODY.ELSES"])
def test_a_producer_sends_only_where_it_may(consumer: str, remote: NotificationProducer) -> None:
    with pytest.raises(MtosiFault) as fault:
        remote.subscribe(consumer_epr=consumer)
    assert fault.value.kind == "invalidInput"


def test_who_may_receive_is_for_the_producer_to_say(connection: Any, publisher: Publisher) -> None:
    service = ProducerService(connection, publisher, allows=lambda destination: destination.name == "ANY")
    service.subscribe(SubscribeRequest(consumer_epr="queue:ANY"), None)
    with pytest.raises(MtosiFault):
        service.subscribe(SubscribeRequest(consumer_epr="jms/Consumer"), None)


@pytest.mark.parametrize("wrong", BAD_FILTERS)
def test_a_producer_refuses_filters(wrong: QueryExpressionType, remote: NotificationProducer) -> None:
    with pytest.raises(MtosiFault) as fault:
        remote.subscribe(consumer_epr="jms/Consumer", selector=wrong)
    assert fault.value.kind == "invalidFilterDefinition"


def test_a_producer_has_the_topics_of_its_publisher(remote: NotificationProducer) -> None:
    for topic in ("Weather", "jms/NocOS"):
        with pytest.raises(MtosiFault) as fault:
            remote.subscribe(consumer_epr="jms/Consumer", topic=topic)
        assert fault.value.kind == "invalidTopic"


def test_one_subscriber_that_cannot_be_reached_is_no_harm_to_others(caplog: pytest.LogCaptureFixture) -> None:
    """A queue that is full, and one that is not."""
    errors: list[Exception] = []
    names = {**{topic: f"topic:{name}" for name, topic in TOPICS.items()}, "jms/A": "queue:A", "jms/B": "queue:B"}
    with connect_privately(names, capacity=1, send_timeout=0) as connection:
        publisher = Publisher(connection, TOPICS, sender_uri="jms/EmsOS")
        service = ProducerService(connection, publisher, on_error=errors.append)
        service.subscribe(SubscribeRequest(consumer_epr="jms/A"), None)
        assert len(service.publish(alarm())) == 1
        service.subscribe(SubscribeRequest(consumer_epr="jms/B"), None)
        with caplog.at_level(logging.WARNING):
            sent = service.publish(alarm())
    assert [str(message.destination) for message in sent] == ["queue:B"]
    assert [type(error) for error in errors] == [ResourceLimitError]
    assert "could not be sent to jms/A" in caplog.text
