"""What the brokers that we start write to their logs does not grow with the messages."""

from __future__ import annotations

import pytest

import mtosi_jms as mtosi
from mtosi_jms.jms import JmsMessage, Queue

pytestmark = pytest.mark.broker


@pytest.mark.parametrize("kind", ["activemq", "artemis"])
def test_messages_are_not_logged(kind: str, request: pytest.FixtureRequest) -> None:
    broker = request.getfixturevalue(kind)
    before = broker.log.stat().st_size
    queue, marker = Queue("LOGGED"), "property-that-a-log-would-show"
    with mtosi.connect(broker.endpoints.url("stomp")) as connection:
        connection.start()
        session = connection.session()
        with session.consumer(queue) as consumer:
            for _ in range(200):
                session.send(queue, JmsMessage(body=b"<a/>", properties={"marker": marker}))
            for _ in range(200):
                delivery = consumer.receive(timeout=30)
                assert delivery is not None
                delivery.acknowledge()
    log = broker.log.read_bytes()[before:]
    assert marker.encode() not in log
    assert len(log.splitlines()) < 100
