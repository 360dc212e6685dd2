"""The ledger of a landing and its report. They are made again when the folder has changed.

The ledger has the same rules as that of `mtosi-jms ingest`.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from mtosi_jms.errors import MtosiError
from mtosi_jms.report import Fact, RejectLine, Report, SequenceLine, number, render

if TYPE_CHECKING:
    from mtosi_jms.tables.landing import Plan
    from mtosi_jms.tables.sequences import ReplySequence

T = TypeVar("T")

log = logging.getLogger(__name__)

_LISTED: Final = 20
"""Most missing numbers that a line shows."""
_REST: Final = 20
"""How long a result is kept, in multiples of the time that it took to make."""
_SHORTEST: Final = 2.0


class Ledger(NamedTuple):
    """The ledger of a landing.

    Attributes:
        sequences: its lines, incomplete ones first.
        rejects: files that hold no message.
        messages: number of messages of each kind.
        made_ms: when it was made, milliseconds since 1970 UTC.
        problem: why there is no ledger; empty if there is one.
    """

    sequences: list[SequenceLine]
    rejects: list[RejectLine]
    messages: dict[str, int]
    made_ms: int
    problem: str = ""

    @property
    def missing(self) -> int:
        """How many batches are missing."""
        return sum(line.missing_count for line in self.sequences)

    @property
    def complete(self) -> int:
        """How many sequences are complete."""
        return sum(line.complete for line in self.sequences)


class Cached(Generic[T]):
    """Caches a result made from a folder, until the folder has changed and some time has passed. `stamp`: a number that
    differs if the folder has changed; by default that of its last change. Attribute `folder`: the folder."""

    def __init__(self, folder: Path, make: Callable[[], T], *, stamp: Callable[[], int] | None = None) -> None:
        self.folder = folder
        self._make = make
        self._stamped = stamp or partial(_stamp, folder)
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._ready = threading.Event()
        self._made: T | None = None
        self._stamp = -1
        self._until = 0.0

    def latest(self, patience: float = 0.0) -> T | None:
        """What was made last; None if nothing was made yet. If it is old, a thread makes it again. `patience`: seconds
        to wait for the first result."""
        if self._is_old() and self._making.acquire(blocking=False):
            threading.Thread(target=self._renew, name="mtosi-console-folder", daemon=True).start()
        if self._made is None:
            self._ready.wait(patience)
        return self._made

    def _renew(self) -> None:
        try:
            self.get()
        except Exception:
            log.exception("%s cannot be read for the console", self.folder)
        finally:
            self._ready.set()
            self._making.release()

    def _is_old(self) -> bool:
        return self._made is None or (self._stamped() != self._stamp and time.monotonic() >= self._until)

    def forget(self) -> None:
        """Has it made again."""
        with self._lock:
            self._made = None

    def get(self) -> T:
        """What the folder gives now, or gave a little earlier."""
        with self._lock:
            if self._made is None or self._is_old():
                stamp = self._stamped()
                began = time.monotonic()
                self._made, self._stamp = self._make(), stamp
                took = time.monotonic() - began
                self._until = began + took + max(_SHORTEST, _REST * took)
            return self._made


def _stamp(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


class Landed:
    """A landing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ledger = Cached(folder, self._compute)

    def ledger(self) -> Ledger:
        """The ledger; it may be cached."""
        return self._ledger.get()

    def missing(self) -> int | None:
        """The batches missing by the ledger that was made last, at once; None if there is none."""
        found = self._ledger.latest()
        return None if found is None or found.problem else found.missing

    def report(self) -> str:
        """The ledger as a standalone page."""
        found = self.ledger()
        lines = found.sequences
        whole = found.complete == len(lines) and bool(lines)
        facts = [
            Fact("messages", number(sum(found.messages.values()))),
            Fact("sequences complete", f"{found.complete} of {len(lines)}", "good" if whole else "bad"),
            Fact("batches missing", number(found.missing)),
            Fact("duplicates", number(sum(line.duplicates for line in lines))),
            Fact("rejected", number(len(found.rejects)), "bad" if found.rejects else "plain"),
        ]
        return render(
            Report(
                title="MTOSI landing",
                subtitle=str(self.folder),
                made=dt.datetime.fromtimestamp(found.made_ms / 1000, dt.UTC),
                facts=facts,
                sequences=lines,
                rejects=found.rejects,
                notes=[found.problem] if found.problem else [],
            )
        )

    def _compute(self) -> Ledger:
        made = int(time.time() * 1000)
        try:
            from mtosi_jms.tables.landing import plan_landing  # needs an extra
            from mtosi_jms.tables.options import SourceOptions

            plan = plan_landing(SourceOptions(paths=(str(self.folder),)))
        except MtosiError as error:
            return Ledger([], [], {}, made, str(error))
        return _of_plan(plan, self.folder.absolute(), made)


def _of_plan(plan: Plan, folder: Path, made_ms: int) -> Ledger:
    lines = sorted(map(_line, plan.sequences), key=lambda line: (line.complete, not line.missing_count))
    rejects = [
        RejectLine(reject.file.removeprefix(f"{folder}/"), reject.line, reject.reason) for reject in plan.rejects
    ]
    return Ledger(lines, rejects, dict(plan.counts), made_ms)


def _line(found: ReplySequence) -> SequenceLine:
    first, last = (time and time.strftime("%Y-%m-%dT%H:%M:%SZ") for time in (found.first_time, found.last_time))
    return SequenceLine(
        name=found.correlation_id if found.correlation_id is not None else Path(found.source or "").name,
        batches=found.batches,
        expected=found.expected,
        missing=found.missing[:_LISTED],
        missing_count=found.missing_count,
        duplicates=found.duplicates,
        conflicts=len(found.conflicts),
        complete=found.complete,
        first_time=first or "",
        last_time=last or "",
    )
