"""The inbox: what is received is stored before it is acknowledged, handed out once, and noted when it is done with.

    landed -> handed -> done

What a crash left landed is handed out by the next process. What it left handed is in doubt: only the application knows
what became of it, so it is told, and nothing of it is handed out again unless it says so.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from mtosi_jms.delivery import InboxEntry
from mtosi_jms.ids import random_id
from mtosi_jms.jms import JmsMessage
from mtosi_jms.messages import DUPLICATE_ID
from mtosi_jms.spool.ledger import SETTLED, Ledger
from mtosi_jms.spool.outbox import SEGMENT_BYTES

log = logging.getLogger(__name__)

WINDOW: Final = 100_000
"""Ids that are remembered, unless told otherwise."""
_LANDED: Final = "landed"
_HANDED: Final = "handed"

OnDoubt = Callable[[InboxEntry], object]


class Inbox:
    """A durable journal of what was received; threads and consumers may share it.

    A message is known by its MTOSIX_messageId, so that one which its sender sends again is recognised as the same. One
    without is known by what its provider calls it (JMSMessageID, JMSTimestamp and body), so that one which is delivered
    again is.

    Args:
        folder: of the journal, for this inbox alone; made if it is not there, for its owner only.
        window: how many ids are remembered, those of messages that are done with included: a copy is recognised unless
            as many others have come since.
        on_doubt: called with each message that is in doubt, when the inbox is opened and later.
        segment_bytes: size from which on a file of the journal is not added to.
        clock: seconds since 1970 UTC.

    Attributes:
        duplicates: how many messages were here before, and were dropped.
        handed: how many were handed out.

    Raises:
        SpoolInUseError: another process, or object, has the folder.
        JournalDamageError: the journal is damaged, other than a crash leaves it.
        SpoolError: it cannot be read or written.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        window: int = WINDOW,
        on_doubt: OnDoubt | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.duplicates = self.handed = 0
        self._on_doubt = on_doubt
        self._ledger = Ledger(Path(folder), segment_bytes=segment_bytes, remember=max(window, 1), clock=clock)
        self._ready: deque[str] = deque()
        self._doubtful: dict[str, None] = {}
        for key in self._ledger.ids():
            if self._is_handed(key):
                self._doubtful[key] = None
            else:
                self._ready.append(key)
        for key in list(self._doubtful):
            self._tell(key)

    def __len__(self) -> int:
        """How many messages are not done with."""
        return len(self._ledger)

    @property
    def in_doubt(self) -> list[InboxEntry]:
        """What was handed out, and nobody knows what became of it; each until `done` or `release`.

        Raises:
            SpoolError: one cannot be read.
        """
        with self._ledger.lock:
            return [InboxEntry(key, self._ledger.message(key)) for key in self._doubtful]

    def land(self, message: JmsMessage) -> bool:
        """Store a message; it outlives a crash of process and machine when this returns, and may be acknowledged.

        Returns:
            False where it was here before; it may be acknowledged, and is not handed out.

        Raises:
            SpoolError: it is not stored, and must not be acknowledged.
        """
        key = _key_of(message)
        with self._ledger.lock:
            if self._ledger.knows(key):
                self.duplicates += 1
                return False
            self._ledger.add(key, message, _LANDED)
            self._ready.append(key)
            return True

    def take(self) -> InboxEntry | None:
        """The next message to be handed out, for the caller alone, in the order of arrival; None: there is none.

        Raises:
            SpoolError: it cannot be read.
        """
        with self._ledger.lock:
            if not self._ready:
                return None
            entry = InboxEntry(self._ready[0], self._ledger.message(self._ready[0]))
            self._ready.popleft()
            return entry

    def hand(self, key: str) -> None:
        """Note that a message is about to be handed out; from now on it is not handed out again by itself.

        Raises:
            SpoolError: that is not noted; it must not be handed out.
        """
        with self._ledger.lock:
            if not self._is_handed(key):
                self._ledger.mark(key, _HANDED, sync=True)
                self.handed += 1

    def done(self, key: str) -> None:
        """Note that a message is done with; the application's word on one that is in doubt, too.

        Should the machine crash right now the message may be in doubt afterwards.

        Raises:
            SpoolError: that cannot be noted.
        """
        with self._ledger.lock:
            self._ledger.mark(key, SETTLED, sync=False)
            self._doubtful.pop(key, None)

    def release(self, key: str) -> None:
        """Have a message handed out once more: one that was taken and surely not done with, or one in doubt.

        It takes its old place among those that wait.

        Raises:
            SpoolError: that cannot be noted.
        """
        with self._ledger.lock:
            one = self._ledger.get(key)
            if one is None or key in self._ready:
                return
            if one.state != _LANDED:
                self._ledger.mark(key, _LANDED, sync=True)
            self._doubtful.pop(key, None)
            self._ready.insert(sum(self._number(other) < one.number for other in self._ready), key)

    def doubt(self, key: str) -> None:
        """Note that it is not known what became of a message that was handed out."""
        with self._ledger.lock:
            if not self._is_handed(key) or key in self._doubtful:
                return
            self._doubtful[key] = None
        self._tell(key)

    def close(self) -> None:
        """Let go of the folder; what is not done with stays in it."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _number(self, key: str) -> int:
        one = self._ledger.get(key)
        return one.number if one is not None else 0

    def _is_handed(self, key: str) -> bool:
        one = self._ledger.get(key)
        return one is not None and one.state == _HANDED

    def _tell(self, key: str) -> None:
        log.warning("a message that was handed out and not done with is in doubt: %s", key)
        if self._on_doubt is None:
            return
        try:
            self._on_doubt(InboxEntry(key, self._ledger.message(key)))
        except Exception:
            log.exception("on_doubt failed")


def _key_of(message: JmsMessage) -> str:
    """What a message is known by; of one that nothing tells from others, an id that no other has."""
    own = message.properties.get(DUPLICATE_ID)
    if own:
        return str(own)
    if message.message_id is None:
        return f"none:{random_id()}"
    facts = f"{message.message_id} {message.timestamp_ms} ".encode() + message.body
    return f"jms:{blake2b(facts, digest_size=16).hexdigest()}"
