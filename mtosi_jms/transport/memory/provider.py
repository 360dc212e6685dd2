"""The provider itself: destinations, who reads them, and the one lock under which everything happens.

A receiver that finds nothing registers as waiting and sleeps on a condition of its own. The rule that no wake-up is
lost: whenever messages are added, or a reader may no longer take what it was woken for, `MessageQueue.wake` wakes as
many waiting readers as there are messages, and each takes its message itself, under the lock.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from mtosi_jms.errors import InvalidDestinationError
from mtosi_jms.jms.destinations import Destination
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport.memory.store import Entry, ExpiryIndex, MessageStore

Clock: TypeAlias = Callable[[], float]


class Reader(Protocol):
    """What a queue knows of a consumer."""

    def may_take(self) -> bool:
        """Whether its connection is started."""
        ...

    def signal(self) -> None:
        """Wakes its thread."""
        ...


class MessageQueue:
    """The messages of one queue, or of one subscription to a topic, and the readers that wait for them.

    Attributes:
        destination: what its readers receive from.
        store: messages that nobody was handed.
        waiting: readers asleep, the longest first.
        readers: how many consumers it has.
        unsettled: how many messages are handed out and not acknowledged.
        deleted: it went with its connection or subscription; what comes back to it is dropped.
        room: notified when a sender that waits for room should look again.
    """

    __slots__ = ("deleted", "destination", "readers", "room", "store", "unsettled", "waiting")

    def __init__(self, destination: Destination, lock: threading.Lock) -> None:
        self.destination = destination
        self.room = threading.Condition(lock)
        self.store = MessageStore()
        self.waiting: dict[Reader, None] = {}
        self.readers = 0
        self.unsettled = 0
        self.deleted = False

    def wake(self) -> None:
        """Wakes one waiting reader for each message there is."""
        if not self.waiting or not self.store:
            return
        able = (reader for reader in self.waiting if reader.may_take())
        for reader in list(itertools.islice(able, len(self.store))):
            del self.waiting[reader]
            reader.signal()


class MemoryProvider:
    """Queues and topics inside one process; `connection` is the way in. Safe for any number of threads.

    Args:
        name: shown in message ids and errors.
        clock: returns seconds since 1970: what timestamps and expiry go by. Waiting goes by real time.
        capacity: messages that wait at a queue or subscription before senders have to; None: no bound.
        send_timeout: seconds that a sender waits for room at most; 0 refuses at once; None waits.

    Attributes:
        clock, capacity, send_timeout: the same.
        lock: held for every look at, and change of, what is in here.
    """

    def __init__(
        self,
        name: str = "",
        *,
        clock: Clock = time.time,
        capacity: int | None = None,
        send_timeout: float | None = None,
    ) -> None:
        self.name = name
        self.clock = clock
        self.capacity = capacity
        self.send_timeout = send_timeout
        self.lock = threading.Lock()
        self._prefix = f"ID:memory-{uuid.uuid4().hex[:12]}"
        self._ids = itertools.count(1)
        self._sequences = itertools.count(1)
        self._queues: dict[Destination, MessageQueue] = {}
        self._subscriptions: dict[Destination, dict[MessageQueue, None]] = {}
        self._owners: dict[Destination, str] = {}
        self._expiry = ExpiryIndex()

    def depth(self, destination: Destination) -> int:
        """How many messages wait at a queue, expired ones left out; messages handed out do not count."""
        with self.lock:
            self._expiry.purge(self.now_ms())
            queue = self._queues.get(destination)
            return len(queue.store) if queue else 0

    def held(self) -> int:
        """How many messages the provider holds in all, those handed out and not acknowledged included."""
        with self.lock:
            self._expiry.purge(self.now_ms())
            subscriptions = itertools.chain.from_iterable(self._subscriptions.values())
            return sum(len(queue.store) + queue.unsettled for queue in (*self._queues.values(), *subscriptions))

    # What follows is for connections and sessions, which hold the lock.

    def now_ms(self) -> int:
        """The clock's time in milliseconds."""
        return int(self.clock() * 1000)

    def new_id(self, kind: str) -> str:
        """A name for a connection or a temporary destination, unique among all providers."""
        return f"{self._prefix[3:]}-{kind}-{next(self._ids)}"

    def stamp(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """The message with what a provider sets on sending (C45)."""
        return message.stamped(destination, message_id=f"{self._prefix}-{next(self._ids)}", timestamp_ms=self.now_ms())

    def own(self, destination: Destination, connection_id: str) -> None:
        """Notes a new temporary destination."""
        self._owners[destination] = connection_id

    def disown(self, connection_id: str) -> None:
        """Deletes the temporary destinations of a connection, with what is in them."""
        for destination in [one for one, owner in self._owners.items() if owner == connection_id]:
            del self._owners[destination]
            self._subscriptions.pop(destination, None)
            queue = self._queues.pop(destination, None)
            if queue is not None:
                queue.deleted = True
                queue.room.notify_all()

    def check(self, destination: Destination) -> None:
        """Raises InvalidDestinationError where a temporary destination is gone."""
        if destination.is_temporary and destination not in self._owners:
            raise InvalidDestinationError(f"{destination}: it went with its connection")

    def full(self, destination: Destination) -> MessageQueue | None:
        """A queue or subscription of a destination that has no room; None if all have."""
        if self.capacity is None:
            return None
        self._expiry.purge(self.now_ms())
        crowded = (queue for queue in self._targets(destination) if len(queue.store) >= self.capacity)
        return next(crowded, None)

    def _targets(self, destination: Destination) -> Iterable[MessageQueue]:
        if destination.is_topic:
            return self._subscriptions.get(destination, ())
        return (self._queue(destination),)

    def publish(self, destination: Destination, message: JmsMessage) -> None:
        """Puts a stamped message where it goes: one queue, or every current subscription."""
        self._expiry.purge(message.timestamp_ms or 0)
        for queue in self._targets(destination):
            entry = Entry(next(self._sequences), message)
            queue.store.put(entry)
            self._expiry.add(entry, queue.store)
            queue.wake()

    def put_back(self, queue: MessageQueue, entries: Iterable[Entry]) -> None:
        """Has messages that were handed out delivered again, at their old places and marked so."""
        again = [Entry(entry.sequence, entry.message.again()) for entry in entries]
        queue.unsettled -= len(again)
        if queue.deleted:
            return
        queue.store.put_back(again)
        for entry in again:
            self._expiry.add(entry, queue.store)
        queue.wake()
        self.release(queue)

    def attach(self, destination: Destination, connection_id: str) -> MessageQueue:
        """The queue that a new consumer reads, for a topic a new subscription."""
        self.check(destination)
        if destination.is_temporary and self._owners[destination] != connection_id:
            raise InvalidDestinationError(f"{destination}: only the connection that made it may receive from it (R2c)")
        if destination.is_topic:
            queue = MessageQueue(destination, self.lock)
            self._subscriptions.setdefault(destination, {})[queue] = None
        else:
            queue = self._queue(destination)
        queue.readers += 1
        return queue

    def detach(self, queue: MessageQueue) -> None:
        """A consumer of the queue was closed; a subscription goes with it."""
        queue.readers -= 1
        if queue.destination.is_topic:
            queue.deleted = True
            queue.room.notify_all()
            subscriptions = self._subscriptions.get(queue.destination, {})
            subscriptions.pop(queue, None)
            if not subscriptions:
                self._subscriptions.pop(queue.destination, None)
        else:
            queue.wake()
            self.release(queue)

    def release(self, queue: MessageQueue) -> None:
        """Forgets a queue that nobody reads and nothing is in."""
        if not (queue.readers or queue.unsettled or queue.store or queue.destination.is_topic):
            self._queues.pop(queue.destination, None)

    def _queue(self, destination: Destination) -> MessageQueue:
        queue = self._queues.get(destination)
        if queue is None:
            queue = self._queues[destination] = MessageQueue(destination, self.lock)
        return queue
