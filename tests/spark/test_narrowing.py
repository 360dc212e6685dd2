"""Fewer columns: the option `columns` of the source, and the argument of `parse_messages`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError
from mtosi_jms.spark import SourceOptions

pytest.importorskip("pyspark")

import mtosi_jms.spark as mtosi_spark
from mtosi_jms.tables.columns import full_schema

pytestmark = pytest.mark.spark

Put = Callable[..., Path]


def names(**options: str) -> list[str]:
    return list(full_schema(SourceOptions.parse({"path": "x", **options})).names)


def test_columns_come_in_the_order_asked_for_and_once() -> None:
    assert names(columns="source_file, name_text,location ,name_text") == ["source_file", "name_text", "location"]
    assert names(columns="body_digest,kind", objectType="MESSAGE") == ["body_digest", "kind"]
    assert names(columns="xml", objectType="ALL") == ["xml"]
    assert names(columns="ptp,object_type", objectType="ME,PTP") == ["ptp", "object_type"]


def test_the_column_of_corrupt_records_needs_no_mention() -> None:
    assert names(columns="name_text", columnNameOfCorruptRecord="_bad") == ["name_text", "_bad"]
    assert names(columns="_bad,name_text", columnNameOfCorruptRecord="_bad") == ["_bad", "name_text"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("name_text,user_labl", "no 'user_labl'; did you mean user_label"),
        ("NAME_TEXT", "no 'NAME_TEXT'; did you mean name_text"),
        ("name.rdn", "no 'name.rdn'"),
        ("zzzzzz", "no 'zzzzzz'; there are name_text, parent_names, "),
        (" , ", "columns is empty"),
        ("", "columns is empty"),
    ],
)
def test_unknown_columns_are_refused(columns: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        names(columns=columns)


def test_narrow_rows_are_the_wide_ones(spark: Any, put: Put, landing: Path, envelopes: Any) -> None:
    from pyspark.errors import PySparkException

    inner = "<coi:userLabel>L</coi:userLabel><me:location>here</me:location>"
    put("a.xml", envelopes.batch("c", 1, True, envelopes.me("a", inner) + envelopes.me("b")))
    put("b.xml", "<order/>")
    asked = ["location", "name_text", "user_label"]
    reader = spark.read.format("mtosi").option("columnNameOfCorruptRecord", "_bad")
    wide = reader.load(str(landing)).select(*asked, "_bad").collect()
    narrow = reader.option("columns", ",".join(asked)).load(str(landing))
    assert narrow.columns == [*asked, "_bad"]
    assert sorted(narrow.collect(), key=repr) == sorted(wide, key=repr)
    assert {(row.location, row.user_label) for row in wide} == {("here", "L"), (None, None)}
    with pytest.raises(PySparkException, match="did you mean user_label"):
        spark.read.format("mtosi").option("columns", "userlabel").load(str(landing))
    with pytest.raises(PySparkException, match="asks for 'source_file'; there are name_text"):
        spark.read.format("mtosi").option("columns", "name_text").schema("source_file string").load(
            str(landing)
        ).count()


def test_parse_messages_gives_the_columns_asked_for(spark: Any, envelopes: Any) -> None:
    text = envelopes.batch("a", 1, True, envelopes.me("x", "<me:location>here</me:location>"))
    df = spark.createDataFrame([(1, text), (2, "<order/>")], "warnings int, body string")
    rows = mtosi_spark.parse_messages(
        df, "ME", columns=("location", "name_text"), keep=("warnings",), corrupt_column="why"
    )
    assert rows.columns == ["warnings", "location", "name_text", "why"]
    good, bad = rows.orderBy("warnings").collect()
    assert tuple(good) == (1, "here", "MD=M/ME=x", None)
    assert "not SOAP" in bad.why
    kinds = mtosi_spark.parse_messages(df, "MESSAGE", columns="kind,correlation_id").collect()
    assert [tuple(row) for row in kinds] == [("response", "a")]
    with pytest.raises(ConfigError, match="did you mean location"):
        mtosi_spark.parse_messages(df, "ME", columns=("locaton",))
