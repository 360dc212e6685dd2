"""Sends what a test made: messages with their destinations, some of them later."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypeAlias

from mtosi_jms.errors import ConfigError, IllegalStateError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.testing._clock import Timer
from mtosi_jms.testing._faults import Late
from mtosi_jms.transport import Connection

Outgoing: TypeAlias = JmsMessage | Late[JmsMessage]
"""A message to be sent, now or later."""

Tamper: TypeAlias = Callable[[list[JmsMessage]], Iterable[Outgoing]]
"""Makes of the messages that would be delivered those that are: replies to a request, or notifications."""


class Recorder:
    """Takes what would be sent.

    Attributes:
        sent: the messages, each with its destination.
    """

    def __init__(self) -> None:
        self.sent: list[JmsMessage] = []

    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """Keep a message with its destination in place of sending it."""
        found = dataclasses.replace(message, destination=destination)
        self.sent.append(found)
        return found

    def send_soon(self, destination: Destination, message: JmsMessage, *, can_wait: bool = False) -> JmsMessage:
        """The same: nothing is waited for anyway."""
        return self.send(destination, message)

    def send_async(self, destination: Destination, message: JmsMessage) -> Future[JmsMessage]:
        """The same, for who does not wait."""
        future: Future[JmsMessage] = Future()
        future.set_result(self.send(destination, message))
        return future


class Sender:
    """Sends messages to their own destinations; threads may share it.

    Args:
        connection: an open connection.
        timer: delivers what is `Late`.
    """

    def __init__(self, connection: Connection, timer: Timer | None = None) -> None:
        self._session = connection.session(transacted=True)
        self._timer = timer
        self._lock = threading.Lock()
        self._closed = False

    def send(self, messages: Iterable[Outgoing]) -> None:
        """Send messages in this order and all at once; those that are late when their time has come.

        Raises:
            IllegalStateError: a message without destination, or closed.
            ConfigError: a late message, and no timer.
        """
        now: list[JmsMessage] = []
        later: list[Late[JmsMessage]] = []
        for message in messages:
            if isinstance(message, Late):
                later.append(message)
            else:
                now.append(message)
        if any(message.destination is None for message in [*now, *(late.message for late in later)]):
            raise IllegalStateError("a message without destination: it was made by hand, give it one")
        if later and self._timer is None:
            raise ConfigError("late messages need a timer: give a ManualClock as timer=")
        # First of all, so that whoever has received a message can rely on the late ones being under way.
        for late in later:
            self._schedule(late)
        with self._lock:
            self._send(now)

    def _schedule(self, late: Late[JmsMessage]) -> None:
        def deliver() -> None:
            with self._lock:
                if not self._closed:
                    self._send([late.message])

        if self._timer is not None:
            self._timer.call_later(late.seconds, deliver)

    def _send(self, messages: list[JmsMessage]) -> None:
        for message in messages:
            if message.destination is not None:
                self._session.send(message.destination, message)
        self._session.commit()

    def close(self) -> None:
        """End it; what is late then is never sent."""
        with self._lock:
            self._closed = True
        self._session.close()
