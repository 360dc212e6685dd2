"""The way of a connection to its broker: one link at a time, replaced when it is lost.

Nothing is sent while the connection's lock is held, because the reading thread needs the lock: if the broker waited for
us to read, both sides would block for ever.
"""

from __future__ import annotations

import itertools
import logging
import math
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Final

from mtosi_jms.errors import (
    AuthenticationError,
    ClientIdInUseError,
    ConfigError,
    IllegalStateError,
    InvalidDestinationError,
    MtosiError,
    TransportError,
    UnansweredError,
    WriteError,
)
from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport._descriptor import Capability
from mtosi_jms.transport._session_core import ConsumerSpec, T
from mtosi_jms.transport._threads import ReconnectPauses
from mtosi_jms.transport.stomp._dialect import Dialect, dialect_of
from mtosi_jms.transport.stomp._frames import Frame, Received, encode
from mtosi_jms.transport.stomp._lacking import Management, Temporaries, forget, has_changed
from mtosi_jms.transport.stomp._link import Link, OnSettled
from mtosi_jms.transport.stomp._messages import incoming, outgoing
from mtosi_jms.transport.stomp._options import Address, StompOptions
from mtosi_jms.transport.stomp._subscriptions import Collector, Entry, Feed, Subscriptions, Transaction, transact

log = logging.getLogger(__package__)

_ATTEMPTS: Final = 3
"""Maximum attempts at a broker that closes the connection without an answer."""


class Links(ABC):
    """A connection's links, one at a time: opens them, exchanges heart-beats, makes another when one is lost.

    The lock is the connection's. With it held, `wake_all` is called: there is another link, or none will come."""

    def __init__(
        self,
        addresses: Sequence[Address],
        options: StompOptions,
        lock: threading.Lock,
        wake_all: Callable[[], None],
        on_reconnected: Callable[[], None],
    ) -> None:
        self.lock = lock
        self.options = options
        self.address = addresses[0]
        self._addresses = tuple(addresses)
        self._wake_all = wake_all
        self._on_reconnected = on_reconnected
        self._changed = threading.Condition(lock)
        self._link: Link | None = None
        self._trying: Link | None = None
        self._pauses = ReconnectPauses()
        self._since = 0.0
        self._dialect: Dialect | None = None
        self._failed: MtosiError | None = None
        self._closed = threading.Event()
        self._deadline: float | None = None

    @abstractmethod
    def restore(self, link: Link) -> None:
        """Restores on a new link what existed on the lost one. Raises MtosiError: the broker refuses some of it."""

    # The three methods below are called by a link.

    @abstractmethod
    def on_messages(self, link: Link, frames: Sequence[Received]) -> None: ...

    @abstractmethod
    def on_unsent(self, frames: Sequence[bytes]) -> None: ...

    @abstractmethod
    def on_lost(self, link: Link) -> None: ...

    def open(self) -> Dialect:
        """Connects to the first broker that can be reached. Raises MtosiError: for several brokers, the last error."""
        link = self._first(self._addresses)
        self._dialect = dialect_of(link.headers.get("server", ""), link.address)
        with self.lock:
            self._link, self._trying = link, None
            self._since = time.monotonic()
        return self._dialect

    def start(self, name: str) -> None:
        work = (weakref.ref(self), self._changed, self._closed)
        threading.Thread(target=_look_after, args=work, name=name, daemon=True).start()

    def link_by(self, deadline: float) -> Link:
        """Returns the link; waits for a new one if it was lost. Raises IllegalStateError: closed; TransportError: none
        came in time, or it was closed meanwhile; nothing was sent."""
        with self.lock:
            self.check_alive()
            while self._link is None or not self._link.is_up:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise TransportError(f"{self.address}: the connection is lost and not yet restored; not sent")
                self._changed.wait(remaining)
                if self._closed.is_set():
                    raise TransportError(f"{self.address}: the connection was closed meanwhile; not sent")
                self.check_alive()
            return self._link

    def close(self, deadline: float) -> None:
        """Disconnects, waiting for an answer until the deadline. Does not wait for a connection that is being made."""
        with self.lock:
            self._closed.set()
            link, trying = self._link, self._trying
            self._changed.notify_all()
        if trying is not None:
            trying.end(TransportError("the connection is closed"))
        if link is not None and link.lost is None:
            link.close(deadline)

    # The methods below are called with the connection's lock held.

    def check_alive(self) -> None:
        """Raises TransportError if reconnecting failed for good, IllegalStateError if the connection was closed."""
        if self._closed.is_set():
            raise IllegalStateError("the connection is closed")
        if self._failed is not None:
            kind = type(self._failed) if isinstance(self._failed, TransportError) else TransportError
            raise kind(str(self._failed))

    @property
    def link(self) -> Link | None:
        return self._link if self._link is not None and self._link.is_up else None

    # The methods below run in a separate thread.

    def _look(self) -> tuple[float, Link | None] | None:
        """Checks the link. Returns the seconds until the next check, and the link whose loss ends them; or None."""
        if self._closed.is_set():
            return None
        try:
            return self._keep()
        except Exception as error:  # threads that wait for a connection must learn that none will come
            log.exception("the connection cannot be looked after any more")
            self._give_up(TransportError(f"{self.address}: the connection was lost: {type(error).__name__}"))
            return None

    def _keep(self) -> tuple[float, Link | None] | None:
        link = self._link
        if link is not None and link.lost is None:
            return link.watch(time.monotonic()), link
        if self._deadline is not None:
            return self._renew(self._deadline)
        lost = link.lost if link is not None else None
        log.warning("%s", lost)
        if not self.options.reconnect:
            self._give_up(lost or TransportError("the connection was lost"))
            return None
        patience = self.options.reconnect_timeout
        self._deadline = math.inf if patience is None else time.monotonic() + patience
        self._pauses.after(time.monotonic() - self._since)
        return self._rest(self._deadline)

    def _renew(self, deadline: float) -> tuple[float, Link | None] | None:
        try:
            link = self._restored()
        except MtosiError as error:
            if isinstance(error, AuthenticationError | ConfigError) or time.monotonic() >= deadline:
                self._give_up(error)
                return None
            log.warning("%s: not yet connected again: %s: %s", self.address, type(error).__name__, error)
            return self._rest(deadline)
        return (0.0, link) if self._adopt(link) else None

    def _rest(self, deadline: float) -> tuple[float, None]:
        return min(self._pauses.next(), max(deadline - time.monotonic(), 0.0)), None

    def _restored(self) -> Link:
        link = self._first(self._order())
        try:
            self.restore(link)
        except MtosiError as error:  # the broker must not go on to send messages to it
            link.end(TransportError(f"{link.address}: not all of the connection could be made again: {error}"))
            raise
        return link

    def _order(self) -> list[Address]:
        place = self._addresses.index(self.address) + 1
        return [*self._addresses[place:], *self._addresses[:place]]

    def _first(self, addresses: Sequence[Address]) -> Link:
        failures: list[MtosiError] = []
        for address in addresses:
            try:
                link = self._attempt(address)
            except ClientIdInUseError as error:
                # After a loss the broker may not have noticed yet that the old connection is gone.
                failures.append(error if self._dialect is None else TransportError(str(error)))
            except MtosiError as error:
                failures.append(error)
            else:
                self.address = address
                return link
        # While reconnecting, a refusal by one of several brokers is not final: another one may accept.
        passing = (one for one in failures if self._dialect and not isinstance(one, AuthenticationError | ConfigError))
        raise next(passing, failures[-1])

    def _attempt(self, address: Address) -> Link:
        """Opens a link to a broker. ActiveMQ closes about 1% of the connections that it refuses without a reason."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._open(address)
            except UnansweredError as error:
                log.info("%s", error)
        return self._open(address)

    def _open(self, address: Address) -> Link:
        hooks = _weakly(self.on_messages), _weakly(self.on_lost), _weakly(self.on_unsent)
        link = Link(address, self.options, *hooks)
        with self.lock:
            if self._closed.is_set():
                raise IllegalStateError("the connection is closed")
            self._trying = link
        try:
            link.open()
            dialect = dialect_of(link.headers.get("server", ""), address)
            if self._dialect is not None and type(dialect) is not type(self._dialect):
                raise ConfigError(
                    f"{address}: this broker is {dialect.provider}, the one before was {self._dialect.provider}"
                )
        except BaseException:
            link.end(TransportError(f"{address}: it was not taken"))
            raise
        return link

    def _adopt(self, link: Link) -> bool:
        with self.lock:
            self._link, self._trying = link, None
            self._since, self._deadline = time.monotonic(), None
            self._changed.notify_all()
            self._wake_all()
            closed = self._closed.is_set()
        log.warning("%s: connected again", link.address)
        self._on_reconnected()
        if closed:
            link.end(TransportError("the connection is closed"))
        return not closed

    def _give_up(self, error: MtosiError) -> None:
        with self.lock:
            self._failed = error
            self._trying = None
            self._changed.notify_all()
            self._wake_all()


def _look_after(links: weakref.ref[Links], changed: threading.Condition, closed: threading.Event) -> None:
    """Watches a link. Between checks it does not keep the connection alive, so a dropped connection ends."""
    while (alive := links()) is not None and (look := alive._look()) is not None:
        del alive
        seconds, link = look
        with changed:
            changed.wait_for(lambda link=link: closed.is_set() or (link is not None and link.lost), seconds)  # type: ignore[misc]


def _weakly(method: Callable[..., object]) -> Callable[..., None]:
    """Returns a function that calls a method while its object exists, without keeping the object alive."""
    known = weakref.WeakMethod(method)

    def call(*args: object) -> None:
        alive = known()
        if alive is not None:
            alive(*args)

    return call


_TOPIC_WINDOW: Final = 32_766
"""The window for subscribers of topics, in messages. It is large, as the broker must not hold such messages back."""
_BROWSED_AHEAD: Final = 200
"""Messages of a browsed queue that the broker sends before they are read."""
_REMEMBERED: Final = 10_000
_MILLISECONDS: Final = 1000


class Channel(Links):
    """The channel to the broker for all sessions of a connection. Thread-safe.

    `on_lost` and `on_change` are called with the connection's lock held: a link was lost; there is another, or none
    will come."""

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
        super().__init__(addresses, options, lock, on_change, on_reconnected)
        self._notify_lost = on_lost
        self._subscriptions = Subscriptions(lock, options)
        self._collector = Collector(lock, options.send_timeout)
        self._owner = owner
        self._marks: dict[str, str] = {}
        self._returned: dict[str, None] = {}
        self._unsent: list[bytes] = []
        self._numbers = itertools.count(1)
        self.dialect = self.open()
        self._temporaries = Temporaries(owner, options.client_id, self.dialect, self._collector)
        self.start(f"reconnector-{owner}")

    # The caller of every method below holds the lock.

    def check_reader(self, destination: Destination) -> None:
        """Raises InvalidDestinationError if the connection may not receive from a destination."""
        if destination.is_temporary and destination not in self._temporaries:
            raise InvalidDestinationError(
                f"{destination}: it is gone, or another connection's: only that may receive from it (R2c)"
            )

    def claim(self, durable: str) -> None:
        """Raises IllegalStateError if a consumer has the durable subscription, ConfigError without a client id."""
        if not self.options.client_id:
            raise ConfigError("durable subscriptions are known by the connection's client id: give client_id")
        self._subscriptions.check_free(durable)

    def note_returned(self, entries: Iterable[Entry]) -> None:
        """Notes messages that go back to the broker, because Artemis does not mark them when they come again."""
        self._returned.update((entry.message.message_id, None) for entry in entries if entry.message.message_id)
        for oldest in list(itertools.islice(self._returned, max(len(self._returned) - _REMEMBERED, 0))):
            del self._returned[oldest]

    # The methods below are called without the lock, because they talk to the broker.

    def prepare(self, destination: Destination, message: JmsMessage) -> tuple[JmsMessage, Frame]:
        """Returns a message as it is sent, and its frame. Raises ConfigError: STOMP cannot carry it."""
        sent = message.stamped(destination, message_id=None, timestamp_ms=int(time.time() * _MILLISECONDS))
        reply = None if sent.reply_to is None else self._reply_address(sent.reply_to)
        headers, body = outgoing(self.dialect, self._address(destination), sent, reply)
        if self._marks and destination.is_topic:
            headers.update(self._marks)
        return sent, ("SEND", headers, body)

    def send(
        self,
        frame: Frame,
        *,
        confirmed: bool = False,
        on_settled: OnSettled | None = None,
        timeout: float | None = None,
    ) -> None:
        """Sends a frame. If the link was lost, waits for the next one and tries again, until a link has written it.

        `confirmed` and `on_settled` are those of `Link.send`; `timeout` is in seconds, at most the send time-out."""
        longest = self.options.send_timeout
        deadline = time.monotonic() + (longest if timeout is None else min(timeout, longest))
        while True:
            link = self.link_by(deadline)
            try:
                link.send([frame], deadline, confirmed=confirmed, on_settled=on_settled)
            except WriteError:  # the broker does not have it, so it may be sent on another link
                if time.monotonic() >= deadline or self._closed.is_set():
                    raise
            else:
                return

    def send_soon(self, frame: Frame, *, can_wait: bool) -> bool:
        """Has a frame sent soon, on the next link if this one is lost before. False without a link, or if it would
        overtake others."""
        with self.lock:
            link = None if self._unsent else self.link
        return link is not None and link.send_soon(encode(*frame), can_wait=can_wait)

    def transact(self, begun: Transaction | None, sends: Sequence[Frame], entries: Sequence[Entry]) -> None:
        """Sends and acknowledges in one transaction, the one that was begun or a new one; see `transact`."""
        deadline = time.monotonic() + self.options.send_timeout
        one = begun or self.transaction_on(self.link_by(deadline))
        transact(one, sends, entries, deadline, begun=begun is not None, at_once=self.dialect.fails_commit)

    def transaction_on(self, link: Link) -> Transaction:
        """Returns a transaction that the broker does not know yet."""
        return Transaction(link, f"t{next(self._numbers)}")

    def acknowledge(self, entries: Iterable[Entry], deadline: float | None = None) -> None:
        """Acknowledges messages at the broker: at once, or within 5 ms if more messages wait for the same consumer.

        Raises TransportError if the broker cannot be reached; then it delivers them again."""
        links: dict[Link, list[Frame]] = {}
        more = False
        for entry in entries:
            links.setdefault(entry.link, []).append(entry.acknowledgement())
            more = more or bool(entry.feed.buffer)
        for link, frames in links.items():
            link.send(frames, deadline, coalesced=more and deadline is None)  # with a deadline it must be done now

    def subscribe(self, feed: Feed, factor: int = 1) -> None:
        """Makes a subscription with `factor` times the usual window. It is active when this returns."""
        spec = feed.spec
        window = _TOPIC_WINDOW if spec.destination.is_topic else self.options.prefetch * factor
        if spec.no_local:
            self._marks = self.dialect.marking(self._owner)
        if spec.durable is not None and self.dialect.keeps_selector and has_changed(self.address, self.options, spec):
            self._unsubscribe_durable(spec.durable)
        headers = self.dialect.subscribing(spec, window, self._owner)
        self._subscriptions.make(self._some_link(), self._address(spec.destination), headers, feed)

    def widen(self, feed: Feed) -> None:
        """Makes one more subscription to a queue if the window is full of unacknowledged messages. STOMP cannot enlarge
        a window: without this, a transaction of more messages would wait for ever."""
        allowed = self.options.prefetch * (2 ** len(feed.subscriptions) - 1)
        if feed.held >= allowed and not feed.spec.destination.is_topic and not feed.closed:
            self.subscribe(feed, 2 ** len(feed.subscriptions))

    def renew(self, feeds: Iterable[Feed]) -> None:
        self._subscriptions.renew(feeds, time.monotonic() + self.options.send_timeout)

    def unsubscribe(self, feed: Feed, deadline: float) -> None:
        """Ends subscriptions; the broker delivers unacknowledged messages again."""
        with self.lock:
            ended, feed.subscriptions = feed.subscriptions, []
            feed.buffer.clear()
        self._subscriptions.end(ended, deadline)

    def end_durable(self, durable: str) -> None:
        self._unsubscribe_durable(durable)
        if self.dialect.keeps_selector:
            forget(self.address, self.options, durable)

    def _unsubscribe_durable(self, durable: str) -> None:
        self.send(("UNSUBSCRIBE", self.dialect.unsubscribing(durable), b""), confirmed=True)

    def make_temporary(self, kind: type[T]) -> T:
        return self._temporaries.make(kind, self._some_link())

    def browse(self, spec: ConsumerSpec) -> Generator[list[JmsMessage], None, None]:
        """Yields the messages that wait in a queue, one in a list; the broker sends a window of them ahead. Raises
        ConfigError: the broker's STOMP has no browser."""
        if Capability.BROWSE not in self.dialect.capabilities:
            raise ConfigError(f"{self.dialect.provider} has no browser over STOMP")
        subscribe = {**self.dialect.subscribing(spec, _BROWSED_AHEAD, self._owner), "browser": "true"}
        with closing(
            self._collector.collect(self._some_link(), self._address(spec.destination), subscribe, _BROWSED_AHEAD)
        ) as answers:
            for headers, body in answers:
                if "browser" in headers:  # the end mark
                    return
                yield [self._message(headers, body, spec.destination)]

    def count(self, spec: ConsumerSpec) -> int:
        """Asks the broker's management how many messages wait in a queue."""
        with closing(Management(self._collector, self._some_link(), spec)) as management:
            return management.count()

    def count_by(self, spec: ConsumerSpec, names: Sequence[str]) -> dict[str | None, int]:
        with closing(Management(self._collector, self._some_link(), spec)) as management:
            return management.count_by(names)

    def headers(self, spec: ConsumerSpec) -> Generator[list[JmsMessage], None, None]:
        """Yields the messages that wait in a queue without their bodies, some in a list."""
        with closing(Management(self._collector, self._some_link(), spec)) as management:
            for page in management.pages():
                yield [self._message(headers, b"", spec.destination) for headers in page]

    def restore(self, link: Link) -> None:
        """Also sends the frames that the lost one did not write."""
        self._temporaries.restore(link)
        self._subscriptions.restore(link)
        with self.lock:
            frames, self._unsent = self._unsent, []
        if frames and not link.send_soon(*frames):
            with self.lock:
                self._unsent[:0] = frames

    def _some_link(self) -> Link:
        return self.link_by(time.monotonic() + self.options.send_timeout)

    def _address(self, destination: Destination) -> str:
        """Returns a destination's header. Our temporary destinations have a name that survives a reconnect."""
        return self._temporaries.address(destination) or self.dialect.address(destination)

    def _reply_address(self, destination: Destination) -> str:
        own = self._temporaries.address(destination) if self.dialect.temporary else None
        return own or self.dialect.reply_address(destination)

    def _message(self, headers: Mapping[str, str], body: bytes, consumed: Destination) -> JmsMessage:
        return incoming(self.dialect, headers, body, consumed, self._temporaries.destination, self.options.retype)

    # The methods below run in the reading thread, and must not talk to the broker.

    def on_messages(self, link: Link, frames: Sequence[Received]) -> None:
        """Puts received messages into the buffers of their consumers, and then wakes the waiting threads once."""
        entries: list[Entry] = []
        for _, headers, body in frames:
            number = headers.get("subscription", "")
            subscription = self._subscriptions.find(number)
            if subscription is None:
                with self.lock:
                    self._collector.takes(number, headers, body)
            elif subscription.link is link:
                message = self._message(headers, body, subscription.feed.spec.destination)
                entries.append(Entry(message, subscription.feed, subscription, link, headers.get("ack", "")))
        if not entries:
            return
        with self.lock:
            for entry in entries:
                if self._subscriptions.find(entry.subscription.number) is not None and not entry.is_stale:
                    self._take(entry)
            for feed in dict.fromkeys(entry.feed for entry in entries):
                feed.signal()

    def _take(self, entry: Entry) -> None:
        message = entry.message
        if self._returned and message.message_id in self._returned:
            del self._returned[message.message_id]
            entry.message = message if message.redelivered else message.again()
        entry.feed.buffer.append(entry)

    def on_unsent(self, frames: Sequence[bytes]) -> None:
        """Keeps frames of `send_soon` that a link did not write before its end."""
        log.warning("%d messages were not written when the connection was lost: they wait for another", len(frames))
        with self.lock:
            self._unsent.extend(frames)

    def on_lost(self, link: Link) -> None:
        """Notes that a link was lost: unacknowledged messages come again, if the broker keeps them."""
        with self.lock:
            self._subscriptions.lost(link, is_reported=self.options.reconnect)
            self._collector.end()
            self._changed.notify_all()
            self._notify_lost()
