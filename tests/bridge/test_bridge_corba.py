"""The bridge between JacORB's notification service and JMS; and between one in the process, by the same tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any as Anything

import pytest

from mtosi_jms.bridge import BridgeStatus, FlowStyle, MessageType
from mtosi_jms.bridge.events import Any, Property, StructuredEvent, TCKind, TypeCode, any_of
from mtosi_jms.bridge.filters import to_etcl
from mtosi_jms.bridge.omg import event_of
from mtosi_jms.jms import DUPLICATE_ID, JmsMessage, Queue
from mtosi_jms.jms import MessageType as Kind
from mtosi_jms.jms.message import Char, Long, Short
from mtosi_jms.jms.selector import parse
from mtosi_jms.testing import MemoryChannel
from mtosi_jms.transport import Backoff

from .bridges import PULL, PUSH, QUEUE, SOON, STYLES, TYPES, World, event, to_channel, to_jms


@pytest.fixture
def jacorb_world(orb: Anything, jacorb_address: str, request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(request.node.name, orb.channel(jacorb_address), backoff=Backoff(0.05, 0.2, 0.0), pacing=0.1)
    yield made
    made.close()


@pytest.fixture(params=["memory", "jacorb"])
def either_world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A channel in the process, or JacORB's."""
    if request.param == "jacorb":
        yield request.getfixturevalue("jacorb_world")
        return
    made = World(request.node.name, MemoryChannel("channel", queue=True))
    yield made
    made.close()


PAIR = TypeCode.struct(
    "IDL:test/Pair:1.0", "Pair", (("a", TypeCode.of(TCKind.string)), ("b", TypeCode.of(TCKind.long)))
)


def rich(number: int) -> StructuredEvent:
    """A numbered event with a struct and a body."""
    made = event(number, EventReliability=1)
    data = (*made.filterable_data, Property("pair", Any(PAIR, ("x", number))))
    return replace(made, filterable_data=data, remainder_of_body=any_of("é"))


@TYPES
@STYLES
@pytest.mark.obligation(
    "000-B1", "000-B2", "000-B3", "000-B4", "000-EJ1", "000-EJ4", "000-EJ5", "000-EJ7", "000-EJ9", "000-EJ11",
    "000-EJ15", "000-QO5", "000-Q1",
)  # fmt: skip
def test_from_the_channel_to_jms(either_world: World, style: FlowStyle, type: MessageType) -> None:
    assert either_world.bridge(to_jms(style, type)).get_status() is BridgeStatus.ACTIVE
    either_world.push(*map(rich, range(40)))
    found = either_world.received(40)
    for at, message in enumerate(found):
        properties = message.properties
        assert (properties["$fd_n"], properties["$fd_pair_a"], properties["$fd_pair_b"]) == (at, "x", at)
        assert (properties["$type_name"], message.body, message.jms_type) == ("t", "é".encode(), "Structured Event")
    assert len({one.properties[DUPLICATE_ID] for one in found}) == 40


@TYPES
@pytest.mark.parametrize(("receives", "sends"), [(PUSH, PUSH), (PULL, PUSH), (PULL, PULL)], ids=str)
@pytest.mark.obligation(
    "000-B1", "000-B3", "000-B4", "000-JE1", "000-JE3", "000-JE5", "000-JE7", "000-JE8", "000-JE15", "000-QO5",
    "000-EJ15", "000-X10", "003-1", "003-2",
)  # fmt: skip
def test_from_jms_to_the_channel(either_world: World, receives: FlowStyle, sends: FlowStyle, type: MessageType) -> None:
    source = either_world.channel.event_source(PULL)
    source.connect()
    either_world.bridge(to_channel(receives, sends, type))
    either_world.send(*range(20), body=b"<a/>", priority=7)
    for at in range(20):
        (found,) = source.pull(timeout=SOON)
        assert (found.get("n"), found.header("Priority").value) == (any_of(at), 7)
        assert (found.type_name, found.remainder_of_body) == ("%TextMessage", any_of("<a/>"))
    source.disconnect()


@pytest.mark.obligation("003-4")
def test_a_filter_at_jacorb(jacorb_world: World) -> None:
    """What the channel lets through is what the selector does."""
    texts = ["n > 3 AND n <= 6", "n = 1 OR n = 7", "NOT (n < 8)", "pair_a IS NULL AND n IN ('x')", "n BETWEEN 2 AND 3"]
    sources = []
    for text in texts:
        source = jacorb_world.channel.event_source(PULL, constraint=to_etcl(parse(text)))
        source.connect()
        sources.append(source)
    jacorb_world.push(*map(rich, range(9)))
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
def test_all_kinds_of_messages_come_back_from_jacorb(jacorb_world: World) -> None:
    """To the channel by one bridge, and from it by another."""
    source = jacorb_world.channel.event_source(PULL)
    source.connect()
    channel, home = to_jms()
    jacorb_world.bridge((channel, replace(home, connector=replace(QUEUE, destination_name="home"))))
    jacorb_world.bridge(to_channel(PULL))
    for message in MESSAGES.values():
        sent = jacorb_world.session.send(Queue("q"), message)
        (found,) = jacorb_world.received(1, "home")
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
