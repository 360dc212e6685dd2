"""The way of a connection to its provider: one Java connection at a time, replaced when it is lost."""

from __future__ import annotations

import itertools
import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol, Self

from mtosi_jms.errors import (
    AuthenticationError,
    ClientIdInUseError,
    ConfigError,
    IllegalStateError,
    MtosiError,
    TransportError,
)
from mtosi_jms.jms import Destination
from mtosi_jms.transport._buffered import BufferedFeed
from mtosi_jms.transport._session_core import T
from mtosi_jms.transport._threads import ReconnectPauses
from mtosi_jms.transport.jvm import machine
from mtosi_jms.transport.jvm._link import Factory, Link, name_of
from mtosi_jms.transport.jvm._messages import class_name, error_of, refused_login, translated
from mtosi_jms.transport.jvm._options import JvmOptions, Lookup

_GRACE: Final = 0.25
"""Seconds that an interrupted call has before the connection's socket is closed under it."""


def _is_reading_content(thread: Any) -> bool:
    """Whether Artemis' client, which hands a large message over before its content is there, waits for the content."""
    return any("LargeMessageController" in str(frame.getClassName()) for frame in thread.getStackTrace())


class Watch(machine.blocking):
    """A block around a call to Java, which is interrupted at a deadline. If it does not end by that, as a blocked write
    does not, the socket of `link` is closed. Raises TransportError: the call was interrupted, and failed.

    A call that receives has until `content_by` once the content of a message arrives; then `has_content` is set."""

    __slots__ = ("_calls", "_lock", "_thread", "content_by", "deadline", "fired", "has_content", "link")

    def __init__(self, calls: set[Watch], deadline: float, link: Link | None = None, content_by: float = 0.0) -> None:
        self.deadline = deadline
        self.content_by = content_by
        self.has_content = False
        self.fired = False
        self._calls = calls
        self.link = link
        self._lock = threading.Lock()
        self._thread: Any = None

    def __enter__(self) -> Self:
        super().__enter__()
        self._thread = machine.current_thread()
        self._calls.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._calls.discard(self)
        with self._lock:
            self._thread = None
        if self.fired:
            machine.jpype.JClass("java.lang.Thread").interrupted()  # a late interrupt must not stop another call
        super().__exit__(kind, error, trace)
        if self.fired and isinstance(error, MtosiError):  # whatever the client makes of an interrupt
            raise TransportError(f"the provider did not answer in time: {error}") from None

    def look(self, now: float) -> None:
        """Interrupts the call if its deadline has passed: each time, because a client may go on to wait."""
        if now < self.deadline:
            return
        with self._lock:
            if self._thread is None:
                return
            if now < self.content_by and _is_reading_content(self._thread):
                self.deadline, self.has_content = self.content_by, True
                return
            self.fired = True
            self._thread.interrupt()
            link, is_stuck = self.link, now >= self.deadline + _GRACE
            if is_stuck:
                self.link = None
        if is_stuck and link is not None:
            link.break_off()


_MOST: Final = 2
_changed: Final = threading.Condition()
_open: Final[dict[Attempt, None]] = {}


@dataclass(slots=True, eq=False, repr=False)  # `provider` may hold a password
class Attempt:
    """One attempt to open a link, in a thread of its own: a client of Java's may take longer than its time-out.

    One whose time is over goes on until Java returns, and closes what it has opened. Until then a provider has one
    attempt at a time beside it in this process, and none beside two such attempts."""

    provider: Hashable
    connection: str
    shown: str
    open_link: Callable[[], Link]
    discard: Callable[[Link], None]
    outcome: Link | BaseException | None = None
    is_late: bool = False

    def link(self, seconds: float) -> Link:
        """Waits for the attempts before it, then makes this one, within so many seconds. Raises MtosiError."""
        deadline = time.monotonic() + seconds
        with _changed:
            if not _changed.wait_for(self._may_begin, seconds):
                raise TransportError(f"{self.shown}: earlier attempts to connect have not returned from Java")
            _open[self] = None
            threading.Thread(target=self._run, name=f"connects-{self.connection}", daemon=True).start()
            try:
                _changed.wait_for(lambda: self.outcome is not None, deadline - time.monotonic())
            finally:  # also if a signal's handler raises
                self.is_late = self.outcome is None
        if self.outcome is None:
            raise TransportError(f"{self.shown}: no connection within {seconds:g} s")
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    def _may_begin(self) -> bool:
        others = [one for one in _open if one.provider == self.provider]
        late = [one for one in others if one.is_late]
        if any(one.connection == self.connection for one in late):
            return False
        return not late or len(late) == len(others) < _MOST

    def _run(self) -> None:
        try:
            outcome: Link | BaseException = self.open_link()
        except BaseException as error:  # noqa: BLE001 - for the thread that waits
            outcome = error
        with _changed:
            self.outcome = outcome
            is_late = self.is_late
            if not is_late:
                del _open[self]
            _changed.notify_all()
        if is_late:
            try:
                if isinstance(outcome, Link):
                    self.discard(outcome)
            finally:
                with _changed:
                    del _open[self]
                    _changed.notify_all()


log = logging.getLogger(__package__)

_LOOK: Final = 0.25
"""Longest seconds between checks for calls that take too long."""
_AGAIN: Final = 0.1
"""Seconds between interrupts of a call that goes on."""


class Owner(Protocol):
    """The owner of a channel. Its methods are called without the lock unless they say otherwise."""

    def on_lost(self, link: Link) -> None:
        """The lock is held."""
        ...

    def on_link(self, link: Link) -> None:
        """Restores on a new link what existed on the lost one. Raises MtosiError: the provider refuses it."""
        ...

    def is_closing(self) -> bool: ...

    def on_reconnected(self) -> None: ...

    def wake_all(self) -> None:
        """The lock is held."""
        ...


class Channel:
    """The links of one connection. The owner, notified of losses and new links, is held by a weak reference. `events`:
    Java's queue of pairs: a number from `expect`, and the argument of its callback. `durables`: readers by name.

    Raises MtosiError: see `JvmConnection`."""

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
        self.durables: dict[str, BufferedFeed] = {}
        self._temporaries: dict[Destination, None] = {}
        self._calls: set[Watch] = set()
        self._work: set[object] = set()  # what may still call Java when the channel is closed
        self._connecting: Watch | None = None
        self._pauses = ReconnectPauses()
        self._over = threading.Event()
        machine.start()
        self._numbers = itertools.count(1)
        self._expected: dict[int, Callable[[Any], object]] = {}
        self.events = machine.jpype.JClass("java.util.concurrent.LinkedBlockingQueue")()
        work = (weakref.ref(self), self.events)
        threading.Thread(target=_watch, args=work, name=f"watches-{name}", daemon=True).start()
        try:
            self._link = self._open(lambda link: None)
        except BaseException:
            self._over.set()
            raise

    def __str__(self) -> str:
        return f"jvm:{self._lookup.factory}"

    @property
    def first(self) -> Link:
        """The current link, or the last one."""
        return self._link

    def goodbye(self, deadline: float | None = None) -> float:
        """Returns the time, by the monotonic clock, until which closing waits for the provider: `deadline` at most."""
        return self.options.goodbye() if deadline is None else min(self.options.goodbye(), deadline)

    def check_alive(self) -> None:
        if self._failed is not None:
            kind = type(self._failed) if isinstance(self._failed, TransportError) else TransportError
            raise kind(str(self._failed))

    def close(self, deadline: float) -> None:
        """Closes the channel, waiting for the provider until `deadline`."""
        with self._lock:
            self._work.add(self)
            self._over.set()
            self._changed.notify_all()
            link, connecting = self._link, self._connecting
        if connecting is not None:
            connecting.deadline = 0.0
        if link.lost is None:
            self._discard(link, deadline)
        self._work.discard(self)

    @property
    def is_up(self) -> bool:
        return self._link.lost is None

    def link(self, deadline: float) -> Link:
        """Returns the link; if it was lost, waits for a new one. Raises IllegalStateError: the connection is closed;
        TransportError: no link came up in time; nothing was sent."""
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
        deadline = self.deadline()
        link = self.link(deadline)
        java = self._make_temporary(link, kind, deadline)
        made = kind(name_of(java), self._name)
        with self._lock:
            link.own(made, java)
            self._temporaries[made] = None
        return made

    def _make_temporary(self, link: Link, kind: type[Destination], deadline: float) -> Any:
        with self.session(link, deadline) as session, translated():
            return session.createTemporaryTopic() if kind.is_topic else session.createTemporaryQueue()

    @contextmanager
    def session(self, link: Link, deadline: float) -> Iterator[Any]:
        """A block with a Java session of its own, in which calls to Java are watched. Raises TransportError: it did not
        end until `deadline`."""
        with self.watched(deadline, link):
            session = link.session()
            try:
                yield session
            except BaseException:
                with suppress(MtosiError), translated():
                    session.close()
                raise
            with translated():
                session.close()

    def note_failure(self, link: Link, error: MtosiError, deadline: float | None = None) -> bool:
        """Checks whether the link is lost, after a call on it failed."""
        if link.lost is None:
            try:
                with self.session(link, self.goodbye(deadline)):
                    pass
            except MtosiError:
                self.give_up(link, error)
        return link.lost is not None

    def give_up(self, link: Link, error: MtosiError) -> None:
        """Treats a link as lost that failed or did not answer in time."""
        self._lose(link, TransportError(str(error)))

    def deadline(self) -> float:
        """Returns the time, by the monotonic clock, until which a call without a time-out of its own may take."""
        return time.monotonic() + self.options.send_timeout

    def watched(self, deadline: float | None = None, link: Link | None = None, content_by: float = 0.0) -> Watch:
        """Returns a block in which calls to Java are ended at a deadline (monotonic clock; None: see `deadline`)."""
        return Watch(self._calls, self.deadline() if deadline is None else deadline, link, content_by)

    def expect(self, callback: Callable[[Any], object]) -> int:
        """Registers a callback for an event of Java, and returns its number. The watching thread calls the callback."""
        number = next(self._numbers)
        self._expected[number] = callback
        return number

    def expect_no_more(self, number: int) -> None:
        self._expected.pop(number, None)

    def claim(self, durable: str) -> None:
        """Raises IllegalStateError if a consumer has the durable subscription. The lock is held."""
        if (reader := self.durables.get(durable)) is not None:
            why = "messages of it are not acknowledged" if reader.closed else "a consumer has it"
            raise IllegalStateError(f"durable subscription {durable!r}: {why}")

    # In the watching thread.

    def look(self, event: Any) -> float | None:
        """Handles an event of Java, and ends calls that take too long. Returns seconds until the next look; None: the
        end."""
        is_over = self._over.is_set()
        if event is not None and not is_over:
            callback = self._expected.get(int(event.getKey()))
            if callback is not None:
                callback(event.getValue())
        now = time.monotonic()
        calls = self._calls.copy()
        for call in calls:
            call.look(now)
        if is_over and not calls and not self._work:
            return None
        first = min((call.deadline for call in calls), default=math.inf)
        return min(max(first - now, _AGAIN), _LOOK)

    # Connecting: in the thread that makes the connection, then in one thread after each loss.

    def _open(self, restore: Callable[[Link], object]) -> Link:
        """Opens a link, has it restored, and makes it the current one unless it is lost by then. Raises MtosiError."""
        provider = self._lookup.factory, *sorted(self._environment.items())
        attempt = Attempt(provider, self._name, str(self), self._connect, self._discard)
        link = attempt.link(self.options.connect_timeout)
        try:
            restore(link)
            with self._lock:
                if self._over.is_set():
                    raise IllegalStateError("the connection is closed")
                if link.lost is not None:
                    raise TransportError(str(link.lost))
                link.taken = time.monotonic()
                self._link = link
                self._changed.notify_all()
                if (owner := self._owner()) is not None:
                    owner.wake_all()
        except BaseException:
            self._discard(link)
            raise
        return link

    def _connect(self) -> Link:
        with self.watched(time.monotonic() + self.options.connect_timeout) as watch:
            self._connecting = watch
            try:
                loader = machine.loader(machine.jars_of(self.options.classpath))
                factory = Factory(self._lookup, self._environment, loader, self.options.jndi_names)
                watch.link = link = factory.link(self.options)
                try:
                    link.number = self.expect(lambda error: self._on_reported(link, error))
                    listener = link.api.Crossing(self.events, link.number)
                    with translated(str(self)):
                        link.java.setExceptionListener(listener)
                        link.java.start()
                except MtosiError as error:
                    self._discard(link)
                    raise refused_login(error) from None
                return link
            finally:
                self._connecting = None

    def _discard(self, link: Link, deadline: float | None = None) -> None:
        """Closes a link, until a deadline; None: as long as closing may take."""
        self.expect_no_more(link.number)
        watch = self.watched(self.goodbye() if deadline is None else deadline, link)
        try:
            with watch:
                link.close()
        except MtosiError as error:
            if link.lost is None:
                log.warning("%s did not close in order: %s: %s", self, type(error).__name__, error)
        if watch.fired:
            link.break_off()

    def _on_reported(self, link: Link, error: Any) -> None:
        """The client reports a loss. ActiveMQ Classic's also reports a refused message that no caller waits for."""
        if class_name(error).endswith(".DestinationDoesNotExistException"):
            log.warning("%s: a message was refused and is lost: %s", self, error_of(error))
        else:
            self._lose(link, TransportError(str(error_of(error))))

    def _lose(self, link: Link, error: TransportError) -> None:
        with self._lock:
            if link.lost is not None:
                return
            link.lost = error
            self.expect_no_more(link.number)
            if link.taken is None or self._over.is_set():  # who opens or closes it sees to the rest
                return
            owner = self._owner()
            reconnects = self.options.reconnect and owner is not None and not owner.is_closing()
            if not reconnects:
                self._failed = error
            if owner is not None:
                owner.on_lost(link)
                owner.wake_all()
            self._changed.notify_all()
            self._in_thread("closes", self._discard, link)
            if reconnects:
                self._in_thread("reconnects", self._reconnect, link)

    def _in_thread(self, what: str, work: Callable[[Link], None], link: Link) -> None:
        mark = object()
        self._work.add(mark)

        def run() -> None:
            try:
                work(link)
            finally:
                self._work.discard(mark)

        threading.Thread(target=run, name=f"{what}-{self._name}", daemon=True).start()

    def _reconnect(self, lost: Link) -> None:
        """Makes the connection again, however long that takes. One thread at a time: only a taken link is lost."""
        since = time.monotonic()
        if lost.taken is not None:
            self._pauses.after(since - lost.taken)
        while not self._over.wait(self._pauses.next()):
            try:
                self._open(self._restore)
            except Exception as error:  # noqa: BLE001 - whatever a client of Java's raises, the next attempt comes
                log.warning("%s: not yet connected again: %s: %s", self, type(error).__name__, error)
                if self._gives_up(error, since):
                    return
                continue
            log.warning("%s: the connection was lost (%s), and made again", self, lost.lost)
            if (owner := self._owner()) is not None:
                owner.on_reconnected()
            return

    def _gives_up(self, error: Exception, since: float) -> bool:
        """Whether no more attempt is made. A client id in use is not final: the broker may not know of the loss yet."""
        limit = self.options.reconnect_timeout
        over = limit is not None and time.monotonic() - since >= limit
        final = isinstance(error, AuthenticationError | ConfigError) and not isinstance(error, ClientIdInUseError)
        if not over and not final and self._owner() is not None:
            return False
        with self._lock:
            self._failed = error if isinstance(error, MtosiError) else TransportError(str(error))
            self._changed.notify_all()
            if (owner := self._owner()) is not None:
                owner.wake_all()
        return True

    def _restore(self, link: Link) -> None:
        """Restores on a new link what existed on the lost one: temporary destinations, then consumers."""
        with self._lock:
            temporaries = list(self._temporaries)
        for destination in temporaries:
            link.own(destination, self._make_temporary(link, type(destination), self.deadline()))
        if (owner := self._owner()) is not None:
            owner.on_link(link)


def _watch(weak: weakref.ref[Channel], events: Any) -> None:
    """Watches until the channel is closed or dropped. While it waits, it does not keep the channel alive."""
    machine.attach()
    unit = machine.jpype.JClass("java.util.concurrent.TimeUnit").MILLISECONDS
    seconds: float | None = _LOOK
    while seconds is not None:
        try:
            with machine.blocking():
                event = events.poll(int(seconds * 1_000), unit)
        except IllegalStateError:  # the process ends
            return
        channel = weak()
        seconds = None if channel is None else channel.look(event)
        del channel, event
