"""Timing by turns: every side runs once in each round, so that a machine that slows down slows all of them."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["ours", "peer", "limit"]


class SkippedError(Exception):
    """A benchmark that cannot run on this machine, and why."""


@dataclass(frozen=True)
class Side:
    """One way to do the work.

    Attributes:
        name: how the table calls it.
        kind: `ours`, a `peer` that does the same work, or a `limit`: less work, which nobody can beat.
        run: does the work once and returns how many things were done; the rounds check that it is always the same.
        prepare: called before each run, and not measured.
    """

    name: str
    kind: Kind
    run: Callable[[], int]
    prepare: Callable[[], object] = lambda: None

    def done(self) -> int:
        """Does the work once, unmeasured."""
        self.prepare()
        return self.run()


@dataclass
class Line:
    """What was measured of one side.

    Attributes:
        name, kind: of the side.
        seconds: of each round.
        amount: things done in one round.
        megabytes: bytes of XML that went through in one round, in millions; 0 where that says nothing.
        ratio: how many times as fast as this line ours is, median over the rounds.
        peak_megabytes: the most memory that a process of its own held, in millions of bytes; 0 if not measured.
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
        """Seconds of the round in the middle."""
        return statistics.median(self.seconds)

    @property
    def rate(self) -> float:
        """Things a second in that round."""
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
        lines: one a side, ours first.
        rounds: how often each side ran.
        notes: what a reader must know.
    """

    name: str
    title: str
    unit: str
    lines: list[Line]
    rounds: int
    notes: list[str] = field(default_factory=list)

    @property
    def ours(self) -> Line:
        """The line that the others are compared with: the first one of ours."""
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
    """Run all sides by turns, once unmeasured and then `rounds` times.

    Args:
        name, title, unit, notes: of the comparison.
        sides: the first one of kind `ours` is what the others are compared with.
        rounds: how often each side is measured.
        megabytes: bytes of XML that go through in one run, in millions.
        warm_up: whether to run each side unmeasured before; it says nothing where each run is a process of its own.

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
    """The order of a round: another side begins in each, and every second round goes backwards."""
    order = [(at + number) % count for at in range(count)]
    return order if number % 2 == 0 else order[::-1]
