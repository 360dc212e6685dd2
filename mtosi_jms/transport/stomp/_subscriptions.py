"""Subscriptions at the broker, the messages that came by them, answers that come as messages, and transactions.

The broker sends messages to every subscription that it has. A forgotten one would take messages away from others, so
each is ended: by the thread that closes its consumer, or by the thread that is making it.

In a transaction everything is sent at once, and only the receipt of COMMIT counts. If the broker refuses a part,
ActiveMQ fails the COMMIT. Artemis ends the connection, which leaves open whether it has seen the COMMIT: there COMMIT
is sent only after everything before it is confirmed."""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from mtosi_jms.errors import IllegalStateError, MtosiError, TransportError, UnknownOutcomeError, WriteError
from mtosi_jms.transport._base import Interruption
from mtosi_jms.transport._buffered import BufferedEntry, BufferedFeed
from mtosi_jms.transport.stomp._frames import Frame
from mtosi_jms.transport.stomp._link import Link
from mtosi_jms.transport.stomp._options import StompOptions

log = logging.getLogger(__package__)


@dataclass(slots=True, eq=False)
class Feed(BufferedFeed):
    """The source of a consumer's messages; more than one subscription for a queue with many unacknowledged messages.
    `signal` is called with the connection's lock held when messages came."""

    subscriptions: list[Subscription] = field(default_factory=list, init=False)
    signal: Callable[[], None] = field(default=lambda: None, init=False)

    def interrupted(self, reason: str) -> None:
        """Notes an interruption: later messages come after it."""
        reported = bool(self.buffer) and isinstance(self.buffer[-1], Interruption)
        if not self.closed and not reported:
            self.buffer.append(Interruption(reason))


class Subscription:
    """One SUBSCRIBE, made again on each new link under the same number, which is never used for another. `link`: None
    before and after. `made`: the broker has confirmed it there."""

    def __init__(self, number: str, address: str, headers: Mapping[str, str], feed: Feed) -> None:
        self.number = number
        self.feed = feed
        self.link: Link | None = None
        self.made = False
        self._headers = {**headers, "id": number, "destination": address, "ack": "client-individual"}

    def anew(self, number: str) -> Subscription:
        """Returns a copy with another id, which is not made at the broker yet."""
        headers = dict(self._headers)
        return Subscription(number, headers.pop("destination"), headers, self.feed)

    def frame(self) -> Frame:
        return "SUBSCRIBE", self._headers, b""

    def end(self) -> Frame:
        return "UNSUBSCRIBE", {"id": self.number}, b""


@dataclass(slots=True, eq=False)
class Entry(BufferedEntry[Feed]):
    """A received message; `uncommitted`: acknowledged in a transaction that is not committed."""

    subscription: Subscription
    link: Link
    ack: str
    uncommitted: bool = field(default=False, init=False)

    @property
    def is_stale(self) -> bool:
        return self.link is not self.subscription.link

    def acknowledgement(self) -> Frame:
        return "ACK", {"id": self.ack}, b""


class Subscriptions:
    """The subscriptions of one connection, by number. `lock` is the connection's, which guards this state."""

    def __init__(self, lock: threading.Lock, options: StompOptions) -> None:
        self._lock = lock
        self._options = options
        self._numbers = itertools.count(1)
        self._known: dict[str, Subscription] = {}

    def make(self, link: Link, address: str, headers: dict[str, str], feed: Feed) -> None:
        """Makes a subscription; ends it if the consumer was closed meanwhile. Raises MtosiError: the broker refuses it,
        or is silent."""
        made = Subscription(f"s{next(self._numbers)}", address, headers, feed)
        with self._lock:
            made.link = link
            self._known[made.number] = made
        try:
            link.send([made.frame()], confirmed=True)
        except MtosiError as error:
            refused = link.refusal_of(made.number, headers.get("selector", ""))
            with self._lock:
                # Else the link was lost, and it is made again on the next one, unless the broker hung up because of it.
                failed = made.link is link or refused is not None
                if failed:
                    self._known.pop(made.number, None)
            if refused is not None:
                raise refused from error
            if failed:
                if isinstance(error, UnknownOutcomeError):
                    with contextlib.suppress(TransportError):
                        link.send([made.end()], self._options.goodbye())
                raise
        with self._lock:
            made.made = made.made or made.link is link
            closed = feed.closed
            if not closed:
                feed.subscriptions.append(made)
        if closed:
            self.end([made], self._options.goodbye())

    def end(self, subscriptions: Sequence[Subscription], deadline: float) -> None:
        """Ends subscriptions; the broker delivers unacknowledged messages again."""
        with self._lock:
            for one in subscriptions:
                self._known.pop(one.number, None)
            # A subscription that is being made is ended by the thread that makes it: here it would be too early.
            made = [(one, one.link) for one in subscriptions if one.made and one.link is not None]
        for one, link in reversed(made):  # messages that are returned last are redelivered first
            if link.lost is None:
                try:
                    link.send([one.end()], deadline, confirmed=True)
                except MtosiError as error:
                    log.warning(
                        "a subscription to %s was not ended in order: %s: %s",
                        one.feed.spec.destination,
                        type(error).__name__,
                        error,
                    )

    def renew(self, feeds: Iterable[Feed], deadline: float) -> None:
        """Replaces the subscriptions of some feeds, so that the broker redelivers unacknowledged messages.

        Messages that came by the old ones are stale. If this fails the link is ended, and the new ones are made on the
        next."""
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
            self.end([again], self._options.goodbye())

    def restore(self, link: Link) -> None:
        """Makes all subscriptions on a new link. Raises MtosiError: the broker refuses one of them."""
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
        self.end(ended, self._options.goodbye())

    # The caller of every method below holds the lock.

    def find(self, number: str) -> Subscription | None:
        return self._known.get(number)

    def check_free(self, durable: str) -> None:
        for one in self._known.values():
            if one.feed.spec.durable == durable:
                why = "messages of it are not acknowledged" if one.feed.closed else "a consumer has it"
                raise IllegalStateError(f"durable subscription {durable!r}: {why}")

    def lost(self, link: Link, *, is_reported: bool) -> None:
        """Notes the loss of a link and of its messages; `is_reported`: whether consumers report the interruption."""
        for one in self._known.values():
            if one.link is link:
                one.link, one.made = None, False
                if is_reported:
                    one.feed.interrupted(str(link.lost))


Answer: TypeAlias = tuple[dict[str, str], bytes]


class Collector:
    """Subscriptions for a single answer, which end with it. `seconds` may pass from one message to the next."""

    def __init__(self, lock: threading.Lock, seconds: float) -> None:
        self._lock = lock
        self._seconds = seconds
        self._numbers = itertools.count(1)
        self._answers: dict[str, queue.SimpleQueue[Answer | None]] = {}

    def collect(
        self, link: Link, address: str, headers: Mapping[str, str], ahead: int = 1, first: Sequence[Frame] = ()
    ) -> Generator[Answer, Sequence[Frame] | None, None]:
        """Yields the messages from a subscription, which ends when the caller closes this. `ahead`: most messages that
        the broker sends before they are read. `first` is sent once it listens, what the caller sends to this
        generator after that. Raises TransportError: the next one did not come."""
        number = f"c{next(self._numbers)}"
        answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        with self._lock:
            self._answers[number] = answers
        try:
            # Not "auto": Artemis then acknowledges after it has sent, which may be after the end of the subscription,
            # and the answer, and with it its queue, stays for ever.
            subscribe = {"id": number, "destination": address, "ack": "client", **headers}
            link.send([("SUBSCRIBE", subscribe, b"")], confirmed=True)
            try:
                link.send(first)
                for count in itertools.count(1):
                    answer = self._next(link, answers)
                    if count % ((ahead + 1) // 2) == 0:  # opens the window; takes nothing from a browser
                        link.send([("ACK", {"id": answer[0].get("ack", "")}, b"")])
                    if more := (yield answer):
                        link.send(more)
            finally:
                with contextlib.suppress(MtosiError):  # the caller has what it wanted, or another error
                    link.send([("UNSUBSCRIBE", {"id": number}, b"")], confirmed=True)
        finally:
            with self._lock:
                del self._answers[number]

    def takes(self, number: str, headers: dict[str, str], body: bytes) -> bool:
        """Takes a message; returns False if it is for another subscription. The lock is held."""
        answers = self._answers.get(number)
        if answers is not None:
            answers.put((headers, body))
        return answers is not None

    def end(self) -> None:
        """Ends all waits, because the link was lost. The lock is held."""
        for answers in self._answers.values():
            answers.put(None)

    def _next(self, link: Link, answers: queue.SimpleQueue[Answer | None]) -> Answer:
        try:
            received = answers.get(timeout=self._seconds)
        except queue.Empty:
            received = None
        if received is None:
            raise TransportError(f"{link.address}: the answer did not come, or not to its end")
        return received


_LATE: Final = 2.0
"""Seconds by which the reason of a failed COMMIT may come after it."""


class Transaction(NamedTuple):
    """One transaction on one link. Its name is never used again."""

    link: Link
    name: str


class Begun:
    """The transaction of a session that was begun at the broker before its commit, if any."""

    def __init__(self, new: Callable[[Link], Transaction]) -> None:
        self._new = new
        self._lock = threading.Lock()
        self._transaction: Transaction | None = None
        self._ended = False

    @property
    def is_open(self) -> bool:
        return self._transaction is not None

    def acknowledge(self, entries: Sequence[Entry]) -> None:
        """Acknowledges inside the transaction what came in it on one link; the link's loss undoes that."""
        with self._lock:
            if self._ended or any(one.is_stale for one in entries):  # a stale one keeps it from being committed
                return
            link = entries[0].link
            frames: list[Frame] = []
            if self._transaction is None:
                self._transaction = self._new(link)
                frames.append(("BEGIN", {"transaction": self._transaction.name}, b""))
            if self._transaction.link is not link:
                return
            for one in entries:
                one.uncommitted = True
            try:
                link.send([*frames, *_acknowledgements(self._transaction, entries)])
            except BaseException as error:  # whether the broker has some of it is unknown
                link.end(TransportError(f"a transaction cannot go on: {error}"))
                if not isinstance(error, WriteError):
                    raise

    def take(self) -> Transaction | None:
        with self._lock:
            taken, self._transaction = self._transaction, None
            return taken

    def end(self, deadline: float) -> None:
        """Aborts the transaction, and refuses others, because the session is closed."""
        with self._lock:
            self._ended = True
        self.abort(deadline)

    def abort(self, deadline: float) -> None:
        """Aborts the transaction. The broker redelivers messages only after their subscriptions are ended."""
        taken = self.take()
        if taken is None:
            return
        try:
            taken.link.send([("ABORT", {"transaction": taken.name}, b"")], deadline)
        except WriteError as error:  # the end of the link undoes it as well
            taken.link.end(TransportError(f"a transaction was not undone: {error}"))


def transact(
    transaction: Transaction,
    sends: Sequence[Frame],
    entries: Sequence[Entry],
    deadline: float,
    *,
    begun: bool,
    at_once: bool,
) -> None:
    """Sends and acknowledges as one transaction. `at_once`: COMMIT need not wait for what is before it.

    Raises UnknownOutcomeError: COMMIT was sent and not confirmed; MtosiError: nothing took effect."""
    link, name = transaction
    named = {"transaction": name}
    frames: list[Frame] = [] if begun else [("BEGIN", named, b"")]
    frames += _inside(sends, named)
    link.take_refused()
    if not at_once and frames:
        _announce(link, frames, deadline)
        frames = []
    frames += _acknowledgements(transaction, entries)
    try:
        link.send([("COMMIT", named, b"")], deadline, before=frames, confirmed=True)
    except WriteError as error:
        if begun:
            link.end(TransportError(f"a transaction was not ended: {error}"))
        raise TransportError(f"{error}; the transaction is rolled back") from error
    except UnknownOutcomeError as error:
        link.end(TransportError(f"a transaction did not end well: {error}"))
        raise
    except MtosiError as error:
        reason = link.await_refused(_LATE) if at_once else link.take_refused()
        if entries or begun:  # the broker's own book of them is of no use any more
            link.end(TransportError(f"a transaction did not end well: {error}"))
        raise reason or error from error


def _announce(link: Link, frames: Sequence[Frame], deadline: float) -> None:
    *before, last = frames
    try:
        link.send([last], deadline, before=before, confirmed=True)
    except (UnknownOutcomeError, WriteError) as error:  # COMMIT was not sent, so the outcome is known all the same
        link.end(TransportError(f"a transaction was not taken: {error}"))
        raise link.take_refused() or TransportError(f"{error}; the transaction is rolled back") from error


def _acknowledgements(transaction: Transaction, entries: Sequence[Entry]) -> list[Frame]:
    return _inside([entry.acknowledgement() for entry in entries], {"transaction": transaction.name})


def _inside(frames: Sequence[Frame], transaction: dict[str, str]) -> list[Frame]:
    return [(command, {**headers, **transaction}, body) for command, headers, body in frames]
