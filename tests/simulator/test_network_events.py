"""Events of a network: the same for the same numbers, valid, true, and with a known end."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections import Counter
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError
from mtosi_jms.simulator import TECHNOLOGIES, Network, alarm_key, standing_alarms
from mtosi_jms.stubs.fmw.avc import AttributeValueChangeTypeAttributeList
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nra.com import PerceivedSeverityType
from mtosi_jms.stubs.nrb.rscavc import ResourceAttributeValueChange
from mtosi_jms.stubs.nrb.rscodel import ResourceObjectDeletion
from mtosi_jms.stubs.nrf.me import ManagedElementType, Me
from mtosi_jms.testing import notifications
from mtosi_jms.validation import SchemaSet, Validator
from mtosi_jms.xmlbind import NIL

NETWORK = Network(elements=8, technology="SDH", topology="mesh", ports=4, channels=1)
networks = st.builds(
    Network,
    elements=st.integers(0, 6),
    technology=st.sampled_from(sorted(TECHNOLOGIES)),
    topology=st.sampled_from(["none", "ring", "mesh"]),
    ports=st.integers(0, 6),
    channels=st.just(1),
    seed=st.integers(0, 50),
)


def told(event: Any) -> dict[str, Any]:
    """What an event sets."""
    (changed,) = event.attribute_list.any_
    values = {field.name: getattr(changed, field.name) for field in dataclasses.fields(changed)}
    return {field: value for field, value in values.items() if value not in (None, [])}


def test_the_same_numbers_make_the_same_events_and_more_of_them_begin_alike() -> None:
    events = list(NETWORK.events(200, seed=4))
    assert events == list(NETWORK.events(200, seed=4))
    assert events[:50] == list(NETWORK.events(50, seed=4))
    assert events != list(NETWORK.events(200, seed=5))
    assert list(NETWORK.events(0)) == []


def test_the_stream_is_made_as_it_is_read() -> None:
    network = Network(elements=10**9, technology="SDH", topology="mesh")
    assert len(list(islice(network.events(10**9), 100))) == 100


def test_there_are_events_of_every_kind() -> None:
    kinds = Counter(type(event).__name__ for event in NETWORK.events(500))
    assert set(kinds) == {
        "Alarm",
        "Heartbeat",
        "ResourceAttributeValueChange",
        "ResourceObjectCreation",
        "ResourceObjectDeletion",
        "ResourceStateChange",
    }
    assert min(kinds.values()) > 10


def test_events_are_numbered_and_timed() -> None:
    start = dt.datetime(2026, 5, 4, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    events = list(NETWORK.events(30, start=start))
    assert [event.notification_id for event in events] == [f"EMS1-{number}" for number in range(1, 31)]
    times = [event.source_time for event in events]
    assert times[0] == start
    assert sorted(set(times)) == times == [event.os_time for event in events]


@pytest.mark.parametrize(("count", "start"), [(-1, dt.datetime.now(dt.UTC)), (1, dt.datetime(2026, 5, 4))])
def test_what_cannot_be_told(count: int, start: dt.datetime) -> None:
    with pytest.raises(ConfigError):
        NETWORK.events(count, start=start)


@pytest.mark.parametrize("technology", sorted(TECHNOLOGIES))
def test_what_is_published_is_valid(technology: str) -> None:
    validator = Validator(SchemaSet.load())
    network = Network(elements=4, technology=technology, topology="ring")
    with notifications() as pair:
        messages = pair.messages(network.events(120))
    assert len(messages) == 120
    for message in messages:
        assert [str(issue) for issue in validator.validate_bytes(message.body).issues] == []


@given(networks, st.integers(0, 20))
def test_nothing_is_told_that_is_not_so(network: Network, seed: int) -> None:
    """Step by step, with a plain copy of the network: what is told of is there, and what is told to be new is new."""
    inventory = {str(found.name): found for found in network.objects()}
    alarms: dict[str, Alarm] = {}
    for event in network.events(100, seed=seed):
        text = str(event.object_name)
        match type(event).__name__:
            case "ResourceObjectCreation":
                assert text not in inventory
                (inventory[text],) = event.object.any_
            case "ResourceObjectDeletion":
                assert text in inventory
                assert not [alarm for alarm in alarms.values() if f"{alarm.object_name}/".startswith(f"{text}/")]
                inventory = {other: one for other, one in inventory.items() if not f"{other}/".startswith(f"{text}/")}
                for link in (one for other, one in inventory.items() if "/TL=" in other):
                    ends = [*link.a_end_tp_ref_list.name, *link.z_end_tp_ref_list.name]
                    assert all(str(end) in inventory for end in ends)
            case "Alarm":
                assert text in inventory
                cleared = event.perceived_severity is PerceivedSeverityType.CLEARED
                assert (alarm_key(event) in alarms) == cleared
                if cleared:
                    del alarms[alarm_key(event)]
                else:
                    alarms[alarm_key(event)] = event
            case "ResourceAttributeValueChange" | "ResourceStateChange":
                ((field, value),) = told(event).items()
                assert getattr(inventory[text], field) != value
                setattr(inventory[text], field, value)
            case other:
                assert (other, text) == ("Heartbeat", f"OS={network.domain}")
    assert inventory.keys() == network.after(network.events(100, seed=seed)).keys()
    assert alarms == standing_alarms(network.events(100, seed=seed))


def test_what_the_network_looks_like_after_its_events() -> None:
    events = list(NETWORK.events(300))
    before = {str(found.name): found for found in NETWORK.objects()}
    changed, after = NETWORK.changes(events), NETWORK.after(events)
    gone = {text for text, found in changed.items() if found is None}
    assert gone
    assert before.keys() - after.keys() == gone & before.keys()
    created = after.keys() - before.keys()
    assert {text for text in created if "/ME=" in text and text.count("/") == 1} == created
    assert all(type(after[text]) is ManagedElementType for text in created)
    untouched = before.keys() - changed.keys()
    assert {text: after[text] for text in untouched} == {text: before[text] for text in untouched}
    last = {}
    for event in events:
        if isinstance(event, ResourceAttributeValueChange):
            ((field, value),) = told(event).items()
            last[str(event.object_name), field] = value
    values = [getattr(after[text], field) == value for (text, field), value in last.items() if text in after]
    assert len(values) > 5
    assert all(values)


def test_nothing_happened() -> None:
    assert NETWORK.changes([]) == {}
    assert NETWORK.after([]) == {str(found.name): found for found in NETWORK.objects()}


def test_values_are_set_and_taken_away() -> None:
    me = NETWORK.element_name(0)

    def change(**fields: Any) -> ResourceAttributeValueChange:
        listed = AttributeValueChangeTypeAttributeList(any_=[Me(**fields)])
        return ResourceAttributeValueChange(object_name=me, attribute_list=listed)

    found = NETWORK.changes([change(owner="a", location="b"), change(owner=NIL)])[str(me)]
    assert found is not None
    assert (found.owner, found.location) == (None, "b")  # type: ignore[attr-defined]
    assert found.user_label == NETWORK.managed_element(0).user_label


def test_an_element_takes_along_what_it_contains() -> None:
    events = [ResourceObjectDeletion(object_name=NETWORK.element_name(2))]
    assert set(NETWORK.changes(events)) == {str(found.name) for found in NETWORK.objects_of(2)}
    assert set(NETWORK.changes(events).values()) == {None}


@pytest.mark.parametrize("text", ["MD=EMS1/ME=NE-9", "MD=EMS1/ME=NE-1/PTP=x", "MD=EMS2/ME=NE-1"])
def test_an_event_about_something_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="not there"):
        NETWORK.changes([ResourceObjectDeletion(object_name=name(text))])


def test_nothing_can_be_told_of_what_is_gone() -> None:
    gone = ResourceObjectDeletion(object_name=NETWORK.element_name(0))
    with pytest.raises(ConfigError, match="not there"):
        NETWORK.changes([gone, gone])
