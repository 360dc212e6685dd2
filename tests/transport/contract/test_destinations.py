"""Topics, temporary destinations and producers: who gets a copy, who may read, which settings messages go out with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, InvalidDestinationError
from mtosi_jms.jms import Destination, Queue, TemporaryQueue, Topic
from mtosi_jms.jms.message import DeliveryMode
from mtosi_jms.transport import Capability, Connection

from .conftest import take, text


class TestTopics:
    @pytest.mark.obligation("P8", "F2")
    def test_every_current_subscriber_gets_a_copy(
        self, provider: Any, connection: Connection, topic: Topic, drain: Any
    ) -> None:
        """P8, P34: those who come later miss it."""
        other = provider.connect()
        other.start()
        early = [connection.session().consumer(topic), other.session().consumer(topic)]
        connection.session().send(topic, text(1))
        late = connection.session().consumer(topic)
        connection.session().send(topic, text(2))
        assert [[m.body for m in drain(consumer)] for consumer in early] == [[b"<n>1</n>", b"<n>2</n>"]] * 2
        assert [m.body for m in drain(late)] == [b"<n>2</n>"]

    @pytest.mark.capability(Capability.SAME_NAMES)
    def test_a_queue_of_the_same_name_is_another(self, connection: Connection, topic: Topic, nothing: Any) -> None:
        session = connection.session()
        consumer = session.consumer(Queue(topic.name))
        session.send(topic, text(1))
        assert nothing(consumer)

    def test_a_subscriber_recovers_its_own_copy(self, connection: Connection, topic: Topic, nothing: Any) -> None:
        one, two = connection.session(), connection.session()
        first, second = one.consumer(topic), two.consumer(topic)
        connection.session().send(topic, text(1))
        take(first)
        take(second).acknowledge()
        one.recover()
        assert take(first).message.redelivered
        assert nothing(second)

    def test_a_closed_subscriber_gets_nothing_more(self, connection: Connection, topic: Topic, nothing: Any) -> None:
        session = connection.session()
        with session.consumer(topic) as consumer:
            session.send(topic, text(1))
            delivery = take(consumer)
        delivery.acknowledge()
        session.send(topic, text(2))
        assert nothing(session.consumer(topic))


class TestTemporaryDestinations:
    @pytest.mark.capability(Capability.MESSAGE_IDS)
    @pytest.mark.obligation("R2b", "P5")
    def test_a_reply_comes_back(self, provider: Any, connection: Connection, queue: Queue) -> None:
        """R2b: a requestor's temporary queue, a supplier on another connection that answers JMSReplyTo."""
        requestor = connection.session()
        reply_queue = requestor.temporary_queue()
        requestor.send(queue, text("ask", reply_to=reply_queue))
        other = provider.connect()
        other.start()
        supplier = other.session()
        request = take(supplier.consumer(queue)).message
        assert isinstance(request.reply_to, TemporaryQueue)
        supplier.send(request.reply_to, text("answer", correlation_id=request.message_id))
        reply = take(requestor.consumer(reply_queue)).message
        assert (reply.body, reply.correlation_id) == (text("answer").body, request.message_id)

    @pytest.mark.obligation("R2c")
    def test_only_its_connection_may_consume(self, provider: Any, connection: Connection) -> None:
        """R2c."""
        session = connection.session()
        temporary = session.temporary_queue()
        assert temporary.owner == connection.id
        with pytest.raises(InvalidDestinationError, match="R2c"):
            provider.connect().session().consumer(temporary)
        with pytest.raises(InvalidDestinationError, match="R2c"):
            provider.connect().session().consumer(replace(temporary, owner=""))
        assert connection.session().consumer(temporary).destination == temporary

    @pytest.mark.capability(Capability.TEMPORARY_CHECKED)
    def test_it_goes_with_its_connection(self, provider: Any, connection: Connection) -> None:
        made = provider.connect()
        session = made.session()
        temporary = session.temporary_queue()
        session.send(temporary, text(1))
        session.close()
        connection.session().send(temporary, text(2))
        made.close()
        with pytest.raises(InvalidDestinationError):
            connection.session().send(temporary, text(3))

    @pytest.mark.obligation("P5")
    def test_each_is_another(self, connection: Connection) -> None:
        """P5: the system names it."""
        session = connection.session()
        assert len({session.temporary_queue().name for _ in range(10)}) == 10

    @pytest.mark.obligation("R2c", "P5")
    def test_a_temporary_topic(self, provider: Any, connection: Connection) -> None:
        session = connection.session()
        temporary = session.temporary_topic()
        consumers = [session.consumer(temporary), session.consumer(temporary)]
        provider.connect().session().send(temporary, text(1))
        assert [take(consumer).message.body for consumer in consumers] == [b"<n>1</n>"] * 2
        with pytest.raises(InvalidDestinationError, match="R2c"):
            provider.connect().session().consumer(temporary)


PERSISTENT, NON_PERSISTENT = DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT


@pytest.mark.obligation("P11", "O6a", "T1.3", "T1.5", "T1.6")
@pytest.mark.parametrize(
    ("producer", "call", "sent"),
    [
        ({}, {}, (NON_PERSISTENT, 2, 7_000)),
        ({"delivery_mode": PERSISTENT}, {}, (PERSISTENT, 2, 7_000)),
        ({"priority": 9, "time_to_live_ms": 60_000}, {}, (NON_PERSISTENT, 9, 60_000)),
        ({"priority": 9, "time_to_live_ms": 60_000}, {"priority": 0, "time_to_live_ms": 0}, (NON_PERSISTENT, 0, 0)),
        ({"delivery_mode": PERSISTENT}, {"delivery_mode": NON_PERSISTENT}, (NON_PERSISTENT, 2, 7_000)),
        ({}, {"delivery_mode": PERSISTENT, "priority": 5}, (PERSISTENT, 5, 7_000)),
    ],
)
def test_the_call_then_the_producer_then_the_message(
    connection: Connection, queue: Queue, producer: dict[str, Any], call: dict[str, Any], sent: tuple[object, ...]
) -> None:
    session = connection.session()
    session.producer(queue, **producer).send(text(1, priority=2, time_to_live_ms=7_000), **call)
    message = take(session.consumer(queue)).message
    life = message.expiration_ms - message.timestamp_ms if message.expiration_ms else 0
    assert (message.delivery_mode, message.priority) == sent[:2]
    assert life == pytest.approx(sent[2], abs=500)  # who sends may set the end, and the provider the beginning


@pytest.mark.obligation("O4", "P4")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_one_interface_for_queues_and_topics(
    connection: Connection, kind: str, request: pytest.FixtureRequest, bodies: Any
) -> None:
    """A producer sends nothing by being made; the same calls serve both kinds."""
    destination: Destination = request.getfixturevalue(kind)
    session = connection.session()
    consumer = session.consumer(destination)
    producer = session.producer(destination)
    assert bodies(consumer) == []
    producer.send(text(1))
    assert bodies(consumer) == ["1"]


@pytest.mark.parametrize("setting", [{"priority": 10}, {"priority": -1}, {"time_to_live_ms": -1}])
def test_a_setting_out_of_its_range(connection: Connection, queue: Queue, setting: dict[str, int]) -> None:
    session = connection.session()
    with pytest.raises(ConfigError):
        session.producer(queue, **setting)
    with pytest.raises(ConfigError):
        session.producer(queue).send(text(1), **setting)
