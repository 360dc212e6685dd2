"""What goes out on a link: at once, and with it what waited for company.

A frame by itself takes a write of its own, which is most of its price on both sides. Nobody waits for an
acknowledgement: where its reader goes on with another message, it goes out with the next frame of the link, and after
five milliseconds at the latest. A message that nobody waits for may be left to a thread, which writes all that there is
when its turn comes: where much is sent at the same time, that is one write for many messages.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from mtosi_jms.errors import TransportError, WriteError

_LATEST: Final = 0.005
"""Seconds that an acknowledgement waits at most."""
_MOST: Final = 1_024
"""Bytes of acknowledgements that wait at most: some twenty, that the broker has them before its window is used up."""
_MOST_LEFT: Final = 65_536
"""Bytes of messages that wait at most."""
_STAY: Final = 4
"""Looks without a frame after which the thread goes to sleep: waking it costs as much as several of them."""


class FrameWriter:
    """Frames of one link, in the order in which they were handed in.

    Args:
        write: writes bytes, up to a time by the monotonic clock.
        name: for the thread, which there is once a frame has waited.
        on_unsent: called at the end of the link, outside all locks, with the messages that were left to the thread and
            that the broker has surely not got.
    """

    def __init__(
        self,
        write: Callable[[bytes, float | None], None],
        name: str,
        on_unsent: Callable[[Sequence[bytes]], object],
    ) -> None:
        self._write = write
        self._name = name
        self._on_unsent = on_unsent
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: list[tuple[bytes, bool]] = []  # whether it is a message that was left
        self._size = self._size_left = 0
        self._due = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None
        self._sleeps = False
        self._posted = False
        self._urgent = False
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
        waited: list[tuple[bytes, bool]] = []
        try:
            if self._waiting:
                waited = self._take()
                data = b"".join([*[frame for frame, _ in waited], data])
            if data:
                self._write(data, deadline)
        except BaseException as error:
            self._put_back(waited, getattr(error, "written", 0))
            raise
        finally:
            self._turn.release()

    def post(self, data: bytes) -> None:
        """Has acknowledgements written soon.

        Raises:
            WriteError: they cannot wait, and cannot be written.
        """
        with self._lock:
            self._waiting.append((data, False))
            self._size += len(data)
            self._posted = True
            at_once = self._size > _MOST or self._ended or not self._is_seen_to(wake=self._sleeps)
        if at_once:
            self.send(b"")

    def leave(self, *messages: bytes, can_wait: bool = False) -> bool:
        """Leaves messages to the thread.

        Args:
            messages: as frames.
            can_wait: it is enough that they go out within five milliseconds; the thread is not woken for them.

        Returns:
            Whether they were taken; not so at the end of the link, where too much waits already, or without a thread.
        """
        with self._lock:
            if self._ended or self._size_left > _MOST_LEFT:
                return False
            if not self._is_seen_to(wake=self._sleeps or not (can_wait or self._urgent)):
                return False
            self._posted, self._urgent = True, self._urgent or not can_wait
            self._waiting.extend((data, True) for data in messages)
            self._size_left += sum(map(len, messages))
            return True

    def flush(self) -> None:
        """Writes what waits; where that cannot be, the link is at its end, and whoever reads will tell."""
        if self._waiting:
            with contextlib.suppress(TransportError):
                self.send(b"")

    def end(self) -> None:
        """The link is at its end, so that writing fails: nothing waits any more."""
        with self._turn:  # what another thread has in hand comes back first, in its place
            with self._lock:
                self._ended = True
                self._due.notify()
            unsent = [data for data, left in self._take() if left]
        if unsent:
            self._on_unsent(unsent)

    def _put_back(self, frames: Sequence[tuple[bytes, bool]], written: int) -> None:
        """Has those frames wait again, in their place, that were not written to their end."""
        again: list[tuple[bytes, bool]] = []
        for data, left in frames:
            written -= len(data)
            if written < 0:
                again.append((data, left))
        if not again:
            return
        with self._lock:
            self._waiting[:0] = again
            self._size += sum(len(data) for data, left in again if not left)
            self._size_left += sum(len(data) for data, left in again if left)
            self._posted = True
            self._due.notify()

    def _take(self) -> list[tuple[bytes, bool]]:
        with self._lock:
            waiting, self._waiting = self._waiting, []
            self._size = self._size_left = 0
            self._urgent = False
            return waiting

    def _is_seen_to(self, *, wake: bool) -> bool:
        """Whether there is a thread, which is made where there is none; it may be that no more are to be had."""
        if self._thread is None:
            thread = threading.Thread(target=self._write_all, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
        if wake:
            self._due.notify()
        return True

    def _write_all(self) -> None:
        quiet = 0
        while True:
            with self._lock:
                if not self._urgent and not self._ended:
                    self._sleeps = quiet >= _STAY and not self._waiting
                    self._due.wait(None if self._sleeps else _LATEST)
                    self._sleeps = False
                if self._ended:
                    return
                quiet = 0 if self._posted else quiet + 1
                self._posted = False
            self.flush()
