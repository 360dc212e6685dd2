"""Keeps a connection's link: opens it, exchanges heart-beats, and makes another link when it is lost."""

from __future__ import annotations

import logging
import math
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
from mtosi_jms.transport._backoff import ReconnectPauses
from mtosi_jms.transport.stomp._dialect import Dialect, dialect_of
from mtosi_jms.transport.stomp._frames import Received
from mtosi_jms.transport.stomp._link import Link
from mtosi_jms.transport.stomp._options import Address, StompOptions

log = logging.getLogger(__package__)

_ATTEMPTS: Final = 3
"""Maximum attempts at a broker that closes the connection without an answer."""


class Owner(Protocol):
    lock: threading.Lock
    wake_all: Callable[[], None]
    on_reconnected: Callable[[], None]

    def restore(self, link: Link) -> None: ...

    def on_messages(self, link: Link, frames: Sequence[Received]) -> None: ...

    def on_unsent(self, frames: Sequence[bytes]) -> None: ...

    def on_lost(self, link: Link) -> None: ...


class Reconnector:
    """The life of a connection's links. The owner is told of messages, losses and new links; its lock guards this
    state."""

    def __init__(self, addresses: Sequence[Address], options: StompOptions, owner: Owner) -> None:
        self.address = addresses[0]
        self._addresses = tuple(addresses)
        self._options = options
        self._owner = owner
        self._changed = threading.Condition(owner.lock)
        self._link: Link | None = None
        self._trying: Link | None = None
        self._pauses = ReconnectPauses()
        self._since = 0.0
        self._dialect: Dialect | None = None
        self._failed: MtosiError | None = None
        self._closed = threading.Event()
        self._deadline: float | None = None

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    def open(self) -> Dialect:
        """Connects to the first broker that can be reached. Raises MtosiError: for several brokers, the last error."""
        link = self._first(self._addresses)
        self._dialect = dialect_of(link.headers.get("server", ""), link.address)
        with self._owner.lock:
            self._link, self._trying = link, None
            self._since = time.monotonic()
        return self._dialect

    def start(self, name: str) -> None:
        work = (weakref.ref(self), self._changed, self._closed)
        threading.Thread(target=_look_after, args=work, name=name, daemon=True).start()

    def link(self, deadline: float) -> Link:
        """Returns the link; waits for a new one if it was lost. Raises IllegalStateError: closed; TransportError: none
        came in time, or it was closed meanwhile; nothing was sent."""
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
        """Disconnects, waiting for an answer until the deadline. Does not wait for a connection that is being made."""
        with self._owner.lock:
            self._closed.set()
            link, trying = self._link, self._trying
            self._changed.notify_all()
        if trying is not None:
            trying.end(TransportError("the connection is closed"))
        if link is not None and link.lost is None:
            link.close(deadline)

    # The methods below are called with the connection's lock held.

    def check(self) -> None:
        """Raises TransportError if reconnecting failed for good, IllegalStateError if the connection was closed."""
        if self._closed.is_set():
            raise IllegalStateError("the connection is closed")
        if self._failed is not None:
            kind = type(self._failed) if isinstance(self._failed, TransportError) else TransportError
            raise kind(str(self._failed))

    @property
    def current(self) -> Link | None:
        return self._link if self._link is not None and self._link.is_up else None

    def notify(self) -> None:
        self._changed.notify_all()

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
        if not self._options.reconnect:
            self._give_up(lost or TransportError("the connection was lost"))
            return None
        patience = self._options.reconnect_timeout
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
        return (0.0, link) if self._take(link) else None

    def _rest(self, deadline: float) -> tuple[float, None]:
        return min(self._pauses.next(), max(deadline - time.monotonic(), 0.0)), None

    def _restored(self) -> Link:
        link = self._first(self._order())
        try:
            self._owner.restore(link)
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
    """Watches a link. Between checks it does not keep the connection alive, so a dropped connection ends."""
    while (alive := reconnector()) is not None and (look := alive._look()) is not None:
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
