"""Sets of batch numbers as ranges: a reply of a million batches takes no more memory than one of ten."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

RANGES: Final = 500
"""Most ranges in one set."""


class Numbers:
    """Whole numbers, kept as ranges; at most `RANGES` of them. `is_full`: whether a number was left out because it
    would have made one range too many."""

    __slots__ = ("_ranges", "count", "is_full")

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        self.count = 0
        self.is_full = False

    def add(self, number: int) -> bool:
        """Adds a number; returns False if it was there already, or there is no room."""
        at = bisect_right(self._ranges, (number, number))
        before = self._ranges[at - 1] if at else None
        after = self._ranges[at] if at < len(self._ranges) else None
        if (before is not None and before[1] >= number) or (after is not None and after[0] == number):
            return False
        joins_before = before is not None and before[1] == number - 1
        joins_after = after is not None and after[0] == number + 1
        if not joins_before and not joins_after and len(self._ranges) >= RANGES:
            self.is_full = True
            return False
        low = before[0] if joins_before and before is not None else number
        high = after[1] if joins_after and after is not None else number
        self._ranges[at - joins_before : at + joins_after] = [(low, high)]
        self.count += 1
        return True

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._ranges, (number, number))
        found = self._ranges[max(at - 1, 0) : at + 1]
        return any(low <= number <= high for low, high in found)

    def __bool__(self) -> bool:
        return bool(self._ranges)

    @property
    def low(self) -> int:
        """The least number; the set must not be empty."""
        return self._ranges[0][0]

    @property
    def high(self) -> int:
        """The greatest number; the set must not be empty."""
        return self._ranges[-1][1]

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """First and last number of each range, in order."""
        return tuple(self._ranges)

    def gaps(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The ranges of numbers from `first` to `last` that are not in the set."""
        at = first
        for low, high in self._ranges:
            if low > last:
                break
            if low > at:
                yield at, low - 1
            at = max(at, high + 1)
        if at <= last:
            yield at, last
