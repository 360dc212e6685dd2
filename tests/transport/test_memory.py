"""The embedded provider holds what is under way, in order, and nothing else."""

from __future__ import annotations

import pytest

from mtosi_jms.jms import Queue, Topic
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.testing import ManualClock
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider
from mtosi_jms.transport.memory._queue import Entry, ExpiryIndex, MessageStore

QUEUE = Queue("memory.queue")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000)


@pytest.fixture
def provider(clock: ManualClock) -> MemoryProvider:
    return MemoryProvider("test", clock=clock)


def started(provider: MemoryProvider) -> MemoryConnection:
    connection = MemoryConnection(provider)
    connection.start()
    return connection


class TestMemory:
    def test_expired_messages_of_an_unread_queue_go_with_the_next_send(
        self, provider: MemoryProvider, clock: ManualClock
    ) -> None:
        session = started(provider).session()
        for _ in range(500):
            session.send(QUEUE, JmsMessage(time_to_live_ms=1000))
        assert provider.depth(QUEUE) == 500
        clock.advance(1)
        session.send(Queue("another"), JmsMessage())
        assert provider.held() == 1

    def test_queues_that_nobody_uses_are_forgotten(self, provider: MemoryProvider) -> None:
        session = started(provider).session()
        for number in range(20):
            queue = Queue(f"q{number}")
            session.send(queue, JmsMessage())
            with session.consumer(queue) as consumer:
                delivery = consumer.receive(0)
            assert delivery is not None
            delivery.acknowledge()
        assert provider.destinations() == frozenset()

    def test_a_closed_connection_leaves_nothing(self, provider: MemoryProvider) -> None:
        connection = started(provider)
        session = connection.session()
        temporary = session.temporary_queue()
        session.consumer(Topic("t"))
        session.consumer(session.temporary_topic())
        session.send(temporary, JmsMessage())
        session.send(Topic("t"), JmsMessage())
        session.consumer(temporary).receive(0)
        connection.close()
        assert provider.held() == 0
        assert provider.destinations() == frozenset()

    def test_an_ended_durable_subscription_leaves_nothing(self, provider: MemoryProvider) -> None:
        session = started(provider).session()
        topic = Topic("t")
        session.consumer(topic, durable="d").close()
        session.send(topic, JmsMessage())
        assert provider.held() == 1
        session.consumer(topic, "n = 1", durable="d").close()
        assert provider.held() == 0
        session.unsubscribe("d")
        assert provider.destinations() == frozenset()


def message(priority: int, expiration_ms: int = 0) -> JmsMessage:
    return JmsMessage(priority=priority, expiration_ms=expiration_ms)


class TestStore:
    def test_the_index_drops_what_expired_and_forgets_what_was_taken(self) -> None:
        store, index = MessageStore(), ExpiryIndex()
        for sequence in range(1000):
            entry = Entry(sequence, message(4, 10_000 + sequence))
            store.put(entry)
            index.add(entry, store)
            assert store.take(0) is entry
        assert len(index) <= 65
        kept = Entry(2000, message(4, 500))
        store.put(kept)
        index.add(kept, store)
        index.add(kept, store)
        index.purge(499)
        assert len(store) == 1
        index.purge(500)
        assert len(store) == 0

    def test_what_never_expires_is_not_indexed(self) -> None:
        index = ExpiryIndex()
        index.add(Entry(1, message(4)), MessageStore())
        assert len(index) == 0
