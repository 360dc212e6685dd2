"""Selectors at real brokers over STOMP: what one refuses is an error of the consumer, and the connection goes on."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import SelectorError
from mtosi_jms.jms import JmsMessage, Queue, Topic
from mtosi_jms.transport import Connection, Consumer
from mtosi_jms.transport._session_core import ConsumerSpec

pytestmark = pytest.mark.broker
PATIENCE = 30.0
Open = Callable[..., Connection]


@pytest.fixture(params=["activemq", "artemis"])
def opened(request: pytest.FixtureRequest) -> Iterator[Open]:
    url = request.getfixturevalue(request.param).endpoints.url("stomp")
    made: list[Connection] = []

    def connect(**options: Any) -> Connection:
        made.append(mtosi.connect(url, **options))
        made[-1].start()
        return made[-1]

    yield connect
    for one in made:
        one.close()


@pytest.fixture
def name() -> str:
    return f"SELECT.{uuid.uuid4().hex[:8]}"


def bodies(consumer: Consumer, until: str) -> list[str]:
    """What comes up to a body."""
    found: list[str] = []
    while until not in found:
        delivery = consumer.receive(PATIENCE)
        assert delivery is not None, found
        delivery.acknowledge()
        found.append(delivery.message.body.decode())
    return found


class Unchecked:
    """A selector that only the broker judges."""

    tree = True

    def __init__(self, text: str) -> None:
        self.text = text
        self.identifiers = frozenset[str]()

    def __str__(self) -> str:
        return self.text


@pytest.mark.obligation("NOT8")
@pytest.mark.parametrize("text", ["a == 'x' LIKE", "name = 'a:b' AND", "größe = ANY (1)", "x IN ()"])
def test_what_the_broker_refuses(opened: Open, name: str, text: str) -> None:
    """The error is that of the consumer, and names the selector; what else the connection has goes on."""
    connection: Any = opened()
    session = connection.session()
    good = session.consumer(Queue(name))
    spec = ConsumerSpec(Queue(f"{name}.OTHER"), text, Unchecked(text))  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(SelectorError):
            session._subscribe(spec)
    session.send(Queue(name), JmsMessage(body=b"good"), timeout=PATIENCE)
    assert bodies(good, "good") == ["good"]
    assert connection.is_up


@pytest.mark.parametrize("text", ["größe = 'L'", "größe = 'L' AND n > 3", "größe IS NOT NULL AND größe <> 'größe'"])
def test_names_outside_ascii(opened: Open, name: str, text: str) -> None:
    connection = opened()
    session = connection.session()
    try:
        consumer = session.consumer(Queue(name), text)
    except SelectorError:  # ActiveMQ has no such names
        assert "Artemis" not in connection.metadata.provider
        return
    for body, size, number in (("small", "größe", 5), ("large", "L", 5)):
        session.send(Queue(name), JmsMessage(body=body.encode(), properties={"größe": size, "n": number}))
    assert bodies(consumer, "large") == ["large"]


@pytest.mark.parametrize(
    ("selector", "matching"),
    [
        (None, ["MAJOR 1", "MINOR 7", "MINOR 1"]),
        ("severity = 'MAJOR'", ["MAJOR 1"]),
        ("severity = 'MAJOR' OR n > 5", ["MAJOR 1", "MINOR 7"]),
        ("NOT severity = 'MAJOR'", ["MINOR 7", "MINOR 1"]),
    ],
)
@pytest.mark.parametrize("durable", [None, "kept"])
def test_no_local_with_a_selector(
    opened: Open, name: str, selector: str | None, matching: list[str], durable: str | None
) -> None:
    connection, other = opened(client_id=name if durable else ""), opened()
    session = connection.session()
    consumer = session.consumer(Topic(name), selector, durable=durable, no_local=True)
    for sender, who in ((session, "own"), (other.session(), "other")):
        for severity, number in (("MAJOR", 1), ("MINOR", 7), ("MINOR", 1)):
            body = f"{who} {severity} {number}".encode()
            sender.send(Topic(name), JmsMessage(body=body, properties={"severity": severity, "n": number}))
    assert bodies(consumer, f"other {matching[-1]}") == [f"other {one}" for one in matching]


@pytest.mark.obligation("NOT9")
def test_a_durable_subscription_with_another_selector(
    opened: Open, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is a new one, as JMS has it, and what is lost is told."""
    severities = ("MAJOR", "MINOR", "CRITICAL")
    told: list[bool] = []
    for selector, wanted in (
        ("severity = 'MAJOR'", ["MAJOR"]),
        ("severity  =  'MAJOR'", ["MAJOR"]),
        ("severity IN ('MAJOR', 'CRITICAL')", ["MAJOR", "CRITICAL"]),
        (None, [*severities]),
        ("severity <> 'MAJOR'", ["MINOR", "CRITICAL"]),
    ):
        caplog.clear()
        connection = opened(client_id=name)
        with caplog.at_level(logging.WARNING):
            consumer = connection.session().consumer(Topic(name), selector, durable="kept")
        told.append("selector" in caplog.text)
        for severity in severities:
            body = severity.encode()
            connection.session().send(Topic(name), JmsMessage(body=body, properties={"severity": severity}))
        assert bodies(consumer, wanted[-1]) == wanted
        connection.close()
    is_artemis = "Artemis" in str(connection.metadata)
    assert told == ([False, False, True, True, True] if is_artemis else [False] * 5)


def test_a_durable_subscription_that_was_ended_has_no_record(
    opened: Open, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    connection = opened(client_id=name)
    for selector in ("severity = 'MAJOR'", "severity = 'MINOR'"):
        session = connection.session()
        session.consumer(Topic(name), selector, durable="kept").close()
        session.unsubscribe("kept")
    assert "selector" not in caplog.text
