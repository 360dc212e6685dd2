"""The providers that the contract suite runs on. A new transport adds one class here and runs the whole suite."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import fields
from typing import Any, Protocol

import pytest

from mtosi_jms.broker import BrokerProcess
from mtosi_jms.jms import Queue, Topic
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.testing import ManualClock
from mtosi_jms.transport import AckMode, Connection, ConnectOptions, Consumer, SendRules, Session, connect
from mtosi_jms.transport.memory import CompletionGate, MemoryConnection, MemoryProvider

from ..waiting import PATIENCE, until
from .jvm.clients import BROKER, connect_by_java

_numbers = itertools.count(1)


class Gate(Protocol):
    """Holds what a provider confirms of asynchronous sends; `index` counts those that are held, from 0."""

    def await_held(self, count: int, timeout: float) -> bool:
        """Waits until so many are held."""

    def release(self, index: int = 0) -> None:
        """One send succeeded."""

    def release_all(self) -> None:
        """All that are held succeeded, in their order."""

    def fail(self, error: Exception, index: int = 0) -> None:
        """One send failed. A provider that cannot say why has it fail with an error of its own."""


class ProviderUnderTest(Protocol):
    """What the suite wants of a provider. `quiet`: seconds of silence after `settle`, by which a message is known not
    to come; 0 where nothing is ever under way."""

    quiet: float

    def connect(self, **options: Any) -> Connection:
        """A new connection, stopped; options are those of `connect` that every transport takes, and DEAD_LETTER's."""

    def pass_time(self, seconds: float) -> None:
        """Lets the provider's clock go on: at once where it is injected, by waiting where it is real."""

    def settle(self) -> None:
        """Returns once the provider has had the time to do what it was asked for, however slow the machine is."""

    def until_blocked(self, session: Session) -> None:
        """Returns once another thread waits in a session, for a message or for room."""

    def hold_completions(self) -> AbstractContextManager[Gate] | None:
        """Withholds the provider's word for asynchronous sends until the gate lets it go; None where it cannot."""

    def close(self) -> None:
        """Ends what the test left open."""


def until_memory_blocks(session: Any) -> None:
    """Returns once another thread waits in a session of an embedded provider."""
    _until(session.provider.lock, lambda: session.blocked)


def _until(lock: AbstractContextManager[Any], blocked: Callable[[], object]) -> None:
    def look() -> object:
        with lock:
            return blocked()

    until(look)


def opened(completion_timeout: float | None = 30.0, **provider: Any) -> MemoryConnection:
    """A started connection to an embedded provider of its own."""
    made = MemoryConnection(MemoryProvider(**provider), send_rules=SendRules(completion_timeout))
    made.start()
    return made


def numbered(number: int) -> JmsMessage:
    """A message whose body is its number."""
    return JmsMessage(body=str(number).encode())


class MemoryUnderTest:
    quiet = 0.0

    def __init__(self) -> None:
        self._clock = ManualClock(1_700_000_000)
        self.provider = MemoryProvider("contract", clock=self._clock)
        self._connections: list[Connection] = []

    def connect(self, **options: Any) -> Connection:
        of_connection = {one.name: options.pop(one.name) for one in fields(ConnectOptions) if one.name in options}
        asked = ConnectOptions(**of_connection)
        self.provider.limits = self.provider.limits.changed(**options)
        connection = MemoryConnection(self.provider, client_id=asked.client_id, send_rules=asked.send_rules)
        self._connections.append(connection)
        return connection

    def pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)

    def settle(self) -> None:
        """Nothing is ever under way."""

    def until_blocked(self, session: Any) -> None:
        until_memory_blocks(session)

    def hold_completions(self) -> CompletionGate:
        return CompletionGate(self.provider)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


class StompUnderTest:
    """A real broker over STOMP; its clock and its silence are real, its deadlines those of a busy machine."""

    quiet = 0.15

    def __init__(self, broker: BrokerProcess) -> None:
        self._url = broker.endpoints.url("stomp")
        self._connections: list[Connection] = []
        self._rounds: tuple[Session, Consumer] | None = None
        self._settling = threading.Lock()  # tests with threads of their own settle in each

    def connect(self, **options: Any) -> Connection:
        connection = connect(self._url, **{"connect_timeout": PATIENCE, "send_timeout": PATIENCE} | options)
        self._connections.append(connection)
        return connection

    def pass_time(self, seconds: float) -> None:
        time.sleep(seconds)

    def settle(self) -> None:
        """A message of another connection goes to the broker and back."""
        there = Queue(f"contract.rounds.{id(self)}")
        with self._settling:
            if self._rounds is None:
                connection = StompUnderTest.connect(self)  # the broker is asked, by whichever client
                connection.start()
                made = connection.session(AckMode.AUTO)
                self._rounds = made, made.consumer(there)
            session, consumer = self._rounds
            session.send(there, JmsMessage(body=b"<there-and-back/>"))
            assert consumer.receive(PATIENCE) is not None, "the broker does not answer"

    def until_blocked(self, session: Any) -> None:
        _until(session.connection.lock, lambda: session.blocked)

    def hold_completions(self) -> None:
        """A real broker confirms when it likes."""

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


class JvmUnderTest(StompUnderTest):
    """A real broker by a Java client."""

    def __init__(self, kind: str, broker: BrokerProcess) -> None:
        super().__init__(broker)
        self._kind = kind
        self._broker = broker

    def connect(self, **options: Any) -> Connection:
        patient: dict[str, Any] = {"connect_timeout": PATIENCE, "send_timeout": PATIENCE}
        connection = connect_by_java(self._kind, self._broker, **(patient | options))
        self._connections.append(connection)
        return connection


@pytest.fixture(
    params=[
        "memory",
        pytest.param("activemq", marks=pytest.mark.broker),
        pytest.param("artemis", marks=pytest.mark.broker),
        pytest.param("jvm-activemq", marks=pytest.mark.broker),
        pytest.param("jvm-artemis", marks=pytest.mark.broker),
        pytest.param("jvm-qpid", marks=pytest.mark.broker),
    ]
)
def provider(request: pytest.FixtureRequest) -> Iterator[ProviderUnderTest]:
    made: ProviderUnderTest
    if request.param == "memory":
        made = MemoryUnderTest()
    elif request.param.startswith("jvm-"):
        pytest.importorskip("jpype", reason="JPype is not installed")
        kind = request.param.removeprefix("jvm-")
        made = JvmUnderTest(kind, request.getfixturevalue(BROKER[kind]))
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
def gate(provider: ProviderUnderTest) -> Iterator[Gate]:
    """Holds all completions of the provider while the test runs."""
    made = provider.hold_completions()
    if made is None:
        pytest.skip("the provider's completions cannot be withheld")
    with made as held:
        yield held


@pytest.fixture
def until_blocked(provider: ProviderUnderTest) -> Callable[[Session], None]:
    """Returns once another thread is blocked in a session."""
    return provider.until_blocked
