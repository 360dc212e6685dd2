"""The book-keeping of one batched reply: which numbers came, may be handed out, or are missing (P32, C23). It decides
and raises nothing. What was handed out leaves eight bytes of digest, by which a late duplicate is told from a conflict.

A supplier that dies before it has acknowledged a request answers it again, from data that may have changed. So a reply
may say which *run* it is of. An answer put together of several runs is right only where one of them came whole: each of
its batches was taken, or was seen to be the same as the one that was."""

from __future__ import annotations

from enum import Enum
from hashlib import blake2b
from typing import Final, Generic

from mtosi_jms.patterns._model import P

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
        if self._first is None:
            self._first = run
        if run != self._first:
            self._lacks.add(number)
            self._of(run).add(number)

    def confirm(self, number: int, run: str) -> bool:
        """The same batch came again; whether its run had not sent it before."""
        if run == self._first:
            was_missing = number in self._lacks
            self._lacks.discard(number)
            return was_missing
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


_CELL: Final = 8
_UNKNOWN: Final = bytes(_CELL)


def fold(digest: bytes | str) -> bytes:
    """Any digest as eight bytes; an empty one, which means unknown, as eight zero bytes."""
    if not digest:
        return _UNKNOWN
    raw = digest.encode("utf-8", "surrogatepass") if isinstance(digest, str) else digest
    return blake2b(raw, digest_size=_CELL).digest()


class DigestRing:
    """The digests of the last `size` of consecutive numbers, in eight bytes each."""

    __slots__ = ("_cells", "_newest", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._cells = bytearray()
        self._newest = -1

    def put(self, number: int, digest: bytes) -> None:
        """`number` is higher than all before."""
        self._newest = number
        if not self._size:
            return
        at = number % self._size * _CELL
        if len(self._cells) < at + _CELL:
            self._cells.extend(bytes(at + _CELL - len(self._cells)))
        self._cells[at : at + _CELL] = digest

    def get(self, number: int) -> bytes:
        """The digest of `number`; the unknown one when it is too long ago."""
        if not self._newest - self._size < number <= self._newest:
            return _UNKNOWN
        at = number % self._size * _CELL
        return bytes(self._cells[at : at + _CELL])


class Known(Enum):
    """Whether a batch number was seen before."""

    NEW = "new"
    SAME = "same"
    OTHER = "other"
    UNPROVEN = "as far as can be told the same"


class BatchSequence(Generic[P]):
    """The batches of one reply by number. `base`: the peer's first number; None: 0 if a 0 comes before the 1, else 1
    (C23). `remember`: for how many of the numbers last released a digest is kept. `held`: batches whose turn has not
    come."""

    __slots__ = ("_digests", "base", "end", "held", "highest", "released", "runs")

    def __init__(self, base: int | None, remember: int) -> None:
        self.base = base
        self.end: int | None = None
        self.highest = -1
        self.held: dict[int, tuple[P, bytes]] = {}
        self.released = 0
        self.runs = Runs()
        self._digests = DigestRing(remember)

    @property
    def next(self) -> int:
        """The number whose turn it is; 1 as long as the base is not known."""
        return (1 if self.base is None else self.base) + self.released

    @property
    def started(self) -> bool:
        return self.highest >= 0

    @property
    def whole(self) -> bool:
        """Whether everything up to the end was handed out."""
        return self.end is not None and self.base is not None and self.next == self.end + 1

    def known(self, number: int, end: bool | None, digest: bytes | str) -> Known:
        """Whether `number` came before, and as the same batch: same body and end mark. An unknown digest proves
        nothing."""
        if number in self.held:
            before = self.held[number][1]
        elif self.released and self.next - self.released <= number < self.next:
            before = self._digests.get(number)
        else:
            return Known.NEW
        folded = fold(digest)
        unproven = _UNKNOWN in (before, folded)
        other_end = bool(end) != (number == self.end)
        if other_end or (before != folded and not unproven):
            return Known.OTHER
        return Known.UNPROVEN if unproven else Known.SAME

    def add(self, number: int, end: bool, payload: P, digest: bytes | str, run: str = "") -> None:
        """Take a new batch; the caller has made sure that it fits."""
        if self.base is None and number in (0, 1):
            self.base = number
        self.highest = max(self.highest, number)
        if end:
            self.end = number
        self.held[number] = (payload, fold(digest))
        self.runs.add(number, run)

    def release(self) -> list[tuple[int, P]]:
        """Everything whose turn has come, in order, forgotten here from now on."""
        turn: list[tuple[int, P]] = []
        while self.base is not None and self.next in self.held:
            number = self.next
            payload, digest = self.held.pop(number)
            self._digests.put(number, digest)
            self.released += 1
            turn.append((number, payload))
        return turn

    def missing(self) -> list[int]:
        """The numbers that are known to be missing: below the end, or as long as there is none, below the highest."""
        top = self.highest if self.end is None else self.end
        return [number for number in range(self.next, top + 1) if number not in self.held]

    def only_zero_missing(self) -> bool:
        """Whether the end and all before it are there but for batch 0, which the peer is known to send (C23)."""
        return self.base == 0 and not self.released and self.end is not None and len(self.held) == self.end

    def take_held(self) -> dict[int, P]:
        """What arrived and was never handed out, by number in order; forgotten here from now on."""
        held = {number: self.held[number][0] for number in sorted(self.held)}
        self.held.clear()
        self._digests = DigestRing(0)
        return held
