"""Waits for room at a bounded destination; asynchronous sends wait in a separate thread."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from mtosi_jms.errors import MtosiError, ResourceLimitError
from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport._completion import Pending
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
    """Waits until all coming messages have room. The provider's lock is released meanwhile.

    Args:
        provider: whose lock is held.
        coming: messages with their destinations.
        connection_id: whose they are.
        deadline: see `send_deadline`.
        waits_at: called with the queue to wait for, and with None after each wait; returns whether to wait on.

    Returns:
        Whether there is room; False if `waits_at` returned False.

    Raises:
        ResourceLimitError: the deadline has passed.
        InvalidDestinationError: a destination went meanwhile.
    """
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


class _Item(NamedTuple):
    destination: Destination
    message: JmsMessage
    pending: Pending
    deadline: float | None


class DeferredSends:
    """The asynchronous sends of a session that wait for room, in their order; the provider's lock is held throughout.

    `send` sends one that has room."""

    def __init__(
        self,
        provider: MemoryProvider,
        connection_id: str,
        send: Callable[[Destination, JmsMessage, Pending], None],
    ) -> None:
        self._provider = provider
        self._connection_id = connection_id
        self._send = send
        self._items: deque[_Item] = deque()  # the first one stays until it is sent
        self._sent = threading.Condition(provider.lock)
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._items)

    def add(self, destination: Destination, message: JmsMessage, pending: Pending) -> None:
        """Has a message sent when there is room, after those that wait already."""
        self._items.append(_Item(destination, message, pending, send_deadline(self._provider)))
        if self._thread is None:
            name = f"deferred-sends-{self._connection_id}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def await_sent(self, deadline: float | None) -> None:
        """Waits until all are sent, or have failed: what is sent now comes after them (A11).

        Raises:
            ResourceLimitError: the deadline has passed; see `send_deadline`.
        """
        while self._items:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise ResourceLimitError(f"{self._items[0].destination}: full, and what was sent before waits for room")
            self._sent.wait(None if left is None else min(left, threading.TIMEOUT_MAX))

    def _run(self) -> None:
        with self._provider.lock:
            while self._items:
                self._send_one(self._items[0])
                self._items.popleft()
                self._sent.notify_all()
            self._thread = None

    def _send_one(self, item: _Item) -> None:
        pending = item.pending

        def waits_at(queue: MessageQueue | None) -> bool:
            return not pending.settled  # it may have failed for want of time

        try:
            self._provider.check(item.destination)
            coming = [(item.destination, item.message)]
            if await_room(self._provider, coming, self._connection_id, item.deadline, waits_at):
                self._send(item.destination, item.message, pending)
        except MtosiError as error:
            pending.fail(error)
