"""Consumers over STOMP, and what they hand out."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mtosi_jms.errors import IllegalStateError
from mtosi_jms.jms import Destination
from mtosi_jms.jms.selector import Selector
from mtosi_jms.transport._arguments import deadline_of
from mtosi_jms.transport.base import Consumer, Delivery, ErrorHook, Interruption, InterruptionHook, Listener
from mtosi_jms.transport.stomp._subscription import Entry, Subscription

if TYPE_CHECKING:
    from mtosi_jms.transport.stomp._session import StompSession


class StompConsumer(Consumer):
    """A consumer over STOMP.

    What it handed out stays the session's when it is closed: then its subscription goes on until that is settled, for
    STOMP acknowledges through it.

    Attributes:
        parsed: its selector.
        no_local: leave out our own messages.
        subscriptions: those of the broker that feed it: one, and more of a queue where many messages are held
            unacknowledged.
        buffer: messages that came and were not handed out, and where the connection was lost between them.
        held: how many were handed out and are not settled.
        closed: whether it is.
    """

    def __init__(
        self,
        session: StompSession,
        destination: Destination,
        text: str | None,
        parsed: Selector | None,
        *,
        durable: str | None,
        no_local: bool,
    ) -> None:
        self.destination = destination
        self.selector = text
        self.parsed = parsed
        self.durable = durable
        self.no_local = no_local
        self.subscriptions: list[Subscription] = []
        self.buffer: deque[Entry | Interruption] = deque()
        self.held = 0
        self.closed = False
        self._session = session
        self._wake = threading.Condition(session.connection.lock)

    def receive(self, timeout: float | None = None) -> StompDelivery | None:
        """See `Consumer.receive`.

        Raises:
            ConfigError: the timeout is negative or not a number.
        """
        deadline = deadline_of(timeout)
        session = self._session
        with session.use:
            while True:
                if self.held and not self.buffer:
                    session.make_room(self)
                with session.connection.lock:
                    delivery = self._await(deadline)
                if isinstance(delivery, Interruption):
                    delivery.tell(self.on_interrupted)
                elif delivery is None or session.accept(delivery.entry):
                    return delivery

    def listen(self, on_message: Listener, on_error: ErrorHook | None = None) -> None:
        """See `Consumer.listen`."""
        with self._session.use, self._session.connection.lock:
            self._check_open()
            self._session.pump.add(self, on_message, on_error)

    def close(self) -> None:
        """Ends it; messages that it handed out stay with the session, and keep its subscription."""
        session = self._session
        with session.connection.lock:
            session.pump.remove(self)
            session.pump.await_idle(self)
            if self.closed:
                return
            self.shut()
        session.leave(self)

    # What follows holds the lock already.

    def take(self) -> StompDelivery | Interruption | None:
        """The next message, handed out, or what comes before it; None where there is none, or delivery is held."""
        if self.closed or not self._session.connection.started:
            return None
        while self.buffer:
            entry = self.buffer.popleft()
            if isinstance(entry, Interruption):
                return entry
            if entry.comes_again:
                continue
            if entry.is_expired():
                self._session.spent.append(entry)
                continue
            return self._session.hand_out(entry, self)
        return Expired("messages have expired", self._session) if self._session.spent else None

    def interrupted(self, reason: str) -> None:
        """The connection was lost: what comes from now on comes after it."""
        told = bool(self.buffer) and isinstance(self.buffer[-1], Interruption)
        if self.on_interrupted is not None and not self.closed and not told:
            self.buffer.append(Interruption(reason))

    def signal(self) -> None:
        """There may be a message, or no more come."""
        if self in self._session.pump:
            self._session.pump.signal()
        else:
            self._wake.notify()

    def shut(self) -> None:
        """Closes it for those who wait."""
        self.closed = True
        self._wake.notify_all()

    def take_over(self, closed: StompConsumer) -> None:
        """Goes on where another, closed one was kept for the sake of what it had handed out."""
        for subscription in closed.subscriptions:
            subscription.consumer = self
        self.subscriptions, closed.subscriptions = closed.subscriptions, []
        self.buffer, closed.buffer = closed.buffer, self.buffer
        self.held, closed.held = closed.held, 0

    def _check_open(self) -> None:
        self._session.check_open()
        if self.closed:
            raise IllegalStateError("the consumer is closed")

    def _await(self, deadline: float | None) -> StompDelivery | Interruption | None:
        self._check_open()
        self._session.check_receive()
        while not self.closed:
            if (delivery := self.take()) is not None:
                return delivery
            self._session.connection.check_alive()
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                return None
            self._session.blocked = True
            try:
                self._wake.wait(None if remaining is None else min(remaining, threading.TIMEOUT_MAX))
            finally:
                self._session.blocked = False
        return None


@dataclass(frozen=True)
class Expired(Interruption):
    """Stands where there is no message, but some that have expired: they take the room of others until they are
    acknowledged, which is done before anybody waits."""

    session: StompSession

    def tell(self, hook: InterruptionHook | None) -> None:
        """Acknowledges them; the hook has nothing to do with that."""
        self.session.tell_spent()


class StompDelivery(Delivery):
    """A delivery over STOMP.

    Attributes:
        entry: the message as the session keeps it.
    """

    __slots__ = ("_session", "entry")

    def __init__(self, session: StompSession, entry: Entry) -> None:
        self.message = entry.message
        self._session = session
        self.entry = entry

    def acknowledge(self) -> None:
        """See `Delivery.acknowledge`."""
        self._session.acknowledge(self.entry)
