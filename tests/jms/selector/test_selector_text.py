"""Selector text: what is one and what is none, where it is wrong, its canonical form, and texts made to hurt."""

from __future__ import annotations

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import SelectorError
from mtosi_jms.jms.selector import parse
from mtosi_jms.jms.selector._text import HEADERS, MAX_LENGTH, is_name
from mtosi_jms.jms.selector.nodes import MAX_DEPTH

INVALID = [
    ("a >", 3, "an operand is missing before the end"),
    ("= 1", 0, "an operand is missing before ="),
    ("AND a = 1", 0, "an operand is missing before AND"),
    ("a = 1 AND", 9, "an operand is missing"),
    ("not", 3, "an operand is missing"),
    ("a b", 2, "an operator is missing before a name"),
    ("a = 1)", 5, "an operator is missing before )"),
    ("(a = 1", 6, ") is missing before the end"),
    ("()", 1, "an operand is missing before )"),
    ("a = 1 2", 6, "an operator is missing before a number"),
    ("a = 'x' 'y'", 8, "an operator is missing before a string"),
    ("a = NOT b", 4, "an operand is missing before NOT"),
    ("a = NULL", 4, "an operand is missing before NULL"),
    # Comparisons do not chain.
    ("a = b = c", 6, "do not chain"),
    ("1 < a < 5", 6, "do not chain"),
    ("a IS NULL IS NULL", 10, "do not chain"),
    ("a BETWEEN 1 AND 2 = TRUE", 18, "do not chain"),
    # Types.
    ("'x'", 0, "a condition is needed as a selector, not a text"),
    ("5", 0, "a condition is needed as a selector, not a number"),
    ("a + 1", 2, "a condition is needed as a selector, not a number"),
    ("NOT 5", 4, "a condition is needed behind NOT"),
    ("a AND 'x'", 6, "a condition is needed beside AND"),
    ("1 OR a", 0, "a condition is needed beside OR"),
    ("'a' > 'b'", 0, "texts and booleans have no order"),
    ("a > 'b'", 4, "texts and booleans have no order"),
    ("a <= TRUE", 5, "texts and booleans have no order"),
    ("(a = 1) > b", 3, "texts and booleans have no order"),
    ("1 = 'x'", 4, "a number compared with a text is never true"),
    ("TRUE <> 'x'", 8, "a condition compared with a text is never true"),
    ("a + 'x' = 1", 4, "a number is needed beside +"),
    ("-'x' = 1", 1, "a number is needed behind -"),
    ("-TRUE = 1", 1, "a number is needed behind -"),
    ("a BETWEEN 'a' AND 'b'", 10, "a number is needed of BETWEEN"),
    # Words.
    ("'abc' LIKE 'a%'", 0, "LIKE asks for a property, not for a text"),
    ("5 LIKE 'a%'", 0, "LIKE asks for a property, not for a number"),
    ("a LIKE b", 7, "the pattern of LIKE is a text in single quotes, not a name"),
    ("a LIKE 5", 7, "the pattern of LIKE is a text"),
    ("a LIKE", 6, "the pattern of LIKE is a text"),
    ("a LIKE 'x' ESCAPE", 17, "the character of ESCAPE is a text"),
    ("a LIKE 'x' ESCAPE 'ab'", 18, "one character"),
    ("a LIKE 'x' ESCAPE ''", 18, "one character"),
    ("a LIKE 'x!y' ESCAPE '!'", 7, "the escape character stands before %, _ or itself"),
    ("a LIKE 'x!' ESCAPE '!'", 7, "the escape character stands before %, _ or itself"),
    ("1 IN ('a')", 0, "IN asks for a property"),
    ("a IN ()", 6, "each value of IN is a text"),
    ("a IN ('x',)", 10, "each value of IN is a text"),
    ("a IN (1, 2)", 6, "each value of IN is a text"),
    ("a IN 'x'", 5, "( is missing before a string"),
    ("a IN ('x'", 9, ") is missing before the end"),
    ("1 IS NULL", 0, "IS NULL asks for a property"),
    ("a IS TRUE", 5, "NULL is missing before TRUE"),
    ("a IS", 4, "NULL is missing before the end"),
    ("a NOT 5", 6, "behind NOT stands LIKE, IN or BETWEEN"),
    ("a NOT NULL", 6, "behind NOT stands LIKE, IN or BETWEEN"),
    ("a NOT", 5, "behind NOT stands LIKE, IN or BETWEEN"),
    ("a BETWEEN 1", 11, "AND is missing before the end"),
    ("a BETWEEN 1 OR 2", 12, "AND is missing before OR"),
    ("escape = 1", 0, "an operand is missing before ESCAPE"),
    # Characters, names and numbers.
    ("a != 1", 2, "unexpected character '!'; unequal is <>"),
    ("a == 1", 3, "an operand is missing before ="),
    ('a = "x"', 4, "text stands in single quotes"),
    ("a = 'x", 4, "has no end"),
    ("a = 'x''", 4, "has no end"),
    ("a.b = 1", 1, "a name has no dots"),
    ("a\u00a0= 1", 1, "unexpected character"),
    ("a = 1;", 5, "unexpected character ';'"),
    ("a = 1 /* x */", 7, "an operand is missing before *"),
    ("a = 7up", 5, "a letter directly behind a number"),
    ("a = 7f", 5, "a letter directly behind a number"),
    ("a = 1OR b", 5, "a letter directly behind a number"),
    ("a = 0xg", 5, "a letter directly behind a number"),
    ("a = 0b1", 5, "a letter directly behind a number"),
    ("a = 1_000", 5, "a letter directly behind a number"),
    ("a = 08", 4, "08 begins with 0, so that it is an octal number"),
    ("a = 1.2.3", 7, "an operator is missing before a number"),
    ("a = 1.5L", 7, "a letter directly behind a number"),
    ("a = .", 4, "unexpected character '.'"),
    ("a = 9223372036854775808", 4, "out of the range of a Java long"),
    ("a = -9223372036854775809", 5, "out of the range of a Java long"),
    ("a = +9223372036854775808", 5, "out of the range of a Java long"),
    ("a = -(9223372036854775808)", 6, "out of the range of a Java long"),
    ("a = 0x8000000000000000", 4, "out of the range of a Java long"),
    ("a = -0x8000000000000000", 5, "out of the range of a Java long"),
    ("a = 1e400", 4, "out of the range of a Java floating point number"),
    ("a = 1e40f", 4, "out of the range of a Java floating point number"),
    ("a = 3.4028236e38f", 4, "out of the range of a Java floating point number"),
    ("JMSReplyTo = 'x'", 0, "of the JMS headers a selector can name JMSCorrelationID"),
    ("JMSDestination IS NULL", 0, "of the JMS headers"),
    ("a = 1 AND JMSExpiration > 0", 10, "of the JMS headers"),
    ("JMSRedelivered", 0, "of the JMS headers"),
    ("jmsx = 1 AND JMSFoo = 1", 13, "of the JMS headers"),
]


@pytest.mark.obligation("P15")
@pytest.mark.parametrize(("text", "position", "message"), INVALID)
def test_what_is_no_selector_is_told_with_its_place(text: str, position: int, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse(text)
    assert message in caught.value.message
    assert caught.value.position == position
    assert str(caught.value).endswith(f" at position {position}")


@pytest.mark.obligation("P15")
@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a=1", "a = 1"),
        ("\ta\f=\r\n1 ", "a = 1"),
        ("a = 1 and b = 2 or not c = 3", "a = 1 AND b = 2 OR NOT (c = 3)"),
        ("((a)) and ((b))", "a AND b"),
        ("a and (b and c)", "a AND b AND c"),
        ("(a or b) and c", "(a OR b) AND c"),
        ("not (a and b)", "NOT (a AND b)"),
        ("not not a", "NOT NOT a"),
        ("a - (b - c) > 1", "a - (b - c) > 1"),
        ("(a - b) - c > 1", "a - b - c > 1"),
        ("(a * b) + c > 1", "a * b + c > 1"),
        ("a * (b + c) > 1", "a * (b + c) > 1"),
        ("a / (b * c) > 1", "a / (b * c) > 1"),
        ("- - a > 1", "-(-a) > 1"),
        ("-(-5) = a", "-(-5) = a"),
        ("-(5) = a", "-5 = a"),
        ("+5 = a AND +a = - +a", "5 = a AND +a = -(+a)"),
        ("-(a + b) = 1", "-(a + b) = 1"),
        ("a = 7.", "a = 7.0"),
        ("a = 7E3", "a = 7000.0"),
        ("a = 1e22", "a = 1E22"),
        ("a = 1e-7", "a = 1E-07"),
        ("a = -.5d", "a = -0.5"),
        ("a = 0x1f", "a = 31"),
        ("a = 017", "a = 15"),
        ("a = 00", "a = 0"),
        ("a = 5L", "a = 5L"),
        ("a = 2147483648L", "a = 2147483648"),
        ("a = -9223372036854775808", "a = -9223372036854775808"),
        ("a = 'it''s'", "a = 'it''s'"),
        ("a = ''", "a = ''"),
        ("a in('x','y')", "a IN ('x', 'y')"),
        ("a not in ('x')", "a NOT IN ('x')"),
        ("a not like 'x!_%' escape '!'", "a NOT LIKE 'x!_%' ESCAPE '!'"),
        ("a not between 1 and b+1", "a NOT BETWEEN 1 AND b + 1"),
        ("a is null or a is not null", "a IS NULL OR a IS NOT NULL"),
        ("(a > 1) = true", "(a > 1) = TRUE"),
        ("(a) like 'x'", "a LIKE 'x'"),
        ("True = a", "TRUE = a"),
        ("a='x'OR b='y'", "a = 'x' OR b = 'y'"),
    ],
)
def test_the_canonical_text_means_the_same(text: str, canonical: str) -> None:
    selector = parse(text)
    assert str(selector) == canonical
    assert parse(canonical) == selector
    assert str(parse(canonical)) == canonical


@pytest.mark.parametrize(
    "name",
    ["a", "_a", "$a", "a$1", "größe", "名前", "€uro", "a\u0301", "a\u200db", "JMSXGroupID", "JMS_IBM_Format", "jms"],
)
def test_names_are_java_identifiers(name: str) -> None:
    assert is_name(name)
    selector = parse(f"{name} = 1")
    assert selector.identifiers == {name}
    assert selector.matches({name: 1}) is True


@pytest.mark.parametrize(
    "name", ["", "1a", "a b", "a.b", "a-b", "null", "Like", "ESCAPE", "JMSReplyTo", "JMS", "\u0301a", "a\u00a0", "½"]
)
def test_other_names_are_none(name: str) -> None:
    assert not is_name(name)


def test_names_differ_by_letter_case_and_words_do_not() -> None:
    selector = parse("a = 1 aNd A = 2 oR tRuE = b")
    assert selector.identifiers == {"a", "A", "b"}
    assert selector.matches({"a": 1, "A": 2}) is True


@pytest.mark.obligation("P15")
def test_exactly_six_headers_can_be_named() -> None:
    assert len(HEADERS) == 6
    for header in HEADERS:
        assert parse(f"{header} IS NOT NULL").identifiers == {header}


DEEP = 20_000
HOSTILE = {
    "parentheses": "(" * DEEP + "a" + ")" * DEEP,
    "open parentheses": "(" * DEEP,
    "NOT": "NOT " * DEEP + "a",
    "minus": "a = " + "- " * DEEP + "1",
    "sums": "a + " * DEEP + "1 > 0",
    "products": "a * " * DEEP + "1 > 0",
    "sums in parentheses": "a = " + "(1 + " * DEEP + "1" + ")" * DEEP,
    "alternating": "(a OR (b AND " * DEEP + "c" + "))" * DEEP,
    "between": "a BETWEEN (" * DEEP,
    "a text without end": "a = '" + "x''" * DEEP,
    "digits": "a = " + "9" * DEEP,
    "too long": "a = 1 OR " * (MAX_LENGTH // 9) + "a = 1",
}


@pytest.mark.obligation("SEC23")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        parse(text)


def test_as_deep_as_allowed_works_from_a_deep_stack() -> None:
    """Parsing, printing and evaluating stay far below Python's limit, which the caller has used up by half."""
    depth = MAX_DEPTH - 1
    texts = [
        "(" * depth + "a" + ")" * depth,
        "NOT " * depth + "a",
        "a OR (b AND (" * (depth // 2) + "c" + "))" * (depth // 2),
        "a = " + "1 + (" * (depth // 2) + "1" + ")" * (depth // 2),
    ]

    def deeper(levels: int) -> None:
        if levels:
            return deeper(levels - 1)
        for text in texts:
            selector = parse(text)
            assert parse(str(selector)) == selector
            selector.matches({"a": True, "b": False, "c": True})
        return None

    deeper(sys.getrecursionlimit() // 2 - 100)


def test_long_lists_are_fine() -> None:
    names = [f"NE-{number}" for number in range(20_000)]
    selector = parse(f"name IN ({', '.join(map(repr, names))})")
    assert selector.matches({"name": names[-1]}) is True
    alternatives = parse(" OR ".join(f"name LIKE '{name}%'" for name in names))
    assert alternatives.matches({"name": "NE-19999-x"}) is True
    assert alternatives.matches({"name": "x"}) is False
    assert parse(" AND ".join(["a"] * 20_000)).matches({"a": True}) is True


@pytest.mark.parametrize(
    "pattern",
    ["%a" * 200 + "b", "%_a" * 200 + "b", "%" * 1000 + "b", "_%" * 200 + "b", "%a%" * 300, "%" + "a" * 10_000 + "b"],
)
def test_like_never_goes_back(pattern: str) -> None:
    """A pattern that takes a backtracking matcher longer than the world lasts."""
    condition = parse(f"a LIKE '{pattern}'")
    started = time.process_time()
    assert condition.matches({"a": "a" * 20_000 + "c"}) is pattern.endswith("%")
    assert time.process_time() - started < 2


@pytest.mark.obligation("SEC23")
@given(st.text())
def test_any_text_gives_a_selector_or_an_error_with_a_place(text: str) -> None:
    try:
        selector = parse(text)
    except SelectorError as error:
        place = error.position
    else:
        place = 0
        assert parse(str(selector)) == selector
    assert 0 <= place <= len(text)


WORDS = """a b 'x' 'it''s' 1 -2 1.5 0x1F 017 TRUE false NULL NOT AND OR BETWEEN LIKE IN IS ESCAPE '!' ( ) , = <> < <= >
    >= + - * / JMSPriority JMSXGroupID 9223372036854775808"""
TOKENS = st.sampled_from(WORDS.split())


@given(st.lists(TOKENS, max_size=12), st.dictionaries(st.sampled_from("ab"), st.sampled_from([True, 0, 7, 1.5, "x"])))
def test_any_tokens_give_a_verdict_or_an_error_of_ours(tokens: list[str], properties: dict[str, object]) -> None:
    try:
        selector = parse(" ".join(tokens))
    except SelectorError:
        return
    verdict = selector.matches(properties)
    assert verdict in (True, False, None)
    assert parse(str(selector)) == selector
    assert parse(str(selector)).matches(properties) is verdict
