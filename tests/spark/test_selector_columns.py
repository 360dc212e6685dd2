"""Selectors as Spark columns: the three values that `Selector.matches` gives, on generated rows and on a landing's."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import types as t

from mtosi_jms.binding.selector import P
from mtosi_jms.errors import ConfigError, SelectorError
from mtosi_jms.jms.message import Long
from mtosi_jms.jms.selector import parse
from mtosi_jms.jms.selector._text import render
from mtosi_jms.spark import selector_column

pytestmark = [pytest.mark.spark, pytest.mark.obligation("P15", "P39")]

SCHEMA = t.StructType(
    [
        *(t.StructField(name, t.StringType()) for name in ("s1", "s2")),
        *(t.StructField(name, t.BooleanType()) for name in ("b1", "b2")),
        *(t.StructField(name, t.IntegerType()) for name in ("i1", "i2")),
        t.StructField("l1", t.LongType()),
        t.StructField("d1", t.DoubleType()),
        t.StructField("absent", t.NullType()),
    ]
)


def verdicts(spark: Any, texts: list[str], rows: list[dict[str, Any]]) -> list[list[bool | None]]:
    """Of each selector on each row, as Spark has it."""
    plain = [{name: int(one) if isinstance(one, Long) else one for name, one in row.items()} for row in rows]
    frame = spark.createDataFrame([tuple(row.get(name) for name in SCHEMA.names) for row in plain], SCHEMA)
    columns = [selector_column(text, frame).alias(f"v{number}") for number, text in enumerate(texts)]
    found = frame.coalesce(1).select(*columns).collect()
    return [[row[number] for row in found] for number in range(len(texts))]


def differing(spark: Any, texts: list[str], rows: list[dict[str, Any]]) -> list[Any]:
    found = []
    for text, answers in zip(texts, verdicts(spark, texts, rows), strict=True):
        selector = parse(text)
        expected = [selector.matches(row) for row in rows]
        found += [(text, *one) for one in zip(rows, expected, answers, strict=True) if one[1] is not one[2]]
    return found


@pytest.mark.parametrize("many", [30, pytest.param(80, marks=pytest.mark.endurance)])
def test_random_selectors_have_the_same_verdicts(spark: Any, selector_maker: Any, many: int) -> None:
    maker = selector_maker(4, portable=False)
    rows = [{}, *(maker.properties() for _ in range(60))]
    texts = [render(maker.condition()) for _ in range(many)]
    assert differing(spark, texts, rows) == []


EDGES = [
    "i1 + 1 < 0",
    "i1 * i1 = 1",
    "i1 * i1 > 0",
    "-i1 = i1",
    "i1 - i2 = 0",
    "l1 + 1 < 0",
    "l1 * l1 = 1",
    "l1 * l1 * l1 <> 0",
    "-l1 = l1",
    "l1 / -1 = l1",
    "i1 / -1 = i1",
    "i1 / 2 = -1",
    "i1 / i2 = 1",
    "l1 / i2 = 1",
    "NOT (l1 / i2 = 1)",
    "i1 / 0 = 1",
    "d1 / 0 > 1",
    "d1 / 0 < 1",
    "d1 / 0.0 = d1 / 0.0",
    "d1 / -0.0 > 1",
    "d1 / i2 >= 0.5",
    "1 / d1 < 0",
    "1 / -d1 > 0",
    "d1 = d1",
    "d1 <> d1",
    "d1 > 1",
    "NOT (d1 < 1)",
    "d1 <> l1",
    "d1 BETWEEN i1 AND l1",
    "d1 * 0 = 0",
    "2147483647 + 1 < 0",
    "7 / 2 = 3",
    "1 / 0 = 1",
    "1.0 / 0 = i1",
    "0.0 / 0 <> i1",
    "l1 = 9007199254740992.0",
    "d1 = 9007199254740993",
    "s1 + 1 = 1",
    "+s1 = 1 OR b1 + 1 > 0",
    "-b1 <> 1",
    "s1",
    "NOT s1",
    "i1 OR b1",
    "s1 < s2",
    "b1 > b2",
    "(s1 = 'a') = (b1 OR b2)",
    "s1 = i1",
    "s1 <> i1",
    "absent = 1 OR absent IS NULL",
    "TRUE",
    "FALSE",
    "NOT TRUE OR b1",
    "s1 LIKE 'a\\%'",
    "s1 LIKE 'a\\%' ESCAPE '\\'",
    "s1 LIKE '%\n_'",
    "s1 LIKE '_'",
    "i1 LIKE '1%'",
    "i1 NOT IN ('1')",
    "s1 IN ('a', '')",
]


def test_edges_have_the_same_verdicts(spark: Any) -> None:
    """Overflow, division by zero, what is not a number, unlike values, patterns with odd characters."""
    ints = (0, 1, -1, 65536, 2**31 - 1, -(2**31))
    longs = (0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63))
    doubles = (0.0, -0.0, math.nan, math.inf, -math.inf, 2.0**53)
    texts = ("", "a", "a\\", "a\\b", "a%", "\n\U0001f600", "\U0001f600")
    rows: list[dict[str, Any]] = [{}]
    for number in range(42):
        row = {
            "i1": ints[number % 6],
            "i2": ints[number // 6 % 6],
            "l1": Long(longs[(number + 1) % 6]),
            "d1": doubles[(number // 2) % 6],
            "s1": texts[number % 7],
            "s2": texts[number // 7 % 7],
            "b1": number % 2 == 0,
            "b2": number % 3 == 0,
        }
        rows += [row, {name: value for at, (name, value) in enumerate(row.items()) if at % 3 != number % 3}]
    assert differing(spark, EDGES, rows) == []


@pytest.mark.parametrize("patterns", [250, pytest.param(1000, marks=pytest.mark.endurance)])
def test_lists_of_thousands_are_fine(spark: Any, patterns: int) -> None:
    names = [f"NE-{number}" for number in range(1000)]
    texts = [f"s1 IN ({', '.join(map(repr, names))})", " OR ".join(f"s1 LIKE '{name}/%'" for name in names[-patterns:])]
    rows = [{"s1": "NE-999"}, {"s1": "NE-999/x"}, {"s1": "x"}, {}]
    assert verdicts(spark, texts, rows) == [[True, False, False, None], [False, True, False, None]]


def test_messages_of_a_landing_are_asked_by_their_property_names(
    spark: Any, landing: Path, put: Callable[..., Path], envelopes: Any
) -> None:
    from mtosi_jms.spark import InventorySource

    spark.dataSource.register(InventorySource)
    for number in (1, 2, 3):
        put(f"{number}.xml", envelopes.batch("c", number, number == 3, envelopes.me(f"NE-{number}")))
    put("request.xml", envelopes.request())
    rows = spark.read.format("mtosi").option("objectType", "MESSAGE").load(str(landing))

    expected = {
        "MTOSI_msgType = 'RESPONSE' AND MTOSI_batchSequenceNumber > 1": ["2.xml", "3.xml"],
        "MTOSI_batchSequenceEndOfReply": ["3.xml"],
        "MTOSI_batchSequenceNumber IS NULL AND MTOSI_activityName LIKE 'getAll%'": ["request.xml"],
        str(P.msgType.in_("REQUEST", "ERROR")): ["request.xml"],
        "": ["1.xml", "2.xml", "3.xml", "request.xml"],
    }
    columns = (selector_column(text, rows).alias(f"v{number}") for number, text in enumerate(expected))
    found = sorted((Path(file).name, *kept) for file, *kept in rows.select("source_file", *columns).collect())
    for number, names in enumerate(expected.values(), 1):
        assert [row[0] for row in found if row[number]] == names


def test_the_example_of_the_documentation_runs(
    spark: Any,
    root: Path,
    landing: Path,
    put: Callable[..., Path],
    envelopes: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from mtosi_jms.spark import InventorySource

    spark.dataSource.register(InventorySource)
    for number in (1, 2):
        put(f"{number}.xml", envelopes.batch("c", number, number == 2, envelopes.me("NE")))
    page = (root / "docs" / "selectors.md").read_text(encoding="utf-8")
    code = page.split("<!-- spark -->\n```python\n")[1].split("```")[0]
    exec(code.replace('"landing/"', repr(str(landing))), {"spark": spark})
    shown = capsys.readouterr().out
    assert shown.count("|response|") == 1


def test_properties_of_text_are_numbers_and_booleans_where_table_2_says_so(spark: Any) -> None:
    """As they come from a wire that carries text alone (C62)."""
    rows = [
        {"MTOSI_batchSequenceNumber": " 2 ", "MTOSI_batchSequenceEndOfReply": "TRUE", "color": "blue"},
        {"MTOSI_batchSequenceNumber": "x", "MTOSI_batchSequenceEndOfReply": "0"},
        {"MTOSI_batchSequenceNumber": "99999999999", "MTOSI_batchSequenceEndOfReply": "maybe"},
        {},
    ]
    frame = spark.createDataFrame([(row,) for row in rows], "properties map<string, string>").coalesce(1)

    expected = {
        "MTOSI_batchSequenceNumber > 1": [True, None, None, None],
        "MTOSI_batchSequenceEndOfReply": [True, False, None, None],
        "color = 'blue'": [True, None, None, None],
        "color > 1": [False, None, None, None],
    }
    found = frame.select(*(selector_column(text, frame).alias(text) for text in expected)).collect()
    assert {text: [row[number] for row in found] for number, text in enumerate(expected)} == expected


def test_columns_are_found_by_mapping_by_function_and_by_name(spark: Any) -> None:
    schema = "`a.b` string, a struct<b: string, n: struct<c: int>>, m map<string, string>, properties struct<p: string>"
    row = ("dotted", ("inner", (5,)), {"k": "value"}, ("own",))
    frame = spark.createDataFrame([row], schema)

    held: list[tuple[str, Any]] = [
        ("x = 'dotted'", {"x": "a.b"}),
        ("x = 5", {"x": "a.n.c"}),
        ("x = 'value'", lambda name: "m.k" if name == "x" else None),
        ("x IS NULL", {"x": "m.other"}),
        ("p = 'own'", {"x": "m.k"}),
    ]
    found = frame.select(*(selector_column(parse(text), frame.schema, columns) for text, columns in held)).collect()
    assert tuple(found[0]) == (True,) * len(held)


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("color = 'x'", None, "color: no column is known to hold it"),
        ("x = 1", {"x": "nothing"}, "x: there is no column nothing"),
        ("x = 1", {"x": "s1.deep"}, "x: there is no column s1.deep"),
        ("x = 1", {"x": "day"}, "x: the column day is date, which no property is"),
    ],
)
def test_what_cannot_be_asked_is_told(spark: Any, text: str, columns: Any, message: str) -> None:
    schema = t.StructType([*SCHEMA.fields, t.StructField("day", t.DateType())])
    with pytest.raises(ConfigError, match=message):
        selector_column(text, schema, columns)


def test_a_text_that_is_no_selector_is_an_error() -> None:
    with pytest.raises(SelectorError):
        selector_column("s1 =", SCHEMA)
