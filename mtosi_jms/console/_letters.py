"""Dead letters: those of a queue, read without consuming them, and those of an outbox or inbox."""

from __future__ import annotations

import datetime as dt
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.console._facts import read_message
from mtosi_jms.jms import JmsMessage
from mtosi_jms.jms.display import shown_properties
from mtosi_jms.runtime.queues import origin_of, reason_of
from mtosi_jms.spool import StoredMessage
from mtosi_jms.transport import Connection

UNTOLD: Final = "not told"
"""Reason, kind or operation of a letter that does not tell it."""
_LONGEST: Final = 300
_CHUNK: Final = 100
"""Times of sending in one selector."""
_FEW: Final = 5 * _CHUNK
"""Letters up to which selectors name each time of sending."""


class Letter(NamedTuple):
    """A dead letter, without its message.

    Attributes:
        key: its JMSMessageID; in an outbox or inbox, its key.
        state: `dead`, or `doubt` in an outbox or inbox.
        at_ms: when it was sent, or put into the outbox or inbox; milliseconds since 1970 UTC.
        kind: `request`, `response`, `fault`, `notification` or `other`.
        origin: where it was received, or where the outbox sends it, as `queue:NAME`; empty if it does not tell.
        reason: why it is dead, or `not told`.
        size: octets of its body; 0 where only the headers can be read.
    """

    key: str
    state: str
    at_ms: int | None
    kind: str
    operation: str
    correlation_id: str
    origin: str
    reason: str
    size: int


class Wanted(NamedTuple):
    """A filter of dead letters; what is empty or None admits all. `text`: a part of the key, correlation id, operation,
    origin or reason, in any case of letters. `since_ms`, `until_ms`: milliseconds since 1970 UTC, inclusive."""

    reason: str = ""
    kind: str = ""
    operation: str = ""
    since_ms: int | None = None
    until_ms: int | None = None
    text: str = ""

    def admits(self, one: Letter) -> bool:
        if self.reason not in ("", one.reason) or self.kind not in ("", one.kind):
            return False
        if self.operation not in ("", one.operation):
            return False
        if self.since_ms is not None and (one.at_ms is None or one.at_ms < self.since_ms):
            return False
        if self.until_ms is not None and (one.at_ms is None or one.at_ms > self.until_ms):
            return False
        text = self.text.lower()
        fields = (one.key, one.correlation_id, one.operation, one.origin, one.reason)
        return not text or any(text in each.lower() for each in fields)


class Found(NamedTuple):
    """The letters at one look.

    Attributes:
        letters: in the order of delivery, the first `BOUNDS.console_letters`.
        total: how many wait there.
        at_ms: when the look ended, milliseconds since 1970 UTC; None while the first one is under way.
        problem: why there are none to show; empty if there are.
    """

    letters: Sequence[Letter]
    total: int
    at_ms: int | None
    problem: str = ""


class LetterBox:
    """The letters of a queue at the last look. Any thread may use it."""

    def __init__(self, most: int = BOUNDS.console_letters) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._found = Found((), 0, None)

    def read(self, messages: Iterable[JmsMessage], is_stopped: Callable[[], bool] = lambda: False) -> int:
        """Reads all messages of a queue in place of those of the last look; returns how many there are. While the first
        look is under way, what it has read is there already."""
        letters: list[Letter] = []
        total = 0
        is_first = self.found().at_ms is None
        for message in messages:
            total += 1
            if len(letters) < self._most:
                letters.append(letter_of(message))
            if is_first and total % 1000 == 0:
                self._set(Found(tuple(letters), total, None))
            if is_stopped():
                return total
        self._set(Found(tuple(letters), total, int(time.time() * 1000)))
        return total

    def remove(self, keys: Iterable[str]) -> None:
        """Takes out letters that are gone, before the next look."""
        gone = frozenset(keys)
        with self._lock:
            letters = tuple(one for one in self._found.letters if one.key not in gone)
            total = self._found.total - len(self._found.letters) + len(letters)
            self._found = self._found._replace(letters=letters, total=total)

    def found(self) -> Found:
        with self._lock:
            return self._found

    def _set(self, found: Found) -> None:
        with self._lock:
            self._found = found


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """A queue of dead letters.

    Attributes:
        name: its name with its kind, as `queue:DLQ`.
        box: its letters.
        connect: opens a connection, to read one message and for actions; None: neither is possible.
        changed: called after an action.
    """

    name: str
    box: LetterBox = field(default_factory=LetterBox)
    connect: Callable[[], Connection] | None = None
    changed: Callable[[], None] = lambda: None


def letter_of(message: JmsMessage) -> Letter:
    """A message of a queue of dead letters as it is listed."""
    facts = read_message(message).facts
    origin, reason = (_shown(name, found(message)) for name, found in (("origin", origin_of), ("reason", reason_of)))
    return Letter(
        str(message.message_id),
        "dead",
        message.timestamp_ms,
        facts.kind,
        sys.intern(facts.operation),
        facts.correlation_id or message.correlation_id or "",
        sys.intern(origin),
        sys.intern(reason or UNTOLD),
        len(message.body),
    )


def _shown(name: str, text: str | None) -> str:
    return "" if text is None else str(shown_properties({name: text})[name])[:_LONGEST]


def stored_letter(one: StoredMessage, message: JmsMessage | None) -> Letter:
    """A message of an outbox or inbox as it is listed; None: it cannot be read."""
    facts = None if message is None else read_message(message).facts
    return Letter(
        one.key,
        one.state,
        one.since_ms,
        "other" if facts is None else facts.kind,
        "" if facts is None else facts.operation,
        "" if facts is None else facts.correlation_id,
        one.destination,
        one.reason or ("in doubt" if one.state == "doubt" else UNTOLD),
        one.size,
    )


def reasons_of(letters: Iterable[Letter]) -> list[tuple[str, int]]:
    """How many letters have each reason, the most frequent first."""
    return Counter(one.reason for one in letters).most_common()


def selectors(letters: Sequence[Letter], wanted: Wanted) -> Iterator[tuple[str | None, Sequence[Letter]]]:
    """Selectors by which a consumer receives these letters, and hardly others; each with its letters. What else they
    match must stay. They use only what each broker can compare: the times of sending, and properties of the binding."""
    timed = [one for one in letters if one.at_ms is not None]
    if len(letters) <= _FEW and len(timed) == len(letters):
        rest = iter(sorted(letters, key=lambda one: one.at_ms or 0))
        while some := list(islice(rest, _CHUNK)):
            times = dict.fromkeys(one.at_ms for one in some)
            yield " OR ".join(f"JMSTimestamp = {at_ms}" for at_ms in times), some
        return
    parts = []
    if len(timed) == len(letters):
        at = [one.at_ms or 0 for one in timed]
        parts.append(f"JMSTimestamp BETWEEN {min(at)} AND {max(at)}")
    if wanted.reason not in ("", UNTOLD) and len(wanted.reason) < _LONGEST:
        quoted = wanted.reason.replace("'", "''")
        parts.append("(" + " OR ".join(f"{name} = '{quoted}'" for name in _REASONS) + ")")
    yield " AND ".join(parts) or None, letters


_REASONS: Final = ("MTOSIX_parkedReason", "JMS_MTOSIX_deadLetterReason", "dlqDeliveryFailureCause")


def moment_of(text: str, *, is_end: bool = False) -> int | None:
    """A moment that a visitor gave, in UTC, as milliseconds since 1970; None for an empty text. `is_end`: a minute
    without seconds means its end. Raises ValueError: it is none."""
    if not text:
        return None
    found = dt.datetime.fromisoformat(text)
    found = found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)
    ms = int(found.timestamp() * 1000)
    return ms + 59_999 if is_end and found.second == 0 else ms


def by_origin(letters: Iterable[Letter]) -> Mapping[str, int]:
    """How many letters came from each destination; an empty one stands for those that do not tell."""
    return dict(Counter(one.origin for one in letters).most_common())
