"""Which message comes next, to whom, and how it is waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import Queue
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport import Capability, Connection, Session

from ...waiting import PATIENCE, background
from .conftest import take, text

UntilBlocked = Callable[[Session], None]


class TestOrder:
    @pytest.mark.obligation("P7")
    def test_first_in_first_out(self, connection: Connection, queue: Queue, drain: Any) -> None:
        session = connection.session()
        for number in range(50):
            session.send(queue, text(number))
        assert [m.body for m in drain(session.consumer(queue))] == [text(n).body for n in range(50)]

    @pytest.mark.capability(Capability.DELIVERY_DELAY)
    def test_what_is_delayed_comes_when_it_is_due(self, connection: Connection, queue: Queue) -> None:
        session = connection.session()
        producer = session.producer(queue, delivery_delay_ms=700)
        sent = producer.send(text("late"))
        assert sent.delivery_time_ms - (sent.timestamp_ms or 0) == 700
        producer.send_async(text("later"), delivery_delay_ms=900).result()
        producer.send(text("at once"), delivery_delay_ms=0)
        consumer = session.consumer(queue)
        taken = []
        for _ in range(3):
            taken.append(take(consumer).message)
            assert taken[-1].delivery_time_ms <= time.time() * 1_000 + 1
        assert [message.body for message in taken] == [text(word).body for word in ("at once", "late", "later")]
        assert abs(taken[1].delivery_time_ms - sent.delivery_time_ms) <= 500

    @pytest.mark.capability(Capability.PRIORITY)
    @pytest.mark.obligation("T1.6")
    def test_high_priority_first(self, connection: Connection, queue: Queue, drain: Any) -> None:
        """T1.6: ten priorities, and order inside each."""
        session = connection.session()
        for number, priority in enumerate([4, 0, 9, 4, 9, 1]):
            session.send(queue, text(number, priority=priority))
        taken = drain(session.consumer(queue))
        assert [m.priority for m in taken] == [9, 9, 4, 4, 1, 0]
        assert [m.body for m in taken] == [text(n).body for n in (2, 4, 0, 3, 5, 1)]


class TestExpiry:
    @pytest.mark.obligation("P7", "P13")
    def test_an_expired_message_is_not_delivered(
        self, provider: Any, connection: Connection, queue: Queue, drain: Any
    ) -> None:
        """P7, P13: the time to live is in milliseconds."""
        session = connection.session()
        session.send(queue, text("short", time_to_live_ms=500))
        session.send(queue, text("long", time_to_live_ms=3_600_000))
        session.send(queue, text("ever"))
        provider.pass_time(0.75)
        assert [m.body for m in drain(session.consumer(queue))] == [text("long").body, text("ever").body]

    def test_it_is_delivered_until_then(self, provider: Any, connection: Connection, queue: Queue) -> None:
        session = connection.session()
        session.send(queue, text(1, time_to_live_ms=60_000))
        provider.pass_time(0.1)
        assert take(session.consumer(queue)).message.expiration_ms > 0

    @pytest.mark.obligation("T1.5")
    def test_no_time_to_live_means_no_expiration(self, connection: Connection, queue: Queue) -> None:
        """T1.5: 0 never expires."""
        assert connection.session().send(queue, text(1)).expiration_ms == 0


class TestReceiving:
    @pytest.mark.obligation("P10")
    def test_a_timeout_waits_and_returns_nothing(self, connection: Connection, queue: Queue) -> None:
        """P10."""
        consumer = connection.session().consumer(queue)
        begun = time.monotonic()
        assert consumer.receive(0.05) is None
        assert time.monotonic() - begun >= 0.05

    @pytest.mark.parametrize("timeout", [-1, float("nan")])
    def test_a_timeout_is_seconds(self, connection: Connection, queue: Queue, timeout: float) -> None:
        with pytest.raises(ConfigError, match="timeout"):
            connection.session().consumer(queue).receive(timeout)

    @pytest.mark.parametrize("timeout", [None, 15.0, 1e12])
    @pytest.mark.obligation("P10", "O5")
    def test_a_blocked_receiver_gets_what_is_sent(
        self, connection: Connection, queue: Queue, timeout: float | None, until_blocked: UntilBlocked
    ) -> None:
        session = connection.session()
        consumer = session.consumer(queue)
        future = background(lambda: consumer.receive(timeout))
        until_blocked(session)
        connection.session().send(queue, text(1))
        assert future.result(PATIENCE).message.body == b"<n>1</n>"

    @pytest.mark.parametrize("what", ["consumer", "session", "connection"])
    def test_close_wakes_a_blocked_receiver(
        self, connection: Connection, queue: Queue, what: str, until_blocked: UntilBlocked
    ) -> None:
        session = connection.session()
        consumer = session.consumer(queue)
        future = background(consumer.receive)
        until_blocked(session)
        {"consumer": consumer, "session": session, "connection": connection}[what].close()
        assert future.result(PATIENCE) is None

    @pytest.mark.obligation("P17")
    def test_stop_holds_delivery_and_start_resumes_it(
        self, connection: Connection, queue: Queue, until_blocked: UntilBlocked, nothing: Any
    ) -> None:
        session = connection.session()
        consumer = session.consumer(queue)
        connection.stop()
        connection.session().send(queue, text(1))
        assert nothing(consumer)
        future = background(consumer.receive)
        until_blocked(session)
        connection.start()
        assert future.result(PATIENCE).message.body == b"<n>1</n>"


class TestSharing:
    @pytest.mark.obligation("P7", "F1", "P3")
    def test_each_message_goes_to_one_consumer(
        self, provider: Any, connection: Connection, queue: Queue, nothing: Any
    ) -> None:
        """P7: two consumers of two connections share a queue, the union is all, nothing comes twice."""
        other = provider.connect()
        other.start()
        sender, consumers = (
            connection.session(),
            [connection.session().consumer(queue), other.session().consumer(queue)],
        )
        for number in range(40):
            sender.send(queue, text(number))
        taken: tuple[list[bytes], list[bytes]] = ([], [])
        deadline = time.monotonic() + PATIENCE
        number = 0
        while (
            len(taken[0]) + len(taken[1]) < 40
        ):  # in turn, as long as both have some: who gets which is not ours to say
            assert time.monotonic() < deadline
            one, number = number % 2, number + 1
            delivery = consumers[one].receive(provider.quiet)
            if delivery is not None:
                delivery.acknowledge()
                taken[one].append(delivery.message.body)
        assert all(taken)
        assert sorted([*taken[0], *taken[1]]) == sorted(text(n).body for n in range(40))
        assert all(nothing(consumer) for consumer in consumers)

    @pytest.mark.obligation("P7", "P12")
    @pytest.mark.parametrize("each", [50, pytest.param(200, marks=pytest.mark.endurance)])
    def test_many_threads_lose_and_double_nothing(
        self, connection: Connection, queue: Queue, nothing: Any, each: int
    ) -> None:
        def send(first: int) -> None:
            with connection.session() as session:
                for number in range(first, first + each):
                    session.send(queue, text(number, priority=number % 10))

        def receive() -> list[bytes]:
            taken: list[bytes] = []
            with connection.session() as session, session.consumer(queue) as consumer:
                while True:
                    delivery = take(consumer)
                    delivery.acknowledge()
                    if delivery.message.body == b"end":
                        return taken
                    taken.append(delivery.message.body)

        receivers = [background(receive) for _ in range(8)]
        for future in [background(lambda first=first: send(first)) for first in range(0, 8 * each, each)]:
            future.result(PATIENCE)
        session = connection.session()
        for _ in receivers:
            session.send(queue, JmsMessage(body=b"end", priority=0))
        taken = [body for future in receivers for body in future.result(PATIENCE)]
        assert sorted(taken) == sorted(text(n).body for n in range(8 * each))
        assert nothing(session.consumer(queue))
