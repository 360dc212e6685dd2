"""How a connection talks to its broker: by one link at a time, made again when it is lost.

Nothing is sent while the connection's lock is held, for the thread that reads needs it: a broker that waits for us to
read would wait for ever.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from mtosi_jms.errors import ConfigError, InvalidDestinationError, WriteError
from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport._descriptor import Capability
from mtosi_jms.transport._session_core import ConsumerSpec, T
from mtosi_jms.transport.stomp._frames import Frame, Received, encode
from mtosi_jms.transport.stomp._link import Link, OnSettled
from mtosi_jms.transport.stomp._messages import incoming, outgoing
from mtosi_jms.transport.stomp._options import Address, StompOptions
from mtosi_jms.transport.stomp._reconnector import Reconnector
from mtosi_jms.transport.stomp._subscriptions import Collector, Entry, Feed, Subscriptions, goodbye
from mtosi_jms.transport.stomp._temporary import Temporaries
from mtosi_jms.transport.stomp._transaction import Transaction, transact

log = logging.getLogger(__package__)

_TOPIC_WINDOW: Final = 32_766
"""Messages on the way to a subscriber: what a topic does not keep must not wait at the broker for room."""
_REMEMBERED: Final = 10_000
_MILLISECONDS: Final = 1000


class Channel:
    """What all sessions of a connection talk by; for any number of threads.

    Args:
        owner: id of the connection.
        lock: of the connection; guards what is in here.
        addresses: of the brokers, in the order in which they are tried.
        options: see `StompOptions`.
        on_lost: called with the lock held when a link was lost.
        on_change: called with the lock held when there is another link, or no more will come.
        on_reconnected: called when there is another link.
    """

    def __init__(
        self,
        owner: str,
        lock: threading.Lock,
        addresses: Sequence[Address],
        options: StompOptions,
        on_lost: Callable[[], None],
        on_change: Callable[[], None],
        on_reconnected: Callable[[], None],
    ) -> None:
        self.lock = lock
        self.options = options
        self.wake_all = on_change
        self.on_reconnected = on_reconnected
        self._tell_lost = on_lost
        self._subscriptions = Subscriptions(lock, options)
        self._collector = Collector(lock, options.send_timeout)
        self._returned: dict[str, None] = {}
        self._unsent: list[bytes] = []
        self._numbers = itertools.count(1)
        self._reconnector = Reconnector(addresses, options, self)
        self.dialect = self._reconnector.open()
        self._temporaries = Temporaries(owner, options.client_id, self.dialect, self._collector)
        self._reconnector.start(f"reconnector-{owner}")

    @property
    def address(self) -> Address:
        """Of the broker that it is, or was last, connected to."""
        return self._reconnector.address

    @property
    def link(self) -> Link | None:
        """The link that is up; None where it was lost."""
        return self._reconnector.current

    # The caller of every method below holds the lock.

    def check_alive(self) -> None:
        """Raises TransportError where no broker could be reached again."""
        self._reconnector.check()

    def check_reader(self, destination: Destination) -> None:
        """Raises InvalidDestinationError where the connection may not receive from a destination."""
        if destination.is_temporary and destination not in self._temporaries:
            raise InvalidDestinationError(
                f"{destination}: it is gone, or another connection's: only that may receive from it (R2c)"
            )

    def claim(self, durable: str) -> None:
        """Raises IllegalStateError where a consumer has the durable subscription, ConfigError without a client id."""
        if not self.options.client_id:
            raise ConfigError("durable subscriptions are known by the connection's client id: give client_id")
        self._subscriptions.check_free(durable)

    def note_returned(self, entries: Iterable[Entry]) -> None:
        """Messages that were handed out go back to the broker: Artemis does not mark them when they come again."""
        self._returned.update((entry.message.message_id, None) for entry in entries if entry.message.message_id)
        for oldest in list(itertools.islice(self._returned, max(len(self._returned) - _REMEMBERED, 0))):
            del self._returned[oldest]

    # What follows does not hold the lock: it talks to the broker.

    def goodbye(self) -> float:
        """When what is being closed waits no longer for the broker, by the monotonic clock."""
        return goodbye(self.options)

    def close(self, deadline: float) -> None:
        """Waits until everything sent has arrived, up to the deadline, and ends the connection."""
        self._reconnector.close(deadline)

    def prepare(self, destination: Destination, message: JmsMessage) -> tuple[JmsMessage, Frame]:
        """A message as it is sent, and its frame.

        Raises:
            ConfigError: STOMP cannot carry it.
        """
        sent = message.stamped(destination, message_id=None, timestamp_ms=int(time.time() * _MILLISECONDS))
        reply = None if sent.reply_to is None else self._reply_address(sent.reply_to)
        headers, body = outgoing(self.dialect, self._address(destination), sent, reply)
        return sent, ("SEND", headers, body)

    def send(
        self,
        frame: Frame,
        *,
        confirmed: bool = False,
        on_settled: OnSettled | None = None,
        timeout: float | None = None,
    ) -> None:
        """Sends a frame; waits for a link where it was lost, and tries the next one as long as none has written it.

        `confirmed` and `on_settled` are those of `Link.send`; `timeout` is in seconds, at most the send time-out."""
        longest = self.options.send_timeout
        deadline = time.monotonic() + (longest if timeout is None else min(timeout, longest))
        while True:
            link = self._reconnector.link(deadline)
            try:
                link.send([frame], deadline, confirmed=confirmed, on_settled=on_settled)
            except WriteError:  # the broker has not got it, so that it may be sent on another link
                if time.monotonic() >= deadline or self._reconnector.is_closed:
                    raise
            else:
                return

    def send_soon(self, frame: Frame, *, can_wait: bool) -> bool:
        """Has a frame sent soon, also on the next link where this one is lost before; see `Link.send_soon`.

        Returns:
            Whether it was taken; not so without a link, or where it would overtake others.
        """
        with self.lock:
            link = None if self._unsent else self._reconnector.current
        return link is not None and link.send_soon(encode(*frame), can_wait=can_wait)

    def transact(self, begun: Transaction | None, sends: Sequence[Frame], entries: Sequence[Entry]) -> None:
        """Sends and acknowledges as one transaction, one that was begun or another; see `transaction.transact`."""
        deadline = time.monotonic() + self.options.send_timeout
        one = begun or self.transaction_on(self._reconnector.link(deadline))
        transact(one, sends, entries, deadline, begun=begun is not None, at_once=self.dialect.fails_commit)

    def transaction_on(self, link: Link) -> Transaction:
        """A transaction that the broker does not know yet."""
        return Transaction(link, f"t{next(self._numbers)}")

    def acknowledge(self, entries: Iterable[Entry], deadline: float | None = None) -> None:
        """Tells the broker that messages are done with: at once, or within 5 ms where more wait for the same reader.

        Raises TransportError where it cannot be told; then it will deliver them again."""
        links: dict[Link, list[Frame]] = {}
        more = False
        for entry in entries:
            links.setdefault(entry.link, []).append(entry.acknowledgement())
            more = more or bool(entry.subscription.feed.buffer)
        for link, frames in links.items():
            link.send(frames, deadline, coalesced=more and deadline is None)  # with a deadline it must be done now

    def subscribe(self, feed: Feed, factor: int = 1) -> None:
        """Makes a subscription with `factor` times the usual window; messages come from the return on."""
        asked = feed.asked
        window = _TOPIC_WINDOW if asked.destination.is_topic else self.options.prefetch * factor
        headers = self.dialect.subscribing(asked, window)
        self._subscriptions.make(self._some_link(), self._address(asked.destination), headers, feed)

    def widen(self, feed: Feed) -> None:
        """Makes one more subscription to a queue, where as many messages are held unacknowledged as may be on the way.

        STOMP has no word for "more of them, though none is acknowledged": without this, a transaction of more messages
        would wait for ever.
        """
        allowed = self.options.prefetch * (2 ** len(feed.subscriptions) - 1)
        if feed.held >= allowed and not feed.asked.destination.is_topic and not feed.closed:
            self.subscribe(feed, 2 ** len(feed.subscriptions))

    def renew(self, feeds: Iterable[Feed]) -> None:
        """Has all that came by the subscriptions of some feeds, and was not acknowledged, delivered again."""
        self._subscriptions.renew(feeds, time.monotonic() + self.options.send_timeout)

    def unsubscribe(self, feed: Feed, deadline: float) -> None:
        """Ends subscriptions; the broker delivers again what was not acknowledged."""
        with self.lock:
            ended, feed.subscriptions = feed.subscriptions, []
            feed.buffer.clear()
        self._subscriptions.end(ended, deadline)

    def end_durable(self, durable: str) -> None:
        """Ends a durable subscription, with all that it kept."""
        self.send(("UNSUBSCRIBE", self.dialect.unsubscribing(durable), b""), confirmed=True)

    def make_temporary(self, kind: type[T]) -> T:
        """Makes a temporary destination."""
        return self._temporaries.make(kind, self._some_link())

    def browse(self, asked: ConsumerSpec) -> list[JmsMessage]:
        """What waits at a queue.

        Raises:
            ConfigError: the broker's STOMP has no browser.
        """
        if Capability.BROWSE not in self.dialect.capabilities:
            raise ConfigError(f"{self.dialect.provider} has no browser over STOMP")
        headers = {**self.dialect.subscribing(asked, self.options.prefetch), "browser": "true"}
        address = self._address(asked.destination)
        found = self._collector.collect(self._some_link(), address, headers, lambda one: "browser" in one)
        return [self._message(headers, body, asked.destination) for headers, body in found[:-1]]

    def restore(self, link: Link) -> None:
        """Makes on a new link what was there on the one that was lost, and hands on what that has not written.

        Raises:
            MtosiError: the broker refuses some of it.
        """
        self._temporaries.restore(link)
        self._subscriptions.restore(link)
        with self.lock:
            frames, self._unsent = self._unsent, []
        if frames and not link.send_soon(*frames):
            with self.lock:
                self._unsent[:0] = frames

    def _some_link(self) -> Link:
        """The link that is up, waited for where it was lost."""
        return self._reconnector.link(time.monotonic() + self.options.send_timeout)

    def _address(self, destination: Destination) -> str:
        """A destination's header; temporary ones of our own have a name that outlives the STOMP connection."""
        return self._temporaries.address(destination) or self.dialect.address(destination)

    def _reply_address(self, destination: Destination) -> str:
        own = self._temporaries.address(destination) if self.dialect.temporary else None
        return own or self.dialect.reply_address(destination)

    def _message(self, headers: Mapping[str, str], body: bytes, consumed: Destination) -> JmsMessage:
        return incoming(self.dialect, headers, body, consumed, self._temporaries.destination)

    # What follows runs in the thread that reads, and must not talk to the broker.

    def on_messages(self, link: Link, frames: Sequence[Received]) -> None:
        """Messages came: they go to their consumers, for other threads to take, which are woken once for all."""
        came: list[Entry] = []
        for _, headers, body in frames:
            number = headers.get("subscription", "")
            subscription = self._subscriptions.find(number)
            if subscription is None:
                with self.lock:
                    self._collector.takes(number, headers, body)
            elif subscription.link is link:
                message = self._message(headers, body, subscription.feed.asked.destination)
                came.append(Entry(subscription, link, headers.get("ack", ""), message))
        if not came:
            return
        with self.lock:
            for entry in came:
                if self._subscriptions.find(entry.subscription.number) is not None and not entry.is_stale:
                    self._take(entry)
            for feed in dict.fromkeys(entry.subscription.feed for entry in came):
                feed.signal()

    def _take(self, entry: Entry) -> None:
        message = entry.message
        if self._returned and message.message_id in self._returned:
            del self._returned[message.message_id]
            entry.message = message if message.redelivered else message.again()
        entry.subscription.feed.buffer.append(entry)

    def on_unsent(self, frames: Sequence[bytes]) -> None:
        """What `send_soon` gave to a link never went out, and the link is at its end."""
        log.warning("%d messages were not written when the connection was lost: they wait for another", len(frames))
        with self.lock:
            self._unsent.extend(frames)

    def on_lost(self, link: Link) -> None:
        """A link was lost: what is not acknowledged comes again, if the broker keeps it at all."""
        with self.lock:
            self._subscriptions.lost(link, is_told=self.options.reconnect)
            self._collector.end()
            self._reconnector.notify()
            self._tell_lost()
