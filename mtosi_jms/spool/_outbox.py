"""The outbox stores a message before it is sent, and sends it until the provider confirms it, always with the same id.

waits -> confirmed: it is gone
  |----> dead: the provider has refused this very message too often; it stays, with the reason
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from mtosi_jms.closing import Closeable
from mtosi_jms.errors import (
    AuthenticationError,
    ConfigError,
    IllegalStateError,
    InvalidDestinationError,
    LoginRefusedError,
    MessageRefusedError,
    MtosiError,
    SpoolError,
    TransportError,
)
from mtosi_jms.jms import DUPLICATE_ID, DeliveryMode, Destination, JmsMessage
from mtosi_jms.jms.ids import random_id
from mtosi_jms.spool._store import DEAD, LIMIT_BYTES, OPEN, READY, DeadMessage, Store, watch
from mtosi_jms.telemetry import Gauge, Telemetry, of_message
from mtosi_jms.transport import Backoff, Connection

log = logging.getLogger(__package__)

_PAGE: Final = 200
"""How many rows are read at a time."""
_OWN_FAULT: Final = (ConfigError, InvalidDestinationError, AuthenticationError, MessageRefusedError)
"""Errors about one message. A refused login, a full destination or a lost connection concerns all messages."""


class Sender(Protocol):
    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage: ...


class OutgoingJournal(Protocol):
    """Keeps messages until the provider has confirmed them. `Outbox` implements it and documents the methods."""

    def put(self, message: JmsMessage, destination: Destination) -> JmsMessage: ...
    def send(self, session: Sender, destination: Destination, message: JmsMessage) -> JmsMessage: ...
    def resend(self, session: Sender) -> int: ...


class Outbox(Closeable):
    """Stores messages to be sent. Threads, publishers and requestors of one provider may share it.

    A stored message is sent by the next `send` or `resend`, of this process or a later one, until the provider
    confirms it. The receiver recognises a second copy by `MTOSIX_messageId` (`Inbox`). Messages to one destination
    keep the order of the calls. A message whose time to live is over is not sent any more.

    If the provider refuses a message, it is tried again; meanwhile messages to other destinations are sent. After the
    last attempt the message is dead: kept with the reason, reported, and not sent any more (`dead`, `redrive`).

    Every method may raise SpoolError: the folder cannot be read or written.

    Args:
        folder: a folder only for this outbox; created if it is missing, accessible only for its owner.
        limit_bytes: maximum size of the messages; None: no limit.
        limit_messages: maximum number of messages; None: no limit.
        attempts: how often a refused message is sent before it is dead.
        retry: pauses between these attempts.
        on_refused: called with a message that has become dead, and the error.

    Attributes:
        sent: how many messages were sent and confirmed.
        resent: how many of these were left by an earlier attempt or process.
        expired: how many were given up because their time to live was over.

    Raises:
        SpoolInUseError: another process or object has the folder open.
        JournalDamageError: the database is damaged.
        SpoolError: the folder cannot be read or written, or other users may access it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        limit_bytes: int | None = LIMIT_BYTES,
        limit_messages: int | None = None,
        attempts: int = 5,
        retry: Backoff | None = None,
        on_refused: Callable[[JmsMessage, MtosiError], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.sent = self.resent = self.expired = 0
        self._attempts = attempts
        self._retry = retry or Backoff()
        self._on_refused = on_refused
        self._sending = threading.RLock()
        self._last_skipped = 0
        """Number of the last message that a flush left behind."""
        limits = limit_bytes, limit_messages
        self._store = Store(Path(folder), "outbox", clock=clock, alone=True, limits=limits)
        try:
            ((self._tried,),) = self._store.read("SELECT coalesce(max(number), 0) FROM message")
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        """Returns how many messages wait to be confirmed."""
        return self._store.count("waits")

    @property
    def age(self) -> float:
        """Returns the seconds for which the oldest message has waited to be confirmed; 0: there is none."""
        query = "SELECT since_ms FROM message WHERE state = 'waits' ORDER BY number LIMIT 1"
        found = self._store.read(query)
        return max(self._store.now_ms() - found[0][0], 0) / 1000 if found else 0.0

    @property
    def folder(self) -> Path:
        return self._store.folder

    @property
    def dead_count(self) -> int:
        return self._store.count(DEAD)

    @property
    def dead(self) -> list[DeadMessage]:
        """Returns the dead messages: refused and damaged ones. Each stays until `redrive` or `withdraw`."""
        return self._store.dead()

    def put(self, message: JmsMessage, destination: Destination) -> JmsMessage:
        """Store a message to be sent. When this returns, it survives a crash of process and machine.

        Returns:
            The message as it will be sent, with its MTOSIX_messageId.

        Raises:
            SpoolFullError: a limit is reached, or the disk is full.
            SpoolError: the message is not stored.
            ConfigError: the destination is temporary, or another message with this id is stored already. Storing the
                same message twice is not an error, because an interrupted caller may do that.
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
            self._tried = min(self._tried, number - 1)  # numbers start again when the outbox is empty
        return stored

    def _insert(self, key: str, stored: JmsMessage) -> int:
        there = self._store.execute("SELECT number, state FROM message WHERE key = ?", key).fetchone()
        if there is None:
            return self._store.insert(key, stored, "waits")
        number, state = there
        if state != "waits" or self._store.message(number, key) != stored:
            raise ConfigError(f"a message of the id {key} is stored and not confirmed")
        return int(number)

    def confirm(self, message: JmsMessage) -> None:
        """Remove a message that the provider has confirmed. After a crash right now it may be sent again, with the same
        id."""
        self._remove(_key_of(message), sync=False)

    def withdraw(self, message: JmsMessage) -> None:
        """Remove a message, so that it is not sent any more."""
        self._remove(_key_of(message), sync=True)

    def redrive(self, key: str) -> None:
        """Have a dead message sent again, with the full number of attempts."""
        statement = f"UPDATE message SET state = 'waits', {READY} WHERE key = ? AND state = '{DEAD}'"
        self._store.change(statement, key, sync=True)

    def unconfirmed(self) -> list[JmsMessage]:
        """Returns the messages that wait to be confirmed, in the order in which they were stored."""
        with self._store.lock:
            read = [self._store.message(one.number, one.key) for one in self._store.messages("waits")]
            return [message for message in read if message is not None]

    def send(self, session: Sender, destination: Destination, message: JmsMessage) -> JmsMessage:
        """Store a message, then send it after all those that wait.

        Raises:
            ConfigError, InvalidDestinationError: the message cannot be sent at all, and is not stored any more.
            TransportError: the message is stored and not confirmed. Do not send it again: the next `send` or `resend`
                does.
            SpoolError: the message is neither stored nor sent.
        """
        stored = self.put(message, destination)
        with self._sending:
            sent = self._flush(session, stored)
            if sent is None and self._store.read("SELECT 1 FROM message WHERE key = ?", _key_of(stored)):
                raise TransportError(f"{destination}: an earlier message for it is refused; this one waits behind it")
            return sent or stored

    def resend(self, session: Sender) -> int:
        """Send the waiting messages, except those whose next attempt is not due; returns how many were sent. Raises
        TransportError: the provider failed; the remaining messages still wait."""
        with self._sending:
            before = self.sent
            self._flush(session, None)
            return self.sent - before

    def _flush(self, session: Sender, last: JmsMessage | None) -> JmsMessage | None:
        """Sends the waiting messages, up to the one that was stored just now, which is returned as sent."""
        until = None if last is None else _key_of(last)
        refused: set[str] = set()  # destinations whose next message waits for another attempt
        self._last_skipped = 0
        for number, key, destination, attempts, next_ms in self._waiting():
            if destination in refused or not self._is_due(next_ms):
                refused.add(destination)
                self._last_skipped = number
                continue
            message = self._in_time(number, key, last if key == until else None)
            if message is None:
                continue
            if message.destination is None:
                self._last_skipped = number
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
                    self._last_skipped = number
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
        """Yields number, key, destination, attempts and next attempt of each waiting message, in order.

        A page starts after the last message left behind, not the last one sent: numbers begin again once all are sent.
        """
        columns = "number, key, destination, attempts, next_ms"
        query = f"SELECT {columns} FROM message WHERE state = 'waits' AND {OPEN}"
        while rows := self._store.read(f"{query} AND number > ? ORDER BY number LIMIT {_PAGE}", self._last_skipped):
            yield from rows

    def _is_due(self, next_ms: int) -> bool:
        left = next_ms - self._store.now_ms()
        return left <= 0 or left > 1000 * (self._retry.maximum + self._retry.jitter)  # the clock was set back

    def _refused(self, number: int, message: JmsMessage, attempts: int, error: MtosiError) -> bool:
        if attempts < self._attempts and not isinstance(error, ConfigError):
            next_ms = self._store.now_ms() + int(1000 * self._retry.seconds(attempts))
            statement = "UPDATE message SET attempts = ?, next_ms = ? WHERE number = ?"
            self._store.change(statement, attempts, next_ms, number, sync=False)
            text = "a stored message for %s is refused, id %s, attempt %d: %s: %s"
            shown = message.destination, _key_of(message), attempts, type(error).__name__, error
            log.warning(text, *shown, extra=of_message(message))
            return False
        self._store.move_to_dead(number, f"{type(error).__name__}: {error}")
        text = "a stored message for %s is refused, and dead now, id %s: %s: %s"
        log.error(text, message.destination, _key_of(message), type(error).__name__, error, extra=of_message(message))
        if self._on_refused is not None:
            try:
                self._on_refused(message, error)
            except Exception:
                log.exception("on_refused failed for the message %s", _key_of(message))
        return True

    def _remove(self, key: str, *, sync: bool) -> None:
        self._store.change("DELETE FROM message WHERE key = ?", key, sync=sync)

    def _in_time(self, number: int, key: str, known: JmsMessage | None) -> JmsMessage | None:
        """Returns a message with its remaining time to live; None if none is left or it cannot be read."""
        with self._store.lock:
            found = self._store.read("SELECT since_ms FROM message WHERE number = ? AND key = ?", number, key)
            if not found:  # withdrawn meanwhile
                return None
            message = known or self._store.sound_message(number, key)
        if message is None or not message.time_to_live_ms:
            return message
        left = message.time_to_live_ms - max(self._store.now_ms() - found[0][0], 0)
        if left > 0:
            return replace(message, time_to_live_ms=left)
        self.expired += 1
        self._remove(key, sync=False)
        return None

    def close(self) -> None:
        """Close the outbox. Unconfirmed messages stay in the folder."""
        self._store.close()


def watch_outbox(telemetry: Telemetry | None, outbox: OutgoingJournal | None) -> None:
    """Have a telemetry read how many messages of an outbox wait, since when, and how many are dead."""
    if telemetry is not None and isinstance(outbox, Outbox):
        watch(telemetry, Gauge.OUTBOX_DEPTH, outbox, len)
        watch(telemetry, Gauge.OUTBOX_AGE, outbox, lambda one: one.age)
        watch(telemetry, Gauge.DEAD, outbox, lambda one: one.dead_count)


def _key_of(message: JmsMessage) -> str:
    return str(message.properties.get(DUPLICATE_ID, ""))


_LOOK: Final = 1.0
"""Seconds between looks at the outbox: the next attempt of a refused message may be due."""


class OutboxPump(Closeable):
    """Sends the messages of an outbox until it is closed; whoever has a message only stores it (`Outbox.put`). Close
    the outbox after the pump.

    `connect` opens a connection, again after each loss; the pump closes it. `backoff`: pauses while the provider cannot
    be reached, or the outbox cannot be read."""

    def __init__(
        self, outbox: OutgoingJournal, connect: Callable[[], Connection], *, backoff: Backoff | None = None
    ) -> None:
        self._outbox = outbox
        self._connect = connect
        self._backoff = backoff or Backoff()
        self._stored = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="outbox-pump", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Send at once what was stored just now; without this it goes within a second."""
        self._stored.set()

    def _run(self) -> None:
        failures = 0
        while not self._over.is_set():
            try:
                with self._connect() as connection, connection.session() as session:
                    while not self._over.is_set():
                        self._outbox.resend(session)
                        failures = 0
                        self._stored.wait(_LOOK)
                        self._stored.clear()  # before the look at `_over`, or the last wake of `close` could be missed
            except (TransportError, IllegalStateError) as error:
                log.warning("the outbox waits: %s: %s", type(error).__name__, error)
            except SpoolError:
                log.exception("the outbox cannot be read")
            except MtosiError:
                log.exception("the outbox cannot be sent")
            failures += 1
            self._over.wait(self._backoff.seconds(failures))

    def close(self) -> None:
        self._over.set()
        self._stored.set()
        self._thread.join()
