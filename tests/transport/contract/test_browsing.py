"""Browsing: looking at a queue without taking anything."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, IllegalStateError, InvalidDestinationError, SelectorError
from mtosi_jms.jms import Queue, Topic
from mtosi_jms.transport import Capability, Connection

from .conftest import name_of, take, text

pytestmark = pytest.mark.capability(Capability.BROWSE)


def test_it_takes_nothing(connection: Connection, queue: Queue, bodies: Any) -> None:
    session = connection.session()
    for number in range(3):
        session.send(queue, text(number))
    for _ in range(2):
        browsed = session.browse(queue)
        assert [name_of(message) for message in browsed] == ["0", "1", "2"]
    assert {(message.redelivered, message.delivery_count) for message in browsed} == {(False, 1)}
    assert bodies(session.consumer(queue)) == ["0", "1", "2"]
    assert session.browse(queue) == []


@pytest.mark.obligation("OPS3")
def test_a_browser_is_read_some_at_a_time_and_may_be_left(connection: Connection, queue: Queue, bodies: Any) -> None:
    session = connection.session()
    for number in range(700):  # more than one fetch
        session.send_soon(queue, text(number))
    session.send(queue, text(700))
    names = [str(number) for number in range(701)]
    browser = session.browser(queue)
    assert name_of(next(browser)) == "0"
    assert [name_of(message) for message in session.browser(queue)] == names  # the session is not taken meanwhile
    assert name_of(next(browser)) == "1"
    browser.close()
    assert bodies(session.consumer(queue)) == names
    left = session.browser(queue)
    session.close()
    with pytest.raises(IllegalStateError):
        next(left)


@pytest.mark.capability(Capability.PRIORITY)
@pytest.mark.obligation("T1.6", "P13")
def test_in_the_order_of_delivery_without_the_expired(provider: Any, connection: Connection, queue: Queue) -> None:
    session = connection.session()
    session.send(queue, text("normal"))
    session.send(queue, text("short", priority=9, time_to_live_ms=500))
    session.send(queue, text("high", priority=9))
    provider.pass_time(0.75)
    assert [name_of(message) for message in session.browse(queue)] == ["high", "normal"]


@pytest.mark.obligation("P39")
def test_with_a_selector(connection: Connection, queue: Queue) -> None:
    session = connection.session()
    for number in range(6):
        session.send(queue, text(number, properties={"MTOSI_requestedBatchSize": number}))
    assert [name_of(m) for m in session.browse(queue, "MTOSI_requestedBatchSize > 3")] == ["4", "5"]
    assert len(session.browse(queue, " ")) == 6
    with pytest.raises(SelectorError):
        session.browse(queue, "n >")


@pytest.mark.capability(Capability.BROWSE_WAITING)
def test_what_is_handed_out_is_not_there(provider: Any, connection: Connection, queue: Queue) -> None:
    session, other = connection.session(), connection.session()
    session.send(queue, text(1))
    take(session.consumer(queue))
    assert other.browse(queue) == []
    session.close()
    provider.settle()  # Artemis holds a browser of AMQP for 30 seconds if it is closed while the message comes back
    assert len(other.browse(queue)) == 1


def test_what_cannot_be_browsed(provider: Any, connection: Connection, topic: Topic) -> None:
    session = connection.session()
    with pytest.raises(ConfigError, match="topic"):
        session.browse(topic)
    temporary = session.temporary_queue()
    session.send(temporary, text(1))
    assert len(session.browse(temporary)) == 1
    with pytest.raises(InvalidDestinationError):
        provider.connect().session().browse(temporary)
