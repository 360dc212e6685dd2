"""Reliable delivery over one logical connection: numbers, duplicates and retries (formal/04-10-09, 4.2).

State machines without thread or clock: time is an argument, in seconds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from mtosi_jms.bridge.events import Any, Property, StructuredEvent, TCKind, TypeCode

__all__ = ["SEQUENCE_NUMBER", "Duplicates", "Resender", "Retries", "SequenceNumbers", "number_of"]

SEQUENCE_NUMBER: Final = "SequenceNumber"
"""The optional header field that numbers what goes over a logical connection."""

_LAST: Final = 2**31 - 1
_LONG: Final = TypeCode.of(TCKind.long)
_REMEMBERED: Final = 10_000


def number_of(events: Sequence[StructuredEvent]) -> int | None:
    """The SequenceNumber of an event or a batch: that of the first; None where it has none (000-A8)."""
    found = events[0].header(SEQUENCE_NUMBER) if events else None
    return found.value if found is not None and isinstance(found.value, int) else None


@dataclass(slots=True)
class SequenceNumbers:
    """Numbers the events, or batches, of one logical connection: 0 first, 0 again after 2^31-1 (000-A8).

    Attributes:
        next: the number of the next event or batch. It begins anew with a new connection alone (000-A9).
    """

    next: int = 0

    def stamp(self, events: Sequence[StructuredEvent]) -> tuple[StructuredEvent, ...]:
        """The events with a number on the first; an older one goes."""
        number, self.next = self.next, 0 if self.next == _LAST else self.next + 1
        kept = (one for one in events[0].variable_header if one.name != SEQUENCE_NUMBER)
        header = (*kept, Property(SEQUENCE_NUMBER, Any(_LONG, number)))
        return (replace(events[0], variable_header=header), *events[1:])


@dataclass(slots=True)
class Duplicates:
    """Tells what came before by its number, of the last 10,000 on one logical connection (000-A10)."""

    _seen: OrderedDict[int, None] = field(default_factory=OrderedDict)

    def is_new(self, number: int | None) -> bool:
        """Whether nothing with the number was stored; what has no number is always new."""
        return number is None or number not in self._seen

    def store(self, number: int | None) -> None:
        """Notes that what has the number was stored."""
        if number is None:
            return
        self._seen[number] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)

    def clear(self) -> None:
        """Forgets all: the connection was ended, and numbers begin anew."""
        self._seen.clear()


@dataclass(slots=True)
class Retries:
    """Counts the retries of one thing on one logical connection (000-A13, 000-A14).

    Attributes:
        most: the QoS Retries: how often a call is made again at most (000-X11).
        interval: the QoS RetryInterval, seconds.
        made: how many were made since the last success.
    """

    most: int
    interval: float
    made: int = 0

    def after_failure(self, now: float) -> float | None:
        """When to try again; None: all retries failed, delivery stops and administrators are told (000-A15)."""
        if self.made >= self.most:
            return None
        self.made += 1
        return now + self.interval

    def reset(self) -> None:
        """After a success, or an explicit disconnection."""
        self.made = 0


@dataclass(slots=True)
class Resender:
    """What a supplier has sent and not heard of: sent again after each RetryInterval, and kept until acknowledged.

    Attributes:
        most: the QoS Retries.
        interval: the QoS RetryInterval, seconds.
        is_stopped: whether all retries of something failed: nothing is sent until `restart` (000-A15).
    """

    most: int
    interval: float
    is_stopped: bool = False
    numbers: SequenceNumbers = field(default_factory=SequenceNumbers)
    _open: dict[int, tuple[tuple[StructuredEvent, ...], float, Retries]] = field(default_factory=dict)

    def send(self, events: Sequence[StructuredEvent], now: float) -> tuple[StructuredEvent, ...]:
        """Numbers what is sent first, and keeps it (000-A12)."""
        stamped = self.numbers.stamp(events)
        number = number_of(stamped) or 0
        self._open[number] = stamped, now + self.interval, Retries(self.most, self.interval)
        return stamped

    def acknowledge(self, numbers: Sequence[int]) -> None:
        """Forgets what is acknowledged; a number that came before, or is unknown, does no harm (000-A10, 000-A11)."""
        for number in numbers:
            self._open.pop(number, None)

    def due(self, now: float) -> list[tuple[StructuredEvent, ...]]:
        """What is to be sent again now, in order; it may stop delivery."""
        found = []
        for number, (events, at, retries) in list(self._open.items()):
            if self.is_stopped or at > now:
                continue
            again = retries.after_failure(now)
            if again is None:
                self.is_stopped = True
                return []
            self._open[number] = events, again, retries
            found.append(events)
        return found

    def unacknowledged(self) -> list[tuple[StructuredEvent, ...]]:
        """What is kept, in order."""
        return [events for events, _, _ in self._open.values()]

    def restart(self, now: float) -> None:
        """Begins again after all retries failed: the same numbers, so that nothing counts twice."""
        self.is_stopped = False
        for number, (events, _, retries) in list(self._open.items()):
            retries.reset()
            self._open[number] = events, now, retries

    def disconnected(self) -> None:
        """Forgets all: an explicit disconnection ends the numbers."""
        self._open.clear()
        self.numbers.next = 0
        self.is_stopped = False
