"""What the brokers that we start write to their logs does not grow with the messages."""

from __future__ import annotations

from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.jms import JmsMessage, Queue

pytestmark = pytest.mark.broker


@pytest.mark.parametrize("kind", ["activemq", "artemis"])
def test_messages_are_not_logged(kind: str, start_broker: Any) -> None:
    broker = start_broker(kind, protocols=["stomp"])
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
    broker.stop()
    log = broker.log.read_text("utf-8", "replace")
    assert marker not in log
    assert len(log.splitlines()) < 150
