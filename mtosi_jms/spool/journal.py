"""What the roles know of a sender's outbox and a receiver's inbox; `mtosi_jms.spool` has both.

A message that came is landed and acknowledged at once: from then on the inbox has it, and not the provider. The inbox
notes that it is handed out before that happens, and that it is done with afterwards.
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
from mtosi_jms.transport import Consumer, Delivery, Session, redeliver

log = logging.getLogger(__name__)

CONFLICT: Final = "an earlier message has its MTOSIX_messageId, and another body"
"""Why a message is set aside, or parked, that an inbox says to be in conflict."""
_LOOK: Final = 1.0
"""Seconds between looks into an inbox while messages are waited for."""


class Sender(Protocol):
    """What sends: a session."""

    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """See `Session.send`."""
        ...


class OutgoingJournal(Protocol):
    """Keeps what is sent until the provider has confirmed it; `mtosi_jms.spool.Outbox` is one."""

    def send(self, session: Sender, destination: Destination, message: JmsMessage) -> JmsMessage:
        """Store a message, then send it, after those that wait; see `Outbox.send`."""
        ...

    def resend(self, session: Sender) -> int:
        """Send what waits; how many those were."""
        ...


class Landing(Protocol):
    """Where received messages are kept before they are acknowledged; `mtosi_jms.DurableLanding` is one."""

    def land(self, message: JmsMessage) -> Any:
        """Write a message durably; it is safe when this returns. What it raises goes to whoever waits, and the
        message is not acknowledged."""
        ...

    def acknowledged(self, landed: Any, *, correlation_id: str | None, batch_number: int | None) -> None:
        """The message was acknowledged."""
        ...


class InboxEntry(NamedTuple):
    """A message of an inbox.

    Attributes:
        key: by which the inbox knows it: its MTOSIX_messageId where it has one.
        message: as it was received.
        conflict: whether an earlier message had its MTOSIX_messageId and another body; it is to be set aside.
    """

    key: str
    message: JmsMessage
    conflict: bool = False


class IncomingJournal(Protocol):
    """Keeps what was received until it is done with; `mtosi_jms.spool.Inbox` is one."""

    def land(self, message: JmsMessage) -> bool:
        """Store a message; it is safe when this returns. False: it was here before, and is not to be handed out."""
        ...

    def take(self) -> InboxEntry | None:
        """The next message to be handed out, for the caller alone; None: there is none."""
        ...

    def hand(self, key: str) -> None:
        """Note that a message is about to be handed out."""
        ...

    def done(self, key: str) -> None:
        """Note that a message is done with."""
        ...

    def park(self, key: str) -> None:
        """Note that no attempt could handle a message, and that it is elsewhere now."""
        ...

    def retry(self, key: str) -> None:
        """Note that an attempt has failed, and that there will be another one by who has the message."""
        ...

    def set_aside(self, key: str, reason: str) -> None:
        """A message is not to be handed out, and stays in the inbox as dead."""
        ...

    def release(self, key: str) -> None:
        """Give a message back that was taken, and was not handed out or surely not done with."""
        ...

    def doubt(self, key: str) -> None:
        """Note that it is not known what became of a message that was handed out."""
        ...


class InboxDelivery(Delivery):
    """A message of an inbox; the provider has been told already.

    Attributes:
        key: by which the inbox knows it.
        conflict: see `InboxEntry`.
        begun: whether it was handed out.
    """

    __slots__ = ("_inbox", "begun", "conflict", "key")

    def __init__(self, inbox: IncomingJournal, entry: InboxEntry) -> None:
        self.message = entry.message
        self.key = entry.key
        self.conflict = entry.conflict
        self.begun = False
        self._inbox = inbox

    def begin(self) -> None:
        """It is handed out now.

        Raises:
            SpoolError: that cannot be noted; it must not be handed out.
        """
        self._inbox.hand(self.key)
        self.begun = True

    def park(self) -> None:
        """Notes that no attempt could handle it, and that it is elsewhere now.

        Raises:
            SpoolError: that cannot be noted.
        """
        self._inbox.park(self.key)

    def retry(self) -> None:
        """Notes that an attempt has failed, and that there will be another one.

        Raises:
            SpoolError: that cannot be noted.
        """
        self._inbox.retry(self.key)

    def acknowledge(self) -> None:
        """Notes that it is done with.

        Raises:
            SpoolError: that cannot be noted.
        """
        self._inbox.done(self.key)

    def release(self) -> None:
        """It goes back to be handed out again, by whoever comes next.

        Where that cannot be noted, it comes when the inbox is closed, or is in doubt then if it was handed out.
        """
        try:
            self._inbox.release(self.key)
        except SpoolError as error:
            log.warning("a message could not be given back to its inbox: %s", error)

    def doubt(self) -> None:
        """It was handed out, and what became of it is not known."""
        self._inbox.doubt(self.key)


class InboxReceiver:
    """Receives by way of an inbox: what waits there first, then what comes.

    Args:
        session: of the consumer; its messages are acknowledged one by one.
        consumer: receives.
        inbox: keeps.
        conflicts: whether messages with the id of an earlier one and another body are received too; else the inbox sets
            them aside.
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
        """The next message that was not here before; see `Consumer.receive`.

        Raises:
            SpoolFullError: there is no room to store it. It is not acknowledged, and the next call tries once more.
            SpoolError: it cannot be stored; the provider has it again.
            IllegalStateError, TransportError: as `Consumer.receive`.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (entry := self._take()) is None:
            left = math.inf if deadline is None else max(0.0, deadline - time.monotonic())
            if self._unlanded is None:
                # Others of the same inbox may leave a message to us, so it is looked at now and then.
                self._unlanded = self._consumer.receive(min(left, _LOOK))
            if self._unlanded is not None:
                self._land(self._unlanded)
            elif left <= _LOOK:
                return None
        return InboxDelivery(self._inbox, entry)

    def _take(self) -> InboxEntry | None:
        while (entry := self._inbox.take()) is not None and entry.conflict and not self._conflicts:
            self._inbox.set_aside(entry.key, CONFLICT)
        return entry

    def _land(self, delivery: Delivery) -> None:
        try:
            self._inbox.land(delivery.message)
        except SpoolFullError:
            raise
        except BaseException:
            self._unlanded = None
            redeliver(self._session)
            raise
        self._unlanded = None
        try:
            delivery.acknowledge()
        except (TransportError, IllegalStateError) as error:  # it comes again, and is known then
            log.debug("a message that has landed was not acknowledged: %s", error)


def begin(delivery: Delivery) -> None:
    """A message is about to be handed out; noted where it is an inbox's.

    Raises:
        SpoolError: that cannot be noted; it must not be handed out.
    """
    if isinstance(delivery, InboxDelivery):
        delivery.begin()


def give_back(delivery: Delivery) -> None:
    """A message is surely not done with: an inbox hands it out again; without one the provider does."""
    if isinstance(delivery, InboxDelivery):
        delivery.release()


def park(delivery: Delivery) -> None:
    """A message is elsewhere now, since no attempt could handle it: an inbox notes so, the provider forgets it.

    Raises:
        SpoolError: that cannot be noted.
        TransportError: the provider cannot be told.
    """
    if isinstance(delivery, InboxDelivery):
        delivery.park()
    else:
        delivery.acknowledge()


def retry(delivery: Delivery) -> None:
    """An attempt has failed, and there will be another one: noted where it is an inbox's.

    Raises:
        SpoolError: that cannot be noted.
    """
    if isinstance(delivery, InboxDelivery):
        delivery.retry()


def doubt(delivery: Delivery) -> bool:
    """What became of a message that was handed out is not known; whether that is an inbox's to tell."""
    if isinstance(delivery, InboxDelivery):
        delivery.doubt()
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
        doubt(delivery)
        raise
    delivery.acknowledge()
