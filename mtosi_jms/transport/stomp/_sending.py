"""What a session sends: at once, for a listener, or at commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mtosi_jms.errors import MtosiError, UnknownOutcomeError
from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import DeliveryMode, JmsMessage
from mtosi_jms.transport.completion import CompletionListener, Completions
from mtosi_jms.transport.stomp._frames import Frame

if TYPE_CHECKING:
    from mtosi_jms.transport.stomp._connection import StompConnection

_LARGE: Final = 65_536
"""Bytes from which on a write costs little beside its message."""


class Sender:
    """The sends of one session.

    Args:
        connection: carries them.
        completions: of the session.
        transacted: whether they wait for `commit`.
    """

    def __init__(self, connection: StompConnection, completions: Completions, *, transacted: bool) -> None:
        self._connection = connection
        self._completions = completions
        self._transacted = transacted
        self._waiting: list[tuple[Frame, JmsMessage]] = []

    def take(self) -> list[tuple[Frame, JmsMessage]]:
        """What waits for the commit, to be sent or forgotten."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def send(
        self,
        destination: Destination,
        message: JmsMessage,
        listener: CompletionListener | None,
        timeout: float | None = None,
    ) -> JmsMessage:
        """See `Session.send`. What is PERSISTENT, or goes to a temporary destination, is confirmed by the broker."""
        if listener is not None:
            self._completions.check_open()
        sent, frame = self._connection.prepare(destination, message)
        confirmed = sent.delivery_mode is DeliveryMode.PERSISTENT or destination.is_temporary
        if self._transacted:
            self._waiting.append((frame, sent))
        elif listener is not None and confirmed:
            self._submit(frame, message, sent, listener, timeout)
            return message
        else:
            self._transmit(frame, sent, confirmed=confirmed, timeout=timeout)
        if listener is None:
            return sent
        self._completions.completed(message, sent, listener)
        return message

    def send_soon(self, destination: Destination, message: JmsMessage, *, can_wait: bool) -> JmsMessage | None:
        """See `Session.send_soon`. What is large goes alone: in one write with others it would be copied."""
        confirmed = destination.is_temporary or message.delivery_mode is DeliveryMode.PERSISTENT
        if self._transacted or confirmed or len(message.body) > _LARGE:
            return None
        sent, frame = self._connection.prepare(destination, message)
        return sent if self._connection.leave(frame, can_wait=can_wait) else None

    def _transmit(self, frame: Frame, sent: JmsMessage, *, confirmed: bool, timeout: float | None) -> None:
        try:
            self._connection.transmit(frame, confirmed=confirmed, timeout=timeout)
        except UnknownOutcomeError as error:
            error.messages = (sent,)
            raise

    def _submit(
        self,
        frame: Frame,
        message: JmsMessage,
        sent: JmsMessage,
        listener: CompletionListener,
        timeout: float | None,
    ) -> None:
        pending = self._completions.begin(message, listener)

        def settled(error: MtosiError | None) -> None:
            if isinstance(error, UnknownOutcomeError):
                error.messages = (sent,)
            if error is None:
                pending.complete(sent)
            else:
                pending.fail(error)

        try:
            self._connection.submit(frame, settled, timeout)
        except BaseException:
            self._completions.withdraw(pending)
            raise
