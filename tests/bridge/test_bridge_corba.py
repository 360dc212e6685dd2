"""The bridge between JacORB's notification service and JMS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any as Anything

import pytest

from mtosi_jms.bridge import (
    Bridge,
    BridgeFactory,
    BridgeOptions,
    BridgeStatus,
    ExternalEndpoint,
    ExternalEndpointRole,
    FlowStyle,
    JMSDestination,
    JMSDestinationType,
    MessageType,
)
from mtosi_jms.bridge.endpoints import Grouping
from mtosi_jms.bridge.events import Any, Property, StructuredEvent, TCKind, TypeCode, any_of
from mtosi_jms.bridge.filters import to_etcl
from mtosi_jms.bridge.omg import event_of
from mtosi_jms.bridge.qos import qos
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.jms import MessageType as Kind
from mtosi_jms.jms.message import Char, Long, Short
from mtosi_jms.jms.selector import parse
from mtosi_jms.transport import Backoff, connect

PUSH, PULL = FlowStyle.PUSH, FlowStyle.PULL
SOURCE, SINK = ExternalEndpointRole.SOURCE, ExternalEndpointRole.SINK
ONE, MANY = MessageType.STRUCTURED_EVENT, MessageType.SEQUENCE_EVENT
SOON = 60.0
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
def make(orb: Anything, jacorb_address: str, request: pytest.FixtureRequest) -> Iterator[Callable[..., Bridge]]:
    channel = orb.channel(jacorb_address)
    url = f"memory:{request.node.name}"
    factories = []

    def bridge(source: tuple[Anything, ...], sink: tuple[Anything, ...], **options: Anything) -> Bridge:
        factory = BridgeFactory(
            {0: channel},
            {"": partial(connect, url)},
            BridgeOptions(backoff=Backoff(0.05, 0.2, 0.0), pacing=0.1, **options),
        )
        factories.append(factory)
        made, _ = factory.create_bridge(ExternalEndpoint(SOURCE, *source), ExternalEndpoint(SINK, *sink))
        return made

    bridge.channel, bridge.url = channel, url  # type: ignore[attr-defined]
    yield bridge
    for one in factories:
        one.close()
    channel.close()


JMS = JMSDestination(JMSDestinationType.QUEUE, "q")


@pytest.mark.parametrize("grouping", [ONE, MANY], ids=lambda one: one.name)
@pytest.mark.parametrize("style", [PUSH, PULL], ids=lambda one: one.name)
@pytest.mark.obligation(
    "000-B1", "000-B3", "000-B4", "000-EJ1", "000-EJ4", "000-EJ5", "000-EJ7",
    "000-EJ9", "000-EJ11", "000-EJ15", "000-QO5", "000-Q1",
)  # fmt: skip
def test_from_jacorb_to_jms(make: Anything, style: FlowStyle, grouping: MessageType) -> None:
    bridge = make((0, style, grouping), (JMS, PUSH, MessageType.JMS_MESSAGE))
    bridge.start_bridge()
    assert bridge.get_status() is BridgeStatus.ACTIVE
    sink = make.channel.event_sink(PUSH, Grouping.SEQUENCE_EVENT)
    sink.connect()
    sink.push([event(number) for number in range(40)])
    with connect(make.url) as connection:
        connection.start()
        consumer = connection.session().consumer(Queue("q"))
        for number in range(40):
            delivery = consumer.receive(SOON)
            assert delivery is not None
            delivery.acknowledge()
            properties = delivery.message.properties
            assert (properties["$fd_n"], properties["$fd_pair_a"], properties["$fd_pair_b"]) == (number, "x", number)
            assert (properties["$type_name"], delivery.message.body) == ("t", "é".encode())
            assert delivery.message.jms_type == "Structured Event"
    sink.disconnect()


@pytest.mark.parametrize("grouping", [ONE, MANY], ids=lambda one: one.name)
@pytest.mark.parametrize(("receives", "sends"), [(PUSH, PUSH), (PULL, PUSH), (PULL, PULL)], ids=str)
@pytest.mark.obligation(
    "000-B1", "000-B3", "000-B4", "000-JE1", "000-JE3", "000-JE5", "000-JE7", "000-JE8",
    "000-JE15", "000-X10", "003-1", "003-2",
)  # fmt: skip
def test_from_jms_to_jacorb(make: Anything, receives: FlowStyle, sends: FlowStyle, grouping: MessageType) -> None:
    source = make.channel.event_source(PULL)
    source.connect()
    bridge = make((JMS, receives, MessageType.JMS_MESSAGE), (0, sends, grouping))
    bridge.start_bridge()
    with connect(make.url) as connection:
        session = connection.session()
        for number in range(20):
            session.send(Queue("q"), JmsMessage(body=b"<a/>", properties={"n": number, "x": True}, priority=7))
    for number in range(20):
        (found,) = source.pull(timeout=SOON)
        assert (found.get("n"), found.get("x")) == (any_of(number), any_of(True))
        assert (found.type_name, found.remainder_of_body) == ("%TextMessage", any_of("<a/>"))
        assert found.header("Priority").value == 7
    source.disconnect()


@pytest.mark.obligation("003-4")
def test_a_filter_at_jacorb(make: Anything) -> None:
    """What the channel lets through is what the selector does."""
    texts = ["n > 3 AND n <= 6", "n = 1 OR n = 7", "NOT (n < 8)", "pair_a IS NULL AND n IN ('x')", "n BETWEEN 2 AND 3"]
    events = [event(number) for number in range(9)]
    sources = []
    for text in texts:
        source = make.channel.event_source(PULL, constraint=to_etcl(parse(text)))
        source.connect()
        sources.append(source)
    sink = make.channel.event_sink(PUSH, Grouping.SEQUENCE_EVENT)
    sink.connect()
    sink.push(events)
    found = []
    for source, count in zip(sources, [3, 2, 1, 0, 2], strict=True):
        pulled = [one for _ in range(count) for one in source.pull(timeout=SOON)]
        found.append([one.get("n").value for one in pulled])
        assert not source.pull(wait=False)
        source.disconnect()
    assert found == [[4, 5, 6], [1, 7], [8], [], [2, 3]]
    sink.disconnect()


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
def test_all_kinds_of_messages_come_back_from_jacorb(make: Anything) -> None:
    """To the channel by one bridge, and from it by another."""
    source = make.channel.event_source(PULL)
    source.connect()
    home = make((0, PUSH, ONE), (replace(JMS, destination_name="home"), PUSH, MessageType.JMS_MESSAGE))
    away = make((JMS, PULL, MessageType.JMS_MESSAGE), (0, PUSH, ONE))
    for bridge in (home, away):
        bridge.start_bridge()
    with connect(make.url) as connection:
        connection.start()
        session = connection.session()
        consumer = session.consumer(Queue("home"))
        for message in MESSAGES.values():
            sent = session.send(Queue("q"), message)
            delivery = consumer.receive(SOON)
            assert delivery is not None
            delivery.acknowledge()
            found = delivery.message
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
def test_transactions_of_what_jacorb_pushes(make: Anything) -> None:
    bridge = make((0, PUSH, ONE), (JMS, PUSH, MessageType.JMS_MESSAGE))
    bridge.enable_transaction(3, 0)
    bridge.start_bridge()
    sink = make.channel.event_sink(PUSH, Grouping.SEQUENCE_EVENT)
    sink.connect()
    sink.push([event(number) for number in range(4)])
    with connect(make.url) as connection:
        connection.start()
        consumer = connection.session().consumer(Queue("q"))

        def number() -> Anything:
            delivery = consumer.receive(SOON)
            assert delivery is not None
            delivery.acknowledge()
            return delivery.message.properties["$fd_n"]

        assert [number() for _ in range(3)] == [0, 1, 2]
        assert consumer.receive(0) is None
        sink.push([event(4), event(5)])
        assert [number() for _ in range(3)] == [3, 4, 5]
        bridge.disable_transaction()
        sink.push([event(6)])
        assert number() == 6
    sink.disconnect()
