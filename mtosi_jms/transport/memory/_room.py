"""Waits for room at a bounded destination."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from mtosi_jms.errors import ResourceLimitError
from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport.memory._provider import MemoryProvider
from mtosi_jms.transport.memory._queue import MessageQueue

log = logging.getLogger(__package__)

_UNREAD_FOR: Final = 1.0
"""Seconds that a sender waits for room before a destination that nobody consumes is logged."""
_EXPIRY_LOOK: Final = 1.0
"""Seconds after which a sender that waits for room looks again: expiry makes room without telling anybody."""

Coming: TypeAlias = Sequence[tuple[Destination, JmsMessage]]


def send_deadline(provider: MemoryProvider, timeout: float | None = None) -> float | None:
    """Returns the time, by the monotonic clock, until which a send that begins now waits for room; None: no limit."""
    patience = min((one for one in (provider.limits.send_timeout, timeout) if one is not None), default=None)
    return None if patience is None else time.monotonic() + patience


def await_room(
    provider: MemoryProvider,
    coming: Coming,
    connection_id: str,
    deadline: float | None,
    waits_at: Callable[[MessageQueue | None], bool],
) -> bool:
    """Waits, without the provider's lock, until all coming messages have room. False if `waits_at` returned False,
    which is called with the queue to wait for, and with None after each wait.

    Raises ResourceLimitError: the deadline has passed; InvalidDestinationError: a destination went meanwhile."""
    warn_at = time.monotonic() + _UNREAD_FOR
    while (crowded := provider.crowded(coming, connection_id)) is not None:
        if time.monotonic() >= warn_at and not crowded.readers:
            log.warning("%s: full with %d messages, and nobody consumes it", crowded.destination, len(crowded))
            warn_at = math.inf
        left = _EXPIRY_LOOK if deadline is None else min(deadline - time.monotonic(), _EXPIRY_LOOK)
        if left <= 0:
            raise ResourceLimitError(f"{crowded.destination}: full with {len(crowded)} messages")
        if not waits_at(crowded):
            return False
        try:
            crowded.room.wait(left)
        finally:
            goes_on = waits_at(None)
        if not goes_on:
            return False
        for destination, _ in coming:
            provider.check(destination)
    return True
