"""The messages of one queue or subscription, who reads them, and what expires when. The caller holds the lock.

A store is ten ordered dicts, one for each priority of JMS: the next message, a new one, and any one taken out of the
middle cost the same, whatever the length. A selector never sees a message twice: readers with the same one share a
view.

A receiver that finds nothing registers as waiting and sleeps. No wake-up is lost because `MessageQueue.wake` is called
whenever messages are added, or a reader may no longer take what it was woken for: it wakes as many waiting readers as
there are messages for them, and each takes its message itself."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.jms.selector import Selector
from mtosi_jms.transport._session_core import ConsumerSpec

_PRIORITIES: Final = 10
_SLACK: Final = 64


@dataclass(slots=True, eq=False)
class Entry:
    """A message inside the provider. `sequence`: its place in the order of arrival, kept when it is delivered again."""

    sequence: int
    message: JmsMessage
    settled: bool = False


class MessageStore:
    """Messages waiting for delivery: the highest priority first, then first in, first out."""

    __slots__ = ("_buckets", "size")

    def __init__(self) -> None:
        self._buckets: tuple[OrderedDict[int, Entry], ...] = tuple(OrderedDict() for _ in range(_PRIORITIES))
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Entry]:
        for bucket in reversed(self._buckets):
            yield from bucket.values()

    def put(self, entry: Entry) -> None:
        self._buckets[entry.message.priority][entry.sequence] = entry
        self.size += 1

    def put_back(self, entries: Iterable[Entry]) -> None:
        for entry in sorted(entries, key=lambda one: one.sequence, reverse=True):
            self._return(self._buckets[entry.message.priority], entry)
            self.size += 1

    def take(self, now_ms: int) -> Entry | None:
        """Removes and returns the next entry; those that expired on the way are dropped."""
        if not self.size:
            return None
        for bucket in reversed(self._buckets):
            while bucket:
                _, entry = bucket.popitem(last=False)
                self.size -= 1
                if not 0 < entry.message.expiration_ms <= now_ms:
                    return entry
        return None

    def holds(self, priority: int, sequence: int) -> bool:
        return sequence in self._buckets[priority]

    def discard(self, priority: int, sequence: int) -> None:
        if self._buckets[priority].pop(sequence, None) is not None:
            self.size -= 1

    @staticmethod
    def _return(bucket: OrderedDict[int, Entry], entry: Entry) -> None:
        earlier: list[Entry] = []  # returned before us by somebody else, and older
        while bucket and (first := next(iter(bucket))) < entry.sequence:
            earlier.append(bucket.pop(first))
        for one in (entry, *reversed(earlier)):
            bucket[one.sequence] = one
            bucket.move_to_end(one.sequence, last=False)


class Holder(Protocol):
    def holds(self, priority: int, sequence: int) -> bool: ...

    def discard(self, priority: int, sequence: int) -> None: ...


class ExpiryIndex:
    """When entries expire, and who holds them. Consumed entries are skipped, and removed from time to time."""

    __slots__ = ("_heap", "_limit", "_tie")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, int, Holder]] = []
        self._limit = _SLACK
        self._tie = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, entry: Entry, holder: Holder) -> None:
        """Notes an entry that was put somewhere, if it expires at all."""
        message = entry.message
        if not message.expiration_ms:
            return
        if len(self._heap) >= self._limit:
            self._clear_out()
        heapq.heappush(self._heap, (message.expiration_ms, next(self._tie), entry.sequence, message.priority, holder))

    def purge(self, now_ms: int) -> None:
        while self._heap and self._heap[0][0] <= now_ms:
            _, _, sequence, priority, holder = heapq.heappop(self._heap)
            holder.discard(priority, sequence)

    def _clear_out(self) -> None:
        self._heap = [item for item in self._heap if item[4].holds(item[3], item[2])]
        heapq.heapify(self._heap)
        self._limit = max(_SLACK, 2 * len(self._heap))


@dataclass(slots=True, eq=False)
class View:
    """The messages of a queue for readers with the same selector. An empty text or no selector means all messages."""

    text: str = ""
    selector: Selector | None = None
    store: MessageStore = field(default_factory=MessageStore)
    readers: int = 0

    def accepts(self, message: JmsMessage) -> bool:
        return self.selector is None or self.selector.accepts(message)


class Reader(Protocol):
    view: View

    def may_take(self) -> bool: ...

    def signal(self) -> None: ...


class MessageQueue:
    """The messages of one queue, or of one subscription to a topic. `all`: those nobody was handed. `waiting`: readers
    asleep, the longest first. `held`: how many are handed out. `deleted`: what comes back to it is dropped."""

    __slots__ = ("_room", "_views", "all", "deleted", "destination", "held", "readers", "waiting")

    def __init__(self, destination: Destination) -> None:
        self.destination = destination
        self._room: threading.Condition | None = None  # few queues ever have a sender that waits
        self.all = View()
        self.waiting: dict[Reader, None] = {}
        self.readers = 0
        self.held = 0
        self.deleted = False
        self._views: dict[str, View] = {}

    def __len__(self) -> int:
        return self.all.store.size

    def attach(self, text: str, selector: Selector | None) -> View:
        """A view for a new reader: of all messages, or of what its selector accepts."""
        self.readers += 1
        if selector is None:
            return self.all
        view = self._views.get(text)
        if view is None:
            view = self._views[text] = View(text, selector)
            for entry in self.all.store:
                if selector.accepts(entry.message):
                    view.store.put(entry)
        view.readers += 1
        return view

    def detach(self, view: View) -> None:
        self.readers -= 1
        if view is not self.all:
            view.readers -= 1
            if not view.readers:
                del self._views[view.text]

    def put(self, entry: Entry) -> None:
        """Adds a new message; `wake` is left to the caller."""
        self.all.store.put(entry)
        for view in self._views.values():
            if view.accepts(entry.message):
                view.store.put(entry)

    def put_back(self, entries: Iterable[Entry]) -> None:
        again = list(entries)
        self.all.store.put_back(again)
        for view in self._views.values():
            view.store.put_back([entry for entry in again if view.accepts(entry.message)])

    def take(self, view: View, now_ms: int) -> Entry | None:
        entry = view.store.take(now_ms)
        if entry is not None:
            if self._views:
                self.discard(entry.message.priority, entry.sequence)
            if self._room is not None:
                self.tell_senders()
        return entry

    def await_room(self, lock: threading.Lock, seconds: float) -> None:
        """Waits, without the lock, until `tell_senders`."""
        if self._room is None:
            self._room = threading.Condition(lock)
        self._room.wait(seconds)

    def tell_senders(self) -> None:
        """Has senders that wait for room look again."""
        if self._room is not None:
            self._room.notify_all()

    def live(self, now_ms: int) -> list[JmsMessage]:
        """The messages that wait here, in the order of delivery, without those that expired."""
        messages = (entry.message for entry in self.all.store)
        return [message for message in messages if not 0 < message.expiration_ms <= now_ms]

    def holds(self, priority: int, sequence: int) -> bool:
        return self.all.store.holds(priority, sequence)

    def discard(self, priority: int, sequence: int) -> None:
        self.all.store.discard(priority, sequence)
        for view in self._views.values():
            view.store.discard(priority, sequence)

    def delete(self) -> None:
        """It is gone, with its messages; senders that wait for its room need not."""
        self.deleted = True
        self.tell_senders()

    def wake(self) -> None:
        """Wakes one waiting reader for each message that it may take."""
        if not self.waiting or not self.all.store.size:
            return
        left: dict[str, int] = {}
        woken = []
        for reader in self.waiting:
            if not reader.may_take():
                continue
            view = reader.view
            count = left.get(view.text, view.store.size)
            if count:
                woken.append(reader)
                left[view.text] = count - 1
            elif not self._views:
                break
        for reader in woken:
            del self.waiting[reader]
            reader.signal()


class Subscription(MessageQueue):
    """One subscriber's subscription to a topic; it gets copies. `durable`: its client id and name, or None.
    `connection_id`: whose it is, or was, where `no_local`."""

    __slots__ = ("connection_id", "durable", "spec")

    def __init__(self, spec: ConsumerSpec, client_id: str) -> None:
        super().__init__(spec.destination)
        self.spec = spec
        self.durable = None if spec.durable is None else (client_id, spec.durable)
        self.connection_id = ""

    def wants(self, message: JmsMessage, connection_id: str) -> bool:
        """Whether it gets a message that a connection sends."""
        if self.spec.no_local and connection_id == self.connection_id:
            return False
        return self.spec.selector is None or self.spec.selector.accepts(message)

    def same_as(self, other: Subscription) -> bool:
        """Whether another one asks for the same: topic, selector, `shared` and `no_local`."""
        return self.spec._replace(selector=None) == other.spec._replace(selector=None)  # `text` has it
