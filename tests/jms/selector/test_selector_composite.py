"""Selectors of several parts (001-I13 to 001-I15, 001-E6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.binding.selector import P
from mtosi_jms.errors import SelectorError
from mtosi_jms.jms.message import DeliveryMode, JmsMessage
from mtosi_jms.jms.selector import composite, parse

PARTS = st.sampled_from(["a = 1", "b LIKE 'x%'", "a = 1 OR b = 'y'", "NOT (a > 1)", "c IS NULL", "d", " a <> 2 "])
MESSAGES = st.fixed_dictionaries(
    {}, optional={"a": st.integers(0, 3), "b": st.sampled_from(["x", "y"]), "c": st.just(1), "d": st.booleans()}
)


@pytest.mark.obligation("001-I13", "001-I14")
def test_each_part_stands_in_parentheses() -> None:
    made = composite(
        "MTOSI_objectType = 'ME'",
        P.perceivedSeverity == "MAJOR",
        timestamp="> 1000",
        delivery_mode="= 'PERSISTENT'",
        priority=" BETWEEN 5 AND 9",
        message_id="<> 'ID:7'",
        correlation_id="LIKE 'OS-%'",
    )
    assert made.text == (
        "(MTOSI_objectType = 'ME') AND (MTOSI_perceivedSeverity = 'MAJOR') AND (JMSTimestamp > 1000)"
        " AND (JMSDeliveryMode = 'PERSISTENT') AND (JMSPriority BETWEEN 5 AND 9) AND (JMSMessageID <> 'ID:7')"
        " AND (JMSCorrelationID LIKE 'OS-%')"
    )
    properties = {"MTOSI_objectType": "ME", "MTOSI_perceivedSeverity": "MAJOR"}
    message = JmsMessage(
        body=b"",
        properties=properties,
        timestamp_ms=1001,
        delivery_mode=DeliveryMode.PERSISTENT,
        priority=5,
        message_id="ID:8",
        correlation_id="OS-1",
    )
    assert made.accepts(message)


def test_blank_parts_are_left_out_and_one_part_stands_alone() -> None:
    assert composite().text == ""
    assert composite(" ", "a = 1", priority="").text == "a = 1"
    assert composite(parse("a = 1 OR b = 2"), priority="= 4").text == "(a = 1 OR b = 2) AND (JMSPriority = 4)"


@pytest.mark.obligation("001-I15", "001-E6")
@pytest.mark.parametrize(
    "part", ["a = 1) OR (b = 2", "a =", "a = 'x", "> 4", "JMSRedelivered = TRUE", "JMSMessageID > 'ID:1'", "AND = 1"]
)
def test_a_part_is_a_condition_by_itself(part: str) -> None:
    with pytest.raises(SelectorError):
        composite("a = 1", part)


@pytest.mark.obligation("001-E6")
def test_texts_have_no_order() -> None:
    with pytest.raises(SelectorError):
        composite(message_id="> 'WMBRK123456'")
    with pytest.raises(SelectorError):
        composite(priority="= 4) OR (JMSPriority = 5")


@given(st.lists(PARTS, min_size=1, max_size=4), MESSAGES)
def test_all_parts_must_hold(parts: list[str], properties: dict[str, object]) -> None:
    verdicts = [parse(part).matches(properties) for part in parts]
    wanted = False if False in verdicts else None if None in verdicts else True
    assert composite(*parts).matches(properties) is wanted
