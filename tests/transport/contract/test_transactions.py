"""Transacted sessions: sends and receives take effect together."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.errors import IllegalStateError, InvalidDestinationError
from mtosi_jms.jms import Queue
from mtosi_jms.transport._descriptor import Capability
from mtosi_jms.transport.base import Connection


class TestTransactions:
    """P18: sends and receives take effect together."""

    @pytest.mark.obligation("P18")
    def test_sends_are_seen_at_commit(
        self, connection: Connection, queue: Queue, text: Any, drain: Any, nothing: Any
    ) -> None:
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
    def test_rollback_undoes_both_ways(
        self, connection: Connection, queue: Queue, text: Any, take: Any, nothing: Any
    ) -> None:
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
    def test_close_rolls_back(self, connection: Connection, queue: Queue, text: Any, take: Any, drain: Any) -> None:
        connection.session().send(queue, text(1))
        with connection.session(transacted=True) as session:
            take(session.consumer(queue))
            session.send(queue, text(2))
        again = drain(connection.session().consumer(queue))
        assert [(m.body, m.redelivered) for m in again] == [(b"<n>1</n>", True)]

    def test_the_wrong_kind_of_session(self, connection: Connection) -> None:
        with pytest.raises(IllegalStateError):
            connection.session().commit()
        with pytest.raises(IllegalStateError):
            connection.session().rollback()
        with pytest.raises(IllegalStateError):
            connection.session(transacted=True).recover()

    @pytest.mark.capability(Capability.TRANSACTED_RECEIVE)
    @pytest.mark.obligation("P18")
    def test_a_commit_that_cannot_be_is_rolled_back(
        self, provider: Any, connection: Connection, queue: Queue, text: Any, take: Any, drain: Any
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
