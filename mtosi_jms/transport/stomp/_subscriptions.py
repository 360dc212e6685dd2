"""The subscriptions of a connection: made, made again on each new link, and ended, while threads close what has them.

The broker feeds whatever it holds for a subscription. One that nobody here knows any more would take messages away from
others, so each ends in one of two ways: by who closes its consumer, or, while it is being made, by who makes it.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from mtosi_jms.errors import IllegalStateError, MtosiError, TransportError, UnknownOutcomeError
from mtosi_jms.transport.stomp._link import Link
from mtosi_jms.transport.stomp._subscription import Subscription

if TYPE_CHECKING:
    from mtosi_jms.transport.stomp._consumer import StompConsumer

log = logging.getLogger(__name__)


class Subscriptions:
    """Those of one connection, by their ids.

    Args:
        lock: of the connection; guards what is in here.
        seconds: that the broker has to confirm one.
        goodbye: when what is being ended is no longer waited for, by the monotonic clock.
    """

    def __init__(self, lock: threading.Lock, seconds: Callable[[], float], goodbye: Callable[[], float]) -> None:
        self._lock = lock
        self._seconds = seconds
        self._goodbye = goodbye
        self._numbers = itertools.count(1)
        self._known: dict[str, Subscription] = {}

    def make(self, link: Link, address: str, headers: dict[str, str], consumer: StompConsumer) -> None:
        """Makes one for a consumer; where the consumer was closed meanwhile, it is ended again.

        Raises:
            MtosiError: the broker refuses it, or does not confirm it in time.
        """
        made = Subscription(f"s{next(self._numbers)}", address, headers, consumer)
        with self._lock:
            made.link = link
            self._known[made.number] = made
        try:
            link.request([made.frame()], self._seconds())
        except MtosiError as error:
            with self._lock:
                failed = made.link is link  # else the link was lost, and it is made again on the next one
                if failed:
                    self._known.pop(made.number, None)
            if failed:
                if isinstance(error, UnknownOutcomeError):
                    with contextlib.suppress(TransportError):
                        link.post([made.end()], self._goodbye())
                raise
        with self._lock:
            made.made = made.made or made.link is link
            closed = consumer.closed
            if not closed:
                consumer.subscriptions.append(made)
        if closed:
            self.end([made], self._goodbye())

    def end(self, subscriptions: Sequence[Subscription], deadline: float) -> None:
        """Ends some; the broker delivers again what was not acknowledged."""
        with self._lock:
            for one in subscriptions:
                self._known.pop(one.number, None)
            # One that is being made again is ended by whoever makes it, or the broker would be told too early.
            made = [(one, one.link) for one in subscriptions if one.made and one.link is not None]
        for one, link in reversed(made):  # what is returned last comes first again
            if link.lost is None:
                try:
                    link.request([one.end()], deadline - time.monotonic())
                except MtosiError as error:
                    log.warning("a subscription to %s was not ended in order: %s", one.consumer.destination, error)

    def renew(self, consumers: Iterable[StompConsumer], deadline: float) -> None:
        """Ends those of some consumers and makes another one for each: the broker delivers again what was not
        acknowledged.

        What came by them goes stale. Where that fails, the link is ended: they are made on the next one.
        """
        ended: list[tuple[Subscription, Link]] = []
        made: list[tuple[Subscription, Link]] = []
        with self._lock:
            for consumer in consumers:
                links = [(one, one.link) for one in consumer.subscriptions if one.made and one.link is not None]
                if not links or len(links) < len(consumer.subscriptions):  # they are lost, and made again anyway
                    continue
                ended += links
                for one, _ in links:
                    del self._known[one.number]
                    one.link, one.made = None, False
                first, link = links[0]
                again = first.anew(f"s{next(self._numbers)}")
                consumer.subscriptions = [again]
                self._known[again.number] = again
                made.append((again, link))
        try:
            for one, link in ended:
                link.request([one.end()], deadline - time.monotonic())
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
        link.request([again.frame()], deadline - time.monotonic())
        with self._lock:
            again.made = again.made or again.link is link
            closed = again.number not in self._known
        if closed:
            self.end([again], self._goodbye())

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
        link.request([one.frame() for one in all_of_them], self._seconds())
        with self._lock:
            for one in all_of_them:
                one.made = one.link is link
            ended = [one for one in all_of_them if one.number not in self._known]
        self.end(ended, self._goodbye())

    # What follows holds the lock already.

    def find(self, number: str) -> Subscription | None:
        """The one with this id."""
        return self._known.get(number)

    def check_free(self, durable: str) -> None:
        """Raises IllegalStateError where a consumer has the durable subscription."""
        for one in self._known.values():
            if one.consumer.durable == durable:
                why = "messages of it are not acknowledged" if one.consumer.closed else "a consumer has it"
                raise IllegalStateError(f"durable subscription {durable!r}: {why}")

    def lost(self, link: Link, *, is_told: bool) -> None:
        """A link was lost, and with it what came by it.

        Args:
            link: the link.
            is_told: whether the consumers are to tell, in the order of their messages, that they were interrupted.
        """
        for one in self._known.values():
            if one.link is link:
                one.link, one.made = None, False
                if is_told:
                    one.consumer.interrupted(str(link.lost))
