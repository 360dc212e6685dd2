"""Random events through JacORB's channel come back as they were, in and out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mtosi_jms.bridge.endpoints import FlowStyle, Grouping
from mtosi_jms.bridge.events import Any as CorbaAny
from mtosi_jms.bridge.events import Property, StructuredEvent, TCKind, TypeCode, Union, Value
from mtosi_jms.bridge.qos import QOS_TYPES

from .event_maker import EVENTS

LARGE = 1_000
SMALL = 40
AT_ONCE = 20


def told_apart(one: TypeCode, known: dict[TypeCode, str]) -> TypeCode:
    """The type with a repository id of its own, as types have: an ORB takes types with one id for the same."""
    members = tuple(
        replace(member, type=told_apart(member.type, known)) if member.type is not None else member
        for member in one.members
    )
    made = replace(one, members=members, content=told_apart(one.content, known) if one.content is not None else None)
    if not made.repository_id:
        return made
    return replace(made, repository_id=known.setdefault(made, f"IDL:test/T{len(known)}:1.0"))


def any_apart(one: CorbaAny, known: dict[TypeCode, str]) -> CorbaAny:
    # JacORB forgets the bound of a string that is all of an Any.
    bounded = one.type.kind in (TCKind.string, TCKind.wstring)
    made = TypeCode.of(one.type.kind) if bounded else told_apart(one.type, known)
    return CorbaAny(made, value_apart(one.value, known))


def value_apart(value: Value, known: dict[TypeCode, str]) -> Value:
    match value:
        case CorbaAny():
            return any_apart(value, known)
        case Decimal() if not value:  # JacORB cannot read it
            return Decimal("0.001")
        case TypeCode():
            return told_apart(value, known)
        case Union():
            return Union(value.discriminator, value_apart(value.value, known))
        case tuple():
            return tuple(value_apart(one, known) for one in value)
        case _:
            return value


def event_apart(event: StructuredEvent, known: dict[TypeCode, str]) -> StructuredEvent:
    def listed(properties: tuple[Property, ...]) -> tuple[Property, ...]:
        return tuple(Property(one.name, any_apart(one.value, known)) for one in properties)

    return replace(
        event,
        # The channel does what its own names say: an event ends at its Timeout.
        variable_header=listed(tuple(one for one in event.variable_header if one.name not in QOS_TYPES)),
        filterable_data=listed(event.filterable_data),
        remainder_of_body=any_apart(event.remainder_of_body, known),
    )


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


KNOWN: dict[TypeCode, str] = {}


def carried(ends: tuple[Any, Any], events: list[StructuredEvent]) -> None:
    sink, source = ends
    sent = [event_apart(event, KNOWN) for event in events]
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
