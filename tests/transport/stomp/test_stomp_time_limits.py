"""A send that is given less time than the connection has takes no more: without a connection, without an answer."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import ReplyTimeoutError, TransportError, UnknownOutcomeError
from mtosi_jms.jms import Queue
from mtosi_jms.jms.message import DeliveryMode, JmsMessage
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.transport.stomp import StompConnection

from .proxy import Proxy

pytestmark = pytest.mark.broker
ENOUGH = 20.0
"""Seconds; the connection's own limit is 30."""


def test_no_connection(by_proxy: Callable[..., StompConnection], proxy: Proxy, queue: Queue) -> None:
    session = by_proxy().session()
    proxy.refuse()
    proxy.cut()
    assert proxy.refused.acquire(timeout=ENOUGH)
    began = time.monotonic()
    with pytest.raises(TransportError, match="not sent"):
        session.send(queue, JmsMessage(body=b"<x/>"), timeout=0.1)
    assert time.monotonic() - began < ENOUGH
    proxy.refuse(False)


def test_no_answer(by_proxy: Callable[..., StompConnection], proxy: Proxy, queue: Queue) -> None:
    session = by_proxy().session()
    proxy.stall(to_client=True)
    message = JmsMessage(body=b"<x/>", delivery_mode=DeliveryMode.PERSISTENT)
    began = time.monotonic()
    with pytest.raises(UnknownOutcomeError, match=r"no receipt within 0\.1 s") as caught:
        session.send(queue, message, timeout=0.1)
    assert time.monotonic() - began < ENOUGH
    assert [one.body for one in caught.value.messages] == [b"<x/>"]
    proxy.flow()


@pytest.mark.parametrize("persistent", [False, True])
def test_a_call_while_the_broker_is_away(
    by_proxy: Callable[..., StompConnection], proxy: Proxy, queue: Queue, persistent: bool
) -> None:
    connection = by_proxy()
    requestor = mtosi.Requestor(connection, sender_uri=f"queue:{queue.name}-ANSWERS", persistent=persistent)
    proxy.refuse()
    proxy.cut()
    assert proxy.refused.acquire(timeout=ENOUGH)
    began = time.monotonic()
    with pytest.raises(ReplyTimeoutError, match=r"getAllManagedElements to queue:.*no reply within 0\.1 s.*not sent"):
        ManagedElementRetrieval(requestor, queue).get_all_managed_elements(timeout=0.1)
    assert time.monotonic() - began < ENOUGH
    proxy.refuse(False)
    requestor.close()
