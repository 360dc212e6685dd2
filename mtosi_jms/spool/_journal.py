"""What the roles use of an outbox and an inbox, and how a message gets from the provider through an inbox to a handler.

A received message is landed and acknowledged at once: from then on the inbox is responsible for it, not the provider.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol

from mtosi_jms.errors import IllegalStateError, SpoolError, SpoolFullError, TransportError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.telemetry import Count
from mtosi_jms.transport import Consumer, Delivery, Session, redeliver

log = logging.getLogger(__package__)

CONFLICT: Final = "an earlier message has its MTOSIX_messageId, and another body"
"""Why a message in conflict goes to the dead messages."""
_LOOK: Final = 1.0
"""Seconds between looks into an inbox while waiting for messages."""


class Sender(Protocol):
    """What sends: a session."""

    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage: ...


class OutgoingJournal(Protocol):
    """Keeps what is sent until the provider has confirmed it. `Outbox` is one, and says what the methods do."""

    def send(self, session: Sender, destination: Destination, message: JmsMessage) -> JmsMessage: ...
    def resend(self, session: Sender) -> int: ...


class Landing(Protocol):
    """Keeps received messages before they are acknowledged; `DurableLanding` is one."""

    def land(self, message: JmsMessage) -> Any:
        """Write a message durably. Where this raises, the waiting caller gets the error and the message is not
        acknowledged."""
        ...

    def acknowledged(self, landed: Any, *, correlation_id: str | None, batch_number: int | None) -> None:
        """The message was acknowledged."""
        ...


class InboxEntry(NamedTuple):
    """A message of an inbox.

    Attributes:
        key: the inbox's key of the message: its MTOSIX_messageId where it has one.
        message: as it was received.
        conflict: whether an earlier message had its MTOSIX_messageId and another body.
    """

    key: str
    message: JmsMessage
    conflict: bool = False


class IncomingJournal(Protocol):
    """Keeps what was received until it is done with. `Inbox` is one, and says what the methods do."""

    def land(self, message: JmsMessage) -> bool: ...
    def take(self) -> InboxEntry | None: ...
    def hand(self, key: str) -> None: ...
    def done(self, key: str) -> None: ...
    def park(self, key: str) -> None: ...
    def retry(self, key: str) -> None: ...
    def move_to_dead(self, key: str, reason: str) -> None: ...
    def release(self, key: str) -> None: ...
    def mark_in_doubt(self, key: str) -> None: ...


class InboxDelivery(Delivery):
    """A message that an inbox hands out; its provider has its acknowledgement already.

    Attributes:
        key: the inbox's key of the message.
        conflict: see `InboxEntry`.
        begun: whether it was handed out.
    """

    __slots__ = ("begun", "conflict", "inbox", "key")

    def __init__(self, inbox: IncomingJournal, entry: InboxEntry) -> None:
        self.key, self.message, self.conflict = entry
        self.begun = False
        self.inbox = inbox

    def acknowledge(self) -> None:
        """Notes that it is done with.

        Raises:
            SpoolError: that cannot be noted.
        """
        self.inbox.done(self.key)


class InboxReceiver:
    """Receives by way of an inbox: first what waits there, then what the provider delivers.

    Args:
        session: of the consumer; its messages are acknowledged one by one.
        consumer: receives.
        inbox: keeps.
        conflicts: whether messages in conflict are received too; else they go to the dead messages.
    """

    def __init__(
        self, session: Session, consumer: Consumer, inbox: IncomingJournal, *, conflicts: bool = False
    ) -> None:
        self._session = session
        self._consumer = consumer
        self._inbox = inbox
        self._conflicts = conflicts
        self._unlanded: Delivery | None = None

    def receive(self, timeout: float | None = None) -> InboxDelivery | None:
        """The next message that is new; see `Consumer.receive`.

        Raises:
            SpoolFullError: there is no room to store it. It is not acknowledged, and the next call tries once more.
            SpoolError: it cannot be stored; the provider delivers it again.
            IllegalStateError, TransportError: as `Consumer.receive`.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (entry := self._take()) is None:
            left = math.inf if deadline is None else max(0.0, deadline - time.monotonic())
            if self._unlanded is None:
                # Other processes that share the inbox may leave a message to this one: look now and then.
                self._unlanded = self._consumer.receive(min(left, _LOOK))
            if self._unlanded is not None:
                self._land(self._unlanded)
            elif left <= _LOOK:
                return None
        return InboxDelivery(self._inbox, entry)

    def _take(self) -> InboxEntry | None:
        while (entry := self._inbox.take()) is not None and entry.conflict and not self._conflicts:
            self._inbox.move_to_dead(entry.key, CONFLICT)
        return entry

    def _land(self, delivery: Delivery) -> None:
        try:
            is_new = self._inbox.land(delivery.message)
        except SpoolFullError:
            raise
        except BaseException:
            self._unlanded = None
            redeliver(self._session)
            raise
        self._unlanded = None
        telemetry = self._session.connection.telemetry
        if telemetry is not None and not is_new:
            telemetry.count(Count.DUPLICATES, self._consumer.destination)
        try:
            delivery.acknowledge()
        except (TransportError, IllegalStateError) as error:  # it comes again, and is recognised then
            log.debug(
                "a message that has landed was not acknowledged, message %s: %s: %s",
                delivery.message.message_id,
                type(error).__name__,
                error,
            )


# What handlers note of any delivery. One of an inbox is noted there (SpoolError: it cannot be noted); of another one
# the provider is told what it has to know.


def begin(delivery: Delivery) -> None:
    """A message is about to be handed out. Where this raises it must not be."""
    if isinstance(delivery, InboxDelivery):
        delivery.inbox.hand(delivery.key)
        delivery.begun = True


def give_back(delivery: Delivery) -> None:
    """A message is surely not done with: the inbox hands it out again; without one the provider does.

    Where the inbox cannot note that, the message comes when the inbox is closed, or is in doubt then if it was begun.
    """
    if isinstance(delivery, InboxDelivery):
        try:
            delivery.inbox.release(delivery.key)
        except SpoolError as error:
            log.warning(
                "a message could not be given back to its inbox, id %s: %s: %s",
                delivery.key,
                type(error).__name__,
                error,
            )


def park(delivery: Delivery) -> None:
    """A message was sent to the dead-letter destination: this one is done with."""
    if isinstance(delivery, InboxDelivery):
        delivery.inbox.park(delivery.key)
    else:
        delivery.acknowledge()


def retry(delivery: Delivery) -> None:
    """An attempt has failed, and there will be another one."""
    if isinstance(delivery, InboxDelivery):
        delivery.inbox.retry(delivery.key)


def mark_in_doubt(delivery: Delivery) -> bool:
    """Nobody knows what became of a message that was handed out; returns whether an inbox has noted that."""
    if isinstance(delivery, InboxDelivery):
        delivery.inbox.mark_in_doubt(delivery.key)
        return True
    return False


@contextmanager
def handed_out(delivery: Delivery) -> Iterator[None]:
    """Hands a message out for as long as the block runs: done with at its end, and in doubt where it raises.

    Raises:
        SpoolError: the inbox cannot note it.
        TransportError: the provider cannot be told that it is done with.
    """
    try:
        begin(delivery)
    except BaseException:
        give_back(delivery)
        raise
    try:
        yield
    except BaseException:
        mark_in_doubt(delivery)
        raise
    delivery.acknowledge()
