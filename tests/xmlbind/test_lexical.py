"""Lexical forms: what is written is read back equal and is valid for libxml2; what is not a value raises ValueError."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mtosi_jms import xmlbind as x
from mtosi_jms.xmlbind import _lexical as lexical

ZONES = st.one_of(
    st.none(), st.just(dt.UTC), st.integers(-840, 840).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
)


def _schema(name: str) -> etree.XMLSchema:
    text = f'<x:schema xmlns:x="http://www.w3.org/2001/XMLSchema"><x:element name="e" type="x:{name}"/></x:schema>'
    return etree.XMLSchema(etree.fromstring(text))


def _valid(schema: etree.XMLSchema, text: str) -> bool:
    element = etree.Element("e")
    element.text = text
    return schema.validate(element)


VALUES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "boolean": (x.BOOLEAN, st.booleans()),
    "integer": (x.INTEGER, st.integers(-(10**60), 10**60)),
    "unsignedLong": (x.UNSIGNED_LONG, st.integers(0, 2**64 - 1)),
    "byte": (x.BYTE, st.integers(-128, 127)),
    "decimal": (x.DECIMAL, st.decimals(allow_nan=False, allow_infinity=False, places=6)),
    "double": (x.DOUBLE, st.floats(allow_nan=False)),
    "dateTime": (x.DATE_TIME, st.datetimes(timezones=ZONES)),
    "date": (x.DATE, st.dates()),
    "time": (x.TIME, st.times(timezones=ZONES)),
    "duration": (
        x.DURATION,
        st.builds(
            lambda sign, months, seconds: x.Duration(sign * months, sign * seconds),
            st.sampled_from([1, -1]), st.integers(0, 10**6), st.decimals(0, 10**10, places=3),
        ),
    ),
    "base64Binary": (x.BASE64, st.binary()),
    "hexBinary": (x.HEX, st.binary()),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values_survive_and_are_valid(name: str) -> None:
    kind, values = VALUES[name]
    schema = _schema(name)

    @given(values)
    def check(value: Any) -> None:
        text = kind.format(value)
        assert _valid(schema, text), text
        assert kind.exact(text) == value or (value, text) == (0.0, "0.0")
        assert kind.lenient(f"\n {text}\t")[0] == kind.exact(text)

    check()


ALPHABETS = {
    "boolean": "truefalse01 ", "integer": "+-0123456789_ .", "decimal": "+-0123456789.eE", "double": "+-0.19eEINFaN",
    "dateTime": "0123456789-:TZ+. ", "date": "0123456789-Z+", "time": "0123456789:Z+.", "duration": "-P019YMDTHS.",
    "base64Binary": "ABab01+/= ", "hexBinary": "019abfABFg", "unsignedLong": "-+0123456789", "byte": "-+0129",
}  # fmt: skip


@pytest.mark.parametrize("name", ALPHABETS)
def test_texts_are_taken_if_libxml2_takes_them(name: str) -> None:
    kind, values = VALUES[name]
    schema = _schema(name)
    texts = st.one_of(st.text(ALPHABETS[name], max_size=14), values.map(kind.format).flatmap(_spoilt))

    @given(texts)
    def check(text: str) -> None:
        try:
            _, problem = kind.lenient(text)
        except ValueError:
            taken = False
        else:
            taken = problem is None
        assert taken == _valid(schema, text) or _beyond(name, text.strip()), text

    check()


def _spoilt(text: str) -> st.SearchStrategy[str]:
    places = st.integers(0, max(len(text) - 1, 0))
    return st.builds(lambda at, char: text[:at] + char + text[at + 1 :], places, st.sampled_from("0159:-TZ.+ "))


def _beyond(name: str, text: str) -> bool:
    """Where Python's types or libxml2 are narrower than XSD: years, the end of a day; the blanks of base64."""
    if name in ("dateTime", "date"):
        year = text.lstrip("-").partition("-")[0]
        return text.startswith("-") or len(year) != 4 or year == "0000" or "T24" in text
    if name == "double":
        return text.rstrip("+-")[-1:] in ("e", "E")  # libxml2 takes a number whose exponent is missing
    return text.startswith("24") if name == "time" else name == "base64Binary"


BAD = {
    x.BOOLEAN: ["", "TRUE", "yes", "2", "True"],
    x.INTEGER: ["", "1_0", "1.0", "0x1", "١", "1e3", "--1", " "],
    x.DECIMAL: ["", ".", "1e3", "INF", "NaN", "1,5", "+", "٫5"],
    x.DOUBLE: ["", "inf", "nan", "infinity", "1e", "e5", "0x1p3", "+INF"],
    x.DATE_TIME: ["", "2026-01-01", "2026-01-01 00:00:00", "2026-1-1T00:00:00", "2026-01-01T24:00:01",
                  "2026-01-01T24:00:00.0001", "2026-01-01T00:00:00+15:00", "2026-01-01T00:00", "2026-13-01T00:00:00",
                  "20260101T000000", "2026-W01-1T00:00:00", "2026-01-01T00:00:60", "0000-01-01T00:00:00"],
    x.DATE: ["", "2026-02-30", "2026-1-1", "20260101", "2026-01-01T00:00:00", "2026-01-01+25:00"],
    x.TIME: ["", "24:00:00.5", "24:00:01", "1:00:00", "00:00", "00:00:60", "12:00:00+14:30"],
    x.DURATION: ["", "P", "PT", "P1", "1Y", "P1S", "PT1Y", "P1.5D", "P-1D", "P" + "9" * 100 + "D"],
    x.BASE64: ["A", "AB", "A===", "AB=C", "!"],
    x.HEX: ["A", "0x", "GG", "A A"],
    x.G_YEAR: ["26", "2026-01", "x"],
    x.LANGUAGE: ["", "a_b", "abcdefghi"],
    x.NCNAME: ["", "a:b", "1", "a b"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text"),
    [pytest.param(kind, text, id=f"{kind.name}-{text}") for kind, texts in BAD.items() for text in texts],
)
def test_no_value(kind: Any, text: str) -> None:
    with pytest.raises(ValueError):
        kind.exact(text)
    try:
        _, problem = kind.lenient(text)
    except ValueError:
        return
    assert problem is not None


def test_loose_times_are_read_with_a_word() -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    forms = {
        "20051004140305": dt.datetime(2005, 10, 4, 14, 3, 5),
        "20051004140305.5Z": dt.datetime(2005, 10, 4, 14, 3, 5, 500000, dt.UTC),
        "20051004140305+0200": dt.datetime(2005, 10, 4, 14, 3, 5, tzinfo=zone),
        "2005-10-04T14:03:05+0200": dt.datetime(2005, 10, 4, 14, 3, 5, tzinfo=zone),
        "1128434585": dt.datetime(2005, 10, 4, 14, 3, 5, tzinfo=dt.UTC),
        "1128434585123": dt.datetime(2005, 10, 4, 14, 3, 5, 123000, dt.UTC),
    }
    for text, expected in forms.items():
        assert x.DATE_TIME.lenient(text) == (expected, "not an xsd:dateTime"), text


@given(st.text(max_size=30))
def test_any_text_is_a_value_or_a_value_error(text: str) -> None:
    for kind in (x.DATE_TIME, x.DATE, x.TIME, x.DURATION, x.DECIMAL, x.DOUBLE, x.INTEGER, x.BASE64, x.HEX, x.BOOLEAN):
        for way in (kind.exact, kind.lenient):
            try:
                way(text)
            except ValueError:
                continue
    assert x.STRING.exact(text) == text


@pytest.mark.parametrize("text", ["9" * 5000, "-" + "9" * 5000, "9" * 5000 + "-01-01T00:00:00", "P" + "9" * 5000 + "Y",
                                  "9" * 5000 + ":00:00", "9" * 5000 + "." + "9" * 5000, "1e" + "9" * 5000])  # fmt: skip
def test_endless_digits_raise_value_error_at_most(text: str) -> None:
    for kind in (x.INTEGER, x.INT, x.DATE_TIME, x.DATE, x.TIME, x.DURATION, x.DOUBLE):
        with pytest.raises(ValueError):
            kind.exact(text)
    assert x.DECIMAL.exact("9" * 5000) == Decimal("9" * 5000)


def test_fractions_beyond_the_microsecond_are_cut() -> None:
    assert lexical.parse_date_time("2026-01-01T00:00:00.1234569Z").microsecond == 123456
    assert lexical.parse_time("00:00:00.1234569").microsecond == 123456


def test_the_end_of_a_day_is_the_begin_of_the_next() -> None:
    assert lexical.parse_date_time("2026-12-31T24:00:00.000Z") == dt.datetime(2027, 1, 1, tzinfo=dt.UTC)
    assert lexical.parse_time("24:00:00") == dt.time(0)


def test_special_numbers() -> None:
    assert [lexical.format_float(value) for value in (math.inf, -math.inf, math.nan)] == ["INF", "-INF", "NaN"]
    assert math.isnan(lexical.parse_float("NaN"))
    assert lexical.parse_float("-INF") == -math.inf
    assert lexical.format_decimal(Decimal("1E+3")) == "1000"
    assert lexical.format_decimal(7) == "7"
    assert lexical.format_float(1) == "1.0"


def test_durations() -> None:
    assert lexical.parse_duration("-P1Y2M3DT4H5M6.7S") == x.Duration(-14, Decimal("-273906.7"))
    assert lexical.format_duration(dt.timedelta(days=1, milliseconds=-500)) == "PT23H59M59.5S"
    assert lexical.format_duration(dt.timedelta(microseconds=-1)) == "-PT0.000001S"
    assert str(x.Duration()) == "PT0S"
    assert lexical.format_duration(x.Duration(0, 61)) == "PT1M1S"  # type: ignore[arg-type]
    assert x.Duration(0, Decimal("1.5")).to_timedelta() == dt.timedelta(seconds=1.5)
    with pytest.raises(ValueError, match="no fixed length"):
        x.Duration(1).to_timedelta()


def test_durations_of_many_digits_are_exact() -> None:
    text = f"P{'9' * 30}DT0.{'0' * 20}1S"
    assert lexical.format_duration(lexical.parse_duration(text)) == text
    assert x.DURATION.exact(text).months == 0


FACETS: list[tuple[Any, list[Any], list[Any]]] = [
    (x.simple(x.DECIMAL, digits=3), [Decimal("0.05"), Decimal("1.50"), Decimal(999)], [Decimal("0.0005"), 1000]),
    (x.simple(x.DECIMAL, digits=40), [Decimal("1" * 40)], [Decimal("1" * 41)]),
    (x.simple(x.DECIMAL, fraction=0), [Decimal("5.00")], [Decimal("5.01")]),
    (x.simple(x.INT, above=0, below=3), [1, 2], [0, 3]),
    (x.simple(x.simple(x.INT, minimum=1), maximum=5), [1, 5], [0, 6]),
    (x.simple(x.simple(x.STRING, pattern="a.*"), pattern=".*b"), ["ab"], ["a", "b"]),
    (x.simple(x.STRING, patterns=("a", "[a-c]")), ["a"], ["b"]),
    (x.simple(x.STRING, values=("a", "b")), ["a"], ["c"]),
    (x.simple(x.BASE64, min_length=2, max_length=2), [b"ab"], [b"a"]),
    (x.simple(x.list_of(x.INT), max_length=1), [[1]], [[1, 2]]),
    (x.simple(x.list_of(x.simple(x.INT, maximum=3)), min_length=1), [[3]], [[4], []]),
    (x.simple(x.union(x.INT, x.STRING), values=("1", "a")), [1, "a"], [2, "b"]),
    (x.simple(x.TOKEN, min_length=1), ["a"], [""]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "good", "bad"), FACETS, ids=range(len(FACETS)))
def test_facets_both_ways(kind: Any, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert kind.exact(kind.format(value)) == value
        assert not kind.plain
    for value in bad:
        with pytest.raises(ValueError):
            kind.format(value)


def test_loose_date_times_with_facets_stay_loose() -> None:
    kind = x.simple(x.DATE_TIME, minimum=dt.datetime(2000, 1, 1))
    assert kind.lenient("20051004140305")[0] == dt.datetime(2005, 10, 4, 14, 3, 5)
    assert kind.lenient("1999-01-01T00:00:00")[1] == "less than 2000-01-01 00:00:00"
    assert kind.lenient("2005-01-01T00:00:00Z")[1] is None
    assert kind.lenient("2000-01-01T10:00:00Z")[1] == "less than 2000-01-01T00:00:00"  # it may be, in some zone


def test_restricted_enumerations(package: str) -> None:
    kind = x.simple(x.enum("urn_test.constructs:ColourType"), values=("red",))
    kind.bind(package)
    assert kind.exact("red") == "red"
    assert kind.lenient("blue")[1] is not None
    with pytest.raises(ValueError):
        kind.format("blue")


def test_an_enumeration_that_nobody_bound() -> None:
    from mtosi_jms.errors import ConfigError

    with pytest.raises(ConfigError, match="not bound to a package"):
        x.enum("a.b:C").lenient("x")


def test_exactness_is_what_we_write() -> None:
    ways: list[tuple[Callable[[str], Any], str]] = [
        (x.INT.exact, "01"), (x.BOOLEAN.exact, "1"), (x.HEX.exact, "ff"), (x.TOKEN.exact, " a"),
        (x.DATE.exact, "2026-01-01Z"), (x.list_of(x.INT).exact, "1  2"),
        *((x.list_of(item).exact, text) for item in (x.STRING, x.TOKEN) for text in ("a  b", " a", "a ", "a\nb")),
    ]  # fmt: skip
    for way, text in ways:
        with pytest.raises(ValueError):
            way(text)
