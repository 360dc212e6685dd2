"""Closing: it ends every wait, waits for nobody who cannot answer, and leaves nothing at the broker."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import pytest

from mtosi_jms.broker import BrokerProcess
from mtosi_jms.errors import IllegalStateError, TransportError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.transport import AckMode

from ...waiting import background
from .conftest import LONG, persistent, take

pytestmark = pytest.mark.broker
TIMEOUTS = {"send_timeout": 600.0, "connect_timeout": 600.0, "close_timeout": 0.5}


@pytest.fixture(scope="module")
def artemis(start_module_broker: Any) -> BrokerProcess:
    """One for these tests: clients that end in the middle make Artemis 2.44 lock up a thread that serves connections,
    for seconds, and now and then for ever (StompConnection is locked while its channel is closed)."""
    made: BrokerProcess = start_module_broker("artemis")
    return made


def threads_of(connection: Any) -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == f"reconnector-{connection.id}"]


def await_end(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


class TestStalled:
    def test_a_broker_that_answers_nothing(self, by_proxy: Any, proxy: Any, queue: Queue) -> None:
        """However many consumers there are, the broker is waited for once."""
        connection = by_proxy(**TIMEOUTS)
        session = connection.session()
        consumers = [session.consumer(queue) for _ in range(20)]
        reconnecting = threads_of(connection)
        proxy.stall(to_client=True)
        background(connection.close).result(LONG)
        await_end(reconnecting)
        with pytest.raises(IllegalStateError):
            consumers[0].receive(0)

    @pytest.mark.parametrize("what", ["consumer", "session"])
    def test_a_part_of_a_connection(self, by_proxy: Any, proxy: Any, queue: Queue, what: str) -> None:
        session = by_proxy(**TIMEOUTS).session()
        consumer = session.consumer(queue)
        proxy.stall(to_client=True)
        background({"consumer": consumer, "session": session}[what].close).result(LONG)

    @pytest.mark.parametrize("leaves", [False, True])
    def test_a_sender_that_is_stuck(self, by_proxy: Any, proxy: Any, queue: Queue, leaves: bool) -> None:
        """Closing does not wait for its turn behind a frame that nobody takes, and ends that wait, also where another
        session has left something behind it."""
        connection = by_proxy(heart_beat=600.0, **TIMEOUTS)
        session, other = connection.session(), connection.session()
        session.send(queue, persistent())
        session.consumer(queue)
        reconnecting = threads_of(connection)
        proxy.stall(to_broker=True)
        begun = len(proxy.sent)
        sender = background(lambda: session.send(queue, JmsMessage(body=b"x" * 32_000_000)))
        while len(proxy.sent) == begun:
            assert not sender.done()
        if leaves:
            assert other.send_soon(queue, JmsMessage(body=b"<x/>")) is not None
        background(connection.close).result(LONG)
        await_end(reconnecting)
        with pytest.raises(TransportError):
            sender.result(LONG)

    def test_a_receipt_that_is_waited_for(self, by_proxy: Any, proxy: Any, queue: Queue) -> None:
        connection = by_proxy(**TIMEOUTS)
        session = connection.session()
        proxy.stall(to_client=True)
        sender = background(lambda: session.send(queue, persistent()))
        while b"<n>0</n>" not in proxy.sent:
            assert not sender.done()
        background(connection.close).result(LONG)
        with pytest.raises(TransportError, match="unknown"):
            sender.result(LONG)


class TestWhileItIsLost:
    def test_nobody_is_there(self, by_proxy: Any, proxy: Any, queue: Queue) -> None:
        """A receiver gets None, a sender an error, and the thread that reconnects comes to its end."""
        connection = by_proxy(**TIMEOUTS)
        consumer = connection.session().consumer(queue)
        receiving = background(consumer.receive)
        reconnecting = threads_of(connection)
        proxy.refuse()
        proxy.cut()
        assert proxy.refused.acquire(timeout=LONG)
        session = connection.session()
        sending = background(lambda: session.send(queue, persistent()))
        background(connection.close).result(LONG)
        assert receiving.result(LONG) is None
        with pytest.raises(TransportError):
            sending.result(LONG)
        await_end(reconnecting)

    def test_somebody_is_there_who_says_nothing(self, by_proxy: Any, proxy: Any, queue: Queue) -> None:
        connection = by_proxy(**TIMEOUTS)
        consumer = connection.session().consumer(queue)
        receiving = background(consumer.receive)
        reconnecting = threads_of(connection)
        proxy.stall_at_answer(b"CONNECTED")
        proxy.cut()
        assert proxy.stalled.wait(LONG)
        background(connection.close).result(LONG)
        assert receiving.result(LONG) is None
        await_end(reconnecting)

    def test_a_subscription_that_is_being_made_again(
        self, by_proxy: Any, proxy: Any, queue: Queue, open_stomp: Any, broker: Any
    ) -> None:
        """A consumer that is closed meanwhile leaves nothing that would take messages."""
        connection = by_proxy()
        session = connection.session()
        consumer = session.consumer(queue)
        proxy.stall_at_answer(b"RECEIPT")
        proxy.cut()
        assert proxy.stalled.wait(LONG)
        background(consumer.close).result(LONG)
        proxy.flow()
        session.send(Queue(f"{queue.name}.other"), persistent())  # returns when the connection is whole again
        self.all_come(session.consumer(queue), open_stomp(broker.endpoints.url("stomp")).session(), queue)

    @staticmethod
    def all_come(consumer: Any, sender: Any, queue: Queue) -> None:
        for number in range(6):
            sender.send(queue, persistent(number))
        assert [take(consumer) for _ in range(6)] == [b"<n>%d</n>" % number for number in range(6)]


class TestTogether:
    def test_a_session_while_it_makes_a_consumer(
        self, by_proxy: Any, queue: Queue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        connection = by_proxy()
        session = connection.session()
        subscribe = connection.channel.subscribe

        def subscribe_and_close(feed: Any, factor: int = 1) -> None:
            subscribe(feed, factor)
            background(session.close).result(LONG)

        monkeypatch.setattr(connection.channel, "subscribe", subscribe_and_close)
        with pytest.raises(IllegalStateError, match="closed"):
            session.consumer(queue)
        monkeypatch.undo()
        other = connection.session()
        TestWhileItIsLost.all_come(other.consumer(queue), other, queue)

    def test_a_consumer_while_more_is_asked_for(
        self, by_proxy: Any, queue: Queue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        connection = by_proxy(prefetch=1)
        session = connection.session()
        consumer = session.consumer(queue)
        session.send(queue, persistent(9))
        held = consumer.receive(LONG)
        subscribe = connection.channel.subscribe

        def close_and_subscribe(feed: Any, factor: int = 1) -> None:
            background(consumer.close).result(LONG)
            subscribe(feed, factor)

        monkeypatch.setattr(connection.channel, "subscribe", close_and_subscribe)
        with pytest.raises(IllegalStateError):
            consumer.receive(LONG)
        monkeypatch.undo()
        held.acknowledge()
        other = connection.session()
        TestWhileItIsLost.all_come(other.consumer(queue), other, queue)


class TestInAListener:
    def test_what_cannot_be_acknowledged(self, by_proxy: Any, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
        """The connection ends all the same: nobody else would do it."""
        connection = by_proxy()
        consumer = connection.session(AckMode.AUTO).consumer(queue)
        reconnecting = threads_of(connection)
        told: Future[BaseException] = Future()

        def fail(*arguments: Any) -> None:
            raise TransportError("it cannot be told")

        def on_message(delivery: Any) -> None:
            monkeypatch.setattr(connection.channel, "acknowledge", fail)
            connection.close()

        consumer.listen(on_message, lambda error, delivery: told.set_result(error))
        connection.session().send(queue, persistent())
        assert str(told.result(LONG)) == "it cannot be told"
        await_end(reconnecting)
