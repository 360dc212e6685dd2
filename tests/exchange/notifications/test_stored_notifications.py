"""What the provider stores: the publisher's delivery mode, and a durable subscriber's warning."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mtosi_jms.binding import BindingProfile
from mtosi_jms.jms import DeliveryMode
from mtosi_jms.notifications import ProducerService, Publisher, Subscriber
from mtosi_jms.soap import parse
from mtosi_jms.stubs.fmw.notmsg import SubscribeRequest
from mtosi_jms.transport.memory import MemoryConnection

from .conftest import alarm

STORED = BindingProfile(delivery_mode=DeliveryMode.PERSISTENT)


@pytest.fixture
def noc(connection: Any) -> Any:
    with MemoryConnection(connection.provider, connection.names, client_id="noc") as made:
        yield made


@pytest.mark.obligation("O6a", "C53")
@pytest.mark.parametrize(
    ("options", "address", "stored"),
    [
        ({}, "jms/FaultTopic", False),
        ({"persistent": True}, "jms/FaultTopic", True),
        ({"persistent": True}, "jms:jndi:jms/FaultTopic?deliveryMode=NON_PERSISTENT&timeToLive=5000", False),
        ({"persistent": False}, "jms:jndi:jms/FaultTopic?deliveryMode=PERSISTENT", True),
        ({"profile": STORED}, "topic:FAULT", True),
        ({"profile": STORED, "persistent": False}, "topic:FAULT", False),
    ],
)
def test_the_delivery_mode(options: dict[str, Any], address: str, stored: bool, connection: Any) -> None:
    """The address says, else the publisher, else the profile. The header names the topic as the address does."""
    with Publisher(connection, {"Fault": address}, sender_uri="jms/EmsOS", **options) as publisher:
        sent = publisher.publish(alarm())
    assert (sent.delivery_mode is DeliveryMode.PERSISTENT) is stored
    assert ("MTOSIX_messageId" in sent.properties) is stored
    assert sent.time_to_live_ms == (5000 if "timeToLive" in address else 1_800_000)
    header = parse(sent.body).header
    assert header is not None
    assert header.destination_uri == sent.properties["MTOSI_destinationURI"] == address.partition("?")[0]


def test_what_a_producer_sends_is_stored_too(connection: Any) -> None:
    publisher = Publisher(connection, {"Fault": "jms/FaultTopic"}, sender_uri="jms/EmsOS", persistent=True)
    producer = ProducerService(connection, publisher)
    producer.subscribe(SubscribeRequest(consumer_epr="jms/Consumer", topic="Fault"), None)
    assert [one.delivery_mode for one in producer.publish(alarm())] == [DeliveryMode.PERSISTENT]


@pytest.mark.obligation("NOT2")
@pytest.mark.parametrize("way", ["iteration", "asyncio"])
@pytest.mark.parametrize("durable", ["kept", None])
@pytest.mark.parametrize("stored", [False, True])
def test_a_durable_subscriber_warns_of_what_is_not_stored_once(
    way: str, durable: str | None, stored: bool, connection: Any, noc: Any
) -> None:
    subscriber = Subscriber(noc, "jms/FaultTopic", durable=durable, timeout=0)
    with Publisher(connection, {"Fault": "jms/FaultTopic"}, sender_uri="jms/EmsOS", persistent=True) as publisher:
        publisher.publish(alarm())
    with Publisher(connection, {"Fault": "jms/FaultTopic"}, sender_uri="jms/EmsOS", persistent=stored) as publisher:
        for _ in range(3):
            publisher.publish(alarm())

    async def received() -> list[Any]:
        return [one async for one in subscriber.aio]

    found = list(subscriber) if way == "iteration" else asyncio.run(received())
    warned = [[warning.rule for warning in one.envelope.warnings] for one in found]
    assert warned == [[], [] if stored or durable is None else ["O6b"], [], []]
    subscriber.close()
