"""Heartbeats: a sign of life on every topic of a publisher, at the interval that its subscribers were promised."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol, Self

from mtosi_jms.exchange.messages import moment
from mtosi_jms.notifications._events import own_event
from mtosi_jms.notifications._publisher import Publisher
from mtosi_jms.service import check_seconds
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.xmlbind import XmlObject

log = logging.getLogger(__package__)


class Timer(Protocol):
    """Runs an action later; `ThreadTimer` is one, so are `mtosi_jms.testing.ManualClock` and an asyncio event loop."""

    def call_later(self, seconds: float, action: Callable[[], object], /) -> object:
        """Run the action after so many seconds; the result may have a method `cancel`."""


class ThreadTimer:
    """Runs each action in a thread of its own, which does not keep the process alive."""

    def call_later(self, seconds: float, action: Callable[[], object], /) -> threading.Timer:
        timer = threading.Timer(seconds, action)
        timer.daemon = True
        timer.start()
        return timer


class Heartbeats:
    """Publishes a heartbeat when it is started, and then one at every interval.

        with Publisher(...) as publisher, Heartbeats(publisher, 30, object_name=name("OS=EMS1")):
            ...

    A heartbeat that cannot be published is logged; the next one is tried at its time.

    Args:
        interval: seconds between two heartbeats. Subscribers should watch for a little more.
        object_type: type of the object whose sign of life it is.
        object_name: its name; the heartbeats are those of its release.
        timer: schedules the next heartbeat.
        on_error: called with the error of a heartbeat that could not be published.

    Raises:
        ConfigError: the interval is not positive.
    """

    def __init__(
        self,
        publisher: Publisher,
        interval: float,
        *,
        object_type: str = "OS",
        object_name: XmlObject | None = None,
        timer: Timer | None = None,
        on_error: Callable[[Exception], object] | None = None,
    ) -> None:
        check_seconds("interval", interval)
        self.published = 0
        self._publisher = publisher
        self._interval = interval
        self._object_type = object_type
        self._object_name = object_name
        self._timer = timer or ThreadTimer()
        self._on_error = on_error
        self._lock = threading.Lock()
        self._run: object = None  # identifies the time from start to stop
        self._next: object = None

    def start(self) -> Self:
        """Publish the first one and schedule the others; nothing happens if it is started already."""
        with self._lock:
            if self._run is None:
                self._run = object()
                self._beat(self._run)
        return self

    def _due(self, run: object) -> None:
        with self._lock:
            if run is self._run:
                self._beat(run)

    def _beat(self, run: object) -> None:
        """The lock is held."""
        self._next = self._timer.call_later(self._interval, lambda: self._due(run))
        try:
            event = own_event(Heartbeat, self._object_name, object_type=self._object_type, os_time=moment())
            self._publisher.broadcast(event)
            self.published += 1
        except Exception as error:  # noqa: BLE001 - nobody is there to catch it in the timer's thread
            log.warning("a heartbeat could not be published: %s: %s", type(error).__name__, error)
            if self._on_error is not None:
                self._on_error(error)

    def stop(self) -> None:
        """Publish no more heartbeats; wait for one that is being published."""
        with self._lock:
            cancel = getattr(self._next, "cancel", None)
            self._run = self._next = None
        if cancel is not None:
            cancel()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
