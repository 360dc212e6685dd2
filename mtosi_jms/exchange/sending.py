"""Sends through a session that threads share: one message at a time, each within the time of its call."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mtosi_jms.errors import ResourceLimitError, TransportError, UnknownOutcomeError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.patterns import rounded
from mtosi_jms.transport import Session

__all__ = ["TimedSender"]

_TICK: Final = 0.001
"""Tolerance for the difference of clocks, in seconds."""


class TimedSender:
    """Sends through a session, within so many seconds in all from now, or without limit. An outbox accepts it in place
    of the session. `lock` is held while it sends, inside `with sender` or `with sender.in_time("... to queue:EMS")`."""

    def __init__(self, session: Session, lock: threading.Lock, seconds: float | None) -> None:
        self._session = session
        self._lock = lock
        self._end = None if seconds is None else time.monotonic() + seconds
        self.seconds = seconds

    def _left(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def is_over(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end - _TICK

    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """Send a message, as `Session.send` does. Call this inside `with`."""
        left = self._left()
        send = self._session.send
        return send(destination, message) if left is None else send(destination, message, timeout=left)

    def __enter__(self) -> None:
        left = self._left()
        if not self._lock.acquire(timeout=-1 if left is None else min(left, threading.TIMEOUT_MAX)):
            raise TransportError("another message, which came before it, is still being sent")

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @contextmanager
    def in_time(self, what: str) -> Iterator[None]:
        """Do what `with` does; if the block fails because its time is over, the error says so."""
        try:
            with self:
                yield
        except TransportError as error:
            if not self.is_over():
                raise
            text = f"{what}: not sent within {rounded(self.seconds or 0)} s: {error}"
            if isinstance(error, UnknownOutcomeError):
                raise UnknownOutcomeError(text, error.messages) from error
            raise (ResourceLimitError if isinstance(error, ResourceLimitError) else TransportError)(text) from error
