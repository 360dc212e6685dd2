"""For threads: wake-ups, pauses between attempts, and objects that are dropped without `close`."""

from __future__ import annotations

import _thread
import contextlib
import logging
import math
import random
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mtosi_jms.errors import ConfigError


class Wakeup:
    """What one thread at a time waits for: cheaper than `threading.Event` and `threading.Condition`. `set` is called
    under a lock of the caller's, always the same one; `wait` without."""

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


@dataclass(frozen=True, slots=True)
class Backoff:
    """A pause that doubles from attempt to attempt, with jitter, so that not all consumers reconnect at once.

    Attributes:
        initial: seconds after the first failure.
        maximum: longest pause in seconds, without the jitter.
        jitter: maximum of the random seconds that are added.

    Raises:
        ConfigError: a number is below 0, or `maximum` is below `initial`.
    """

    initial: float = 0.5
    maximum: float = 30.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        if min(self.initial, self.jitter) < 0 or self.maximum < self.initial:
            raise ConfigError("back-off: initial and jitter must be at least 0, and maximum at least initial")

    def seconds(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row, at least 1."""
        try:
            doubled = math.ldexp(self.initial, failures - 1)
        except OverflowError:
            doubled = self.maximum
        return min(doubled, self.maximum) + random.uniform(0, self.jitter)


_STABLE: Final = 1.0
"""Seconds for which a connection must have been up, at least, if the next attempt is to come without a pause."""


class ReconnectPauses:
    """The pauses before attempts to connect again: none before the first, then those of a `Backoff` up to 30 s."""

    def __init__(self) -> None:
        self._backoff = Backoff(initial=0.1, maximum=30.0)
        self._attempts = 0

    def after(self, lasted: float) -> None:
        """Note the loss of a connection that had lasted so many seconds."""
        # A broker may accept and drop us again and again: then the pauses go on to grow.
        if lasted >= max(_STABLE, self._backoff.seconds(self._attempts)):
            self._attempts = 0

    def next(self) -> float:
        seconds = self._backoff.seconds(self._attempts) if self._attempts else 0.0
        self._attempts += 1
        return seconds


log = logging.getLogger(__package__)


def is_open(session: object) -> bool:
    """Whether a session is open. A test double without `is_closed` has nothing to close."""
    return not getattr(session, "is_closed", True)


def dropped(what: str, close: Callable[[], object] | None = None) -> None:
    """Warns with a ResourceWarning of an object that nobody refers to any more. For use in `__del__`. `close` is called
    in another thread; None: what the object has open ends with its connection."""
    if close is not None:
        close_aside(close)
    warnings.warn(f"{what} was dropped without being closed", ResourceWarning, stacklevel=2)


def close_aside(close: Callable[[], object]) -> None:
    """Closes something in another thread. The garbage collector may run in any thread, with any lock held, so this
    takes no lock, not even `threading`'s."""

    def start() -> None:
        threading.Thread(target=_close, args=(close,), name="closes-dropped", daemon=True).start()

    with contextlib.suppress(RuntimeError):  # the process ends, and everything with it
        _thread.start_new_thread(start, ())


def _close(close: Callable[[], object]) -> None:
    try:
        close()
    except Exception as error:  # noqa: BLE001 - nobody is left to catch it
        log.debug("what was dropped did not close: %s", type(error).__name__)
