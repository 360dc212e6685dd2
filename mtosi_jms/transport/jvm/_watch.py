"""Calls to Java with a deadline: they are interrupted when it has passed."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Final, Self

from mtosi_jms.errors import MtosiError, TransportError
from mtosi_jms.transport.jvm import machine
from mtosi_jms.transport.jvm._link import Link

_GRACE: Final = 0.25
"""Seconds that an interrupted call has before the connection's socket is closed under it."""


class Watch(machine.blocking):
    """A block around a call to Java, which is interrupted at a deadline. If it does not end by that, as a blocked write
    does not, the socket of `link` is closed. Raises TransportError: the call was interrupted, and failed."""

    __slots__ = ("_calls", "_lock", "_thread", "deadline", "fired", "link")

    def __init__(self, calls: set[Watch], deadline: float, link: Link | None = None) -> None:
        self.deadline = deadline
        self.fired = False
        self._calls = calls
        self.link = link
        self._lock = threading.Lock()
        self._thread: Any = None

    def __enter__(self) -> Self:
        super().__enter__()
        self._thread = machine.current_thread()
        self._calls.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._calls.discard(self)
        with self._lock:
            self._thread = None
        if self.fired:
            machine.jpype.JClass("java.lang.Thread").interrupted()  # a late interrupt must not stop another call
        super().__exit__(kind, error, trace)
        if self.fired and isinstance(error, MtosiError):  # whatever the client makes of an interrupt
            raise TransportError(f"the provider did not answer in time: {error}") from None

    def look(self, now: float) -> None:
        """Interrupts the call if its deadline has passed: each time, because a client may go on to wait."""
        if now < self.deadline:
            return
        with self._lock:
            if self._thread is None:
                return
            self.fired = True
            self._thread.interrupt()
            link, is_stuck = self.link, now >= self.deadline + _GRACE
            if is_stuck:
                self.link = None
        if is_stuck and link is not None:
            link.break_off()
