"""The seam: what every JMS provider looks like from this side. Messages and destinations; nothing of what they carry.

A connection makes sessions, a session sends and makes consumers, a consumer hands out deliveries. A connection begins
stopped: sending works at once (C44), receiving waits for `start`. A session, with its consumers and deliveries, is a
single-threaded context (P4): one thread at a time, except `close`, which any thread may call and which wakes a receiver
that is blocked. Connections may be shared by threads. What is left unacknowledged when a session ends is delivered
again.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from mtosi_jms.jms.destinations import Destination, TemporaryQueue, TemporaryTopic
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.jms.naming import NamingContext


class AckMode(enum.Enum):
    """Who acknowledges what a session receives (P19).

    AUTO: the session, as it hands a message out. CLIENT: the application, each message by itself, with
        `Delivery.acknowledge`.
    """

    AUTO = "AUTO"
    CLIENT = "CLIENT"


class _Closeable(ABC):
    @abstractmethod
    def close(self) -> None:
        """Ends it. Any thread may call it, more than once, but no signal handler; a blocked receiver gets None."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Delivery(ABC):
    """One message as handed to one consumer.

    Attributes:
        message: the message, with `redelivered` and `delivery_count` set.
    """

    __slots__ = ("message",)

    message: JmsMessage

    @abstractmethod
    def acknowledge(self) -> None:
        """Tells the provider that the message is done with; without effect in AUTO and transacted sessions, or again.

        Raises:
            IllegalStateError: the session was closed or recovered since, so the message will be delivered again.
            TransportError: the provider cannot be told; the message may be delivered again.
        """


class Consumer(_Closeable):
    """Receives from one destination.

    Attributes:
        destination: what it receives from.
        selector: the selector it was made with, or None.
    """

    destination: Destination
    selector: str | None

    @abstractmethod
    def receive(self, timeout: float | None = None) -> Delivery | None:
        """The next message, waited for.

        Args:
            timeout: seconds of real time to wait at most; 0 does not wait; None waits until there is one.

        Returns:
            The delivery, or None: the time ran out, or consumer, session or connection were closed meanwhile.

        Raises:
            IllegalStateError: it is closed already, or another thread is using the session.
            TransportError: the provider failed.
        """


class Session(_Closeable):
    """A single-threaded context for sending and receiving; a transaction where it was made so (P18).

    Attributes:
        ack_mode: how its deliveries are acknowledged; of no account where `transacted`.
        transacted: whether sends and receives take effect at `commit` alone.
    """

    ack_mode: AckMode
    transacted: bool

    @abstractmethod
    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """Sends a message.

        Returns:
            The message as sent: destination, message id (`ID:...`), timestamp and expiration are the provider's (C45).

        Raises:
            InvalidDestinationError: the destination is gone.
            IllegalStateError: the session is closed, or another thread is using it.
            TransportError: the provider failed; whether it has the message may be unknown.
        """

    @abstractmethod
    def consumer(self, destination: Destination, selector: str | None = None) -> Consumer:
        """A consumer for a queue, or a new subscription to a topic.

        Args:
            destination: an administered destination, or a temporary one of this connection.
            selector: SQL-92 condition on headers and properties; None or blank takes every message.

        Raises:
            InvalidDestinationError: the temporary destination is gone or another connection's (R2c).
            SelectorError: the selector does not parse, or the provider has none.
            IllegalStateError: the session is closed, or another thread is using it.
        """

    @abstractmethod
    def temporary_queue(self) -> TemporaryQueue:
        """Makes a queue that the connection owns and that goes with it (R2b)."""

    @abstractmethod
    def temporary_topic(self) -> TemporaryTopic:
        """Makes a topic that the connection owns and that goes with it."""

    @abstractmethod
    def recover(self) -> None:
        """Has every unacknowledged message delivered again, marked so.

        Raises:
            IllegalStateError: the session is transacted, closed, or in use by another thread.
        """

    @abstractmethod
    def commit(self) -> None:
        """Sends what was sent and acknowledges what was received since the last commit.

        Raises:
            IllegalStateError: the session is not transacted, closed, or in use by another thread.
            InvalidDestinationError: a destination is gone meanwhile; all is rolled back.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Forgets what was sent, and has what was received delivered again, since the last commit.

        Raises:
            IllegalStateError: the session is not transacted, closed, or in use by another thread.
        """


class Connection(_Closeable):
    """A connection to a provider, stopped when made; threads may share it.

    Attributes:
        names: the naming context that it was opened with; empty where there was none.
        id: tells it from the provider's other connections; owner of its temporary destinations.
    """

    names: NamingContext
    id: str

    @abstractmethod
    def start(self) -> None:
        """Begins or resumes delivery to its consumers; no harm if it runs already.

        Raises:
            IllegalStateError: it is closed.
        """

    @abstractmethod
    def stop(self) -> None:
        """Holds delivery until `start`; a receiver that is blocked stays so, its time running on.

        Raises:
            IllegalStateError: it is closed.
        """

    @abstractmethod
    def session(self, ack_mode: AckMode = AckMode.CLIENT, *, transacted: bool = False) -> Session:
        """Makes a session; give each thread its own.

        Raises:
            IllegalStateError: the connection is closed.
        """
