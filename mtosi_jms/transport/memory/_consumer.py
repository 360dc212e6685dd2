"""Consumers of the embedded provider, and what they hand out."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from mtosi_jms.errors import IllegalStateError
from mtosi_jms.transport._arguments import deadline_of
from mtosi_jms.transport.base import Consumer, Delivery, ErrorHook, Listener
from mtosi_jms.transport.memory._queue import MessageQueue, Selector, Subscription
from mtosi_jms.transport.memory._store import Entry

if TYPE_CHECKING:
    from mtosi_jms.transport.memory._session import MemorySession


class MemoryConsumer(Consumer):
    """A consumer of an embedded provider; made with the lock held.

    Attributes:
        queue: what it reads.
        view: which of its messages.
    """

    def __init__(
        self, session: MemorySession, queue: MessageQueue, selector: str | None, parsed: Selector | None
    ) -> None:
        self.destination = queue.destination
        self.selector = selector
        durable = queue.durable if isinstance(queue, Subscription) else None
        self.durable = durable[1] if durable is not None else None
        self.queue = queue
        self.view = queue.attach(selector or "", parsed)
        self._session = session
        self._closed = False
        self._wake = threading.Condition(session.provider.lock)

    def receive(self, timeout: float | None = None) -> MemoryDelivery | None:
        """See `Consumer.receive`.

        Raises:
            ConfigError: the timeout is negative or not a number.
        """
        deadline = deadline_of(timeout)
        session = self._session
        with session.use, session.provider.lock:
            self._check_open()
            session.check_receive()
            while True:
                delivery = self.take()
                if delivery is not None:
                    return delivery
                remaining = None if deadline is None else deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    return None
                if not self._sleep(remaining):
                    return None

    def listen(self, on_message: Listener, on_error: ErrorHook | None = None) -> None:
        """See `Consumer.listen`."""
        with self._session.use, self._session.provider.lock:
            self._check_open()
            self._session.pump.add(self, on_message, on_error)

    def close(self) -> None:
        """Ends it; messages that it handed out stay with the session."""
        with self._session.provider.lock:
            self._session.pump.remove(self)
            self._session.pump.await_idle(self)
            self.shut()

    # What follows holds the lock already.

    def take(self, *, listened: bool = False) -> MemoryDelivery | None:
        """The next message, handed out; None where there is none, or delivery is held."""
        if not self.may_take():
            return None
        entry = self.queue.take(self.view, self._session.provider.now_ms())
        return None if entry is None else self._session.hand_out(entry, self.queue, listened=listened)

    def may_take(self) -> bool:
        """See `Reader.may_take`."""
        return self._session.connection.started

    def signal(self) -> None:
        """See `Reader.signal`."""
        if self in self._session.pump:
            self._session.pump.signal()
        else:
            self._wake.notify()

    def shut(self) -> None:
        """Closes the consumer and lets another reader have what it was woken for."""
        if self._closed:
            return
        self._closed = True
        self.queue.waiting.pop(self, None)
        self.queue.detach(self.view)
        self._session.provider.left(self.queue)
        self._session.forget(self)
        self._wake.notify()

    def _check_open(self) -> None:
        self._session.check_open()
        if self._closed:
            raise IllegalStateError("the consumer is closed")

    def _sleep(self, seconds: float | None) -> bool:
        """Waits to be woken; False where the consumer was closed meanwhile."""
        self.queue.waiting[self] = None
        self._session.blocked = True
        try:
            self._wake.wait(None if seconds is None else min(seconds, threading.TIMEOUT_MAX))
        except BaseException:  # an interrupt may come after the wake-up that was meant for us
            self.queue.waiting.pop(self, None)
            self.queue.wake()
            raise
        finally:
            self._session.blocked = False
            self.queue.waiting.pop(self, None)
        return not self._closed


class MemoryDelivery(Delivery):
    """A delivery of an embedded provider.

    Attributes:
        entry: the message inside the provider.
    """

    __slots__ = ("_session", "entry")

    def __init__(self, session: MemorySession, entry: Entry) -> None:
        self.message = entry.message
        self._session = session
        self.entry = entry

    def acknowledge(self) -> None:
        """See `Delivery.acknowledge`."""
        self._session.acknowledge(self.entry)
