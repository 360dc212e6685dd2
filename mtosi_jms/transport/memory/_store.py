"""The messages of one queue in the order of delivery, and what expires when. Plain data: the caller holds the lock.

JMS has ten priorities, so a queue is ten ordered dicts: the next message, a new one, and any one taken out of the
middle all cost the same whatever the length. Expired messages go as soon as anything at all is sent, also from queues
that nobody reads.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from mtosi_jms.jms.message import JmsMessage

_PRIORITIES: Final = 10
_SLACK: Final = 64


@dataclass(slots=True, eq=False)
class Entry:
    """A message inside the provider.

    Attributes:
        sequence: its place in the order of arrival, unique in the provider, kept when it is delivered again.
        message: as the next consumer will see it.
        settled: acknowledged, and not to come again.
    """

    sequence: int
    message: JmsMessage
    settled: bool = False


class MessageStore:
    """Messages waiting for delivery: the highest priority first, then first in, first out."""

    __slots__ = ("_buckets", "_size")

    def __init__(self) -> None:
        self._buckets: tuple[OrderedDict[int, Entry], ...] = tuple(OrderedDict() for _ in range(_PRIORITIES))
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Entry]:
        for bucket in reversed(self._buckets):
            yield from bucket.values()

    def put(self, entry: Entry) -> None:
        """Adds a new entry behind all others of its priority."""
        self._buckets[entry.message.priority][entry.sequence] = entry
        self._size += 1

    def put_back(self, entries: Iterable[Entry]) -> None:
        """Returns entries that were taken to their old places."""
        for entry in sorted(entries, key=lambda one: one.sequence, reverse=True):
            self._return(self._buckets[entry.message.priority], entry)
            self._size += 1

    def take(self, now_ms: int) -> Entry | None:
        """Removes and returns the next entry; those that expired on the way are dropped."""
        if not self._size:
            return None
        for bucket in reversed(self._buckets):
            while bucket:
                _, entry = bucket.popitem(last=False)
                self._size -= 1
                if not 0 < entry.message.expiration_ms <= now_ms:
                    return entry
        return None

    def holds(self, priority: int, sequence: int) -> bool:
        """Whether the entry is waiting here."""
        return sequence in self._buckets[priority]

    def discard(self, priority: int, sequence: int) -> None:
        """Removes an entry, if it is here."""
        if self._buckets[priority].pop(sequence, None) is not None:
            self._size -= 1

    @staticmethod
    def _return(bucket: OrderedDict[int, Entry], entry: Entry) -> None:
        earlier: list[Entry] = []  # returned before us by somebody else, and older
        while bucket and (first := next(iter(bucket))) < entry.sequence:
            earlier.append(bucket.pop(first))
        for one in (entry, *reversed(earlier)):
            bucket[one.sequence] = one
            bucket.move_to_end(one.sequence, last=False)


class Holder(Protocol):
    """What holds entries: a store, or a queue with all its stores."""

    def holds(self, priority: int, sequence: int) -> bool:
        """Whether the entry is waiting here."""
        ...

    def discard(self, priority: int, sequence: int) -> None:
        """Removes an entry, if it is here."""
        ...


class ExpiryIndex:
    """Which entries expire when, and who holds them. What was consumed since is skipped, and cleared out in time."""

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
        """Drops what has expired."""
        while self._heap and self._heap[0][0] <= now_ms:
            _, _, sequence, priority, holder = heapq.heappop(self._heap)
            holder.discard(priority, sequence)

    def _clear_out(self) -> None:
        self._heap = [item for item in self._heap if item[4].holds(item[3], item[2])]
        heapq.heapify(self._heap)
        self._limit = max(_SLACK, 2 * len(self._heap))
