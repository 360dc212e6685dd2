"""A connection whose steps a test sees, holds up and lets fail; otherwise like the connection behind it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mtosi_jms.errors import TransportError
from mtosi_jms.jms import JmsMessage, Queue, Topic
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import InterceptedConnection, Step, connect_privately, exchange
from mtosi_jms.transport import AckMode, Connection

QUEUE = Queue("Q")


class Ems(ManagedElementRetrieval.Supplier):
    def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
        return mer.GetManagedElementResponse()


def test_each_step_is_seen_with_what_it_is_about(mtosi_connection: Connection) -> None:
    steps: list[tuple[Any, ...]] = []

    def note(step: Step) -> Any:
        steps.append((step.action, step.destination, step.message and step.message.body, step.timeout))
        return step.proceed()

    connection = InterceptedConnection(mtosi_connection, note)
    connection.start()
    session = connection.session()
    consumer = session.consumer(QUEUE)
    session.send(QUEUE, JmsMessage(body=b"1"), timeout=3)
    session.send_soon(QUEUE, JmsMessage(body=b"2"))
    session.send_async(QUEUE, JmsMessage(body=b"3")).result(10)
    for _ in range(3):
        delivery = consumer.receive(5)
        assert delivery is not None
        delivery.acknowledge()
    assert consumer.receive(0) is None
    received = [("receive", QUEUE, None, 5)] * 3
    acknowledged = [("acknowledge", QUEUE, body, None) for body in (b"1", b"2", b"3")]
    assert steps == [
        ("send", QUEUE, b"1", 3),
        ("send_soon", QUEUE, b"2", None),
        ("send_async", QUEUE, b"3", None),
        *(step for both in zip(received, acknowledged, strict=True) for step in both),
        ("receive", QUEUE, None, 0),
    ]


@pytest.mark.parametrize("action", ["send", "receive", "acknowledge"])
def test_what_an_interceptor_raises_is_raised_in_place_of_the_step(action: str, mtosi_connection: Connection) -> None:
    def cut(step: Step) -> Any:
        if step.action == action:
            raise TransportError("the line is cut")
        return step.proceed()

    connection = InterceptedConnection(mtosi_connection, cut)
    connection.start()
    session = connection.session()

    def talk() -> None:
        session.send(QUEUE, JmsMessage())
        delivery = session.consumer(QUEUE).receive(5)
        assert delivery is not None
        delivery.acknowledge()

    with pytest.raises(TransportError, match="the line is cut"):
        talk()


def test_it_is_otherwise_like_the_connection_behind_it() -> None:
    with connect_privately() as opened:
        connection = InterceptedConnection(opened)
        assert (connection.names, connection.id, connection.client_id) == (opened.names, opened.id, opened.client_id)
        assert (connection.capabilities, connection.metadata) == (opened.capabilities, opened.metadata)
        assert connection.dead_letter == opened.dead_letter
        session, other = connection.session(AckMode.AUTO), connection.session(transacted=True)
        assert connection.sessions == [session, other]
        assert (session.ack_mode, other.transacted) == (AckMode.AUTO, True)
        connection.start()
        temporary = session.temporary_queue()
        heard: list[bytes] = []
        done = threading.Event()
        listening = connection.session().consumer(Topic("T"), "a = 1")
        listening.listen(lambda delivery: (heard.append(delivery.message.body), done.set()))
        assert (listening.destination, listening.selector, listening.durable) == (Topic("T"), "a = 1", None)
        other.send(temporary, JmsMessage(body=b"<a/>"))
        other.rollback()
        other.send(session.temporary_topic(), JmsMessage())
        other.send(temporary, JmsMessage(body=b"<b/>"))
        other.send(Topic("T"), JmsMessage(body=b"<c/>", properties={"a": 1}))
        other.commit()
        assert [message.body for message in session.browse(temporary)] == [b"<b/>"]
        assert connection.consumers(temporary) == 0
        assert done.wait(10)
        assert heard == [b"<c/>"]
        connection.stop()
        session.close()
        assert session.is_closed
        assert session not in connection.sessions
        connection.close()
        assert connection.sessions == []


def test_either_end_of_a_pair_may_be_intercepted() -> None:
    asking: list[str] = []
    serving: list[str] = []

    def note(steps: list[str]) -> Any:
        def see(step: Step) -> Any:
            steps.append(step.action)
            return step.proceed()

        return see

    with exchange([Ems()], intercept=note(asking), intercept_supplier=note(serving)) as pair:
        pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=name("ME=1"))
        pair.supplier.stop()  # type: ignore[union-attr]
    assert {"send", "receive", "acknowledge"} <= set(asking)
    assert serving[:3] == ["receive", "send_soon", "acknowledge"]
