"""Topics: every current subscriber gets a copy."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.jms import Queue, Topic
from mtosi_jms.transport import Capability, Connection


class TestTopics:
    @pytest.mark.obligation("P8", "F2")
    def test_every_current_subscriber_gets_a_copy(
        self, provider: Any, connection: Connection, topic: Topic, text: Any, drain: Any
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

    def test_nobody_listens(self, connection: Connection, topic: Topic, text: Any, nothing: Any) -> None:
        session = connection.session()
        assert session.send(topic, text(1)).destination == topic
        assert nothing(session.consumer(topic))

    @pytest.mark.capability(Capability.SAME_NAMES)
    def test_a_queue_of_the_same_name_is_another(
        self, connection: Connection, topic: Topic, text: Any, nothing: Any
    ) -> None:
        session = connection.session()
        consumer = session.consumer(Queue(topic.name))
        session.send(topic, text(1))
        assert nothing(consumer)

    def test_a_subscriber_recovers_its_own_copy(
        self, connection: Connection, topic: Topic, text: Any, take: Any, nothing: Any
    ) -> None:
        one, two = connection.session(), connection.session()
        first, second = one.consumer(topic), two.consumer(topic)
        connection.session().send(topic, text(1))
        take(first)
        take(second).acknowledge()
        one.recover()
        assert take(first).message.redelivered
        assert nothing(second)

    def test_a_closed_subscriber_gets_nothing_more(
        self, connection: Connection, topic: Topic, text: Any, take: Any, nothing: Any
    ) -> None:
        session = connection.session()
        with session.consumer(topic) as consumer:
            session.send(topic, text(1))
            delivery = take(consumer)
        delivery.acknowledge()
        session.send(topic, text(2))
        assert nothing(session.consumer(topic))
