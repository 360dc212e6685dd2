"""The inbox: what is received is stored before it is acknowledged, handed out once, and settled when it is done with.

landed -> handed -> done, parked: only the id and the outcome are left
            |-----> doubt: nobody knows what became of it
any    -> dead: it is not handed out any more, and stays
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Final

from mtosi_jms.closing import Closeable
from mtosi_jms.errors import SpoolError
from mtosi_jms.jms import DUPLICATE_ID, JmsMessage
from mtosi_jms.jms.ids import random_id
from mtosi_jms.spool._journal import InboxEntry
from mtosi_jms.spool._store import DEAD, EMPTY, LIMIT_BYTES, OPEN, READY, DeadMessage, Store, content_digest, marks

log = logging.getLogger(__package__)

WINDOW: Final = 100_000
"""Ids that are remembered by default."""
_NO_ID: Final = "none:"

OnDoubt = Callable[[InboxEntry], object]


class Inbox(Closeable):
    """Stores what was received; threads and consumers may share one, and processes of one machine a folder.

    A message is known by its MTOSIX_messageId, so that a copy that its sender sends again is recognised. One without
    is known by its JMSMessageID, JMSTimestamp and body, so that a redelivery is recognised. The same MTOSIX_messageId
    with another body is a conflict: the message is handed out as such, and the application or the consumer runtime
    decides. A message that was parked is handed out again when it comes again.

    Every method may raise SpoolError: the folder cannot be read or written.

    Args:
        folder: for inboxes alone; made if it is not there, for its owner only.
        window: how many ids are remembered, settled ones included: a copy is recognised unless as many other messages
            have come since.
        on_doubt: called with each message that is in doubt, when the inbox is opened and later.
        limit_bytes: that unsettled messages may take up; None: any number.
        limit_messages: how many unsettled messages there may be; None: any number.
        limit_age: seconds after which the log reports a message that is not settled; None: never.
        segment_bytes: of the files of 0.1; does nothing.
        clock: seconds since 1970 UTC.

    Attributes:
        duplicates: how many messages were recognised as copies, and dropped.
        handed: how many were handed out.

    Raises:
        SpoolInUseError: a process of version 0.1 has the folder.
        JournalDamageError: the database is damaged.
        SpoolError: it cannot be read or written, or is not its owner's alone.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        window: int = WINDOW,
        on_doubt: OnDoubt | None = None,
        limit_bytes: int | None = LIMIT_BYTES,
        limit_messages: int | None = None,
        limit_age: float | None = None,
        segment_bytes: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.duplicates = self.handed = 0
        self._window = max(window, 1)
        self._on_doubt = on_doubt
        # The database says that this inbox has a message; these two say which of its threads has got it so far.
        self._out: set[str] = set()
        self._taking: dict[int, InboxEntry] = {}
        self._store = Store(Path(folder), "inbox", clock=clock, limits=(limit_bytes, limit_messages, limit_age))
        try:
            for one in self._store.messages("doubt"):
                self._tell(one.number, one.key)
            self._recover()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        """How many messages are not done with, those in doubt included."""
        return self._store.count("landed", "handed", "doubt")

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self._store.folder

    @property
    def dead_count(self) -> int:
        """How many messages `dead` has, without reading them."""
        return self._store.count(DEAD)

    @property
    def in_doubt(self) -> list[InboxEntry]:
        """What was handed out, and nobody knows what became of it; each until `done` or `release`."""
        with self._store.lock:
            doubtful = self._store.messages("doubt")
            read = [(one.key, self._store.sound_message(one.number, one.key)) for one in doubtful]
            return [InboxEntry(key, message) for key, message in read if message is not None]

    @property
    def dead(self) -> list[DeadMessage]:
        """What is not handed out any more: conflicts, and damaged messages; each until `done` or `release`."""
        return self._store.dead()

    def land(self, message: JmsMessage) -> bool:
        """Store a message; it outlives a crash of process and machine when this returns, and may be acknowledged.

        Returns:
            False for a copy; it may be acknowledged, and is not handed out.

        Raises:
            SpoolFullError: a limit is reached, or the disk is full; it must not be acknowledged.
            SpoolError: it is not stored, and must not be acknowledged.
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
        """The next message to hand out, in the order of arrival, for the caller alone; None where no message waits."""
        thread = threading.get_ident()
        with self._store.lock:
            if thread not in self._taking:  # else an exception came before the caller got it
                found = self._claim()
                if found is None and self._recover():
                    found = self._claim()
                if found is None:
                    return None
                self._taking[thread] = found
            self._out.add(self._taking[thread].key)
        return self._taking.pop(thread)

    def _claim(self) -> InboxEntry | None:
        """A free message, which belongs to this inbox from now on."""
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
        """Whether nobody has a message; one of ours that no thread got is what an exception left."""
        _, key, owner, _ = row
        being_taken = (entry.key for entry in self._taking.values())
        return owner is None or (owner == self._store.me and key not in self._out and key not in being_taken)

    def hand(self, key: str) -> None:
        """Note that a message is about to be handed out; from now on it is not handed out again by itself.

        Raises:
            SpoolError: that is not noted, or another inbox has it; it must not be handed out.
        """
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
        """Note that a message is done with; the application's answer for one that is in doubt, too.

        If the machine crashes right now the message may be in doubt afterwards.
        """
        self._end(key, "done")

    def park(self, key: str) -> None:
        """Note that no attempt could handle a message, and that it was sent to the dead-letter destination.

        When it comes again it is new.
        """
        self._end(key, "parked")

    def _end(self, key: str, outcome: str) -> None:
        with self._store.lock:
            self._store.write(lambda: self._settle(key, outcome), sync=False)
            self._out.discard(key)

    def _settle(self, key: str, outcome: str) -> None:
        """Keeps the id and the outcome of a message, and as many ids as are to be remembered."""
        if key.startswith(_NO_ID):
            self._store.execute("DELETE FROM message WHERE key = ?", key)
            return
        self._store.execute(f"UPDATE message SET state = ?, {EMPTY} WHERE key = ? AND {OPEN}", outcome, key)
        self._store.execute(
            "DELETE FROM message WHERE number <= (SELECT max(number) FROM message) - ? AND state IN ('done', 'parked')",
            self._window,
        )

    def release(self, key: str) -> None:
        """Have a message handed out again, in its old place.

        For one that was taken and surely not done with, one in doubt, or a dead one.
        """
        statement = (
            f"UPDATE message SET state = 'landed', {READY} WHERE key = ? AND {OPEN} AND (owner IS NULL OR owner = ?)"
        )
        with self._store.lock:
            self._out.discard(key)
            self._store.change(statement, key, self._store.me, sync=True)

    def retry(self, key: str) -> None:
        """Note that the attempt to handle a message has failed; it stays taken, for the next attempt.

        If the machine crashes right now the message may be in doubt afterwards.
        """
        self._store.change("UPDATE message SET state = 'landed' WHERE key = ? AND state = 'handed'", key, sync=False)

    def mark_in_doubt(self, key: str) -> None:
        """Note that it is not known what became of a message that was handed out."""
        doubt = "UPDATE message SET state = 'doubt', owner = NULL WHERE number = ? AND state = 'handed'"
        with self._store.lock:
            found = self._store.read("SELECT number FROM message WHERE key = ? AND state = 'handed'", key)
            found = [number for (number,) in found if self._store.change(doubt, number, sync=False)]
            if found:
                self._out.discard(key)
        for number in found:
            self._tell(number, key)

    def move_to_dead(self, key: str, reason: str) -> None:
        """A message is not handed out any more, and stays; `dead` lists it."""
        statement = f"UPDATE message SET state = 'dead', reason = ?, owner = NULL WHERE key = ? AND {OPEN}"
        with self._store.lock:
            self._store.change(statement, reason, key, sync=True)
            self._out.discard(key)

    def _recover(self) -> bool:
        """Frees the messages of inboxes that are gone; handed ones are in doubt. Whether there were any."""
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
            self._tell(number, key)
        return True

    def close(self) -> None:
        """Let go of the folder; what is not done with stays in it."""
        self._store.close()

    def _tell(self, number: int, key: str) -> None:
        log.warning("a message that was handed out and not done with is in doubt: %s", key)
        if self._on_doubt is None:
            return
        try:
            message = self._store.sound_message(number, key)
            if message is not None:  # else another process knows by now what became of it
                self._on_doubt(InboxEntry(key, message))
        except Exception:
            log.exception("on_doubt failed for the message %s", key)


def _key_of(message: JmsMessage) -> str:
    """The key of a message: an id that no other has, where nothing tells it from others."""
    own = message.properties.get(DUPLICATE_ID)
    if own:
        return str(own)
    if message.message_id is None:
        return f"{_NO_ID}{random_id()}"
    facts = f"{message.message_id} {message.timestamp_ms} ".encode() + message.body
    return f"jms:{blake2b(facts, digest_size=16).hexdigest()}"
