"""The inbox stores a received message before it is acknowledged, hands it out once, and settles it when it was handled.

landed -> handed -> done, parked: only the id and the outcome are left
            |-----> doubt: nobody knows what became of it
any    -> dead: it is not handed out any more, and stays
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.closing import Closeable
from mtosi_jms.errors import IllegalStateError, SpoolError, SpoolFullError, TransportError
from mtosi_jms.jms import DUPLICATE_ID, JmsMessage
from mtosi_jms.jms.ids import random_id
from mtosi_jms.spool._store import (
    DEAD,
    EMPTY,
    LIMIT_BYTES,
    OPEN,
    READY,
    DeadMessage,
    Store,
    content_digest,
    marks,
    watch,
)
from mtosi_jms.telemetry import Count, Gauge, Telemetry
from mtosi_jms.transport import Consumer, Delivery, Session, redeliver

log = logging.getLogger(__package__)

WINDOW: Final = BOUNDS.spool_window
"""How many ids are remembered by default."""
_NO_ID: Final = "none:"
CONFLICT: Final = "an earlier message has its MTOSIX_messageId, and another body"
"""The reason of a dead message that was in conflict."""
_LOOK: Final = 1.0
"""Seconds between checks of the inbox while a receiver waits."""


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


OnDoubt = Callable[[InboxEntry], object]


class Inbox(Closeable):
    """Stores received messages. Threads and consumers may share an inbox, and processes of one machine its folder.

    A message is identified by its MTOSIX_messageId, so that a copy that its sender sends again is recognised. Without
    that property it is identified by its JMSMessageID, JMSTimestamp and body, so that a redelivery is recognised. The
    same MTOSIX_messageId with another body is a conflict: the message is handed out with a mark, and the application
    or the consumer runtime decides. A message that went to the dead-letter destination is handed out again if it comes
    again.

    Every method may raise SpoolError: the folder cannot be read or written.

    Args:
        folder: a folder only for inboxes; created if it is missing, accessible only for its owner.
        window: how many ids are remembered, including those of settled messages. A copy is recognised unless as many
            other messages have come since.
        on_doubt: called with each message that is in doubt, when the inbox is opened and later.
        limit_bytes: maximum size of unsettled messages; None: no limit.
        limit_messages: maximum number of unsettled messages; None: no limit.

    Attributes:
        duplicates: how many messages were recognised as copies and dropped.
        handed: how many messages were handed out.

    Raises:
        JournalDamageError: the database is damaged.
        SpoolError: the folder cannot be read or written, or other users may access it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        window: int = WINDOW,
        on_doubt: OnDoubt | None = None,
        limit_bytes: int | None = LIMIT_BYTES,
        limit_messages: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.duplicates = self.handed = 0
        self._window = max(window, 1)
        self._on_doubt = on_doubt
        # The database says which messages this inbox has taken; these two say which of its threads has each.
        self._out: set[str] = set()
        self._taking: dict[int, InboxEntry] = {}
        self._store = Store(Path(folder), "inbox", clock=clock, limits=(limit_bytes, limit_messages))
        try:
            for one in self._store.messages("doubt"):
                self._report_doubt(one.number, one.key)
            self._recover()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        """Returns how many messages are unsettled, including those in doubt."""
        return self._store.count("landed", "handed", "doubt")

    @property
    def folder(self) -> Path:
        return self._store.folder

    @property
    def dead_count(self) -> int:
        return self._store.count(DEAD)

    @property
    def in_doubt(self) -> list[InboxEntry]:
        """Returns the messages in doubt: handed out, with an unknown outcome. Each stays until `done` or `release`."""
        with self._store.lock:
            doubtful = self._store.messages("doubt")
            read = [(one.key, self._store.sound_message(one.number, one.key)) for one in doubtful]
            return [InboxEntry(key, message) for key, message in read if message is not None]

    @property
    def dead(self) -> list[DeadMessage]:
        """Returns the dead messages: conflicts and damaged ones. Each stays until `done` or `release`."""
        return self._store.dead()

    def land(self, message: JmsMessage) -> bool:
        """Store a message. When this returns, it survives a crash of process and machine, and may be acknowledged.

        Returns:
            False for a copy, which may be acknowledged and is not handed out.

        Raises:
            SpoolFullError: a limit is reached, or the disk is full; the message must not be acknowledged.
            SpoolError: the message is not stored, and must not be acknowledged.
        """
        key, content = _key_of(message), content_digest(message.body)
        with self._store.lock:
            is_new = self._store.write(lambda: self._land(key, content, message), sync=True, settles=False)
            self.duplicates += not is_new
            return is_new

    def _land(self, key: str, content: bytes, message: JmsMessage) -> bool:
        query = "SELECT number, state, content FROM message WHERE key = ?"
        known = self._store.execute(query, key).fetchone()
        conflict = known is not None and known[2] not in (None, content)
        if conflict:
            log.error("a message has the id %s of an earlier one, and another body", key)
            key = f"{key} {content.hex()}"
            known = self._store.execute(query, key).fetchone()
        if known is not None:
            if known[1] != "parked":
                return False
            self._store.execute("DELETE FROM message WHERE key = ?", key)  # somebody moved it back
            conflict = False
        self._store.insert(key, message, "landed", conflict=conflict)
        return True

    def take(self) -> InboxEntry | None:
        """Take the next message, in the order of arrival, only for the calling thread; None if no message waits."""
        thread = threading.get_ident()
        with self._store.lock:
            if thread not in self._taking:  # if it is there, an exception came before the caller got it
                found = self._claim()
                if found is None and self._recover():
                    found = self._claim()
                if found is None:
                    return None
                self._taking[thread] = found
            self._out.add(self._taking[thread].key)
        return self._taking.pop(thread)

    def _claim(self) -> InboxEntry | None:
        query = f"SELECT number, key, owner, conflict FROM message WHERE state = 'landed' AND {OPEN}"
        claim = "UPDATE message SET owner = ? WHERE key = ? AND state = 'landed' AND (owner IS NULL OR owner = ?)"
        me, number = self._store.me, 0
        while (row := self._store.first(f"{query} AND number > {number} ORDER BY number", self._is_free)) is not None:
            number, key, _, conflict = row
            message = self._store.sound_message(number, key)
            if message is not None and self._store.change(claim, me, key, me, sync=False):
                return InboxEntry(key, message, bool(conflict))
        return None

    def _is_free(self, row: tuple[int, str, str | None, int]) -> bool:
        """Whether nobody has a message. One that this inbox took but no thread has is free: an exception left it."""
        _, key, owner, _ = row
        being_taken = (entry.key for entry in self._taking.values())
        return owner is None or (owner == self._store.me and key not in self._out and key not in being_taken)

    def hand(self, key: str) -> None:
        """Note that a message is about to be handed out. From now on it is not handed out again without `release`.
        Raises SpoolError: this cannot be noted, or another inbox has the message; it must not be handed out."""
        statement = (
            "UPDATE message SET state = 'handed', owner = ? WHERE key = ?"
            " AND (owner = ? AND state IN ('landed', 'handed') OR owner IS NULL AND state = 'landed')"
        )
        me = self._store.me
        with self._store.lock:
            if not self._store.change(statement, me, key, me, sync=True):
                raise SpoolError(str(self._store.folder), f"no message {key} waits here to be handed out by this inbox")
            self.handed += 1

    def done(self, key: str) -> None:
        """Note that a message was handled, also one in doubt. If the machine crashes right now, it may be in doubt
        afterwards."""
        self._end(key, "done")

    def park(self, key: str) -> None:
        """Note that a message was sent to the dead-letter destination after its last attempt. If it comes again, it is
        new."""
        self._end(key, "parked")

    def _end(self, key: str, outcome: str) -> None:
        with self._store.lock:
            self._store.write(lambda: self._settle(key, outcome), sync=False)
            self._out.discard(key)

    def _settle(self, key: str, outcome: str) -> None:
        """Keeps only the id and the outcome of a message, and removes ids beyond the window."""
        if key.startswith(_NO_ID):
            self._store.execute("DELETE FROM message WHERE key = ?", key)
            return
        self._store.execute(f"UPDATE message SET state = ?, {EMPTY} WHERE key = ? AND {OPEN}", outcome, key)
        self._store.execute(
            "DELETE FROM message WHERE number <= (SELECT max(number) FROM message) - ? AND state IN ('done', 'parked')",
            self._window,
        )

    def release(self, key: str) -> None:
        """Have a message handed out again, in its old place: it was surely not handled, is in doubt, or dead."""
        statement = (
            f"UPDATE message SET state = 'landed', {READY} WHERE key = ? AND {OPEN} AND (owner IS NULL OR owner = ?)"
        )
        with self._store.lock:
            self._out.discard(key)
            self._store.change(statement, key, self._store.me, sync=True)

    def retry(self, key: str) -> None:
        """Note that an attempt has failed. The message stays taken. If the machine crashes right now, it may be in
        doubt."""
        self._store.change("UPDATE message SET state = 'landed' WHERE key = ? AND state = 'handed'", key, sync=False)

    def mark_in_doubt(self, key: str) -> None:
        """Note that the outcome of a message that was handed out is unknown."""
        doubt = "UPDATE message SET state = 'doubt', owner = NULL WHERE number = ? AND state = 'handed'"
        with self._store.lock:
            found = self._store.read("SELECT number FROM message WHERE key = ? AND state = 'handed'", key)
            found = [number for (number,) in found if self._store.change(doubt, number, sync=False)]
            if found:
                self._out.discard(key)
        for number in found:
            self._report_doubt(number, key)

    def move_to_dead(self, key: str, reason: str) -> None:
        """Make a message dead: it stays but is not handed out any more. `dead` lists it."""
        statement = f"UPDATE message SET state = 'dead', reason = ?, owner = NULL WHERE key = ? AND {OPEN}"
        with self._store.lock:
            self._store.change(statement, reason, key, sync=True)
            self._out.discard(key)

    def _recover(self) -> bool:
        """Frees the messages of inboxes that are gone; those handed out are in doubt. Returns whether any were."""
        gone = self._store.owners_gone()
        if not gone:
            return False
        of_gone = f"owner IN ({marks(gone)})"

        def work() -> list[tuple[int, str]]:
            query = f"SELECT number, key FROM message WHERE {of_gone} AND state = 'handed'"
            doubtful: list[tuple[int, str]] = self._store.execute(query, *gone).fetchall()
            now = "CASE state WHEN 'handed' THEN 'doubt' ELSE state END"
            self._store.execute(f"UPDATE message SET state = {now}, owner = NULL WHERE {of_gone}", *gone)
            return doubtful

        for number, key in self._store.write(work, sync=True):
            self._report_doubt(number, key)
        return True

    def close(self) -> None:
        self._store.close()

    def _report_doubt(self, number: int, key: str) -> None:
        log.warning("a message that was handed out and not done with is in doubt: %s", key)
        if self._on_doubt is None:
            return
        try:
            message = self._store.sound_message(number, key)
            if message is not None:  # if None, another process has settled it meanwhile
                self._on_doubt(InboxEntry(key, message))
        except Exception:
            log.exception("on_doubt failed for the message %s", key)


def _key_of(message: JmsMessage) -> str:
    own = message.properties.get(DUPLICATE_ID)
    if own:
        return str(own)
    if message.message_id is None:
        return f"{_NO_ID}{random_id()}"
    facts = f"{message.message_id} {message.timestamp_ms} ".encode() + message.body
    return f"jms:{blake2b(facts, digest_size=16).hexdigest()}"


def watch_inbox(telemetry: Telemetry | None, inbox: IncomingJournal | None) -> None:
    """Have a telemetry read how many messages of an inbox are unsettled, and how many are dead."""
    if telemetry is not None and isinstance(inbox, Inbox):
        watch(telemetry, Gauge.INBOX_SIZE, inbox, len)
        watch(telemetry, Gauge.DEAD, inbox, lambda one: one.dead_count)


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
