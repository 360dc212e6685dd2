"""A gate that holds back the completions of asynchronous sends: it simulates a slow or failing broker in tests."""

from __future__ import annotations

import threading
from typing import Self

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport._completion import Pending
from mtosi_jms.transport.memory._provider import MemoryProvider


class CompletionGate:
    """Holds back the completion of every asynchronous send through a provider, until it is released, made to fail, or
    its `with` block ends. The messages themselves arrive. Thread-safe."""

    def __init__(self, provider: MemoryProvider) -> None:
        self._provider = provider
        self._lock = threading.Condition()
        self._held: list[tuple[Pending, JmsMessage]] = []

    @property
    def held(self) -> tuple[JmsMessage, ...]:
        """The messages as sent whose completion is held, in the order in which they were sent."""
        with self._lock:
            return tuple(sent for _, sent in self._held)

    def await_held(self, count: int, timeout: float) -> bool:
        """Waits until so many completions are held; returns whether that happened within so many seconds."""
        with self._lock:
            return self._lock.wait_for(lambda: len(self._held) >= count, timeout)

    def release(self, index: int = 0) -> None:
        """Lets one completion go, counted from 0 among those that are held: the send succeeded.

        Raises ConfigError where none is held there."""
        pending, sent = self._take(index)
        pending.complete(sent)

    def release_all(self) -> None:
        with self._lock:
            held, self._held = self._held, []
        for pending, sent in held:
            pending.complete(sent)

    def fail(self, error: Exception, index: int = 0) -> None:
        """Has one send fail with what the provider says; see `release`."""
        pending, _ = self._take(index)
        pending.fail(error)

    def hold(self, pending: Pending, sent: JmsMessage) -> None:
        with self._lock:
            self._held.append((pending, sent))
            self._lock.notify_all()

    def _take(self, index: int) -> tuple[Pending, JmsMessage]:
        with self._lock:
            if not 0 <= index < len(self._held):
                raise ConfigError(f"completion {index} is not held: {len(self._held)} are")
            return self._held.pop(index)

    def __enter__(self) -> Self:
        with self._provider.lock:
            if self._provider.gate is not None:
                raise ConfigError("the provider has a gate already")
            self._provider.gate = self
        return self

    def __exit__(self, *_: object) -> None:
        with self._provider.lock:
            self._provider.gate = None
        self.release_all()
