"""The common part of the transports whose messages wait in this process until they are handed out: STOMP and Java.

A feed is the source of a consumer's messages. It outlives its consumer while messages are unsettled, which are
acknowledged through it; a new consumer of the same destination and selector takes it over."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeVar

from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport._base import AckMode, Interruption, InterruptionHook
from mtosi_jms.transport._session_core import ConnectionCore, ConsumerCore, ConsumerSpec, SessionCore

log = logging.getLogger(__package__)


@dataclass(slots=True, eq=False)
class BufferedFeed:
    """The source of a consumer's messages. `buffer`: those not handed out, with interruptions between them."""

    spec: ConsumerSpec
    held: int = field(default=0, init=False)
    closed: bool = field(default=False, init=False)
    buffer: deque[Any] = field(default_factory=deque, init=False)

    @property
    def returns(self) -> bool:
        """Whether the provider redelivers messages that were not acknowledged on a lost connection."""
        return not self.spec.destination.is_topic or self.spec.durable is not None


F = TypeVar("F", bound=BufferedFeed)


@dataclass(slots=True, eq=False)
class BufferedEntry(ABC, Generic[F]):
    """A message that was received, and is not acknowledged."""

    message: JmsMessage
    feed: F
    settled: bool = field(default=False, init=False)

    @property
    @abstractmethod
    def is_stale(self) -> bool:
        """Whether its link is gone, so that it cannot be acknowledged."""

    @property
    def comes_again(self) -> bool:
        """Whether the provider redelivers it by itself."""
        return self.is_stale and self.feed.returns

    def is_expired(self) -> bool:
        return 0 < self.message.expiration_ms <= time.time() * 1_000

    def again(self) -> Self:
        """A copy for the next delivery, marked as redelivered."""
        return replace(self, message=self.message.again())


E = TypeVar("E", bound=BufferedEntry[Any])
C = TypeVar("C", bound=ConsumerCore[Any, Any])


class BufferedConsumer(ConsumerCore[E, F]):
    def __init__(self, session: BufferedSession[E, F], spec: ConsumerSpec, feed: F) -> None:
        super().__init__(session, spec, feed)
        self._buffered = session
        feed.closed = False

    def _next(self) -> E | Interruption | None:
        buffer = self.source.buffer
        while buffer:
            entry: E | Interruption = buffer.popleft()
            if isinstance(entry, Interruption):
                return entry
            if entry.comes_again:
                continue
            if not entry.is_expired():
                return entry
            self._buffered.expired.append(entry)
        return Expired("messages have expired", self._buffered) if self._buffered.expired else None

    def shut(self) -> None:
        self.source.closed = True
        super().shut()


@dataclass(frozen=True)
class Expired(Interruption):
    """Comes in place of a message if there are only expired ones: they fill the window until they are acknowledged."""

    session: BufferedSession[Any, Any]

    def tell(self, hook: InterruptionHook | None) -> None:
        """Acknowledges the expired messages; the hook is not called."""
        self.session.acknowledge_expired()


class BufferedSession(SessionCore[E, F]):
    """A session whose messages wait here; `expired` holds messages that expired here, to be acknowledged."""

    def __init__(self, connection: ConnectionCore, ack_mode: AckMode, *, transacted: bool) -> None:
        super().__init__(connection, ack_mode, transacted=transacted)
        self.expired: list[E] = []
        self._feeds: dict[F, None] = {}

    def acknowledge_expired(self) -> None:
        expired, self.expired = self.expired, []
        log.warning("%d messages were not handed out: their time to live ended while they waited here", len(expired))
        self._acknowledge_expired([entry for entry in expired if not entry.is_stale])

    @abstractmethod
    def _acknowledge_expired(self, entries: Sequence[E]) -> None:
        """Acknowledges messages; those for which that fails come again, and expire again."""

    def _give_back(self, entries: Sequence[E]) -> None:
        """Has messages redelivered: from the buffer, or by the provider if their consumer is closed."""
        closed: dict[F, None] = {}
        with self.lock:
            for entry in reversed(entries):
                feed = self.remove_unsettled(entry)
                if feed is None:
                    continue
                self._note_returned([entry])
                if feed.closed:
                    closed[feed] = None
                elif not entry.comes_again:
                    feed.buffer.appendleft(entry.again())
                    for consumer in self.consumers:
                        if consumer.source is feed:
                            consumer.signal()
        self._end_feeds(closed, returns=True)

    def _note_returned(self, entries: Sequence[E]) -> None:
        """Called for messages that will be redelivered, with the lock held."""

    def _forget(self, entries: Iterable[E]) -> None:
        """Removes messages from `unsettled`, and ends the feeds that were kept only for them."""
        with self.lock:
            feeds = dict.fromkeys(feed for entry in entries if (feed := self.remove_unsettled(entry)) is not None)
        self._end_feeds(feeds)

    def _end(self, deadline: float) -> None:
        with self.lock:
            listened = None if self._listened is None else self._listened.feed
            returned = [entry for entry in self.unsettled if entry is not self._listened]
            self._note_returned(returned)
        for feed in list(self._feeds):
            if feed is not listened:
                self._end_feed(feed, deadline, returns=any(entry.feed is feed for entry in returned))
        with self.lock:
            for entry in returned:
                self.remove_unsettled(entry)

    def _end_consumer(self, consumer: ConsumerCore[E, F], deadline: float) -> None:
        self._end_feeds([consumer.source], deadline)

    def _end_feeds(self, feeds: Iterable[F], deadline: float | None = None, *, returns: bool = False) -> None:
        """Ends the feeds of closed consumers, unless they have unsettled messages."""
        for feed in feeds:
            if feed.closed and not feed.held:
                self._end_feed(feed, self.connection.goodbye() if deadline is None else deadline, returns=returns)

    @abstractmethod
    def _end_feed(self, feed: F, deadline: float, *, returns: bool = False) -> None:
        """Ends a feed at the provider; `returns`: messages of it go back, and must be marked as redelivered."""

    def _check_open(self) -> None:
        with self.lock:
            self.check_open()

    def _enter(self, consumer: C) -> C:
        """The lock is held."""
        self._feeds[consumer.source] = None
        self.consumers[consumer] = None
        return consumer

    def _kept_feed(self, spec: ConsumerSpec) -> F | None:
        """Returns the feed of a closed consumer that would withhold messages from this new one. The lock is held."""
        if spec.destination.is_topic:
            return None
        wanted = spec.destination, spec.text
        kept = (one for one in self._feeds if one.closed)
        return next((one for one in kept if (one.spec.destination, one.spec.text) == wanted), None)
