"""The inbox: what is received is stored before it is acknowledged, handed out once, and noted when it is done with.

    landed -> handed -> done, parked: only the id and the outcome are left
                |-----> doubt: nobody knows what became of it

What a crash left landed is handed out by whoever comes next. What it left handed is in doubt: only the application
knows what became of it, so it is told, and nothing of it is handed out again unless the application says so.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from mtosi_jms.errors import SpoolError
from mtosi_jms.jms import DUPLICATE_ID, JmsMessage
from mtosi_jms.jms.ids import random_id
from mtosi_jms.spool._store import EMPTY, LIMIT_BYTES, OPEN, READY, DeadMessage, Store, content_digest
from mtosi_jms.spool.journal import InboxEntry

log = logging.getLogger(__name__)

WINDOW: Final = 100_000
"""Ids that are remembered, unless told otherwise."""
_LANDED, _HANDED, _DOUBT, _PARKED, _DONE = "landed", "handed", "doubt", "parked", "done"
_NO_ID: Final = "none:"

OnDoubt = Callable[[InboxEntry], object]


class Inbox:
    """Stores what was received; threads and consumers may share one, and processes of one machine a folder.

    A message is known by its MTOSIX_messageId, so that one which its sender sends again is recognised as the same. One
    without is known by what its provider calls it (JMSMessageID, JMSTimestamp and body), so that one which is delivered
    again is. The same MTOSIX_messageId with another body is a conflict: it is handed out as such, for the application
    or the consumer runtime to set aside. A message that was parked is handed out once more when it comes again.

    Args:
        folder: for inboxes alone; made if it is not there, for its owner only.
        window: how many ids are remembered, those of messages that are done with included: a copy is recognised unless
            as many others have come since.
        on_doubt: called with each message that is in doubt, when the inbox is opened and later.
        limit_bytes: that messages may take up which are not done with; None: any number.
        limit_messages: how many there may be; None: any number.
        limit_age: seconds after which the log tells of a message that is not done with; None: never.
        segment_bytes: of the files of 0.1; does nothing.
        clock: seconds since 1970 UTC.

    Attributes:
        duplicates: how many messages were here before, and were dropped.
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
        self._out: set[str] = set()
        self._taking: dict[int, InboxEntry] = {}
        self._store = Store(Path(folder), "inbox", clock=clock, limits=(limit_bytes, limit_messages, limit_age))
        try:
            for one in self._store.messages(_DOUBT):
                self._tell(one.number, one.key)
            self._recover()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        """How many messages are not done with, those in doubt included."""
        return self._store.count(_LANDED, _HANDED, _DOUBT)

    @property
    def in_doubt(self) -> list[InboxEntry]:
        """What was handed out, and nobody knows what became of it; each until `done` or `release`.

        Raises:
            SpoolError: one cannot be read.
        """
        with self._store.lock:
            doubtful = self._store.messages(_DOUBT)
            read = [(one.key, self._store.read_or_set_aside(one.number, one.key)) for one in doubtful]
            return [InboxEntry(key, message) for key, message in read if message is not None]

    @property
    def dead(self) -> list[DeadMessage]:
        """What was set aside: conflicts, and what is not as it was stored; each until `done` or `release`.

        Raises:
            SpoolError: it cannot be read.
        """
        return self._store.dead()

    def land(self, message: JmsMessage) -> bool:
        """Store a message; it outlives a crash of process and machine when this returns, and may be acknowledged.

        Returns:
            False where it was here before; it may be acknowledged, and is not handed out.

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
            if known[1] != _PARKED:
                return False
            self._store.delete(key)  # it was parked, and somebody moved it back
            conflict = False
        self._store.insert(key, message, _LANDED, conflict=conflict)
        return True

    def take(self) -> InboxEntry | None:
        """The next message to be handed out, for the caller alone, in the order of arrival; None: there is none.

        Raises:
            SpoolError: it cannot be read.
        """
        thread = threading.get_ident()
        with self._store.lock:
            if thread not in self._taking:  # else an exception came before it was given to the caller
                found = self._claim()
                if found is None and self._recover():
                    found = self._claim()
                if found is None:
                    return None
                self._taking[thread] = found
            self._out.add(self._taking[thread].key)
        return self._taking.pop(thread)

    def _claim(self) -> InboxEntry | None:
        """A message that nobody has, which is ours from now on."""
        query = f"SELECT number, key, owner, conflict FROM message WHERE state = 'landed' AND {OPEN}"
        claim = "UPDATE message SET owner = ? WHERE key = ? AND state = 'landed' AND (owner IS NULL OR owner = ?)"
        me, number = self._store.me, 0
        while (row := self._store.first(f"{query} AND number > {number} ORDER BY number", self._is_free)) is not None:
            number, key, _, conflict = row
            message = self._store.read_or_set_aside(number, key)
            if message is None:
                continue
            if self._store.write(partial(self._is_changed, claim, me, key, me), sync=False):
                return InboxEntry(key, message, bool(conflict))
        return None

    def _is_changed(self, statement: str, *values: object) -> bool:
        return self._store.execute(statement, *values).rowcount > 0

    def _is_free(self, row: tuple[int, str, str | None, int]) -> bool:
        """Whether nobody has a message; one of ours that was not given to anybody is what an exception left."""
        _, key, owner, _ = row
        being_taken = (entry.key for entry in self._taking.values())
        return owner is None or (owner == self._store.me and key not in self._out and key not in being_taken)

    def hand(self, key: str) -> None:
        """Note that a message is about to be handed out; from now on it is not handed out again by itself.

        Raises:
            SpoolError: that is not noted, or somebody else has it; it must not be handed out.
        """
        statement = (
            "UPDATE message SET state = 'handed', owner = ? WHERE key = ?"
            " AND (owner = ? AND state IN ('landed', 'handed') OR owner IS NULL AND state = 'landed')"
        )
        me = self._store.me
        with self._store.lock:
            if not self._store.write(lambda: self._is_changed(statement, me, key, me), sync=True):
                raise SpoolError(str(self._store.folder), f"no message {key} waits here to be handed out by this inbox")
            self.handed += 1

    def done(self, key: str) -> None:
        """Note that a message is done with; the application's word on one that is in doubt, too.

        Should the machine crash right now the message may be in doubt afterwards.

        Raises:
            SpoolError: that cannot be noted.
        """
        self._end(key, _DONE)

    def park(self, key: str) -> None:
        """Note that no attempt could handle a message, and that it is elsewhere now; it is new when it comes again.

        Raises:
            SpoolError: that cannot be noted.
        """
        self._end(key, _PARKED)

    def _end(self, key: str, outcome: str) -> None:
        with self._store.lock:
            self._store.write(lambda: self._settle(key, outcome), sync=False)
            self._out.discard(key)

    def _settle(self, key: str, outcome: str) -> None:
        """Leaves the id and the outcome of a message, and as many ids as are to be remembered."""
        if key.startswith(_NO_ID):
            self._store.delete(key)
            return
        self._store.execute(
            f"UPDATE message SET state = ?, {EMPTY} WHERE key = ? AND {OPEN}",
            *(outcome, key),
        )
        self._store.execute(
            "DELETE FROM message WHERE number <= (SELECT max(number) FROM message) - ? AND state IN ('done', 'parked')",
            self._window,
        )

    def release(self, key: str) -> None:
        """Have a message handed out once more: one that was taken and surely not done with, in doubt, or dead.

        It takes its old place among those that wait.

        Raises:
            SpoolError: that cannot be noted.
        """
        statement = (
            f"UPDATE message SET state = 'landed', {READY} WHERE key = ? AND {OPEN} AND (owner IS NULL OR owner = ?)"
        )
        with self._store.lock:
            self._out.discard(key)
            self._store.write(lambda: self._store.execute(statement, key, self._store.me), sync=True)

    def retry(self, key: str) -> None:
        """Note that the attempt to handle a message has failed; it stays taken, for the next one by who has it.

        Should the machine crash right now the message may be in doubt afterwards.

        Raises:
            SpoolError: that cannot be noted.
        """
        statement = "UPDATE message SET state = 'landed' WHERE key = ? AND state = 'handed'"
        self._store.write(lambda: self._store.execute(statement, key), sync=False)

    def doubt(self, key: str) -> None:
        """Note that it is not known what became of a message that was handed out.

        Raises:
            SpoolError: that cannot be noted.
        """
        query = "SELECT number FROM message WHERE key = ? AND state = 'handed'"
        statement = "UPDATE message SET state = 'doubt', owner = NULL WHERE number = ?"

        def work() -> list[int]:
            found = [int(number) for (number,) in self._store.execute(query, key)]
            for number in found:
                self._store.execute(statement, number)
            return found

        with self._store.lock:
            found = self._store.write(work, sync=False)
            if found:
                self._out.discard(key)
        for number in found:
            self._tell(number, key)

    def set_aside(self, key: str, reason: str) -> None:
        """A message is not to be handed out any more, and stays; `dead` lists it.

        Raises:
            SpoolError: that cannot be noted.
        """
        with self._store.lock:
            for (number,) in self._store.read(f"SELECT number FROM message WHERE key = ? AND {OPEN}", key):
                self._store.set_aside(number, reason)
            self._out.discard(key)

    def _recover(self) -> bool:
        """What others had whose inbox is gone is ready again, in doubt where it was handed out; whether any was."""
        gone = self._store.owners_gone()
        if not gone:
            return False
        marks = ", ".join("?" * len(gone))

        def work() -> list[tuple[int, str]]:
            query = f"SELECT number, key FROM message WHERE owner IN ({marks}) AND state = 'handed'"
            doubtful: list[tuple[int, str]] = self._store.execute(query, *gone).fetchall()
            self._store.execute(
                f"UPDATE message SET state = CASE state WHEN 'handed' THEN 'doubt' ELSE state END, owner = NULL"
                f" WHERE owner IN ({marks})",
                *gone,
            )
            return doubtful

        for number, key in self._store.write(work, sync=True):
            self._tell(number, key)
        return True

    def close(self) -> None:
        """Let go of the folder; what is not done with stays in it."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _tell(self, number: int, key: str) -> None:
        log.warning("a message that was handed out and not done with is in doubt: %s", key)
        if self._on_doubt is None:
            return
        try:
            message = self._store.read_or_set_aside(number, key)
            if message is not None:  # else others that share the inbox know by now what became of it
                self._on_doubt(InboxEntry(key, message))
        except Exception:
            log.exception("on_doubt failed")


def _key_of(message: JmsMessage) -> str:
    """What a message is known by; of one that nothing tells from others, an id that no other has."""
    own = message.properties.get(DUPLICATE_ID)
    if own:
        return str(own)
    if message.message_id is None:
        return f"{_NO_ID}{random_id()}"
    facts = f"{message.message_id} {message.timestamp_ms} ".encode() + message.body
    return f"jms:{blake2b(facts, digest_size=16).hexdigest()}"
