"""One selector engine for messages and for events; and constraints of Extended TCL that channels evaluate."""

from __future__ import annotations

from typing import Any as Anything

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.bridge.events import Any, Member, Property, StructuredEvent, TCKind, TypeCode, any_of
from mtosi_jms.bridge.filters import accepts_event, to_etcl
from mtosi_jms.bridge.omg import event_of, message_of
from mtosi_jms.bridge.qos import qos
from mtosi_jms.errors import SelectorError
from mtosi_jms.jms import JmsMessage
from mtosi_jms.jms.selector import parse

from .event_maker import EVENTS, MESSAGES

ENUM = TypeCode(TCKind.enum, "IDL:x/E:1.0", "E", (Member("PS_MAJOR"), Member("PS_MINOR")))
ALARM = StructuredEvent(
    "tmf_mtnm",
    "NT_ALARM",
    variable_header=(Property("Priority", qos(Priority=7)["Priority"]),),
    filterable_data=(
        Property("perceivedSeverity", Any(ENUM, "PS_MAJOR")),
        Property("layerRate", any_of(20)),
        Property("odd name", any_of("x")),
        Property("edge", any_of(True)),
    ),
)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("perceivedSeverity = 'PS_MAJOR'", True),
        ("$fd_perceivedSeverity IN ('PS_MAJOR', 'PS_CRITICAL') AND layerRate BETWEEN 19 AND 21", True),
        ("$fd_odd$u0020name LIKE '_'", True),
        ("$type_name = 'NT_ALARM' AND $domain_type = 'tmf_mtnm' AND edge", True),
        ("JMSPriority = 7 AND JMSType = 'Structured Event'", True),
        ("JMSDeliveryMode = 'PERSISTENT'", True),
        ("nothing IS NULL", True),
        ("layerRate = 'x'", False),
        ("nothing = 1 OR nothing <> 1", False),
        ("", True),
    ],
)
@pytest.mark.obligation("003-4")
def test_selectors_of_events(text: str, verdict: bool) -> None:
    assert accepts_event(parse(text), ALARM) is verdict


@given(MESSAGES, st.data())
@pytest.mark.obligation("003-4")
def test_a_message_and_its_event_get_the_same_verdict(message: JmsMessage, data: Anything) -> None:
    names = sorted({"JMSPriority", "JMSCorrelationID", "JMSType", "x", *filter(str.isidentifier, message.properties)})
    name = data.draw(st.sampled_from([one for one in names if one.isascii()]))
    wanted = data.draw(st.sampled_from(["1", "'n'", "TRUE"]))
    text = data.draw(
        st.sampled_from([f"{name} = {wanted}", f"{name} <> {wanted}", f"{name} IS NULL", f"{name} LIKE '%n%'"])
    )
    selector = parse(text)
    event = event_of(message, now_ms=0)
    if event is not None:
        assert accepts_event(selector, event) is selector.accepts(message)


@given(EVENTS, st.sampled_from(["JMSPriority > 4", "$type_name = 'NT_ALARM'", "$fd_nabc = 1", "$fd_nabc IS NULL"]))
@pytest.mark.obligation("003-4")
def test_an_event_and_its_message_get_the_same_verdict(event: StructuredEvent, text: str) -> None:
    selector = parse(text)
    message = message_of(event, now_ms=0)
    assert message is not None
    assert accepts_event(selector, event) is selector.accepts(message)


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("", ""),
        ("a = 1", "(exist $a and $a == 1)"),
        ("NOT a = 1", "(exist $a and $a != 1)"),
        ("a <> 'it''s'", r"(exist $a and $a != 'it\'s')"),
        ("NOT (a > 1 AND b <= 2.5)", "((exist $a and $a <= 1) or (exist $b and $b > 2.5))"),
        ("a + b * 2 > -c", "(exist $a and exist $b and exist $c and ($a + ($b * 2)) > (-$c))"),
        ("a BETWEEN 1 AND 2", "(exist $a and ($a >= 1 and $a <= 2))"),
        ("a NOT BETWEEN 1 AND 2", "(exist $a and ($a < 1 or $a > 2))"),
        ("a IN ('x', 'y')", "(exist $a and ($a == 'x' or $a == 'y'))"),
        ("a NOT IN ('x')", "(exist $a and ($a != 'x'))"),
        ("a IS NULL", "(not (exist $a))"),
        ("a IS NOT NULL", "(exist $a)"),
        ("NOT a IS NULL", "(exist $a)"),
        ("a LIKE 'x'", "(exist $a and $a == 'x')"),
        ("a LIKE '%x%'", "(exist $a and 'x' ~ $a)"),
        ("a NOT LIKE '%x%'", "(exist $a and not ('x' ~ $a))"),
        ("a", "(exist $a and $a == TRUE)"),
        ("NOT a", "(exist $a and $a == FALSE)"),
        ("a = TRUE", "(exist $a and $a == TRUE)"),
        ("TRUE", "TRUE"),
        ("NOT TRUE", "FALSE"),
        ("$fd_a = 1", "(exist $a and $a == 1)"),
        ("$fd_a$u0024b = 1", "(exist $.filterable_data(a$b) and $.filterable_data(a$b) == 1)"),
        ("$ohf_a = 1", "(exist $.header.variable_header(a) and $.header.variable_header(a) == 1)"),
        ("$type_name = 'x'", "($type_name == 'x')"),
        ("$domain_type = 'x'", "($domain_name == 'x')"),
        ("$type_name IS NULL", "FALSE"),
        ("JMSPriority > 4", "(exist $Priority and $Priority > 4)"),
        ("JMSDeliveryMode = 'PERSISTENT'", "(exist $EventReliability and $EventReliability == 1)"),
        ("'NON_PERSISTENT' <> JMSDeliveryMode", "(exist $EventReliability and $EventReliability != 0)"),
    ],
)
@pytest.mark.obligation("003-4")
def test_constraints(text: str, constraint: str) -> None:
    assert to_etcl(parse(text)) == constraint


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a LIKE 'x_'", 0),
        ("a LIKE 'x%'", 0),
        ("b = 1 AND a LIKE '%x'", 10),
        ("a / 2 > 1", 0),
        ("JMSDeliveryMode = 'OTHER'", 0),
        ("JMSDeliveryMode = a", 0),
        ("(a = 1) = TRUE", 0),
    ],
)
@pytest.mark.obligation("003-4")
def test_what_channels_cannot_tell_is_refused(text: str, position: int) -> None:
    with pytest.raises(SelectorError) as caught:
        to_etcl(parse(text))
    assert abs(caught.value.position - position) <= 4


def test_a_name_that_no_constraint_can_have() -> None:
    with pytest.raises(SelectorError, match="no name"):
        to_etcl(parse("$fd_a$u0020b = 1"))
