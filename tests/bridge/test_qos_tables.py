"""The tables of quality of service of formal/04-10-09: a test a row."""

from __future__ import annotations

import pytest

from mtosi_jms.bridge.events import Any, TCKind, TypeCode
from mtosi_jms.bridge.qos import (
    ACKNOWLEDGMENT,
    BEST_EFFORT,
    COMBINATIONS,
    DELIVERY_RELIABILITY,
    EVENT_RELIABILITY,
    LEVELS,
    NO_ACKNOWLEDGMENT,
    PERSISTENT,
    PRIORITY_TO_EVENT,
    QOS_TYPES,
    TRANSACTION_SCOPE,
    check_qos,
    effective,
    priority_to_jms,
    qos,
    receiver_of,
    with_transactions,
)
from mtosi_jms.errors import UnsupportedQoS
from mtosi_jms.jms import DeliveryMode

ANY_ORDER, FIFO, PRIORITY, DEADLINE = range(4)


@pytest.mark.parametrize(
    ("reliability", "mode"), [(BEST_EFFORT, DeliveryMode.NON_PERSISTENT), (PERSISTENT, DeliveryMode.PERSISTENT)]
)
@pytest.mark.obligation("000-Q1")
def test_table_2_2(reliability: int, mode: DeliveryMode) -> None:
    assert EVENT_RELIABILITY[reliability] is mode
    assert len(EVENT_RELIABILITY) == 2


@pytest.mark.parametrize(
    ("reliability", "model", "receiver"),
    [
        (BEST_EFFORT, "topic", "TopicSubscriber"),
        (PERSISTENT, "queue", "QueueReceiver"),
        (PERSISTENT, "topic", "durable TopicSubscriber"),
    ],
)
@pytest.mark.obligation("000-Q2")
def test_table_2_3(reliability: int, model: str, receiver: str) -> None:
    assert receiver_of(reliability, model) == receiver
    check_qos(qos(ConnectionReliability=reliability), model)


@pytest.mark.obligation("000-Q2", "000-C3")
def test_a_queue_of_best_effort() -> None:
    with pytest.raises(UnsupportedQoS) as caught:
        check_qos(qos(ConnectionReliability=BEST_EFFORT), "queue")
    assert caught.value.names == ("ConnectionReliability",)


@pytest.mark.parametrize(("reliability", "acknowledges"), [(NO_ACKNOWLEDGMENT, False), (ACKNOWLEDGMENT, True)])
@pytest.mark.obligation("000-Q3")
def test_table_2_4(reliability: int, acknowledges: bool) -> None:
    assert DELIVERY_RELIABILITY[reliability] is acknowledges


@pytest.mark.parametrize("priority", range(10))
@pytest.mark.obligation("000-Q4")
def test_table_2_5(priority: int) -> None:
    assert PRIORITY_TO_EVENT[priority] == priority


@pytest.mark.parametrize(
    ("priority", "jms"),
    [(-32768, 0), (-32767, 0), (-1, 0), (0, 0), *((one, one) for one in range(1, 9)), (9, 9), (10, 9), (32767, 9)],
)
@pytest.mark.obligation("000-Q5", "000-X13")
def test_table_2_6(priority: int, jms: int) -> None:
    assert priority_to_jms(priority) == jms


@pytest.mark.parametrize(
    ("order", "within", "supported"),
    [
        (ANY_ORDER, True, False), (FIFO, False, True), (FIFO, True, True), (PRIORITY, True, True),
        (PRIORITY, False, False), (DEADLINE, True, False), (7, True, False),
    ],
)  # fmt: skip
@pytest.mark.obligation("000-Q7", "000-C3")
def test_table_2_7(order: int, within: bool, supported: bool) -> None:
    asked = qos(OrderPolicy=order)
    if supported:
        check_qos(asked, "topic", fifo_within_priority=within)
        return
    with pytest.raises(UnsupportedQoS, match="OrderPolicy"):
        check_qos(asked, "topic", fifo_within_priority=within)


@pytest.mark.parametrize(
    ("event", "connection", "needed", "meaningless"),
    [
        (BEST_EFFORT, BEST_EFFORT, False, False), (BEST_EFFORT, PERSISTENT, False, False),
        (PERSISTENT, BEST_EFFORT, False, True), (PERSISTENT, PERSISTENT, True, False),
    ],
)  # fmt: skip
@pytest.mark.obligation("000-A6", "000-A7")
def test_table_4_1(event: int, connection: int, needed: bool, meaningless: bool) -> None:
    found = COMBINATIONS[event, connection]
    assert (found.needed, found.meaningless) == (needed, meaningless)
    asked = qos(EventReliability=event, ConnectionReliability=connection, DeliveryReliability=ACKNOWLEDGMENT)
    if needed:
        check_qos(asked, "topic")
        return
    with pytest.raises(UnsupportedQoS):
        check_qos(asked, "topic")


@pytest.mark.parametrize("name", ["DeliveryReliability", "Retries", "RetryInterval"])
@pytest.mark.obligation("000-A16")
def test_table_4_2(name: str) -> None:
    values = {level: {name: qos(**{name: number})[name]} for number, level in enumerate(("proxy", "admin", "channel"))}
    assert LEVELS[name] == ("proxy", "admin", "channel")
    for level in ("proxy", "admin", "channel"):
        found = effective(name, values)
        assert found == values.pop(level)[name]
    assert effective(name, values) is None
    with pytest.raises(UnsupportedQoS):
        effective(name, {"message": {name: qos(**{name: 1})[name]}})


def test_other_properties_have_no_such_levels() -> None:
    with pytest.raises(UnsupportedQoS):
        effective("Priority", {})


ENABLE, TIMEOUT, EVENTS, SEQUENCES = (
    *("EnableTransaction", "TransactionTimeout", "TransactionEvents", "TransactionEventSequences"),
)


@pytest.mark.parametrize(
    ("proxy", "properties"),
    [
        ("ProxyPushSupplier", {ENABLE, TIMEOUT, EVENTS}),
        ("ProxyPullConsumer", {ENABLE, TIMEOUT, EVENTS}),
        ("StructuredProxyPushSupplier", {ENABLE, TIMEOUT, EVENTS}),
        ("StructuredProxyPullConsumer", {ENABLE, TIMEOUT, EVENTS}),
        ("SequenceProxyPushSupplier", {ENABLE, TIMEOUT, SEQUENCES}),
        ("SequenceProxyPullConsumer", {ENABLE, TIMEOUT, SEQUENCES}),
        ("TypedProxyPushSupplier", {ENABLE, TIMEOUT, EVENTS}),
        ("TypedProxyPullConsumer", {ENABLE, TIMEOUT, EVENTS}),
        ("ProxyPushConsumer", {ENABLE}),
        ("ProxyPullSupplier", {ENABLE}),
        ("StructuredProxyPushConsumer", {ENABLE}),
        ("StructuredProxyPullSupplier", {ENABLE}),
        ("SequenceProxyPushConsumer", {ENABLE}),
        ("SequenceProxyPullSupplier", {ENABLE}),
        ("TypedProxyPushConsumer", {ENABLE}),
        ("TypedProxyPullSupplier", {ENABLE}),
    ],
)
@pytest.mark.obligation("000-T9")
def test_table_4_3(proxy: str, properties: set[str]) -> None:
    assert TRANSACTION_SCOPE[proxy] == properties
    assert len(TRANSACTION_SCOPE) == 16


@pytest.mark.parametrize(("enabled", "reliability"), [(True, PERSISTENT), (False, BEST_EFFORT)])
@pytest.mark.obligation("000-T8")
def test_transactions_change_both_reliabilities(enabled: bool, reliability: int) -> None:
    found = with_transactions(qos(EventReliability=1 - reliability, Retries=3), enabled=enabled)
    assert found["EnableTransaction"].value is enabled
    assert found["EventReliability"].value == found["ConnectionReliability"].value == reliability
    assert found["Retries"].value == 3


@pytest.mark.parametrize("name", QOS_TYPES)
@pytest.mark.obligation("000-C3")
def test_every_standard_property_is_understood(name: str) -> None:
    code = QOS_TYPES[name]
    value = {TCKind.boolean: True, TCKind.struct: (0, 0, 0, 0)}.get(code.kind, 1)
    found = qos(**{name: value})
    assert found[name] == Any(code, value)
    if name != "DeliveryReliability":
        check_qos(found, "topic")


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({"Colour": Any(TypeCode.of(TCKind.long), 1)}, "Colour"),
        ({"Priority": Any(TypeCode.of(TCKind.string), "high")}, "Priority"),
        ({"EventReliability": Any(TypeCode.of(TCKind.short), 2)}, "EventReliability"),
        ({"DeliveryReliability": Any(TypeCode.of(TCKind.short), 2)}, "DeliveryReliability"),
    ],
)
@pytest.mark.obligation("000-C3")
def test_what_the_tables_do_not_have(asked: dict[str, Any], name: str) -> None:
    with pytest.raises(UnsupportedQoS) as caught:
        check_qos(asked, "topic")
    assert caught.value.names == (name,)


def test_an_unknown_name() -> None:
    with pytest.raises(UnsupportedQoS, match="Colour"):
        qos(Colour=1)
