"""Sessions of the embedded provider: what is handed out, what is acknowledged, what is sent at commit."""

from __future__ import annotations

from collections.abc import Sequence

from mtosi_jms.errors import IllegalStateError, InvalidDestinationError, ResourceLimitError
from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport._base import AckMode, Consumer, Delivery, Interruption
from mtosi_jms.transport._completion import CompletionListener, Pending
from mtosi_jms.transport._session_core import ConnectionCore, ConsumerCore, ConsumerSpec, SessionCore, T
from mtosi_jms.transport.memory._provider import MemoryProvider
from mtosi_jms.transport.memory._queue import Entry, MessageQueue, Subscription
from mtosi_jms.transport.memory._room import Coming, DeferredSends, await_room, send_deadline


class MemoryConsumer(ConsumerCore[Entry, MessageQueue]):
    """A consumer of an embedded provider; made with the lock held.

    Attributes:
        view: which messages of its queue it reads.
    """

    def __init__(self, session: MemorySession, asked: ConsumerSpec, queue: MessageQueue) -> None:
        super().__init__(session, asked, queue)
        selector = None if asked.destination.is_topic else asked.selector  # it is the subscription that selects
        self.view = queue.attach(asked.text or "", selector)
        self._provider = session.provider

    def _next(self) -> Entry | None:
        return self.source.take(self.view, self._provider.now_ms())

    def may_take(self) -> bool:
        """See `Reader.may_take`."""
        return self.session.connection.started

    def shut(self) -> None:
        """Closes the consumer and lets another reader have what it was woken for."""
        if not self.closed:
            self.source.waiting.pop(self, None)
            self.source.detach(self.view)
            self._provider.left(self.source)
            super().shut()

    def _sleep(self, seconds: float | None) -> None:
        self.source.waiting[self] = None
        try:
            super()._sleep(seconds)
        except BaseException:  # an interrupt may come after the wake-up that was meant for us
            self.source.waiting.pop(self, None)
            self.source.wake()
            raise
        finally:
            self.source.waiting.pop(self, None)


class MemorySession(SessionCore[Entry, MessageQueue]):
    """A session of an embedded provider.

    Attributes:
        provider: what it belongs to.
    """

    done_as_taken = True

    def __init__(
        self, connection: ConnectionCore, provider: MemoryProvider, ack_mode: AckMode, *, transacted: bool
    ) -> None:
        super().__init__(connection, ack_mode, transacted=transacted)
        self.provider = provider
        self._deferred = DeferredSends(provider, connection.id, self._send_deferred)
        self._ending = False
        self._sends: list[tuple[Destination, JmsMessage]] = []
        self._crowded: MessageQueue | None = None

    def send_soon(
        self, destination: Destination | str, message: JmsMessage, *, can_wait: bool = False
    ) -> JmsMessage | None:
        """See `Session.send_soon`: at once, unless destinations are bounded."""
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
        """See `Session.send`.

        Raises:
            ResourceLimitError: the destination is full, and had no room in time, the provider's or the call's.
        """
        with self.lock:
            self.check_open()
            self.provider.check(destination)
            if listener is not None:
                self._send_async(destination, message, listener)
                return message
            if not self.transacted:
                self._await_room([(destination, message)], timeout)
            return self._put(destination, message)

    def _subscribe(self, asked: ConsumerSpec) -> MemoryConsumer:
        with self.lock:
            self.check_open()
            self.provider.check_reader(asked.destination, self.connection.id)
            queue: MessageQueue
            if asked.destination.is_topic:
                queue = self.provider.subscribe(Subscription(asked, self.connection.client_id, self.lock))
                queue.connection_id = self.connection.id
            else:
                queue = self.provider.queue(asked.destination)
            consumer = MemoryConsumer(self, asked, queue)
            self.consumers[consumer] = None
            return consumer

    def _browse(self, asked: ConsumerSpec) -> list[JmsMessage]:
        with self.lock:
            self.check_open()
            self.provider.check_reader(asked.destination, self.connection.id)
            found = self.provider.known_queue(asked.destination)
            waiting = [] if found is None else found.live(self.provider.now_ms())
        if asked.selector is None:
            return waiting
        return [message for message in waiting if asked.selector.accepts(message)]

    def _temporary(self, kind: type[T]) -> T:
        with self.lock:
            self.check_open()
            made = kind(self.provider.new_id("topic" if kind.is_topic else "queue"), self.connection.id)
            self.provider.own(made, self.connection.id)
            return made

    def _commit(self) -> None:
        """Where there is no room it waits, as `send` does in other sessions: then everything goes at once."""
        with self.lock:
            self.check_open()
            try:
                for destination, _ in self._sends:
                    self.provider.check(destination)
                self._await_room(self._sends)
            except (InvalidDestinationError, ResourceLimitError):
                self._sends.clear()
                self._put_back(list(self.unsettled))
                raise
            sends, self._sends = self._sends, []
            self._release(list(self.unsettled))
            for destination, message in sends:
                self.provider.publish(destination, message, self.connection.id)

    def _roll_back(self) -> None:
        self._sends.clear()
        self._give_back(list(self.unsettled))

    def _acknowledge(self, entries: Sequence[Entry], deadline: float | None = None) -> None:
        with self.lock:
            self._release(entries)

    def _give_back(self, entries: Sequence[Entry]) -> None:
        with self.lock:
            self._put_back(entries)

    def _end(self, deadline: float) -> None:
        with self.lock:
            self._sends.clear()
            self._put_back([entry for entry in self.unsettled if entry is not self._listened])

    # What follows holds the lock already.

    def poll(self) -> tuple[Consumer, Delivery | Interruption] | None:
        readers = [one for one in self.consumers if isinstance(one, MemoryConsumer) and one in self.pump]
        for reader in readers:
            reader.source.waiting.pop(reader, None)
        found = super().poll()
        for reader in readers:
            if found is None:
                reader.source.waiting[reader] = None
            else:  # what woke us for more than one message must wake somebody else for them
                reader.source.wake()
        return found

    def begin_close(self) -> None:
        """It is being closed: a sender that waits for room gives up too."""
        self._ending = True
        super().begin_close()
        if self._crowded is not None:
            self._crowded.room.notify_all()

    def wake(self) -> None:
        for consumer in self.consumers:
            consumer.source.wake()

    def _release(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            entry.settled = True
            if (queue := self.unsettled.pop(entry, None)) is not None:
                queue.held -= 1
                self.provider.release(queue)

    def _put_back(self, entries: Sequence[Entry]) -> None:
        by_queue: dict[MessageQueue, list[Entry]] = {}
        for entry in entries:
            queue = self.strike(entry)
            if queue is not None:
                by_queue.setdefault(queue, []).append(entry)
        for queue, returned in by_queue.items():
            self.provider.put_back(queue, returned)

    def _put(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """Sends a message that has room, or keeps it for the commit; returns it as sent."""
        sent = self.provider.stamp(destination, message)
        if self.transacted:
            self._sends.append((destination, sent))
        else:
            self.provider.publish(destination, sent, self.connection.id)
        return sent

    def _send_async(self, destination: Destination, message: JmsMessage, listener: CompletionListener) -> None:
        self.completions.check_open()
        coming = [(destination, message)]
        full = self._deferred or self.provider.crowded(coming, self.connection.id) is not None
        if full and not self.transacted:
            self._deferred.add(destination, message, self.completions.begin(message, listener))
        elif self.provider.gate is None:
            self.completions.completed(message, self._put(destination, message), listener)
        else:
            self._send_deferred(destination, message, self.completions.begin(message, listener))

    def _send_deferred(self, destination: Destination, message: JmsMessage, pending: Pending) -> None:
        """Sends a message whose listener waits; a gate may hold the provider's word."""
        sent, gate = self._put(destination, message), self.provider.gate
        if gate is None:
            pending.complete(sent)
        else:
            gate.hold(pending, sent)

    def _await_room(self, coming: Coming, timeout: float | None = None) -> None:
        """Waits, the lock released meanwhile, until bounded destinations have room."""
        deadline = send_deadline(self.provider, timeout)
        if self._deferred:
            self.blocked = True
            try:
                self._deferred.await_sent(None if timeout is None else deadline)
            finally:
                self.blocked = False
        if not await_room(self.provider, coming, self.connection.id, deadline, self._waits_at):
            raise IllegalStateError("the session is closed")

    def _waits_at(self, queue: MessageQueue | None) -> bool:
        self.blocked, self._crowded = queue is not None, queue
        return not (self._ending or self._closed)
