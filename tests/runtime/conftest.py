"""What the tests of the consumer runtime share: a queue of an embedded provider, and handlers that wait to be told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mtosi_jms.jms import JmsMessage, NamingContext, Queue
from mtosi_jms.runtime import Backoff, ConsumerRuntime, RuntimeRules
from mtosi_jms.testing import ManualClock
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider

from ..waiting import PATIENCE, threads_end

WORK, PARKED = Queue("WORK"), Queue("PARKED")
AT_ONCE = Backoff(0.0, 0.0, 0.0)


class Handled:
    """A handler that notes what it handled, and does what it is told for messages that it is told of."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.begun: list[str] = []
        self.acts: dict[str, Callable[[Any], object]] = {}
        self._changed = threading.Condition()

    def __call__(self, message: JmsMessage, context: Any) -> None:
        name = message.body.decode()
        with self._changed:
            self.begun.append(name)
            self._changed.notify_all()
        act = self.acts.get(name)
        if act is not None:
            act(context)
        with self._changed:
            self.done.append(name)
            self._changed.notify_all()

    def until(self, done: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(done, PATIENCE), (self.begun, self.done)


class Desk:
    """A provider with messages to handle, and the runtime that handles them."""

    def __init__(self) -> None:
        self.provider = MemoryProvider("runtime")
        self.connection = self.connect()
        self.session = self.connection.session()
        self.handled = Handled()
        self.clock = ManualClock()
        self.errors: list[BaseException] = []
        self._runtimes: list[ConsumerRuntime] = []

    def connect(self) -> MemoryConnection:
        made = MemoryConnection(self.provider, NamingContext({"jms/Work": "queue:WORK"}))
        made.start()
        return made

    def send(self, *names: str, **fields: Any) -> None:
        for name in names:
            self.session.send(WORK, JmsMessage(body=name.encode(), **fields))

    def runtime(self, **options: Any) -> ConsumerRuntime:
        rules = {"retry": AT_ONCE, "reconnect": AT_ONCE, **options.pop("rules", {})}
        made = ConsumerRuntime(
            options.pop("connect", self.connect),
            options.pop("destination", WORK),
            options.pop("handler", self.handled),
            **{"parking": PARKED, "clock": self.clock, "on_error": lambda error, message: self.errors.append(error)}
            | options,
            rules=RuntimeRules(**rules),
        )
        self._runtimes.append(made)
        return made

    def parked(self) -> list[JmsMessage]:
        return self.session.browse(PARKED)

    def close(self) -> None:
        for runtime in self._runtimes:
            runtime.drain(0)
        self.connection.close()


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    """Every thread of a test ends with it."""
    with threads_end():
        yield
