"""The modes beside each other: what each acknowledges by itself, and what it has delivered again."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.jms import Queue, Topic
from mtosi_jms.jms.message import DeliveryMode
from mtosi_jms.transport import AckMode, Capability, Connection

from .conftest import name_of, take, text


class TestLazily:
    """DUPS_OK."""

    @pytest.mark.obligation("P19")
    @pytest.mark.parametrize("count", [1, 5, 100])
    def test_close_acknowledges(self, connection: Connection, queue: Queue, count: int, nothing: Any) -> None:
        with connection.session(AckMode.DUPS_OK) as session:
            for number in range(count):
                session.send(queue, text(number))
            consumer = session.consumer(queue)
            for _ in range(count):
                take(consumer).acknowledge()
        assert nothing(connection.session().consumer(queue))

    @pytest.mark.obligation("P19")
    def test_recover_may_bring_duplicates_and_loses_nothing(
        self, connection: Connection, queue: Queue, drain: Any
    ) -> None:
        session = connection.session(AckMode.DUPS_OK)
        for number in range(60):
            session.send(queue, text(number))
        consumer = session.consumer(queue)
        first = [name_of(take(consumer).message) for _ in range(50)]
        session.recover()
        rest = drain(consumer)
        assert first == [str(number) for number in range(50)]
        assert {name_of(message) for message in rest} >= {str(number) for number in range(50, 60)}
        assert all(message.redelivered for message in rest if name_of(message) in first)

    def test_closing_the_consumer_acknowledges(self, connection: Connection, queue: Queue, nothing: Any) -> None:
        session = connection.session(AckMode.DUPS_OK)
        session.send(queue, text(1))
        with session.consumer(queue) as consumer:
            take(consumer)
        session.recover()
        assert nothing(session.consumer(queue))


@pytest.mark.obligation("P12", "O6a", "T1.3")
@pytest.mark.parametrize("delivery_mode", list(DeliveryMode))
@pytest.mark.parametrize("ack_mode", list(AckMode))
def test_what_was_acknowledged_comes_once(
    connection: Connection, queue: Queue, delivery_mode: DeliveryMode, ack_mode: AckMode, drain: Any, nothing: Any
) -> None:
    """NON_PERSISTENT at most once, while the provider runs, as is PERSISTENT."""
    with connection.session(ack_mode) as session:
        for number in range(20):
            session.send(queue, text(number, delivery_mode=delivery_mode))
        taken = drain(session.consumer(queue))
    assert [name_of(message) for message in taken] == [str(number) for number in range(20)]
    assert {message.delivery_mode for message in taken} == {delivery_mode}
    assert nothing(connection.session().consumer(queue))


@pytest.mark.obligation("P18", "P8")
@pytest.mark.capability(Capability.TRANSACTED_RECEIVE)
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_transaction_over_both_kinds(
    connection: Connection, kind: str, request: pytest.FixtureRequest, nothing: Any, bodies: Any
) -> None:
    """Taken from one destination and sent to another: both, or neither."""
    source = request.getfixturevalue(kind)
    target = Queue(f"{source.name}.target") if kind == "queue" else Topic(f"{source.name}.target")
    session = connection.session(transacted=True)
    consumer, watcher = session.consumer(source), connection.session().consumer(target)
    connection.session().send(source, text(1))
    take(consumer)
    session.send(target, text("rolled back"))
    session.rollback()
    assert nothing(watcher)
    assert take(consumer).message.redelivered
    session.send(target, text("committed"))
    session.commit()
    assert bodies(watcher) == ["committed"]
    assert nothing(consumer)
