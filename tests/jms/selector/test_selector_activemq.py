"""Our verdicts beside those of Apache ActiveMQ's own selector parser; docs/selectors.md tells where it departs."""

from __future__ import annotations

import functools
import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from mtosi_jms.errors import SelectorError
from mtosi_jms.jms.message import DeliveryMode, JmsMessage, jms_type_name
from mtosi_jms.jms.selector import Selector, parse
from mtosi_jms.jms.selector._text import render

from ...transport.jvm.clients import jars_of

NAMES = {True: "TRUE", False: "FALSE", None: "NULL"}

Question = tuple[str, dict[str, Any]]
Ask = Callable[[Sequence[Question]], list[str]]


@pytest.fixture(scope="module")
def ask(root: Path, java: Any) -> Ask:
    """ActiveMQ's answers: TRUE, FALSE, NULL, INVALID or ERROR."""
    jars = jars_of("activemq")
    command = java.compiled(root / "tests" / "jms" / "java" / "SelectorVerdicts.java", [Path(jar) for jar in jars])

    def answers(questions: Sequence[Question]) -> list[str]:
        lines = ["\t".join([quote(text, safe=""), *map(encoded, given.items())]) for text, given in questions]
        done = subprocess.run(command, input="\n".join([*lines, ""]), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        found = done.stdout.split()
        assert len(found) == len(questions)
        return found

    return answers


def encoded(item: tuple[str, Any]) -> str:
    name, value = item
    kind = "h" if name.startswith("JMS") else jms_type_name(value)[0].lower()
    if isinstance(value, int):
        value = str(value).lower() if isinstance(value, bool) else int(value)
    return f"{quote(name)}={kind}:{quote(str(value), safe='')}"


@functools.cache
def parsed(text: str) -> Selector:
    return parse(text)


def ours(text: str, properties: dict[str, Any]) -> str:
    try:
        return NAMES[parsed(text).matches(properties)]
    except SelectorError:
        return "INVALID"


def differing(ask: Ask, questions: Sequence[Question]) -> list[tuple[str, dict[str, Any], str, str]]:
    asked = zip(questions, ask(questions), strict=True)
    mine = ((text, given, ours(text, given), theirs) for (text, given), theirs in asked)
    return [one for one in mine if one[2] != one[3]]


@pytest.mark.obligation("P15")
def test_random_selectors_have_the_same_verdicts(ask: Ask, selector_maker: Any) -> None:
    maker = selector_maker(20080501, portable=True)
    texts = [render(maker.condition()) for _ in range(1000)]
    questions = [(text, maker.properties()) for text in texts for _ in range(4)]
    assert differing(ask, questions) == []
    verdicts = [ours(text, given) for text, given in questions]
    assert min(verdicts.count(verdict) for verdict in ("TRUE", "FALSE", "NULL")) > 400


WORDS = """s1 i1 b1 'x' 'it''s' 1 25 1.5 7E3 TRUE FALSE NULL AND OR BETWEEN LIKE IN IS ESCAPE '!' ( ) , = <> < <= >
    >= + * / JMSPriority JMSXGroupID"""
TOKENS = WORDS.split()


@pytest.mark.obligation("P15")
def test_what_activemq_refuses_we_refuse(ask: Ask, selector_maker: Any) -> None:
    """Valid ones with a token dropped, doubled, replaced or put in; none with NOT, which ActiveMQ reads otherwise."""
    chosen = random.Random(7)
    maker = selector_maker(7, portable=True)
    questions: list[Question] = []
    while len(questions) < 3000:
        text = render(maker.condition(2))
        if "NOT" in text:
            continue
        words = text.replace("(", " ( ").replace(")", " ) ").split(" ")
        at = chosen.randrange(len(words))
        change = chosen.randrange(4)
        words[at : at + 1] = [[], [words[at]] * 2, [chosen.choice(TOKENS)], [chosen.choice(TOKENS), words[at]]][change]
        if any(words):
            questions.append((" ".join(words), {}))
    refused = [text for (text, _), answer in zip(questions, ask(questions), strict=True) if answer == "INVALID"]
    assert len(refused) > 1000
    assert [text for text in refused if ours(text, {}) != "INVALID"] == []


@pytest.mark.obligation("P15", "P16")
def test_headers_and_the_example_of_the_document(ask: Ask) -> None:
    texts = [
        "MTOSI_EventType = 'OBJECTCREATION'      OR      MTOSI_EventType = 'OBJECTDELETION'",
        "JMSPriority > 4 AND JMSType = 'car'",
        "JMSDeliveryMode = 'NON_PERSISTENT'",
        "JMSDeliveryMode <> 'NON_PERSISTENT' OR JMSCorrelationID LIKE 'ID:%'",
        "JMSTimestamp BETWEEN 1 AND 1700000000000",
        "JMSType IS NULL AND JMSCorrelationID IS NULL",
    ]
    for event, priority, mode, kind, correlation in (
        ("OBJECTCREATION", 4, DeliveryMode.PERSISTENT, None, "ID:1"),
        ("OBJECTDELETION", 9, DeliveryMode.NON_PERSISTENT, "car", "x"),
        ("ALARM", 0, DeliveryMode.NON_PERSISTENT, None, None),
    ):
        message = JmsMessage(
            properties={"MTOSI_EventType": event},
            priority=priority,
            delivery_mode=mode,
            jms_type=kind,
            correlation_id=correlation,
            timestamp_ms=1_600_000_000_000,
        )
        headers = {
            "JMSPriority": priority,
            "JMSDeliveryMode": int(mode),
            "JMSTimestamp": message.timestamp_ms,
            **({"JMSType": kind} if kind else {}),
            **({"JMSCorrelationID": correlation} if correlation else {}),
        }
        theirs = ask([(text, {**headers, "MTOSI_EventType": event}) for text in texts])
        assert [parse(text).accepts(message) for text in texts] == [answer == "TRUE" for answer in theirs]


DEPARTURES = [
    ("NOT a = 1", {"a": 2}, "TRUE", "FALSE"),
    ("a <> 1", {"a": "1"}, "FALSE", "TRUE"),
    ("a < b", {"a": "1", "b": "2"}, "FALSE", "TRUE"),
    ("a IN ('1')", {"a": 1}, "FALSE", "NULL"),
    ("a = b", {"a": 1}, "NULL", "FALSE"),
    ("1 = a", {}, "NULL", "FALSE"),
    ("a / 2 = 3", {"a": 7}, "TRUE", "FALSE"),
    ("a / 0 = 1", {"a": 1}, "NULL", "FALSE"),
    ("a + '1' = 11", {"a": 1}, "INVALID", "ERROR"),
    ("2147483647L + 1 = 2147483648", {}, "TRUE", "FALSE"),
    ("a = 0.5f", {"a": 0.5}, "TRUE", "INVALID"),
    ("größe = 1", {"größe": 1}, "TRUE", "INVALID"),
    ("a = 5 --3\n", {"a": 8}, "TRUE", "FALSE"),
    ("a = 1 /* one */", {"a": 1}, "INVALID", "TRUE"),
    ("a = b = TRUE", {"a": 1, "b": 1}, "INVALID", "TRUE"),
    ("JMSReplyTo IS NULL", {}, "INVALID", "TRUE"),
    ("'ab' LIKE 'a%'", {}, "INVALID", "TRUE"),
    ("a LIKE 'x!y' ESCAPE '!'", {"a": "x!y"}, "INVALID", "TRUE"),
    ("1 = 'x'", {}, "INVALID", "FALSE"),
    ("a = 9223372036854775808", {"a": 1}, "INVALID", "FALSE"),
]


def test_the_documented_departures_are_there(ask: Ask, root: Path) -> None:
    """Each has its line in the documentation, so that the list grows old in neither place."""
    theirs = ask([(text, given) for text, given, _, _ in DEPARTURES])
    found = [(*asked[:2], ours(*asked[:2]), answer) for asked, answer in zip(DEPARTURES, theirs, strict=True)]
    assert found == DEPARTURES
    page = (root / "docs" / "selectors.md").read_text(encoding="utf-8")
    assert [text for text, *_ in DEPARTURES if f"| `{text.strip()}` |" not in page] == []
