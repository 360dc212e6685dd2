"""Transacted sessions: sends and receives take effect together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mtosi_jms.errors import InvalidDestinationError
from mtosi_jms.jms import Queue
from mtosi_jms.transport import Capability, Connection

from ...waiting import PATIENCE
from .conftest import take, text

MANY = 120
"""More than any transport has on the way by default."""


class TestTransactions:
    """P18: sends and receives take effect together."""

    @pytest.mark.obligation("P18")
    def test_sends_are_seen_at_commit(self, connection: Connection, queue: Queue, drain: Any, nothing: Any) -> None:
        session, consumer = connection.session(transacted=True), connection.session().consumer(queue)
        for number in range(3):
            session.send(queue, text(number))
        assert nothing(consumer)
        session.commit()
        assert [m.body for m in drain(consumer)] == [text(n).body for n in range(3)]
        session.commit()
        assert nothing(consumer)

    @pytest.mark.capability(Capability.TRANSACTED_RECEIVE)
    @pytest.mark.obligation("P18", "T1.10")
    def test_rollback_undoes_both_ways(self, connection: Connection, queue: Queue, nothing: Any) -> None:
        connection.session().send(queue, text(1))
        session = connection.session(transacted=True)
        consumer = session.consumer(queue)
        take(consumer).acknowledge()
        session.send(queue, text(2))
        session.rollback()
        again = take(consumer)
        assert (again.message.body, again.message.delivery_count) == (b"<n>1</n>", 2)
        session.commit()
        assert nothing(consumer)
        session.close()
        assert nothing(connection.session().consumer(queue))

    @pytest.mark.capability(Capability.TRANSACTED_RECEIVE)
    @pytest.mark.obligation("P18")
    def test_close_rolls_back(self, connection: Connection, queue: Queue, drain: Any) -> None:
        connection.session().send(queue, text(1))
        with connection.session(transacted=True) as session:
            take(session.consumer(queue))
            session.send(queue, text(2))
        again = drain(connection.session().consumer(queue))
        assert [(m.body, m.redelivered) for m in again] == [(b"<n>1</n>", True)]

    @pytest.mark.capability(Capability.TRANSACTED_RECEIVE, Capability.COMMIT_CHECKED)
    @pytest.mark.obligation("P18")
    def test_a_commit_that_cannot_be_is_rolled_back(
        self, provider: Any, connection: Connection, queue: Queue, drain: Any
    ) -> None:
        other = provider.connect()
        temporary = other.session().temporary_queue()
        connection.session().send(queue, text(1))
        session = connection.session(transacted=True)
        consumer = session.consumer(queue)
        take(consumer)
        session.send(queue, text(2))
        session.send(temporary, text(3))
        other.close()
        with pytest.raises(InvalidDestinationError):
            session.commit()
        # Once more from here and once from the broker, where its refusal ends the connection.
        assert {m.body for m in drain(consumer)} == {b"<n>1</n>"}


@pytest.mark.capability(Capability.TRANSACTED_RECEIVE)
@pytest.mark.obligation("P18")
class TestLargeOnes:
    """More is received in a transaction than a transport may have on the way at once."""

    @pytest.fixture
    def fill(self, connection: Connection) -> Callable[[Queue], list[bytes]]:
        """Sends many messages; their bodies."""
        sender = connection.session(transacted=True)

        def send(queue: Queue) -> list[bytes]:
            messages = [text(number) for number in range(MANY)]
            for message in messages:
                sender.send(queue, message)
            sender.commit()
            return [message.body for message in messages]

        return send

    @pytest.fixture
    def taken(self) -> Callable[[Any, int], list[bytes]]:
        """So many messages, each of which comes."""

        def take(consumer: Any, count: int) -> list[bytes]:
            deliveries = [consumer.receive(PATIENCE) for _ in range(count)]
            assert None not in deliveries
            return [delivery.message.body for delivery in deliveries]

        return take

    @pytest.mark.obligation("001-I16")
    def test_what_is_rolled_back_comes_again(
        self, connection: Connection, fill: Any, taken: Any, queue: Queue, nothing: Any
    ) -> None:
        bodies = fill(queue)
        session = connection.session(transacted=True)
        consumer = session.consumer(queue)
        for size in (3, 70):
            assert sorted(taken(consumer, size)) == sorted(bodies[:size])
            session.rollback()
            again = take(consumer).message
            assert again.redelivered
            assert again.body in bodies
            session.rollback()
        assert sorted(taken(consumer, MANY)) == sorted(bodies)
        session.commit()
        assert nothing(consumer)

    def test_what_was_committed_does_not_come_again(
        self, connection: Connection, fill: Any, taken: Any, queue: Queue, nothing: Any
    ) -> None:
        bodies = fill(queue)
        session = connection.session(transacted=True)
        consumer = session.consumer(queue)
        first = taken(consumer, 55)
        session.commit()
        second = taken(consumer, 55)
        session.rollback()
        assert sorted(taken(consumer, MANY - 55)) == sorted(set(bodies) - set(first))
        assert set(second).isdisjoint(first)
        session.commit()
        assert nothing(consumer)

    def test_sends_go_with_what_was_received(
        self, connection: Connection, fill: Any, taken: Any, queue: Queue, drain: Any, nothing: Any
    ) -> None:
        bodies = fill(queue)
        out = Queue(f"{queue.name}.out")
        session = connection.session(transacted=True)
        consumer, reader = session.consumer(queue), connection.session().consumer(out)
        for end in (session.rollback, session.commit):
            for number, _ in enumerate(taken(consumer, MANY)):
                session.send(out, text(number))
            assert nothing(reader)
            end()
        assert sorted(m.body for m in drain(reader)) == sorted(bodies)
        assert nothing(consumer)

    def test_a_closed_session_gives_all_of_it_back(
        self, connection: Connection, fill: Any, taken: Any, queue: Queue, drain: Any
    ) -> None:
        bodies = fill(queue)
        session = connection.session(transacted=True)
        taken(session.consumer(queue), 70)
        session.close()
        assert sorted(m.body for m in drain(connection.session().consumer(queue))) == sorted(bodies)

    def test_another_consumer_of_the_session_keeps_its_own(
        self, connection: Connection, fill: Any, taken: Any, queue: Queue, nothing: Any
    ) -> None:
        other = Queue(f"{queue.name}.other")
        bodies, others = fill(queue), fill(other)
        session = connection.session(transacted=True)
        one, two = session.consumer(queue), session.consumer(other)
        taken(one, 60)
        taken(two, 2)
        session.rollback()
        assert sorted(taken(two, MANY)) == sorted(others)
        assert sorted(taken(one, MANY)) == sorted(bodies)
        session.commit()
        assert nothing(one)
        assert nothing(two)
