"""Random events through JacORB's channel come back as they were, in and out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mtosi_jms.bridge.endpoints import FlowStyle, Grouping
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.bridge.qos import QOS_TYPES

from .event_maker import EVENTS

LARGE = 1_000
SMALL = 40
AT_ONCE = 20


@pytest.fixture(scope="module")
def ends(orb: Any, jacorb_address: str) -> Iterator[tuple[Any, Any]]:
    """A sink and a source of JacORB's channel."""
    channel = orb.channel(jacorb_address)
    source = channel.event_source(FlowStyle.PULL, Grouping.SEQUENCE_EVENT)
    source.connect()
    sink = channel.event_sink(FlowStyle.PUSH, Grouping.SEQUENCE_EVENT)
    sink.connect()
    yield sink, source
    channel.close()


def carried(ends: tuple[Any, Any], events: list[StructuredEvent]) -> None:
    sink, source = ends
    # The channel does what its own names say: an event ends at its Timeout.
    headers = [tuple(one for one in event.variable_header if one.name not in QOS_TYPES) for event in events]
    sent = [replace(event, variable_header=header) for event, header in zip(events, headers, strict=True)]
    sink.push(sent)
    found: list[StructuredEvent] = []
    while len(found) < len(sent) and (more := source.pull(AT_ONCE, timeout=30)):
        found += more
    assert found == sent


LISTS = st.lists(EVENTS, min_size=AT_ONCE, max_size=AT_ONCE)
RANDOM: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": (HealthCheck.too_slow, HealthCheck.data_too_large),
    "database": None,
    "phases": (Phase.generate,),
}


@settings(max_examples=SMALL // AT_ONCE, **RANDOM)
@given(LISTS)
def test_random_events_come_back(ends: tuple[Any, Any], events: list[StructuredEvent]) -> None:
    carried(ends, events)


@pytest.mark.endurance
@settings(max_examples=LARGE // AT_ONCE, **RANDOM)
@given(LISTS)
def test_a_thousand_random_events_come_back(ends: tuple[Any, Any], events: list[StructuredEvent]) -> None:
    carried(ends, events)
