"""Channels stand for the destinations of JMS: one for each queue, and one for the topics, which are event types."""

from __future__ import annotations

from pathlib import Path

import pytest

import mtosi_jms.bridge
from mtosi_jms.bridge.endpoints import FlowStyle
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.bridge.omg import event_of
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.testing import MemoryChannel, MemorySource

ROOT = Path(__file__).resolve().parents[2]


def pulling(channel: MemoryChannel, constraint: str = "") -> MemorySource:
    source = channel.event_source(FlowStyle.PULL, constraint=constraint)
    source.connect()
    return source


def push(channel: MemoryChannel, *types: str) -> None:
    sink = channel.event_sink()
    sink.connect()
    sink.push([StructuredEvent("", one) for one in types])
    sink.disconnect()


def types(source: MemorySource) -> list[str]:
    found = []
    while events := source.pull(wait=False):
        found += [one.type_name for one in events]
    return found


@pytest.mark.obligation("003-5", "003-6")
def test_a_queue_is_a_channel_of_its_name() -> None:
    message = JmsMessage(destination=Queue("orders"))
    channel = MemoryChannel("orders", queue=True)
    event = event_of(message)
    assert event is not None
    sink = channel.event_sink()
    sink.connect()
    sink.push([event])
    (found,) = pulling(channel).pull()
    assert found.type_name == "%TextMessage"
    assert found.get("JMSDestination") == event.get("JMSDestination")
    assert str(message.destination) == f"queue:{channel.name}"
    channel.close()


@pytest.mark.obligation("003-5", "003-6")
def test_topics_are_event_types_on_one_channel() -> None:
    channel = MemoryChannel()
    assert channel.name == "pubsub"
    alarms, all_of_them = pulling(channel, "$type_name == 'alarms'"), pulling(channel)
    push(channel, "alarms", "inventory", "alarms")
    assert types(alarms) == ["alarms", "alarms"]
    assert types(all_of_them) == ["alarms", "inventory", "alarms"]
    channel.close()


@pytest.mark.parametrize("queue", [True, False])
@pytest.mark.obligation("003-7", "003-8")
def test_who_takes_an_event_takes_it_for_all_or_for_itself(queue: bool) -> None:
    channel = MemoryChannel(queue=queue)
    push(channel, "before")
    first, second = pulling(channel), pulling(channel)
    push(channel, "after")
    taken = types(first)
    assert taken == (["before", "after"] if queue else ["after"])
    assert types(second) == ([] if queue else ["after"])
    channel.close()


@pytest.mark.parametrize("acknowledges", [True, False])
@pytest.mark.obligation("003-9", "000-A11")
def test_events_are_done_with_at_once_or_when_they_are_acknowledged(acknowledges: bool) -> None:
    """Automatic: with the pull; client: each by its number; lazy: several numbers later."""
    channel = MemoryChannel(queue=True, acknowledges=acknowledges)
    push(channel, "a", "b", "c")
    source = pulling(channel)
    assert types(source) == ["a", "b", "c"]
    assert channel.waiting() == (3 if acknowledges else 0)
    if acknowledges:
        source.acknowledge([0])
        assert channel.waiting() == 2
        source.acknowledge([1, 2])
        assert channel.waiting() == 0
    channel.close()


@pytest.mark.obligation("000-C4")
def test_the_claim() -> None:
    """Who has a part of the specification says "based on" it."""
    told = [str(mtosi_jms.bridge.__doc__), *(path.read_text(encoding="utf-8") for path in ROOT.glob("docs/bridge*.md"))]
    assert all("based on" in one and "formal/04-10-09" in one for one in told)
    assert not any("conformant" in one for one in told)
