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
from mtosi_jms.binding.selector import Finding, lint
from mtosi_jms.binding.table2 import ROWS
from mtosi_jms.errors import ConfigError, SelectorError
from mtosi_jms.jms.message import DeliveryMode
from mtosi_jms.jms.selector import parse
from mtosi_jms.jms.selector._text import HEADERS


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


# The linter: names and values that no MTOSI message has (R20c, C34).

EVERYTHING = [
    *(f"MTOSI_{name}" for name in sorted(FILTER_ATTRIBUTES)),
    *(row.property for row in ROWS),
    *sorted(HEADERS),
]


@pytest.mark.obligation("R20c", "C34")
def test_lenient_allows_table_4_table_2_and_six_headers() -> None:
    text = " OR ".join(f"{name} IS NULL" for name in EVERYTHING)
    assert len(EVERYTHING) == 14 + 16 + 6
    assert lint(text) == lint(parse(text)) == []


@pytest.mark.obligation("R20c", "C34")
def test_strict_allows_table_4_alone() -> None:
    found = lint(" OR ".join(f"{name} IS NULL" for name in EVERYTHING), mode="strict")
    assert [finding.identifier for finding in found] == EVERYTHING[14:]
    assert {finding.level for finding in found} == {"error"}
    assert all("Table 4 alone" in finding.reason for finding in found)


@pytest.mark.obligation("R20c", "C34")
@pytest.mark.parametrize(
    ("text", "position", "reason", "near"),
    [
        ("color = 'blue'", 0, "neither in Table 4 nor in Table 2", ""),
        ("MTOSI_EventType = 'StateChange' AND JMSXGroupID = 'a'", 36, "neither in Table 4", ""),
        ("MTOSIX_messageId = 'a'", 0, "neither in Table 4", "JMSMessageID"),
        ("perceivedSeverity = 'MAJOR'", 0, "the property's name differs", "MTOSI_perceivedSeverity"),
        ("MTOSI_vendorExtensions IS NULL", 0, "the property's name differs", "MTOSI_vendorExtension"),
        ("MTOSI_perceivedseverity = 'MAJOR'", 0, "wrong letter case", "MTOSI_perceivedSeverity"),
        ("mtosi_msgtype = 'REQUEST'", 0, "wrong letter case", "MTOSI_msgType"),
        ("MTOSI_percievedSeverity = 'x'", 0, "neither in Table 4", "MTOSI_perceivedSeverity"),
        ("eventType = 'x'", 0, "neither in Table 4", "MTOSI_EventType"),
        ("MTOSI_priority > 4", 0, "the header field priority is JMSPriority", "JMSPriority"),
        ("MTOSI_correlationId = 'x'", 0, "never a property (R3d)", ""),
        ("MTOSI_replyToURI = 'x'", 0, "JMSReplyTo, which selectors cannot name", ""),
        ("jmspriority > 4", 0, "wrong letter case", "JMSPriority"),
    ],
)
def test_names_that_no_message_has(text: str, position: int, reason: str, near: str) -> None:
    (finding,) = lint(text)
    assert reason in finding.reason
    assert (finding.position, finding.near, finding.level) == (position, near, "error")
    assert text[position:].startswith(finding.identifier)


@pytest.mark.obligation("R20c")
@pytest.mark.parametrize(
    ("text", "reason", "near"),
    [
        ("MTOSI_EventType = 'OBJECTCREATION'", "'OBJECTCREATION' is not one of its known values", "ObjectCreation"),
        ("MTOSI_EventType IN ('StateChange', 'Alarm')", "'Alarm' is not one of its known values", ""),
        ("MTOSI_perceivedSeverity <> 'Critical'", "'Critical' is not one of its known values", "CRITICAL"),
        ("'REQUST' = MTOSI_msgType", "'REQUST' is not one of its known values", "REQUEST"),
        ("MTOSI_communicationPattern = 'MultipleResponse'", "not one of its known values", "MultipleBatchResponse"),
        ("MTOSI_communicationStyle = 'msg'", "not one of its known values", "MSG"),
        ("MTOSI_activityStatus = 'OK'", "not one of its known values", ""),
        ("MTOSI_acknowledgeIndication = 'x'", "not one of its known values", ""),
        ("JMSDeliveryMode = 'NON-PERSISTENT'", "not one of its known values", "NON_PERSISTENT"),
        ("MTOSI_isEdgePointRelated = 'true'", "it is a Boolean and is used like a String", ""),
        ("MTOSI_isEdgePointRelated = 1", "it is a Boolean and is used like a number", ""),
        ("MTOSI_rootCauseAlarmIndication LIKE 't%'", "it is a Boolean and is used like a String", ""),
        ("MTOSI_batchSequenceEndOfReply IN ('true')", "it is a Boolean and is used like a String", ""),
        ("MTOSI_batchSequenceNumber = '1'", "it is a number and is used like a String", ""),
        ("MTOSI_perceivedSeverity = 1", "it is a String and is used like a number", ""),
        ("MTOSI_EventType", "it is a String and is used like a Boolean", ""),
        ("NOT JMSPriority", "it is a number and is used like a Boolean", ""),
        ("MTOSI_objectType + 1 = 2", "it is a String and is used like a number", ""),
        ("-MTOSI_objectType = 2", "it is a String and is used like a number", ""),
        ("MTOSI_osTime > 1700000000000", "Strings have no order in selectors (C33); times can be", ""),
        ("MTOSI_sourceTime BETWEEN 1 AND 2", "Strings have no order in selectors (C33); times can be", ""),
        ("MTOSI_objectName < MTOSI_batchSequenceNumber", "Strings have no order in selectors (C33)", ""),
        ("JMSDeliveryMode = 2", "it is a String and is used like a number", ""),
        ("(JMSPriority > 1) = MTOSI_objectName", "it is a String and is used like a Boolean", ""),
    ],
)
def test_uses_that_are_never_true_are_warnings(text: str, reason: str, near: str) -> None:
    (finding,) = lint(text)
    assert reason in finding.reason
    assert (finding.near, finding.level) == (near, "warning")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MTOSI_EventType = 'ObjectCreation' AND MTOSI_perceivedSeverity IN ('CRITICAL', 'MAJOR')",
        "MTOSI_isEdgePointRelated AND NOT MTOSI_rootCauseAlarmIndication = FALSE",
        "MTOSI_objectName LIKE 'MD=EMS1/%' OR MTOSI_osTime = '20240101000000Z'",
        "JMSPriority + 1 > MTOSI_batchSequenceNumber AND -JMSTimestamp < 0",
        "MTOSI_EventType LIKE 'Object%' AND MTOSI_EventType <> MTOSI_objectType",
        "(JMSPriority > 1) = MTOSI_isEdgePointRelated",
    ],
)
def test_sound_selectors_have_no_finding(text: str) -> None:
    assert lint(text) == []


@pytest.mark.obligation("R20c", "R10")
def test_attributes_that_publishers_do_not_map() -> None:
    text = "MTOSI_EventType = 'StateChange' AND MTOSI_layerRate = 'x'"
    (finding,) = lint(text, filters=["EventType"])
    assert (finding.identifier, finding.position, finding.level) == ("MTOSI_layerRate", 36, "warning")
    assert "do not map this attribute" in finding.reason
    assert lint(text, filters={"EventType", "layerRate"}) == []
    assert [finding.identifier for finding in lint(text, filters=BindingProfile())] == ["MTOSI_layerRate"]


def test_a_profile_tells_its_forms() -> None:
    upper = BindingProfile(event_names={"ObjectCreation": "OBJECTCREATION"})
    assert lint("MTOSI_EventType = 'OBJECTCREATION'", filters=upper) == []
    assert lint("MTOSI_EventType = 'ObjectCreation'", filters=upper)[0].near == "OBJECTCREATION"
    codes = BindingProfile(severity_form="code")
    assert lint("MTOSI_perceivedSeverity = '1'", filters=codes) == []
    assert len(lint("MTOSI_perceivedSeverity = 'CRITICAL'", filters=codes)) == 1
    millis = BindingProfile(time_form="millis", filter_properties=frozenset({"osTime"}))
    assert lint("MTOSI_osTime > 1700000000000", filters=millis) == []
    assert "a number and is used like a String" in lint("MTOSI_osTime = 'x'", filters=millis)[0].reason
    (optional,) = lint("MTOSI_activityName = 'a' AND MTOSI_timestamp = 'b'", filters=BindingProfile())
    assert (optional.identifier, optional.level) == ("MTOSI_timestamp", "warning")


def test_findings_stand_in_the_order_of_the_text() -> None:
    found = lint("b = 1 AND (a = 1 OR 5 < MTOSI_osTime) AND MTOSI_msgType = 'x'")
    assert [finding.identifier for finding in found] == ["b", "a", "MTOSI_osTime", "MTOSI_msgType"]
    assert str(found[1]).startswith("error: a at position 11: neither in Table 4")
    assert str(Finding("x", 3, "reason", "y")) == "error: x at position 3: reason; did you mean y?"


@pytest.mark.parametrize("arguments", [{"mode": "loose"}, {"filters": ["color"]}])
def test_wrong_usage_is_told(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        lint("a = 1", **arguments)


def test_a_text_that_is_no_selector_is_an_error() -> None:
    with pytest.raises(SelectorError):
        lint("a =")
