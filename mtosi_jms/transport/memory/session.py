"""Connections, sessions, consumers and deliveries of the embedded provider."""

from __future__ import annotations

import threading
import time

from mtosi_jms.errors import ConfigError, IllegalStateError, InvalidDestinationError, ResourceLimitError, SelectorError
from mtosi_jms.jms.destinations import Destination, TemporaryQueue, TemporaryTopic
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.jms.naming import NamingContext
from mtosi_jms.transport.base import AckMode, Connection, Consumer, Delivery, Session
from mtosi_jms.transport.memory.provider import MemoryProvider, MessageQueue
from mtosi_jms.transport.memory.store import Entry

_EXPIRY_LOOK = 1.0
"""Seconds after which a sender that waits for room looks again: expiry makes room without telling anybody."""


class MemoryConnection(Connection):
    """A connection to an embedded provider."""

    def __init__(self, provider: MemoryProvider, names: NamingContext | None = None) -> None:
        self.names = names if names is not None else NamingContext()
        self.provider = provider
        self.id = provider.new_id("connection")
        self.started = False
        self._closed = False
        self._sessions: dict[MemorySession, None] = {}

    def start(self) -> None:
        """See `Connection.start`."""
        with self.provider.lock:
            self._check_open()
            self.started = True
            for session in self._sessions:
                session.wake_readers()

    def stop(self) -> None:
        """See `Connection.stop`."""
        with self.provider.lock:
            self._check_open()
            self.halt()

    def session(self, ack_mode: AckMode = AckMode.CLIENT, *, transacted: bool = False) -> MemorySession:
        """See `Connection.session`."""
        with self.provider.lock:
            self._check_open()
            session = MemorySession(self, ack_mode, transacted)
            self._sessions[session] = None
            return session

    def close(self) -> None:
        """Closes its sessions and deletes its temporary destinations."""
        with self.provider.lock:
            if self._closed:
                return
            self._closed = True
            for session in list(self._sessions):
                session.shut()
            self.provider.disown(self.id)

    # What follows holds the lock already.

    def halt(self) -> None:
        """Holds delivery; what its readers were woken for is there for others."""
        self.started = False
        for session in self._sessions:
            session.wake_readers()

    def forget(self, session: MemorySession) -> None:
        """A session was closed."""
        self._sessions.pop(session, None)

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError("the connection is closed")


class MemorySession(Session):
    """A session of an embedded provider.

    Overlapping use shows where one thread is blocked in `receive` while another uses the session; that is refused.
    """

    def __init__(self, connection: MemoryConnection, ack_mode: AckMode, transacted: bool) -> None:
        self.ack_mode = ack_mode
        self.transacted = transacted
        self.connection = connection
        self.provider = connection.provider
        self.blocked = False
        self._closed = False
        self._keeps = transacted or ack_mode is not AckMode.AUTO
        self._consumers: dict[MemoryConsumer, None] = {}
        self._unsettled: dict[Entry, MessageQueue] = {}
        self._sends: list[tuple[Destination, JmsMessage]] = []
        self._crowded: MessageQueue | None = None

    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """See `Session.send`.

        Raises:
            ResourceLimitError: the destination is full, and had no room within the provider's send timeout.
        """
        with self.provider.lock:
            self.check_use()
            self.provider.check(destination)
            if self.provider.capacity is not None and not self.transacted:
                self._await_room(destination)
            sent = self.provider.stamp(destination, message)
            if self.transacted:
                self._sends.append((destination, sent))
            else:
                self.provider.publish(destination, sent)
            return sent

    def consumer(self, destination: Destination, selector: str | None = None) -> MemoryConsumer:
        """See `Session.consumer`."""
        if selector is not None and selector.strip():
            raise SelectorError("the embedded provider evaluates no selectors")
        with self.provider.lock:
            self.check_use()
            consumer = MemoryConsumer(self, self.provider.attach(destination, self.connection.id))
            self._consumers[consumer] = None
            return consumer

    def temporary_queue(self) -> TemporaryQueue:
        """See `Session.temporary_queue`."""
        with self.provider.lock:
            self.check_use()
            queue = TemporaryQueue(self.provider.new_id("queue"), self.connection.id)
            self.provider.own(queue, self.connection.id)
            return queue

    def temporary_topic(self) -> TemporaryTopic:
        """See `Session.temporary_topic`."""
        with self.provider.lock:
            self.check_use()
            topic = TemporaryTopic(self.provider.new_id("topic"), self.connection.id)
            self.provider.own(topic, self.connection.id)
            return topic

    def recover(self) -> None:
        """See `Session.recover`."""
        with self.provider.lock:
            self.check_use()
            if self.transacted:
                raise IllegalStateError("a transacted session is rolled back, not recovered")
            self._return_unsettled()

    def commit(self) -> None:
        """See `Session.commit`."""
        with self.provider.lock:
            self._check_transacted()
            sends, self._sends = self._sends, []
            try:
                for destination, _ in sends:
                    self.provider.check(destination)
            except InvalidDestinationError:
                self._return_unsettled()
                raise
            for entry in list(self._unsettled):
                self._settled(entry)
            for destination, message in sends:
                self.provider.publish(destination, message)

    def rollback(self) -> None:
        """See `Session.rollback`."""
        with self.provider.lock:
            self._check_transacted()
            self._sends.clear()
            self._return_unsettled()

    def close(self) -> None:
        """Closes its consumers; what was not acknowledged or committed is delivered again, elsewhere."""
        with self.provider.lock:
            self.shut()

    def _await_room(self, destination: Destination) -> None:
        """Waits, the lock released meanwhile, until a bounded destination has room."""
        patience = self.provider.send_timeout
        deadline = None if patience is None else time.monotonic() + patience
        while (crowded := self.provider.full(destination)) is not None:
            left = _EXPIRY_LOOK if deadline is None else min(deadline - time.monotonic(), _EXPIRY_LOOK)
            if left <= 0:
                raise ResourceLimitError(f"{destination}: full with {self.provider.capacity} messages")
            self.blocked, self._crowded = True, crowded
            try:
                crowded.room.wait(left)
            finally:
                self.blocked, self._crowded = False, None
            self.check_use()
            self.provider.check(destination)

    # What follows holds the lock already, `acknowledge` excepted.

    def shut(self) -> None:
        """Closes the session."""
        if self._closed:
            return
        self._closed = True
        if self._crowded is not None:
            self._crowded.room.notify_all()
        for consumer in list(self._consumers):
            consumer.shut()
        self._sends.clear()
        self._return_unsettled()
        self.connection.forget(self)

    def check_use(self) -> None:
        """Raises IllegalStateError where the session is closed, or another thread is blocked in it."""
        if self._closed:
            raise IllegalStateError("the session is closed")
        if self.blocked:
            raise IllegalStateError("the session is in use: another thread waits in it, and a session is for one (P4)")

    def hand_out(self, entry: Entry, queue: MessageQueue) -> MemoryDelivery:
        """A delivery of an entry that was taken from a queue; kept until settled, where the mode says so."""
        if self._keeps:
            self._unsettled[entry] = queue
            queue.unsettled += 1
        return MemoryDelivery(self, entry)

    def acknowledge(self, entry: Entry) -> None:
        """See `Delivery.acknowledge`."""
        if self.transacted or not self._keeps:
            return
        with self.provider.lock:
            if entry.settled:
                return
            self.check_use()
            if entry not in self._unsettled:
                raise IllegalStateError("the session was recovered: the message will be delivered again")
            self._settled(entry)

    def wake_readers(self) -> None:
        """The connection was started or stopped."""
        for consumer in self._consumers:
            consumer.queue.wake()

    def forget(self, consumer: MemoryConsumer) -> None:
        """A consumer was closed."""
        self._consumers.pop(consumer, None)

    def _settled(self, entry: Entry) -> None:
        entry.settled = True
        queue = self._unsettled.pop(entry)
        queue.unsettled -= 1
        self.provider.release(queue)

    def _return_unsettled(self) -> None:
        by_queue: dict[MessageQueue, list[Entry]] = {}
        for entry, queue in self._unsettled.items():
            by_queue.setdefault(queue, []).append(entry)
        self._unsettled.clear()
        for queue, entries in by_queue.items():
            self.provider.put_back(queue, entries)

    def _check_transacted(self) -> None:
        self.check_use()
        if not self.transacted:
            raise IllegalStateError("the session is not transacted")


class MemoryConsumer(Consumer):
    """A consumer of an embedded provider."""

    def __init__(self, session: MemorySession, queue: MessageQueue) -> None:
        self.destination = queue.destination
        self.selector = None
        self.queue = queue
        self._session = session
        self._closed = False
        self._wake = threading.Condition(session.provider.lock)

    def receive(self, timeout: float | None = None) -> MemoryDelivery | None:
        """See `Consumer.receive`.

        Raises:
            ConfigError: the timeout is negative or not a number.
        """
        if timeout is not None and not timeout >= 0:
            raise ConfigError(f"timeout {timeout!r}: seconds to wait, 0 or more, or None")
        deadline = None if timeout is None else time.monotonic() + timeout
        provider = self._session.provider
        with provider.lock:
            self._session.check_use()
            if self._closed:
                raise IllegalStateError("the consumer is closed")
            while True:
                entry = self.queue.store.take(provider.now_ms()) if self.may_take() else None
                if entry is not None:
                    self.queue.room.notify()
                    return self._session.hand_out(entry, self.queue)
                remaining = None if deadline is None else deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    return None
                if not self._sleep(remaining):
                    return None

    def close(self) -> None:
        """Ends it; messages that it handed out stay with the session."""
        with self._session.provider.lock:
            self.shut()

    # What follows holds the lock already.

    def may_take(self) -> bool:
        """See `Reader.may_take`."""
        return self._session.connection.started

    def signal(self) -> None:
        """See `Reader.signal`."""
        self._wake.notify()

    def shut(self) -> None:
        """Closes the consumer and lets another reader have what it was woken for."""
        if self._closed:
            return
        self._closed = True
        self.queue.waiting.pop(self, None)
        self._session.provider.detach(self.queue)
        self._session.forget(self)
        self.signal()

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
    """A delivery of an embedded provider."""

    __slots__ = ("_entry", "_session")

    def __init__(self, session: MemorySession, entry: Entry) -> None:
        self.message = entry.message
        self._session = session
        self._entry = entry

    def acknowledge(self) -> None:
        """See `Delivery.acknowledge`."""
        self._session.acknowledge(self._entry)
