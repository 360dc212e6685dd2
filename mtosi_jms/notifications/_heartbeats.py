"""Heartbeats: a sign of life on every topic of a publisher, as often as its subscribers were promised one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from mtosi_jms.errors import ConfigError
from mtosi_jms.exchange.messages import moment
from mtosi_jms.notifications._publisher import Publisher
from mtosi_jms.notifications.timing import ThreadTimer, Timer
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.stubs.fmw.nam import NamingAttributeType

log = logging.getLogger(__name__)


class Heartbeats:
    """Publishes a heartbeat at once when it is started, and each so many seconds from then on.

        with Publisher(...) as publisher, Heartbeats(publisher, 30, object_name=name("OS=EMS1")):
            ...

    A heartbeat that cannot be published is logged; the next one is tried in its turn.

    Args:
        publisher: whose topics get it; it is not closed.
        interval: seconds from one to the next. Tell it to the subscribers, who watch for somewhat more.
        object_type: of what it is the sign of life.
        object_name: its name.
        timer: runs the next one when it is due; one is at work at a time.
        on_error: called, besides, with what kept a heartbeat from being published.

    Attributes:
        published: how many were.

    Raises:
        ConfigError: the interval is not positive.
    """

    def __init__(
        self,
        publisher: Publisher,
        interval: float,
        *,
        object_type: str = "OS",
        object_name: NamingAttributeType | None = None,
        timer: Timer | None = None,
        on_error: Callable[[Exception], object] | None = None,
    ) -> None:
        if not interval > 0:
            raise ConfigError(f"heartbeats every {interval} seconds: more than 0 are wanted")
        self.published = 0
        self._publisher = publisher
        self._interval = interval
        self._object_type = object_type
        self._object_name = object_name
        self._timer = timer or ThreadTimer()
        self._on_error = on_error
        self._lock = threading.Lock()
        self._running = False
        self._round = 0
        self._next: object = None

    def start(self) -> Self:
        """Publish the first one and have the others follow; no harm if they do already."""
        with self._lock:
            if not self._running:
                self._running = True
                self._round += 1
                self._beat(self._round)
        return self

    def _due(self, number: int) -> None:
        with self._lock:
            if self._running and number == self._round:
                self._beat(number)

    def _beat(self, number: int) -> None:
        """Publish one and ask for the next; the lock is held."""
        self._next = self._timer.call_later(self._interval, lambda: self._due(number))
        event = Heartbeat(object_type=self._object_type, object_name=self._object_name, os_time=moment())
        try:
            self._publisher.broadcast(event)
            self.published += 1
        except Exception as error:  # noqa: BLE001 - the timer's thread has nobody to raise to
            log.warning("a heartbeat could not be published: %s", error)
            if self._on_error is not None:
                self._on_error(error)

    def stop(self) -> None:
        """Publish no more; returns when one that is on its way has been published."""
        with self._lock:
            self._running = False
            cancel = getattr(self._next, "cancel", None)
            self._next = None
        if cancel is not None:
            cancel()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
