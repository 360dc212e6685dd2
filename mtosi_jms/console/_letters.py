"""Dead letters: those of a queue, read without consuming them, and those of an outbox or inbox."""

from __future__ import annotations

import datetime as dt
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.console._facts import narrowed, read_message
from mtosi_jms.errors import MtosiError, TransportError
from mtosi_jms.jms import JmsMessage
from mtosi_jms.jms.display import shown_properties
from mtosi_jms.masking import without_login
from mtosi_jms.runtime.queues import for_reason, origin_of, reason_of
from mtosi_jms.spool import SpoolFolder, StoredMessage
from mtosi_jms.transport import Connection

UNTOLD: Final = "not told"
"""Reason, kind or operation of a letter that does not tell it."""
_TOLD: Final = frozenset(("MTOSI_msgType", "MTOSI_activityName", "MTOSI_correlationId"))
_LONGEST: Final = 300
_CHUNK: Final = 100
"""Times of sending in one selector."""
_SOME: Final = 10_000
"""Letters after which those that are read so far are shown."""
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
        text: in small letters, what a filter of text looks into.
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
    text: str


class Wanted(NamedTuple):
    """A filter of dead letters; what is empty or None admits all. `text`: a part of the key, correlation id, operation,
    origin or reason, in any case of letters. `since_ms`, `until_ms`: milliseconds since 1970 UTC, inclusive."""

    reason: str = ""
    kind: str = ""
    operation: str = ""
    since_ms: int | None = None
    until_ms: int | None = None
    text: str = ""


class Found(NamedTuple):
    """The letters at one look.

    Attributes:
        letters: in the order of delivery, the first `BOUNDS.console_letters`.
        total: how many wait there.
        at_ms: when the look ended, milliseconds since 1970 UTC; None while the first one is under way.
        problem: why there are none to show, or not all; empty if there are.
        kinds, operations: how many letters have each, the most frequent first.
        by_reason: the letters of each reason, the most frequent first.
    """

    letters: Sequence[Letter]
    total: int
    at_ms: int | None
    problem: str = ""
    kinds: Mapping[str, int] = MappingProxyType({})
    operations: Mapping[str, int] = MappingProxyType({})
    by_reason: Mapping[str, Sequence[Letter]] = MappingProxyType({})

    @classmethod
    def of(cls, letters: Sequence[Letter], total: int, at_ms: int | None) -> Found:
        """Counts them."""
        by_reason = defaultdict(list)
        for one in letters:
            by_reason[one.reason].append(one)
        frequent = dict(sorted(by_reason.items(), key=lambda each: -len(each[1])))
        return cls(letters, total, at_ms, "", numbers(letters, "kind"), numbers(letters, "operation"), frequent)

    @property
    def reasons(self) -> Mapping[str, int]:
        """How many letters have each reason, the most frequent first."""
        return {reason: len(letters) for reason, letters in self.by_reason.items()}

    def wanted(self, wanted: Wanted) -> Sequence[Letter]:
        """Those that a filter admits."""
        reason, kind, operation, since_ms, until_ms, text = wanted
        text = text.lower()
        return narrowed(
            self.by_reason.get(reason, ()) if reason else self.letters,
            (kind, lambda one: one.kind == kind),
            (operation, lambda one: one.operation == operation),
            (since_ms is not None, lambda one: one.at_ms is not None and one.at_ms >= (since_ms or 0)),
            (until_ms is not None, lambda one: one.at_ms is not None and one.at_ms <= (until_ms or 0)),
            (text, lambda one: text in one.text),
        )


class LetterBox:
    """The letters of a queue at the last look. Any thread may use it."""

    def __init__(self, most: int = BOUNDS.console_letters) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._found = Found((), 0, None)

    def read(
        self,
        messages: Iterable[JmsMessage],
        is_stopped: Callable[[], bool] = lambda: False,
        *,
        count: Callable[[], int] | None = None,
    ) -> int:
        """Reads all messages of a queue in place of those of the last look; returns how many there are. While the first
        look is under way, what it has read is there already.

        Args:
            count: counts those of the queue where the provider does not list more. Raises TransportError: it is lost.

        Raises:
            TransportError: the provider is lost, or there is no `count`.
        """
        before = self.found()
        is_first = before.at_ms is None
        known = {one.key: one for one in before.letters}
        letters: list[Letter] = []
        total, problem = 0, ""
        try:
            for message in messages:
                total += 1
                if len(letters) < self._most:
                    letters.append(known.get(str(message.message_id)) or letter_of(message))
                if is_first and total % _SOME == 0:
                    self._set(Found.of(tuple(letters), total, None))
                if is_stopped():
                    return total
        except TransportError as error:
            if count is None:
                raise
            total, problem = count(), without_login(str(error))
        self._set(Found.of(tuple(letters), total, int(time.time() * 1000))._replace(problem=problem))
        return total

    def remove(self, keys: Iterable[str]) -> None:
        """Takes out letters that are gone, before the next look."""
        gone = frozenset(keys)
        with self._lock:
            letters = tuple(one for one in self._found.letters if one.key not in gone)
            total = self._found.total - len(self._found.letters) + len(letters)
            self._found = Found.of(letters, total, self._found.at_ms)._replace(problem=self._found.problem)

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
    origin, reason = (_shown(name, found(message)) for name, found in (("origin", origin_of), ("reason", reason_of)))
    # The properties tell the same as the header in the body, which takes time to read.
    brief = replace(message, body=b"") if message.properties.keys() >= _TOLD else message
    found = _letter(str(message.message_id), brief, origin, reason or UNTOLD)
    return found._replace(at_ms=message.timestamp_ms, size=len(message.body))


def _letter(key: str, message: JmsMessage | None, origin: str, reason: str) -> Letter:
    kind, operation, correlation_id = "other", "", ""
    if message is not None:
        facts = read_message(message).facts
        kind, operation = facts.kind, sys.intern(facts.operation)
        correlation_id = facts.correlation_id or message.correlation_id or ""
    text = f"{key}\n{correlation_id}\n{operation}\n{origin}\n{reason}".lower()
    return Letter(key, "dead", None, kind, operation, correlation_id, sys.intern(origin), sys.intern(reason), 0, text)


def _shown(name: str, text: str | None) -> str:
    return "" if text is None else str(shown_properties({name: text})[name])[:_LONGEST]


class Spooled(NamedTuple):
    """An outbox or inbox. `states`: number of messages by state; `found`: those that are dead or in doubt."""

    kind: str
    found: Found
    states: Mapping[str, int]

    @classmethod
    def of(cls, folder: Path) -> Spooled:
        """Looks at a folder; one that cannot be read has a problem."""
        try:
            with SpoolFolder(folder) as opened:
                everything = opened.messages()
                dead = [one for one in everything if one.state in ("dead", "doubt")]
                letters = [_stored(opened, one) for one in dead[: BOUNDS.console_letters]]
                found = Found.of(letters, len(dead), int(time.time() * 1000))
                return cls(opened.kind, found, Counter(one.state for one in everything))
        except MtosiError as error:
            return cls("spool", Found((), 0, None, str(error)), {})


def _stored(folder: SpoolFolder, one: StoredMessage) -> Letter:
    message = None
    with suppress(MtosiError):  # it is damaged, or was settled meanwhile
        message = folder.message(one.key)
    found = _letter(one.key, message, one.destination, one.reason or ("in doubt" if one.state == "doubt" else UNTOLD))
    return found._replace(state=one.state, at_ms=one.since_ms, size=one.size)


def numbers(letters: Iterable[Letter], name: str) -> Mapping[str, int]:
    """How many letters have each value of a field, the most frequent first."""
    return dict(Counter(map(attrgetter(name), letters)).most_common())


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
        parts.append(for_reason(wanted.reason))
    yield " AND ".join(parts) or None, letters


def moment_of(text: str, *, is_end: bool = False) -> int | None:
    """A moment that a visitor gave, in UTC, as milliseconds since 1970; None for an empty text. `is_end`: a minute
    without seconds means its end. Raises ValueError: it is none."""
    if not text:
        return None
    found = dt.datetime.fromisoformat(text)
    found = found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)
    ms = int(found.timestamp() * 1000)
    return ms + 59_999 if is_end and found.second == 0 else ms
