"""Keeps a connection's link: opens it, gives and awaits signs of life, and makes another when it is lost."""

from __future__ import annotations

import logging
import math
import random
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from mtosi_jms.errors import (
    AuthenticationError,
    ClientIdInUseError,
    ConfigError,
    IllegalStateError,
    MtosiError,
    TransportError,
    UnansweredError,
)
from mtosi_jms.transport.stomp._dialect import Dialect, dialect_of
from mtosi_jms.transport.stomp._frames import Received
from mtosi_jms.transport.stomp._link import Link
from mtosi_jms.transport.stomp._options import Address, StompOptions

log = logging.getLogger(__package__)

_FIRST_PAUSE: Final = 0.1
_LAST_PAUSE: Final = 30.0
_ASKED: Final = 3
"""Attempts at a broker that closes the connection without an answer."""


class Pauses:
    """The waits before attempts: none at all before the first, then longer and longer, with jitter."""

    def __init__(self) -> None:
        self._most = 0.0

    def after(self, lasted: float) -> None:
        """A connection was lost that had lasted so many seconds."""
        if lasted >= self._most:  # else a broker that takes and drops us again and again would be hammered
            self._most = 0.0

    def next(self) -> float:
        """Seconds before the next attempt."""
        seconds = self._most * random.uniform(0.5, 1.0)
        self._most = min(max(self._most * 2, _FIRST_PAUSE), _LAST_PAUSE)
        return seconds


class Owner(Protocol):
    """What a reconnector makes links for."""

    lock: threading.Lock
    wake_all: Callable[[], None]
    on_reconnected: Callable[[], None]

    def restore(self, link: Link) -> None:
        """Makes on a new link what was there on the one that was lost."""
        ...

    def on_messages(self, link: Link, frames: Sequence[Received]) -> None:
        """Messages came."""
        ...

    def on_unsent(self, frames: Sequence[bytes]) -> None:
        """Frames were taken by a link, and never went out."""
        ...

    def on_lost(self, link: Link) -> None:
        """A link was lost."""
        ...


class Reconnector:
    """The life of a connection's links.

    Args:
        addresses: of the brokers, in the order in which they are tried.
        options: see `StompOptions`.
        owner: told of messages, losses and new links; its lock guards what is in here.
    """

    def __init__(self, addresses: Sequence[Address], options: StompOptions, owner: Owner) -> None:
        self.address = addresses[0]
        self._addresses = tuple(addresses)
        self._options = options
        self._owner = owner
        self._changed = threading.Condition(owner.lock)
        self._link: Link | None = None
        self._trying: Link | None = None
        self._pauses = Pauses()
        self._since = 0.0
        self._dialect: Dialect | None = None
        self._failed: MtosiError | None = None
        self._closed = threading.Event()
        self._deadline: float | None = None

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed.is_set()

    def open(self) -> Dialect:
        """Connects to the first broker that can be reached.

        Raises:
            MtosiError: none can; why the last one cannot, where there are several.
        """
        link = self._first(self._addresses)
        self._dialect = dialect_of(link.headers.get("server", ""), link.address)
        with self._owner.lock:
            self._link, self._trying = link, None
            self._since = time.monotonic()
        return self._dialect

    def start(self, name: str) -> None:
        """Looks after the link from now on, in a thread of this name."""
        work = (weakref.ref(self), self._changed, self._closed)
        threading.Thread(target=_look_after, args=work, name=name, daemon=True).start()

    def link(self, deadline: float) -> Link:
        """The link that is up, waited for where it was lost.

        Raises:
            IllegalStateError: the connection is closed.
            TransportError: no link came up in time, or the connection was closed meanwhile; nothing was sent.
        """
        with self._owner.lock:
            self.check()
            while self._link is None or not self._link.is_up:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise TransportError(f"{self.address}: the connection is lost and not yet restored; not sent")
                self._changed.wait(remaining)
                if self.is_closed:
                    raise TransportError(f"{self.address}: the connection was closed meanwhile; not sent")
                self.check()
            return self._link

    def close(self, deadline: float) -> None:
        """Says goodbye and ends, at the deadline without an answer; a connection being made is not waited for."""
        with self._owner.lock:
            self._closed.set()
            link, trying = self._link, self._trying
            self._changed.notify_all()
        if trying is not None:
            trying.end(TransportError("the connection is closed"))
        if link is not None and link.lost is None:
            link.close(deadline)

    # What follows holds the connection's lock already.

    def check(self) -> None:
        """Raises TransportError where no broker could be reached again, IllegalStateError where it was closed."""
        if self._closed.is_set():
            raise IllegalStateError("the connection is closed")
        if self._failed is not None:
            kind = type(self._failed) if isinstance(self._failed, TransportError) else TransportError
            raise kind(str(self._failed))

    @property
    def current(self) -> Link | None:
        """The link that is up; None where it was lost."""
        return self._link if self._link is not None and self._link.is_up else None

    def notify(self) -> None:
        """The link was lost."""
        self._changed.notify_all()

    # What follows runs in a thread of its own.

    def _look(self) -> tuple[float, Link | None] | None:
        """Looks after the link. Gives the seconds until the next look, and the link whose loss ends them sooner; None:
        nothing is to be looked after any more."""
        if self._closed.is_set():
            return None
        try:
            return self._keep()
        except Exception as error:  # nobody else could tell those who wait that no connection will come
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
        if not self._options.reconnect:
            self._give_up(lost or TransportError("the connection was lost"))
            return None
        patience = self._options.reconnect_timeout
        self._deadline = math.inf if patience is None else time.monotonic() + patience
        self._pauses.after(time.monotonic() - self._since)
        return self._rest(self._deadline)

    def _renew(self, deadline: float) -> tuple[float, Link | None] | None:
        """Makes one attempt at another link."""
        try:
            link = self._restored()
        except MtosiError as error:
            if isinstance(error, AuthenticationError | ConfigError) or time.monotonic() >= deadline:
                self._give_up(error)
                return None
            log.warning("%s: not yet connected again: %s: %s", self.address, type(error).__name__, error)
            return self._rest(deadline)
        return (0.0, link) if self._take(link) else None

    def _rest(self, deadline: float) -> tuple[float, None]:
        return min(self._pauses.next(), max(deadline - time.monotonic(), 0.0)), None

    def _restored(self) -> Link:
        """A new link with all that the old one had.

        Raises:
            MtosiError: no broker can be reached now.
        """
        link = self._first(self._order())
        try:
            self._owner.restore(link)
        except MtosiError as error:  # the broker must not go on to send messages to it
            link.end(TransportError(f"{link.address}: not all of the connection could be made again: {error}"))
            raise
        return link

    def _order(self) -> list[Address]:
        """The brokers, those after the one that was lost first."""
        place = self._addresses.index(self.address) + 1
        return [*self._addresses[place:], *self._addresses[:place]]

    def _first(self, addresses: Sequence[Address]) -> Link:
        """A link to the first broker that can be had."""
        failures: list[MtosiError] = []
        for address in addresses:
            try:
                link = self._asked(address)
            except ClientIdInUseError as error:
                # After a loss the broker may not have noticed yet that the old connection is gone.
                failures.append(error if self._dialect is None else TransportError(str(error)))
            except MtosiError as error:
                failures.append(error)
            else:
                self.address = address
                return link
        # Who waits for one of several brokers does not give up because another one refuses.
        passing = (one for one in failures if self._dialect and not isinstance(one, AuthenticationError | ConfigError))
        raise next(passing, failures[-1])

    def _asked(self, address: Address) -> Link:
        """A link to a broker. ActiveMQ closes one connection of a hundred that it refuses before it has said why."""
        for _ in range(_ASKED - 1):
            try:
                return self._open(address)
            except UnansweredError as error:
                log.info("%s", error)
        return self._open(address)

    def _open(self, address: Address) -> Link:
        owner = self._owner
        hooks = _weakly(owner.on_messages), _weakly(owner.on_lost), _weakly(owner.on_unsent)
        link = Link(address, self._options, *hooks)
        with self._owner.lock:
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

    def _take(self, link: Link) -> bool:
        with self._owner.lock:
            self._link, self._trying = link, None
            self._since, self._deadline = time.monotonic(), None
            self._changed.notify_all()
            self._owner.wake_all()
            closed = self._closed.is_set()
        log.warning("%s: connected again", link.address)
        self._owner.on_reconnected()
        if closed:
            link.end(TransportError("the connection is closed"))
        return not closed

    def _give_up(self, error: MtosiError) -> None:
        with self._owner.lock:
            self._failed = error
            self._trying = None
            self._changed.notify_all()
            self._owner.wake_all()


def _look_after(reconnector: weakref.ref[Reconnector], changed: threading.Condition, closed: threading.Event) -> None:
    """Looks after a link, and keeps its connection while it looks alone: one that was dropped ends."""
    while (alive := reconnector()) is not None and (look := alive._look()) is not None:
        del alive
        seconds, link = look
        with changed:
            changed.wait_for(lambda link=link: closed.is_set() or (link is not None and link.lost), seconds)  # type: ignore[misc]


def _weakly(method: Callable[..., object]) -> Callable[..., None]:
    """Calls a method as long as there is its object, and does not keep that."""
    known = weakref.WeakMethod(method)

    def call(*args: object) -> None:
        alive = known()
        if alive is not None:
            alive(*args)

    return call
