"""The dead letters of the embedded provider: what a parked message is told by, and the options."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.jms import Queue, Topic
from mtosi_jms.jms.message import JmsMessage, is_property_name
from mtosi_jms.transport import connect
from mtosi_jms.transport.memory import DELIVERIES, ORIGINAL_DESTINATION, REASON, MemoryConnection

from .conftest import opened

QUEUE = Queue("orders")
DLQ = Queue("DLQ")


def park(connection: MemoryConnection, message: JmsMessage, destination: Any = QUEUE) -> None:
    """Sends a message and takes it until it is parked."""
    session = connection.session()
    consumer = session.consumer(destination)
    session.send(destination, message)
    for _ in range(connection.provider.limits.max_deliveries or 0):
        assert consumer.receive(0) is not None
        session.recover()
    session.close()


@pytest.mark.obligation("P14")
@pytest.mark.parametrize("destination", [QUEUE, Topic("events")], ids=str)
def test_a_parked_message_tells_where_it_comes_from(destination: Any) -> None:
    with opened(max_deliveries=2) as connection:
        park(connection, JmsMessage(body=b"x", properties={"MTOSI_msgType": "REQUEST"}), destination)
        (message,) = connection.session().browse(DLQ)
    assert dict(message.properties) == {
        "MTOSI_msgType": "REQUEST",
        ORIGINAL_DESTINATION: str(destination),
        REASON: "delivered 2 times without being acknowledged",
        DELIVERIES: 2,
    }
    assert all(
        is_property_name(name) and name.startswith("JMS_") for name in (ORIGINAL_DESTINATION, REASON, DELIVERIES)
    )


def test_by_default_a_message_comes_again_for_ever() -> None:
    with opened() as connection:
        session = connection.session()
        session.send(QUEUE, JmsMessage())
        consumer = session.consumer(QUEUE)
        for count in range(1, 50):
            delivery = consumer.receive(0)
            assert delivery is not None
            assert delivery.message.delivery_count == count
            session.recover()


def test_a_full_dead_letter_queue_takes_more() -> None:
    """Parking waits for nobody: who acknowledges must not be held up by who does not."""
    with opened(max_deliveries=1, capacity=1, send_timeout=0) as connection:
        for _ in range(3):
            park(connection, JmsMessage())
        assert connection.provider.depth(DLQ) == 3


def test_the_options_of_connect() -> None:
    with connect("memory:dead-letters", max_deliveries=1, dead_letter="PARKED") as connection:
        assert isinstance(connection, MemoryConnection)
        connection.start()
        park(connection, JmsMessage(body=b"x"))
        assert [message.body for message in connection.session().browse(Queue("PARKED"))] == [b"x"]
