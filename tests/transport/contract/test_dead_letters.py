"""Messages that are delivered too often without being acknowledged: parked in the dead-letter queue, not lost."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.jms import Queue, Topic
from mtosi_jms.transport import AckMode, Capability, Connection

from ...waiting import PATIENCE
from .conftest import Ear, name_of, take, text

pytestmark = [pytest.mark.capability(Capability.DEAD_LETTER), pytest.mark.obligation("T1.10")]

MOST = 3


@pytest.fixture
def dead(queue: Queue) -> Queue:
    """The dead-letter queue of the test."""
    return Queue(f"{queue.name}.dead")


@pytest.fixture
def parking(started: Any, dead: Queue) -> Connection:
    """A connection to a provider that parks messages after MOST deliveries."""
    return started(client_id="parks", max_deliveries=MOST, dead_letter=dead)  # type: ignore[no-any-return]


@pytest.mark.parametrize("how", ["recover", "session", "rollback"])
def test_after_the_last_delivery_it_is_parked(
    parking: Connection, queue: Queue, dead: Queue, how: str, nothing: Any, drain: Any
) -> None:
    sent = parking.session().send(queue, text("poison", properties={"n": 7}, correlation_id="ID:1", priority=6))
    session = parking.session(transacted=how == "rollback")
    for count in range(1, MOST + 1):
        consumer = session.consumer(queue)
        assert take(consumer).message.delivery_count == count
        consumer.close()
        if how == "session":
            session.close()
            session = parking.session()
        else:
            getattr(session, how)()
    assert nothing(session.consumer(queue))
    (message,) = drain(parking.session().consumer(dead))
    assert (message.body, message.correlation_id, message.priority) == (sent.body, "ID:1", 6)
    assert (message.message_id, message.properties["n"]) == (sent.message_id, 7)
    assert (message.destination, message.redelivered, message.delivery_count) == (dead, False, 1)


def test_the_others_are_not_held_up(parking: Connection, queue: Queue, dead: Queue, bodies: Any) -> None:
    session = parking.session()
    for word in ("poison", "good"):
        session.send(queue, text(word))
    consumer = session.consumer(queue)
    for _ in range(MOST):
        consumer.receive(1)
        session.recover()
    assert bodies(consumer) == ["good"]
    assert bodies(session.consumer(dead)) == ["poison"]


@pytest.mark.obligation("P6")
@pytest.mark.parametrize("mode", list(AckMode))
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_listener_that_always_fails(
    parking: Connection, dead: Queue, mode: AckMode, kind: str, request: pytest.FixtureRequest
) -> None:
    """Each failure is told; then the message is parked, and the next one has its turn."""
    destination = request.getfixturevalue(kind)

    def fail(delivery: Any, count: int) -> None:
        if name_of(delivery.message) == "poison":
            raise RuntimeError(f"failure {count}")

    ear = Ear(MOST + 1, fail)
    parking.session(mode).consumer(destination).listen(ear, ear.on_error)
    sender = parking.session()
    for word in ("poison", "good"):
        sender.send(destination, text(word))
    assert ear.done.wait(PATIENCE)
    assert [name_of(delivery.message) for delivery in ear.heard] == ["poison"] * MOST + ["good"]
    assert [str(error) for error, _ in ear.errors] == [f"failure {count}" for count in range(1, MOST + 1)]
    assert name_of(take(parking.session().consumer(dead)).message) == "poison"


@pytest.mark.capability(Capability.DURABLE)
def test_from_a_durable_subscription(parking: Connection, topic: Topic, dead: Queue, nothing: Any, bodies: Any) -> None:
    session = parking.session()
    consumer = session.consumer(topic, durable="parked")
    session.send(topic, text("poison"))
    for _ in range(MOST):
        take(consumer)
        session.recover()
    assert nothing(consumer)
    assert bodies(session.consumer(dead)) == ["poison"]
    consumer.close()
    session.unsubscribe("parked")


def test_what_lies_there_is_not_parked_again(parking: Connection, queue: Queue, dead: Queue) -> None:
    session = parking.session()
    session.send(dead, text(1))
    consumer = session.consumer(dead)
    for count in range(1, MOST + 3):
        assert take(consumer).message.delivery_count == count
        session.recover()


def test_it_expires_no_more(provider: Any, parking: Connection, queue: Queue, dead: Queue, bodies: Any) -> None:
    session = parking.session()
    session.send(queue, text("poison", time_to_live_ms=60_000))
    consumer = session.consumer(queue)
    for _ in range(MOST):
        take(consumer)
        session.recover()
    provider.pass_time(61)
    assert bodies(session.consumer(dead)) == ["poison"]
