"""A clock that a test moves by hand."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from typing import TypeAlias

from mtosi_jms.errors import ConfigError
from mtosi_jms.notifications import Timer

__all__ = ["ManualClock", "Timer"]

_Due: TypeAlias = tuple[float, int, Callable[[], object]]


class ManualClock:
    """A clock that stands until a test moves it. Goes wherever the SDK takes a `clock`; threads may share it.

        clock = ManualClock()
        with exchange([Ems()], clock=clock, limits=Limits(gap=30)) as pair: ...
        clock.advance(31)

    Whoever waits for a message waits in real time: a limit runs out by this clock only if it was moved on before it is
    looked at next.

    Args:
        start: what it shows first, in seconds; for clocks that show the time of day, seconds since 1970.
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = float(start)
        # Neither is held while the time is read: an action sends messages, and providers look at the clock meanwhile.
        self._moving = threading.RLock()
        self._lock = threading.Lock()
        self._order = itertools.count()
        self._due: list[_Due] = []

    def __call__(self) -> float:
        return self._now

    @property
    def now(self) -> float:
        """What it shows, in seconds."""
        return self._now

    @property
    def waiting(self) -> int:
        """How many actions are still to come."""
        with self._lock:
            return len(self._due)

    def advance(self, seconds: float) -> None:
        """Move it on. What becomes due runs before this returns, in this thread, in the order in which it is due.

        An action sees the time that it was due at, and may ask for further ones.

        Raises:
            ConfigError: `seconds` is negative; a test of a clock that was set back makes another clock.
            Exception: what an action raised; the clock then stands at that action's time.
        """
        if not seconds >= 0:
            raise ConfigError(f"seconds must be at least 0, not {seconds}")
        with self._moving:
            target = self._now + seconds
            while (due := self._next(target)) is not None:
                self._now = max(self._now, due[0])
                due[2]()
            self._now = max(self._now, target)

    def _next(self, target: float) -> _Due | None:
        """The next action that is due by a time."""
        with self._lock:
            return heapq.heappop(self._due) if self._due and self._due[0][0] <= target else None

    def call_later(self, seconds: float, action: Callable[[], object]) -> None:
        """Have an action run by the call of `advance` that moves the clock so far; 0 seconds: by the next one.

        Raises:
            ConfigError: `seconds` is negative.
        """
        if not seconds >= 0:
            raise ConfigError(f"seconds must be at least 0, not {seconds}")
        with self._lock:
            heapq.heappush(self._due, (self._now + seconds, next(self._order), action))

    def __repr__(self) -> str:
        return f"ManualClock({self._now!r})"
