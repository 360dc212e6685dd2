"""The outbox: what is sent is stored first, and sent until the provider has confirmed it, always with the same id."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from mtosi_jms.delivery import Sender
from mtosi_jms.errors import ConfigError, InvalidDestinationError, MtosiError, SpoolFullError, TransportError
from mtosi_jms.ids import random_id
from mtosi_jms.jms import DeliveryMode, Destination, JmsMessage
from mtosi_jms.messages import DUPLICATE_ID
from mtosi_jms.spool.ledger import SETTLED, Ledger

log = logging.getLogger(__name__)

SEGMENT_BYTES: Final = 16 * 1024 * 1024
"""Size from which on a file of a journal is not added to."""
_WAITS: Final = "waits"
LIMIT_BYTES: Final = 1024 * 1024 * 1024
"""Unconfirmed bytes that an outbox takes, unless told otherwise."""


class Outbox:
    """A durable journal of what is to be sent; threads, publishers and requestors of one provider may share it.

    A message that was stored is sent by the next `send` or `resend`, of this process or a later one, until the provider
    confirms it; who receives knows a second copy by `MTOSIX_messageId` (`Inbox`). The order of the calls is kept. What
    has outlived its time to live is not sent any more.

    Args:
        folder: of the journal, for this outbox alone; made if it is not there, for its owner only.
        limit_bytes: that unconfirmed messages may take up.
        segment_bytes: size from which on a file of the journal is not added to.
        on_refused: called with a message of an earlier attempt that cannot be sent at all, and why; it is given up. The
            log, where there is none.
        clock: seconds since 1970 UTC.

    Attributes:
        sent: how many messages were sent and confirmed.
        resent: how many of these an earlier attempt, or process, had left.
        expired: how many were given up since their time to live was over.

    Raises:
        SpoolInUseError: another process, or object, has the folder.
        JournalDamageError: the journal is damaged, other than a crash leaves it.
        SpoolError: it cannot be read or written.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        limit_bytes: int = LIMIT_BYTES,
        segment_bytes: int = SEGMENT_BYTES,
        on_refused: Callable[[JmsMessage, MtosiError], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.sent = self.resent = self.expired = 0
        self._folder = Path(folder)
        self._limit = limit_bytes
        self._on_refused = on_refused
        self._ledger = Ledger(self._folder, segment_bytes=segment_bytes, remember=0, clock=clock)
        self._sending = threading.Lock()
        self._tried = set(self._ledger.ids())

    def __len__(self) -> int:
        """How many messages are not confirmed."""
        return len(self._ledger)

    def put(self, message: JmsMessage, destination: Destination) -> JmsMessage:
        """Store a message; it outlives a crash of process and machine when this returns, and will be sent.

        Args:
            message: what is sent; it goes out PERSISTENT.
            destination: where to; no temporary one, which would not outlive us.

        Returns:
            The message as it will be sent, with its MTOSIX_messageId.

        Raises:
            SpoolFullError: too much is unconfirmed.
            SpoolError: it is not stored.
            ConfigError: a temporary destination; a message of this id is stored already.
        """
        if destination.is_temporary:
            raise ConfigError(f"{destination}: a temporary destination does not outlive its connection")
        key = str(message.properties.get(DUPLICATE_ID) or random_id())
        stored = replace(
            message,
            destination=destination,
            delivery_mode=DeliveryMode.PERSISTENT,
            properties={**message.properties, DUPLICATE_ID: key},
        )
        with self._ledger.lock:
            if self._ledger.knows(key):
                raise ConfigError(f"a message of the id {key} is stored and not confirmed")
            if self._ledger.bytes_open + len(message.body) > self._limit:
                raise SpoolFullError(str(self._folder), f"what is not confirmed has reached {self._limit:,} bytes")
            self._ledger.add(key, stored, _WAITS)
        return stored

    def confirm(self, message: JmsMessage) -> None:
        """The provider has confirmed a message: it is not sent again.

        Should the machine crash right now it may be, and is then known by its id.

        Raises:
            SpoolError: that cannot be noted.
        """
        self._settle(_key_of(message), sync=False)

    def withdraw(self, message: JmsMessage) -> None:
        """A message is not to be sent any more, confirmed or not.

        Raises:
            SpoolError: that cannot be noted.
        """
        self._settle(_key_of(message), sync=True)

    def unconfirmed(self) -> list[JmsMessage]:
        """The messages that are not confirmed, in the order in which they were stored.

        Raises:
            SpoolError: one cannot be read.
        """
        with self._ledger.lock:
            return [self._ledger.message(key) for key in self._ledger.ids()]

    def send(self, session: Sender, destination: Destination, message: JmsMessage) -> JmsMessage:
        """Store a message, then send it, after all that wait.

        Raises:
            ConfigError, InvalidDestinationError: the message cannot be sent at all, and is not stored any more.
            TransportError: it is stored and not confirmed. Do not send it once more: `resend` does, or the next `send`.
            SpoolError: it is not stored, and not sent.
        """
        stored = self.put(message, destination)
        try:
            with self._sending:
                return self._flush(session, _key_of(stored)) or stored
        except TransportError:
            self._tried.add(_key_of(stored))
            raise

    def resend(self, session: Sender) -> int:
        """Send all that wait, in order; how many they were.

        Raises:
            TransportError: the provider failed; what is left waits on.
            SpoolError: the journal cannot be read or written.
        """
        with self._sending:
            before = self.sent
            self._flush(session, None)
            return self.sent - before

    def _flush(self, session: Sender, until: str | None) -> JmsMessage | None:
        """Sends what waits, up to a message that has just been stored, which comes back as it was sent."""
        for key in self._ledger.ids():
            message = self._in_time(key)
            if message is None or message.destination is None:
                continue
            again = key in self._tried
            self._tried.add(key)
            try:
                sent = session.send(message.destination, message)
            except (ConfigError, InvalidDestinationError) as error:
                self._settle(key, sync=True)
                if key == until:
                    raise
                self._refused(message, error)
                continue
            self._settle(key, sync=False)
            self.sent += 1
            self.resent += again
            if key == until:
                return sent
        return None

    def _settle(self, key: str, *, sync: bool) -> None:
        self._ledger.mark(key, SETTLED, sync=sync)
        self._tried.discard(key)

    def _refused(self, message: JmsMessage, error: MtosiError) -> None:
        log.error("a stored message for %s is refused and given up: %s", message.destination, error)
        if self._on_refused is None:
            return
        try:
            self._on_refused(message, error)
        except Exception:
            log.exception("on_refused failed")

    def _in_time(self, key: str) -> JmsMessage | None:
        """A message with the time to live that is left of it; None, and given up, where none is."""
        with self._ledger.lock:
            one = self._ledger.get(key)
            if one is None:  # withdrawn meanwhile
                return None
            message = self._ledger.message(key)
        if not message.time_to_live_ms:
            return message
        left = message.time_to_live_ms - max(self._ledger.now_ms() - one.since_ms, 0)
        if left > 0:
            return replace(message, time_to_live_ms=left)
        self.expired += 1
        self._settle(key, sync=False)
        return None

    def close(self) -> None:
        """Let go of the folder; what is not confirmed stays in it."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _key_of(message: JmsMessage) -> str:
    return str(message.properties.get(DUPLICATE_ID, ""))
