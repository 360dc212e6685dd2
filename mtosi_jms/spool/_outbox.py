"""The outbox: what is sent is stored first, and sent until the provider has confirmed it, always with the same id.

waits -> confirmed: it is gone
  |----> dead: the provider refuses it for its own sake, attempt after attempt; it stays, with the reason
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from mtosi_jms.errors import (
    AuthenticationError,
    ConfigError,
    InvalidDestinationError,
    LoginRefusedError,
    MessageRefusedError,
    MtosiError,
    TransportError,
)
from mtosi_jms.jms import DUPLICATE_ID, DeliveryMode, Destination, JmsMessage
from mtosi_jms.jms.ids import random_id
from mtosi_jms.spool._store import DEAD, LIMIT_BYTES, OPEN, READY, DeadMessage, Store
from mtosi_jms.spool.journal import Sender
from mtosi_jms.transport import Backoff

log = logging.getLogger(__name__)

_WAITS: Final = "waits"
_PAGE: Final = 200
"""Messages whose places are read at a time."""
_OWN_FAULT: Final = (ConfigError, InvalidDestinationError, AuthenticationError, MessageRefusedError)
"""What a provider says of one message. A refused login, a full destination and a lost connection are no such thing."""


class Outbox:
    """Stores what is to be sent; threads, publishers and requestors of one provider may share it.

    A message that was stored is sent by the next `send` or `resend`, of this process or a later one, until the provider
    confirms it; who receives knows a second copy by `MTOSIX_messageId` (`Inbox`). What goes to one destination keeps
    the order of the calls. What has outlived its time to live is not sent any more.

    A message that the provider refuses for its own sake is tried again, those for other destinations go on meanwhile,
    and after the last attempt it is dead: kept with the reason, told, and not sent any more (`dead`, `redrive`).

    Args:
        folder: for this outbox alone; made if it is not there, for its owner only.
        limit_bytes: that messages may take up; None: any number.
        limit_messages: how many there may be; None: any number.
        limit_age: seconds after which the log tells of a message that still waits; None: never.
        attempts: how often a message that is refused is sent before it is dead.
        retry: waiting between these attempts.
        on_refused: called with a message of an earlier attempt that is dead now, and why.
        segment_bytes: of the files of 0.1; does nothing.
        clock: seconds since 1970 UTC.

    Attributes:
        sent: how many messages were sent and confirmed.
        resent: how many of these an earlier attempt, or process, had left.
        expired: how many were given up since their time to live was over.

    Raises:
        SpoolInUseError: another process, or object, has the folder.
        JournalDamageError: the database is damaged.
        SpoolError: it cannot be read or written, or is not its owner's alone.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        limit_bytes: int | None = LIMIT_BYTES,
        limit_messages: int | None = None,
        limit_age: float | None = None,
        attempts: int = 5,
        retry: Backoff | None = None,
        on_refused: Callable[[JmsMessage, MtosiError], object] | None = None,
        segment_bytes: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.sent = self.resent = self.expired = 0
        self._attempts = attempts
        self._retry = retry or Backoff()
        self._on_refused = on_refused
        self._sending = threading.RLock()
        limits = limit_bytes, limit_messages, limit_age
        self._store = Store(Path(folder), "outbox", clock=clock, alone=True, limits=limits)
        try:
            ((self._tried,),) = self._store.read("SELECT coalesce(max(number), 0) FROM message")
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        """How many messages wait to be confirmed."""
        return self._store.count(_WAITS)

    @property
    def dead(self) -> list[DeadMessage]:
        """What the provider refuses, and what is not as it was stored; each until `redrive` or `withdraw`.

        Raises:
            SpoolError: it cannot be read.
        """
        return self._store.dead()

    def put(self, message: JmsMessage, destination: Destination) -> JmsMessage:
        """Store a message; it outlives a crash of process and machine when this returns, and will be sent.

        Args:
            message: what is sent; it goes out PERSISTENT.
            destination: where to; no temporary one, which would not outlive us.

        Returns:
            The message as it will be sent, with its MTOSIX_messageId.

        Raises:
            SpoolFullError: a limit is reached, or the disk is full.
            SpoolError: it is not stored.
            ConfigError: a temporary destination; another message of this id is stored already. The same one is no
                error: who was interrupted may put it once more.
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
        with self._store.lock:
            number = self._store.write(lambda: self._insert(key, stored), sync=True, settles=False)
            self._tried = min(self._tried, number - 1)  # numbers begin anew when the outbox is empty
        return stored

    def _insert(self, key: str, stored: JmsMessage) -> int:
        there = self._store.execute("SELECT number, state FROM message WHERE key = ?", key).fetchone()
        if there is None:
            return self._store.insert(key, stored, _WAITS)
        number, state = there
        if state != _WAITS or self._store.message(number, key) != stored:
            raise ConfigError(f"a message of the id {key} is stored and not confirmed")
        return int(number)

    def confirm(self, message: JmsMessage) -> None:
        """The provider has confirmed a message: it is not sent again.

        Should the machine crash right now it may be, and is then known by its id.

        Raises:
            SpoolError: that cannot be noted.
        """
        self._remove(_key_of(message), sync=False)

    def withdraw(self, message: JmsMessage) -> None:
        """A message is not to be sent any more, confirmed or not, dead or not.

        Raises:
            SpoolError: that cannot be noted.
        """
        self._remove(_key_of(message), sync=True)

    def redrive(self, key: str) -> None:
        """Have a dead message sent once more, with all attempts before it.

        Raises:
            SpoolError: that cannot be noted.
        """
        statement = f"UPDATE message SET state = 'waits', {READY} WHERE key = ? AND state = '{DEAD}'"
        self._store.write(lambda: self._store.execute(statement, key), sync=True)

    def unconfirmed(self) -> list[JmsMessage]:
        """The messages that wait to be confirmed, in the order in which they were stored.

        Raises:
            SpoolError: one cannot be read.
        """
        with self._store.lock:
            read = [self._store.message(one.number, one.key) for one in self._store.messages(_WAITS)]
            return [message for message in read if message is not None]

    def send(self, session: Sender, destination: Destination, message: JmsMessage) -> JmsMessage:
        """Store a message, then send it, after all that wait.

        Raises:
            ConfigError, InvalidDestinationError: the message cannot be sent at all, and is not stored any more.
            TransportError: it is stored and not confirmed. Do not send it once more: `resend` does, or the next `send`.
            SpoolError: it is not stored, and not sent.
        """
        stored = self.put(message, destination)
        with self._sending:
            sent = self._flush(session, _key_of(stored))
            if sent is None and self._store.read("SELECT 1 FROM message WHERE key = ?", _key_of(stored)):
                raise TransportError(f"{destination}: an earlier message for it is refused; this one waits behind it")
            return sent or stored

    def resend(self, session: Sender) -> int:
        """Send what waits, and is not waiting for another attempt; how many messages that were.

        Raises:
            TransportError: the provider failed; what is left waits on.
            SpoolError: it cannot be read or written.
        """
        with self._sending:
            before = self.sent
            self._flush(session, None)
            return self.sent - before

    def _flush(self, session: Sender, until: str | None) -> JmsMessage | None:
        """Sends what waits, up to a message that has just been stored, which comes back as it was sent."""
        refused: set[str] = set()  # destinations whose next message waits for another attempt
        for number, key, destination, attempts, next_ms in self._waiting():
            if destination in refused or not self._is_due(next_ms):
                refused.add(destination)
                continue
            message = self._in_time(number, key)
            if message is None or message.destination is None:
                continue
            again = number <= self._tried
            self._tried = max(self._tried, number)
            try:
                sent = session.send(message.destination, message)
            except LoginRefusedError:
                raise
            except _OWN_FAULT as error:
                if key == until and isinstance(error, (ConfigError, InvalidDestinationError)):
                    self._remove(key, sync=True)
                    raise
                if not self._refused(number, message, attempts + 1, error):
                    refused.add(destination)
                if key == until:
                    raise
                continue
            self._remove(key, sync=False)
            self.sent += 1
            self.resent += again
            if key == until:
                return sent
        return None

    def _waiting(self) -> Iterator[tuple[int, str, str, int, int]]:
        """Number, key, destination, attempts and next attempt of each message that waits, in order."""
        columns = "number, key, destination, attempts, next_ms"
        number, query = 0, f"SELECT {columns} FROM message WHERE state = 'waits' AND {OPEN}"
        while rows := self._store.read(f"{query} AND number > ? ORDER BY number LIMIT {_PAGE}", number):
            yield from rows
            number = rows[-1][0]

    def _is_due(self, next_ms: int) -> bool:
        left = next_ms - self._store.now_ms()
        return left <= 0 or left > 1000 * (self._retry.maximum + self._retry.jitter)  # the clock was set back

    def _refused(self, number: int, message: JmsMessage, attempts: int, error: MtosiError) -> bool:
        """Notes that a message was refused; whether it is dead now."""
        if attempts < self._attempts and not isinstance(error, ConfigError):
            next_ms = self._store.now_ms() + int(1000 * self._retry.seconds(attempts))
            statement = "UPDATE message SET attempts = ?, next_ms = ? WHERE number = ?"
            self._store.write(lambda: self._store.execute(statement, attempts, next_ms, number), sync=False)
            log.warning("a stored message for %s is refused, attempt %d: %s", message.destination, attempts, error)
            return False
        self._store.set_aside(number, f"{type(error).__name__}: {error}")
        log.error("a stored message for %s is refused and set aside: %s", message.destination, error)
        if self._on_refused is not None:
            try:
                self._on_refused(message, error)
            except Exception:
                log.exception("on_refused failed")
        return True

    def _remove(self, key: str, *, sync: bool) -> None:
        self._store.write(lambda: self._store.delete(key), sync=sync)

    def _in_time(self, number: int, key: str) -> JmsMessage | None:
        """A message with the time to live that is left of it; None where none is, or where it cannot be read."""
        with self._store.lock:
            found = self._store.read("SELECT since_ms FROM message WHERE number = ? AND key = ?", number, key)
            if not found:  # withdrawn meanwhile
                return None
            message = self._store.read_or_set_aside(number, key)
        if message is None or not message.time_to_live_ms:
            return message
        left = message.time_to_live_ms - max(self._store.now_ms() - found[0][0], 0)
        if left > 0:
            return replace(message, time_to_live_ms=left)
        self.expired += 1
        self._remove(key, sync=False)
        return None

    def close(self) -> None:
        """Let go of the folder; what is not confirmed stays in it."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _key_of(message: JmsMessage) -> str:
    return str(message.properties.get(DUPLICATE_ID, ""))
