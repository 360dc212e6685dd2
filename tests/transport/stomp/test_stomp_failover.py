"""`failover:(a,b)`: from one broker to the next and back, with nothing lost that was confirmed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mtosi_jms.errors import TransportError, UnknownOutcomeError
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue

from .proxy import Proxy

pytestmark = pytest.mark.broker
LONG = 60.0


@pytest.fixture
def two_ways(broker: Any) -> Iterator[tuple[Proxy, Proxy]]:
    """Two ways to one broker: what of a pair of brokers with a store in common a client sees."""
    ways = Proxy(broker.endpoints.ports["stomp"]), Proxy(broker.endpoints.ports["stomp"])
    yield ways
    for way in ways:
        way.close()


def url(*ways: Proxy) -> str:
    return f"failover:({','.join(f'stomp://127.0.0.1:{way.port}' for way in ways)})"


@pytest.fixture
def login(broker: Any) -> dict[str, str]:
    return {"user": broker.endpoints.user, "password": broker.endpoints.password}


def send_surely(session: Any, queue: Queue, number: int) -> None:
    for _ in range(20):
        try:
            session.send(queue, JmsMessage(body=b"%d" % number, delivery_mode=DeliveryMode.PERSISTENT))
        except UnknownOutcomeError:
            continue
        return
    pytest.fail("twenty connections were lost")


def test_to_the_next_and_back(
    two_ways: tuple[Proxy, Proxy], open_stomp: Callable[..., Any], login: dict[str, str], queue: Queue
) -> None:
    session = open_stomp(url(*two_ways), **login).session()
    # What Artemis delivers while the connection breaks it may keep until it is started again: docs/delivery.md.
    late = session.connection.metadata.provider != "ActiveMQ"
    consumer = None if late else session.consumer(queue)
    for turn in range(6):
        here, there = two_ways[turn % 2], two_ways[1 - turn % 2]
        there.refuse(False)
        here.refuse()
        here.cut()
        send_surely(session, queue, turn)
        assert b"\n\n%d\0" % turn in there.sent
    consumer = consumer or session.consumer(queue)
    taken: set[bytes] = set()
    while len(taken) < 6:
        delivery = consumer.receive(LONG)
        assert delivery is not None
        taken.add(delivery.message.body)
        delivery.acknowledge()
    assert taken == {b"%d" % turn for turn in range(6)}


def test_all_of_them_are_down_for_a_while(
    two_ways: tuple[Proxy, Proxy], open_stomp: Callable[..., Any], login: dict[str, str], queue: Queue
) -> None:
    session = open_stomp(url(*two_ways), **login).session()
    for way in two_ways:
        way.refuse()
    for way in two_ways:  # not before, or the client is on the other one by then
        way.cut()
    for way in two_ways:
        for _ in range(3):
            assert way.refused.acquire(timeout=LONG)
    two_ways[1].refuse(False)
    send_surely(session, queue, 1)


def test_the_other_one_will_not_do(
    activemq: Any, artemis: Any, open_stomp: Callable[..., Any], queue: Queue, request: pytest.FixtureRequest
) -> None:
    """A broker that cannot take the connection is no reason to give up while the right one is only down."""
    way, wrong = Proxy(activemq.endpoints.ports["stomp"]), Proxy(artemis.endpoints.ports["stomp"])
    request.addfinalizer(way.close)
    request.addfinalizer(wrong.close)
    session = open_stomp(url(way, wrong), user=activemq.endpoints.user, password=activemq.endpoints.password).session()
    way.refuse()
    way.cut()
    for _ in range(3):
        assert way.refused.acquire(timeout=LONG)
    assert b"CONNECT" in wrong.sent
    way.refuse(False)
    send_surely(session, queue, 1)


def test_none_of_them_will_do(
    activemq: Any, artemis: Any, open_stomp: Callable[..., Any], queue: Queue, request: pytest.FixtureRequest
) -> None:
    way, wrong = Proxy(activemq.endpoints.ports["stomp"]), Proxy(artemis.endpoints.ports["stomp"])
    request.addfinalizer(way.close)
    request.addfinalizer(wrong.close)
    connection = open_stomp(
        url(way, wrong), user=activemq.endpoints.user, password=activemq.endpoints.password, reconnect_timeout=0.1
    )
    way.refuse()
    way.cut()
    with pytest.raises(TransportError):
        connection.session().consumer(queue).receive(LONG)
