"""Selectors: only what they accept is delivered, and what they do not stays for others."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.errors import SelectorError
from mtosi_jms.jms import Destination, Queue, Topic
from mtosi_jms.transport import AckMode, Capability, Connection

from ...waiting import PATIENCE, background
from .conftest import name_of, take, text

pytestmark = pytest.mark.capability(Capability.SELECTORS)

CREATED_OR_DELETED = "MTOSI_EventType = 'ObjectCreation' OR MTOSI_EventType = 'ObjectDeletion'"
EVENTS = ("ObjectCreation", "AttributeValueChange", "ObjectDeletion", "StateChange")


@pytest.fixture(params=["queue", "topic"])
def destination(request: pytest.FixtureRequest) -> Destination:
    """A queue, or a topic."""
    made: Destination = request.getfixturevalue(request.param)
    return made


@pytest.mark.obligation("P16", "R10", "P39", "O4")
def test_only_what_is_selected_comes(connection: Connection, destination: Destination, bodies: Any) -> None:
    session = connection.session()
    consumer = session.consumer(destination, CREATED_OR_DELETED)
    assert consumer.selector == CREATED_OR_DELETED
    for event in EVENTS:
        session.send(destination, text(event, properties={"MTOSI_EventType": event}))
    assert bodies(consumer) == ["ObjectCreation", "ObjectDeletion"]


def test_what_a_queue_holds_already_is_selected_too(connection: Connection, queue: Queue, bodies: Any) -> None:
    session = connection.session()
    for event in EVENTS:
        session.send(queue, text(event, properties={"MTOSI_EventType": event}))
    assert bodies(session.consumer(queue, CREATED_OR_DELETED)) == ["ObjectCreation", "ObjectDeletion"]
    assert bodies(session.consumer(queue)) == ["AttributeValueChange", "StateChange"]


@pytest.mark.obligation("P15")
@pytest.mark.parametrize("selector", ["MTOSI_msgType = = 'REQUEST'", "a b", "'text'x", "(a = 1", "JMSType =", "\u00a0"])
def test_an_invalid_selector_makes_no_consumer(connection: Connection, destination: Destination, selector: str) -> None:
    """At once, not at the first message."""
    session = connection.session()
    with pytest.raises(SelectorError):
        session.consumer(destination, selector)


@pytest.mark.parametrize("selector", [None, "", "  \n"])
def test_a_blank_one_takes_everything(
    connection: Connection, destination: Destination, selector: str | None, bodies: Any
) -> None:
    session = connection.session()
    consumer = session.consumer(destination, selector)
    session.send(destination, text(1))
    assert (consumer.selector, bodies(consumer)) == (None, ["1"])


@pytest.mark.parametrize(
    ("selector", "taken"),
    [("n > 2", ["3", "4"]), ("flag", ["1", "3"]), ("ratio BETWEEN 0.5 AND 1", ["2", "4"]), ("n * 2 = 6", ["3"])],
)
@pytest.mark.capability(Capability.TYPED_PROPERTIES)
def test_types_count(connection: Connection, queue: Queue, selector: str, taken: list[str], bodies: Any) -> None:
    session = connection.session()
    for number in range(1, 5):
        values = {"n": number, "flag": bool(number % 2), "ratio": 0.1 if number % 2 else 0.75}
        session.send(queue, text(number, properties=values))
    assert bodies(session.consumer(queue, selector)) == taken


SELECTED = {
    "word = 'odd'": ["1", "3"],
    "word <> 'odd'": ["2", "4"],
    "word IN ('even', 'other')": ["2", "4"],
    "word LIKE 'o%'": ["1", "3"],
    "n > 2": ["3", "4"],
    "n BETWEEN 2 AND 3": ["2", "3"],
    "n = 2": ["2"],
    "n <> 2": ["1", "3", "4"],
    "flag = TRUE": ["1", "3"],
    "flag = FALSE": ["2", "4"],
    "flag = TRUE AND n > 1": ["3"],
    "missing IS NULL": ["1", "2", "3", "4"],
    "missing = 'x'": [],
}


@pytest.mark.obligation("P15", "P39")
def test_text_numbers_and_booleans(provider: Any, connection: Connection, topic: Topic) -> None:
    """On every transport, whatever becomes of the types of properties on its wire."""
    session = connection.session(AckMode.AUTO)
    consumers = {selector: session.consumer(topic, selector) for selector in SELECTED}
    for number in range(1, 5):
        values = {"n": number, "flag": bool(number % 2), "word": "odd" if number % 2 else "even"}
        session.send(topic, text(number, properties=values))
    found = {
        selector: [name_of(take(consumers[selector]).message) for _ in taken] for selector, taken in SELECTED.items()
    }
    assert found == SELECTED
    provider.settle()
    first, *others = consumers
    assert consumers[first].receive(provider.quiet) is None
    assert [selector for selector in others if consumers[selector].receive(0)] == []


def test_headers_are_selected_by(connection: Connection, queue: Queue, bodies: Any) -> None:
    session = connection.session()
    session.send(queue, text("low", priority=1, correlation_id="ID:1"))
    session.send(queue, text("high", priority=8, correlation_id="ID:2", jms_type="kind"))
    session.send(queue, text("other", priority=8))
    assert bodies(session.consumer(queue, "JMSPriority > 4 AND JMSType = 'kind'")) == ["high"]
    assert bodies(session.consumer(queue, "JMSCorrelationID = 'ID:1'")) == ["low"]


@pytest.mark.capability(Capability.PRIORITY, Capability.UNBUFFERED)
@pytest.mark.obligation("T1.6", "P13")
def test_order_and_expiry_hold(provider: Any, connection: Connection, queue: Queue, bodies: Any) -> None:
    session = connection.session()
    consumer = session.consumer(queue, "n >= 0")
    for number, (priority, life) in enumerate([(4, 0), (9, 500), (0, 0), (9, 0), (4, 0)]):
        session.send(queue, text(number, priority=priority, time_to_live_ms=life, properties={"n": number}))
        session.send(queue, text("other", priority=9, properties={"n": -1}))
    provider.pass_time(0.75)
    assert bodies(consumer) == ["3", "0", "4", "2"]


@pytest.mark.capability(Capability.UNBUFFERED)
@pytest.mark.obligation("P7")
def test_readers_with_several_selectors_share_a_queue(connection: Connection, queue: Queue, bodies: Any) -> None:
    """Each message once, though two selectors accept it; what is put back is there for all that accept it."""
    sessions = [connection.session() for _ in range(4)]
    selectors = ("n < 5", "n < 5", "n = 0 OR n = 2 OR n = 4 OR n = 6")
    low, low_too, even = (one.consumer(queue, condition) for one, condition in zip(sessions, selectors, strict=False))
    for number in range(8):
        sessions[3].send(queue, text(number, properties={"n": number}))
    assert [name_of(take(consumer).message) for consumer in (low, low_too, even)] == ["0", "1", "2"]
    sessions[2].recover()
    assert bodies(low_too) == ["2", "3", "4"]
    sessions[0].recover()
    assert bodies(even) == ["0", "6"]
    assert bodies(sessions[3].consumer(queue)) == ["5", "7"]


def test_a_blocked_receiver_waits_for_what_it_selects(connection: Connection, queue: Queue, until_blocked: Any) -> None:
    session, sender = connection.session(), connection.session()
    consumer = session.consumer(queue, "n = 7")
    future = background(consumer.receive)
    until_blocked(session)
    for number in range(10):
        sender.send(queue, text(number, properties={"n": number}))
    assert name_of(future.result(PATIENCE).message) == "7"


@pytest.mark.capability(Capability.NO_LOCAL)
class TestNoLocal:
    @pytest.mark.parametrize("durable", [None, "no-local"])
    def test_what_its_connection_sends_is_left_out(
        self, started: Any, topic: Topic, durable: str | None, bodies: Any
    ) -> None:
        ours, theirs = started(client_id="ours"), started(client_id="theirs")
        session = ours.session()
        consumer = session.consumer(topic, durable=durable, no_local=True)
        everything = session.consumer(topic)
        ours.session().send(topic, text("ours"))
        theirs.session().send(topic, text("theirs"))
        assert bodies(consumer) == ["theirs"]
        assert sorted(bodies(everything)) == ["ours", "theirs"]  # two connections have no order between them
        consumer.close()
        if durable is not None:
            session.unsubscribe(durable)

    def test_it_is_for_topics(self, connection: Connection, queue: Queue) -> None:
        with pytest.raises(ValueError, match="topic"):
            connection.session().consumer(queue, no_local=True)
