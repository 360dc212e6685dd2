"""Sends that follow each other without each waiting for its outcome, and never more than a number of them open."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, wait
from typing import Protocol

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import JmsMessage


class AsyncSender(Protocol):
    """What sends without waiting: a session."""

    def send_async(self, destination: Destination, message: JmsMessage) -> Future[JmsMessage]:
        """See `Session.send_async`."""
        ...


class SendWindow:
    """Sends messages of which at most so many are unconfirmed; for the thread of the session.

    The first send that failed is raised by the next call, when all others have their outcome too: after an error
    nothing is open, and what became of the messages behind the failed one is not told.

    Args:
        sender: a session.
        size: how many messages may be unconfirmed.

    Raises:
        ConfigError: a size below 1.
    """

    __slots__ = ("_open", "_sender", "_size")

    def __init__(self, sender: AsyncSender, size: int) -> None:
        if size < 1:
            raise ConfigError(f"a window of {size} messages lets none through")
        self._sender = sender
        self._size = size
        self._open: deque[Future[JmsMessage]] = deque()

    def send(self, destination: Destination, message: JmsMessage) -> None:
        """Sends a message as soon as the window has room.

        Raises:
            TransportError: an earlier send failed, and this message was not sent; or it cannot be sent at all.
        """
        self._confirm(self._size - 1)
        try:
            self._open.append(self._sender.send_async(destination, message))
        except BaseException:
            self._abandon()
            raise

    def settle(self) -> None:
        """Returns when all that was sent is confirmed.

        Raises:
            TransportError: a send failed.
        """
        self._confirm(0)

    def _confirm(self, most: int) -> None:
        while self._open and (len(self._open) > most or self._open[0].done()):
            try:
                self._open.popleft().result()
            except BaseException:
                self._abandon()
                raise

    def _abandon(self) -> None:
        wait(self._open)
        self._open.clear()
