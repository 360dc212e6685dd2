"""The common part of connections, sessions and consumers of all transports; see `docs/design/transport.md`.

Acknowledgement modes, recover, transactions, listeners, closing and the rule of one thread are implemented here, once.
A transport implements the methods with one underscore: how it connects, sends, subscribes and acknowledges. Unless
they say otherwise, these are called inside the session's `use` and without the connection's lock.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

from mtosi_jms.errors import ConfigError, IllegalStateError, TransportError
from mtosi_jms.jms import Destination, NamingContext, TemporaryQueue, TemporaryTopic
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.jms.selector import Selector, parse
from mtosi_jms.masking import shown_half_made
from mtosi_jms.telemetry import Count, log_message
from mtosi_jms.transport._base import (
    AckMode,
    Connection,
    Consumer,
    Delivery,
    ErrorHook,
    Interruption,
    Listener,
    Session,
)
from mtosi_jms.transport._completion import CompletionListener, Completions, SendRules
from mtosi_jms.transport._descriptor import Capability
from mtosi_jms.transport._listening import ListenerPump, SessionUse, in_listener
from mtosi_jms.transport._threads import Wakeup

_LAZY: Final = 16
"""How many messages a DUPS_OK session hands out before it acknowledges them together."""
_CLOSING: Final = 5.0
"""Seconds for which a second thread that closes a connection waits for the first."""


class Entry(Protocol):
    message: JmsMessage
    settled: bool


class Source(Protocol):
    """What messages come from: a queue, or the subscriptions of a consumer. `held`: how many were handed out and not
    settled."""

    held: int


E = TypeVar("E", bound=Entry)
S = TypeVar("S", bound=Source)
T = TypeVar("T", TemporaryQueue, TemporaryTopic)


class ConsumerSpec(NamedTuple):
    """What a consumer receives; `text` is the selector, and `selector` the same parsed."""

    destination: Destination
    text: str | None = None
    selector: Selector | None = None
    durable: str | None = None
    shared: bool = False
    no_local: bool = False


def _consumer_spec(
    given: Destination,
    text: str | None = None,
    durable: str | None = None,
    *,
    shared: bool = False,
    no_local: bool = False,
) -> ConsumerSpec:
    if no_local and not given.is_topic:
        raise ConfigError(f"{given}: no_local is for topics")
    if durable is not None:
        if not given.is_topic or given.is_temporary:
            raise ConfigError(f"{given}: a durable subscription is to an administered topic")
        if not durable.strip():
            raise ConfigError("a durable subscription needs a name")
    if shared and (durable is None or no_local):
        raise ConfigError("a shared subscription is a durable one with a name, and without no_local")
    parsed = parse(text or "")
    if text is None or parsed.tree is None:
        return ConsumerSpec(given, None, None, durable, shared, no_local)
    return ConsumerSpec(given, text.strip(), parsed, durable, shared, no_local)


class DeliveryCore(Delivery, Generic[E]):
    __slots__ = ("_session", "entry")

    def __init__(self, session: SessionCore[E, S], entry: E) -> None:
        self.message = entry.message
        self._session = session
        self.entry = entry

    def acknowledge(self) -> None:
        self._session.acknowledge(self.entry)


class ConsumerCore(Consumer, Generic[E, S]):
    """A consumer. `arrived` is set when there may be a message, or when no more will come."""

    def __init__(self, session: SessionCore[E, S], spec: ConsumerSpec, source: S) -> None:
        self.destination = spec.destination
        self.selector = spec.text
        self.durable = spec.durable
        self.session = session
        self.source = source
        self.closed = False
        self.arrived = Wakeup()

    def receive(self, timeout: float | None = None) -> DeliveryCore[E] | None:
        if timeout is not None and not timeout >= 0:
            raise ConfigError(f"timeout {timeout!r}: it must be a number of seconds of at least 0, or None")
        deadline = None if timeout is None else time.monotonic() + timeout
        session = self.session
        with session.use:
            while True:
                self._prepare()
                with session.lock:
                    found = self._await(deadline)
                if isinstance(found, Interruption):
                    found.tell(self.on_interrupted)
                elif found is None or not session.must_accept or session.accept(found.entry):
                    if found is not None:
                        log_message("received from", self.destination, found.message)
                    return found

    def listen(self, on_message: Listener, on_error: ErrorHook | None = None) -> None:
        with self.session.use, self.session.lock:
            self._check_open()
            self.session.pump.add(self, on_message, on_error)

    def close(self) -> None:
        session = self.session
        with session.lock:
            session.pump.remove(self)
            session.pump.await_idle(self)
            if self.closed:
                return
            self.shut()
        session.leave_consumer(self)

    def _prepare(self) -> None:
        """Called before the next message is looked for."""

    # The caller of every method below holds the lock.

    def take(self, *, listened: bool = False) -> DeliveryCore[E] | Interruption | None:
        """Hands out the next message or interruption; None if there is none or delivery is stopped."""
        session = self.session
        if self.closed or not session.connection.started:
            return None
        found = self._next()
        if found is None or isinstance(found, Interruption):
            return found
        if session.tracks_unsettled or listened:
            session.unsettled[found] = self.source
            self.source.held += 1
        return DeliveryCore(session, found)

    @abstractmethod
    def _next(self) -> E | Interruption | None: ...

    def signal(self) -> None:
        """Wakes the receiver or listener: there may be a message, or no more will come."""
        if self in self.session.use.listeners:
            self.session.pump.signal()
        else:
            self.arrived.set()

    def shut(self) -> None:
        self.closed = True
        self.arrived.set()

    def _check_open(self) -> None:
        self.session.check_open()
        if self.closed:
            raise IllegalStateError("the consumer is closed")

    def _await(self, deadline: float | None) -> DeliveryCore[E] | Interruption | None:
        session = self.session
        self._check_open()
        if session.use.listeners:
            raise IllegalStateError("the session has a listener: its messages are handed to that, not received")
        while not self.closed:
            if (found := self.take()) is not None:
                return found
            session.connection.check_alive()
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return None
            session.blocked = True
            try:
                self._sleep(None if left is None else min(left, threading.TIMEOUT_MAX))
            finally:
                session.blocked = False
        return None

    def _sleep(self, seconds: float | None) -> None:
        self.session.lock.release()
        try:
            self.arrived.wait(seconds)
        finally:
            self.session.lock.acquire()


class SessionCore(Session, Generic[E, S]):
    """A session. `lock` is the connection's. `use` is entered by every call but `close`. `blocked`: a thread waits in
    it, for a message or for room. `unsettled`: what was handed out and is not settled, in that order, with its source.
    """

    acknowledged_by_delivery: ClassVar[bool] = False
    """Whether a message that AUTO hands out needs no acknowledgement."""
    connection: ConnectionCore

    def __init__(self, connection: ConnectionCore, ack_mode: AckMode, *, transacted: bool) -> None:
        self.connection = connection
        self.lock = connection.lock
        self.ack_mode = ack_mode
        self.transacted = transacted
        self.use = SessionUse(self._is_elsewhere)
        self.pump = ListenerPump(self, self.use, connection.lock, f"listeners-{connection.id}")
        self.completions = Completions(connection.send_rules, connection.id)
        self.blocked = False
        self.consumers: dict[ConsumerCore[E, S], None] = {}
        self.unsettled: dict[E, S] = {}
        self.tracks_unsettled = transacted or ack_mode is not AckMode.AUTO or not self.acknowledged_by_delivery
        self.must_accept = self.tracks_unsettled and not transacted and ack_mode is not AckMode.CLIENT
        self._listened: E | None = None

    def send(
        self,
        destination: Destination | str,
        message: JmsMessage,
        listener: CompletionListener | None = None,
        *,
        timeout: float | None = None,
    ) -> JmsMessage:
        self.completions.check(message)
        if message.delivery_delay_ms:
            self._check_has(Capability.DELIVERY_DELAY)
        with self.use:
            target = self._named(destination)
            sent = self._send(target, message, listener, timeout)
        log_message("sent to", target, sent)
        return sent

    @abstractmethod
    def _send(
        self, destination: Destination, message: JmsMessage, listener: CompletionListener | None, timeout: float | None
    ) -> JmsMessage: ...

    def consumer(
        self,
        destination: Destination | str,
        selector: str | None = None,
        *,
        durable: str | None = None,
        shared: bool = False,
        no_local: bool = False,
    ) -> ConsumerCore[E, S]:
        spec = _consumer_spec(self._named(destination), selector, durable, shared=shared, no_local=no_local)
        if shared:
            self._check_has(Capability.SHARED_DURABLE)
        with self.use:
            return self._subscribe(spec)

    @abstractmethod
    def _subscribe(self, spec: ConsumerSpec) -> ConsumerCore[E, S]:
        """Makes a consumer, and adds it to `consumers`."""

    def browser(self, queue: Destination | str, selector: str | None = None) -> Generator[JmsMessage, None, None]:
        with self.use:
            return self._browsed(self._browse(self._browsable(queue, selector)))

    def headers(self, queue: Destination | str, selector: str | None = None) -> Generator[JmsMessage, None, None]:
        with self.use:
            return self._browsed(self._headers(self._browsable(queue, selector)))

    def count(self, queue: Destination | str, selector: str | None = None) -> int:
        with self.use:
            return self._count(self._browsable(queue, selector))

    def count_by(
        self, queue: Destination | str, names: Sequence[str], selector: str | None = None
    ) -> dict[str | None, int]:
        with self.use:
            return self._count_by(self._browsable(queue, selector), names)

    def _browsable(self, queue: Destination | str, selector: str | None) -> ConsumerSpec:
        spec = _consumer_spec(self._named(queue), selector)
        if spec.destination.is_topic:
            raise ConfigError(f"{spec.destination}: a queue can be browsed, a topic cannot")
        with self.lock:
            self.check_open()
        return spec

    def _browsed(self, some: Generator[list[JmsMessage], None, None]) -> Generator[JmsMessage, None, None]:
        with closing(some):
            while True:
                with self.use:  # others may use the session between the messages
                    with self.lock:
                        self.check_open()
                    found = next(some, None)
                if found is None:
                    return
                yield from found

    @abstractmethod
    def _browse(self, spec: ConsumerSpec) -> Generator[list[JmsMessage], None, None]:
        """See `Session.browser`; yields some at a time, or none where none has come for a while."""

    def _headers(self, spec: ConsumerSpec) -> Generator[list[JmsMessage], None, None]:
        return self._browse(spec)

    def _count(self, spec: ConsumerSpec) -> int:
        with closing(self._browse(spec)) as some:
            return sum(map(len, some))

    def _count_by(self, spec: ConsumerSpec, names: Sequence[str]) -> dict[str | None, int]:
        found: Counter[str | None] = Counter()
        with closing(self._headers(spec)) as some:
            for one in itertools.chain.from_iterable(some):
                found[next((str(one.properties[name]) for name in names if name in one.properties), None)] += 1
        return found

    def temporary_queue(self) -> TemporaryQueue:
        with self.use:
            return self._temporary(TemporaryQueue)

    def temporary_topic(self) -> TemporaryTopic:
        with self.use:
            return self._temporary(TemporaryTopic)

    @abstractmethod
    def _temporary(self, kind: type[T]) -> T: ...

    def recover(self) -> None:
        with self.use:
            with self.lock:
                self.check_open()
                if self.transacted:
                    raise IllegalStateError("a transacted session is rolled back, not recovered")
            self._give_back(list(self.unsettled))

    def commit(self) -> None:
        with self.use:
            self.completions.await_told()
            self._check_transacted()
            self._commit()

    @abstractmethod
    def _commit(self) -> None: ...

    def rollback(self) -> None:
        with self.use:
            self.completions.await_told()
            self._check_transacted()
            self._roll_back()

    @abstractmethod
    def _roll_back(self) -> None: ...

    def close(self) -> None:
        self.completions.check_thread()
        with self.lock:
            self.begin_close()
        self.completions.await_told()
        with self.lock:
            self.pump.await_idle()
            if self._closed:
                return
            self.shut()
        self.leave(self.connection.goodbye())

    @shown_half_made
    def __repr__(self) -> str:
        mode = "transacted" if self.transacted else self.ack_mode.value
        state = "closed, " if self._closed else ""
        held = f"{len(self.consumers)} consumers, {len(self.unsettled)} messages not acknowledged"
        return f"<{type(self).__name__} {mode}, {state}{held}>"

    def acknowledge(self, entry: E) -> None:
        if self.transacted or self.ack_mode is not AckMode.CLIENT or entry.settled:
            return
        with self.use:
            with self.lock:
                self.check_open()
                if entry not in self.unsettled:
                    raise IllegalStateError("the session was recovered: the message will be delivered again")
            self._acknowledge([entry])

    def accept(self, entry: E) -> bool:
        """Acts by the acknowledgement mode on a message to hand out; False: it must not be, for it comes again."""
        if not self.must_accept:
            return True
        if self.ack_mode is AckMode.DUPS_OK:
            if len(self.unsettled) > _LAZY:
                self._settle_lazily(but=entry)
            return True
        try:
            self._acknowledge([entry])
        except TransportError:
            self._forget([entry])
            return False
        return True

    def settle(self, delivery: Delivery, *, failed: bool) -> None:
        with self.lock:
            entry, self._listened = self._listened, None
            known = entry in self.unsettled
        try:
            if entry is not None and known:
                self._settle(entry, failed=failed)
        finally:
            if self._closed:  # the listener closed the session, and the rest of that is done here
                deadline = self.connection.goodbye()
                self.leave(deadline)
                self.connection.finish(deadline)

    def _settle(self, entry: E, *, failed: bool) -> None:
        if self.transacted:
            self._kept(entry)
        elif failed:
            self._give_back([entry])
        elif self.ack_mode is AckMode.AUTO or (self._closed and self.ack_mode is AckMode.DUPS_OK):
            self._acknowledge([entry])
        elif self.accept(entry):
            self._kept(entry)

    def _kept(self, entry: E) -> None:
        """Called when a listener has returned and its message stays unsettled."""

    def leave_consumer(self, consumer: ConsumerCore[E, S]) -> None:
        with self.lock:
            self.consumers.pop(consumer, None)
        deadline = self.connection.goodbye()
        self._settle_lazily(deadline)
        self._end_consumer(consumer, deadline)

    def _end_consumer(self, consumer: ConsumerCore[E, S], deadline: float) -> None:
        """Called when a consumer was closed, and messages of the mode DUPS_OK are acknowledged."""

    def leave(self, deadline: float) -> None:
        """Gives back the messages of a closed session. A listener keeps its message until it returns."""
        self._settle_lazily(deadline)
        self._end(deadline)
        with self.lock:
            if self._listened is None:
                self.connection.forget(self)

    @abstractmethod
    def _end(self, deadline: float) -> None:
        """Gives back the unsettled messages except `_listened`, and ends the sources of its consumers."""

    @abstractmethod
    def _acknowledge(self, entries: Sequence[E], deadline: float | None = None) -> None:
        """Acknowledges messages at the provider, and settles them. Raises TransportError: they are delivered again."""

    @abstractmethod
    def _give_back(self, entries: Sequence[E]) -> None:
        """Has messages redelivered, marked as such."""

    def _settle_lazily(self, deadline: float | None = None, but: E | None = None) -> None:
        """Acknowledges what was handed out in the mode DUPS_OK. While closing (`deadline` is given), failures are not
        reported: the messages come again."""
        if self.ack_mode is not AckMode.DUPS_OK or self.transacted:
            return
        entries = [one for one in list(self.unsettled) if one is not self._listened and one is not but]
        try:
            self._acknowledge(entries, deadline)
        except TransportError:
            if deadline is None:
                raise
            self._forget(entries)

    def _settled(self, entries: Iterable[E]) -> None:
        for entry in entries:
            entry.settled = True
        self._forget(entries)

    def _forget(self, entries: Iterable[E]) -> None:
        with self.lock:
            for entry in entries:
                self.remove_unsettled(entry)

    def _check_has(self, capability: Capability) -> None:
        if capability not in self.connection.capabilities:
            raise ConfigError(f"{self.connection.metadata.provider} lacks {capability.value}")

    def _named(self, given: Destination | str) -> Destination:
        return given if isinstance(given, Destination) else self.connection.names.lookup(given)

    def _is_elsewhere(self) -> bool:
        return self.connection.started and not self.pump.in_thread()

    def _check_transacted(self) -> None:
        with self.lock:
            self.check_open()
        if not self.transacted:
            raise IllegalStateError("the session is not transacted")

    # The caller of every method below holds the lock.

    def poll(self) -> tuple[Consumer, Delivery | Interruption] | None:
        for consumer in list(self.consumers):
            if consumer in self.use.listeners and (found := consumer.take(listened=True)) is not None:
                self._listened = found.entry if isinstance(found, DeliveryCore) else None
                self.consumers[consumer] = self.consumers.pop(consumer)  # to the end: the others are next
                if isinstance(found, DeliveryCore):
                    log_message("received from", consumer.destination, found.message)
                return consumer, found
        self.connection.check_alive()
        return None

    def begin_close(self) -> None:
        self.completions.begin_close()
        self.pump.end()

    def shut(self) -> None:
        """Marks the session and its consumers as closed; `leave` does the rest."""
        self._closed = True
        for consumer in self.consumers:
            consumer.shut()

    def check_open(self) -> None:
        if self._closed:
            raise IllegalStateError("the session is closed")

    def remove_unsettled(self, entry: E) -> S | None:
        """Removes a message from `unsettled`, and returns its source; None if a thread that closes has removed it."""
        source = self.unsettled.pop(entry, None)
        if source is not None:
            source.held -= 1
        return source

    def wake(self) -> None:
        for consumer in self.consumers:
            consumer.signal()


class ConnectionCore(Connection):
    """A connection. Its lock guards the state of its sessions and consumers. `started`: whether it delivers."""

    def __init__(self, lock: threading.Lock, names: NamingContext, client_id: str, send_rules: SendRules) -> None:
        self.lock = lock
        self.names = names
        self.client_id = client_id
        self.send_rules = send_rules
        self.started = False
        self._closing = False
        self._closed = False
        self._ended = threading.Event()
        self._sessions: dict[SessionCore[Any, Any], None] = {}

    def start(self) -> None:
        with self.lock:
            self._check_open()
            self.started = True
            self.wake_all()

    def stop(self) -> None:
        with self.lock:
            self._check_open()
            self.started = False
            self.wake_all()
            for session in list(self._sessions):
                session.pump.await_idle()

    def close(self) -> None:
        with self.lock:
            sessions = list(self._sessions)
            for session in sessions:
                session.completions.check_thread()
            for session in sessions:
                session.begin_close()
            self._closing = True
        for session in sessions:
            session.completions.await_told()
        with self.lock:
            again, self._closed = self._closed, True
        if again:  # another thread closes it and may wait for this listener, which therefore must not wait
            if not in_listener():
                self._ended.wait(_CLOSING)
            return
        with self.lock:
            for session in list(self._sessions):
                session.pump.await_idle()
            sessions = list(self._sessions)
            for session in sessions:
                session.shut()
        deadline = self.goodbye()
        for session in sessions:
            session.leave(deadline)
        self.finish(deadline)

    @property
    def is_up(self) -> bool:
        return not self._closing and self._is_reached()

    def _is_reached(self) -> bool:
        return True

    def on_reconnected(self) -> None:
        if self.telemetry is not None:
            self.telemetry.count(Count.RECONNECTS)

    @shown_half_made
    def __repr__(self) -> str:
        state = "closed" if self._closed else "started" if self.started else "stopped"
        return f"<{type(self).__name__} {self._where()}, {state}, {self.open_sessions} sessions>"

    @abstractmethod
    def _where(self) -> str:
        """The provider's name for people, without credentials."""

    @property
    def open_sessions(self) -> int:
        return len(self._sessions)

    def session(self, ack_mode: AckMode = AckMode.CLIENT, *, transacted: bool = False) -> SessionCore[Any, Any]:
        with self.lock:
            self._check_open()
            made = self._session(ack_mode, transacted)
            self._sessions[made] = None
            return made

    @abstractmethod
    def _session(self, ack_mode: AckMode, transacted: bool) -> SessionCore[Any, Any]:
        """The lock is held."""

    def goodbye(self) -> float:
        """Returns the time, by the monotonic clock, until which closing waits for the provider."""
        return math.inf

    def finish(self, deadline: float) -> None:
        """Ends a closed connection, once no listener still has a message that it acknowledges on return."""
        with self.lock:
            ended = self._closed and not self._sessions
        if ended:
            self._finish(deadline)
            self._ended.set()

    @abstractmethod
    def _finish(self, deadline: float) -> None:
        """Ends the rest of the connection, when all sessions are closed."""

    # The caller of every method below holds the lock.

    def check_alive(self) -> None:
        """Raises TransportError if no more messages can come."""

    def wake_all(self) -> None:
        for session in self._sessions:
            session.wake()

    def forget(self, session: SessionCore[Any, Any]) -> None:
        self._sessions.pop(session, None)

    def _check_open(self) -> None:
        if self._closing:
            raise IllegalStateError("the connection is closed")
