"""The tables of formal/04-10-09: endpoints and quality of service; and the state machines of reliable delivery."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from mtosi_jms.bridge import ExternalEndpoint, JMSDestination, JMSDestinationType, MessageType
from mtosi_jms.bridge.admin import CONSISTENCY, ExternalEndpointErrorCode, check_endpoints
from mtosi_jms.bridge.endpoints import FlowStyle, Grouping
from mtosi_jms.bridge.events import Any, Property, StructuredEvent, TCKind, TypeCode, any_of
from mtosi_jms.bridge.qos import (
    ACKNOWLEDGMENT,
    BEST_EFFORT,
    PERSISTENT,
    QOS_TYPES,
    Duplicates,
    Resender,
    Retries,
    check_qos,
    is_acknowledged,
    number_after,
    number_of,
    numbered,
    qos,
    retries_of,
)
from mtosi_jms.errors import InvalidExternalEndPoints, UnsupportedQoS
from mtosi_jms.jms import Queue, Topic

from .bridges import PULL, PUSH, QUEUE, SINK, SOURCE, channel_end, jms

EVENT = StructuredEvent("d", "t")


@pytest.mark.parametrize(
    ("direction", "source", "sink", "consistent"),
    [
        ("channel to JMS", PUSH, PUSH, True), ("channel to JMS", PULL, PUSH, True),
        ("channel to JMS", PUSH, PULL, False), ("channel to JMS", PULL, PULL, False),
        ("JMS to channel", PUSH, PUSH, True), ("JMS to channel", PUSH, PULL, False),
        ("JMS to channel", PULL, PUSH, True), ("JMS to channel", PULL, PULL, True),
    ],
)  # fmt: skip
@pytest.mark.obligation("000-B5", "000-B6", "000-X7")
def test_table_2_1(direction: str, source: FlowStyle, sink: FlowStyle, consistent: bool) -> None:
    ends = (channel_end(SOURCE, source), jms(SINK, sink))
    if direction == "JMS to channel":
        ends = jms(SOURCE, source), channel_end(SINK, sink)
    assert CONSISTENCY[direction, source, sink] is consistent
    if consistent:
        assert check_endpoints(*ends) == direction
        return
    with pytest.raises(InvalidExternalEndPoints) as caught:
        check_endpoints(*ends)
    assert caught.value.errors == (("SINK", "MISMATCH_ENDPOINTROLE_NOTIFSTYLE"),)


@pytest.mark.parametrize(
    ("source", "sink", "errors"),
    [
        (jms(SOURCE), jms(SINK), [("SINK", "INVALID_CHANNELID")]),
        (channel_end(SOURCE), channel_end(SINK), [("SINK", "INVALID_JMSDESTINATION")]),
        (channel_end(SINK), jms(SINK), [("SOURCE", "MISMATCH_ENDPOINTROLE_NOTIFSTYLE")]),
        (
            ExternalEndpoint(SOURCE, QUEUE, PUSH, MessageType.STRUCTURED_EVENT),
            ExternalEndpoint(SINK, 7, PUSH, MessageType.JMS_MESSAGE),
            [("SOURCE", "INVALID_CHANNELID"), ("SINK", "INVALID_JMSDESTINATION")],
        ),
        (
            channel_end(SOURCE),
            ExternalEndpoint(SINK, JMSDestination(JMSDestinationType.TOPIC, ""), PUSH, MessageType.JMS_MESSAGE),
            [("SINK", "INVALID_JMSDESTINATION")],
        ),
    ],
)
@pytest.mark.obligation("000-B8", "000-B9", "000-X16")
def test_endpoints_that_make_no_bridge(
    source: ExternalEndpoint, sink: ExternalEndpoint, errors: list[tuple[str, str]]
) -> None:
    with pytest.raises(InvalidExternalEndPoints) as caught:
        check_endpoints(source, sink)
    assert list(caught.value.errors) == errors
    assert len(caught.value.reasons) == len(errors)


@pytest.mark.obligation("000-B7", "000-X15")
def test_endpoints_describe_themselves() -> None:
    assert [one.name for one in MessageType] == ["JMS_MESSAGE", "STRUCTURED_EVENT", "SEQUENCE_EVENT"]
    assert {one.name for one in ExternalEndpointErrorCode} == {
        *("INVALID_CHANNELID", "INVALID_JMSDESTINATION", "MISMATCH_ENDPOINTROLE_NOTIFSTYLE")
    }
    assert QUEUE.destination == Queue("q")
    assert JMSDestination(JMSDestinationType.TOPIC, "t", "factory").destination == Topic("t")
    assert ExternalEndpoint(SINK, 0, PUSH, MessageType.SEQUENCE_EVENT).grouping is Grouping.SEQUENCE_EVENT
    assert channel_end(SINK).grouping is Grouping.STRUCTURED_EVENT
    with pytest.raises(FrozenInstanceError):
        QUEUE.destination_name = "other"  # type: ignore[misc]


@pytest.mark.obligation("000-A8")
def test_sequence_numbers() -> None:
    sender = Resender(Retries(2, 1.0))
    assert [number_of(sender.send([EVENT], 0.0)) for _ in range(3)] == [0, 1, 2]
    assert [number_after(one) for one in (0, 2**31 - 2, 2**31 - 1)] == [1, 2**31 - 1, 0]
    first, second = numbered([StructuredEvent(variable_header=(Property("SequenceNumber", any_of(77)),)), EVENT], 1)
    assert first.variable_header == (Property("SequenceNumber", any_of(1)),)
    assert second == EVENT
    assert number_of([EVENT]) is None


@pytest.mark.obligation("000-A10")
def test_duplicates() -> None:
    seen = Duplicates()
    assert seen.is_new(0)
    seen.store(0)
    assert not seen.is_new(0)
    assert seen.is_new(None)
    seen.store(None)
    for number in range(1, 10_001):
        seen.store(number)
    assert seen.is_new(0)


@pytest.mark.obligation("000-A16")
def test_limits_come_from_the_quality_of_service() -> None:
    """Table 4-2: the proxy's before the admin's, the channel's."""
    asked, admin, channel = qos(Retries=7, RetryInterval=15_000_000), qos(Retries=2), qos(Retries=1)
    assert retries_of(asked, admin, channel) == Retries(7, 1.5)
    assert retries_of({}, admin, channel) == Retries(2, 5.0)
    assert retries_of({}, {}, channel) == Retries(1, 5.0)
    assert retries_of({}) == Retries(3, 5.0)
    assert is_acknowledged(qos(DeliveryReliability=1))
    assert not is_acknowledged(qos(DeliveryReliability=0))
    assert not is_acknowledged({})


ANY_ORDER, FIFO, PRIORITY, DEADLINE = range(4)


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
