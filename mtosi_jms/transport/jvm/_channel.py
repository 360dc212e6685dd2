"""The way of a connection to its provider: one Java connection at a time, replaced when it is lost."""

from __future__ import annotations

import itertools
import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from types import TracebackType
from typing import Any, Final, Protocol

from mtosi_jms.errors import (
    AuthenticationError,
    ConfigError,
    IllegalStateError,
    MtosiError,
    TransportError,
)
from mtosi_jms.jms import Destination
from mtosi_jms.transport._backoff import Backoff
from mtosi_jms.transport._session_core import T
from mtosi_jms.transport.jvm import _machine as machine
from mtosi_jms.transport.jvm._api import error_of, refused_login, translated
from mtosi_jms.transport.jvm._link import Factory, Link, name_of
from mtosi_jms.transport.jvm._options import JvmOptions, Lookup

log = logging.getLogger(__package__)

_PAUSES: Final = Backoff(initial=0.1, maximum=30.0, jitter=0.1)
_LOOK: Final = 0.25
"""Seconds between checks for events from Java and for calls that take too long."""


class Reader(Protocol):
    """Reads a durable subscription. `closed`: its consumer is closed, but has unacknowledged messages."""

    closed: bool


class Owner(Protocol):
    """The owner of a channel. Its methods are called without the lock unless they say otherwise."""

    def on_lost(self, link: Link) -> None:
        """A link was lost; the lock is held."""
        ...

    def on_link(self, link: Link) -> None:
        """Restores on a new link what existed on the lost one.

        Raises:
            MtosiError: the provider refuses it.
        """
        ...

    def on_reconnected(self) -> None:
        """A lost connection was made again."""
        ...

    def wake_all(self) -> None:
        """Wakes waiting threads; the lock is held."""
        ...


class Watch(machine.blocking):
    """A block around a call to Java, which is interrupted at a deadline.

    Args:
        calls: the set of watched calls.
        deadline: by the monotonic clock.

    Attributes:
        deadline: see Args.
        fired: whether the call was interrupted.
    """

    __slots__ = ("_calls", "_lock", "_thread", "deadline", "fired")

    def __init__(self, calls: set[Watch], deadline: float) -> None:
        self.deadline = deadline
        self.fired = False
        self._calls = calls
        self._lock = threading.Lock()
        self._thread: Any = None

    def __enter__(self) -> None:
        super().__enter__()
        self._thread = machine.current_thread()
        self._calls.add(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._calls.discard(self)
        with self._lock:
            self._thread = None
        if self.fired:
            machine.jpype.JClass("java.lang.Thread").interrupted()  # a late interrupt must not stop another call
        super().__exit__(kind, error, trace)

    def interrupt(self) -> None:
        """Interrupts the call, unless it is over."""
        with self._lock:
            if self._thread is not None:
                self.fired = True
                self._thread.interrupt()


class Channel:
    """The links of one connection.

    Args:
        name: name of the connection, for threads.
        lookup: what to look up in JNDI.
        environment: properties of JNDI.
        options: see `JvmOptions`.
        lock: the connection's lock, which guards this state.
        owner: notified of losses and new links; held by a weak reference.

    Attributes:
        options: see Args.
        events: Java's queue of pairs: a number from `expect`, and the argument of its callback.
        durables: the readers of durable subscriptions, by name.

    Raises:
        MtosiError: see `JvmConnection`.
    """

    def __init__(
        self,
        name: str,
        lookup: Lookup,
        environment: Mapping[str, str],
        options: JvmOptions,
        lock: threading.Lock,
        owner: Owner,
    ) -> None:
        self.options = options
        self._name = name
        self._lookup = lookup
        self._environment = {**environment, **lookup.environment}
        self._lock = lock
        self._owner = weakref.ref(owner)
        self._changed = threading.Condition(lock)
        self._failed: MtosiError | None = None
        self.durables: dict[str, Reader] = {}
        self._temporaries: dict[Destination, None] = {}
        self._calls: set[Watch] = set()
        self._over = threading.Event()
        machine.start()
        self._numbers = itertools.count(1)
        self._expected: dict[int, Callable[[Any], object]] = {}
        self.events = machine.jpype.JClass("java.util.concurrent.LinkedBlockingQueue")()
        self._link = self._open()
        work = (weakref.ref(self), self.events)
        threading.Thread(target=_watch, args=work, name=f"watches-{name}", daemon=True).start()

    def __str__(self) -> str:
        return f"jvm:{self._lookup.factory}"

    @property
    def first(self) -> Link:
        """The current link, or the last one."""
        return self._link

    def goodbye(self) -> float:
        """Returns the time, by the monotonic clock, until which closing waits for the provider."""
        return time.monotonic() + min(self.options.close_timeout, self.options.send_timeout)

    def check_alive(self) -> None:
        """Raises TransportError if reconnecting failed for good."""
        if self._failed is not None:
            kind = type(self._failed) if isinstance(self._failed, TransportError) else TransportError
            raise kind(str(self._failed))

    def close(self, deadline: float) -> None:
        """Closes the channel, waiting for the provider until `deadline`."""
        with self._lock:
            self._over.set()
            self._changed.notify_all()
            link = self._link
        if link.lost is None:
            machine.attach()
            try:
                with self.watched(deadline):
                    link.close()
            except MtosiError as error:
                log.warning("%s did not close in order: %s: %s", self, type(error).__name__, error)

    @property
    def is_up(self) -> bool:
        """Whether a link is up."""
        return self._link.lost is None

    def link(self, deadline: float) -> Link:
        """Returns the link; if it was lost, waits for a new one.

        Raises:
            IllegalStateError: the connection is closed.
            TransportError: no link came up in time; nothing was sent.
        """
        machine.attach()
        with self._lock:
            while (link := self._link).lost is not None:
                if self._over.is_set():
                    raise IllegalStateError("the connection is closed")
                self.check_alive()
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise TransportError(f"{self}: the connection is lost and not yet restored; not sent")
                self._changed.wait(remaining)
            return link

    def make_temporary(self, kind: type[T]) -> T:
        """Makes a temporary destination. It is made again on each new link."""
        link = self.link(time.monotonic() + self.options.send_timeout)
        java = _make_temporary(link, kind)
        made = kind(name_of(java), self._name)
        with self._lock:
            link.own(made, java)
            self._temporaries[made] = None
        return made

    def note_failure(self, link: Link, error: MtosiError) -> bool:
        """Checks whether the link is lost, after a call on it failed.

        Returns:
            Whether it is.
        """
        if link.lost is None:
            try:
                with self.watched(self.goodbye()):
                    link.session().close()
            except MtosiError:
                self.give_up(link, error)
        return link.lost is not None

    def give_up(self, link: Link, error: MtosiError) -> None:
        """Treats a link as lost that failed or did not answer in time."""
        self._lose(link, TransportError(str(error)))

    def watched(self, deadline: float | None = None) -> Watch:
        """Returns a block in which a call to Java is interrupted at a deadline.

        Args:
            deadline: by the monotonic clock; None: `send_timeout` from now.
        """
        return Watch(self._calls, time.monotonic() + self.options.send_timeout if deadline is None else deadline)

    def expect(self, callback: Callable[[Any], object]) -> int:
        """Registers a callback for an event of Java, and returns its number. The watching thread calls the callback."""
        number = next(self._numbers)
        self._expected[number] = callback
        return number

    def expect_no_more(self, number: int) -> None:
        """Removes the callback of a number."""
        self._expected.pop(number, None)

    def claim(self, durable: str) -> None:
        """Raises IllegalStateError if a consumer has the durable subscription; the lock is held."""
        if (reader := self.durables.get(durable)) is not None:
            why = "messages of it are not acknowledged" if reader.closed else "a consumer has it"
            raise IllegalStateError(f"durable subscription {durable!r}: {why}")

    # The methods below run in the watching thread.

    def look(self, event: Any) -> bool:
        """Handles an event of Java, if any, and interrupts calls that take too long; returns False at the end."""
        if self._over.is_set():
            return False
        if event is not None:
            callback = self._expected.get(int(event.getKey()))
            if callback is not None:
                callback(event.getValue())
        now = time.monotonic()
        for call in self._calls.copy():
            if call.deadline <= now:  # each time: a client may catch an interrupt and wait for something else
                call.interrupt()
        return True

    def _open(self) -> Link:
        """Opens a new link in a separate thread, because Java may take longer than the time-out."""
        made: Future[Link] = Future()
        late = threading.Event()
        work = threading.Thread(target=self._open_into, args=(made, late), name=f"connects-{self._name}", daemon=True)
        work.start()
        try:
            return made.result(self.options.connect_timeout)
        except NotDone:
            late.set()
            raise TransportError(f"{self}: no connection within {self.options.connect_timeout:g} s") from None

    def _open_into(self, made: Future[Link], late: threading.Event) -> None:
        try:
            machine.attach()
            jars = machine.jars_of(self.options.classpath)
            loader = machine.loader(jars)
            factory = Factory(self._lookup.factory, self._environment, loader, self.options.jndi_names)
            link = Link(factory, factory.connect(self.options))
            link.number = self.expect(lambda error: self._lose(link, TransportError(str(error_of(error)))))
            listener = link.api.Crossing(self.events, link.number)
            try:
                with translated(str(self)):
                    link.java.setExceptionListener(listener)
                    link.java.start()
            except MtosiError as error:
                _close_quietly(link)
                raise refused_login(error) from None
            if late.is_set():
                _close_quietly(link)
            made.set_result(link)
        except BaseException as error:  # noqa: BLE001 - for the thread that waits
            made.set_exception(error)

    def _lose(self, link: Link, error: TransportError) -> None:
        with self._lock:
            if link.lost is not None:
                return
            link.lost = error
            self.expect_no_more(link.number)
            owner = self._owner()
            if owner is None or self._over.is_set():
                return
            owner.on_lost(link)
            if not self.options.reconnect:
                self._failed = error
            self._changed.notify_all()
            owner.wake_all()
        if self.options.reconnect:
            threading.Thread(target=self._reconnect, args=(link,), name=f"reconnects-{self._name}", daemon=True).start()

    def _reconnect(self, lost: Link) -> None:
        threading.Thread(target=_close_quietly, args=(lost,), name=f"closes-{self._name}", daemon=True).start()
        since = time.monotonic()
        attempt = 0
        while not self._over.is_set():
            try:
                link = self._open()
                self._restore(link)
            except MtosiError as error:
                log.warning("%s: not yet connected again: %s: %s", self, type(error).__name__, error)
                if self._gives_up(error, since):
                    return
                attempt += 1
                self._over.wait(_PAUSES.seconds(attempt))
                continue
            log.warning("%s: the connection was lost (%s), and made again", self, lost.lost)
            if (owner := self._owner()) is not None:
                owner.on_reconnected()
            return

    def _gives_up(self, error: MtosiError, since: float) -> bool:
        limit = self.options.reconnect_timeout
        over = limit is not None and time.monotonic() - since >= limit
        if not over and not isinstance(error, AuthenticationError | ConfigError):
            return False
        with self._lock:
            self._failed = error
            self._changed.notify_all()
            if (owner := self._owner()) is not None:
                owner.wake_all()
        return True

    def _restore(self, link: Link) -> None:
        """Restores on a new link what existed on the lost one: temporary destinations, then consumers."""
        with self._lock:
            temporaries = list(self._temporaries)
        for destination in temporaries:
            link.own(destination, _make_temporary(link, type(destination)))
        owner = self._owner()
        if owner is not None:
            owner.on_link(link)
        with self._lock:
            self._link = link
            over = self._over.is_set()
            self._changed.notify_all()
            if owner is not None:
                owner.wake_all()
        if over:
            _close_quietly(link)


def _make_temporary(link: Link, kind: type[Destination]) -> Any:
    session = link.session()
    try:
        return session.createTemporaryTopic() if kind.is_topic else session.createTemporaryQueue()
    except machine.jpype.JException as error:
        raise error_of(error) from None
    finally:
        session.close()


def _close_quietly(link: Link) -> None:
    machine.attach()
    try:
        link.close()
    except MtosiError as error:
        log.debug("a lost connection did not close: %s: %s", type(error).__name__, error)


def _watch(weak: weakref.ref[Channel], events: Any) -> None:
    """Watches until the channel is closed or dropped. While it waits, it does not keep the channel alive."""
    machine.attach()
    unit = machine.jpype.JClass("java.util.concurrent.TimeUnit").MILLISECONDS
    while True:
        try:
            with machine.blocking():
                event = events.poll(int(_LOOK * 1_000), unit)
        except IllegalStateError:  # the process ends
            return
        channel = weak()
        if channel is None or not channel.look(event):
            return
        del channel, event
