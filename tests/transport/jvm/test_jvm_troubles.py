"""What `jvm:` does while the network swallows what is sent, or the broker has not noticed that a connection is gone."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.broker import BrokerProcess
from mtosi_jms.errors import InvalidDestinationError, TransportError, UnknownOutcomeError
from mtosi_jms.jms import DeliveryMode, JmsMessage, NamingContext, Queue, Topic
from mtosi_jms.runtime import Backoff, ConsumerRuntime, RuntimeRules
from mtosi_jms.transport import AckMode, Connection, connect

from ...waiting import until
from .clients import address_of, connect_by_java, jndi_properties

pytest.importorskip("jpype", reason="JPype is not installed")
pytestmark = pytest.mark.broker
LIMIT, MOST = 0.5, 4.0
"""The time-out of a call, and what it may take."""


@pytest.fixture(params=["activemq", pytest.param("artemis", marks=pytest.mark.endurance)])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def proxy(kind: str, request: pytest.FixtureRequest, make_proxy: Any) -> Any:
    broker = request.getfixturevalue(kind)
    return make_proxy(broker.endpoints.ports["openwire"], listen_in=False)


@pytest.fixture
def open_jvm(kind: str, proxy: Any, java_url: Any, request: pytest.FixtureRequest) -> Any:
    """Opens connections by way of the proxy, started; they are closed with the test."""
    endpoints = request.getfixturevalue(kind).endpoints
    url = java_url(kind, endpoints, port=proxy.port)
    opened: list[Connection] = []

    def open_one(**options: Any) -> Connection:
        given = {"user": endpoints.user, "password": endpoints.password, "send_timeout": LIMIT, "close_timeout": LIMIT}
        made = connect(url, **(given | options))
        opened.append(made)
        made.start()
        return made

    yield open_one
    proxy.flow()
    for one in opened:
        one.close()


def threads() -> int:
    """Those of Java too, where the system tells."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.exists() else threading.active_count()


def proxies() -> int:
    """Threads of proxies, which stay while nothing gets through."""
    return sum("(_pass)" in one.name for one in threading.enumerate())


@pytest.mark.parametrize("kind", ["artemis"], indirect=True)
def test_a_large_message_comes_over_a_slow_line(open_jvm: Any, proxy: Any, queue: Queue) -> None:
    """Artemis hands a large message over before its content is there."""
    connection = open_jvm(send_timeout=60.0)
    session = connection.session()
    body = b"<a>" + b"x" * 2**21 + b"</a>"
    session.send(queue, JmsMessage(body=body))
    proxy.slow(0.02)
    with session.consumer(queue) as consumer:
        delivery = consumer.receive(1.0)
        assert delivery is not None
        assert delivery.message.body == body
        assert not delivery.message.redelivered
        delivery.acknowledge()


@pytest.mark.obligation("CON1")
def test_attempts_to_connect_end_and_leave_nothing(open_jvm: Any, proxy: Any) -> None:
    """A consumer runtime tries again and again, as fast as it may."""
    open_jvm(connect_timeout=30.0).close()
    before, tried = threads(), threading.Semaphore(0)

    def attempt() -> Connection:
        tried.release()
        return open_jvm(connect_timeout=0.3)  # type: ignore[no-any-return]

    proxy.stall(to_broker=True, to_client=True)
    rules = RuntimeRules(reconnect=Backoff(0.0, 0.0, 0.0))
    runtime = ConsumerRuntime(attempt, Queue("jvm.troubles"), print, parking="queue:parked", rules=rules)
    running = threading.Thread(target=runtime.run)
    running.start()
    try:
        for _ in range(8):
            assert tried.acquire(timeout=60)
        assert threads() - proxies() < before + 25
    finally:
        runtime.drain(0)
        running.join(60)
    until(lambda: threads() - proxies() <= before + 12)


@pytest.mark.obligation("CON1")
def test_one_attempt_at_a_time_follows_a_loss(
    open_jvm: Any, proxy: Any, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    """New connections are accepted, and nothing answers; then they are broken."""
    open_jvm(connect_timeout=60.0).close()  # Java has loaded its classes
    connection = open_jvm(connect_timeout=2.0)
    before = threads()

    def connecting() -> list[str]:
        return [one.name for one in threading.enumerate() if one.name.startswith(("connects-", "reconnects-"))]

    def attempts() -> int:
        return sum("not yet connected again" in one.getMessage() for one in caplog.records)

    with caplog.at_level(logging.WARNING):
        proxy.stall(to_client=True)
        proxy.cut()
        for count in range(1, 3):
            until(lambda count=count: attempts() >= count)
            proxy.cut()
            assert len(connecting()) <= 2
    proxy.flow()
    connection.session().send(queue, JmsMessage(), timeout=60)
    until(lambda: threads() <= before + 4)


@pytest.mark.obligation("CON2")
def test_a_client_id_that_the_broker_still_holds_is_waited_for(
    open_jvm: Any, proxy: Any, topic: Topic, caplog: pytest.LogCaptureFixture
) -> None:
    connection = open_jvm(client_id="jvm-troubles", send_timeout=60.0)
    session = connection.session(AckMode.AUTO)
    consumer = session.consumer(topic, durable="kept")
    with caplog.at_level(logging.WARNING):
        proxy.leave_half_open()
        until(lambda: caplog.text.count("ClientIdInUseError") >= 2)
    assert not connection.is_up
    proxy.end_half_open()
    open_jvm(send_timeout=60.0).session().send(topic, JmsMessage(body=b"x"))
    session.send(topic, JmsMessage(body=b"y"))
    assert consumer.receive(60) is not None
    consumer.close()
    session.unsubscribe("kept")


@pytest.mark.obligation("CON3")
def test_each_call_ends_in_time_while_nothing_gets_through(open_jvm: Any, proxy: Any, queue: Queue) -> None:
    connection = open_jvm()
    session, other = connection.session(AckMode.AUTO), connection.session(transacted=True)
    large = JmsMessage(body=b"x" * 20_000_000, delivery_mode=DeliveryMode.PERSISTENT)
    consumer = session.consumer(Queue(f"{queue.name}.empty"))
    other.send(queue, JmsMessage(delivery_mode=DeliveryMode.PERSISTENT))
    many = connection.session()
    for number in range(8):
        many.consumer(Queue(f"{queue.name}.{number}"))
    proxy.stall(to_broker=True, to_client=True)
    calls: dict[str, Callable[[], Any]] = {
        "receive without waiting": lambda: consumer.receive(0),
        "receive": lambda: consumer.receive(LIMIT),
        "send": lambda: session.send(queue, JmsMessage(delivery_mode=DeliveryMode.PERSISTENT), timeout=LIMIT),
        "send a large one": lambda: session.send(queue, large, timeout=LIMIT),
        "consumer": lambda: connection.session().consumer(queue),
        "browse": lambda: session.browse(queue),
        "temporary queue": session.temporary_queue,
        "unsubscribe": lambda: session.unsubscribe("nobody"),
        "commit": other.commit,
        "rollback": other.rollback,
        "recover": session.recover,
        "close a consumer": consumer.close,
        "close a session": session.close,
        "connect": lambda: open_jvm(connect_timeout=LIMIT),
        "close": connection.close,
    }
    took = {}
    for what, call in calls.items():
        begun = time.monotonic()
        try:
            call()
        except (TransportError, UnknownOutcomeError):
            pass
        took[what] = round(time.monotonic() - begun, 2)
    assert {what: seconds for what, seconds in took.items() if seconds > MOST} == {}


@pytest.mark.obligation("CON6")
def test_a_broker_that_goes_is_told_at_once(open_jvm: Any, proxy: Any, topic: Topic) -> None:
    connection, told = open_jvm(), threading.Event()
    consumer = connection.session().consumer(topic)
    consumer.on_interrupted = lambda reason: told.set()
    consumer.listen(print)
    assert connection.is_up
    proxy.refuse()
    proxy.cut()
    assert told.wait(5)
    assert not connection.is_up
    proxy.refuse(False)
    until(lambda: connection.is_up)


def test_a_refused_message_does_not_end_the_connection(
    activemq: BrokerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    """ActiveMQ reports a message that no caller waits for to the connection, as it reports a loss."""
    quiet = address_of("activemq", activemq) + "&jms.watchTopicAdvisories=false"  # of queues that are gone
    names = NamingContext.from_properties(jndi_properties("activemq", quiet))
    with connect_by_java("activemq", activemq, names=names) as living:
        living.start()
        with connect_by_java("activemq", activemq) as gone:
            reply_to = gone.session().temporary_queue()
        with living.session(transacted=True) as session:
            session.send(reply_to, JmsMessage())
            with pytest.raises(InvalidDestinationError):
                session.commit()
            until(lambda: "a message was refused and is lost" in caplog.text)
            session.send(Queue("refused"), JmsMessage(body=b"<next/>"))
            session.commit()
    assert "the connection was lost" not in caplog.text
