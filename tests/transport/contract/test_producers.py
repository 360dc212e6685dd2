"""Producers: settings that messages go out with, overridden for one message where the call says so."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import Destination, Queue
from mtosi_jms.jms.message import DeliveryMode
from mtosi_jms.transport import Connection

PERSISTENT, NON_PERSISTENT = DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT


@pytest.mark.obligation("P11", "O6a", "T1.3", "T1.5", "T1.6")
@pytest.mark.parametrize(
    ("producer", "call", "sent"),
    [
        ({}, {}, (NON_PERSISTENT, 2, 7_000)),
        ({"delivery_mode": PERSISTENT}, {}, (PERSISTENT, 2, 7_000)),
        ({"priority": 9, "time_to_live_ms": 60_000}, {}, (NON_PERSISTENT, 9, 60_000)),
        ({"priority": 9, "time_to_live_ms": 60_000}, {"priority": 0, "time_to_live_ms": 0}, (NON_PERSISTENT, 0, 0)),
        ({"delivery_mode": PERSISTENT}, {"delivery_mode": NON_PERSISTENT}, (NON_PERSISTENT, 2, 7_000)),
        ({}, {"delivery_mode": PERSISTENT, "priority": 5}, (PERSISTENT, 5, 7_000)),
    ],
)
def test_the_call_then_the_producer_then_the_message(
    connection: Connection,
    queue: Queue,
    producer: dict[str, Any],
    call: dict[str, Any],
    sent: tuple[object, ...],
    text: Any,
    take: Any,
) -> None:
    session = connection.session()
    session.producer(queue, **producer).send(text(1, priority=2, time_to_live_ms=7_000), **call)
    message = take(session.consumer(queue)).message
    life = message.expiration_ms - message.timestamp_ms if message.expiration_ms else 0
    assert (message.delivery_mode, message.priority) == sent[:2]
    assert life == pytest.approx(sent[2], abs=500)  # who sends may set the end, and the provider the beginning


@pytest.mark.obligation("O4", "P4")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_one_interface_for_queues_and_topics(
    connection: Connection, kind: str, request: pytest.FixtureRequest, text: Any, bodies: Any
) -> None:
    """A producer sends nothing by being made; the same calls serve both kinds."""
    destination: Destination = request.getfixturevalue(kind)
    session = connection.session()
    consumer = session.consumer(destination)
    producer = session.producer(destination)
    assert bodies(consumer) == []
    producer.send(text(1))
    assert bodies(consumer) == ["1"]


@pytest.mark.parametrize("setting", [{"priority": 10}, {"priority": -1}, {"time_to_live_ms": -1}])
def test_a_setting_out_of_its_range(connection: Connection, queue: Queue, setting: dict[str, int], text: Any) -> None:
    session = connection.session()
    with pytest.raises(ConfigError):
        session.producer(queue, **setting)
    with pytest.raises(ConfigError):
        session.producer(queue).send(text(1), **setting)
