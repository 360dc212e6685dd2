"""Subscriptions at the broker, the messages that came by them, and answers that come as messages.

The broker sends messages to every subscription that it has. A forgotten one would take messages away from others, so
each is ended: by the thread that closes its consumer, or by the thread that is making it.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from mtosi_jms.errors import IllegalStateError, MtosiError, TransportError, UnknownOutcomeError
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport._base import Interruption
from mtosi_jms.transport._session_core import ConsumerSpec
from mtosi_jms.transport.stomp._frames import Frame
from mtosi_jms.transport.stomp._link import Link
from mtosi_jms.transport.stomp._options import StompOptions

log = logging.getLogger(__package__)

_MILLISECONDS: Final = 1000


def goodbye(options: StompOptions) -> float:
    """Returns the time, by the monotonic clock, until which closing waits for the broker."""
    return time.monotonic() + min(options.close_timeout, options.send_timeout)


class Feed:
    """The source of one consumer's messages.

    It outlives the consumer while messages are unsettled, because STOMP acknowledges through the subscription.
    Meanwhile a new consumer with the same destination and selector takes it over.

    Attributes:
        asked: what the consumer was asked to receive.
        subscriptions: its subscriptions at the broker: one, or more for a queue with many unacknowledged messages.
        buffer: messages that came and were not handed out, with interruptions between them.
        held: how many messages were handed out and are not settled.
        closed: whether its consumer is closed.
        signal: called, with the connection's lock held, when messages came.
    """

    def __init__(self, asked: ConsumerSpec) -> None:
        self.asked = asked
        self.subscriptions: list[Subscription] = []
        self.buffer: deque[Entry | Interruption] = deque()
        self.held = 0
        self.closed = False
        self.signal: Callable[[], None] = lambda: None

    def interrupted(self, reason: str) -> None:
        """Notes an interruption: later messages come after it."""
        told = bool(self.buffer) and isinstance(self.buffer[-1], Interruption)
        if not self.closed and not told:
            self.buffer.append(Interruption(reason))


class Subscription:
    """One SUBSCRIBE, made again on each new link under the same number, which is never used for another.

    Attributes:
        link: the link that has it; None before and after.
        made: whether the broker has confirmed it there.
        returns: whether the broker keeps what is not acknowledged, and delivers it again.
    """

    def __init__(self, number: str, address: str, headers: Mapping[str, str], feed: Feed) -> None:
        self.number = number
        self.feed = feed
        self.link: Link | None = None
        self.made = False
        self.returns = not feed.asked.destination.is_topic or feed.asked.durable is not None
        self._headers = {**headers, "id": number, "destination": address, "ack": "client-individual"}

    def anew(self, number: str) -> Subscription:
        """Another one like it, under an id of its own, that is yet to be made."""
        headers = dict(self._headers)
        return Subscription(number, headers.pop("destination"), headers, self.feed)

    def frame(self) -> Frame:
        """The frame that makes it."""
        return "SUBSCRIBE", self._headers, b""

    def end(self) -> Frame:
        """The frame that ends it."""
        return "UNSUBSCRIBE", {"id": self.number}, b""


@dataclass(slots=True, eq=False)
class Entry:
    """A message that came on a link by a subscription, and is not acknowledged.

    Attributes:
        ack: what its ACK has to name.
        message: as it is handed out the next time.
        settled: whether it was acknowledged.
        told: whether the broker has its acknowledgement, in a transaction that is not committed.
    """

    subscription: Subscription
    link: Link
    ack: str
    message: JmsMessage
    settled: bool = False
    told: bool = False

    @property
    def is_stale(self) -> bool:
        """Whether its link is gone, so that the broker cannot be told."""
        return self.link is not self.subscription.link

    @property
    def comes_again(self) -> bool:
        """Whether the broker delivers it once more by itself."""
        return self.is_stale and self.subscription.returns

    def is_expired(self) -> bool:
        """Whether its time to live has passed while it was here."""
        return 0 < self.message.expiration_ms <= time.time() * _MILLISECONDS

    def acknowledgement(self) -> Frame:
        """The frame that acknowledges it."""
        return "ACK", {"id": self.ack}, b""


class Subscriptions:
    """Those of one connection, by their numbers; `lock` is the connection's, and guards what is in here."""

    def __init__(self, lock: threading.Lock, options: StompOptions) -> None:
        self._lock = lock
        self._options = options
        self._numbers = itertools.count(1)
        self._known: dict[str, Subscription] = {}

    def make(self, link: Link, address: str, headers: dict[str, str], feed: Feed) -> None:
        """Makes one for a consumer; where the consumer was closed meanwhile, it is ended again.

        Raises:
            MtosiError: the broker refuses it, or does not confirm it in time.
        """
        made = Subscription(f"s{next(self._numbers)}", address, headers, feed)
        with self._lock:
            made.link = link
            self._known[made.number] = made
        try:
            link.send([made.frame()], confirmed=True)
        except MtosiError as error:
            with self._lock:
                failed = made.link is link  # else the link was lost, and it is made again on the next one
                if failed:
                    self._known.pop(made.number, None)
            if failed:
                if isinstance(error, UnknownOutcomeError):
                    with contextlib.suppress(TransportError):
                        link.send([made.end()], goodbye(self._options))
                raise
        with self._lock:
            made.made = made.made or made.link is link
            closed = feed.closed
            if not closed:
                feed.subscriptions.append(made)
        if closed:
            self.end([made], goodbye(self._options))

    def end(self, subscriptions: Sequence[Subscription], deadline: float) -> None:
        """Ends some; the broker delivers again what was not acknowledged."""
        with self._lock:
            for one in subscriptions:
                self._known.pop(one.number, None)
            # One that is being made again is ended by the thread that makes it, or the broker would be told too early.
            made = [(one, one.link) for one in subscriptions if one.made and one.link is not None]
        for one, link in reversed(made):  # what is returned last comes first again
            if link.lost is None:
                try:
                    link.send([one.end()], deadline, confirmed=True)
                except MtosiError as error:
                    log.warning(
                        "a subscription to %s was not ended in order: %s: %s",
                        one.feed.asked.destination,
                        type(error).__name__,
                        error,
                    )

    def renew(self, feeds: Iterable[Feed], deadline: float) -> None:
        """Ends those of some feeds and makes another one for each: the broker delivers again what was not
        acknowledged.

        What came by them goes stale. Where that fails, the link is ended: they are made on the next one.
        """
        ended: list[tuple[Subscription, Link]] = []
        made: list[tuple[Subscription, Link]] = []
        with self._lock:
            for feed in feeds:
                links = [(one, one.link) for one in feed.subscriptions if one.made and one.link is not None]
                if not links or len(links) < len(feed.subscriptions):  # they are lost, and made again anyway
                    continue
                ended += links
                for one, _ in links:
                    del self._known[one.number]
                    one.link, one.made = None, False
                first, link = links[0]
                again = first.anew(f"s{next(self._numbers)}")
                feed.subscriptions = [again]
                self._known[again.number] = again
                made.append((again, link))
        try:
            for one, link in ended:
                link.send([one.end()], deadline, confirmed=True)
            for one, link in made:
                self._make_anew(one, link, deadline)
        except MtosiError as error:
            for _, link in made:
                link.end(TransportError(f"what was rolled back cannot be had again: {error}"))

    def _make_anew(self, again: Subscription, link: Link, deadline: float) -> None:
        with self._lock:
            if link.lost is not None or again.link is not None:  # it is made on the next one
                return
            again.link = link
        link.send([again.frame()], deadline, confirmed=True)
        with self._lock:
            again.made = again.made or again.link is link
            closed = again.number not in self._known
        if closed:
            self.end([again], goodbye(self._options))

    def restore(self, link: Link) -> None:
        """Makes all again on a new link.

        Raises:
            MtosiError: the broker refuses one of them.
        """
        with self._lock:
            all_of_them = list(self._known.values())
            for one in all_of_them:
                one.link, one.made = link, False
        if not all_of_them:
            return
        link.send([one.frame() for one in all_of_them], confirmed=True)
        with self._lock:
            for one in all_of_them:
                one.made = one.link is link
            ended = [one for one in all_of_them if one.number not in self._known]
        self.end(ended, goodbye(self._options))

    # The caller of every method below holds the lock.

    def find(self, number: str) -> Subscription | None:
        """The one with this id."""
        return self._known.get(number)

    def check_free(self, durable: str) -> None:
        """Raises IllegalStateError where a consumer has the durable subscription."""
        for one in self._known.values():
            if one.feed.asked.durable == durable:
                why = "messages of it are not acknowledged" if one.feed.closed else "a consumer has it"
                raise IllegalStateError(f"durable subscription {durable!r}: {why}")

    def lost(self, link: Link, *, is_told: bool) -> None:
        """A link was lost, and with it what came by it; `is_told`: whether consumers tell of the interruption."""
        for one in self._known.values():
            if one.link is link:
                one.link, one.made = None, False
                if is_told:
                    one.feed.interrupted(str(link.lost))


Answer: TypeAlias = tuple[dict[str, str], bytes]


class Collector:
    """Subscriptions that are made for one answer and ended with it: a browsed queue, or our own name.

    `seconds` may pass from one message to the next."""

    def __init__(self, lock: threading.Lock, seconds: float) -> None:
        self._lock = lock
        self._seconds = seconds
        self._numbers = itertools.count(1)
        self._coming: dict[str, queue.SimpleQueue[Answer | None]] = {}

    def collect(
        self, link: Link, address: str, headers: Mapping[str, str], is_last: Callable[[dict[str, str]], bool]
    ) -> list[Answer]:
        """What comes by a subscription to an address, up to the message whose headers are those of the last.

        Raises:
            TransportError: it did not come.
        """
        number = f"c{next(self._numbers)}"
        coming: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        with self._lock:
            self._coming[number] = coming
        found: list[Answer] = []
        try:
            subscribe = {"id": number, "destination": address, "ack": "auto", **headers}
            link.send([("SUBSCRIBE", subscribe, b"")], confirmed=True)
            while not found or not is_last(found[-1][0]):
                found.append(self._next(link, coming))
            link.send([("UNSUBSCRIBE", {"id": number}, b"")], confirmed=True)
        finally:
            with self._lock:
                del self._coming[number]
        return found

    def takes(self, number: str, headers: dict[str, str], body: bytes) -> bool:
        """Takes a message, the lock held; False where it is not for here."""
        coming = self._coming.get(number)
        if coming is not None:
            coming.put((headers, body))
        return coming is not None

    def end(self) -> None:
        """The link was lost, the lock held: nothing more comes."""
        for coming in self._coming.values():
            coming.put(None)

    def _next(self, link: Link, coming: queue.SimpleQueue[Answer | None]) -> Answer:
        try:
            received = coming.get(timeout=self._seconds)
        except queue.Empty:
            received = None
        if received is None:
            raise TransportError(f"{link.address}: the answer did not come, or not to its end")
        return received
