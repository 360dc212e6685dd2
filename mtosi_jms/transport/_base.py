"""The seam: what every JMS provider looks like from this side. Messages and destinations; nothing of what they carry.

A connection makes sessions, a session sends and makes consumers, a consumer hands out deliveries. A connection begins
stopped: sending works at once (C44), receiving waits for `start`. Threads may share connections.

A session, with its producers, consumers and deliveries, is a single-threaded context (P4): a call that comes while
another thread is in one raises IllegalStateError, whatever the two are. `close` is the exception: any thread may call
it, and it wakes a receiver or sender that is blocked. A session whose consumers have listeners belongs to the thread
that runs them, as long as its connection is started. What is left unacknowledged when a session ends is delivered
again, by DUPS_OK excepted.

A send with a completion listener, or for a future, returns before its outcome is known (`completion`, JMS 2.0). It
does not dedicate the session to anybody; `close`, `commit` and `rollback` wait for what is open.

What a wire cannot do, its transport lacks (`Connection.capabilities`), and asking for it is a ConfigError; it is never
made up for in part.
"""

from __future__ import annotations

import enum
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self, TypeAlias

from mtosi_jms.closing import Closeable
from mtosi_jms.errors import IllegalStateError, TransportError
from mtosi_jms.jms import Destination, NamingContext, TemporaryQueue, TemporaryTopic
from mtosi_jms.jms.message import DeliveryMode, JmsMessage
from mtosi_jms.telemetry import Telemetry
from mtosi_jms.transport._completion import CompletionListener, Completions, FutureListener
from mtosi_jms.transport._descriptor import Capability, ConnectionMetadata

log = logging.getLogger(__package__)


class AckMode(enum.Enum):
    """Who acknowledges what a session receives (P19).

    AUTO: the session, as it hands a message out, or when the listener has returned.
    CLIENT: the application, each message by itself, with `Delivery.acknowledge`.
    DUPS_OK: the session, now and then and when it or the consumer is closed; after `recover` or a failure messages
        come again that were done with.
    """

    AUTO = "AUTO"
    CLIENT = "CLIENT"
    DUPS_OK = "DUPS_OK"


class _Closeable(Closeable):
    @abstractmethod
    def close(self) -> None:
        """Ends it, and returns when listeners that are running have; a blocked receiver gets None.

        Any thread may call it, more than once, but no signal handler. From within a listener it waits for no listener.
        A session and a connection first finish what was sent asynchronously (A15 to A19).

        Raises:
            IllegalStateError: a completion listener closes what it belongs to (A37).
        """


class Delivery(ABC):
    """One message as handed to one consumer.

    Attributes:
        message: the message, with `redelivered` and `delivery_count` set.
    """

    __slots__ = ("message",)

    message: JmsMessage

    @abstractmethod
    def acknowledge(self) -> None:
        """Tells the provider that the message is done with; of no effect in other modes than CLIENT, or again.

        Raises:
            IllegalStateError: the session was closed or recovered since, so the message will be delivered again.
            TransportError: the provider cannot be told; the message may be delivered again.
        """


Listener: TypeAlias = Callable[[Delivery], object]
"""Takes a message; what it raises is reported, and has the message delivered again (P6)."""

ErrorHook: TypeAlias = Callable[[BaseException, Delivery | None], object]
"""Takes what a listener raised, with its delivery; without one: the provider failed, and no more messages come."""


InterruptionHook: TypeAlias = Callable[[str], object]
"""Takes why messages did not come for a while."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """Stands among a consumer's messages where the connection was lost.

    Attributes:
        reason: as the provider tells it; no credential.
    """

    reason: str

    def tell(self, hook: InterruptionHook | None) -> None:
        """Calls the hook; what it raises is reported."""
        if hook is not None:
            try:
                hook(self.reason)
            except Exception:
                log.exception("on_interrupted failed")


class Consumer(_Closeable):
    """Receives from one destination.

    Attributes:
        destination: what it receives from.
        selector: the selector it was made with, or None.
        durable: name of its durable subscription, or None.
        on_interrupted: told that the connection was lost, by a transport that makes it again by itself; None: nobody.
            It is called after the messages that came before the loss, and before any that come after it, in the thread
            that receives or runs the listener. Messages of a queue or a durable subscription come again; what was sent
            to a topic meanwhile is lost. Set it before the first message is received.
    """

    destination: Destination
    selector: str | None
    durable: str | None
    on_interrupted: InterruptionHook | None = None

    @abstractmethod
    def receive(self, timeout: float | None = None) -> Delivery | None:
        """The next message, waited for (P10).

        Args:
            timeout: seconds of real time to wait at most; 0 does not wait; None waits until there is one.

        Returns:
            The delivery, or None: the time ran out, or consumer, session or connection were closed meanwhile.

        Raises:
            IllegalStateError: it is closed already, another thread is using the session, or the session has a listener.
            TransportError: the provider failed.
        """

    @abstractmethod
    def listen(self, on_message: Listener, on_error: ErrorHook | None = None) -> None:
        """Has its messages handed to a listener from now on, by the one thread that serves all listeners of a session.

        Messages come one at a time and in order. When `on_message` raises, `on_error` is told, or the log where there
        is none, and then, in the modes AUTO, DUPS_OK and CLIENT, the message is delivered again at once, unless it was
        acknowledged. In a transacted session it stays part of the transaction, for the listener or `on_error` to roll
        back. Once the connection is started, no other thread may use the session but to close it.

        Args:
            on_message: called with each delivery.
            on_error: called in the same thread with what `on_message` raised.

        Raises:
            IllegalStateError: it has a listener, it is closed, or another thread is using the session.
        """


class Session(_Closeable):
    """A single-threaded context for sending and receiving; a transaction where it was made so (P18).

    Where it takes a destination, that may be a name of the connection's naming context, or `queue:X` or `topic:X`; a
    name that is not known is a NamingError. Every method but `close` raises IllegalStateError where the session is
    closed or another thread is using it.

    Attributes:
        connection: what it belongs to.
        ack_mode: how its deliveries are acknowledged; ignored if `transacted`.
        transacted: whether sends and receives take effect at `commit` alone.
        completions: its asynchronous sends.
    """

    connection: Connection
    ack_mode: AckMode
    transacted: bool
    completions: Completions
    _closed = False

    @property
    def is_closed(self) -> bool:
        """Whether it is, by itself or with its connection."""
        return self._closed

    @abstractmethod
    def send(
        self,
        destination: Destination | str,
        message: JmsMessage,
        listener: CompletionListener | None = None,
        *,
        timeout: float | None = None,
    ) -> JmsMessage:
        """Sends a message, and waits until the provider has it, or not (A1).

        Args:
            destination: where it goes.
            message: what is sent.
            listener: is told the outcome, which is not waited for; None: it is waited for. No listener is told of what
                this call raises.
            timeout: seconds that the call may take at most, waiting for room, a connection or the provider included;
                None: as long as the connection's own rules let it.

        Returns:
            The message as sent: destination, message id (`ID:...`), timestamp and expiration are the provider's (C45).
            With a listener, which gets that: the message as it was given (A21).

        Raises:
            InvalidDestinationError: the destination is gone.
            IllegalStateError: the message was sent asynchronously before and `strict_2012` holds.
            TransportError: the provider failed, or the time ran out; whether it has the message may be unknown.
        """

    def send_soon(
        self, destination: Destination | str, message: JmsMessage, *, can_wait: bool = False
    ) -> JmsMessage | None:
        """Sends a message without waiting for anything, if that can be: not for room, a connection or the provider.

        It keeps its place among the messages of the session. A transport may send it together with others. No outcome
        is told: nobody confirms it.

        Args:
            destination: where it goes.
            message: what is sent.
            can_wait: it may be held some milliseconds, for others to come or for the next call that sends anything.

        Returns:
            The message as sent, as `send` does; None: it was not sent, and must be sent by `send`. That is so for
            messages that the provider confirms, and in transacted sessions.
        """
        return None

    def send_async(self, destination: Destination | str, message: JmsMessage) -> Future[JmsMessage]:
        """Sends a message without waiting for its outcome, for which there is a future (A30, AX2).

        The future has the message as sent, or raises what `CompletionListener.on_exception` gets. It cannot be
        cancelled. Its callbacks may run in this thread, if it is done already. Raises what `send` does.
        """
        listener = FutureListener()
        self.send(destination, message, listener)
        return listener.future

    def producer(
        self,
        destination: Destination | str,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
        delivery_delay_ms: int | None = None,
    ) -> Producer:
        """A producer for a destination, with defaults of its messages (see `Producer`); making it sends nothing (R7).

        Raises:
            ConfigError: a setting out of its range.
        """
        return Producer(
            self,
            destination,
            delivery_mode=delivery_mode,
            priority=priority,
            time_to_live_ms=time_to_live_ms,
            delivery_delay_ms=delivery_delay_ms,
        )

    @abstractmethod
    def consumer(
        self,
        destination: Destination | str,
        selector: str | None = None,
        *,
        durable: str | None = None,
        shared: bool = False,
        no_local: bool = False,
    ) -> Consumer:
        """A consumer for a queue, a new subscription to a topic, or one that comes back to a durable subscription (P8).

        A durable subscription keeps messages while no consumer has it. It is known by the connection's client id and
        its name; another topic or selector makes a new one in its place. A shared one gives each message to one of its
        consumers (JMS 2.0); those of several connections share it where these have no client id.

        Args:
            destination: an administered destination, or a temporary one of this connection.
            selector: SQL-92 condition on headers and properties; None or blank takes every message.
            durable: name of a durable subscription, for an administered topic.
            shared: the durable subscription may have more than one consumer; not with `no_local`.
            no_local: leave out what was sent by this connection, for a topic.

        Raises:
            InvalidDestinationError: the temporary destination is gone or another connection's (R2c).
            SelectorError: the selector does not parse.
            ConfigError: `durable` or `no_local` for what is no topic, `durable` for a temporary one, `shared` without
                `durable`; or the transport lacks what was asked for.
            IllegalStateError: the durable subscription has a consumer, and is not shared, or with another selector.
        """

    @abstractmethod
    def unsubscribe(self, durable: str) -> None:
        """Ends a durable subscription, with all that it kept.

        Raises:
            InvalidDestinationError: it does not exist.
            IllegalStateError: a consumer has it, or messages of it are not acknowledged.
        """

    @abstractmethod
    def browse(self, queue: Destination | str, selector: str | None = None) -> list[JmsMessage]:
        """The messages that wait at a queue, in the order of delivery, without taking them.

        Messages handed out and not acknowledged are not among them.

        Args:
            queue: an administered queue, or a temporary one of this connection.
            selector: as for a consumer.

        Raises:
            ConfigError: it is a topic, or the transport lacks BROWSE.
            InvalidDestinationError: the temporary queue is gone or another connection's.
            SelectorError: the selector does not parse.
        """

    @abstractmethod
    def temporary_queue(self) -> TemporaryQueue:
        """Makes a queue that the connection owns and that goes with it (R2b)."""

    @abstractmethod
    def temporary_topic(self) -> TemporaryTopic:
        """Makes a topic that the connection owns and that goes with it."""

    @abstractmethod
    def recover(self) -> None:
        """Has every unacknowledged message delivered again, marked so; IllegalStateError in a transacted session."""

    @abstractmethod
    def commit(self) -> None:
        """Sends what was sent and acknowledges what was received since the last commit.

        First it waits for what was sent asynchronously, and for its listeners (A13).

        Raises:
            IllegalStateError: the session is not transacted; a completion listener commits what calls it.
            InvalidDestinationError: a destination is gone meanwhile; all is rolled back.
            ResourceLimitError: a destination has no room; all is rolled back.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Forgets what was sent, and has what was received delivered again, since the last commit.

        It waits as `commit` does (A14).

        Raises:
            IllegalStateError: the session is not transacted; a completion listener rolls back what calls it.
        """


class Producer(_Closeable):
    """Sends to one destination through a session (P11, O6a); made by `Session.producer`.

    It holds nothing: closing it matters only to wait for what it sent asynchronously. A setting comes from the call of
    `send` if it is given there, else from the producer, else from the message.

    Attributes:
        session: sends for it.
        destination: where its messages go.
        delivery_mode: default of its messages; None: as each message says.
        priority: the same, 0 to 9.
        time_to_live_ms: the same, milliseconds; 0: never expires.
        delivery_delay_ms: the same, milliseconds.

    Raises:
        ConfigError: a setting out of its range.
    """

    def __init__(
        self,
        session: Session,
        destination: Destination | str,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
        delivery_delay_ms: int | None = None,
    ) -> None:
        self.session = session
        self.destination = session.connection.names.lookup(destination)
        self.delivery_mode = delivery_mode
        self.priority = priority
        self.time_to_live_ms = time_to_live_ms
        self.delivery_delay_ms = delivery_delay_ms
        self._last = 0
        self._closed = False
        self._set(JmsMessage())

    def send(
        self,
        message: JmsMessage,
        listener: CompletionListener | None = None,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
        delivery_delay_ms: int | None = None,
    ) -> JmsMessage:
        """Sends a message with these settings; see `Session.send` for the rest.

        Raises:
            ConfigError: a setting out of its range.
            IllegalStateError: it is closed.
        """
        if self._closed:
            raise IllegalStateError("the producer is closed")
        asked = self._set(message, delivery_mode, priority, time_to_live_ms, delivery_delay_ms)
        completions = self.session.completions
        if asked is not message:  # the session never sees the object that the caller may send again
            completions.check(message)
        sent = self.session.send(self.destination, asked, listener)
        if listener is None:
            return sent
        completions.claim(message)
        self._last = completions.last
        return message

    def send_async(
        self,
        message: JmsMessage,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
        delivery_delay_ms: int | None = None,
    ) -> Future[JmsMessage]:
        """Sends a message without waiting for its outcome; see `Session.send_async`, and `send`."""
        listener = FutureListener()
        self.send(
            message,
            listener,
            delivery_mode=delivery_mode,
            priority=priority,
            time_to_live_ms=time_to_live_ms,
            delivery_delay_ms=delivery_delay_ms,
        )
        return listener.future

    def close(self) -> None:
        """Ends it, and returns when what it sent asynchronously is finished and its listeners have returned (A15).

        Raises:
            IllegalStateError: a completion listener closes a producer of the session that calls it (A37).
        """
        self.session.completions.check_thread()
        self._closed = True
        self.session.completions.await_told(self._last)

    def _set(
        self,
        message: JmsMessage,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
        delivery_delay_ms: int | None = None,
    ) -> JmsMessage:
        asked = {
            "delivery_mode": self.delivery_mode if delivery_mode is None else delivery_mode,
            "priority": self.priority if priority is None else priority,
            "time_to_live_ms": self.time_to_live_ms if time_to_live_ms is None else time_to_live_ms,
            "delivery_delay_ms": self.delivery_delay_ms if delivery_delay_ms is None else delivery_delay_ms,
        }
        settings: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
        return replace(message, **settings) if settings else message


class Connection(_Closeable):
    """A connection to a provider, stopped when made; threads may share it.

    Attributes:
        names: the naming context that it was opened with; empty where there was none.
        id: tells it from the provider's other connections; owner of its temporary destinations.
        client_id: whose durable subscriptions it has; empty where none was given.
        capabilities: what of JMS it can do.
        metadata: what is at the other end (R1).
        telemetry: hears what is done over the connection; None: nobody.
    """

    names: NamingContext
    id: str
    client_id: str
    capabilities: frozenset[Capability]
    metadata: ConnectionMetadata
    telemetry: Telemetry | None = None

    @property
    def is_up(self) -> bool:
        """Whether the provider is reached, as far as is known without asking it: False while a lost connection is made
        again, and once it is closed."""
        return True

    @property
    def dead_letter(self) -> Destination | None:
        """The queue where the provider parks what was delivered too often; None: that is not known here."""
        return None

    def consumers(self, destination: Destination) -> int | None:
        """How many consumers receive from a destination, those of other connections too; None: the wire does not
        tell."""
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it in a worker thread, for `async with`: closing waits for listeners and for the provider."""
        import asyncio  # loaded already where this runs

        await asyncio.to_thread(self.close)

    @abstractmethod
    def start(self) -> None:
        """Begins or resumes delivery to its consumers; no harm if it runs already.

        Raises:
            IllegalStateError: it is closed.
        """

    @abstractmethod
    def stop(self) -> None:
        """Holds delivery until `start`; a receiver that is blocked stays so, its time running on.

        Returns when listeners that are running have, save from within a listener.

        Raises:
            IllegalStateError: it is closed.
        """

    @abstractmethod
    def session(self, ack_mode: AckMode = AckMode.CLIENT, *, transacted: bool = False) -> Session:
        """Makes a session; give each thread its own.

        Raises:
            IllegalStateError: the connection is closed.
        """


def redeliver(session: Session) -> None:
    """Have a message that was not acknowledged delivered again, if the session is still open."""
    try:
        session.recover()
    except (TransportError, IllegalStateError) as error:  # closed meanwhile: then the provider delivers it again anyway
        log.debug("the session cannot be recovered: %s: %s", type(error).__name__, error)


def publish(session: Session, destination: Destination, message: JmsMessage) -> JmsMessage:
    """Send a message as `Session.send` does, and tell the telemetry of its connection."""
    telemetry = session.connection.telemetry
    if telemetry is None:
        return session.send(destination, message)
    publication = telemetry.publish(message, destination)
    try:
        sent = session.send(destination, publication.message)
    except BaseException as error:
        publication.end(error=error)
        raise
    publication.end(sent.message_id)
    return sent
