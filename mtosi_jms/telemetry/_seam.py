"""The interface by which the roles of a connection report their work.

The calls are few and cheap, because they are made for every message. Without a telemetry, roles make no calls.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from mtosi_jms.jms import Destination, JmsMessage


class Role(enum.Enum):
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


class Publication:
    """The sending of one message, to which a telemetry that links spans has added a property."""

    __slots__ = ("message",)

    def __init__(self, message: JmsMessage) -> None:
        self.message = message

    def end(self, message_id: str | None = None, error: BaseException | None = None) -> None:
        """Called when the message was sent, or failed. A second call does nothing."""


class Telemetry:
    """Receives reports of what the roles of a connection do. This base class does nothing.

    Several threads may call it at the same time. A method must not raise an error or wait for anything.
    """

    def publish(
        self, message: JmsMessage, destination: Destination, operation: str = "", correlation_id: str = ""
    ) -> Publication:
        """Called before a message is sent.

        Args:
            operation: operation that it belongs to; empty: none.
            correlation_id: correlation id of its exchange; empty: none.
        """
        return Publication(message)

    def receive(
        self,
        message: JmsMessage,
        destination: Destination,
        since_ns: int,
        publication: Publication | None = None,
        error: BaseException | None = None,
    ) -> None:
        """Called when a message was received and read, without a handler.

        Args:
            since_ns: when the work on it began, nanoseconds since 1970 UTC.
            publication: that of the request which the message answers; None if it answers none.
            error: why it cannot be read; None if it was read.
        """

    def process(
        self, message: JmsMessage, destination: Destination, *, timed: bool = False
    ) -> AbstractContextManager[object]:
        """Return a context manager around the handler of a message. An error inside it is the handler's failure. It is
        `timed` unless the exchange is, as that of a supplier."""
        return nullcontext()

    def began(self, role: Role) -> None:
        """Called when an exchange has begun."""

    def ended(self, role: Role, operation: str, outcome: str, seconds: float, batches: int) -> None:
        """Called when an exchange has ended; by a supplier inside the context of `process`.

        Args:
            operation: its name; empty: not known.
            outcome: `answered`, `fault`, another word, or the name of an error's class.
            batches: replies that were handed out or sent.
        """

    def count(self, what: Count, destination: Destination | None = None, number: int = 1) -> None:
        """Count what has happened at a destination, or to the connection (None)."""

    def watch(self, gauge: Gauge, name: str, read: Callable[[], float | None]) -> None:
        """Register a value of this name, to be read on demand, in any thread, until it is None: then it is gone."""
