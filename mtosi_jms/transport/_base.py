"""The interface that every transport implements. It knows messages and destinations, but not what messages carry.

A connection makes sessions, a session sends and makes consumers, a consumer hands out deliveries. A new connection is
stopped: sending works at once (C44), receiving waits for `start`. Threads may share connections.

A session, with its producers, consumers and deliveries, is a single-threaded context (P4): any call raises
IllegalStateError while another thread is in a call. `close` is the exception: any thread may call it, and it wakes a
blocked receiver or sender. If a session's consumers have listeners, the session belongs to the thread that runs them
while its connection is started. Messages that are unacknowledged when a session ends are delivered again, except in the
mode DUPS_OK, which acknowledges them.

A send with a completion listener, or for a future, returns before its outcome is known (`completion`, JMS 2.0). It
does not bind the session to a thread; `close`, `commit` and `rollback` wait for such sends.

If a protocol lacks a feature, its transport lacks the capability (`Connection.capabilities`), and using it raises a
ConfigError. Transports do not emulate features in part.
"""

from __future__ import annotations

import enum
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias, TypedDict, Unpack

from mtosi_jms.closing import Closeable
from mtosi_jms.errors import IllegalStateError, TransportError
from mtosi_jms.jms import Destination, NamingContext, TemporaryQueue, TemporaryTopic
from mtosi_jms.jms.message import DeliveryMode, JmsMessage
from mtosi_jms.telemetry import Telemetry, published
from mtosi_jms.transport._completion import CompletionListener, Completions, FutureListener
from mtosi_jms.transport._descriptor import Capability, ConnectionMetadata

log = logging.getLogger(__package__)


class AckMode(enum.Enum):
    """Who acknowledges what a session receives (P19).

    AUTO: the session, as it hands a message out, or when the listener has returned.
    CLIENT: the application, each message by itself, with `Delivery.acknowledge`.
    DUPS_OK: the session, from time to time, and when it or the consumer is closed. After `recover` or a failure,
        messages that were already handled may come again.
    """

    AUTO = "AUTO"
    CLIENT = "CLIENT"
    DUPS_OK = "DUPS_OK"


class _Closeable(Closeable):
    @abstractmethod
    def close(self) -> None:
        """Closes this object, and returns when running listeners have returned; a blocked receiver gets None.

        Any thread may call it, also repeatedly, but a signal handler must not. Called by a listener, it waits for no
        listener. A session and a connection first finish asynchronous sends (A15 to A19). Raises IllegalStateError: a
        completion listener closes its own session, connection or producer (A37)."""


class Delivery(ABC):
    """One message as handed to one consumer. `message`: the message, with `redelivered` and `delivery_count` set."""

    __slots__ = ("message",)

    message: JmsMessage

    @abstractmethod
    def acknowledge(self) -> None:
        """Tells the provider that the message was handled. No effect in other modes than CLIENT, or if repeated. Raises
        IllegalStateError: the session was closed or recovered since, so the message will be delivered again;
        TransportError: the provider failed; the message may be delivered again."""


Listener: TypeAlias = Callable[[Delivery], object]
"""Takes a message. If it raises an exception, that is reported, and the message is delivered again (P6)."""

ErrorHook: TypeAlias = Callable[[BaseException, Delivery | None], object]
"""Takes the exception of a listener, with its delivery. Without a delivery: the provider failed, no messages follow."""


InterruptionHook: TypeAlias = Callable[[str], object]
"""Takes the reason of an interruption."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """Marks the place among a consumer's messages where the connection was lost. `reason`: the provider's text, without
    credentials."""

    reason: str

    def tell(self, hook: InterruptionHook | None) -> None:
        """Calls the hook, and logs an exception that it raises."""
        if hook is not None:
            try:
                hook(self.reason)
            except Exception:
                log.exception("on_interrupted failed")


class Consumer(_Closeable):
    """Receives from one destination.

    Attributes:
        durable: name of its durable subscription, or None.
        on_interrupted: called when the connection was lost, by a transport that reconnects by itself; None: no call.
            The call comes after the messages received before the loss and before those after it, in the thread that
            receives or runs the listener. Messages of a queue or a durable subscription come again; messages sent to a
            topic meanwhile are lost. Set it before the first message is received.
    """

    destination: Destination
    selector: str | None
    durable: str | None
    on_interrupted: InterruptionHook | None = None

    @abstractmethod
    def receive(self, timeout: float | None = None) -> Delivery | None:
        """Waits for the next message, and returns it (P10).

        `timeout`: longest wait in seconds of real time; 0: do not wait; None: no limit. None is returned if the time
        ran out, or the consumer, session or connection was closed meanwhile. Raises IllegalStateError: it is closed
        already, another thread is using the session, or the session has a listener; TransportError: the provider
        failed."""

    @abstractmethod
    def listen(self, on_message: Listener, on_error: ErrorHook | None = None) -> None:
        """Hands messages to a listener from now on. One thread serves all listeners of a session.

        Messages come one at a time and in order. If `on_message` raises an exception, `on_error` is called, or the log
        is written without it. Then, in the modes AUTO, DUPS_OK and CLIENT, the message is delivered again at once,
        unless it was acknowledged. In a transacted session it stays part of the transaction, for the listener or
        `on_error` to roll back. Once the connection is started, other threads may only close the session. `on_message`:
        called with each delivery. `on_error`: called in the same thread with the exception of `on_message`. Raises
        IllegalStateError: it has a listener, it is closed, or another thread is using the session."""


class SendSettings(TypedDict, total=False):
    """What a producer sets in a message; None: not here. Times are in milliseconds; a time to live of 0: for ever."""

    delivery_mode: DeliveryMode | None
    priority: int | None
    time_to_live_ms: int | None
    delivery_delay_ms: int | None


class Session(_Closeable):
    """A single-threaded context for sending and receiving, in transactions if it is transacted (P18).

    A destination may be given as a name in the connection's naming context, or as `queue:X` or `topic:X`; an unknown
    name raises a NamingError. Every method but `close` raises IllegalStateError if the session is closed or another
    thread is using it. `ack_mode`: how its deliveries are acknowledged; ignored if `transacted`. `transacted`: whether
    sends and receives take effect only at `commit`."""

    connection: Connection
    ack_mode: AckMode
    transacted: bool
    completions: Completions
    _closed = False

    @property
    def is_closed(self) -> bool:
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
        """Sends a message, and waits for the outcome (A1).

        Args:
            listener: called with the outcome, and the call does not wait; None: the call waits. The listener is not
                called with an error that this call raises.
            timeout: longest duration of the call in seconds, including waits for room, a connection or the provider;
                None: the limits of the connection.

        Returns:
            The message as sent, with the provider's destination, message id (`ID:...`), timestamp and expiration (C45).
            With a listener, which gets that message, this is the given message (A21).

        Raises:
            InvalidDestinationError: the destination does not exist any more.
            IllegalStateError: the message was sent asynchronously before, and `strict_2012` is set.
            TransportError: the provider failed, or the time ran out; whether it has the message may be unknown.
        """

    def send_soon(
        self, destination: Destination | str, message: JmsMessage, *, can_wait: bool = False
    ) -> JmsMessage | None:
        """Sends a message if that is possible without waiting for room, a connection or the provider.

        The message keeps its place among the messages of the session. A transport may send it together with others. Its
        outcome is not reported, because the provider does not confirm it. `can_wait`: the message may be held back for
        some milliseconds, until others or the next send follow.

        Returns the message as sent, as from `send`. None if it was not sent and must be sent by `send`: so for messages
        that the provider confirms, and in transacted sessions."""
        return None

    def send_async(self, destination: Destination | str, message: JmsMessage) -> Future[JmsMessage]:
        """Sends a message without waiting, and returns a future of its outcome (A30, AX2).

        The future gives the message as sent, or raises the error that `CompletionListener.on_exception` would get. It
        cannot be cancelled. Its callbacks may run in this thread if it is done already. Raises what `send` raises.
        """
        listener = FutureListener()
        self.send(destination, message, listener)
        return listener.future

    def producer(self, destination: Destination | str, **settings: Unpack[SendSettings]) -> Producer:
        """Makes a producer for a destination, with defaults for its messages; see `Producer`. Nothing is sent (R7).
        Raises ConfigError: a setting out of its range."""
        return Producer(self, destination, **settings)

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
        """Makes a consumer of a queue, of a new subscription to a topic, or of a durable subscription (P8).

        A durable subscription keeps messages while it has no consumer. Its name and the connection's client id identify
        it; with another topic or selector, a new one replaces it. A shared one gives each message to one of its
        consumers (JMS 2.0). Consumers of several connections can share it if these have no client id.

        Args:
            destination: an administered destination, or a temporary one of this connection.
            selector: SQL-92 condition on headers and properties; None or blank takes every message.
            durable: name of a durable subscription, for an administered topic.
            shared: the durable subscription may have more than one consumer; not with `no_local`.
            no_local: leave out messages that this connection sent; only for a topic.

        Raises:
            InvalidDestinationError: the temporary destination is gone or belongs to another connection (R2c).
            SelectorError: the selector does not parse.
            ConfigError: `durable` or `no_local` is given for a queue, `durable` for a temporary topic, or `shared`
                without `durable`; or the transport lacks the capability.
            IllegalStateError: the durable subscription has a consumer and is not shared, or is shared with another
                selector.
        """

    @abstractmethod
    def unsubscribe(self, durable: str) -> None:
        """Deletes a durable subscription, with the messages that it kept. Raises InvalidDestinationError: the
        subscription does not exist; IllegalStateError: it has a consumer, or unacknowledged messages."""

    @abstractmethod
    def browser(self, queue: Destination | str, selector: str | None = None) -> Generator[JmsMessage, None, None]:
        """Reads the messages that wait in a queue, in the order of delivery, without receiving them.

        They are fetched some at a time, while the iterator is read: it holds a few, however many there are. Close it if
        it is not read to its end. Messages that were delivered and not acknowledged are left out.

        Args:
            queue: an administered queue, or a temporary one of this connection.
            selector: as for a consumer.

        Yields:
            the messages. Those that come or go meanwhile may be among them or not.

        Raises:
            ConfigError: the destination is a topic, or the transport lacks BROWSE.
            InvalidDestinationError: the temporary queue is gone or belongs to another connection.
            SelectorError: the selector does not parse.
        """

    def browse(self, queue: Destination | str, selector: str | None = None) -> list[JmsMessage]:
        """Returns what `browser` reads, all at once."""
        return list(self.browser(queue, selector))

    @abstractmethod
    def headers(self, queue: Destination | str, selector: str | None = None) -> Generator[JmsMessage, None, None]:
        """Reads the messages that wait in a queue as `browser` does, but perhaps without bodies.

        Every transport can. One without BROWSE asks the broker's management, which tells headers and properties, in the
        order of sending, and what a property of text has beyond the broker's own limit is cut. Raises TransportError:
        besides what `browser` raises: the user may not ask the broker's management, or it does not list more."""

    @abstractmethod
    def count(self, queue: Destination | str, selector: str | None = None) -> int:
        """Counts the messages that wait in a queue; raises what `headers` raises."""

    @abstractmethod
    def count_by(
        self, queue: Destination | str, names: Sequence[str], selector: str | None = None
    ) -> dict[str | None, int]:
        """Counts the messages that wait in a queue by the text of a property: for each message the first of these that
        it has, None where it has none. Raises what `headers` raises."""

    @abstractmethod
    def temporary_queue(self) -> TemporaryQueue:
        """Makes a queue that the connection owns and that ends with it (R2b)."""

    @abstractmethod
    def temporary_topic(self) -> TemporaryTopic:
        """Makes a topic that the connection owns and that ends with it."""

    @abstractmethod
    def recover(self) -> None:
        """Has all unacknowledged messages redelivered, marked so; raises IllegalStateError in a transacted session."""

    @abstractmethod
    def commit(self) -> None:
        """Commits the messages that were sent and received since the last commit.

        First it waits for asynchronous sends and their listeners (A13). Raises IllegalStateError: the session is not
        transacted, or a completion listener commits its own session; InvalidDestinationError: a destination does not
        exist any more; the transaction is rolled back; ResourceLimitError: a destination has no room; the transaction
        is rolled back."""

    @abstractmethod
    def rollback(self) -> None:
        """Drops the messages sent since the last commit, and has those received since then delivered again.

        It waits as `commit` does (A14). Raises IllegalStateError: the session is not transacted, or a completion
        listener rolls back its own session."""


class Producer(_Closeable):
    """Sends to one destination through a session (P11, O6a); made by `Session.producer`.

    It holds no resources: `close` only waits for its asynchronous sends. A setting comes from the call of `send` if it
    is given there, else from the producer, else from the message. Raises ConfigError: a setting out of its range.
    """

    def __init__(self, session: Session, destination: Destination | str, **settings: Unpack[SendSettings]) -> None:
        self.session = session
        self.destination = session.connection.names.lookup(destination)
        self.settings = settings
        self._last = 0
        self._closed = False
        self._set(JmsMessage(), {})

    def send(
        self, message: JmsMessage, listener: CompletionListener | None = None, **settings: Unpack[SendSettings]
    ) -> JmsMessage:
        """Sends a message with these settings; see `Session.send` for the rest. Raises ConfigError: a setting out of
        its range; IllegalStateError: the producer is closed."""
        if self._closed:
            raise IllegalStateError("the producer is closed")
        prepared = self._set(message, settings)
        completions = self.session.completions
        if prepared is not message:  # the session never sees the object that the caller may send again
            completions.check(message)
        sent = self.session.send(self.destination, prepared, listener)
        if listener is None:
            return sent
        completions.claim(message)
        self._last = completions.last
        return message

    def send_async(self, message: JmsMessage, **settings: Unpack[SendSettings]) -> Future[JmsMessage]:
        """Sends a message without waiting for its outcome; see `Session.send_async`, and `send`."""
        listener = FutureListener()
        self.send(message, listener, **settings)
        return listener.future

    def close(self) -> None:
        """Closes the producer, and returns when its asynchronous sends are finished and their listeners returned (A15).
        Raises IllegalStateError: a completion listener closes a producer of its own session (A37)."""
        self.session.completions.check_thread()
        self._closed = True
        self.session.completions.await_told(self._last)

    def _set(self, message: JmsMessage, settings: SendSettings) -> JmsMessage:
        both = (*self.settings.items(), *settings.items())
        wanted: dict[str, Any] = {name: value for name, value in both if value is not None}
        return replace(message, **wanted) if wanted else message


class Connection(_Closeable):
    """A connection to a provider, stopped when made; threads may share it.

    Attributes:
        names: the naming context that it was opened with; empty if there was none.
        id: identifies the connection at the provider, and the owner of its temporary destinations.
        client_id: identifies its durable subscriptions; empty if none was given.
        capabilities: the JMS features that it supports.
        telemetry: receives reports of what is done over the connection, if given.
    """

    names: NamingContext
    id: str
    client_id: str
    capabilities: frozenset[Capability]
    metadata: ConnectionMetadata
    telemetry: Telemetry | None = None

    @property
    def is_up(self) -> bool:
        """Whether the provider is reached, as far as known without asking it: False during a reconnect, and after
        `close`."""
        return True

    @property
    def server(self) -> tuple[str, int] | None:
        """Host and port of the provider that is reached, or was last; None: not known."""
        return None

    @property
    def dead_letter(self) -> Destination | None:
        """The provider's dead-letter queue, for messages that were delivered too often; None: not known here."""
        return None

    def consumers(self, destination: Destination) -> int | None:
        """Returns how many consumers a destination has, including those of other connections; None if the protocol
        does not say."""
        return None

    def is_gone(self, destination: Destination) -> bool:
        """Whether a temporary destination ended with its connection; False if the protocol does not say."""
        return False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes the connection in a worker thread, because closing waits for listeners and for the provider."""
        import asyncio  # loaded already where this runs

        await asyncio.to_thread(self.close)

    @abstractmethod
    def start(self) -> None:
        """Starts or resumes delivery to the consumers. No effect if the connection is started already. Raises
        IllegalStateError: it is closed."""

    @abstractmethod
    def stop(self) -> None:
        """Pauses delivery until `start`. A blocked receiver stays blocked, and its time-out goes on.

        Returns when running listeners have returned. Called by a listener, it returns at once. Raises
        IllegalStateError: it is closed."""

    @abstractmethod
    def session(self, ack_mode: AckMode = AckMode.CLIENT, *, transacted: bool = False) -> Session:
        """Makes a session; give each thread its own. Raises IllegalStateError: the connection is closed."""


def redeliver(session: Session) -> None:
    """Have a message that was not acknowledged delivered again, if the session is still open."""
    try:
        session.recover()
    except (TransportError, IllegalStateError) as error:  # closed meanwhile: then the provider delivers it again anyway
        log.debug("the session cannot be recovered: %s: %s", type(error).__name__, error)


def publish(session: Session, destination: Destination, message: JmsMessage) -> JmsMessage:
    """Send a message as `Session.send` does, and report it to the telemetry of its connection."""
    with published(session.connection.telemetry, message, destination) as publication:
        sent = session.send(destination, publication.message)
        publication.sent(sent.message_id)
    return sent
