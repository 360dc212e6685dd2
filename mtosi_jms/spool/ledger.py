"""What outbox and inbox have in common: messages by id, each in a state, kept in a journal until they are settled.

In memory there is the place of each open message and not the message. A journal's file goes when all messages in it are
settled; what is long open in an old file is written again at the end, so that one such message does not keep all
others on the disk. Ids are remembered beyond that, as many as are asked for.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from mtosi_jms.errors import JournalDamageError, SpoolError
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.spool.entry import digest
from mtosi_jms.spool.journal import NOTE, Journal, Place
from mtosi_jms.spool.records import Record
from mtosi_jms.spool.sidecar import Sidecar, decode_sidecar, encode_sidecar

log = logging.getLogger(__name__)

_MESSAGE: Final = 1
_STATE: Final = 2
_IDS: Final = NOTE
SETTLED: Final = "settled"
_MANY_SEGMENTS: Final = 4
"""Files from which on what is long open in the oldest is written again."""
_SPARSE: Final = 2
"""It is, where it takes up less than one such part of a file."""


@dataclass(slots=True)
class Open:
    """A message that is not settled.

    Attributes:
        number: its place in the order of arrival.
        state: the latest.
        since_ms: when it came, milliseconds since 1970 UTC.
        place: of its record.
    """

    number: int
    state: str
    since_ms: int
    place: Place


class Ledger:
    """See above; any number of threads may share one.

    Args:
        folder: of the journal.
        segment_bytes: size from which on a file of it is not added to.
        remember: ids of settled messages that `knows` still knows, the latest ones; 0: none.
        clock: seconds since 1970 UTC.

    Attributes:
        lock: held by each method; for what takes several.
        bytes_open: of the records of open messages.

    Raises:
        SpoolInUseError, JournalDamageError, SpoolError: see `Journal`.
    """

    def __init__(self, folder: Path, *, segment_bytes: int, remember: int, clock: Callable[[], float]) -> None:
        self.lock = threading.RLock()
        self.bytes_open = 0
        self._remember = remember
        self._clock = clock
        self._open: dict[str, Open] = {}
        self._seen: dict[str, int] = {}
        self._holds: dict[int, set[str]] = {}
        self._held_ids: dict[int, list[str]] = {}
        self._next = 1
        self._trouble = ""
        self._journal = Journal(folder, segment_bytes)
        try:
            for segment, record in self._journal.records():
                self._replay_checked(segment, record)
        except BaseException:
            self._journal.close()
            raise
        self._open = dict(sorted(self._open.items(), key=lambda item: item[1].number))
        self._seen = dict(sorted(self._seen.items(), key=lambda item: item[1]))
        self._forget_old()
        self._tidy()

    def __len__(self) -> int:
        return len(self._open)

    def now_ms(self) -> int:
        """By the clock, milliseconds since 1970 UTC."""
        return int(self._clock() * 1000)

    def knows(self, key: str) -> bool:
        """Whether a message of this id is here, or was, as far as is remembered."""
        with self.lock:
            return key in self._open or key in self._seen

    def get(self, key: str) -> Open | None:
        """What is known of an open message."""
        with self.lock:
            return self._open.get(key)

    def ids(self) -> list[str]:
        """Ids of the open messages, in the order of arrival."""
        with self.lock:
            return list(self._open)

    def first(self) -> str | None:
        """The id of the oldest open message."""
        with self.lock:
            return next(iter(self._open), None)

    def add(self, key: str, message: JmsMessage, state: str) -> None:
        """Stores a message; it is safe when this returns.

        Raises:
            SpoolError: it is not.
        """
        with self.lock:
            one = Open(self._next, state, self.now_ms(), Place(0, 0, 0))
            one.place = self._write(key, one, message, sync=True)
            self._next += 1
            self._enter(key, one)
            self._forget_old()
            self._tidy()

    def mark(self, key: str, state: str, *, sync: bool) -> None:
        """Notes a state; nothing where the message is settled or not known.

        Args:
            key: id of the message.
            state: SETTLED, or another.
            sync: whether that must outlive a crash of the machine.

        Raises:
            SpoolError: it cannot be written.
        """
        with self.lock:
            if key not in self._open:
                return
            self._journal.append(_STATE, _to_json([key, state]), sync=sync)
            self._change(key, state)
            self._tidy()

    def message(self, key: str) -> JmsMessage:
        """An open message, read from the disk.

        Raises:
            JournalDamageError: it is not there as it was written.
            SpoolError: it cannot be read, or is not open.
        """
        with self.lock:
            one = self._open.get(key)
            if one is None:
                raise SpoolError(str(self._journal.folder), f"no open message has the id {key}")
            return self._message(one)

    def close(self) -> None:
        """Lets go of the folder."""
        with self.lock:
            self._journal.close()

    # What follows holds the lock already.

    def _write(self, key: str, one: Open, message: JmsMessage, *, sync: bool) -> Place:
        facts = replace(message, body=b"")
        sidecar = encode_sidecar(Sidecar(facts, one.since_ms, digest(message.body), len(message.body)))
        meta = _to_json([key, one.number, one.state]) + b"\n" + sidecar
        return self._journal.append(_MESSAGE, meta, message.body, sync=sync)

    def _message(self, one: Open) -> JmsMessage:
        record = self._journal.read(one.place)
        path = self._journal.path(one.place.segment)
        return replace(decode_sidecar(record.meta.partition(b"\n")[2], path).facts, body=record.body)

    def _enter(self, key: str, one: Open) -> None:
        before = self._open.get(key)
        if before is not None:
            self._holds[before.place.segment].discard(key)
            self.bytes_open -= before.place.size
        self._open[key] = one
        self.bytes_open += one.place.size
        self._holds.setdefault(one.place.segment, set()).add(key)
        if self._remember:
            self._seen[key] = one.number
            self._held_ids.setdefault(one.place.segment, []).append(key)

    def _change(self, key: str, state: str) -> None:
        one = self._open[key]
        one.state = state
        if state == SETTLED:
            del self._open[key]
            self._holds[one.place.segment].discard(key)
            self.bytes_open -= one.place.size

    def _forget_old(self) -> None:
        for oldest in list(islice(self._seen, max(len(self._seen) - self._remember, 0))):
            del self._seen[oldest]

    def _tidy(self) -> None:
        """Drops what is settled. What has just been noted is safe, so that a failure here is not the caller's."""
        try:
            self._drop_settled()
        except SpoolError as error:
            if str(error) != self._trouble:
                log.warning("the journal grows, for a file of it cannot be dropped: %s", error)
            self._trouble = str(error)

    def _drop_settled(self) -> None:
        """Drops the oldest files, as far as nothing in them is open."""
        segments = self._journal.segments
        while len(segments) > 1:
            if self._holds.get(segments[0]) and not self._carry(segments[0]):
                return
            self._drop(segments[0])

    def _drop(self, segment: int) -> None:
        """Drops a file; what it knows of ids goes on at the end first."""
        ids = {key: self._seen[key] for key in self._held_ids.get(segment, ()) if key in self._seen}
        if ids:
            place = self._journal.append(_IDS, _to_json(list(ids.items())), sync=True)
            self._held_ids.setdefault(place.segment, []).extend(ids)
        else:  # what was carried over must be safe before it goes here
            self._journal.sync()
        self._journal.drop(segment)
        self._held_ids.pop(segment, None)
        self._holds.pop(segment, None)

    def _carry(self, segment: int) -> bool:
        """Writes what is open in a file again, at the end, if there are many files and little of it."""
        keys = self._holds[segment]
        size = sum(self._open[key].place.size for key in keys)
        if len(self._journal.segments) <= _MANY_SEGMENTS or size * _SPARSE > self._journal.segment_bytes:
            return False
        for key in sorted(keys, key=lambda one: self._open[one].number):
            one = self._open[key]
            place = self._write(key, one, self._message(one), sync=False)
            self._enter(key, replace(one, place=place))
        return True

    def _replay_checked(self, segment: int, record: Record) -> None:
        try:
            self._replay(segment, record)
        except (ValueError, TypeError, LookupError) as error:  # whole, and still not what is written here
            raise JournalDamageError(str(self._journal.path(segment)), record.offset) from error

    def _replay(self, segment: int, record: Record) -> None:
        """Takes in a record when the journal is opened."""
        first, _, sidecar = record.meta.partition(b"\n")
        said: Any = json.loads(first)
        if record.kind == _MESSAGE:
            key, number, state = said
            place = Place(segment, record.offset, record.size)
            since = decode_sidecar(sidecar, self._journal.path(segment)).received_ms
            self._enter(key, Open(number, state, since, place))
            self._next = max(self._next, number + 1)
        elif record.kind == _STATE:
            key, state = said
            if key in self._open:
                self._change(key, state)
        elif record.kind == _IDS and self._remember:
            for key, number in said:
                self._seen[key] = max(number, self._seen.get(key, 0))
                self._next = max(self._next, number + 1)
            self._held_ids.setdefault(segment, []).extend(key for key, _ in said)


def _to_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")
