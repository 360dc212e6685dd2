"""What one thread waits for and others set: cheaper than `threading.Event` and `threading.Condition`."""

from __future__ import annotations

import threading


class Wakeup:
    """For one waiting thread at a time. `set` is called under a lock of the caller's, always the same one; `wait`
    without."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self, seconds: float | None) -> None:
        """Wait for so many seconds at most. Then it is clear again."""
        self._lock.acquire(timeout=-1 if seconds is None else min(seconds, threading.TIMEOUT_MAX))

    def set(self) -> None:
        """End the wait; if nobody waits, the next wait ends at once."""
        if self._lock.locked():
            self._lock.release()
