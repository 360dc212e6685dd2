"""Connections that are lost and made again: the application is told, in its own thread and at the right place."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from mtosi_jms.jms import DeliveryMode, Destination, JmsMessage, Queue, Topic
from mtosi_jms.notifications import Loss, LossCause, Publisher, Subscriber
from mtosi_jms.runtime import ConsumerRuntime
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.transport import AckMode, Interruption

from ...waiting import background, until

pytestmark = pytest.mark.broker
LONG = 60.0


def message(number: int = 0) -> JmsMessage:
    return JmsMessage(body=b"%d" % number, delivery_mode=DeliveryMode.PERSISTENT)


@pytest.fixture
def topic(queue: Queue) -> Topic:
    return Topic(queue.name)


@pytest.fixture
def outside(open_stomp: Any, broker: Any) -> Any:
    """A session that does not go by the proxy."""
    return open_stomp(broker.endpoints.url("stomp")).session()


@pytest.fixture
def whole_again(proxy: Any, queue: Queue) -> Callable[[Any], None]:
    """Cuts the connection, and returns when it is made again."""

    def cut(connection: Any) -> None:
        link = connection.channel.link
        proxy.cut()
        until(lambda: link.lost is not None)
        connection.session().send(Queue(f"{queue.name}.else"), message())

    return cut


def test_a_receiver_that_waits(by_proxy: Any, outside: Any, topic: Topic, whole_again: Any) -> None:
    connection = by_proxy()
    consumer = connection.session(AckMode.AUTO).consumer(topic)
    seen: list[Any] = []
    told = threading.Event()

    def on_interrupted(reason: str) -> None:
        seen.append((threading.get_ident(), reason))
        told.set()

    def receive() -> int:
        seen.append(consumer.receive(LONG).message.body)
        return threading.get_ident()

    consumer.on_interrupted = on_interrupted
    receiving = background(receive)
    whole_again(connection)
    assert told.wait(LONG)
    outside.send(topic, message(1))
    thread = receiving.result(LONG)
    assert seen[1:] == [b"1"]
    assert seen[0][0] == thread
    assert "lost" in seen[0][1]


def test_between_what_came_before_and_what_comes_after(
    by_proxy: Any, outside: Any, topic: Topic, whole_again: Any
) -> None:
    connection = by_proxy()
    consumer = connection.session(AckMode.AUTO).consumer(topic)
    seen: list[Any] = []
    consumer.on_interrupted = lambda reason: seen.append("interrupted")
    for number in range(3):
        outside.send(topic, message(number))
    until(lambda: len(consumer.source.buffer) == 3)
    whole_again(connection)
    until(lambda: isinstance(consumer.source.buffer[-1], Interruption))
    outside.send(topic, message(3))
    for _ in range(4):
        body = consumer.receive(LONG).message.body
        seen.append(body)
    assert seen == [b"0", b"1", b"2", "interrupted", b"3"]


def test_a_listener(by_proxy: Any, outside: Any, topic: Topic, whole_again: Any) -> None:
    connection = by_proxy()
    consumer = connection.session(AckMode.AUTO).consumer(topic)
    seen: list[Any] = []
    threads: set[int] = set()
    told, heard = threading.Event(), threading.Event()

    def on_interrupted(reason: str) -> None:
        seen.append("interrupted")
        threads.add(threading.get_ident())
        told.set()
        raise ValueError("which is reported, and no more")

    def on_message(delivery: Any) -> None:
        seen.append(delivery.message.body)
        threads.add(threading.get_ident())
        heard.set()

    consumer.on_interrupted = on_interrupted
    consumer.listen(on_message)
    whole_again(connection)
    assert told.wait(LONG)
    outside.send(topic, message(1))
    assert heard.wait(LONG)
    assert seen == ["interrupted", b"1"]
    assert len(threads) == 1


def test_a_listener_that_closes_because_of_it(by_proxy: Any, topic: Topic, proxy: Any) -> None:
    connection = by_proxy()
    consumer = connection.session(AckMode.AUTO).consumer(topic)
    closed = threading.Event()
    reconnecting = [one for one in threading.enumerate() if one.name == f"reconnector-{connection.id}"]

    def on_interrupted(reason: str) -> None:
        connection.close()
        closed.set()

    consumer.on_interrupted = on_interrupted
    consumer.listen(lambda delivery: None)
    proxy.cut()
    assert closed.wait(LONG)
    for thread in reconnecting:
        thread.join(LONG)
        assert not thread.is_alive()


@pytest.mark.parametrize("reconnect", [True, False], ids=["by the transport", "by the runtime"])
def test_a_runtime(by_proxy: Any, proxy: Any, outside: Any, topic: Topic, reconnect: bool) -> None:
    told: Future[str] = Future()
    heard: Future[bytes] = Future()
    made: list[Any] = []

    def connect() -> Any:
        made.append(by_proxy(reconnect=reconnect))
        return made[-1]

    def handle(message: JmsMessage, context: Any) -> None:
        heard.set_result(message.body)

    with ConsumerRuntime(connect, topic, handle, parking=Queue("parked"), on_interrupted=told.set_result) as runtime:
        proxy.cut()
        assert "lost" in told.result(LONG)
        if reconnect:
            made[0].session().send(Queue(f"{topic.name}.else"), message())
        else:
            until(lambda: len(made) > 1 and runtime.health.state.name == "RUNNING")
        outside.send(topic, message(1))
        assert heard.result(LONG) == b"1"
    assert len(made) == (1 if reconnect else 2)


class TestSubscriber:
    def test_a_topic(self, by_proxy: Any, proxy: Any, topic: Topic) -> None:
        losses: list[Loss] = []
        begun, over = threading.Event(), threading.Event()

        def on_loss(loss: Loss) -> None:
            losses.append(loss)
            (over if loss.over else begun).set()

        connection = by_proxy()
        subscriber = Subscriber(connection, topic, timeout=LONG, on_loss=on_loss)
        publisher = Publisher(connection, {"Fault": topic}, sender_uri="jms/EmsOS")
        received = background(lambda: next(subscriber))
        proxy.cut()
        assert begun.wait(LONG)
        self.publish(publisher, topic)
        assert isinstance(received.result(LONG).event, Alarm)
        assert over.is_set()
        assert [(loss.cause, loss.over) for loss in losses] == [
            (LossCause.TRANSPORT, False),
            (LossCause.TRANSPORT, True),
        ]
        assert "lost" in losses[0].reason
        assert subscriber.losses == ()

    @pytest.mark.obligation("NOT2")
    @pytest.mark.parametrize("kept_by", ["queue", "durable", "durable, but not PERSISTENT"])
    def test_what_is_kept_is_not_lost(
        self, by_proxy: Any, queue: Queue, topic: Topic, whole_again: Any, kept_by: str
    ) -> None:
        losses: list[Loss] = []
        connection = by_proxy(client_id=f"interrupted-{queue.name}")
        target: Destination = queue if kept_by == "queue" else topic
        durable = None if kept_by == "queue" else "kept"
        is_safe = kept_by != "durable, but not PERSISTENT"
        subscriber = Subscriber(connection, target, durable=durable, timeout=LONG, on_loss=losses.append)
        publisher = Publisher(connection, {"Fault": target}, sender_uri="jms/EmsOS", persistent=is_safe)
        self.publish(publisher, target)
        assert isinstance(next(subscriber).event, Alarm)
        received = background(lambda: next(subscriber))
        whole_again(connection)
        self.publish(publisher, target)
        assert isinstance(received.result(LONG).event, Alarm)
        assert [loss.over for loss in losses] == ([] if is_safe else [False, True])

    @staticmethod
    def publish(publisher: Publisher, target: Destination) -> None:
        publisher.publish(Alarm(object_type="ME", object_name=name("ME=1")), category="Fault")
