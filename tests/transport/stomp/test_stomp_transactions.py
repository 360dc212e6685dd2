"""Transactions on the wire: what goes out when, and what is known when one does not end well."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.errors import InvalidDestinationError
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue
from mtosi_jms.transport.descriptor import Capability

pytestmark = pytest.mark.broker


def persistent(number: int) -> JmsMessage:
    return JmsMessage(body=f"<n>{number}</n>".encode(), delivery_mode=DeliveryMode.PERSISTENT)


def everything(consumer: Any, count: int) -> list[bytes]:
    """So many messages, and what comes by then besides; there is no telling of nothing but by waiting."""
    taken = []
    while (delivery := consumer.receive(30 if len(taken) < count else 0.4)) is not None:
        delivery.acknowledge()
        taken.append(delivery.message.body)
    return taken


def test_only_what_must_be_is_confirmed(by_proxy: Any, proxy: Any, queue: Queue) -> None:
    """A hundred messages, and two receipts at most: of COMMIT, and of what is before it where the broker wants that."""
    session = by_proxy().session(transacted=True)
    for number in range(100):
        session.send(queue, persistent(number))
    before = proxy.sent.count(b"receipt:")
    session.commit()
    assert proxy.sent.count(b"receipt:") - before <= 2
    found = everything(by_proxy().session().consumer(queue), 100)
    assert found == [f"<n>{number}</n>".encode() for number in range(100)]


def test_what_is_refused_keeps_the_rest_from_being_committed(by_proxy: Any, queue: Queue) -> None:
    """The one in the middle goes to a queue that is gone; the error says so, and the connection goes on."""
    connection, other = by_proxy(), by_proxy()
    if Capability.TEMPORARY_CHECKED not in connection.capabilities:
        pytest.skip(f"{connection.metadata.provider} refuses no message that is sent to a queue that is gone")
    gone = other.session().temporary_queue()
    other.close()
    session = connection.session(transacted=True)
    for destination in (queue, gone, queue):
        session.send(destination, persistent(1))
    with pytest.raises(InvalidDestinationError):
        session.commit()
    session.send(queue, persistent(2))
    session.commit()
    assert everything(by_proxy().session().consumer(queue), 1) == [b"<n>2</n>"]
