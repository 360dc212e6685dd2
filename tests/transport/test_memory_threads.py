"""Wake-ups of the embedded provider are not lost, and a session that is in use says so."""

from __future__ import annotations

import random
import threading
from types import SimpleNamespace

import pytest

from mtosi_jms.jms import Queue
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport import Delivery
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider
from mtosi_jms.transport.memory._queue import Entry

from ..waiting import PATIENCE, background
from .conftest import until_memory_blocks

QUEUE = Queue("memory.queue")


def started(provider: MemoryProvider) -> MemoryConnection:
    connection = MemoryConnection(provider)
    connection.start()
    return connection


@pytest.fixture
def provider() -> MemoryProvider:
    return MemoryProvider("test")


class TestWakeUps:
    def test_a_closed_reader_passes_its_wake_up_on(self, provider: MemoryProvider) -> None:
        """Two readers wait; the message wakes one, which is closed before it runs: the other must get the message."""
        connection = started(provider)
        sessions = [connection.session() for _ in range(2)]
        consumers = [session.consumer(QUEUE) for session in sessions]
        futures = [background(consumer.receive) for consumer in consumers]
        for session in sessions:
            until_memory_blocks(session)
        entry = Entry(0, JmsMessage(body=b"x"))
        with provider.lock:  # as `send` does, and the close before the woken thread can have the lock
            queue = consumers[0].source
            queue.put(entry)
            queue.wake()
            woken = next(consumer for consumer in consumers if consumer not in queue.waiting)
            woken.shut()
        got = [future.result(PATIENCE) for future in futures]
        assert got[consumers.index(woken)] is None
        assert next(delivery for delivery in got if delivery is not None).message.body == b"x"

    def test_a_stopped_connection_passes_its_wake_up_on(self, provider: MemoryProvider) -> None:
        connections = [started(provider), started(provider)]
        sessions = [connection.session() for connection in connections]
        consumers = [session.consumer(QUEUE) for session in sessions]
        futures = [background(consumer.receive) for consumer in consumers]
        for session in sessions:
            until_memory_blocks(session)
        with provider.lock:
            queue = consumers[0].source
            queue.put(Entry(0, JmsMessage(body=b"x")))
            queue.wake()
            woken = next(n for n in range(2) if consumers[n] not in queue.waiting)
            connections[woken].started = False
            connections[woken].wake_all()
        assert futures[1 - woken].result(PATIENCE).message.body == b"x"
        connections[woken].close()
        assert futures[woken].result(PATIENCE) is None

    def test_readers_that_come_and_go_lose_nothing(self, provider: MemoryProvider) -> None:
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
        assert finished.wait(PATIENCE)
        for reader in readers:
            reader.result(PATIENCE)
        assert sorted(seen) == list(range(total))
        assert provider.held() == 0

    def test_an_interrupt_gives_its_wake_up_back(
        self, provider: MemoryProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An interrupt may strike after the signal: whoever else waits must be woken instead."""
        connection = started(provider)
        patient, struck = connection.session(), connection.session()
        waiting = patient.consumer(QUEUE)
        future = background(waiting.receive)
        until_memory_blocks(patient)
        consumer = struck.consumer(QUEUE)

        def interrupted(timeout: float | None = None) -> bool:
            waiting.source.waiting.pop(waiting)  # the signal went to us alone
            consumer.source.put(Entry(0, JmsMessage(body=b"x")))
            waiting.source.waiting[waiting] = None
            raise KeyboardInterrupt

        monkeypatch.setattr(consumer, "arrived", SimpleNamespace(wait=interrupted, set=print))
        with pytest.raises(KeyboardInterrupt):
            consumer.receive()
        assert future.result(PATIENCE).message.body == b"x"


class TestListeners:
    def test_a_flooded_consumer_leaves_the_others_their_turn(self, provider: MemoryProvider) -> None:
        connection = MemoryConnection(provider)
        session, sender = connection.session(), connection.session()
        heard: list[str] = []
        done = threading.Event()
        for name in ("flooded", "quiet"):
            for _ in range(20 if name == "flooded" else 2):
                sender.send(Queue(name), JmsMessage(body=name.encode()))

        def on_message(delivery: Delivery) -> None:
            heard.append(delivery.message.body.decode())
            delivery.acknowledge()
            if len(heard) == 22:
                done.set()

        for name in ("flooded", "quiet"):
            session.consumer(Queue(name)).listen(on_message)
        connection.start()
        assert done.wait(PATIENCE)
        assert heard[:5] == ["flooded", "quiet", "flooded", "quiet", "flooded"]
        connection.close()
