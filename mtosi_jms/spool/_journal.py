"""What roles use of outbox and inbox, and how a message gets from the provider through an inbox to a handler.

A received message is landed and acknowledged at once: from then on the inbox is responsible for it, not the provider.
"""

from __future__ import annotations

import logging
import math
import time
from typing import Any, Final, NamedTuple, Protocol

from mtosi_jms.errors import IllegalStateError, SpoolError, SpoolFullError, TransportError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.telemetry import Count
from mtosi_jms.transport import Consumer, Delivery, Session, redeliver

log = logging.getLogger(__package__)

CONFLICT: Final = "an earlier message has its MTOSIX_messageId, and another body"
"""The reason of a dead message that was in conflict."""
_LOOK: Final = 1.0
"""Seconds between checks of the inbox while a receiver waits."""


class Sender(Protocol):
    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage: ...


class OutgoingJournal(Protocol):
    """Keeps messages until the provider has confirmed them. `Outbox` implements it and documents the methods."""

    def put(self, message: JmsMessage, destination: Destination) -> JmsMessage: ...
    def send(self, session: Sender, destination: Destination, message: JmsMessage) -> JmsMessage: ...
    def resend(self, session: Sender) -> int: ...


class Landing(Protocol):
    """Stores received messages before they are acknowledged. `DurableLanding` implements it."""

    def land(self, message: JmsMessage) -> Any:
        """Write a message durably. If this raises an error, the waiting caller gets it, and the message is not
        acknowledged."""
        ...

    def acknowledged(self, landed: Any, *, correlation_id: str | None, batch_number: int | None) -> None: ...


class InboxEntry(NamedTuple):
    """A message of an inbox. `conflict`: an earlier message had its MTOSIX_messageId and another body."""

    key: str
    message: JmsMessage
    conflict: bool = False


class IncomingJournal(Protocol):
    """Keeps received messages until they are settled. `Inbox` implements it and documents the methods."""

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
    """A message that an inbox hands out, acknowledged at the provider. `begun`: it was handed out. `waited`: it was
    there already, from an earlier time, when it was asked for."""

    __slots__ = ("begun", "conflict", "inbox", "key", "waited")

    def __init__(self, inbox: IncomingJournal, entry: InboxEntry, *, waited: bool = False) -> None:
        self.key, self.message, self.conflict = entry
        self.begun = False
        self.waited = waited
        self.inbox = inbox

    def acknowledge(self) -> None:
        """Notes that the message was handled. Raises SpoolError: the inbox cannot note it."""
        self.inbox.done(self.key)


class InboxReceiver:
    """Receives through an inbox: first the messages that wait there, then those that the provider delivers. Those in
    conflict become dead messages, unless `conflicts` is set."""

    def __init__(
        self, session: Session, consumer: Consumer, inbox: IncomingJournal, *, conflicts: bool = False
    ) -> None:
        self._session = session
        self._consumer = consumer
        self._inbox = inbox
        self._conflicts = conflicts
        self._unlanded: Delivery | None = None

    def receive(self, timeout: float | None = None) -> InboxDelivery | None:
        """Waits for the next new message; see `Consumer.receive`. Raises SpoolFullError: there is no room, it is not
        acknowledged, and the next call tries again; SpoolError: it cannot be stored, and is delivered again."""
        deadline = None if timeout is None else time.monotonic() + timeout
        waited = True
        while (entry := self._take()) is None:
            waited = False
            left = math.inf if deadline is None else max(0.0, deadline - time.monotonic())
            if self._unlanded is None:
                # A process that shares the inbox may leave a message to this one, so check from time to time.
                self._unlanded = self._consumer.receive(min(left, _LOOK))
            if self._unlanded is not None:
                self._land(self._unlanded)
            elif left <= _LOOK:
                return None
        return InboxDelivery(self._inbox, entry, waited=waited)

    def _take(self) -> InboxEntry | None:
        while (entry := self._inbox.take()) is not None and entry.conflict and not self._conflicts:
            self._inbox.move_to_dead(entry.key, CONFLICT)
        return entry

    def _land(self, delivery: Delivery) -> None:
        try:
            is_new = self._inbox.land(delivery.message)
        except SpoolFullError:
            raise
        except BaseException:  # a signal's too: what is not acknowledged has to come again
            self._unlanded = None
            redeliver(self._session)
            raise
        self._unlanded = None
        telemetry = self._session.connection.telemetry
        if telemetry is not None and not is_new:
            telemetry.count(Count.DUPLICATES, self._consumer.destination)
        try:
            delivery.acknowledge()
        except (TransportError, IllegalStateError) as error:  # it will come again and be recognised
            log.debug(
                "a message that has landed was not acknowledged, message %s: %s: %s",
                delivery.message.message_id,
                type(error).__name__,
                error,
            )


# What handlers note for any delivery. If it is from an inbox, the inbox notes it, or raises a SpoolError if it cannot.
# Otherwise the provider is informed if necessary.


def begin(delivery: Delivery) -> None:
    """Notes that a message is about to be handed out. If this raises an error, it must not be."""
    if type(delivery) is InboxDelivery:  # `isinstance` is slow where a class is abstract
        delivery.inbox.hand(delivery.key)
        delivery.begun = True


def has_waited(delivery: Delivery) -> bool:
    """Whether a message was in an inbox before, so that its time to live may have ended there."""
    return type(delivery) is InboxDelivery and delivery.waited


def give_back(delivery: Delivery) -> None:
    """Gives back a message that was surely not handled. If the inbox cannot note that, it is handed out again after the
    inbox is closed; if it was begun, it is then in doubt."""
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
    """Settles a message that was sent to the dead-letter destination."""
    if isinstance(delivery, InboxDelivery):
        delivery.inbox.park(delivery.key)
    else:
        delivery.acknowledge()


def retry(delivery: Delivery) -> None:
    """Notes that an attempt has failed and another one will follow."""
    if isinstance(delivery, InboxDelivery):
        delivery.inbox.retry(delivery.key)


def mark_in_doubt(delivery: Delivery) -> bool:
    """Notes that the outcome of a message is unknown; returns whether an inbox has noted that. One not handed out is
    given back."""
    if not isinstance(delivery, InboxDelivery):
        return False
    if delivery.begun:
        delivery.inbox.mark_in_doubt(delivery.key)
    else:
        give_back(delivery)
    return True


class handed_out:  # noqa: N801 - a word of `with`, as in contextlib
    """Hands a message out for a block. It is settled at the end of the block, and in doubt if the block raises.
    Raises SpoolError: the inbox cannot note it; TransportError: the message cannot be acknowledged at the provider."""

    __slots__ = ("_delivery",)

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery

    def __enter__(self) -> None:
        try:
            begin(self._delivery)
        except BaseException:
            give_back(self._delivery)
            raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._delivery.acknowledge()
        else:
            mark_in_doubt(self._delivery)
