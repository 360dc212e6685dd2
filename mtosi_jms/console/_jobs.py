"""What visitors have the console do with dead letters: first a plan, which they confirm, then a job."""

from __future__ import annotations

import logging
import secrets
import sys
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

from mtosi_jms.console._letters import DeadLetters, Letter, Wanted, selectors
from mtosi_jms.errors import ConfigError, JournalDamageError, MtosiError
from mtosi_jms.jms import Destination, JmsMessage, Queue
from mtosi_jms.masking import without_login
from mtosi_jms.runtime.queues import MOVED, QueueWork, as_moved, default_record
from mtosi_jms.spool import DurableLanding, SpoolFolder, entries

log = logging.getLogger(__name__)

Act = Literal["redrive", "move", "withdraw"]

_WAIT: Final = 2.0
"""Seconds in which a dead letter must be handed out that is still there."""
_PLANS: Final = 20
_JOBS: Final = 50
_BATCH: Final = 100
_WORDS: Final = {"redrive": "redriven", "move": "moved", "withdraw": "withdrawn", "undo": "put back"}


class Plan(NamedTuple):
    """What is to be done once it is confirmed. `place`: a queue, or the folder of an outbox or inbox."""

    action: Act
    place: DeadLetters | Path
    letters: Sequence[Letter]
    wanted: Wanted


@dataclass(slots=True, eq=False)
class Job:
    """What was done, or is being done.

    Attributes:
        user: who confirmed it.
        at_ms: when, milliseconds since 1970 UTC.
        place: the queue or folder that has the letters.
        total: number of letters that were confirmed.
        done: number that are done.
        stayed: number that stayed because they do not tell where they came from, or are in use.
        held: number that are there, and that the provider did not hand out.
        targets: how many went to each destination.
        record: the folder that records the messages; None: there is none.
        state: `runs`, `done`, `stopped` or `failed`; `undone`: it was taken back.
        problem: why it failed, or why some stayed.
    """

    number: int
    action: Act | Literal["undo"]
    user: str
    at_ms: int
    place: str
    total: int
    done: int = 0
    stayed: int = 0
    held: int = 0
    targets: Counter[str] = field(default_factory=Counter)
    record: Path | None = None
    state: Literal["runs", "done", "stopped", "failed", "undone"] = "runs"
    problem: str = ""
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    source: DeadLetters | None = None
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
        return self.source is not None and self.done > 0 and self.action != "undo" and self.state in ("done", "stopped")


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
        place = plan.place.name if isinstance(plan.place, DeadLetters) else str(plan.place)
        source = plan.place if isinstance(plan.place, DeadLetters) else None
        job = self._new(plan.action, user, place, len(plan.letters), source)
        self._start(job, lambda: _do(job, plan, to))
        return job

    def undo(self, number: int, user: str) -> Job:
        """Takes a job back: moves back what it moved and is still there, or puts back what it withdrew. Raises
        ConfigError: that is not possible."""
        with self._lock:
            before = next((one for one in self._jobs if one.number == number), None)
            if before is None or not before.can_undo:
                raise ConfigError("this cannot be taken back, or was taken back already")
            before.state = "undone"
        job = self._new("undo", user, before.place, before.done, before.source)
        self._start(job, lambda: _undo(job, before))
        return job

    def stop(self, number: int) -> None:
        """Stops a job between two messages; what is done stays done."""
        with self._lock:
            for one in self._jobs:
                if one.number == number:
                    one.stop.set()

    def _new(self, action: Act | Literal["undo"], user: str, place: str, total: int, source: DeadLetters | None) -> Job:
        with self._lock:
            self._numbers += 1
            job = Job(self._numbers, action, user, int(time.time() * 1000), place, total, source=source)
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
                *(job.done, job.total, job.word, job.place, job.user, state),
                f": {job.problem}" if job.problem else "",
            )
            try:
                if job.source is not None:
                    job.source.changed()
            finally:
                job.state = state
                job.ended.set()

        threading.Thread(target=run, name="mtosi-console-job", daemon=True).start()


def _do(job: Job, plan: Plan, to: str) -> None:
    if isinstance(plan.place, Path):
        _settle(job, plan.place, plan)
        return
    if plan.place.connect is None:
        raise ConfigError(f"{plan.place.name}: the console has no connection for this")
    with plan.place.connect() as connection:
        queue = connection.names.lookup(plan.place.name)
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
            before, gone = job.stayed, []
            for done in work.run(lambda left=left: job.stop.is_set() or not left):  # type: ignore[misc]
                job.done += 1
                job.targets[str(done.target or "")] += 1
                gone.append(str(done.message.message_id))
            plan.place.box.remove(gone)
            job.stayed = before + work.stayed
            if left and not job.stop.is_set():
                with connection.session() as session:
                    job.held += sum(str(one.message_id) in left for one in session.headers(queue, selector))
    if job.stayed:
        job.problem = f"{job.stayed:,} stayed: they do not tell where they came from, so move them"


def _record(action: str, queue: Destination) -> Path:
    folder = default_record(action, queue)
    folder.mkdir(mode=0o700, parents=True)
    return folder


def _settle(job: Job, folder: Path, plan: Plan) -> None:
    with SpoolFolder(folder) as opened:
        landing = None
        if plan.action == "withdraw":
            job.record = _record("withdraw", Queue(folder.name))
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


def _undo(job: Job, before: Job) -> None:
    if before.source is None or before.source.connect is None:
        raise ConfigError(f"{before.place}: the console has no connection for this")
    with before.source.connect() as connection:
        queue = connection.names.lookup(before.source.name)
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
            work = QueueWork(
                connection,
                "move",
                connection.names.lookup(name),
                target=queue,
                selector=f"{MOVED} = '{before.mark}'",
                wait=_WAIT,
            )
            for _ in work.run(job.stop.is_set):
                job.done += 1
            job.held += work.left
            job.record = work.folder
        job.targets[str(queue)] = job.done
