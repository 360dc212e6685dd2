"""What the roles know of a sender's and a receiver's journal; `mtosi_jms.spool` has both, `Outbox` and `Inbox`.

A message that came is landed and acknowledged at once: from then on the journal has it, and not the provider. It is
handed out, which the journal notes before it happens, and done with, which it notes after.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from mtosi_jms.errors import IllegalStateError, TransportError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.messages import have_again
from mtosi_jms.transport import Consumer, Delivery, Session

log = logging.getLogger(__name__)


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


class InboxEntry(NamedTuple):
    """A message of an inbox.

    Attributes:
        key: by which the inbox knows it: its MTOSIX_messageId where it has one.
        message: as it was received.
    """

    key: str
    message: JmsMessage


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
    """

    __slots__ = ("_inbox", "key")

    def __init__(self, inbox: IncomingJournal, entry: InboxEntry) -> None:
        self.message = entry.message
        self.key = entry.key
        self._inbox = inbox

    def begin(self) -> None:
        """It is handed out now.

        Raises:
            SpoolError: that cannot be noted; it must not be handed out.
        """
        self._inbox.hand(self.key)

    def acknowledge(self) -> None:
        """Notes that it is done with.

        Raises:
            SpoolError: that cannot be noted.
        """
        self._inbox.done(self.key)

    def release(self) -> None:
        """It goes back to be handed out again, by whoever comes next.

        Raises:
            SpoolError: that cannot be noted.
        """
        self._inbox.release(self.key)

    def doubt(self) -> None:
        """It was handed out, and what became of it is not known."""
        self._inbox.doubt(self.key)


class InboxReceiver:
    """Receives by way of an inbox: what waits there first, then what comes.

    Args:
        session: of the consumer; its messages are acknowledged one by one.
        consumer: receives.
        inbox: keeps.
    """

    def __init__(self, session: Session, consumer: Consumer, inbox: IncomingJournal) -> None:
        self._session = session
        self._consumer = consumer
        self._inbox = inbox

    def receive(self, timeout: float | None = None) -> InboxDelivery | None:
        """The next message that was not here before; see `Consumer.receive`.

        Raises:
            SpoolError: it cannot be stored; the provider has it again.
            IllegalStateError, TransportError: as `Consumer.receive`.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (entry := self._inbox.take()) is None:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            delivery = self._consumer.receive(left)
            if delivery is None:
                return None
            self._land(delivery)
        return InboxDelivery(self._inbox, entry)

    def _land(self, delivery: Delivery) -> None:
        try:
            self._inbox.land(delivery.message)
        except BaseException:
            have_again(self._session)
            raise
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
    """A message is surely not done with: an inbox hands it out again; without one the provider does.

    Raises:
        SpoolError: that cannot be noted.
    """
    if isinstance(delivery, InboxDelivery):
        delivery.release()


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
    begin(delivery)
    try:
        yield
    except BaseException:
        doubt(delivery)
        raise
    delivery.acknowledge()
