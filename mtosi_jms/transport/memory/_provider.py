"""The provider itself: destinations, subscriptions, and the one lock under which everything happens."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self, TypeAlias

from mtosi_jms.errors import ConfigError, IllegalStateError, InvalidDestinationError
from mtosi_jms.jms import Destination, Queue
from mtosi_jms.jms.message import JmsMessage, PropertyValue
from mtosi_jms.transport._completion import Pending
from mtosi_jms.transport._descriptor import ORIGINAL_DESTINATION
from mtosi_jms.transport._options import COUNT, FUNCTION, PATIENCE, ConnectOptions, check, checked
from mtosi_jms.transport.memory._queue import Entry, ExpiryIndex, MessageQueue, Subscription

Clock: TypeAlias = Callable[[], float]

SYSTEM_CLOCK: Final[Clock] = time.time
_QUEUE: Final = check(
    "an administered queue, or its name",
    lambda value: isinstance(value, str) or type(value) is Queue,
    convert=lambda value: Queue(value) if isinstance(value, str) else value,
)


@dataclass(frozen=True, kw_only=True)
class QueueLimits:
    """The limits for the messages of a provider.

    Attributes:
        capacity: maximum number of waiting messages in a queue or subscription; then senders wait. None: no limit.
        send_timeout: longest time in seconds that a sender waits for room; 0: refuse at once; None: no limit.
        max_deliveries: how often a message is delivered without being acknowledged before it goes to the dead-letter
            queue; None: no limit.
        dead_letter: the dead-letter queue.
    """

    capacity: int | None = field(default=None, metadata=COUNT)
    send_timeout: float | None = field(default=None, metadata=PATIENCE)
    max_deliveries: int | None = field(default=None, metadata=COUNT)
    dead_letter: Queue = field(default=Queue("DLQ"), metadata=_QUEUE)

    def changed(self, **given: Any) -> QueueLimits:
        """The limits with those that are given in their place; None leaves one as it is. Raises ConfigError."""
        return replace(self, **checked(QueueLimits, "memory", given))


@dataclass(frozen=True, kw_only=True)
class MemoryOptions(ConnectOptions, QueueLimits):
    """What `connect("memory:...")` takes. The limits hold for the whole provider from then on. `clock`: returns seconds
    since 1970, for timestamps and expiry; the first connection decides, by default the system's."""

    clock: Clock | None = field(default=None, metadata=FUNCTION)


REASON: Final = "JMS_MTOSIX_deadLetterReason"
"""Why the message is in the dead-letter queue, in words."""
DELIVERIES: Final = "JMS_MTOSIX_deliveries"
"""How often the message was delivered, an Integer."""

_REMEMBERED: Final = 10_000
"""How many temporary destinations are remembered that are gone."""


class MemoryProvider:
    """Queues and topics inside one process; `MemoryConnection` is the way in. Safe for any number of threads. `name`:
    shown in message ids and errors. `clock`: returns seconds since 1970: what timestamps and expiry go by. Waiting goes
    by real time. `lock`: held for every look at, and change of, what is in here. `gate`: holds the completions of
    asynchronous sends, for tests. Raises ConfigError: a limit of the wrong type."""

    def __init__(self, name: str = "", *, clock: Clock = SYSTEM_CLOCK, **limits: Any) -> None:
        self.name = name
        self.clock = clock
        self.limits = QueueLimits().changed(**limits)
        self.lock = threading.Lock()
        self.gate: CompletionGate | None = None
        self._prefix = f"ID:memory-{uuid.uuid4().hex[:12]}"
        self._ids = itertools.count(1)
        self._sequences = itertools.count(1)
        self._queues: dict[Destination, MessageQueue] = {}
        self._subscriptions: dict[Destination, dict[Subscription, None]] = {}
        self._durable: dict[tuple[str, str], Subscription] = {}
        self._owners: dict[Destination, str] = {}
        self._gone: dict[Destination, None] = {}
        self._clients: set[str] = set()
        self._expiry = ExpiryIndex()

    def depth(self, destination: Destination) -> int:
        """How many messages wait at a queue, expired ones left out; messages handed out do not count."""
        with self.lock:
            self._expiry.purge(self.now_ms())
            queue = self._queues.get(destination)
            return len(queue) if queue is not None else 0

    def held(self) -> int:
        """How many messages the provider holds in all, those handed out and not acknowledged included."""
        with self.lock:
            self._expiry.purge(self.now_ms())
            subscriptions = itertools.chain.from_iterable(self._subscriptions.values())
            return sum(len(queue) + queue.held for queue in (*self._queues.values(), *subscriptions))

    def destinations(self) -> frozenset[Destination]:
        """The destinations that something is kept for: messages, consumers, subscriptions, an owner."""
        with self.lock:
            return frozenset((*self._queues, *self._subscriptions, *self._owners))

    # The methods below are for connections and sessions, which hold the lock.

    def now_ms(self) -> int:
        return int(self.clock() * 1000)

    def new_id(self, kind: str) -> str:
        """A name for a connection or a temporary destination, unique among all providers."""
        return f"{self._prefix[3:]}-{kind}-{next(self._ids)}"

    def stamp(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """The message with what a provider sets on sending (C45)."""
        return message.stamped(destination, message_id=f"{self._prefix}-{next(self._ids)}", timestamp_ms=self.now_ms())

    def admit(self, client_id: str) -> None:
        """Notes a connection's client id; the empty one is nobody's own. Raises ConfigError where it is in use."""
        if client_id in self._clients:
            raise ConfigError(f"client id {client_id!r} is in use by an open connection")
        if client_id:
            self._clients.add(client_id)

    def dismiss(self, connection_id: str, client_id: str) -> None:
        """A connection was closed: deletes its temporary destinations, with what is in them."""
        self._clients.discard(client_id)
        for destination in [one for one, owner in self._owners.items() if owner == connection_id]:
            del self._owners[destination]
            self._gone[destination] = None
            if len(self._gone) > _REMEMBERED:
                del self._gone[next(iter(self._gone))]
            self._subscriptions.pop(destination, None)
            queue = self._queues.pop(destination, None)
            if queue is not None:
                queue.delete()

    def own(self, destination: Destination, connection_id: str) -> None:
        self._owners[destination] = connection_id

    def is_gone(self, destination: Destination) -> bool:
        """Whether it was a temporary destination of a connection that is closed, as far as that is remembered."""
        return destination in self._gone

    def check(self, destination: Destination) -> None:
        """Raises InvalidDestinationError where a temporary destination is gone."""
        if destination.is_temporary and destination not in self._owners:
            raise InvalidDestinationError(f"{destination}: it was deleted with its connection")

    def check_reader(self, destination: Destination, connection_id: str) -> None:
        """Raises InvalidDestinationError where a connection may not receive from a destination."""
        self.check(destination)
        if destination.is_temporary and self._owners[destination] != connection_id:
            raise InvalidDestinationError(f"{destination}: only the connection that made it may receive from it (R2c)")

    def targets(self, destination: Destination, message: JmsMessage, connection_id: str) -> list[MessageQueue]:
        """The queue, or the subscriptions, that get a message."""
        if not destination.is_topic:
            return [self.queue(destination)]
        return [one for one in self._subscriptions.get(destination, ()) if one.wants(message, connection_id)]

    def crowded(self, coming: Iterable[tuple[Destination, JmsMessage]], connection_id: str) -> MessageQueue | None:
        """A queue or subscription without room for the coming messages, or None. A transaction with more messages than
        the capacity is accepted if nothing waits there."""
        capacity = self.limits.capacity
        if capacity is None:
            return None
        self._expiry.purge(self.now_ms())
        more: dict[MessageQueue, int] = {}
        for destination, message in coming:
            for queue in self.targets(destination, message, connection_id):
                more[queue] = more.get(queue, 0) + 1
        full = (queue for queue, count in more.items() if len(queue) and len(queue) + count > capacity)
        return next(full, None)

    def publish(self, destination: Destination, message: JmsMessage, connection_id: str) -> None:
        """Puts a stamped message into its queue, or into every subscription that accepts it."""
        self._expiry.purge(message.timestamp_ms or 0)
        if not destination.is_topic:
            self._put(self.queue(destination), message)
            return
        for queue in self.targets(destination, message, connection_id):
            self._put(queue, message)

    def put_back(self, queue: MessageQueue, entries: Iterable[Entry]) -> None:
        """Has delivered messages redelivered, at their old places, or moves them to the dead-letter queue."""
        returned = list(entries)
        if queue.deleted:
            return
        most = self.limits.max_deliveries
        again, spent = returned, []
        if most is not None and queue.destination != self.limits.dead_letter:
            again = [entry for entry in returned if entry.message.delivery_count < most]
            spent = [entry for entry in returned if entry.message.delivery_count >= most]
        fresh = [Entry(entry.sequence, entry.message.again()) for entry in again]
        queue.put_back(fresh)
        for entry in fresh:
            self._expiry.add(entry, queue)
        queue.wake()
        for entry in spent:
            self._park(entry.message)
        self.release(queue)

    def queue(self, destination: Destination) -> MessageQueue:
        """A queue, made where nobody used it yet."""
        found = self._queues.get(destination)
        if found is None:
            found = self._queues[destination] = MessageQueue(destination)
        return found

    def known_queue(self, destination: Destination) -> MessageQueue | None:
        return self._queues.get(destination)

    def readers(self, destination: Destination) -> int:
        if destination.is_topic:
            return sum(one.readers for one in self._subscriptions.get(destination, ()))
        queue = self._queues.get(destination)
        return queue.readers if queue is not None else 0

    def subscribe(self, subscription: Subscription) -> Subscription:
        """Enters a subscription; a durable one that is there already is taken up again, or replaced.

        Raises IllegalStateError where the durable subscription has a consumer that cannot share it."""
        if subscription.durable is not None:
            there = self._durable.get(subscription.durable)
            if there is not None:
                same = there.same_as(subscription)
                if there.readers and not (same and subscription.spec.shared):
                    raise IllegalStateError(f"durable subscription {subscription.durable[1]!r}: a consumer has it")
                if same:
                    return there
                self._drop(there)
            self._durable[subscription.durable] = subscription
        self._subscriptions.setdefault(subscription.destination, {})[subscription] = None
        return subscription

    def unsubscribe(self, key: tuple[str, str]) -> None:
        """Ends a durable subscription; see `Session.unsubscribe` for what it raises."""
        there = self._durable.get(key)
        if there is None:
            raise InvalidDestinationError(f"durable subscription {key[1]!r} does not exist")
        if there.readers or there.held:
            why = "a consumer has it" if there.readers else "messages of it are not acknowledged"
            raise IllegalStateError(f"durable subscription {key[1]!r}: {why}")
        self._drop(there)

    def left(self, queue: MessageQueue) -> None:
        """A consumer of the queue was closed; a subscription that is not durable goes with it."""
        if isinstance(queue, Subscription):
            if queue.durable is None:
                self._drop(queue)
        else:
            queue.wake()
            self.release(queue)

    def release(self, queue: MessageQueue) -> None:
        """Forgets a queue that nobody reads and nothing is in."""
        if not (queue.readers or queue.held or len(queue) or queue.destination.is_topic):
            self._queues.pop(queue.destination, None)

    def _put(self, queue: MessageQueue, message: JmsMessage) -> None:
        entry = Entry(next(self._sequences), message)
        queue.put(entry)
        self._expiry.add(entry, queue)
        queue.wake()

    def _park(self, message: JmsMessage) -> None:
        if not 0 < message.expiration_ms <= self.now_ms():
            self._put(self.queue(self.limits.dead_letter), _parked(message, self.limits.dead_letter))

    def _drop(self, subscription: Subscription) -> None:
        subscription.delete()
        if subscription.durable is not None:
            self._durable.pop(subscription.durable, None)
        there = self._subscriptions.get(subscription.destination, {})
        there.pop(subscription, None)
        if not there:
            self._subscriptions.pop(subscription.destination, None)


class CompletionGate:
    """Holds back the completion of every asynchronous send through a provider, until it is released, made to fail, or
    its `with` block ends. The messages themselves arrive. Thread-safe."""

    def __init__(self, provider: MemoryProvider) -> None:
        self._provider = provider
        self._lock = threading.Condition()
        self._held: list[tuple[Pending, JmsMessage]] = []

    @property
    def held(self) -> tuple[JmsMessage, ...]:
        """The messages as sent whose completion is held, in the order in which they were sent."""
        with self._lock:
            return tuple(sent for _, sent in self._held)

    def await_held(self, count: int, timeout: float) -> bool:
        """Waits until so many completions are held; returns whether that happened within so many seconds."""
        with self._lock:
            return self._lock.wait_for(lambda: len(self._held) >= count, timeout)

    def release(self, index: int = 0) -> None:
        """Lets one completion go, counted from 0 among those that are held: the send succeeded.

        Raises ConfigError where none is held there."""
        pending, sent = self._take(index)
        pending.complete(sent)

    def release_all(self) -> None:
        with self._lock:
            held, self._held = self._held, []
        for pending, sent in held:
            pending.complete(sent)

    def fail(self, error: Exception, index: int = 0) -> None:
        """Has one send fail with what the provider says; see `release`."""
        pending, _ = self._take(index)
        pending.fail(error)

    def hold(self, pending: Pending, sent: JmsMessage) -> None:
        with self._lock:
            self._held.append((pending, sent))
            self._lock.notify_all()

    def _take(self, index: int) -> tuple[Pending, JmsMessage]:
        with self._lock:
            if not 0 <= index < len(self._held):
                raise ConfigError(f"completion {index} is not held: {len(self._held)} are")
            return self._held.pop(index)

    def __enter__(self) -> Self:
        with self._provider.lock:
            if self._provider.gate is not None:
                raise ConfigError("the provider has a gate already")
            self._provider.gate = self
        return self

    def __exit__(self, *_: object) -> None:
        with self._provider.lock:
            self._provider.gate = None
        self.release_all()


def _parked(message: JmsMessage, queue: Destination) -> JmsMessage:
    """Returns the message for the dead-letter queue: it never expires, and its deliveries are counted from zero."""
    count = message.delivery_count
    facts: dict[str, PropertyValue] = {
        ORIGINAL_DESTINATION: str(message.destination),
        REASON: f"delivered {count} times without being acknowledged",
        DELIVERIES: count,
    }
    return replace(
        message,
        properties={**message.properties, **facts},
        destination=queue,
        expiration_ms=0,
        redelivered=False,
        delivery_count=1,
    )
