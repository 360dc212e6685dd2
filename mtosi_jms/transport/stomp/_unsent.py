"""Messages that are left to a link's own thread: to the next link where that one is lost before they are written."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from mtosi_jms.transport.stomp._link import Link

log = logging.getLogger(__name__)


class Leftovers:
    """What was left to the links of one connection.

    Args:
        lock: of the connection.
        current: the link that is up, if there is one; called with the lock held.
    """

    def __init__(self, lock: threading.Lock, current: Callable[[], Link | None]) -> None:
        self._lock = lock
        self._current = current
        self._unsent: list[bytes] = []

    def leave(self, frame: bytes, *, can_wait: bool) -> bool:
        """Leaves a frame to the link that is up (`Link.leave`); False: there is none, or it would overtake others."""
        with self._lock:
            link = None if self._unsent else self._current()
        return link is not None and link.leave(frame, can_wait=can_wait)

    def keep(self, frames: Sequence[bytes]) -> None:
        """Frames that were left to a link never went out, and it is at its end: they go out on the next one."""
        log.warning("%d messages were not written when the connection was lost: they wait for another", len(frames))
        with self._lock:
            self._unsent.extend(frames)

    def hand_on(self, link: Link) -> None:
        """Leaves to a link what the one before has not written."""
        with self._lock:
            frames, self._unsent = self._unsent, []
        if frames and not link.leave(*frames):
            with self._lock:
                self._unsent[:0] = frames
