"""What selectors say of properties and messages: three-valued logic, types, Java's arithmetic, LIKE."""

from __future__ import annotations

import enum
import math
import pickle
from typing import Any

import pytest

from mtosi_jms.jms.message import DeliveryMode, JmsMessage, Long
from mtosi_jms.jms.selector import Selector, parse

T, F, U = True, False, None


def verdict(text: str, **properties: Any) -> bool | None:
    return parse(text).matches(properties)


@pytest.mark.obligation("P15")
@pytest.mark.parametrize(
    ("first", "second", "both", "either"),
    [
        (T, T, T, T),
        (T, F, F, T),
        (T, U, U, T),
        (F, T, F, T),
        (F, F, F, F),
        (F, U, F, U),
        (U, T, U, T),
        (U, F, F, U),
        (U, U, U, U),
    ],
)
def test_and_and_or_have_three_values(
    first: bool | None, second: bool | None, both: bool | None, either: bool | None
) -> None:
    assert verdict("a AND b", a=first, b=second) is both
    assert verdict("a OR b", a=first, b=second) is either
    assert verdict("a AND b AND a", a=first, b=second) is both


@pytest.mark.obligation("P15")
@pytest.mark.parametrize(("value", "expected"), [(T, F), (F, T), (U, U)])
def test_not_leaves_unknown_alone(value: bool | None, expected: bool | None) -> None:
    assert verdict("NOT a", a=value) is expected


@pytest.mark.obligation("P15")
@pytest.mark.parametrize(
    ("text", "properties", "expected"),
    [
        # Numbers, texts and booleans.
        ("a = 1", {"a": 1}, T),
        ("a = 1.0", {"a": 1}, T),
        ("a = 1", {"a": 1.5}, F),
        ("a <> 1", {"a": 1.5}, T),
        ("a = 'x'", {"a": "x"}, T),
        ("a = 'X'", {"a": "x"}, F),
        ("a <> 'X'", {"a": "x"}, T),
        ("a = 'it''s'", {"a": "it's"}, T),
        ("a = TRUE", {"a": True}, T),
        ("a <> true", {"a": False}, T),
        ("'x' = a", {"a": "x"}, T),
        ("5 > a", {"a": 4}, T),
        ("a < 5 AND a <= 4 AND a >= 4 AND a > 3", {"a": 4}, T),
        ("a", {"a": True}, T),
        ("TRUE", {}, T),
        ("FALSE OR NOT FALSE", {}, T),
        ("(a > 1) = TRUE", {"a": 2}, T),
        ("(a > 1) = b", {"a": 2, "b": False}, F),
        # Unlike values: false, both ways round.
        ("a = 1", {"a": "1"}, F),
        ("a <> 1", {"a": "1"}, F),
        ("a = '1'", {"a": 1}, F),
        ("a <> '1'", {"a": 1}, F),
        ("a > 1", {"a": "2"}, F),
        ("a = 1", {"a": True}, F),
        ("a = TRUE", {"a": 1}, F),
        ("a <> TRUE", {"a": 1}, F),
        ("a = 'true'", {"a": True}, F),
        ("a = b", {"a": "1", "b": 1}, F),
        ("a <> b", {"a": "1", "b": 1}, F),
        ("a < b", {"a": "1", "b": "2"}, F),
        ("a < b", {"a": False, "b": True}, F),
        ("a + 1 > 0", {"a": "1"}, F),
        ("NOT (a + 1 > 0)", {"a": "1"}, T),
        ("-a = -1", {"a": "1"}, F),
        ("+a = 1", {"a": True}, F),
        ("a", {"a": "true"}, F),
        ("a", {"a": 1}, F),
        ("NOT a", {"a": "x"}, T),
        ("a = b", {"a": [1], "b": [1]}, F),
        # NULL: unknown.
        ("a = 1", {}, U),
        ("a <> 1", {}, U),
        ("a = 'x'", {"a": None}, U),
        ("a <> 'x'", {}, U),
        ("a = b", {"a": 1}, U),
        ("a + 1 = 1", {}, U),
        ("a + b = 1", {"a": "x"}, U),
        ("-a = 1", {}, U),
        ("+a = 1", {}, U),
        ("a", {}, U),
        ("a = 1 OR a IS NULL", {}, T),
        ("a IS NULL", {"a": 0}, F),
        ("a IS NOT NULL", {"a": 0}, T),
        ("a IS NOT NULL", {}, F),
        # Precedence.
        ("NOT a = 1", {"a": 2}, T),
        ("a OR b AND c", {"a": True, "b": True, "c": False}, T),
        ("(a OR b) AND c", {"a": True, "b": True, "c": False}, F),
        ("NOT a AND b", {"a": False, "b": False}, F),
        ("1 + 2 * 3 = 7", {}, T),
        ("(1 + 2) * 3 = 9", {}, T),
        ("7 - 2 - 1 = 4", {}, T),
        ("8 / 4 / 2 = 1", {}, T),
        ("-a * -2 = 6", {"a": 3}, T),
        ("a--1 = 4", {"a": 3}, T),
    ],
)
def test_comparisons_and_precedence(text: str, properties: dict[str, Any], expected: bool | None) -> None:
    assert parse(text).matches(properties) is expected


@pytest.mark.obligation("P15")
@pytest.mark.parametrize(
    ("text", "properties", "expected"),
    [
        ("a BETWEEN 1 AND 3", {"a": 1}, T),
        ("a BETWEEN 1 AND 3", {"a": 3}, T),
        ("a BETWEEN 1 AND 3", {"a": 3.5}, F),
        ("a BETWEEN b AND b + 2", {"a": 3, "b": 1}, T),
        ("a NOT BETWEEN 1 AND 3", {"a": 2}, F),
        ("a NOT BETWEEN 1 AND 3", {"a": 4}, T),
        ("a NOT BETWEEN 1 AND 3", {"a": "4"}, F),
        ("a BETWEEN 1 AND 3", {"a": "2"}, F),
        ("a BETWEEN 1 AND 3", {}, U),
        ("a BETWEEN b AND 3", {"a": 4}, F),
        ("a NOT BETWEEN b AND 3", {"a": 4}, T),
        ("a BETWEEN 1 AND 3 AND c", {"a": 2, "c": True}, T),
        ("a IN ('UK', 'US')", {"a": "UK"}, T),
        ("a IN ('UK', 'US')", {"a": "Peru"}, F),
        ("a IN ('UK', 'US')", {}, U),
        ("a IN ('1')", {"a": 1}, F),
        ("a NOT IN ('UK', 'US')", {"a": "UK"}, F),
        ("a NOT IN ('UK', 'US')", {"a": "Peru"}, T),
        ("a NOT IN ('UK', 'US')", {}, U),
        ("a NOT IN ('1')", {"a": 1}, T),
        ("a = 'x' OR a = 'y'", {"a": "y"}, T),
        ("a = 'x' OR a = 'y' OR a IN ('z')", {"a": "z"}, T),
        ("a = 'x' OR a = 'y'", {"a": 1}, F),
        ("a = 'x' OR a = 'y'", {}, U),
        ("a = 'x' OR b = 'y'", {"b": "y"}, T),
        ("a = 'x' OR a NOT IN ('x')", {"a": "w"}, T),
        ("a LIKE '12%3'", {"a": "123"}, T),
        ("a LIKE '12%3'", {"a": "12993"}, T),
        ("a LIKE '12%3'", {"a": "1234"}, F),
        ("a NOT LIKE '12%3'", {"a": "1234"}, T),
        ("a NOT LIKE '12%3'", {"a": "123"}, F),
        ("a NOT LIKE '12%3'", {}, U),
        ("a NOT LIKE '12%3'", {"a": 123}, T),
        ("a LIKE '1%'", {"a": 123}, F),
        ("a LIKE 'l_se'", {"a": "lose"}, T),
        ("a LIKE 'l_se'", {"a": "loose"}, F),
        (r"a LIKE '\_%' ESCAPE '\'", {"a": "_foo"}, T),
        (r"a LIKE '\_%' ESCAPE '\'", {"a": "bar"}, F),
        ("a LIKE '%'", {"a": ""}, T),
        ("a LIKE ''", {"a": ""}, T),
        ("a LIKE ''", {"a": "x"}, F),
        ("a LIKE 'aba%aba'", {"a": "ababa"}, F),
        ("a LIKE 'aba%aba'", {"a": "abaaba"}, T),
        ("a LIKE '%b_d%'", {"a": "abcdbxd"}, T),
        ("a LIKE '_%_'", {"a": "x"}, F),
        ("a LIKE '_%_'", {"a": "xy"}, T),
        ("a LIKE 'a_c'", {"a": "a\nc"}, T),
        ("a LIKE 'a%c'", {"a": "a\n\nc"}, T),
        ("a LIKE '.*'", {"a": "xx"}, F),
        ("a LIKE '%%x%%'", {"a": "axb"}, T),
        ("a LIKE '10!%' ESCAPE '!'", {"a": "10%"}, T),
        ("a LIKE '!!%' ESCAPE '!'", {"a": "!x"}, T),
    ],
)
def test_between_in_and_like(text: str, properties: dict[str, Any], expected: bool | None) -> None:
    assert parse(text).matches(properties) is expected


@pytest.mark.obligation("P16", "P15", "R10")
def test_the_example_of_the_document_selects_both_events() -> None:
    selector = parse("MTOSI_EventType = 'OBJECTCREATION'      OR      MTOSI_EventType = 'OBJECTDELETION'")
    assert selector.identifiers == {"MTOSI_EventType"}
    for event, expected in (("OBJECTCREATION", True), ("OBJECTDELETION", True), ("ALARM", False)):
        assert selector.accepts(JmsMessage(properties={"MTOSI_EventType": event})) is expected
    assert not selector.accepts(JmsMessage())


@pytest.mark.parametrize(
    ("text", "properties", "expected"),
    [
        ("2147483647 + 1 = -2147483648", {}, T),
        ("2147483647L + 1 = 2147483648", {}, T),
        ("a + 1 < 0", {"a": 2**31 - 1}, T),
        ("a + 1 > 0", {"a": Long(2**31 - 1)}, T),
        ("a + 1 < 0", {"a": Long(2**63 - 1)}, T),
        ("a * a > 0", {"a": 2**31}, T),
        ("-a = a", {"a": -(2**31)}, T),
        ("-a = 2147483648", {"a": Long(-(2**31))}, T),
        ("-7 / 2 = -3", {}, T),
        ("7 / -2 = -3", {}, T),
        ("7 / 2.0 = 3.5", {}, T),
        ("-9223372036854775808 / -1 < 0", {}, T),
        ("a / 0 = 1", {"a": 1}, U),
        ("1.0 / 0 > 1E300", {}, T),
        ("-1.0 / 0 < -1E300", {}, T),
        ("0.0 / 0 = 0.0 / 0", {}, F),
        ("0.0 / 0 <> 1", {}, T),
        ("1E308 * 10 > 1E308", {}, T),
        # A long and a double are compared as doubles.
        ("a = 9007199254740992.0", {"a": Long(2**53 + 1)}, T),
        ("a = 9007199254740992", {"a": Long(2**53 + 1)}, F),
        ("a = b", {"a": Long(2**53 + 1), "b": 2.0**53}, T),
        ("a > 1.0", {"a": 10**400}, T),
        ("a < 1.0", {"a": -(10**400)}, T),
        ("a = 0.1f", {"a": 0.10000000149011612}, T),
        ("a = 0.1d", {"a": 0.1}, T),
        ("a = 0x1F AND b = 017", {"a": 31, "b": 15}, T),
        ("a = 7. AND b = .5 AND c = 7E3 AND d = -57.9E2", {"a": 7, "b": 0.5, "c": 7000, "d": -5790.0}, T),
        ("a = +62 AND a = +6.2e1", {"a": 62}, T),
    ],
)
def test_numbers_are_those_of_java(text: str, properties: dict[str, Any], expected: bool | None) -> None:
    assert parse(text).matches(properties) is expected


class Word(enum.StrEnum):
    MAJOR = "MAJOR"


def test_enumerations_count_as_the_text_that_they_are() -> None:
    assert verdict("a = 'MAJOR'", a=Word.MAJOR) is True
    assert verdict("a <> 'MINOR' AND a IN ('MAJOR') AND a LIKE 'M%' AND a = b", a=Word.MAJOR, b="MAJOR") is True


@pytest.mark.obligation("P39")
def test_headers_and_properties_of_a_message_are_asked() -> None:
    message = JmsMessage(
        properties={"MTOSI_activityName": "getInventory", "MTOSI_batchSequenceNumber": 3},
        delivery_mode=DeliveryMode.PERSISTENT,
        priority=7,
        message_id="ID:1",
        timestamp_ms=1_700_000_000_000,
        correlation_id="ID:0",
        jms_type="car",
    )
    for text in (
        "MTOSI_activityName = 'getInventory' AND JMSPriority > 6",
        "JMSDeliveryMode = 'PERSISTENT'",
        "JMSMessageID LIKE 'ID:%' AND JMSCorrelationID = 'ID:0' AND JMSType = 'car'",
        "JMSTimestamp BETWEEN 1600000000000 AND 1800000000000",
        "MTOSI_batchSequenceNumber + 4 = JMSPriority",
        " \t",
        "",
    ):
        assert parse(text).accepts(message), text
    for text in ("JMSPriority < 7", "JMSDeliveryMode = 'NON_PERSISTENT'", "JMSDeliveryMode = 2", "JMSXGroupID = 'x'"):
        assert not parse(text).accepts(message), text


@pytest.mark.obligation("P15")
def test_a_header_that_is_not_there_is_null() -> None:
    message = JmsMessage()
    null = "JMSMessageID IS NULL AND JMSTimestamp IS NULL AND JMSCorrelationID IS NULL AND JMSType IS NULL"
    assert parse(null).accepts(message)
    assert parse("JMSDeliveryMode = 'NON_PERSISTENT' AND JMSPriority = 4").accepts(message)
    assert not parse("JMSTimestamp > 0").accepts(message)
    assert not parse("NOT JMSTimestamp > 0").accepts(message)


def test_matches_takes_headers_by_name_from_the_mapping() -> None:
    assert verdict("JMSPriority = 4 AND a", JMSPriority=4, a=True) is True


@pytest.mark.parametrize("text", ["", " ", " \t\r\n\f"])
def test_a_blank_selector_accepts_everything(text: str) -> None:
    selector = parse(text)
    assert selector.matches({}) is True
    assert selector.accepts(JmsMessage())
    assert (selector.text, str(selector), selector.identifiers, selector.tree) == (text, "", frozenset(), None)
    assert selector == parse("")


def test_selectors_are_values() -> None:
    one, two = parse("a=1 and (b='x' or (c))"), parse("a = 1 AND (b = 'x' OR c)")
    assert one == two
    assert hash(one) == hash(two)
    assert one != parse("a = 1 AND b = 'x' OR c")
    assert one != "a = 1"
    assert (one.text, str(one)) == ("a=1 and (b='x' or (c))", "a = 1 AND (b = 'x' OR c)")
    assert repr(one) == "Selector(\"a = 1 AND (b = 'x' OR c)\")"
    again: Selector = pickle.loads(pickle.dumps(one))
    assert again == one
    assert again.text == one.text
    assert again.matches({"a": 1, "c": True}) is True


def test_what_no_wire_carries_is_like_nothing() -> None:
    assert verdict("a = 1", a=math.nan) is False
    assert verdict("a <> 1", a=math.nan) is True
    assert verdict("a <> 1 OR a = 1 OR a > 1", a=b"1") is False
