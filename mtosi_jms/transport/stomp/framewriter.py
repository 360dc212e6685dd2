"""What goes out on a link: at once, and with it the acknowledgements that waited for company.

Nobody waits for an acknowledgement. By itself it would take a write of its own, which is most of its price on both
sides. So, where its reader goes on with another message, it goes out with the next frame of the link, and after five
milliseconds at the latest.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Final

from mtosi_jms.errors import TransportError
from mtosi_jms.transport.stomp.wire import WriteError

_LATEST: Final = 0.005
"""Seconds that a frame waits at most."""
_MOST: Final = 1_024
"""Bytes that wait at most: some twenty acknowledgements, so that the broker has them before its window is used up."""
_STAY: Final = 4
"""Looks without a frame after which the thread that looks goes to sleep: waking it costs as much as several of them."""


class FrameWriter:
    """Frames of one link, in the order in which they were handed in.

    Args:
        write: writes bytes, up to a time by the monotonic clock.
        name: for the thread, which there is once a frame has waited.
    """

    def __init__(self, write: Callable[[bytes, float | None], None], name: str) -> None:
        self._write = write
        self._name = name
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: list[bytes] = []
        self._size = 0
        self._due = threading.Condition(self._lock)
        self._clock: threading.Thread | None = None
        self._sleeps = False
        self._posted = False
        self._ended = False

    def send(self, data: bytes, deadline: float | None = None) -> None:
        """Writes frames, after those that wait.

        Args:
            data: the frames.
            deadline: by the monotonic clock; None: the send time-out from now.

        Raises:
            WriteError: not to the end; the broker has not got the last of them.
        """
        if not self._turn.acquire(timeout=-1 if deadline is None else max(deadline - time.monotonic(), 0)):
            raise WriteError("another frame was not written in time; not sent")
        try:
            if self._waiting:
                data = b"".join((*self._take(), data))
            if data:
                self._write(data, deadline)
        finally:
            self._turn.release()

    def post(self, data: bytes) -> None:
        """Has frames written soon.

        Raises:
            WriteError: too many wait, and they cannot be written.
        """
        with self._lock:
            self._waiting.append(data)
            self._size += len(data)
            self._posted = True
            full = self._size > _MOST or self._ended
            if not full and (self._clock is None or self._sleeps):
                self._wake()
        if full:
            self.send(b"")

    def flush(self) -> None:
        """Writes what waits; where that cannot be, the link is at its end, and whoever reads will tell."""
        if self._waiting:
            with contextlib.suppress(TransportError):
                self.send(b"")

    def end(self) -> None:
        """Nothing waits any more."""
        with self._lock:
            self._ended = True
            self._due.notify()

    def _take(self) -> list[bytes]:
        with self._lock:
            waiting, self._waiting, self._size = self._waiting, [], 0
            return waiting

    def _wake(self) -> None:
        if self._clock is None:
            self._clock = threading.Thread(target=self._tick, name=self._name, daemon=True)
            self._clock.start()
        self._due.notify()

    def _tick(self) -> None:
        quiet = 0
        while True:
            with self._lock:
                if quiet >= _STAY and not self._waiting and not self._ended:
                    self._sleeps = True
                    self._due.wait()
                    self._sleeps = False
                if self._ended:
                    return
                self._due.wait(_LATEST)
                quiet = 0 if self._posted else quiet + 1
                self._posted = False
            self.flush()
