"""Simple types as column values: what each XSD type becomes, and what a column refuses."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from mtosi_jms import xmlbind as x
from mtosi_jms.tables._leaves import arrow_type, from_text, storer

UTC = dt.UTC
MOMENT = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("simple", "kind", "text", "stored"),
    [
        (x.STRING, pa.string(), " a ", " a "),
        (x.TOKEN, pa.string(), "a b", "a b"),
        (x.ANY_URI, pa.string(), "urn:x", "urn:x"),
        (x.BOOLEAN, pa.bool_(), " 1 ", True),
        (x.INT, pa.int32(), "-7", -7),
        (x.UNSIGNED_INT, pa.int64(), "4294967295", 4294967295),
        (x.LONG, pa.int64(), "9007199254740993", 9007199254740993),
        (x.UNSIGNED_LONG, pa.decimal128(38, 0), "18446744073709551615", Decimal(18446744073709551615)),
        (x.INTEGER, pa.decimal128(38, 0), "+12", Decimal(12)),
        (x.DECIMAL, pa.decimal128(38, 18), "1.50", Decimal("1.5")),
        (x.DOUBLE, pa.float64(), "1e3", 1000.0),
        (x.DATE, pa.date32(), "2024-02-29", dt.date(2024, 2, 29)),
        (x.DATE_TIME, MOMENT, "2024-01-01T00:00:00+02:00", dt.datetime(2023, 12, 31, 22, tzinfo=UTC)),
        (x.DATE_TIME, MOMENT, "2024-01-01T00:00:00", dt.datetime(2024, 1, 1, tzinfo=UTC)),
        (x.TIME, pa.string(), "12:00:00", "12:00:00"),
        (x.DURATION, pa.string(), "P1Y", "P1Y"),
        (x.G_YEAR, pa.string(), "2024", "2024"),
        (x.BASE64, pa.binary(), "AQI=", b"\x01\x02"),
        (x.HEX, pa.binary(), "0102", b"\x01\x02"),
        (x.list_of(x.INT), pa.list_(pa.field("element", pa.int32())), "1 2", [1, 2]),
        (x.union(x.INT, x.STRING), pa.string(), "12", "12"),
    ],
)  # fmt: skip
def test_values_by_type(simple: Any, kind: pa.DataType, text: str, stored: Any) -> None:
    assert arrow_type(simple) == kind
    value = from_text(simple)(text)
    assert value == stored
    assert pa.array([value, None], type=kind).to_pylist() == [stored, None]


@pytest.mark.parametrize(
    ("simple", "text"),
    [(x.INT, "x"), (x.INT, "99999999999"), (x.BOOLEAN, "yes"), (x.DATE, "2024-02-30"), (x.DATE_TIME, "20240101000000")],
)
def test_what_needs_a_warning_is_no_plain_value(simple: Any, text: str) -> None:
    with pytest.raises(ValueError):
        from_text(simple)(text)


@pytest.mark.parametrize(
    ("simple", "value"),
    [
        (x.INTEGER, 10**40),
        (x.DECIMAL, Decimal("1e-19")),
        (x.DECIMAL, Decimal(10) ** 21),
        (x.DATE_TIME, dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=9)))),
    ],
)
def test_what_a_column_cannot_hold_is_refused(simple: Any, value: Any) -> None:
    with pytest.raises(ValueError, match="column"):
        storer(simple)(value)
