"""Quality of service: the properties of the Notification Service, and the tables of formal/04-10-09 as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mtosi_jms.bridge.events import Any, TCKind, TypeCode, Value
from mtosi_jms.errors import UnsupportedQoS
from mtosi_jms.jms import DeliveryMode

__all__ = [
    "ACKNOWLEDGMENT",
    "BEST_EFFORT",
    "COMBINATIONS",
    "CONNECTION_RELIABILITY",
    "DELIVERY_RELIABILITY",
    "EVENT_RELIABILITY",
    "LEVELS",
    "NO_ACKNOWLEDGMENT",
    "ORDER_POLICY",
    "PERSISTENT",
    "PRIORITY_TO_EVENT",
    "QOS_TYPES",
    "TRANSACTION_SCOPE",
    "UTC",
    "Combination",
    "check_qos",
    "check_types",
    "effective",
    "priority_to_jms",
    "qos",
    "receiver_of",
    "with_transactions",
]

BEST_EFFORT: Final = 0
PERSISTENT: Final = 1
"""Values of EventReliability and ConnectionReliability (`CosNotification`)."""
NO_ACKNOWLEDGMENT: Final = 0
ACKNOWLEDGMENT: Final = 1
"""Values of DeliveryReliability (`CosNotifyCommAck`)."""

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

CONNECTION_RELIABILITY: Final[Mapping[tuple[int, str], str]] = {
    (BEST_EFFORT, "topic"): "TopicSubscriber",
    (PERSISTENT, "queue"): "QueueReceiver",
    (PERSISTENT, "topic"): "durable TopicSubscriber",
}
"""Table 2-3: ConnectionReliability and model of JMS to the kind of receiver (000-Q2); other pairs are unsupported."""

DELIVERY_RELIABILITY: Final[Mapping[int, bool]] = {NO_ACKNOWLEDGMENT: False, ACKNOWLEDGMENT: True}
"""Table 2-4: DeliveryReliability to whether messages are acknowledged (000-Q3)."""

PRIORITY_TO_EVENT: Final[Mapping[int, int]] = {priority: priority for priority in range(10)}
"""Table 2-5: JMSPriority to Priority (000-Q4)."""

ORDER_POLICY: Final[Mapping[int, bool]] = {0: False, 1: True, 2: True, 3: False}
"""Table 2-7: whether JMS supports AnyOrder, FifoOrder, PriorityOrder and DeadlineOrder (000-Q7)."""
_PRIORITY: Final = 2


@dataclass(frozen=True, slots=True)
class Combination:
    """How acknowledgement combines with two other properties. `needed`: the combination must be supported, and loses
    nothing. `meaningless`: the combination need not be supported."""

    needed: bool = False
    meaningless: bool = False


COMBINATIONS: Final[Mapping[tuple[int, int], Combination]] = {
    (BEST_EFFORT, BEST_EFFORT): Combination(),
    (BEST_EFFORT, PERSISTENT): Combination(),
    (PERSISTENT, BEST_EFFORT): Combination(meaningless=True),
    (PERSISTENT, PERSISTENT): Combination(needed=True),
}
"""Table 4-1: EventReliability and ConnectionReliability, with acknowledgement (000-A7)."""

LEVELS: Final[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
    ("DeliveryReliability", "Retries", "RetryInterval"), ("proxy", "admin", "channel")
)
"""Table 4-2: the levels at which reliable delivery is set, in order of precedence; never in an event."""

_CLIENTS: Final = ("PushSupplier", "PullConsumer")
_SERVERS: Final = ("PushConsumer", "PullSupplier")
TRANSACTION_SCOPE: Final[Mapping[str, frozenset[str]]] = {
    f"{kind}Proxy{role}": frozenset(
        {"EnableTransaction", "TransactionTimeout"}
        | {"TransactionEventSequences" if kind == "Sequence" else "TransactionEvents"}
    )
    for kind in ("", "Structured", "Sequence", "Typed")
    for role in _CLIENTS
} | {
    f"{kind}Proxy{role}": frozenset({"EnableTransaction"})
    for kind in ("", "Structured", "Sequence", "Typed")
    for role in _SERVERS
}
"""Tables 2-10 and 4-3: the transaction properties that each kind of proxy takes (000-T9)."""


def qos(**values: Value) -> dict[str, Any]:
    """Returns properties with the types of the standard: `qos(EventReliability=PERSISTENT, Retries=3)`. Raises
    UnsupportedQoS: the standard has no property of this name."""
    if unknown := [name for name in values if name not in QOS_TYPES]:
        raise UnsupportedQoS("no such quality of service", unknown)
    return {name: Any(QOS_TYPES[name], value) for name, value in values.items()}


def priority_to_jms(priority: int) -> int:
    """Table 2-6: Priority to JMSPriority. It omits -32768, which becomes 0 like its neighbours (000-Q5, 000-X13)."""
    return min(max(priority, 0), 9)


def receiver_of(connection_reliability: int, model: str) -> str:
    """The kind of receiver from JMS, by table 2-3. `model`: `queue` or `topic`. Raises UnsupportedQoS: the table has no
    such pair: a receiver of a queue never has best effort."""
    found = CONNECTION_RELIABILITY.get((connection_reliability, model))
    if found is None:
        raise UnsupportedQoS(f"{connection_reliability!r} cannot be had from a {model}", ["ConnectionReliability"])
    return found


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
    for name, table in (("EventReliability", EVENT_RELIABILITY), ("DeliveryReliability", DELIVERY_RELIABILITY)):
        if name in asked and asked[name].value not in table:
            raise UnsupportedQoS(f"{asked[name].value!r} is none of its values", [name])
    if (connection := _number(asked, "ConnectionReliability")) is not None:
        receiver_of(connection, model)
    if (order := _number(asked, "OrderPolicy")) is not None:
        if not ORDER_POLICY.get(order, False):
            raise UnsupportedQoS("JMS keeps the order of sending: FifoOrder or PriorityOrder", ["OrderPolicy"])
        if order == _PRIORITY and not fifo_within_priority:
            raise UnsupportedQoS(
                "the channel does not keep the order of events of one priority: use FifoOrder", ["OrderPolicy"]
            )
    if DELIVERY_RELIABILITY[_number(asked, "DeliveryReliability") or NO_ACKNOWLEDGMENT]:
        both = (_number(asked, "EventReliability"), _number(asked, "ConnectionReliability"))
        if both != (PERSISTENT, PERSISTENT):
            raise UnsupportedQoS(
                "acknowledgement needs both to be Persistent", ["EventReliability", "ConnectionReliability"]
            )


def _number(properties: Mapping[str, Any], name: str) -> int | None:
    found = properties.get(name)
    return found.value if found is not None and isinstance(found.value, int) else None


def effective(name: str, levels: Mapping[str, Mapping[str, Any]]) -> Any | None:
    """The effective property of reliable delivery for a proxy: its own, else its admin's, else the channel's (000-A16).
    `name`: `DeliveryReliability`, `Retries` or `RetryInterval`. `levels`: the properties set at `proxy`, `admin` and
    `channel`. Raises UnsupportedQoS: it is another property, or cannot be set at a level."""
    order = LEVELS.get(name)
    if order is None:
        raise UnsupportedQoS("it is none of reliable delivery", [name])
    wrong = [level for level, found in levels.items() if level not in order and name in found]
    if wrong:
        raise UnsupportedQoS(f"it cannot be set per {wrong[0]}", [name])
    return next((levels[level][name] for level in order if name in levels.get(level, {})), None)


def with_transactions(asked: Mapping[str, Any], *, enabled: bool) -> dict[str, Any]:
    """Properties with transactions enabled or disabled; both reliabilities change with them (000-T8)."""
    reliability = PERSISTENT if enabled else BEST_EFFORT
    return {**asked, **qos(EnableTransaction=enabled, EventReliability=reliability, ConnectionReliability=reliability)}
