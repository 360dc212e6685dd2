"""The messages of one queue or subscription, who reads them, and who is woken when there are some.

A selector never has a message looked at twice: readers with the same one share a view, which holds what it accepts of
the queue and is kept as messages come and go. So a receive costs the same whatever the length of the queue, and the
order is the queue's own.

A receiver that finds nothing registers as waiting and sleeps. The rule that no wake-up is lost: whenever messages are
added, or a reader may no longer take what it was woken for, `MessageQueue.wake` wakes as many waiting readers as there
are messages for them, and each takes its message itself, under the lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport.memory._store import Entry, MessageStore


class Selector(Protocol):
    """A parsed selector."""

    def accepts(self, message: JmsMessage) -> bool:
        """Whether the condition is true for the message; false and unknown are no."""
        ...


@dataclass(slots=True, eq=False)
class View:
    """What readers with the same selector see of a queue.

    Attributes:
        text: the selector, empty for all messages.
        selector: the same, parsed; None for all.
        store: the messages that it accepts.
        readers: how many consumers have it.
    """

    text: str = ""
    selector: Selector | None = None
    store: MessageStore = field(default_factory=MessageStore)
    readers: int = 0

    def accepts(self, message: JmsMessage) -> bool:
        """Whether its readers see the message."""
        return self.selector is None or self.selector.accepts(message)


class Reader(Protocol):
    """What a queue knows of a consumer.

    Attributes:
        view: what it reads.
    """

    view: View

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
        all: every message that nobody was handed.
        waiting: readers asleep, the longest first.
        readers: how many consumers it has.
        unsettled: how many messages are handed out and not acknowledged.
        deleted: it went with its connection or subscription; what comes back to it is dropped.
        room: notified when senders that wait for room should look again.
    """

    __slots__ = ("_views", "all", "deleted", "destination", "readers", "room", "unsettled", "waiting")

    def __init__(self, destination: Destination, lock: threading.Lock) -> None:
        self.destination = destination
        self.room = threading.Condition(lock)
        self.all = View()
        self.waiting: dict[Reader, None] = {}
        self.readers = 0
        self.unsettled = 0
        self.deleted = False
        self._views: dict[str, View] = {}

    def __len__(self) -> int:
        return len(self.all.store)

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
        """A reader is gone."""
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
        """Returns messages that were taken to their old places; `wake` is left to the caller."""
        again = list(entries)
        self.all.store.put_back(again)
        for view in self._views.values():
            view.store.put_back([entry for entry in again if view.accepts(entry.message)])

    def take(self, view: View, now_ms: int) -> Entry | None:
        """Removes and returns the next message of a view."""
        entry = view.store.take(now_ms)
        if entry is not None:
            if self._views:
                self.discard(entry.message.priority, entry.sequence)
            self.room.notify_all()
        return entry

    def live(self, now_ms: int) -> list[JmsMessage]:
        """The messages that wait here, in the order of delivery, without those that expired."""
        messages = (entry.message for entry in self.all.store)
        return [message for message in messages if not 0 < message.expiration_ms <= now_ms]

    def holds(self, priority: int, sequence: int) -> bool:
        """Whether the message is waiting here."""
        return self.all.store.holds(priority, sequence)

    def discard(self, priority: int, sequence: int) -> None:
        """Removes a message, if it is here."""
        self.all.store.discard(priority, sequence)
        for view in self._views.values():
            view.store.discard(priority, sequence)

    def delete(self) -> None:
        """It is gone, with its messages; senders that wait for its room need not."""
        self.deleted = True
        self.room.notify_all()

    def wake(self) -> None:
        """Wakes one waiting reader for each message that it may take."""
        if not self.waiting or not self.all.store:
            return
        left: dict[str, int] = {}
        woken = []
        for reader in self.waiting:
            if not reader.may_take():
                continue
            view = reader.view
            count = left.get(view.text, len(view.store))
            if count:
                woken.append(reader)
                left[view.text] = count - 1
            elif not self._views:
                break
        for reader in woken:
            del self.waiting[reader]
            reader.signal()


class Subscription(MessageQueue):
    """What one subscriber to a topic gets: a copy of each message, where its selector accepts it.

    Attributes:
        text: the selector, empty where there is none.
        selector: the same, parsed.
        durable: its client id and name; None where it ends with its consumer.
        no_local: whether it leaves out what its own connection sends.
        connection_id: whose it is, or was, where `no_local`.
    """

    __slots__ = ("connection_id", "durable", "no_local", "selector", "text")

    def __init__(
        self,
        destination: Destination,
        lock: threading.Lock,
        *,
        text: str = "",
        selector: Selector | None = None,
        durable: tuple[str, str] | None = None,
        no_local: bool = False,
    ) -> None:
        super().__init__(destination, lock)
        self.text = text
        self.selector = selector
        self.durable = durable
        self.no_local = no_local
        self.connection_id = ""

    def wants(self, message: JmsMessage, connection_id: str) -> bool:
        """Whether it gets a message that a connection sends."""
        if self.no_local and connection_id == self.connection_id:
            return False
        return self.selector is None or self.selector.accepts(message)

    def same_as(self, other: Subscription) -> bool:
        """Whether another one asks for the same: topic, selector and `no_local`."""
        return (self.destination, self.text, self.no_local) == (other.destination, other.text, other.no_local)
