"""`MemoryChannel`, beyond the contract of channels: queues, acknowledgement, and channels that break down."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from mtosi_jms.bridge.endpoints import FlowStyle, Grouping
from mtosi_jms.bridge.events import Any, Property, StructuredEvent, TCKind, TypeCode, any_of
from mtosi_jms.errors import BridgeError, EventError, IllegalStateError, TransportError, UnsupportedQoS
from mtosi_jms.testing import MemoryChannel, MemorySource

PULL, SEVERAL = FlowStyle.PULL, Grouping.SEQUENCE_EVENT
NUMBER = "SequenceNumber"


def events(*numbers: int) -> list[StructuredEvent]:
    return [StructuredEvent("telecom", "Alarm", str(one), (), (Property("n", any_of(one)),)) for one in numbers]


def filled(channel: MemoryChannel, *numbers: int) -> None:
    sink = channel.event_sink()
    sink.connect()
    sink.push(events(*numbers))
    sink.disconnect()


def pulling(channel: MemoryChannel, grouping: Grouping = SEVERAL, constraint: str = "") -> MemorySource:
    source = channel.event_source(PULL, grouping, constraint=constraint)
    source.connect()
    return source


def numbers(found: Sequence[StructuredEvent]) -> list[object]:
    """The SequenceNumbers that events have."""
    return [number.value for one in found if (number := one.header(NUMBER)) is not None]


@pytest.mark.obligation("003-5", "003-6", "003-7", "003-8")
def test_a_queue_keeps_events_and_gives_each_to_one_source() -> None:
    channel = MemoryChannel("alarms", queue=True)
    filled(channel, 1, 2, 3, 4)
    assert channel.waiting() == 4
    first, second = pulling(channel, Grouping.STRUCTURED_EVENT), pulling(channel)
    assert first.pull() == events(1)
    assert second.pull(10) == events(2, 3, 4)
    assert (channel.waiting(), list(first.pull(wait=False))) == (0, [])


@pytest.mark.obligation("003-6", "003-8")
def test_a_topic_is_an_event_type_of_one_channel() -> None:
    channel = MemoryChannel()
    filled(channel, 1)
    alarms, others = pulling(channel, constraint="$type_name == 'Alarm'"), pulling(channel, constraint="$n == 7")
    filled(channel, 2)
    assert (channel.name, alarms.pull(9), list(others.pull(wait=False))) == ("pubsub", events(2), [])


def test_a_filter_of_a_queue_leaves_the_others_there() -> None:
    channel = MemoryChannel("alarms", queue=True)
    filled(channel, 1, 2, 3)
    assert pulling(channel, constraint="$n >= 2").pull(9) == events(2, 3)
    assert channel.waiting() == 1


def test_what_a_consumer_of_a_queue_had_when_it_left_goes_back() -> None:
    channel = MemoryChannel("alarms", queue=True)
    begun, leave = threading.Event(), threading.Event()
    source = channel.event_source()

    def consumer(found: Sequence[StructuredEvent]) -> None:
        begun.set()
        leave.wait(30)
        raise RuntimeError("not taken")

    source.connect(consumer)
    filled(channel, 1, 2)
    assert begun.wait(30)
    ended = threading.Thread(target=source.disconnect)
    ended.start()
    leave.set()
    ended.join()
    assert pulling(channel).pull(9, timeout=30) == events(1, 2)


@pytest.mark.obligation("000-A8", "000-A9", "000-A11")
def test_events_are_numbered_and_kept_until_they_are_acknowledged() -> None:
    channel = MemoryChannel("alarms", queue=True, acknowledges=True)
    source = pulling(channel, Grouping.STRUCTURED_EVENT)
    assert source.acknowledges
    filled(channel, 1, 2, 3)
    found = [one for _ in range(3) for one in source.pull()]
    assert numbers(found) == [0, 1, 2]
    assert channel.waiting() == 3
    source.suspend()
    source.resume()
    source.acknowledge([0, 1])
    source.acknowledge([0])
    assert channel.waiting() == 1
    source.disconnect()
    again = pulling(channel)
    found = list(again.pull(9))
    assert ([one.event_name for one in found], numbers(found)) == (["3"], [0])


@pytest.mark.obligation("000-A8")
def test_only_the_first_of_a_sequence_has_a_number_and_an_older_one_goes() -> None:
    channel = MemoryChannel(acknowledges=True)
    source = pulling(channel)
    sink = channel.event_sink(FlowStyle.PUSH, SEVERAL)
    sink.connect()
    old = Property(NUMBER, Any(TypeCode.of(TCKind.long), 77))
    sink.push([StructuredEvent(event_name=str(one), variable_header=(old,) if one == 0 else ()) for one in range(3)])
    found = source.pull(9)
    assert [numbers([one]) for one in found] == [[0], [], []]


@pytest.mark.obligation("000-A10", "000-A12")
def test_what_was_not_acknowledged_comes_again_under_its_number() -> None:
    channel = MemoryChannel("alarms", queue=True, acknowledges=True)
    source = pulling(channel, Grouping.STRUCTURED_EVENT)
    filled(channel, 1, 2)
    first = [one for _ in range(2) for one in source.pull()]
    source.acknowledge([0])
    channel.resend()
    assert source.pull() == [first[1]]
    source.acknowledge([1])
    assert (channel.waiting(), list(source.pull(wait=False))) == (0, [])


@pytest.mark.obligation("000-A10")
def test_a_channel_acknowledges_what_is_pushed_and_keeps_it_once() -> None:
    channel = MemoryChannel("alarms", queue=True, acknowledges=True)
    told: list[int] = []
    sink = channel.event_sink()
    sink.connect(on_acknowledged=told.extend)
    numbered = StructuredEvent(variable_header=(Property(NUMBER, Any(TypeCode.of(TCKind.long), 4)),))
    sink.push([numbered])
    sink.push([numbered])
    assert (told, channel.waiting()) == ([4, 4], 1)


def test_a_channel_that_breaks_down() -> None:
    channel = MemoryChannel("alarms", queue=True)
    filled(channel, 1)
    lost: list[str] = []
    source, sink = channel.event_source(PULL), channel.event_sink()
    source.connect(on_disconnected=lost.append)
    sink.connect(on_disconnected=lost.append)
    never = channel.event_sink()
    channel.break_down("power cut")
    channel.break_down("power cut")
    assert (lost, channel.is_alive(), source.is_connected(), never.is_connected()) == (
        ["power cut", "power cut"], False, False, False,
    )  # fmt: skip
    with pytest.raises(TransportError, match="alarms: power cut"):
        channel.event_source()
    channel.recover()
    for work in (source.pull, lambda: sink.push(events(1))):
        with pytest.raises(IllegalStateError):
            work()
    assert pulling(channel).pull(9) == events(1)


def test_the_oldest_go_where_too_many_wait() -> None:
    queue, topic = MemoryChannel("q", queue=True, max_events=2), MemoryChannel(max_events=2)
    sources = [pulling(topic)]
    for channel in (queue, topic):
        filled(channel, 1, 2, 3)
    assert pulling(queue).pull(9) == sources[0].pull(9) == events(2, 3)


@pytest.mark.obligation("000-C3")
def test_quality_of_service() -> None:
    has = {"Priority": Any(TypeCode.of(TCKind.short), 4)}
    channel = MemoryChannel(qos=has, refuses=["Timeout"], forgets=["Retries"], channel_id=3)
    assert (channel.channel_id, channel.event_sink().qos) == (3, has)
    with pytest.raises(UnsupportedQoS, match="Timeout: the channel does not support it"):
        channel.event_source(qos={"Timeout": Any(TypeCode.of(TCKind.ulonglong), 1)})
    with pytest.raises(UnsupportedQoS, match="Retries: the channel accepts it and does not keep it"):
        channel.event_source(qos={"Retries": any_of(1)})


def test_without_acknowledgement_there_is_none() -> None:
    with pytest.raises(BridgeError):
        pulling(MemoryChannel()).acknowledge([0])


@pytest.mark.parametrize("constraint", ["$x in $y", "1 +", "$n > 'a' or or TRUE"])
def test_constraints_that_are_refused(constraint: str) -> None:
    with pytest.raises(EventError, match="refuses the constraint"):
        MemoryChannel().event_source(constraint=constraint)


@pytest.mark.parametrize(
    ("constraint", "passes"),
    [
        ("$domain_name == 'telecom' and $.header.fixed_header.event_name == '1'", True),
        ("$n + 1 < 3 and not exist $other", True),
        ("$.filterable_data(n) * 2 == 3", False),
        ("$.remainder_of_body.x == 1", False),
        ("'lar' ~ $type_name", True),
        ("$type_name == 'it\\'s'", False),
    ],
)
def test_constraints(constraint: str, passes: bool) -> None:
    channel = MemoryChannel("q", queue=True)
    filled(channel, 1)
    assert bool(pulling(channel, constraint=constraint).pull(wait=False)) is passes
