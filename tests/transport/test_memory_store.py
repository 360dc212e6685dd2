"""The order of a store beside a sorted list, and the index of what expires."""

from __future__ import annotations

from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport.memory._queue import Entry, ExpiryIndex, MessageStore


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
