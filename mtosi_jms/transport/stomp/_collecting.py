"""What is asked of the broker once, and comes as messages: a browsed queue, or our own name."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Mapping
from typing import TypeAlias

from mtosi_jms.errors import TransportError
from mtosi_jms.transport.stomp._link import Link

Received: TypeAlias = tuple[dict[str, str], bytes]


class Collector:
    """Subscriptions that are made for one answer and ended with it.

    Args:
        lock: of the connection; guards what is in here.
        seconds: that may pass from one message to the next.
    """

    def __init__(self, lock: threading.Lock, seconds: float) -> None:
        self._lock = lock
        self._seconds = seconds
        self._numbers = itertools.count(1)
        self._coming: dict[str, queue.SimpleQueue[Received | None]] = {}

    def collect(
        self, link: Link, address: str, headers: Mapping[str, str], is_last: Callable[[dict[str, str]], bool]
    ) -> list[Received]:
        """What comes by a subscription, up to a last message.

        Args:
            link: on which.
            address: header of the destination.
            headers: of the SUBSCRIBE besides.
            is_last: tells the last message by its headers.

        Raises:
            TransportError: it did not come.
        """
        number = f"c{next(self._numbers)}"
        coming: queue.SimpleQueue[Received | None] = queue.SimpleQueue()
        with self._lock:
            self._coming[number] = coming
        found: list[Received] = []
        try:
            subscribe = {"id": number, "destination": address, "ack": "auto", **headers}
            link.request([("SUBSCRIBE", subscribe, b"")], self._seconds)
            while not found or not is_last(found[-1][0]):
                found.append(self._next(link, coming))
            link.request([("UNSUBSCRIBE", {"id": number}, b"")], self._seconds)
        finally:
            with self._lock:
                del self._coming[number]
        return found

    def takes(self, number: str, headers: dict[str, str], body: bytes) -> bool:
        """Takes a message, the lock held; False where it is not for here."""
        coming = self._coming.get(number)
        if coming is not None:
            coming.put((headers, body))
        return coming is not None

    def end(self) -> None:
        """The link was lost, the lock held: nothing more comes."""
        for coming in self._coming.values():
            coming.put(None)

    def _next(self, link: Link, coming: queue.SimpleQueue[Received | None]) -> Received:
        try:
            received = coming.get(timeout=self._seconds)
        except queue.Empty:
            received = None
        if received is None:
            raise TransportError(f"{link.address}: what was asked for did not come, or not to its end")
        return received
