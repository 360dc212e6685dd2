"""Selectors written in Python: `P`, its operators, and that the text means what the expression does."""

from __future__ import annotations

import enum
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.binding.profile import FILTER_ATTRIBUTES
from mtosi_jms.binding.selector import P
from mtosi_jms.binding.table2 import ROWS
from mtosi_jms.errors import ConfigError, SelectorError
from mtosi_jms.jms.message import RESERVED_WORDS, DeliveryMode, JmsMessage, Long
from mtosi_jms.jms.selector import Condition, composite, parse
from mtosi_jms.jms.selector._builder import Operand
from mtosi_jms.jms.selector._selector import compile_condition
from mtosi_jms.jms.selector._text import HEADERS

A, B, C = P["a"], P["b"], P["c"]
NEGATIVE = -B


class Word(enum.StrEnum):
    MAJOR = "MAJOR"


@pytest.mark.obligation("P39", "R10")
@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (P.perceivedSeverity == "CRITICAL", "MTOSI_perceivedSeverity = 'CRITICAL'"),
        (P.activityName == "getInventory", "MTOSI_activityName = 'getInventory'"),
        (P.MTOSI_EventType != "StateChange", "MTOSI_EventType <> 'StateChange'"),
        (P.vendorExtensions.is_null(), "MTOSI_vendorExtension IS NULL"),
        (P.vendorExtension.is_not_null(), "MTOSI_vendorExtension IS NOT NULL"),
        (P.JMSPriority > 6, "JMSPriority > 6"),
        (P["color"] == "blue", "color = 'blue'"),
        (P["perceivedSeverity"] == "x", "perceivedSeverity = 'x'"),
        (A == "it's", "a = 'it''s'"),
        (A == "' OR TRUE OR '", "a = ''' OR TRUE OR '''"),
        (A == Word.MAJOR, "a = 'MAJOR'"),
        (A == True, "a = TRUE"),  # noqa: E712
        (A != False, "a <> FALSE"),  # noqa: E712
        (A == B, "a = b"),
        (A < 1, "a < 1"),
        (A <= -1.5, "a <= -1.5"),
        (A > 1e22, "a > 1E22"),
        (A >= 2**40, "a >= 1099511627776"),
        (A + Long(5) == 6, "a + 5L = 6"),
        (5 > A, "a < 5"),  # noqa: SIM300
        ("x" == A, "a = 'x'"),  # noqa: SIM300
        (A.like("a_%"), "a LIKE 'a_%'"),
        (A.like("10!%%", "!"), "a LIKE '10!%%' ESCAPE '!'"),
        (A.startswith("MD=EMS1/"), "a LIKE 'MD=EMS1/%'"),
        (A.startswith("a_b%c!"), "a LIKE 'a!_b!%c!!%' ESCAPE '!'"),
        (A.in_("x", "y'z"), "a IN ('x', 'y''z')"),
        (A.in_(["x", Word.MAJOR]), "a IN ('x', 'MAJOR')"),
        (A.in_("xyz"), "a IN ('xyz')"),
        (A.in_(1, 2.5), "a = 1 OR a = 2.5"),
        (A.in_({7}), "a = 7"),
        (A.between(1, B + 1), "a BETWEEN 1 AND b + 1"),
        ((A == 1) & (B == 2) | C, "a = 1 AND b = 2 OR c"),
        ((A == 1) & ((B == 2) | C), "a = 1 AND (b = 2 OR c)"),
        ((A & B) & (C & A), "a AND b AND c AND a"),
        (~A, "NOT a"),
        (~(A == 1), "NOT (a = 1)"),
        (~(A & B), "NOT (a AND b)"),
        (~~A, "NOT NOT a"),
        (True & A, "TRUE AND a"),
        (A | False, "a OR FALSE"),
        ((A > 1) == True, "(a > 1) = TRUE"),  # noqa: E712
        (A + B * 2 - C / 4 > 0, "a + b * 2 - c / 4 > 0"),
        ((A + B) * 2 > 0, "(a + b) * 2 > 0"),
        (A - (B - C) > 0, "a - (b - c) > 0"),
        (1 + A > 2 - B, "1 + a > 2 - b"),
        (2 * A >= 6 / B, "2 * a >= 6 / b"),
        (-(A + 1) == -NEGATIVE, "-(a + 1) = -(-b)"),
        (-(A + 1) == A - -5, "-(a + 1) = a - -5"),
    ],
)
def test_expressions_have_the_text_that_is_meant(expression: Condition, text: str) -> None:
    assert str(expression) == text
    selector = expression.selector()
    assert str(selector) == text
    assert selector == parse(text)
    assert repr(expression) == f"<Condition {text}>"


def test_all_names_of_the_tables_are_known_with_and_without_prefix() -> None:
    for name in FILTER_ATTRIBUTES:
        assert str(getattr(P, name)) == str(getattr(P, f"MTOSI_{name}")) == f"MTOSI_{name}"
    for row in ROWS:
        assert str(getattr(P, row.name)) == str(getattr(P, row.property)) == row.property
    for header in HEADERS:
        assert str(getattr(P, header)) == header
    assert {"perceivedSeverity", "msgType", "JMSPriority"} <= set(dir(P))
    assert repr(P.msgType) == "<Property MTOSI_msgType>"
    assert repr(P) == "P"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: A < "x", "texts and booleans have no order"),
        (lambda: A >= True, "texts and booleans have no order"),
        (lambda: (A == 1) == "x", "never true"),
        (lambda: A + "x", "a number is needed beside +"),
        (lambda: Operand.__neg__(A == 1), "a number is needed behind -"),
        (lambda: A & "x", "a condition is needed beside AND"),
        (lambda: (A + 1) == None, "use is_null"),  # noqa: E711
        (lambda: A == [1], "no literal for the list"),
        (lambda: P["a"].between(math.nan, 1), "no literal for the float nan"),
        (lambda: math.inf < A, "no literal for the float inf"),
        (lambda: A == 2**63, "no literal for the int"),
        (lambda: A == b"x", "no literal for the bytes"),
        (A.in_, "IN needs a value"),
        (lambda: A.in_([]), "IN needs a value"),
        (lambda: A.like("x", "ab"), "one character"),
        (lambda: A.like("x!", "!"), "before %, _ or itself"),
        (lambda: A.between("a", 1), "a number is needed of BETWEEN"),
        (lambda: P["a b"], "not a name that a selector can have"),
        (lambda: P["JMSReplyTo"], "not a name that a selector can have"),
        (lambda: P["null"], "not a name that a selector can have"),
        (lambda: sum([A] * 70), "nested more than 64 deep"),
    ],
)
def test_what_jms_has_not_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_an_expression_has_no_truth_of_its_own() -> None:
    for use in (lambda: (A == 1) and (B == 2), lambda: 1 < A < 5, lambda: A in ("x", "y"), lambda: not (A == 1)):  # noqa: SIM201
        with pytest.raises(ConfigError, match=r"join conditions by & and \|, negate by ~"):
            use()
    with pytest.raises(TypeError, match="unhashable"):
        hash(A == 1)


def test_a_misspelt_name_is_told_and_not_sent() -> None:
    with pytest.raises(AttributeError, match=r"percievedSeverity .* did you mean P\.perceivedSeverity\?"):
        _ = P.percievedSeverity
    with pytest.raises(AttributeError, match=r"another property: P\['color'\]"):
        _ = P.color


def test_arithmetic_alone_is_no_selector() -> None:
    """A property may be one: it may be a boolean."""
    assert str(A.selector()) == "a"
    assert not hasattr(A + 1, "selector")
    with pytest.raises(SelectorError):
        parse(str(A + 1))


NUMBERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False))
NAMES = st.sampled_from(["a", "b", "c"]).map(lambda name: P[name])


def operands() -> st.SearchStrategy[Any]:
    steps = [
        lambda x, y: x + y,
        lambda x, y: x - y,
        lambda x, y: x * y,
        lambda x, y: x / y,
        lambda x, _: -x,
    ]
    return st.recursive(
        NAMES,
        lambda inner: st.builds(lambda f, x, y: f(x, y), st.sampled_from(steps), inner, st.one_of(inner, NUMBERS)),
        max_leaves=6,
    )


def conditions() -> st.SearchStrategy[Any]:
    numbers = st.one_of(operands(), NUMBERS)
    compared = [lambda x, y: x == y, lambda x, y: x != y, lambda x, y: x < y, lambda x, y: x >= y]
    simple = st.one_of(
        NAMES,
        st.builds(lambda f, x, y: f(x, y), st.sampled_from(compared), operands(), numbers),
        st.builds(lambda x, y: x == y, NAMES, st.one_of(st.text(), st.booleans())),
        st.builds(lambda x, y, z: x.between(y, z), operands(), numbers, numbers),
        st.builds(lambda x, text: x.startswith(text), NAMES, st.text(alphabet="ab%_!'")),
        st.builds(lambda x, texts: x.in_(texts), NAMES, st.lists(st.text(), min_size=1, max_size=3)),
        st.builds(lambda x: x.is_null(), NAMES),
    )
    joined = [lambda x, y: x & y, lambda x, y: x | y, lambda x, _: ~x, lambda x, _: x == True]  # noqa: E712
    return st.recursive(
        simple, lambda inner: st.builds(lambda f, x, y: f(x, y), st.sampled_from(joined), inner, inner), max_leaves=8
    )


VALUES = st.one_of(st.text(alphabet="ab%_!'"), st.booleans(), NUMBERS, st.none())


@pytest.mark.obligation("P15")
@given(conditions(), st.dictionaries(st.sampled_from("abc"), VALUES))
def test_the_text_of_an_expression_has_its_verdict(expression: Condition, properties: dict[str, Any]) -> None:
    """Parsed again, the text evaluates as the tree does that was built, and is as it was."""
    selector = parse(str(expression))
    assert str(selector) == str(expression)
    assert selector.matches(properties) is compile_condition(expression.tree)(properties.get)


def test_it_filters_messages() -> None:
    wanted = (P.EventType.in_("ObjectCreation", "ObjectDeletion") & P.objectName.startswith("MD=E_1/")).selector()
    found = [
        wanted.accepts(JmsMessage(properties={"MTOSI_EventType": event, "MTOSI_objectName": name}))
        for event, name in (("ObjectCreation", "MD=E_1/ME=1"), ("ObjectCreation", "MD=EX1/ME=1"), ("Alarm", "MD=E_1/"))
    ]
    assert found == [True, False, False]


# Selectors of several parts (001-I13 to 001-I15, 001-E6).

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


@given(st.lists(PARTS, min_size=1, max_size=4), MESSAGES)
def test_all_parts_must_hold(parts: list[str], properties: dict[str, object]) -> None:
    verdicts = [parse(part).matches(properties) for part in parts]
    wanted = False if False in verdicts else None if None in verdicts else True
    assert composite(*parts).matches(properties) is wanted


# docs/selectors.md: its code runs and gives what stands beside it.


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "selectors.md").read_text(encoding="utf-8")


def blocks(page: str) -> list[str]:
    """The code of the page; what needs Spark runs in tests/spark."""
    return re.findall(r"(?<!<!-- spark -->\n)^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def test_each_line_gives_what_its_comment_says(page: str) -> None:
    """What follows a colon in the comment is for the reader."""
    first = blocks(page)[0]
    names: dict[str, Any] = {}
    exec(first, names)
    lines = [line.partition("# ")[::2] for line in first.splitlines() if "# " in line]
    assert len(lines) == 4
    assert [repr(eval(code, names)) for code, _ in lines] == [comment.partition(":")[0] for _, comment in lines]


def test_what_the_examples_print_stands_below_them(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks(page):
        exec(block, {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 4
    prose = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"^    (\S.*)$", prose, re.MULTILINE) == printed


@pytest.mark.obligation("001-I15")
def test_words_and_headers_are_all_named(page: str) -> None:
    for name in (*RESERVED_WORDS, *HEADERS):
        assert name in page
