"""Which answers of a supplier the batches of one reply came from (P32).

A supplier that dies before it has acknowledged a request gets it again, and answers again: from the beginning, and from
data that may have changed. Numbers alone do not tell the two answers apart, so a reply may say which *run* it is of.
What was put together of several is right only where one of them came whole: each of its batches was taken, or was seen
to be the same as the one that was.
"""

from __future__ import annotations

from typing import Final

_MOST: Final = 8
"""Runs that are kept apart besides the first; a supplier has one at a time."""


class Runs:
    """What came of each run, by batch number. The first one costs nothing as long as there is no other."""

    __slots__ = ("_first", "_lacks", "_others")

    def __init__(self) -> None:
        self._first: str | None = None
        self._lacks: set[int] = set()
        self._others: dict[str, set[int]] = {}

    def add(self, number: int, run: str) -> None:
        """A new batch was taken from a run."""
        if self._first is None:
            self._first = run
        if run != self._first:
            self._lacks.add(number)
            self._of(run).add(number)

    def confirm(self, number: int, run: str) -> bool:
        """The same batch came again; whether its run had not sent it before."""
        if run == self._first:
            lacked = number in self._lacks
            self._lacks.discard(number)
            return lacked
        seen = self._of(run)
        fresh = number not in seen
        seen.add(number)
        return fresh

    def is_whole(self, count: int) -> bool:
        """Whether one run has sent all of so many batches."""
        return not self._lacks or any(len(seen) == count for seen in self._others.values())

    def lacking(self, numbers: range) -> list[int]:
        """Which of these numbers the latest run has not sent."""
        latest = next(reversed(self._others.values()), None)
        return [] if latest is None else [number for number in numbers if number not in latest]

    def _of(self, run: str) -> set[int]:
        if run not in self._others and len(self._others) == _MOST:
            del self._others[next(iter(self._others))]
        return self._others.setdefault(run, set())
