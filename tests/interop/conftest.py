"""Java clients at the brokers: the JMS client of ActiveMQ at both, and Artemis' own; one process each for all tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import mtosi_jms as mtosi
from mtosi_jms.broker import KINDS
from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import Queue, Topic
from mtosi_jms.transport import Connection

from .peer import FACTORY, Peer

_numbers = itertools.count(1)


class Client(NamedTuple):
    """A Java client, the broker it belongs to, and the transport by which we are there."""

    broker: str
    factory: str
    transport: str = "stomp"


CLIENTS = {
    "openwire-activemq": Client("activemq", FACTORY["activemq"]),
    "openwire-artemis": Client("artemis", FACTORY["activemq"]),
    "core-artemis": Client("artemis", FACTORY["artemis"]),
    "openwire-activemq-jvm": Client("activemq", FACTORY["activemq"], "jvm"),
    "core-artemis-jvm": Client("artemis", FACTORY["artemis"], "jvm"),
}


class Side:
    """A broker with a Java client at it.

    Attributes:
        kind: `activemq` or `artemis`.
        client: its name, a key of CLIENTS.
        transport: `stomp`, or `jvm`: how we connect to the broker.
        connect: makes a connection of ours to the same broker.
        start: starts another Java client.
        peer: the Java client.
    """

    def __init__(self, client: str, start: Callable[[], Peer], connect: Callable[[], Connection]) -> None:
        self.kind = CLIENTS[client].broker
        self.client = client
        self.transport = CLIENTS[client].transport
        self.start = start
        self.peer = start()
        self.connect = connect


LONG = ("core-artemis", "openwire-artemis", "openwire-activemq-jvm")
"""Those that `make endurance` has: each half of them is in another."""


@pytest.fixture(scope="session")
def sides() -> Iterator[dict[str, Side]]:
    """Those that run, by the names of their clients: another file's tests find them running."""
    made: dict[str, Side] = {}
    yield made
    for one in made.values():
        one.peer.kill()


@pytest.fixture(
    scope="session", params=[pytest.param(one, marks=pytest.mark.endurance) if one in LONG else one for one in CLIENTS]
)
def side(
    request: pytest.FixtureRequest, sides: dict[str, Side], java: Any, tmp_path_factory: pytest.TempPathFactory
) -> Side:
    """Each Java client in turn; skips where its broker, its jars or a compiler cannot be had."""
    if request.param in sides:
        return sides[request.param]
    client = CLIENTS[request.param]
    broker = request.getfixturevalue(client.broker)
    try:  # each broker brings its clients; the hashes of what is fetched are pinned
        jars = KINDS[client.broker].jars()
    except ConfigError as error:
        pytest.skip(str(error))
    command = java.compiled(Path(__file__).with_name("JmsPeer.java"), jars)
    folder = tmp_path_factory.mktemp(request.param)
    connect = partial(mtosi.connect, broker.endpoints.url("stomp"))
    if client.transport == "jvm":
        connect = partial(request.getfixturevalue("connect_by_java"), client.broker, broker)
    sides[request.param] = Side(request.param, lambda: Peer(command, client.factory, broker, folder), connect)
    return sides[request.param]


@pytest.fixture
def peer(side: Side) -> Peer:
    """The Java client."""
    return side.peer


@pytest.fixture
def connection(side: Side) -> Iterator[Connection]:
    """Our own connection to the same broker, started."""
    with side.connect() as made:
        made.start()
        yield made


@pytest.fixture
def queue() -> Queue:
    """A queue that no other test uses."""
    return Queue(f"interop.queue.{next(_numbers)}")


@pytest.fixture
def topic() -> Topic:
    """A topic that no other test uses."""
    return Topic(f"interop.topic.{next(_numbers)}")
