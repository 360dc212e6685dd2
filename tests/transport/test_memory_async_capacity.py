"""Asynchronous sends to a bounded destination of memory: the outcome waits for room, the sender does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mtosi_jms.errors import IllegalStateError, InvalidDestinationError, ResourceLimitError, SendTimeoutError
from mtosi_jms.jms import Queue
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport import SendRules
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider

from ..waiting import PATIENCE, background
from .conftest import until_memory_blocks

QUEUE = Queue("bounded")
pytestmark = pytest.mark.obligation("A6", "A12")


def numbered(number: int) -> JmsMessage:
    return JmsMessage(body=str(number).encode())


def opened(timeout: float | None = 30.0, **limits: Any) -> MemoryConnection:
    connection = MemoryConnection(MemoryProvider(capacity=2, **limits), send_rules=SendRules(timeout))
    connection.start()
    return connection


@pytest.fixture
def bounded() -> Iterator[MemoryConnection]:
    with opened() as connection:
        yield connection


def received(connection: MemoryConnection, count: int, patience: float) -> list[int]:
    with connection.session() as session:
        consumer = session.consumer(QUEUE)
        found = []
        for _ in range(count):
            delivery = consumer.receive(patience)
            assert delivery is not None
            delivery.acknowledge()
            found.append(int(delivery.message.body))
        return found


def test_the_completion_waits_for_room_and_the_sender_does_not(bounded: MemoryConnection) -> None:
    session = bounded.session()
    futures = [session.send_async(QUEUE, numbered(number)) for number in range(5)]
    assert [future.done() for future in futures] == [True, True, False, False, False]
    assert bounded.provider.depth(QUEUE) == 2
    assert received(bounded, 5, PATIENCE) == [0, 1, 2, 3, 4]
    assert [int(future.result(PATIENCE).body) for future in futures] == [0, 1, 2, 3, 4]


@pytest.mark.obligation("A11")
def test_a_waiting_send_comes_after_those_that_wait_for_room(bounded: MemoryConnection) -> None:
    session = bounded.session()
    for number in range(4):
        session.send_async(QUEUE, numbered(number))
    fifth = background(lambda: session.send(QUEUE, numbered(4)))
    until_memory_blocks(session)
    assert received(bounded, 5, PATIENCE) == [0, 1, 2, 3, 4]
    assert fifth.result(PATIENCE).body == b"4"


@pytest.mark.obligation("A16", "A19")
def test_closing_finishes_what_waits_for_room(bounded: MemoryConnection) -> None:
    session = bounded.session()
    futures = [session.send_async(QUEUE, numbered(number)) for number in range(4)]
    closing = background(session.close)
    assert received(bounded, 4, PATIENCE) == [0, 1, 2, 3]
    closing.result(PATIENCE)
    assert all(future.done() for future in futures)
    with pytest.raises(IllegalStateError, match="closed"):
        session.send_async(QUEUE, numbered(9))


@pytest.mark.obligation("A8")
def test_no_room_within_the_send_timeout_is_a_failure() -> None:
    with opened(send_timeout=0) as connection:
        session = connection.session()
        futures = [session.send_async(QUEUE, numbered(number)) for number in range(3)]
        assert isinstance(futures[2].exception(PATIENCE), ResourceLimitError)
        assert received(connection, 2, PATIENCE) == [0, 1]
        assert session.send(QUEUE, numbered(3)).body == b"3"


@pytest.mark.obligation("A8", "AX6")
def test_what_timed_out_is_not_sent_any_more() -> None:
    """Nobody reads: closing goes on all the same, and room that comes later is not for what failed."""
    with opened(timeout=0.05) as connection:
        session = connection.session()
        futures = [session.send_async(QUEUE, numbered(number)) for number in range(4)]
        session.close()
        assert [type(future.exception(PATIENCE)) for future in futures[2:]] == [SendTimeoutError] * 2
        assert received(connection, 2, PATIENCE) == [0, 1]
        connection.session().send(QUEUE, numbered(5))
        assert received(connection, 1, PATIENCE) == [5]


@pytest.mark.obligation("A8")
def test_a_destination_that_goes_fails_what_waits_for_it(bounded: MemoryConnection) -> None:
    with MemoryConnection(bounded.provider) as other:
        temporary = other.session().temporary_queue()
        session = bounded.session()
        futures = [session.send_async(temporary, numbered(number)) for number in range(3)]
    assert isinstance(futures[2].exception(PATIENCE), InvalidDestinationError)


def test_another_destination_waits_its_turn(bounded: MemoryConnection) -> None:
    """One order for the whole session."""
    session, other = bounded.session(), Queue("roomy")
    for number in range(3):
        session.send_async(QUEUE, numbered(number))
    after = session.send_async(other, numbered(3))
    assert bounded.provider.depth(other) == 0
    assert received(bounded, 3, PATIENCE) == [0, 1, 2]
    assert after.result(PATIENCE).destination == other


@pytest.mark.parametrize("send", ["send", "send_async"])
def test_many_senders_and_one_receiver_lose_nothing(bounded: MemoryConnection, send: str) -> None:
    def send_fifty(first: int) -> None:
        with bounded.session() as session:
            for number in range(first, first + 50):
                getattr(session, send)(QUEUE, numbered(number))

    senders = [background(lambda first=first: send_fifty(first)) for first in (0, 50, 100)]
    found = received(bounded, 150, PATIENCE)
    for sender in senders:
        sender.result(PATIENCE)
    assert sorted(found) == list(range(150))
    for first in (0, 50, 100):
        own = [number for number in found if first <= number < first + 50]
        assert own == sorted(own)
