"""Timing in turns: every side runs once in each round, so if the machine becomes slower, it affects all sides."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["ours", "peer", "limit"]


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this thread, and those that it starts, on one core, where the system can. Threads that hand the interpreter
    lock from core to core take up to twice the time, and where they run is chance."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


class SkippedError(Exception):
    """A benchmark that cannot run on this machine, and why."""


@dataclass(frozen=True)
class Side:
    """One way to do the work.

    Attributes:
        name: its name in the table.
        kind: `ours`, a `peer` that does the same work, or a `limit`, which does only work that nobody can avoid.
        run: does the work once and returns how many things were done; this number must be the same in all rounds.
        prepare: called before each run; its time is not measured.
    """

    name: str
    kind: Kind
    run: Callable[[], int]
    prepare: Callable[[], object] = lambda: None

    def done(self) -> int:
        """Do the work once without measuring it."""
        self.prepare()
        return self.run()


@dataclass
class Line:
    """The measurements of one side.

    Attributes:
        name, kind: of the side.
        seconds: of each round.
        amount: number of things done in one round.
        megabytes: millions of bytes of XML in one round; 0 if that has no meaning.
        ratio: how many times as fast as this line our line is; median of the rounds.
        peak_megabytes: peak memory of the process of the side in millions of bytes; 0 if not measured.
    """

    name: str
    kind: Kind
    amount: int
    megabytes: float = 0.0
    seconds: list[float] = field(default_factory=list)
    ratio: float = 1.0
    peak_megabytes: float = 0.0

    @property
    def median(self) -> float:
        """The median of the seconds of all rounds."""
        return statistics.median(self.seconds)

    @property
    def rate(self) -> float:
        """Things per second, by the median."""
        return self.amount / self.median

    def to_json(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "name": self.name,
            "kind": self.kind,
            "per_second": round(self.rate, 1),
            "megabytes_per_second": round(self.megabytes / self.median, 2) if self.megabytes else None,
            "median_seconds": self.median,
            "best_seconds": min(self.seconds),
            "worst_seconds": max(self.seconds),
            "ours_over_this": round(self.ratio, 3),
            "peak_megabytes": round(self.peak_megabytes, 1) or None,
        }


@dataclass
class Comparison:
    """The sides of one benchmark.

    Attributes:
        name: short name, for `--only` and the JSON.
        title: what is measured.
        unit: what is counted.
        lines: one for each side, ours first.
        rounds: how often each side ran.
        notes: facts that a reader must know.
    """

    name: str
    title: str
    unit: str
    lines: list[Line]
    rounds: int
    notes: list[str] = field(default_factory=list)

    @property
    def ours(self) -> Line:
        """The line with which the others are compared: the first one of ours."""
        return next(line for line in self.lines if line.kind == "ours")

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return {
            "name": self.name,
            "title": self.title,
            "unit": self.unit,
            "rounds": self.rounds,
            "lines": [line.to_json() for line in self.lines],
            "notes": self.notes,
        }


def compare(
    name: str,
    title: str,
    unit: str,
    sides: Sequence[Side],
    *,
    rounds: int,
    megabytes: float = 0.0,
    notes: Sequence[str] = (),
    warm_up: bool = True,
) -> Comparison:
    """Run all sides in turns, once without measuring and then `rounds` times.

    Args:
        name, title, unit, notes: of the comparison.
        sides: the others are compared with the first one of kind `ours`.
        rounds: how often each side is measured.
        megabytes: millions of bytes of XML in one run.
        warm_up: whether to run each side once without measuring; needless if each run is a process of its own.

    Raises:
        RuntimeError: a side did not do the same in every round, or less than the others.
    """
    lines = [Line(side.name, side.kind, side.done() if warm_up else 0, megabytes) for side in sides]
    for number in range(rounds):
        for at in _turn(len(sides), number):
            sides[at].prepare()
            gc.collect()
            started = time.perf_counter()
            amount = sides[at].run()
            lines[at].seconds.append(time.perf_counter() - started)
            if amount != (lines[at].amount or amount):
                raise RuntimeError(f"{name}: {sides[at].name} did {amount} {unit} after {lines[at].amount}")
            lines[at].amount = amount
    found = Comparison(name, title, unit, lines, rounds, list(notes))
    ours = found.ours
    for line in lines:
        if line.amount != ours.amount:
            raise RuntimeError(f"{name}: {line.name} did {line.amount} {unit}, {ours.name} {ours.amount}")
        line.ratio = statistics.median(other / mine for other, mine in zip(line.seconds, ours.seconds, strict=True))
    return found


def _turn(count: int, number: int) -> list[int]:
    """Return the order of a round. Each round begins with another side, and every second round goes backwards."""
    order = [(at + number) % count for at in range(count)]
    return order if number % 2 == 0 else order[::-1]
