"""The tables of quality of service of formal/04-10-09: a test a row."""

from __future__ import annotations

import pytest

from mtosi_jms.bridge.events import Any, TCKind, TypeCode
from mtosi_jms.bridge.qos import (
    ACKNOWLEDGMENT,
    BEST_EFFORT,
    EVENT_RELIABILITY,
    PERSISTENT,
    QOS_TYPES,
    check_qos,
    priority_to_jms,
    qos,
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
    ("reliability", "model"), [(BEST_EFFORT, "topic"), (PERSISTENT, "queue"), (PERSISTENT, "topic")]
)
@pytest.mark.obligation("000-Q2")
def test_table_2_3(reliability: int, model: str) -> None:
    check_qos(qos(ConnectionReliability=reliability), model)


@pytest.mark.obligation("000-Q2", "000-C3")
def test_a_queue_of_best_effort() -> None:
    with pytest.raises(UnsupportedQoS) as caught:
        check_qos(qos(ConnectionReliability=BEST_EFFORT), "queue")
    assert caught.value.names == ("ConnectionReliability",)


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
    ("event", "connection"),
    [(BEST_EFFORT, BEST_EFFORT), (BEST_EFFORT, PERSISTENT), (PERSISTENT, BEST_EFFORT), (PERSISTENT, PERSISTENT)],
)
@pytest.mark.obligation("000-A6", "000-A7", "000-Q3")
def test_tables_2_4_and_4_1(event: int, connection: int) -> None:
    asked = qos(EventReliability=event, ConnectionReliability=connection)
    check_qos(asked, "topic")
    asked |= qos(DeliveryReliability=ACKNOWLEDGMENT)
    if event == connection == PERSISTENT:
        check_qos(asked, "topic")
        return
    with pytest.raises(UnsupportedQoS):
        check_qos(asked, "topic")


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
