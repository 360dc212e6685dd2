"""What the embedded provider does beyond the contract: addresses, its order as a model, its memory, its wake-ups."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms.destinations import Queue, TemporaryQueue, Topic
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.jms.naming import NamingContext
from mtosi_jms.testing import ManualClock
from mtosi_jms.transport import PROVIDERS, AckMode, Delivery, connect, memory
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider
from mtosi_jms.transport.memory.queue import MessageQueue, View
from mtosi_jms.transport.memory.store import Entry, ExpiryIndex, MessageStore

Background = Callable[[Callable[[], Any]], "Future[Any]"]
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


class TestConnect:
    @pytest.mark.parametrize("url", ["memory:", "memory:connect-same", "MEMORY:connect-same", "memory://connect-same"])
    def test_the_same_name_is_the_same_provider(self, url: str) -> None:
        with connect(url) as one, connect(url.lower()) as two:
            one.session().send(Queue(f"same.{url}"), JmsMessage(body=b"x"))
            two.start()
            delivery = two.session(AckMode.AUTO).consumer(Queue(f"same.{url}")).receive(0)
        assert delivery is not None
        assert one.id != two.id

    def test_another_name_is_another_provider(self) -> None:
        with connect("memory:connect-a") as one, connect("memory:connect-b") as two:
            one.session().send(QUEUE, JmsMessage())
            two.start()
            assert two.session().consumer(QUEUE).receive(0) is None
        assert memory.provider("connect-a").depth(QUEUE) == 1

    @pytest.mark.parametrize("names", [{"jms/EmsOS": "queue:E"}, NamingContext({"jms/EmsOS": "queue:E"})])
    def test_names_come_with_the_connection(self, names: Any) -> None:
        with connect("memory:connect-names", names=names) as connection:
            assert connection.names.lookup("jms/EmsOS") == Queue("E")
        with connect("memory:connect-names") as connection:
            assert connection.names.names() == {}

    @pytest.mark.parametrize("url", ["nosuch://oss:hunter2@broker:61613", "oss-hunter2", ""])
    def test_an_unknown_scheme_lists_what_there_is(self, url: str) -> None:
        with pytest.raises(ConfigError, match="there are memory:") as caught:
            connect(url)
        assert "hunter2" not in str(caught.value)

    def test_options_are_checked(self) -> None:
        with pytest.raises(ConfigError, match="takes no option retries, window"):
            connect("memory:connect-options", window=1, retries=2)
        with pytest.raises(ConfigError, match="clock"):
            connect("memory:connect-options", clock=5)

    def test_the_first_clock_stays(self, clock: ManualClock) -> None:
        with connect("memory:connect-clock", clock=clock) as connection:
            assert connection.session().send(QUEUE, JmsMessage()).timestamp_ms == 1_000_000
        with connect("memory:connect-clock") as connection:
            assert connection.session().send(QUEUE, JmsMessage()).timestamp_ms == 1_000_000
        with connect("memory:connect-clock", clock=clock), pytest.raises(ConfigError, match="another clock"):
            connect("memory:connect-clock", clock=ManualClock())

    def test_every_scheme_has_its_module(self) -> None:
        assert dict(PROVIDERS) == {"memory": "mtosi_jms.transport.memory"}


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


class FakeReader:
    def __init__(self, view: View, able: bool) -> None:
        self.view = view
        self.able = able
        self.signals = 0

    def may_take(self) -> bool:
        return self.able

    def signal(self) -> None:
        self.signals += 1


class TestWakeUps:
    def test_readers_that_may_not_take_are_passed_over(self) -> None:
        """The wake-up for a message must not be spent on a reader whose connection is stopped."""
        queue = MessageQueue(QUEUE, threading.Lock())
        readers = [FakeReader(queue.all, able) for able in (False, True, True)]
        queue.waiting = dict.fromkeys(readers)
        queue.wake()
        assert [reader.signals for reader in readers] == [0, 0, 0]
        queue.put(Entry(1, message(4)))
        queue.wake()
        assert [reader.signals for reader in readers] == [0, 1, 0]
        assert list(queue.waiting) == [readers[0], readers[2]]
        queue.wake()
        assert [reader.signals for reader in readers] == [0, 1, 1]

    def test_a_closed_reader_passes_its_wake_up_on(
        self,
        provider: MemoryProvider,
        background: Background,
        until_memory_blocked: Callable[..., None],
        patience: float,
    ) -> None:
        """Two readers wait; the message wakes one, which is closed before it runs: the other must get the message."""
        connection = started(provider)
        sessions = [connection.session() for _ in range(2)]
        consumers = [session.consumer(QUEUE) for session in sessions]
        futures = [background(consumer.receive) for consumer in consumers]
        for session in sessions:
            until_memory_blocked(session)
        entry = Entry(0, JmsMessage(body=b"x"))
        with provider.lock:  # as `send` does, and the close before the woken thread can have the lock
            queue = consumers[0].queue
            queue.put(entry)
            queue.wake()
            woken = next(consumer for consumer in consumers if consumer not in queue.waiting)
            woken.shut()
        got = [future.result(patience) for future in futures]
        assert got[consumers.index(woken)] is None
        assert next(delivery for delivery in got if delivery is not None).message.body == b"x"

    def test_a_stopped_connection_passes_its_wake_up_on(
        self,
        provider: MemoryProvider,
        background: Background,
        until_memory_blocked: Callable[..., None],
        patience: float,
    ) -> None:
        connections = [started(provider), started(provider)]
        sessions = [connection.session() for connection in connections]
        consumers = [session.consumer(QUEUE) for session in sessions]
        futures = [background(consumer.receive) for consumer in consumers]
        for session in sessions:
            until_memory_blocked(session)
        with provider.lock:
            queue = consumers[0].queue
            queue.put(Entry(0, JmsMessage(body=b"x")))
            queue.wake()
            woken = next(n for n in range(2) if consumers[n] not in queue.waiting)
            connections[woken].halt()
        assert futures[1 - woken].result(patience).message.body == b"x"
        connections[woken].close()
        assert futures[woken].result(patience) is None

    def test_readers_that_come_and_go_lose_nothing(
        self, provider: MemoryProvider, background: Background, patience: float
    ) -> None:
        """Time-outs, closes, stops and recoveries race with sends; in the end every message was acknowledged once."""
        total, seen, lock = 1200, [], threading.Lock()
        finished = threading.Event()

        def keep(delivery: Delivery) -> None:
            delivery.acknowledge()
            with lock:
                seen.append(delivery.message.properties["n"])
                if len(seen) >= total:
                    finished.set()

        def visit(dice: random.Random) -> None:
            with started(provider) as connection, connection.session() as session:
                consumer = session.consumer(QUEUE)
                for _ in range(dice.randrange(1, 40)):
                    delivery = consumer.receive(dice.choice([0, 0.0005, 0.002]))
                    if dice.random() < 0.1:
                        connection.stop()
                        connection.start()
                    if delivery is not None and dice.random() < 0.8:
                        keep(delivery)

        def read(seed: int) -> None:
            dice = random.Random(seed)
            while not finished.is_set():
                visit(dice)

        readers = [background(lambda seed=seed: read(seed)) for seed in range(6)]
        sender = started(provider).session()
        for number in range(total):
            sender.send(QUEUE, JmsMessage(properties={"n": number}, priority=number % 10))
        assert finished.wait(patience)
        for reader in readers:
            reader.result(patience)
        assert sorted(seen) == list(range(total))
        assert provider.held() == 0

    def test_an_interrupt_gives_its_wake_up_back(
        self,
        provider: MemoryProvider,
        monkeypatch: pytest.MonkeyPatch,
        background: Background,
        until_memory_blocked: Callable[..., None],
        patience: float,
    ) -> None:
        """An interrupt may strike after the signal: whoever else waits must be woken instead."""
        connection = started(provider)
        patient, struck = connection.session(), connection.session()
        waiting = patient.consumer(QUEUE)
        future = background(waiting.receive)
        until_memory_blocked(patient)
        consumer = struck.consumer(QUEUE)

        def interrupted(timeout: float | None = None) -> bool:
            waiting.queue.waiting.pop(waiting)  # the signal went to us alone
            consumer.queue.put(Entry(0, JmsMessage(body=b"x")))
            waiting.queue.waiting[waiting] = None
            raise KeyboardInterrupt

        monkeypatch.setattr(consumer._wake, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            consumer.receive()
        assert future.result(patience).message.body == b"x"


class TestMemory:
    def test_nothing_is_held_after_acknowledgement(self, provider: MemoryProvider) -> None:
        connection = started(provider)
        session = connection.session()
        consumer = session.consumer(QUEUE)
        for _ in range(100):
            session.send(QUEUE, JmsMessage(time_to_live_ms=1000))
            delivery = consumer.receive(0)
            assert delivery is not None
            delivery.acknowledge()
        assert provider.held() == 0
        assert not session._unsettled

    def test_handed_out_messages_count_until_settled(self, provider: MemoryProvider) -> None:
        session = started(provider).session()
        for _ in range(2):
            session.send(QUEUE, JmsMessage())
        delivery = session.consumer(QUEUE).receive(0)
        assert (provider.depth(QUEUE), provider.held()) == (1, 2)
        assert delivery is not None
        delivery.acknowledge()
        assert provider.held() == 1

    def test_expired_messages_of_an_unread_queue_go_with_the_next_send(
        self, provider: MemoryProvider, clock: ManualClock
    ) -> None:
        session = started(provider).session()
        for _ in range(500):
            session.send(QUEUE, JmsMessage(time_to_live_ms=1000))
        assert provider.depth(QUEUE) == 500
        clock.advance(1)
        session.send(Queue("another"), JmsMessage())
        assert len(provider._queues[QUEUE]) == 0
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
        assert provider._queues == {}

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
        assert (provider._queues, provider._subscriptions, provider._owners) == ({}, {}, {})

    def test_nothing_comes_back_to_a_closed_subscription(self, provider: MemoryProvider) -> None:
        session = started(provider).session()
        consumer = session.consumer(Topic("t"))
        session.send(Topic("t"), JmsMessage(time_to_live_ms=1000))
        assert consumer.receive(0) is not None
        consumer.close()
        session.close()
        assert len(consumer.queue) == 0
        assert provider.held() == 0

    def test_depth_of_what_is_not_there(self, provider: MemoryProvider) -> None:
        assert provider.depth(TemporaryQueue("none")) == 0
