"""Dead letters: those of a queue, read without consuming them, and those of an outbox or inbox; and what visitors have
the console do with them: first a plan, which they confirm, then a job."""

from __future__ import annotations

import datetime as dt
import logging
import secrets
import sys
import threading
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.console._facts import narrowed, read_message
from mtosi_jms.console._folders import Cached
from mtosi_jms.errors import ConfigError, JournalDamageError, MtosiError, TransportError
from mtosi_jms.jms import Destination, JmsMessage, Queue
from mtosi_jms.jms.display import shown_properties
from mtosi_jms.masking import without_login
from mtosi_jms.runtime.queues import MOVED, QueueWork, as_moved, default_record, for_reason, origin_of, reason_of
from mtosi_jms.spool import DurableLanding, SpoolFolder, StoredMessage, entries
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


log = logging.getLogger(__name__)

Act = Literal["redrive", "move", "withdraw"]

_WAIT: Final = 2.0
"""Seconds in which a dead letter must be handed out that is still there."""
_PLANS: Final = 20
_JOBS: Final = 50
_BATCH: Final = 100
_WORDS: Final = {"redrive": "redriven", "move": "moved", "withdraw": "withdrawn", "undo": "put back"}


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
    """The letters at one look: the first `BOUNDS.console_letters` of `total`, in the order of delivery; by reason, the
    most frequent first, and how many have each kind and operation. `at_ms`: when the look ended, milliseconds since
    1970 UTC; None while the first one is under way. `problem`: why there are none to show, or not all."""

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

    kind: ClassVar = "queue"
    states: ClassVar[Mapping[str, int]] = MappingProxyType({})
    can_undo: ClassVar = True

    @property
    def found(self) -> Found:
        return self.box.found()

    @property
    def actions(self) -> Sequence[Act]:
        """What can be done with its letters."""
        return () if self.connect is None else ("redrive", "move", "withdraw")

    def opened(self) -> Connection:
        """A connection. Raises MtosiError: there is none."""
        if self.connect is None:
            raise ConfigError(f"{self.name}: the console has no connection for this")
        return self.connect()

    def read(self, letter: Letter) -> JmsMessage:
        """The message of a letter. Raises MtosiError: it cannot be read, or is not there any more."""
        with self.opened() as connection, connection.session() as session:
            ((selector, _),) = selectors([letter], Wanted())
            for message in session.headers(connection.names.lookup(self.name), selector):
                if str(message.message_id) == letter.key:
                    return message
        raise ConfigError(f"{letter.key}: it is not at {self.name} any more, or a consumer has it")

    def carry_out(self, job: Job, plan: Plan, to: str) -> None:
        """Redrive, move or withdraw the letters of a plan."""
        with self.opened() as connection:
            queue = connection.names.lookup(self.name)
            target = connection.names.lookup(to) if plan.action == "move" else None
            job.record = _record(plan.action, queue)
            for selector, letters in selectors(plan.letters, plan.wanted):
                left = {one.key for one in letters}

                def is_wanted(message: JmsMessage, left: set[str] = left) -> bool:
                    found = str(message.message_id) in left
                    left.discard(str(message.message_id))
                    return found

                work = QueueWork(
                    connection,
                    "purge" if plan.action == "withdraw" else plan.action,
                    queue,
                    target=target,
                    selector=selector,
                    limit=sys.maxsize,  # it ends with the last letter
                    record=job.record,
                    wait=_WAIT,
                    wanted=is_wanted,
                    mark=job.mark,
                )
                gone = []
                for done in work.run(lambda left=left: job.stop.is_set() or not left):  # type: ignore[misc]
                    job.done += 1
                    job.targets[str(done.target or "")] += 1
                    gone.append(str(done.message.message_id))
                self.box.remove(gone)
                job.stayed += work.stayed
                if left and not job.stop.is_set():
                    with connection.session() as session:
                        job.held += sum(str(one.message_id) in left for one in session.headers(queue, selector))
        if job.stayed:
            job.problem = f"{job.stayed:,} stayed: they do not tell where they came from, so move them"

    def undo(self, job: Job, before: Job) -> None:
        """Move back what a job moved and is still there, or put back what it withdrew."""
        with self.opened() as connection:
            queue = connection.names.lookup(self.name)
            if before.action == "withdraw" and before.record is not None:
                with connection.session(transacted=True) as session:
                    number = 0
                    for number, entry in enumerate(entries(before.record), 1):
                        session.send(queue, as_moved(entry.message()))
                        if number % _BATCH == 0:
                            session.commit()
                            job.done = number
                            if job.stop.is_set():
                                break
                    session.commit()
                job.done = job.targets[str(queue)] = number
                return
            for name in before.targets:
                source, mark = connection.names.lookup(name), f"{MOVED} = '{before.mark}'"
                work = QueueWork(connection, "move", source, target=queue, selector=mark, wait=_WAIT)
                for _ in work.run(job.stop.is_set):
                    job.done += 1
                job.held += work.left
                job.record = work.folder
            job.targets[str(queue)] = job.done


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


class SpooledLetters:
    """The letters of an outbox or inbox: those that are dead or in doubt. It has what `DeadLetters` has but undo."""

    can_undo: Final = False
    actions: Final[Sequence[Act]] = ("redrive", "withdraw")

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder = folder
        self._look = Cached(folder, self._looked, stamp=time.monotonic_ns)

    def _looked(self) -> tuple[str, Found, Mapping[str, int]]:
        try:
            with SpoolFolder(self._folder) as opened:
                everything = opened.messages()
                dead = [one for one in everything if one.state in ("dead", "doubt")]
                letters = [_stored(opened, one) for one in dead[: BOUNDS.console_letters]]
                found = Found.of(letters, len(dead), int(time.time() * 1000))
                return opened.kind, found, Counter(one.state for one in everything)
        except MtosiError as error:
            return "spool", Found((), 0, None, str(error)), {}

    @property
    def kind(self) -> str:
        return self._look.get()[0]

    @property
    def found(self) -> Found:
        return self._look.get()[1]

    @property
    def states(self) -> Mapping[str, int]:
        """How many messages have each state."""
        return self._look.get()[2]

    def changed(self) -> None:
        self._look.forget()

    def read(self, letter: Letter) -> JmsMessage:
        with SpoolFolder(self._folder) as opened:
            return opened.message(letter.key)

    def carry_out(self, job: Job, plan: Plan, to: str) -> None:
        with SpoolFolder(self._folder) as opened:
            landing = None
            if plan.action == "withdraw":
                job.record = _record("withdraw", Queue(self._folder.name))
                landing = DurableLanding(job.record)
            for one in plan.letters:
                if job.stop.is_set():
                    return
                try:
                    if landing is None:
                        opened.redrive(one.key)
                    else:
                        landing.land(opened.message(one.key))
                        opened.withdraw(one.key)
                except (ConfigError, JournalDamageError) as error:
                    job.stayed += 1
                    job.problem = str(error)
                else:
                    job.done += 1
                    job.targets[one.origin if plan.action == "redrive" else ""] += 1

    def undo(self, job: Job, before: Job) -> None:
        raise ConfigError(f"{self.name}: an outbox or inbox has no undo")


Letters: TypeAlias = DeadLetters | SpooledLetters
"""A place with dead letters."""


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


class Plan(NamedTuple):
    """What is to be done once it is confirmed."""

    action: Act
    place: Letters
    letters: Sequence[Letter]
    wanted: Wanted


@dataclass(slots=True, eq=False)
class Job:
    """What was done, or is being done, with so many letters in all. `user`: who confirmed it, at `at_ms`, milliseconds
    since 1970 UTC. `stayed`: how many do not tell where they came from, or are in use; `held`: how many are there, and
    the provider did not hand them out. `record`: the folder that records the messages. `undone`: it was taken back."""

    number: int
    action: Act | Literal["undo"]
    user: str
    at_ms: int
    place: Letters
    total: int
    done: int = 0
    stayed: int = 0
    held: int = 0
    targets: Counter[str] = field(default_factory=Counter)
    record: Path | None = None
    state: Literal["runs", "done", "stopped", "failed", "undone"] = "runs"
    problem: str = ""
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    stop: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def word(self) -> str:
        """What is done with the letters."""
        return _WORDS[self.action]

    @property
    def gone(self) -> int:
        """How many were not there any more, or a consumer had them."""
        return self.total - self.done - self.stayed - self.held if self.state == "done" else 0

    @property
    def can_undo(self) -> bool:
        return self.place.can_undo and self.done > 0 and self.action != "undo" and self.state in ("done", "stopped")


class Jobs:
    """Plans that wait for a confirmation, and jobs, one at a time. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._working = threading.Lock()
        self._plans: OrderedDict[str, Plan] = OrderedDict()
        self._jobs: deque[Job] = deque(maxlen=_JOBS)
        self._numbers = 0

    def latest(self) -> list[Job]:
        """The last jobs, latest first."""
        with self._lock:
            return list(reversed(self._jobs))

    def plan(self, plan: Plan) -> str:
        """Keeps a plan; returns the ticket that confirms it, once."""
        with self._lock:
            ticket = secrets.token_urlsafe(12)
            self._plans[ticket] = plan
            while len(self._plans) > _PLANS:
                self._plans.popitem(last=False)
            return ticket

    def planned(self, ticket: str) -> Plan | None:
        """The plan of a ticket; None if it was confirmed, or is old."""
        with self._lock:
            return self._plans.get(ticket)

    def confirm(self, ticket: str, user: str, to: str = "") -> Job:
        """Begins a job. `to`: the queue to move to. Raises ConfigError: the plan was confirmed already or is old."""
        with self._lock:
            plan = self._plans.pop(ticket, None)
        if plan is None:
            raise ConfigError("this was confirmed already, or is old: choose the letters again")
        job = self._new(plan.action, user, plan.place, len(plan.letters))
        self._start(job, lambda: plan.place.carry_out(job, plan, to))
        return job

    def undo(self, number: int, user: str) -> Job:
        """Takes a job back: moves back what it moved and is still there, or puts back what it withdrew. Raises
        ConfigError: that is not possible."""
        with self._lock:
            before = next((one for one in self._jobs if one.number == number), None)
            if before is None or not before.can_undo:
                raise ConfigError("this cannot be taken back, or was taken back already")
            before.state = "undone"
        job = self._new("undo", user, before.place, before.done)
        self._start(job, lambda: before.place.undo(job, before))
        return job

    def stop(self, number: int) -> None:
        """Stops a job between two messages; what is done stays done."""
        with self._lock:
            for one in self._jobs:
                if one.number == number:
                    one.stop.set()

    def _new(self, action: Act | Literal["undo"], user: str, place: Letters, total: int) -> Job:
        with self._lock:
            self._numbers += 1
            job = Job(self._numbers, action, user, int(time.time() * 1000), place, total)
            self._jobs.append(job)
            return job

    def _start(self, job: Job, work: Callable[[], None]) -> None:
        def run() -> None:
            state: Literal["done", "stopped", "failed"] = "failed"
            try:
                with self._working:
                    work()
                    state = "stopped" if job.stop.is_set() else "done"
            except MtosiError as error:
                job.problem = without_login(str(error))
            except Exception:
                log.exception("a job of the console has failed")
                job.problem = "the console has failed; see its log"
            log.info(
                "%d of %d %s from %s by %s: %s%s",
                *(job.done, job.total, job.word, job.place.name, job.user, state),
                f": {job.problem}" if job.problem else "",
            )
            try:
                job.place.changed()
            finally:
                job.state = state
                job.ended.set()

        threading.Thread(target=run, name="mtosi-console-job", daemon=True).start()


def _record(action: str, queue: Destination) -> Path:
    folder = default_record(action, queue)
    folder.mkdir(mode=0o700, parents=True)
    return folder
