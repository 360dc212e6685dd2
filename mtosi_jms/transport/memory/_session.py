"""Connections and sessions of the embedded provider: what is handed out, acknowledged, and sent at commit."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Final, TypeAlias

from mtosi_jms.errors import IllegalStateError, InvalidDestinationError, ResourceLimitError
from mtosi_jms.jms import Destination, NamingContext
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport._base import AckMode, Consumer, Delivery, Interruption
from mtosi_jms.transport._completion import CompletionListener, Pending, SendRules, SendsInTurn
from mtosi_jms.transport._descriptor import ALL_CAPABILITIES, Capability, ConnectionMetadata
from mtosi_jms.transport._session_core import ConnectionCore, ConsumerCore, ConsumerSpec, SessionCore, T
from mtosi_jms.transport.memory._provider import MemoryProvider
from mtosi_jms.transport.memory._queue import Entry, MessageQueue, Subscription

log = logging.getLogger(__package__)

_METADATA: Final = ConnectionMetadata(provider="mtosi-jms memory", provider_version="", jms_version="2.0")
_DEFAULT_RULES: Final = SendRules()
_UNREAD_FOR: Final = 1.0
"""Seconds that a sender waits for room before a destination that nobody consumes is logged."""
_EXPIRY_LOOK: Final = 1.0
"""Seconds after which a sender that waits for room looks again: expiry makes room without telling anybody."""

Coming: TypeAlias = Sequence[tuple[Destination, JmsMessage]]


class MemoryConsumer(ConsumerCore[Entry, MessageQueue]):
    """A consumer of the embedded provider. The caller of every method holds the lock, the constructor's too."""

    def __init__(self, session: MemorySession, spec: ConsumerSpec, queue: MessageQueue) -> None:
        super().__init__(session, spec, queue)
        selector = None if spec.destination.is_topic else spec.selector  # a subscription filters already
        self.view = queue.attach(spec.text or "", selector)
        self._provider = session.provider

    def _next(self) -> Entry | None:
        return self.source.take(self.view, self._provider.now_ms()) if self.view.store.size else None

    def may_take(self) -> bool:
        return self.session.connection.started

    def shut(self) -> None:
        """Closes the consumer. If it was woken for a message, another reader is woken for that message."""
        if not self.closed:
            self.source.waiting.pop(self, None)
            self.source.detach(self.view)
            self._provider.left(self.source)
            super().shut()

    def _sleep(self, seconds: float | None) -> None:
        self.source.waiting[self] = None
        try:
            super()._sleep(seconds)
        except BaseException:  # Ctrl-C, say, after we were woken for a message: another reader is woken
            self.source.waiting.pop(self, None)
            self.source.wake()
            raise
        finally:
            self.source.waiting.pop(self, None)


class MemorySession(SessionCore[Entry, MessageQueue]):
    acknowledged_by_delivery = True

    def __init__(
        self, connection: ConnectionCore, provider: MemoryProvider, ack_mode: AckMode, *, transacted: bool
    ) -> None:
        super().__init__(connection, ack_mode, transacted=transacted)
        self.provider = provider
        self._deferred = SendsInTurn(connection.id)
        self._is_closing = False
        self._sends: list[tuple[Destination, JmsMessage]] = []
        self._waiting_for: MessageQueue | None = None

    def send_soon(
        self, destination: Destination | str, message: JmsMessage, *, can_wait: bool = False
    ) -> JmsMessage | None:
        """See `Session.send_soon`. Not for transacted sessions, nor where `capacity` may make a sender wait."""
        if self.transacted or self.provider.limits.capacity is not None:
            return None
        return self.send(destination, message)

    def unsubscribe(self, durable: str) -> None:
        with self.use, self.lock:
            self.check_open()
            self.provider.unsubscribe((self.connection.client_id, durable))

    def _send(
        self, destination: Destination, message: JmsMessage, listener: CompletionListener | None, timeout: float | None
    ) -> JmsMessage:
        """Raises ResourceLimitError: the destination stayed full until `timeout` or `send_timeout`."""
        may_wait = listener is None and (self._deferred.items or self.provider.limits.capacity is not None)
        deadline = send_deadline(self.provider, timeout) if may_wait else None
        if may_wait and self._deferred.items:
            self._await_deferred(destination, None if timeout is None else deadline)
        with self.lock:
            self.check_open()
            if destination.is_temporary:
                self.provider.check(destination)
            if listener is not None:
                self._send_async(destination, message, listener)
                return message
            if may_wait and not self.transacted:
                self._await_room([(destination, message)], deadline)
            return self._put(destination, message)

    def _subscribe(self, spec: ConsumerSpec) -> MemoryConsumer:
        with self.lock:
            self.check_open()
            self.provider.check_reader(spec.destination, self.connection.id)
            queue: MessageQueue
            if spec.destination.is_topic:
                queue = self.provider.subscribe(Subscription(spec, self.connection.client_id))
                queue.connection_id = self.connection.id
            else:
                queue = self.provider.queue(spec.destination)
            consumer = MemoryConsumer(self, spec, queue)
            self.consumers[consumer] = None
            return consumer

    def _browse(self, spec: ConsumerSpec) -> Generator[list[JmsMessage], None, None]:
        with self.lock:
            self.check_open()
            self.provider.check_reader(spec.destination, self.connection.id)
            found = self.provider.known_queue(spec.destination)
            waiting = [] if found is None else found.live(self.provider.now_ms())
        yield waiting if spec.selector is None else [one for one in waiting if spec.selector.accepts(one)]

    def _temporary(self, kind: type[T]) -> T:
        with self.lock:
            self.check_open()
            made = kind(self.provider.new_id("topic" if kind.is_topic else "queue"), self.connection.id)
            self.provider.own(made, self.connection.id)
            return made

    def _commit(self) -> None:
        """See `Session.commit`. Waits until all messages of the transaction have room, then sends them together."""
        with self.lock:
            self.check_open()
            try:
                for destination, _ in self._sends:
                    self.provider.check(destination)
                self._await_room(self._sends, send_deadline(self.provider))
            except (InvalidDestinationError, ResourceLimitError):
                self._sends.clear()
                self._put_back_locked(list(self.unsettled))
                raise
            sends, self._sends = self._sends, []
            self._settle_locked(list(self.unsettled))
            for destination, message in sends:
                self.provider.publish(destination, message, self.connection.id)

    def _await_deferred(self, destination: Destination, deadline: float | None) -> None:
        """Waits, without the lock, until what was sent before has found room (A11)."""
        self.blocked = True
        try:
            if not self._deferred.await_sent(deadline):
                raise ResourceLimitError(f"{destination}: not sent: what was sent before waits for room")
        finally:
            self.blocked = False

    def _send_deferred(
        self, destination: Destination, message: JmsMessage, pending: Pending, deadline: float | None
    ) -> None:
        """Sends a message when there is room; in the thread of `SendsInTurn`, without the lock."""
        with self.lock:
            self.provider.check(destination)
            coming = [(destination, message)]
            # It may fail meanwhile, for want of time.
            if await_room(self.provider, coming, self.connection.id, deadline, lambda _: not pending.settled):
                self._complete(pending, self._put(destination, message))

    def _roll_back(self) -> None:
        self._sends.clear()
        self._give_back(list(self.unsettled))

    def _acknowledge(self, entries: Sequence[Entry], deadline: float | None = None) -> None:
        with self.lock:
            self._settle_locked(entries)

    def _give_back(self, entries: Sequence[Entry]) -> None:
        with self.lock:
            self._put_back_locked(entries)

    def _end(self, deadline: float) -> None:
        with self.lock:
            self._sends.clear()
            self._put_back_locked([entry for entry in self.unsettled if entry is not self._listened])

    # The caller of every method below holds the lock.

    def poll(self) -> tuple[Consumer, Delivery | Interruption] | None:
        readers = [one for one in self.consumers if isinstance(one, MemoryConsumer) and one in self.use.listeners]
        for reader in readers:
            reader.source.waiting.pop(reader, None)
        found = super().poll()
        for reader in readers:
            if found is None:
                reader.source.waiting[reader] = None
            else:  # there may be more messages than the one we took: other readers are woken for the rest
                reader.source.wake()
        return found

    def begin_close(self) -> None:
        """See `SessionCore.begin_close`. Also ends a wait for room, whose sender gets IllegalStateError."""
        self._is_closing = True
        super().begin_close()
        if self._waiting_for is not None:
            self._waiting_for.tell_senders()

    def wake(self) -> None:
        for consumer in self.consumers:
            consumer.source.wake()

    def _settle_locked(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            entry.settled = True
            if (queue := self.remove_unsettled(entry)) is not None:
                self.provider.release(queue)

    def _put_back_locked(self, entries: Sequence[Entry]) -> None:
        by_queue: dict[MessageQueue, list[Entry]] = {}
        for entry in entries:
            queue = self.remove_unsettled(entry)
            if queue is not None:
                by_queue.setdefault(queue, []).append(entry)
        for queue, returned in by_queue.items():
            self.provider.put_back(queue, returned)

    def _put(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """Sends a message, or keeps it for the commit; returns it as sent. The caller has checked for room."""
        sent = self.provider.stamp(destination, message)
        if self.transacted:
            self._sends.append((destination, sent))
        else:
            self.provider.publish(destination, sent, self.connection.id)
        return sent

    def _send_async(self, destination: Destination, message: JmsMessage, listener: CompletionListener) -> None:
        self.completions.check_open()
        must_wait = not self.transacted and (
            bool(self._deferred.items)
            or self.provider.crowded([(destination, message)], self.connection.id) is not None
        )
        if must_wait:
            pending = self.completions.begin(message, listener)
            deadline = send_deadline(self.provider)
            self._deferred.add(pending, partial(self._send_deferred, destination, message, pending, deadline))
            return
        sent = self._put(destination, message)  # noted only when nothing can raise any more
        if self.provider.gate is None:  # the outcome is known at once
            self.completions.completed(message, sent, listener)
        else:
            self._complete(self.completions.begin(message, listener), sent)

    def _complete(self, pending: Pending, sent: JmsMessage) -> None:
        """Completes a send. In tests a `CompletionGate` may hold the completion back."""
        gate = self.provider.gate
        if gate is None:
            pending.complete(sent)
        else:
            gate.hold(pending, sent)

    def _await_room(self, coming: Coming, deadline: float | None) -> None:
        """Waits, without the lock, until every destination has room. Raises ResourceLimitError,
        InvalidDestinationError: a temporary one was deleted; IllegalStateError: the session was closed."""
        if not await_room(self.provider, coming, self.connection.id, deadline, self._note_wait):
            raise IllegalStateError("the session is closed")

    def _note_wait(self, queue: MessageQueue | None) -> bool:
        """Notes the full queue that this session waits for, None after the wait. False: stop, it is being closed."""
        self.blocked, self._waiting_for = queue is not None, queue
        return not (self._is_closing or self._closed)


class MemoryConnection(ConnectionCore):
    """A connection to an embedded provider. Raises ConfigError: an open connection has the client id."""

    def __init__(
        self,
        provider: MemoryProvider,
        names: NamingContext | None = None,
        *,
        client_id: str = "",
        send_rules: SendRules = _DEFAULT_RULES,
    ) -> None:
        super().__init__(provider.lock, names if names is not None else NamingContext(), client_id, send_rules)
        self.provider = provider
        self.capabilities = ALL_CAPABILITIES - {Capability.DELIVERY_DELAY}
        self.metadata = _METADATA
        with provider.lock:
            provider.admit(client_id)
            self.id = provider.new_id("connection")

    @property
    def dead_letter(self) -> Destination:
        """The provider's, be `max_deliveries` set or not."""
        return self.provider.limits.dead_letter

    def consumers(self, destination: Destination) -> int:
        with self.provider.lock:
            return self.provider.readers(destination)

    def is_gone(self, destination: Destination) -> bool:
        with self.provider.lock:
            return self.provider.is_gone(destination)

    def _where(self) -> str:
        return f"memory:{self.provider.name}"

    def _session(self, ack_mode: AckMode, transacted: bool) -> MemorySession:
        return MemorySession(self, self.provider, ack_mode, transacted=transacted)

    def _finish(self, deadline: float) -> None:
        with self.provider.lock:
            self.provider.dismiss(self.id, self.client_id)


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
            crowded.await_room(provider.lock, left)
        finally:
            goes_on = waits_at(None)
        if not goes_on:
            return False
        for destination, _ in coming:
            provider.check(destination)
    return True
