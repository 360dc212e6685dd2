"""The order of a store beside a sorted list, and the index of what expires."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport.memory._queue import Entry, ExpiryIndex, MessageStore


def message(priority: int, expiration_ms: int = 0) -> JmsMessage:
    return JmsMessage(priority=priority, expiration_ms=expiration_ms)


class Comparison:
    """A store beside what it must do, the simple way: a list, sorted at each look."""

    def __init__(self) -> None:
        self.store, self.model, self.held, self.now = MessageStore(), list[Entry](), list[Entry](), 0

    def live(self) -> list[Entry]:
        fresh = [e for e in self.model if not 0 < e.message.expiration_ms <= self.now]
        return sorted(fresh, key=lambda e: (-e.message.priority, e.sequence))

    def put(self, sequence: int, priority: int, life: int) -> None:
        entry = Entry(sequence, message(priority, life and self.now + life))
        self.store.put(entry)
        self.model.append(entry)

    def take(self, _: int, count: int, __: int) -> None:
        for _ in range(count):
            self.model = self.live()
            wanted = self.model.pop(0) if self.model else None
            assert self.store.take(self.now) is wanted
            self.held += [wanted] if wanted else []

    def put_back(self, _: int, count: int, __: int) -> None:
        back, self.held = self.held[:count], self.held[count:]
        self.store.put_back(back)
        self.model += back

    def discard(self, _: int, priority: int, sequence: int) -> None:
        self.store.discard(priority, sequence)
        self.model = [e for e in self.model if (e.message.priority, e.sequence) != (priority, sequence)]

    def wait(self, _: int, milliseconds: int, __: int) -> None:
        self.now += milliseconds


class TestStore:
    @given(
        st.lists(
            st.one_of(
                st.tuples(st.just("put"), st.sampled_from([4, 4, 4, 0, 9]), st.sampled_from([0, 0, 5, 10])),
                st.tuples(st.just("take"), st.integers(1, 4), st.just(0)),
                st.tuples(st.just("put_back"), st.integers(0, 6), st.just(0)),
                st.tuples(st.just("discard"), st.integers(0, 9), st.integers(0, 30)),
                st.tuples(st.just("wait"), st.integers(0, 3), st.just(0)),
            ),
            max_size=60,
        )
    )
    def test_the_order_is_that_of_a_sorted_list(self, steps: list[tuple[str, int, int]]) -> None:
        """The model: highest priority, then the oldest, whatever was put back in between; expired ones drop."""
        both = Comparison()
        for sequence, (step, one, two) in enumerate(steps):
            getattr(both, step)(sequence, one, two)
        live = [e for e in both.store if not 0 < e.message.expiration_ms <= both.now]
        assert live == both.live()
        assert len(both.store) == len(list(both.store))

    def test_those_who_come_back_late_find_their_places(self) -> None:
        store, entries = MessageStore(), [Entry(number, message(4)) for number in range(5)]
        for entry in entries:
            store.put(entry)
        for _ in range(4):
            store.take(0)
        store.put_back([entries[1], entries[0]])
        store.put_back([entries[3]])
        assert list(store) == [entries[number] for number in (0, 1, 3, 4)]
        store.put_back([entries[2]])
        assert list(store) == entries

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
