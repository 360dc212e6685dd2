"""The providers that the contract suite runs on. A new transport adds one class here and runs the whole suite."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Protocol

import pytest

from mtosi_jms.broker.process import BrokerProcess
from mtosi_jms.jms.destinations import Queue, Topic
from mtosi_jms.testing import ManualClock
from mtosi_jms.transport import connect
from mtosi_jms.transport.base import Connection, Session
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider

PATIENCE = 20.0
"""Seconds after which a thread that should have ended is taken to hang."""

_numbers = itertools.count(1)


class ProviderUnderTest(Protocol):
    """What the suite wants of a provider.

    Attributes:
        quiet: seconds after which a message that did not come does not come; 0 where nothing is ever under way.
    """

    quiet: float

    def connect(self, **options: Any) -> Connection:
        """A new connection, stopped; options are those of `connect` that every transport takes, and DEAD_LETTER's."""

    def pass_time(self, seconds: float) -> None:
        """Lets the provider's clock go on: at once where it is injected, by waiting where it is real."""

    def until_blocked(self, session: Session) -> None:
        """Returns once another thread waits in a session, for a message or for room."""

    def close(self) -> None:
        """Ends what the test left open."""


def until_memory_blocks(session: Any) -> None:
    """Returns once another thread waits in a session of an embedded provider."""
    for _ in range(5_000_000):
        with session.provider.lock:
            if session.blocked:
                return
    pytest.fail("no thread is blocked in the session")


class MemoryUnderTest:
    quiet = 0.0

    def __init__(self) -> None:
        self._clock = ManualClock(1_700_000_000)
        self.provider = MemoryProvider("contract", clock=self._clock)
        self._connections: list[Connection] = []

    def connect(self, *, client_id: str = "", **limits: Any) -> Connection:
        self.provider.limits = self.provider.limits.changed(**limits)
        connection = MemoryConnection(self.provider, client_id=client_id)
        self._connections.append(connection)
        return connection

    def pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)

    def until_blocked(self, session: Any) -> None:
        until_memory_blocks(session)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


class StompUnderTest:
    """A real broker over STOMP; its clock and its silence are real.

    A message at a time: the contract shares a burst between readers, and brokers give it to the first who has room.
    """

    quiet = 0.25

    def __init__(self, broker: BrokerProcess) -> None:
        self._url = broker.endpoints.url("stomp")
        self._connections: list[Connection] = []

    def connect(self, **options: Any) -> Connection:
        connection = connect(self._url, prefetch=1, **options)
        self._connections.append(connection)
        return connection

    def pass_time(self, seconds: float) -> None:
        time.sleep(seconds)

    def until_blocked(self, session: Any) -> None:
        for _ in range(5_000_000):
            with session.connection.lock:
                if session.blocked:
                    return
        pytest.fail("no thread is blocked in the session")

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


@pytest.fixture(
    params=[
        "memory",
        pytest.param("activemq", marks=pytest.mark.broker),
        pytest.param("artemis", marks=pytest.mark.broker),
    ]
)
def provider(request: pytest.FixtureRequest) -> Iterator[ProviderUnderTest]:
    made: ProviderUnderTest
    if request.param == "memory":
        made = MemoryUnderTest()
    else:
        made = StompUnderTest(request.getfixturevalue(request.param))
    yield made
    made.close()


@pytest.fixture
def connection(provider: ProviderUnderTest) -> Connection:
    """A started connection."""
    made = provider.connect()
    made.start()
    return made


@pytest.fixture
def queue() -> Queue:
    """A queue that no other test uses."""
    return Queue(f"contract.queue.{next(_numbers)}")


@pytest.fixture
def topic() -> Topic:
    """A topic that no other test uses."""
    return Topic(f"contract.topic.{next(_numbers)}")


@pytest.fixture
def background() -> Callable[[Callable[[], Any]], Future[Any]]:
    """Runs an action in a thread of its own; ask the future for the result with PATIENCE."""

    def start(action: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(action())
            except BaseException as exc:  # noqa: BLE001 - the future raises it
                future.set_exception(exc)

        threading.Thread(target=run, daemon=True).start()
        return future

    return start


@pytest.fixture
def patience() -> float:
    return PATIENCE


@pytest.fixture
def until_blocked(provider: ProviderUnderTest) -> Callable[[Session], None]:
    """Returns once another thread is blocked in a session."""
    return provider.until_blocked


@pytest.fixture
def until_memory_blocked() -> Callable[[Session], None]:
    """The same for a session of any embedded provider."""
    return until_memory_blocks
