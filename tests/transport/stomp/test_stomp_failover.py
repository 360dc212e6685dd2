"""`failover:(a,b)`: from one broker to the next and back, with nothing lost that was confirmed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mtosi_jms.errors import TransportError
from mtosi_jms.jms import Queue

from .conftest import LONG, persistent, send_surely, take
from .proxy import Proxy

pytestmark = pytest.mark.broker


@pytest.fixture
def two_ways(broker: Any, make_proxy: Any) -> tuple[Proxy, Proxy]:
    """Two ways to one broker: what of a pair of brokers with a store in common a client sees."""
    return make_proxy(broker.endpoints.ports["stomp"]), make_proxy(broker.endpoints.ports["stomp"])


def url(*ways: Proxy) -> str:
    return f"failover:({','.join(f'stomp://127.0.0.1:{way.port}' for way in ways)})"


@pytest.fixture
def login(broker: Any) -> dict[str, str]:
    return {"user": broker.endpoints.user, "password": broker.endpoints.password}


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
        send_surely(session, queue, persistent(turn))
        assert b"<n>%d</n>" % turn in there.sent
    consumer = consumer or session.consumer(queue)
    taken: set[bytes] = set()
    while len(taken) < 6:
        taken.add(take(consumer))
    assert taken == {b"<n>%d</n>" % turn for turn in range(6)}


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
    send_surely(session, queue, persistent(1))


def test_the_other_one_will_not_do(
    activemq: Any, artemis: Any, open_stomp: Callable[..., Any], queue: Queue, make_proxy: Any
) -> None:
    """A broker that cannot take the connection is no reason to give up while the right one is only down."""
    way, wrong = (make_proxy(one.endpoints.ports["stomp"]) for one in (activemq, artemis))
    session = open_stomp(url(way, wrong), user=activemq.endpoints.user, password=activemq.endpoints.password).session()
    way.refuse()
    way.cut()
    for _ in range(3):
        assert way.refused.acquire(timeout=LONG)
    assert b"CONNECT" in wrong.sent
    way.refuse(False)
    send_surely(session, queue, persistent(1))


def test_none_of_them_will_do(
    activemq: Any, artemis: Any, open_stomp: Callable[..., Any], queue: Queue, make_proxy: Any
) -> None:
    way, wrong = (make_proxy(one.endpoints.ports["stomp"]) for one in (activemq, artemis))
    connection = open_stomp(
        url(way, wrong), user=activemq.endpoints.user, password=activemq.endpoints.password, reconnect_timeout=0.1
    )
    way.refuse()
    way.cut()
    with pytest.raises(TransportError):
        connection.session().consumer(queue).receive(LONG)
