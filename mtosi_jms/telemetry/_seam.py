"""The seam: what the roles of a connection tell of their work, and to whom.

The calls are few and cheap, for they stand on the way of every message. Where a connection has no telemetry, its roles
do not call at all.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from mtosi_jms.jms import Destination, JmsMessage

__all__ = ["Count", "Gauge", "Publication", "Role", "Telemetry"]


class Role(enum.Enum):
    """Whose end of an exchange it is."""

    REQUESTOR = "requestor"
    SUPPLIER = "supplier"


class Count(enum.Enum):
    """What is counted as it happens.

    DUPLICATES: batches that came again, and copies of messages that an inbox has recognised.
    GAPS: batches that were missing when their exchange ended.
    ORPHANS: replies that belong to no exchange.
    PARKED: messages that went to a dead-letter destination.
    RECONNECTS: connections that were lost and made again.
    REDELIVERIES: messages that the provider had handed out before (JMSRedelivered).
    REJECTS: messages that cannot be read, or are refused.
    """

    DUPLICATES = "duplicates"
    GAPS = "gaps"
    ORPHANS = "orphans"
    PARKED = "parked"
    RECONNECTS = "reconnects"
    REDELIVERIES = "redeliveries"
    REJECTS = "rejects"


class Gauge(enum.Enum):
    """What has a value at any time, and is asked for it when somebody looks.

    OUTBOX_DEPTH: messages that an outbox has stored and the provider has not confirmed.
    OUTBOX_AGE: seconds that the oldest of them has waited; 0: there is none.
    INBOX_SIZE: messages of an inbox that are not done with.
    DEAD: messages of an outbox or inbox that are not sent or handed out any more.
    """

    OUTBOX_DEPTH = "outbox.depth"
    OUTBOX_AGE = "outbox.age"
    INBOX_SIZE = "inbox.size"
    DEAD = "dead"


class Publication:
    """The sending of one message.

    Attributes:
        message: to be sent; a telemetry that links spans has put a property into it.
    """

    __slots__ = ("message",)

    def __init__(self, message: JmsMessage) -> None:
        self.message = message

    def end(self, message_id: str | None = None, error: BaseException | None = None) -> None:
        """It was sent, or failed; a second call does nothing."""


class Telemetry:
    """Hears what the roles of a connection do. This one does nothing with it: subclasses do.

    Any thread calls, several at the same time. A call must not raise, nor wait for anything.
    """

    def publish(
        self, message: JmsMessage, destination: Destination, operation: str = "", correlation_id: str = ""
    ) -> Publication:
        """A message is about to be sent.

        Args:
            message: as it would be sent.
            destination: where it goes.
            operation: that it belongs to; empty: none.
            correlation_id: of its exchange; empty: none.
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
        """A message was received and read, without a handler.

        Args:
            message: as received.
            destination: where it was received.
            since_ns: when the work on it began, nanoseconds since 1970 UTC.
            publication: of the request that it answers.
            error: why it cannot be read.
        """

    def process(
        self, message: JmsMessage, destination: Destination, *, timed: bool = False
    ) -> AbstractContextManager[object]:
        """A handler has a message while the block runs; what the block raises is its failure.

        Args:
            message: as received.
            destination: where it was received.
            timed: whether its seconds are measured; those of a supplier are its exchange's.
        """
        return nullcontext()

    def began(self, role: Role) -> None:
        """An exchange has begun."""

    def ended(self, role: Role, operation: str, outcome: str, seconds: float, batches: int) -> None:
        """An exchange has ended; for a supplier in the block of `process`.

        Args:
            role: whose end it is.
            operation: its name; empty: not known.
            outcome: `answered`, `fault`, another word, or the name of an error's class.
            seconds: that it took.
            batches: replies that were handed out or sent.
        """

    def count(self, what: Count, destination: Destination | None = None, number: int = 1) -> None:
        """Something has happened at a destination, or to the connection (None)."""

    def watch(self, gauge: Gauge, name: str, read: Callable[[], float | None]) -> None:
        """Have a value asked for, from now on.

        Args:
            gauge: what it is.
            name: tells it from others of its kind.
            read: gives it; None: it is gone, and is not asked for any more. Any thread calls it.
        """
