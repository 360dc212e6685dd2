"""A clock for tests, which moves only when the test advances it."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from typing import TypeAlias

from mtosi_jms.errors import ConfigError
from mtosi_jms.masking import shown_half_made
from mtosi_jms.notifications import Timer

__all__ = ["ManualClock", "Timer"]

_Due: TypeAlias = tuple[float, int, Callable[[], object]]


class ManualClock:
    """A clock that stands still until a test advances it.

    Pass it to any `clock` parameter of the SDK. It is thread-safe.

        clock = ManualClock()
        with exchange([Ems()], clock=clock, timeouts=Timeouts(gap=30)) as pair: ...
        clock.advance(31)

    Code that waits for a message blocks in real time. A time limit on this clock expires only if the test has advanced
    the clock before the SDK next checks the limit. `start`: initial time in seconds. Where the SDK needs the time of
    day, seconds since 1970."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = float(start)
        # `_moving` lets one thread at a time advance the clock; `_lock` guards the queue of actions. Reading the time
        # takes neither lock: while `advance` runs an action that sends messages, provider threads read the clock.
        self._moving = threading.RLock()
        self._lock = threading.Lock()
        self._order = itertools.count()
        self._due: list[_Due] = []

    def __call__(self) -> float:
        return self._now

    @property
    def now(self) -> float:
        return self._now

    @property
    def waiting(self) -> int:
        """Number of scheduled actions that have not started yet."""
        with self._lock:
            return len(self._due)

    def advance(self, seconds: float) -> None:
        """Advance the clock and run all actions that become due, in the order of their due times.

        The actions run in the calling thread, before `advance` returns. While an action runs, the clock shows its due
        time. An action may schedule further actions.

        Raises:
            ConfigError: `seconds` is negative. To test a clock that was set back, create a second clock.
            Exception: any exception from an action; the clock then stays at the due time of that action.
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
        """Remove the next action from the queue and return it; None if no action is due at `target` or earlier."""
        with self._lock:
            return heapq.heappop(self._due) if self._due and self._due[0][0] <= target else None

    def call_later(self, seconds: float, action: Callable[[], object]) -> None:
        """Schedule an action. The call of `advance` that reaches its due time runs it.

        An action with 0 seconds waits for `advance` too: it never runs inside `call_later`. Raises ConfigError:
        `seconds` is negative."""
        if not seconds >= 0:
            raise ConfigError(f"seconds must be at least 0, not {seconds}")
        with self._lock:
            heapq.heappush(self._due, (self._now + seconds, next(self._order), action))

    @shown_half_made
    def __repr__(self) -> str:
        return f"ManualClock({self._now!r})"
