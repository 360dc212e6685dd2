"""The bridge between JacORB's notification service and JMS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any as Anything

import pytest

from mtosi_jms.bridge import BridgeStatus, FlowStyle, MessageType
from mtosi_jms.bridge.endpoints import Grouping
from mtosi_jms.bridge.events import Any, Property, StructuredEvent, TCKind, TypeCode, any_of
from mtosi_jms.bridge.filters import to_etcl
from mtosi_jms.bridge.omg import event_of
from mtosi_jms.bridge.qos import qos
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.jms import MessageType as Kind
from mtosi_jms.jms.message import Char, Long, Short
from mtosi_jms.jms.selector import parse
from mtosi_jms.transport import Backoff

from .bridges import PULL, PUSH, QUEUE, SOON, STYLES, TYPES, World, to_channel, to_jms

STRUCT = TypeCode.struct(
    "IDL:test/Pair:1.0", "Pair", (("a", TypeCode.of(TCKind.string)), ("b", TypeCode.of(TCKind.long)))
)


def event(number: int) -> StructuredEvent:
    return StructuredEvent(
        "d",
        "t",
        variable_header=(Property("EventReliability", qos(EventReliability=1)["EventReliability"]),),
        filterable_data=(Property("n", any_of(number)), Property("pair", Any(STRUCT, ("x", number)))),
        remainder_of_body=any_of("é"),
    )


@pytest.fixture
def world(orb: Anything, jacorb_address: str, request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(request.node.name, orb.channel(jacorb_address), backoff=Backoff(0.05, 0.2, 0.0), pacing=0.1)
    yield made
    made.close()


@pytest.fixture
def sink(world: World) -> Iterator[Anything]:
    """Takes events in sequences."""
    made = world.channel.event_sink(PUSH, Grouping.SEQUENCE_EVENT)
    made.connect()
    yield made
    made.disconnect()


@TYPES
@STYLES
@pytest.mark.obligation(
    "000-B1", "000-B3", "000-B4", "000-EJ1", "000-EJ4", "000-EJ5", "000-EJ7",
    "000-EJ9", "000-EJ11", "000-EJ15", "000-QO5", "000-Q1",
)  # fmt: skip
def test_from_jacorb_to_jms(world: World, sink: Anything, style: FlowStyle, type: MessageType) -> None:
    bridge = world.bridge(to_jms(style, type))
    assert bridge.get_status() is BridgeStatus.ACTIVE
    sink.push([event(number) for number in range(40)])
    for number, found in enumerate(world.received(40)):
        properties = found.properties
        assert (properties["$fd_n"], properties["$fd_pair_a"], properties["$fd_pair_b"]) == (number, "x", number)
        assert (properties["$type_name"], found.body, found.jms_type) == ("t", "é".encode(), "Structured Event")


@TYPES
@pytest.mark.parametrize(("receives", "sends"), [(PUSH, PUSH), (PULL, PUSH), (PULL, PULL)], ids=str)
@pytest.mark.obligation(
    "000-B1", "000-B3", "000-B4", "000-JE1", "000-JE3", "000-JE5", "000-JE7", "000-JE8",
    "000-JE15", "000-X10", "003-1", "003-2",
)  # fmt: skip
def test_from_jms_to_jacorb(world: World, receives: FlowStyle, sends: FlowStyle, type: MessageType) -> None:
    source = world.channel.event_source(PULL)
    source.connect()
    world.bridge(to_channel(receives, sends, type))
    for number in range(20):
        world.session.send(Queue("q"), JmsMessage(body=b"<a/>", properties={"n": number, "x": True}, priority=7))
    for number in range(20):
        (found,) = source.pull(timeout=SOON)
        assert (found.get("n"), found.get("x")) == (any_of(number), any_of(True))
        assert (found.type_name, found.remainder_of_body) == ("%TextMessage", any_of("<a/>"))
        assert found.header("Priority").value == 7
    source.disconnect()


@pytest.mark.obligation("003-4")
def test_a_filter_at_jacorb(world: World, sink: Anything) -> None:
    """What the channel lets through is what the selector does."""
    texts = ["n > 3 AND n <= 6", "n = 1 OR n = 7", "NOT (n < 8)", "pair_a IS NULL AND n IN ('x')", "n BETWEEN 2 AND 3"]
    sources = []
    for text in texts:
        source = world.channel.event_source(PULL, constraint=to_etcl(parse(text)))
        source.connect()
        sources.append(source)
    sink.push([event(number) for number in range(9)])
    found = []
    for source, count in zip(sources, [3, 2, 1, 0, 2], strict=True):
        pulled = [one for _ in range(count) for one in source.pull(timeout=SOON)]
        found.append([one.get("n").value for one in pulled])
        assert not source.pull(wait=False)
        source.disconnect()
    assert found == [[4, 5, 6], [1, 7], [8], [], [2, 3]]


MESSAGES = {
    "text": JmsMessage(body="é€".encode(), properties={"a": 1, "b": "x"}, correlation_id="c"),
    "stream": JmsMessage(message_type=Kind.STREAM, content=(True, Short(2), 3, 2.5, "é", b"\x00\xff", Char("c"), None)),
    "map": JmsMessage(message_type=Kind.MAP, content={"a b": 1, "x": "y", "z": Long(2**40)}),
    "bytes": JmsMessage(message_type=Kind.BYTES, body=b"\x00\xff", time_to_live_ms=2**40),
    "object": JmsMessage(message_type=Kind.OBJECT, body=b"\xac\xed", priority=9),
    "none": JmsMessage(message_type=Kind.MESSAGE, properties={"a": True}),
}


@pytest.mark.obligation(
    "000-JE2", "000-JE6", "000-JE9", "000-JE13", "000-JE14", "000-JE16", "000-JE17", "000-JE18", "000-JE19", "000-EJ2",
    "000-EJ3", "000-EJ10", "000-EJ12", "000-EJ13", "000-Q4", "000-Q5", "000-X4", "000-X5", "000-X6", "003-3",
)  # fmt: skip
def test_all_kinds_of_messages_come_back_from_jacorb(world: World) -> None:
    """To the channel by one bridge, and from it by another."""
    source = world.channel.event_source(PULL)
    source.connect()
    channel, home = to_jms()
    world.bridge((channel, replace(home, connector=replace(QUEUE, destination_name="home"))))
    world.bridge(to_channel(PULL))
    for message in MESSAGES.values():
        sent = world.session.send(Queue("q"), message)
        (found,) = world.received(1, "home")
        (event,) = source.pull(timeout=SOON)
        made = event_of(sent)
        assert made is not None
        assert (event.domain_name, event.type_name) == ("", made.type_name)
        assert event.remainder_of_body == made.remainder_of_body
        assert {one.name for one in made.filterable_data} <= {one.name for one in event.filterable_data}
        assert (event.get("JMSCorrelationID") is None) is (message.correlation_id is None)
        assert bool(found.expiration_ms) is bool(sent.expiration_ms) is bool(message.time_to_live_ms)
        as_bytes = Kind.BYTES if message.message_type is Kind.OBJECT else message.message_type
        assert (found.message_type, found.body, found.content) == (as_bytes, message.body, message.content)
        assert message.properties.items() <= found.properties.items()
        assert (found.priority, found.correlation_id) == (sent.priority, message.correlation_id)
    source.disconnect()


@pytest.mark.obligation("000-T3", "000-T6", "000-T7", "000-B5", "000-X7")
def test_transactions_of_what_jacorb_pushes(world: World, sink: Anything) -> None:
    bridge = world.stopped(to_jms())
    bridge.enable_transaction(3, 0)
    bridge.start_bridge()
    sink.push([event(number) for number in range(4)])
    assert world.numbers(3) == [0, 1, 2]
    assert world.nothing_waits()
    sink.push([event(4), event(5)])
    assert world.numbers(3) == [3, 4, 5]
    bridge.disable_transaction()
    sink.push([event(6)])
    assert world.numbers(1) == [6]
