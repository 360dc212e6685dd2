"""The interface by which the roles of a connection report their work.

The calls are few and cheap, because they are made for every message. Without a telemetry, roles make no calls.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeAlias

from mtosi_jms.jms import Destination, JmsMessage

Server: TypeAlias = Callable[[], tuple[str, int] | None]
"""Returns host and port of the provider that a connection has at the moment; None if they are not known."""


class Role(enum.StrEnum):
    """The role at one end of an exchange."""

    REQUESTOR = "requestor"
    SUPPLIER = "supplier"


class Count(enum.Enum):
    """Events that are counted; `METRICS` says what each is."""

    DUPLICATES = "duplicates"
    GAPS = "gaps"
    ORPHANS = "orphans"
    PARKED = "parked"
    RECONNECTS = "reconnects"
    REDELIVERIES = "redeliveries"
    REJECTS = "rejects"


class Gauge(enum.Enum):
    """Values that are read on demand; `METRICS` says what each is."""

    OUTBOX_DEPTH = "outbox.depth"
    OUTBOX_AGE = "outbox.age"
    INBOX_SIZE = "inbox.size"
    DEAD = "dead"
    IN_HAND = "gateway.in_hand"
    ITERATORS = "gateway.iterators"


class Publication:
    """The sending of one message, to which a telemetry that links spans has added a property; a context manager. That
    of a call lasts until its exchange has ended."""

    __slots__ = ("message",)

    def __init__(self, message: JmsMessage) -> None:
        self.message = message

    def sent(self, message_id: str | None = None) -> None:
        """Called when the provider has taken the message."""

    def end(self, error_type: str = "") -> None:
        """Called when the message was sent, or failed, and for a call, when its exchange has ended. A second call does
        nothing. `error_type`: the kind of the fault, or the class of the error; empty: none."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end("" if kind is None else kind.__qualname__)


class Processing:
    """A context manager around the handler of a message. An error inside it is the handler's failure."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class Telemetry:
    """Receives reports of what the roles of a connection do. This base class does nothing.

    Several threads may call it at the same time. A method must not raise an error or wait for anything.
    """

    def at(self, server: Server) -> Self:
        """Return what a connection to a provider elsewhere reports to; by default the same."""
        return self

    def publish(
        self,
        message: JmsMessage,
        destination: Destination,
        operation: str = "",
        correlation_id: str = "",
        *,
        call: bool = False,
    ) -> Publication:
        """Called before a message is sent.

        Args:
            operation: operation that it belongs to; empty: none.
            correlation_id: correlation id of its exchange; empty: none.
            call: whether it is a request that is answered.
        """
        return Publication(message)

    def receive(
        self,
        message: JmsMessage,
        destination: Destination,
        since_ns: int,
        request: Publication | None = None,
        error: BaseException | None = None,
    ) -> None:
        """Called when a message was received and read, without a handler.

        Args:
            since_ns: when the work on it began, nanoseconds since 1970 UTC.
            request: that of the request which the message answers; None if it answers none.
            error: why it cannot be read; None if it was read.
        """

    def process(self, message: JmsMessage, destination: Destination, *, timed: bool = False) -> Processing:
        """Called before a message is handled. It is `timed` unless the exchange is, as that of a supplier."""
        return Processing()

    def began(self, role: Role) -> None:
        """Called when an exchange has begun."""

    def ended(
        self, role: Role, operation: str, destination: Destination, error_type: str, seconds: float, batches: int
    ) -> None:
        """Called when an exchange has ended; by a supplier inside the context of `process`.

        Args:
            operation: its name; empty: not known.
            error_type: the kind of the fault, the class of the error, or `abandoned`; empty: it went well.
            batches: replies that were handed out or sent.
        """

    def served(self, method: str, status: int, seconds: float) -> None:
        """Called when a request over HTTP was answered, or refused."""

    def count(self, what: Count, destination: Destination | None = None, number: int = 1) -> None:
        """Count what has happened at a destination, or to the connection (None)."""

    def watch(self, gauge: Gauge, name: str, read: Callable[[], float | None]) -> None:
        """Register a value of this name, to be read on demand, in any thread, until it is None: then it is gone."""


def published(
    telemetry: Telemetry | None,
    message: JmsMessage,
    destination: Destination,
    operation: str = "",
    correlation_id: str = "",
    *,
    call: bool = False,
) -> Publication:
    """Report to a telemetry, if there is one, that a message is going to be sent; see `Telemetry.publish`."""
    if telemetry is None:
        return Publication(message)
    return telemetry.publish(message, destination, operation, correlation_id, call=call)
