"""A bounded embedded provider: senders wait for room, or are refused, and nothing is lost either way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, IllegalStateError, ResourceLimitError
from mtosi_jms.jms.destinations import Queue, Topic
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport import connect
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider

Background = Callable[[Callable[[], Any]], "Future[Any]"]
QUEUE = Queue("bounded")


def opened(provider: MemoryProvider) -> MemoryConnection:
    connection = MemoryConnection(provider)
    connection.start()
    return connection


@pytest.fixture
def bounded() -> Iterator[MemoryConnection]:
    with opened(MemoryProvider(capacity=2)) as connection:
        yield connection


def numbered(number: int) -> JmsMessage:
    return JmsMessage(body=str(number).encode())


def test_a_sender_waits_until_a_message_is_taken(
    bounded: MemoryConnection, background: Background, until_memory_blocked: Callable[..., None], patience: float
) -> None:
    sender = bounded.session()
    sender.send(QUEUE, numbered(1))
    sender.send(QUEUE, numbered(2))
    third = background(lambda: sender.send(QUEUE, numbered(3)))
    until_memory_blocked(sender)
    assert bounded.provider.depth(QUEUE) == 2
    consumer = bounded.session().consumer(QUEUE)
    assert [consumer.receive(patience).message.body for _ in range(3)] == [b"1", b"2", b"3"]
    assert third.result(patience).message_id.startswith("ID:")


def test_many_senders_and_one_receiver_lose_nothing(
    bounded: MemoryConnection, background: Background, patience: float
) -> None:
    def send(first: int) -> None:
        session = bounded.session()
        for number in range(first, first + 50):
            session.send(QUEUE, numbered(number))

    senders = [background(lambda first=first: send(first)) for first in (0, 50, 100)]
    consumer = bounded.session().consumer(QUEUE)
    received = []
    for _ in range(150):
        delivery = consumer.receive(patience)
        assert delivery is not None
        delivery.acknowledge()
        received.append(int(delivery.message.body))
    for sender in senders:
        sender.result(patience)
    assert sorted(received) == list(range(150))


def test_a_full_destination_refuses_after_the_send_timeout() -> None:
    with opened(MemoryProvider(capacity=1, send_timeout=0)) as connection:
        session = connection.session()
        session.send(QUEUE, numbered(1))
        with pytest.raises(ResourceLimitError, match="queue:bounded: full with 1 messages"):
            session.send(QUEUE, numbered(2))
        session.send(Queue("another"), numbered(3))
        assert connection.provider.depth(QUEUE) == 1


def test_expiry_makes_room() -> None:
    now = [1000.0]
    with opened(MemoryProvider(clock=lambda: now[0], capacity=1, send_timeout=0)) as connection:
        session = connection.session()
        session.send(QUEUE, JmsMessage(body=b"old", time_to_live_ms=500))
        now[0] += 1
        session.send(QUEUE, numbered(2))
        assert connection.session().consumer(QUEUE).receive(0).message.body == b"2"


def test_closing_wakes_a_sender_that_waits(
    bounded: MemoryConnection, background: Background, until_memory_blocked: Callable[..., None], patience: float
) -> None:
    sender = bounded.session()
    for number in range(2):
        sender.send(QUEUE, numbered(number))
    waiting = background(lambda: sender.send(QUEUE, numbered(2)))
    until_memory_blocked(sender)
    sender.close()
    with pytest.raises(IllegalStateError, match="closed"):
        waiting.result(patience)
    assert bounded.provider.depth(QUEUE) == 2


def test_a_slow_subscription_holds_its_publishers_until_it_is_closed(
    bounded: MemoryConnection, background: Background, until_memory_blocked: Callable[..., None], patience: float
) -> None:
    topic = Topic("bounded")
    slow = bounded.session().consumer(topic)
    publisher = bounded.session()
    for number in range(2):
        publisher.send(topic, numbered(number))
    third = background(lambda: publisher.send(topic, numbered(2)))
    until_memory_blocked(publisher)
    slow.close()
    assert third.result(patience).body == b"2"


@pytest.mark.parametrize("capacity", [0, -1, True, "8", 1.5])
def test_capacity_is_a_number_of_messages(capacity: object) -> None:
    with pytest.raises(ConfigError, match="capacity"):
        connect("memory:bad-capacity", capacity=capacity)
