"""Quality of service of the Notification Service, by the tables of formal/04-10-09, and the reliable delivery that it
asks for (4.2): numbers, duplicates and retries of one logical connection.

These are state machines without threads or a clock: time is an argument, in seconds.
"""

from __future__ import annotations

from collections import ChainMap, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from mtosi_jms.bridge.events import Any, Property, StructuredEvent, TCKind, TypeCode, Value
from mtosi_jms.errors import UnsupportedQoS
from mtosi_jms.jms import DeliveryMode

__all__ = [
    "ACKNOWLEDGMENT",
    "BEST_EFFORT",
    "EVENT_RELIABILITY",
    "ORDER_POLICY",
    "PERSISTENT",
    "QOS_TYPES",
    "SEQUENCE_NUMBER",
    "UTC",
    "Duplicates",
    "Resender",
    "Retries",
    "check_qos",
    "check_types",
    "is_acknowledged",
    "number_after",
    "number_of",
    "numbered",
    "priority_to_jms",
    "qos",
    "retries_of",
]

BEST_EFFORT: Final = 0
PERSISTENT: Final = 1
"""Values of EventReliability and ConnectionReliability (`CosNotification`)."""
ACKNOWLEDGMENT: Final = 1
"""A value of DeliveryReliability (`CosNotifyCommAck`); 0: none."""

_SHORT: Final = TypeCode.of(TCKind.short)
_LONG: Final = TypeCode.of(TCKind.long)
_BOOLEAN: Final = TypeCode.of(TCKind.boolean)
_TIME: Final = TypeCode.of(TCKind.ulonglong)
UTC: Final = TypeCode.struct(
    "IDL:omg.org/TimeBase/UtcT:1.0",
    "UtcT",
    (
        ("time", TypeCode.alias("IDL:omg.org/TimeBase/TimeT:1.0", "TimeT", _TIME)),
        ("inacclo", TypeCode.of(TCKind.ulong)),
        ("inacchi", TypeCode.of(TCKind.ushort)),
        ("tdf", TypeCode.alias("IDL:omg.org/TimeBase/TdfT:1.0", "TdfT", _SHORT)),
    ),
)
"""`TimeBase::UtcT`: units of 100 ns since 15 October 1582, the inaccuracy, and the time zone."""

QOS_TYPES: Final[Mapping[str, TypeCode]] = {
    "EventReliability": _SHORT,
    "ConnectionReliability": _SHORT,
    "Priority": _SHORT,
    "StartTime": UTC,
    "StopTime": UTC,
    "Timeout": _TIME,
    "OrderPolicy": _SHORT,
    "DiscardPolicy": _SHORT,
    "MaximumBatchSize": _LONG,
    "PacingInterval": _TIME,
    "StartTimeSupported": _BOOLEAN,
    "StopTimeSupported": _BOOLEAN,
    "MaxEventsPerConsumer": _LONG,
    "DeliveryReliability": _SHORT,
    "Retries": _LONG,
    "RetryInterval": _TIME,
    "EnableTransaction": _BOOLEAN,
}
"""The standard properties, with those that formal/04-10-09 adds, and the types of their values (000-C3)."""

EVENT_RELIABILITY: Final[Mapping[int, DeliveryMode]] = {
    BEST_EFFORT: DeliveryMode.NON_PERSISTENT,
    PERSISTENT: DeliveryMode.PERSISTENT,
}
"""Table 2-2: EventReliability to JMSDeliveryMode, both ways (000-Q1)."""

ORDER_POLICY: Final[Mapping[int, bool]] = {0: False, 1: True, 2: True, 3: False}
"""Table 2-7: whether JMS supports AnyOrder, FifoOrder, PriorityOrder and DeadlineOrder (000-Q7)."""
_PRIORITY: Final = 2

SEQUENCE_NUMBER: Final = "SequenceNumber"
"""The optional header field with the number of an event or batch on a logical connection."""

_LAST: Final = 2**31 - 1
_REMEMBERED: Final = 10_000
_RETRIES: Final = 3
_INTERVAL: Final = 5.0
_UNITS: Final = 10_000_000
"""TimeT counts units of 100 ns."""


def qos(**values: Value) -> dict[str, Any]:
    """Returns properties with the types of the standard: `qos(EventReliability=PERSISTENT, Retries=3)`. Raises
    UnsupportedQoS: the standard has no property of this name."""
    if unknown := [name for name in values if name not in QOS_TYPES]:
        raise UnsupportedQoS("no such quality of service", unknown)
    return {name: Any(QOS_TYPES[name], value) for name, value in values.items()}


def priority_to_jms(priority: int) -> int:
    """Table 2-6: Priority to JMSPriority. It omits -32768, which becomes 0 like its neighbours (000-Q5, 000-X13)."""
    return min(max(priority, 0), 9)


def check_types(asked: Mapping[str, Any]) -> None:
    """Check properties by themselves. Raises UnsupportedQoS: the standard has none of a name, or not of this type."""
    if unknown := [name for name in asked if name not in QOS_TYPES]:
        raise UnsupportedQoS("no such quality of service", unknown)
    wrong = [name for name, value in asked.items() if value.type.plain.kind is not QOS_TYPES[name].plain.kind]
    if wrong:
        types = ", ".join(f"{name} is a {QOS_TYPES[name].plain.kind.name}" for name in wrong)
        raise UnsupportedQoS(f"of another type ({types})", wrong)


def check_qos(asked: Mapping[str, Any], model: str, *, fifo_within_priority: bool = False) -> None:
    """Checks the quality of service of a bridge's endpoint before anything is sent (000-C3).

    Args:
        asked: the properties that an endpoint requests.
        model: model of the JMS side, `queue` or `topic`.
        fifo_within_priority: whether the channel keeps the order of events of the same priority (000-Q7).

    Raises:
        UnsupportedQoS: the standard has no such name, a value has a wrong type, or the tables exclude the request.
    """
    check_types(asked)
    for name in ("EventReliability", "ConnectionReliability", "DeliveryReliability"):
        if name in asked and asked[name].value not in (0, 1):
            raise UnsupportedQoS(f"{asked[name].value!r} is none of its values", [name])
    if model == "queue" and _whole(asked, "ConnectionReliability") == BEST_EFFORT:  # table 2-3 (000-Q2)
        raise UnsupportedQoS("a receiver of a queue never has best effort", ["ConnectionReliability"])
    if (order := _whole(asked, "OrderPolicy")) is not None:
        if not ORDER_POLICY.get(order, False):
            raise UnsupportedQoS("JMS keeps the order of sending: FifoOrder or PriorityOrder", ["OrderPolicy"])
        if order == _PRIORITY and not fifo_within_priority:
            raise UnsupportedQoS(
                "the channel does not keep the order of events of one priority: use FifoOrder", ["OrderPolicy"]
            )
    if _whole(asked, "DeliveryReliability") == ACKNOWLEDGMENT:  # tables 2-4 and 4-1 (000-Q3, 000-A7)
        both = (_whole(asked, "EventReliability"), _whole(asked, "ConnectionReliability"))
        if both != (PERSISTENT, PERSISTENT):
            raise UnsupportedQoS(
                "acknowledgement needs both to be Persistent", ["EventReliability", "ConnectionReliability"]
            )


def _whole(properties: Mapping[str, Any], name: str) -> int | None:
    found = properties.get(name)
    return found.value if found is not None and isinstance(found.value, int) else None


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


def number_after(number: int) -> int:
    """The SequenceNumber of the next event or batch of a logical connection: from 0 to 2^31-1, then again from 0
    (000-A8)."""
    return 0 if number == _LAST else number + 1


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


def retries_of(*levels: Mapping[str, Any]) -> Retries:
    """The retries that the quality of service sets; by default 3, at intervals of 5 seconds. `levels`: the properties
    of the proxy, its admin and the channel: the first that sets one counts (table 4-2, 000-A16)."""
    found = ChainMap(*map(dict, levels))
    most, interval = _whole(found, "Retries"), _whole(found, "RetryInterval")
    return Retries(_RETRIES if most is None else most, _INTERVAL if interval is None else interval / _UNITS)


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
        number: the number of the next event or batch.
    """

    limits: Retries
    is_stopped: bool = False
    number: int = 0
    _open: dict[int, _Sent] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of kept events or batches."""
        return len(self._open)

    def send(self, events: Sequence[StructuredEvent], now: float) -> tuple[StructuredEvent, ...]:
        """Numbers events that are sent for the first time, and keeps them (000-A12)."""
        number, self.number = self.number, number_after(self.number)
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

    def forget(self) -> None:
        """Drops everything that is kept; the numbers go on."""
        self._open.clear()

    def restart(self, now: float) -> None:
        """Starts again after all retries failed, with the same numbers, so that nothing is taken twice."""
        self.is_stopped = False
        for one in self._open.values():
            one.retries.reset()
            one.again_at = now
