"""Reliable delivery over one logical connection: numbers, duplicates and retries (formal/04-10-09, 4.2).

State machines without threads or a clock: time is an argument, in seconds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from mtosi_jms.bridge.events import Any, Property, StructuredEvent, TCKind, TypeCode
from mtosi_jms.bridge.qos import ACKNOWLEDGMENT, effective

__all__ = [
    "SEQUENCE_NUMBER",
    "Duplicates",
    "Resender",
    "Retries",
    "SequenceNumbers",
    "is_acknowledged",
    "number_of",
    "numbered",
    "retries_of",
]

SEQUENCE_NUMBER: Final = "SequenceNumber"
"""The optional header field with the number of an event or batch on a logical connection."""

_LAST: Final = 2**31 - 1
_LONG: Final = TypeCode.of(TCKind.long)
_REMEMBERED: Final = 10_000
_RETRIES: Final = 3
_INTERVAL: Final = 5.0
_UNITS: Final = 10_000_000
"""TimeT counts units of 100 ns."""


def number_of(events: Sequence[StructuredEvent]) -> int | None:
    """The SequenceNumber of an event or batch, which its first event holds; None if there is none (000-A8)."""
    found = events[0].header(SEQUENCE_NUMBER) if events else None
    return found.value if found is not None and isinstance(found.value, int) else None


def numbered(events: Sequence[StructuredEvent], number: int) -> tuple[StructuredEvent, ...]:
    """The events, with the number in the first; it replaces an older number (000-A8)."""
    kept = (one for one in events[0].variable_header if one.name != SEQUENCE_NUMBER)
    header = (*kept, Property(SEQUENCE_NUMBER, Any(_LONG, number)))
    return (replace(events[0], variable_header=header), *events[1:])


def is_acknowledged(qos: Mapping[str, Any]) -> bool:
    """Whether a proxy's quality of service has acknowledgement."""
    found = qos.get("DeliveryReliability")
    return found is not None and found.value == ACKNOWLEDGMENT


@dataclass(slots=True)
class SequenceNumbers:
    """The numbers of events or batches of one logical connection: from 0 to 2^31-1, then again from 0 (000-A8). `next`:
    the number of the next event or batch. It restarts only with a new connection (000-A9)."""

    next: int = 0

    def take(self) -> int:
        number, self.next = self.next, 0 if self.next == _LAST else self.next + 1
        return number


@dataclass(slots=True)
class Duplicates:
    """Recognises duplicates by number, among the last 10,000 on one logical connection (000-A10)."""

    _seen: OrderedDict[int, None] = field(default_factory=OrderedDict)

    def is_new(self, number: int | None) -> bool:
        """Whether the number was not stored before; None is always new."""
        return number is None or number not in self._seen

    def store(self, number: int | None) -> None:
        if number is None:
            return
        self._seen[number] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)


@dataclass(slots=True)
class Retries:
    """Counts the retries of one thing on one logical connection (000-A13, 000-A14). `most`: the QoS Retries: most
    repetitions of a call (000-X11). `interval`: the QoS RetryInterval, seconds."""

    most: int
    interval: float
    made: int = 0

    def after_failure(self, now: float) -> float | None:
        """The time of the next retry; None if all failed: delivery stops, and administrators are notified (000-A15)."""
        if self.made >= self.most:
            return None
        self.made += 1
        return now + self.interval

    def reset(self) -> None:
        self.made = 0


def retries_of(levels: Mapping[str, Mapping[str, Any]]) -> Retries:
    """The retries that the quality of service sets; by default 3, at intervals of 5 seconds (000-A16). `levels`: the
    properties set at `proxy`, `admin` and `channel`."""
    most, interval = effective("Retries", levels), effective("RetryInterval", levels)
    return Retries(
        most.value if most is not None and isinstance(most.value, int) else _RETRIES,
        interval.value / _UNITS if interval is not None and isinstance(interval.value, int) else _INTERVAL,
    )


@dataclass(slots=True)
class _Sent:
    events: tuple[StructuredEvent, ...]
    again_at: float
    retries: Retries


@dataclass(slots=True)
class Resender:
    """Keeps what a supplier sent until it is acknowledged, and resends it after each RetryInterval.

    Each logical connection has its own (000-A9).

    Attributes:
        limits: the most retries, and their interval.
        is_stopped: whether all retries of an event or batch failed: nothing is sent until `restart` (000-A15).
        numbers: the numbers of events or batches.
    """

    limits: Retries
    is_stopped: bool = False
    numbers: SequenceNumbers = field(default_factory=SequenceNumbers)
    _open: dict[int, _Sent] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of kept events or batches."""
        return len(self._open)

    def send(self, events: Sequence[StructuredEvent], now: float) -> tuple[StructuredEvent, ...]:
        """Numbers events that are sent for the first time, and keeps them (000-A12)."""
        number = self.numbers.take()
        made = numbered(events, number)
        self._open[number] = _Sent(made, now + self.limits.interval, replace(self.limits, made=0))
        return made

    def acknowledge(self, numbers: Sequence[int]) -> None:
        """Drops what is acknowledged. Repeated and unknown numbers are ignored (000-A10, 000-A11)."""
        for number in numbers:
            self._open.pop(number, None)

    @property
    def due_at(self) -> float | None:
        """The time of the next resend; None if nothing is kept."""
        return min((one.again_at for one in self._open.values()), default=None)

    def due(self, now: float) -> tuple[StructuredEvent, ...] | None:
        """The first events to resend now; None if there are none. It may stop delivery."""
        for one in self._open.values():
            if self.is_stopped or one.again_at > now:
                continue
            again = one.retries.after_failure(now)
            if again is None:
                self.is_stopped = True
                return None
            one.again_at = again
            return one.events
        return None

    def unacknowledged(self) -> list[tuple[StructuredEvent, ...]]:
        """The kept events or batches, in order."""
        return [one.events for one in self._open.values()]

    def forget(self) -> None:
        """Drops everything that is kept; the numbers go on."""
        self._open.clear()

    def restart(self, now: float) -> None:
        """Starts again after all retries failed, with the same numbers, so that nothing is taken twice."""
        self.is_stopped = False
        for one in self._open.values():
            one.retries.reset()
            one.again_at = now
