"""Sessions of the embedded provider: what is handed out, what is acknowledged, what is sent at commit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from mtosi_jms.errors import ConfigError, IllegalStateError, InvalidDestinationError, ResourceLimitError
from mtosi_jms.jms import Destination, TemporaryQueue, TemporaryTopic
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport._arguments import check_subscription, selector_of
from mtosi_jms.transport._listening import ListenerPump, SessionUse
from mtosi_jms.transport.base import AckMode, Consumer, Delivery, Session
from mtosi_jms.transport.completion import CompletionListener, Completions, Pending
from mtosi_jms.transport.memory._consumer import MemoryConsumer, MemoryDelivery
from mtosi_jms.transport.memory._queue import MessageQueue, Subscription
from mtosi_jms.transport.memory._room import Coming, DeferredSends, await_room, send_deadline
from mtosi_jms.transport.memory._store import Entry

if TYPE_CHECKING:
    from mtosi_jms.transport.memory._connection import MemoryConnection

_LAZY: Final = 16
"""Messages that a DUPS_OK session hands out before it acknowledges them, all together."""


class MemorySession(Session):
    """A session of an embedded provider.

    Attributes:
        connection, provider: what it belongs to.
        use: entered by every call but `close`.
        pump: serves its listeners.
        blocked: whether a thread waits in it, for a message or for room.
    """

    def __init__(self, connection: MemoryConnection, ack_mode: AckMode, *, transacted: bool) -> None:
        self.connection = connection
        self.provider = connection.provider
        self.ack_mode = ack_mode
        self.transacted = transacted
        self.use = SessionUse(self._is_elsewhere)
        self.pump = ListenerPump(self, self.use, self.provider.lock, f"listeners-{connection.id}")
        self.completions = Completions(connection.send_rules, connection.id)
        self.blocked = False
        self._deferred = DeferredSends(self)
        self._closed = False
        self._ending = False
        self._keeps = transacted or ack_mode is not AckMode.AUTO
        self._consumers: dict[MemoryConsumer, None] = {}
        self._unsettled: dict[Entry, MessageQueue] = {}
        self._listened: Entry | None = None
        self._sends: list[tuple[Destination, JmsMessage]] = []
        self._crowded: MessageQueue | None = None

    def send(
        self,
        destination: Destination,
        message: JmsMessage,
        listener: CompletionListener | None = None,
        *,
        timeout: float | None = None,
    ) -> JmsMessage:
        """See `Session.send`.

        Raises:
            ResourceLimitError: the destination is full, and had no room in time, the provider's or the call's.
        """
        self.completions.check(message)
        with self.use, self.provider.lock:
            self.check_open()
            self.provider.check(destination)
            if listener is not None:
                self._send_async(destination, message, listener)
                return message
            if not self.transacted:
                self._await_room([(destination, message)], timeout)
            return self.put(destination, message)

    def send_soon(self, destination: Destination, message: JmsMessage, *, can_wait: bool = False) -> JmsMessage | None:
        """See `Session.send_soon`: at once, unless destinations are bounded."""
        if self.transacted or self.provider.limits.capacity is not None:
            return None
        return self.send(destination, message)

    def consumer(
        self,
        destination: Destination,
        selector: str | None = None,
        *,
        durable: str | None = None,
        no_local: bool = False,
    ) -> MemoryConsumer:
        """See `Session.consumer`."""
        check_subscription(destination, durable, no_local)
        text, parsed = selector_of(selector)
        with self.use, self.provider.lock:
            self.check_open()
            self.provider.check_reader(destination, self.connection.id)
            queue: MessageQueue
            if destination.is_topic:
                key = None if durable is None else (self.connection.client_id, durable)
                subscription = Subscription(
                    destination, self.provider.lock, text=text or "", selector=parsed, durable=key, no_local=no_local
                )
                queue = self.provider.subscribe(subscription)
                queue.connection_id = self.connection.id
                parsed = None  # it is the subscription that selects
            else:
                queue = self.provider.queue(destination)
            consumer = MemoryConsumer(self, queue, text, parsed)
            self._consumers[consumer] = None
            return consumer

    def unsubscribe(self, durable: str) -> None:
        """See `Session.unsubscribe`."""
        with self.use, self.provider.lock:
            self.check_open()
            self.provider.unsubscribe((self.connection.client_id, durable))

    def browse(self, queue: Destination, selector: str | None = None) -> list[JmsMessage]:
        """See `Session.browse`."""
        if queue.is_topic:
            raise ConfigError(f"{queue}: a queue can be browsed, a topic cannot")
        _, parsed = selector_of(selector)
        with self.use:
            with self.provider.lock:
                self.check_open()
                self.provider.check_reader(queue, self.connection.id)
                found = self.provider.known_queue(queue)
                waiting = [] if found is None else found.live(self.provider.now_ms())
            return waiting if parsed is None else [message for message in waiting if parsed.accepts(message)]

    def temporary_queue(self) -> TemporaryQueue:
        """See `Session.temporary_queue`."""
        with self.use, self.provider.lock:
            self.check_open()
            queue = TemporaryQueue(self.provider.new_id("queue"), self.connection.id)
            self.provider.own(queue, self.connection.id)
            return queue

    def temporary_topic(self) -> TemporaryTopic:
        """See `Session.temporary_topic`."""
        with self.use, self.provider.lock:
            self.check_open()
            topic = TemporaryTopic(self.provider.new_id("topic"), self.connection.id)
            self.provider.own(topic, self.connection.id)
            return topic

    def recover(self) -> None:
        """See `Session.recover`."""
        with self.use, self.provider.lock:
            self.check_open()
            if self.transacted:
                raise IllegalStateError("a transacted session is rolled back, not recovered")
            self._return(list(self._unsettled))

    def commit(self) -> None:
        """See `Session.commit`.

        Where there is no room it waits, as `send` does in other sessions: then everything goes at once.
        """
        with self.use:
            self.completions.await_told()
            with self.provider.lock:
                self._commit()

    def rollback(self) -> None:
        """See `Session.rollback`."""
        with self.use:
            self.completions.await_told()
            with self.provider.lock:
                self._check_transacted()
                self._roll_back()

    def close(self) -> None:
        """Closes its consumers; what was not acknowledged or committed is delivered again, elsewhere."""
        self.completions.check_thread()
        with self.provider.lock:
            self.begin_end()
        self.completions.await_told()
        with self.provider.lock:
            self.await_listener()
            self.shut()

    def acknowledge(self, entry: Entry) -> None:
        """See `Delivery.acknowledge`."""
        if self.transacted or self.ack_mode is not AckMode.CLIENT:
            return
        if entry.settled:
            return
        with self.use, self.provider.lock:
            self.check_open()
            if entry not in self._unsettled:
                raise IllegalStateError("the session was recovered: the message will be delivered again")
            self._settled(entry)

    def settle(self, delivery: Delivery, *, failed: bool) -> None:
        """See `listening.Source.settle`."""
        with self.provider.lock:
            entry, self._listened = self._listened, None
            if entry is None or entry not in self._unsettled or self.transacted:
                return
            if failed:
                self._return([entry])
            elif self.ack_mode is AckMode.AUTO or self._closed:
                self._settled(entry)

    def _is_elsewhere(self) -> bool:
        return bool(self.pump) and self.connection.started and not self.pump.in_thread()

    # What follows holds the lock already.

    def poll(self) -> tuple[Consumer, Delivery] | None:
        """See `listening.Source.poll`."""
        consumers = [consumer for consumer in self._consumers if consumer in self.pump]
        for consumer in consumers:
            consumer.queue.waiting.pop(consumer, None)
        for consumer in consumers:
            delivery = consumer.take(listened=True)
            if delivery is not None:
                self._listened = delivery.entry
                self._consumers[consumer] = self._consumers.pop(consumer)  # the others have their turn first
                for other in consumers:  # what woke us for more than one message must wake somebody else for them
                    other.queue.wake()
                return consumer, delivery
        for consumer in consumers:
            consumer.queue.waiting[consumer] = None
        return None

    def begin_end(self) -> None:
        """It is being closed: no listener gets anything more, and who waits for room gives up."""
        self._ending = True
        self.completions.begin_close()
        self.pump.end()
        if self._crowded is not None:
            self._crowded.room.notify_all()

    def await_listener(self) -> None:
        """Waits until a listener that is running has returned."""
        self.pump.await_idle()

    def shut(self) -> None:
        """Closes the session; a running listener's message waits for its return where that acknowledges it."""
        if self._closed:
            return
        self._closed = True
        for consumer in list(self._consumers):
            consumer.shut()
        self._sends.clear()
        self._settle_lazily()
        stays = self._listened if self.ack_mode is not AckMode.CLIENT and not self.transacted else None
        self._return([entry for entry in self._unsettled if entry is not stays])
        self.connection.forget(self)

    def check_open(self) -> None:
        """Raises IllegalStateError where the session is closed."""
        if self._closed:
            raise IllegalStateError("the session is closed")

    def check_receive(self) -> None:
        """Raises IllegalStateError where messages go to listeners."""
        if self.pump:
            raise IllegalStateError("the session has a listener: its messages are handed to that, not received")

    def hand_out(self, entry: Entry, queue: MessageQueue, *, listened: bool) -> MemoryDelivery:
        """A delivery of an entry that was taken from a queue; kept until settled, where the mode says so."""
        if self._keeps or listened:
            if len(self._unsettled) >= _LAZY:
                self._settle_lazily()
            self._unsettled[entry] = queue
            queue.unsettled += 1
        return MemoryDelivery(self, entry)

    def wake_readers(self) -> None:
        """The connection was started or stopped."""
        for consumer in self._consumers:
            consumer.queue.wake()

    def forget(self, consumer: MemoryConsumer) -> None:
        """A consumer was closed."""
        self._consumers.pop(consumer, None)
        self._settle_lazily()

    def put(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """Sends a message that has room, or keeps it for the commit; returns it as sent."""
        sent = self.provider.stamp(destination, message)
        if self.transacted:
            self._sends.append((destination, sent))
        else:
            self.provider.publish(destination, sent, self.connection.id)
        return sent

    def confirm(self, pending: Pending, sent: JmsMessage) -> None:
        """An asynchronous send succeeded; a gate may hold the word."""
        gate = self.provider.gate
        if gate is None:
            pending.complete(sent)
        else:
            gate.hold(pending, sent)

    def _send_async(self, destination: Destination, message: JmsMessage, listener: CompletionListener) -> None:
        self.completions.check_open()
        coming = [(destination, message)]
        full = self._deferred or self.provider.crowded(coming, self.connection.id) is not None
        if full and not self.transacted:
            self._deferred.add(destination, message, self.completions.begin(message, listener))
        elif self.provider.gate is None:
            self.completions.completed(message, self.put(destination, message), listener)
        else:
            self.confirm(self.completions.begin(message, listener), self.put(destination, message))

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

    def _commit(self) -> None:
        self._check_transacted()
        try:
            for destination, _ in self._sends:
                self.provider.check(destination)
            self._await_room(self._sends)
        except (InvalidDestinationError, ResourceLimitError):
            self._roll_back()
            raise
        sends, self._sends = self._sends, []
        for entry in list(self._unsettled):
            self._settled(entry)
        for destination, message in sends:
            self.provider.publish(destination, message, self.connection.id)

    def _settle_lazily(self) -> None:
        if self.transacted or self.ack_mode is not AckMode.DUPS_OK:
            return
        for entry in list(self._unsettled):
            if entry is not self._listened:
                self._settled(entry)

    def _settled(self, entry: Entry) -> None:
        entry.settled = True
        queue = self._unsettled.pop(entry)
        queue.unsettled -= 1
        self.provider.release(queue)

    def _roll_back(self) -> None:
        self._sends.clear()
        self._return(list(self._unsettled))

    def _return(self, entries: Iterable[Entry]) -> None:
        by_queue: dict[MessageQueue, list[Entry]] = {}
        for entry in entries:
            by_queue.setdefault(self._unsettled.pop(entry), []).append(entry)
        for queue, returned in by_queue.items():
            self.provider.put_back(queue, returned)

    def _check_transacted(self) -> None:
        self.check_open()
        if not self.transacted:
            raise IllegalStateError("the session is not transacted")
