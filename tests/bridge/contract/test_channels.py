"""The contract of channels: JacORB's and the one in memory do the same."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mtosi_jms.bridge.endpoints import Channel, EventSource, FlowStyle, Grouping
from mtosi_jms.bridge.events import Any as CorbaAny
from mtosi_jms.bridge.events import Property, StructuredEvent, TCKind, TypeCode, any_of
from mtosi_jms.errors import BridgeError, EventError, IllegalStateError, UnsupportedQoS

from .conftest import event

Drain = Callable[[EventSource, int], list[StructuredEvent]]
PUSH, PULL = FlowStyle.PUSH, FlowStyle.PULL
ONE, SEVERAL = Grouping.STRUCTURED_EVENT, Grouping.SEQUENCE_EVENT
SHORT = TypeCode.of(TCKind.short)


def connected(channel: Channel, consumer: Any, style: FlowStyle = PUSH, grouping: Grouping = ONE, **how: Any) -> Any:
    source = channel.event_source(style, grouping, **how)
    source.connect(consumer if style is PUSH else None)
    return source


@pytest.mark.obligation("000-B3", "000-B4")
@pytest.mark.parametrize("out", [ONE, SEVERAL])
@pytest.mark.parametrize("into", [ONE, SEVERAL])
@pytest.mark.parametrize("style", [PUSH, PULL])
def test_events_come_in_order(
    channel: Channel, collected: Any, drained: Drain, style: FlowStyle, into: Grouping, out: Grouping
) -> None:
    source = connected(channel, collected, style, out)
    sink = channel.event_sink(PUSH, into)
    sink.connect()
    sent = [event(number) for number in range(20)]
    sink.push(sent[:15])
    sink.push(sent[15:])
    sink.push([])
    assert drained(source, 20) == sent
    assert (source.style, source.grouping, sink.style, sink.grouping) == (style, out, PUSH, into)


@pytest.mark.obligation("000-B4")
@pytest.mark.parametrize("grouping", [ONE, SEVERAL])
def test_a_channel_pulls(channel: Channel, collected: Any, grouping: Grouping) -> None:
    connected(channel, collected)
    sent = [event(number) for number in range(4)]
    left = list(sent)
    asked = [RuntimeError("not now")]

    def supplier(maximum: int, wait: bool) -> list[StructuredEvent]:
        if asked:
            raise asked.pop()
        taken, left[:] = left[:maximum], left[maximum:]
        return taken

    sink = channel.event_sink(PULL, grouping)
    sink.connect(supplier)
    assert collected.wait_for(4) == sent
    with pytest.raises(IllegalStateError, match="pulls here"):
        sink.push([event(9)])
    sink.disconnect()


@pytest.mark.obligation("003-8")
def test_each_source_gets_all_events_from_its_connection_on(channel: Channel, collected: Any, drained: Drain) -> None:
    sink = channel.event_sink()
    sink.connect()
    sink.push([event(0)])
    first, second = connected(channel, collected), connected(channel, None, PULL)
    sink.push([event(1), event(2)])
    assert drained(first, 2) == drained(second, 2) == [event(1), event(2)]


def test_what_a_consumer_refuses_comes_again(channel: Channel, collected: Any) -> None:
    collected.refuse = [RuntimeError("disk full"), RuntimeError("disk still full")]
    connected(channel, collected)
    sink = channel.event_sink()
    sink.connect()
    sent = [event(number) for number in range(3)]
    sink.push(sent)
    assert collected.wait_for(3) == sent
    assert collected.calls == 5


@pytest.mark.obligation("000-B17")
@pytest.mark.parametrize("style", [PUSH, PULL])
def test_a_suspended_source_gets_its_events_later(
    channel: Channel, collected: Any, drained: Drain, style: FlowStyle
) -> None:
    source = connected(channel, collected, style)
    other = connected(channel, None, PULL)
    sink = channel.event_sink()
    sink.connect()
    source.suspend()
    source.suspend()
    sink.push([event(1)])
    assert drained(other, 1)
    assert source.is_connected()
    if style is PULL:
        assert not source.pull(wait=False)
    assert collected.calls == 0
    source.resume()
    assert drained(source, 1) == [event(1)]


def test_who_keeps_refused_events_gets_the_others_as_they_are(channel: Channel, collected: Any) -> None:
    source = channel.event_source()
    source.connect(collected, keep_refused=True)
    sink = channel.event_sink()
    sink.connect()
    sink.push([event(1), event(2)])
    assert collected.wait_for(2) == [event(1), event(2)]


def test_a_suspended_sink_does_not_push(channel: Channel, collected: Any) -> None:
    connected(channel, collected)
    sink = channel.event_sink()
    sink.connect()
    sink.suspend()
    with pytest.raises(IllegalStateError, match="suspended"):
        sink.push([event(1)])
    sink.resume()
    sink.push([event(2)])
    assert collected.wait_for(1) == [event(2)]


@pytest.mark.obligation("000-B19")
def test_who_is_connected_is_told(channel: Channel, collected: Any) -> None:
    for end in (channel.event_source(PULL), channel.event_sink()):
        assert not end.is_connected()
        end.connect()
        assert end.is_connected()
        assert end.is_connected()
        with pytest.raises(IllegalStateError, match="connected already"):
            end.connect()
        end.disconnect()
        assert not end.is_connected()


@pytest.mark.obligation("000-B20")
def test_after_disconnecting_nothing_works(channel: Channel, collected: Any) -> None:
    lost: list[str] = []
    source, sink = channel.event_source(PULL), channel.event_sink()
    source.connect(None, lost.append)
    sink.connect(on_disconnected=lost.append)
    for end in (source, sink):
        end.disconnect()
        end.disconnect()
    for work in (source.connect, source.pull, source.suspend, sink.connect, lambda: sink.push([event(1)])):
        with pytest.raises(IllegalStateError, match="disconnected"):
            work()
    assert lost == []


def test_before_connecting_nothing_works(channel: Channel) -> None:
    source, sink = channel.event_source(PULL), channel.event_sink()
    for work in (source.pull, source.suspend, lambda: sink.push([event(1)])):
        with pytest.raises(IllegalStateError, match="not connected"):
            work()


def test_the_callback_must_fit_the_style(channel: Channel, collected: Any) -> None:
    with pytest.raises(IllegalStateError):
        channel.event_source(PUSH).connect()
    with pytest.raises(IllegalStateError):
        channel.event_source(PULL).connect(collected)
    with pytest.raises(IllegalStateError):
        channel.event_sink(PULL).connect()
    with pytest.raises(IllegalStateError):
        channel.event_sink(PUSH).connect(lambda maximum, wait: [])
    pushed = connected(channel, collected)
    with pytest.raises(IllegalStateError, match="pushes here"):
        pushed.pull()


def test_nothing_to_pull(channel: Channel) -> None:
    source = connected(channel, None, PULL)
    assert list(source.pull(wait=False)) == []
    assert list(source.pull(timeout=0.01)) == []


@pytest.mark.parametrize("times", [5, pytest.param(100, marks=pytest.mark.endurance)])
def test_disconnecting_wakes_who_pulls(channel: Channel, times: int) -> None:
    for _ in range(times):  # each time at another moment of a pull
        source = connected(channel, None, PULL)
        with ThreadPoolExecutor(1) as threads:
            pulled = threads.submit(source.pull)
            source.disconnect()
        with contextlib.suppress(IllegalStateError):  # it came too late to wait
            assert pulled.result() == []


@pytest.mark.obligation("000-C3")
@pytest.mark.parametrize(
    ("name", "value"),
    [("NoSuchProperty", any_of(1)), ("MaximumBatchSize", any_of("many")), ("EventReliability", any_of(True))],
)
def test_quality_of_service_that_is_not_there(channel: Channel, name: str, value: CorbaAny) -> None:
    for make in (channel.event_source, channel.event_sink):
        with pytest.raises(UnsupportedQoS) as caught:
            make(qos={name: value})
        assert caught.value.names == (name,)


def test_quality_of_service_is_read_back(channel: Channel) -> None:
    source = channel.event_source(PULL, SEVERAL, qos={"MaximumBatchSize": any_of(7), "Priority": CorbaAny(SHORT, 3)})
    assert (source.qos["MaximumBatchSize"].value, source.qos["Priority"].value) == (7, 3)


def test_sequences_are_as_long_as_asked(channel: Channel) -> None:
    source = connected(channel, None, PULL, SEVERAL)
    sink = channel.event_sink(PUSH, SEVERAL)
    sink.connect()
    sink.push([event(number) for number in range(9)])
    found: list[StructuredEvent] = []
    while len(found) < 9 and (more := source.pull(4, timeout=30)):
        assert len(more) <= 4
        found += more
    assert found == [event(number) for number in range(9)]


@pytest.mark.obligation("003-4")
@pytest.mark.parametrize(
    "constraint",
    [
        "$severity == 'MAJOR' and $number > 2",
        "$.filterable_data(severity) == 'MAJOR' and not ($number <= 2)",
        "exist $extra and $type_name == 'Alarm'",
        "'AJO' ~ $severity and $number != 1",
    ],
)
def test_filters_at_the_channel(channel: Channel, drained: Drain, constraint: str) -> None:
    source = connected(channel, None, PULL, constraint=constraint)
    sink = channel.event_sink()
    sink.connect()
    wanted = [event(3, severity="MAJOR", extra=1), event(5, severity="MAJOR", extra=2)]
    sink.push([event(1, severity="MAJOR"), wanted[0], event(4, severity="MINOR"), wanted[1]])
    assert drained(source, 2) == wanted
    assert not source.pull(wait=False)


@pytest.mark.parametrize("constraint", ["$number ==", "== 5", "$number == 'x", "%"])
def test_a_constraint_that_is_none(channel: Channel, constraint: str) -> None:
    with pytest.raises(EventError, match="refuses the constraint"):
        channel.event_source(constraint=constraint)


@pytest.mark.parametrize(
    "value", [CorbaAny(SHORT, 70_000), CorbaAny(SHORT, "x"), CorbaAny(TypeCode(TCKind.value, "IDL:x:1.0", "x"), None)]
)
def test_an_event_that_no_wire_carries(channel: Channel, value: CorbaAny) -> None:
    sink = channel.event_sink()
    sink.connect()
    with pytest.raises(EventError, match="odd"):
        sink.push([StructuredEvent(filterable_data=(Property("odd", value),))])


def test_a_channel_without_acknowledgement_says_so(channel: Channel) -> None:
    source = connected(channel, None, PULL)
    assert source.acknowledges is False
    with pytest.raises(BridgeError, match="acknowledgement"):
        source.acknowledge([0])


def test_closing_disconnects(channel: Channel, collected: Any) -> None:
    source, sink = connected(channel, collected), channel.event_sink()
    sink.connect()
    assert channel.is_alive()
    channel.close()
    channel.close()
    assert not source.is_connected()
    assert not sink.is_connected()
    with pytest.raises(IllegalStateError):
        channel.event_source()
