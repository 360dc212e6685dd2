"""BindingProfile: each switch of the binding, its default and what it refuses."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.profile import (
    EVENT_CATEGORIES,
    FILTER_ATTRIBUTES,
    HOURS_24,
    MINUTES_30,
    OPTIONAL_FIELDS,
    PRESETS,
    TopicCategory,
)
from mtosi_jms.errors import ConfigError
from mtosi_jms.jms.message import DeliveryMode


@pytest.mark.obligation("O6b", "O7c")
def test_defaults() -> None:
    profile = BindingProfile()
    assert profile.sender_uri == "rule16"
    assert profile.reply_to_on == "request"
    assert profile.optional_fields == {"destinationURI", "activityName"}
    assert profile.filter_properties == {"EventType", "objectType", "perceivedSeverity"}
    assert (profile.delivery_mode, profile.priority) == (DeliveryMode.NON_PERSISTENT, 4)
    assert (profile.first_batch, profile.first_batch_sent) == ("auto", 1)
    assert (profile.time_form, profile.severity_form) == ("string", "name")
    assert (profile.correlation, profile.validation, profile.fault_in_header) == ("both", "lenient", False)
    assert profile.jms_echo == "message-id"
    assert profile.soap_jms == "wsdl"


def test_presets() -> None:
    assert set(PRESETS) == {"default", "table3", "literal"}
    assert BindingProfile.preset("default") == BindingProfile()
    assert BindingProfile.preset("table3") == BindingProfile(sender_uri="always")
    assert BindingProfile.preset("literal") == BindingProfile(reply_to_on="all")
    with pytest.raises(ConfigError, match="default, table3, literal"):
        BindingProfile.preset("tabel3")


@pytest.mark.obligation("R20a")
@pytest.mark.parametrize(
    ("switch", "value"),
    [
        ("sender_uri", "never"),
        ("reply_to_on", "response"),
        ("optional_fields", {"correlationId"}),
        ("first_batch", 2),
        ("first_batch", True),
        ("delivery_mode", 3),
        ("ttl", {"REQUEST": -1}),
        ("ttl", {"REQUEST": "5"}),
        ("priority", 10),
        ("priority", True),
        ("filter_properties", {"severity"}),
        ("time_form", "seconds"),
        ("severity_form", "colour"),
        ("event_names", {"ObjectCreation": ""}),
        ("topic_routing", "figure11"),
        ("topic_routing", {"ObjectCreation": "Alarms"}),
        ("correlation", "none"),
        ("jms_echo", "none"),
        ("validation", "off"),
        ("soap_jms", True),
        ("fault_in_header", 1),
        ("ttl", 5),
        ("event_names", ["ObjectCreation"]),
        ("topic_routing", 5),
        ("optional_fields", 5),
        ("filter_properties", [5]),
    ],
)
def test_a_switch_refuses_what_it_does_not_have(switch: str, value: Any) -> None:
    """R20a for the attributes: any other name is an error."""
    with pytest.raises(ConfigError, match=switch):
        BindingProfile(**{switch: value})


@pytest.mark.obligation("R13b", "R20b")
def test_every_subset_is_accepted() -> None:
    """R13b, R20b: none and all included."""
    assert BindingProfile(optional_fields=frozenset()).optional_fields == frozenset()
    assert BindingProfile(optional_fields=OPTIONAL_FIELDS).optional_fields == OPTIONAL_FIELDS
    assert len(BindingProfile(filter_properties=FILTER_ATTRIBUTES).filter_properties) == 14


@pytest.mark.obligation("O7a", "O7b", "C21")
def test_time_to_live_by_event_then_message_type() -> None:
    """O7a, O7b, C21: 24 hours for events, 30 minutes for alarms, threshold crossings and everything else."""
    profile = BindingProfile()
    assert profile.time_to_live_ms("REQUEST") == MINUTES_30 == 1_800_000
    assert profile.time_to_live_ms("RESPONSE") == MINUTES_30
    assert profile.time_to_live_ms("NOTIFICATION", "ObjectCreation") == HOURS_24 == 86_400_000
    assert profile.time_to_live_ms("NOTIFICATION", "AlarmInformation") == MINUTES_30
    assert profile.time_to_live_ms("NOTIFICATION", "ThresholdCrossingAlert") == MINUTES_30
    assert profile.time_to_live_ms("NOTIFICATION", "Heartbeat") == HOURS_24


@pytest.mark.obligation("C21")
def test_a_ttl_table_lies_over_the_usual_one() -> None:
    profile = BindingProfile(ttl={"REQUEST": 5000, "ObjectCreation": 0})
    assert profile.time_to_live_ms("REQUEST") == 5000
    assert profile.time_to_live_ms("RESPONSE") == MINUTES_30
    assert profile.time_to_live_ms("NOTIFICATION", "ObjectCreation") == 0


@pytest.mark.obligation("O10a", "C27", "C29")
def test_event_names_and_routing() -> None:
    """C27, C29: CamelCase unless a table says otherwise; Figure 10 moves StateChange to Fault."""
    profile = BindingProfile(event_names={"ObjectCreation": "OBJECTCREATION"})
    assert profile.event_name("ObjectCreation") == "OBJECTCREATION"
    assert profile.event_name("ObjectDeletion") == "ObjectDeletion"
    assert profile.topic_category("StateChange") is TopicCategory.INVENTORY
    assert profile.topic_category("Heartbeat") is None
    figure10 = BindingProfile(topic_routing="figure10")
    assert figure10.topic_category("StateChange") is TopicCategory.FAULT
    assert figure10.topic_category("AlarmInformation") is TopicCategory.FAULT
    table = BindingProfile(topic_routing={"Heartbeat": "Fault"})
    assert table.topic_category("Heartbeat") is TopicCategory.FAULT
    assert table.topic_category("ProtectionSwitch") is EVENT_CATEGORIES["ProtectionSwitch"]


@pytest.mark.obligation("C23")
def test_first_batch_sent() -> None:
    """C23: from 1, unless 0 is asked for."""
    assert [BindingProfile(first_batch=first).first_batch_sent for first in ("auto", 0, 1)] == [1, 0, 1]


@pytest.mark.obligation("R9b")
def test_a_profile_is_frozen_through_and_through() -> None:
    """R9b: the selection cannot change after start."""
    table = {"REQUEST": 1}
    profile = BindingProfile(ttl=table, optional_fields=["timestamp"])
    table["REQUEST"] = 2
    assert profile.ttl["REQUEST"] == 1
    assert profile.optional_fields == frozenset({"timestamp"})
    with pytest.raises(dataclasses.FrozenInstanceError):
        profile.priority = 5
    with pytest.raises(TypeError):
        profile.ttl["REQUEST"] = 3
    assert pickle.loads(pickle.dumps(profile)) == profile
    assert hash(profile) == hash(dataclasses.replace(profile))
