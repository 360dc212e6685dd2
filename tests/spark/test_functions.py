"""The SQL functions for envelopes in any column, in batches and in a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException

from mtosi_jms.spark import parse_messages, register_functions

pytestmark = pytest.mark.spark

Put = Callable[..., Path]


@pytest.fixture
def sql(spark: Any, envelopes: Any) -> Iterator[Callable[[str], list[tuple[Any, ...]]]]:
    """Asks about three envelopes, something else and nothing, in the columns `text` and `data` of a view."""
    register_functions(spark)
    maker = envelopes.me("y", "<me:manufacturer>Acme</me:manufacturer>")
    header = envelopes.header(
        activityName="getAllManagedElements", msgType="REQUEST", correlationId=" b ", security="a secret"
    )
    bodies = [
        envelopes.batch("a", 1, False, envelopes.me("x") + maker),
        envelopes.batch("a", 2, True, ""),
        envelopes.envelope(header, "<mer:getAllManagedElementsRequest/>"),
        envelopes.batch("a", 1, False, envelopes.me("x"))[:-30],
        "<order/>",
        None,
    ]
    rows = [(number, body, body and body.encode()) for number, body in enumerate(bodies, 1)]
    frame = spark.createDataFrame(rows, "n int, text string, data binary")
    frame.createOrReplaceTempView("bodies")
    yield lambda query: [tuple(row) for row in spark.sql(query).collect()]
    spark.catalog.dropTempView("bodies")


@pytest.mark.obligation("C55")
def test_header_and_error(sql: Callable[[str], list[tuple[Any, ...]]], spark: Any) -> None:
    header = spark.sql("select mtosi_header(text) as h from bodies").schema["h"].dataType
    assert header.names[:5] == ["kind", "body_element", "correlation_id", "batch_number", "end_of_reply"]
    assert not {"security", "complete"} & set(header.names)
    fields = "h.kind, h.correlation_id, h.batch_number, h.end_of_reply, h.activity_name, to_json(h), e"
    found = sql(f"select n, {fields} from (select n, mtosi_header(text) h, mtosi_error(data) e from bodies) order by n")
    assert found[0][:6] == (1, "response", "a", 1, False, "getAllManagedElements")
    assert found[1][:5] == (2, "response", "a", 2, True)
    assert found[2][:3] == (3, "request", " b ")
    assert "secret" not in str(found)
    assert [row[7] for row in found[:3]] == [None] * 3
    assert [row[6] for row in found[3:]] == [None] * 3
    truncated, order, nothing = (row[7] for row in found[3:])
    assert "ends early (truncated)" in truncated
    assert order == "1: not SOAP: the root element is order"
    assert nothing == "1: empty document"


def test_objects_are_the_rows_of_parse_messages(sql: Callable[[str], list[tuple[Any, ...]]], spark: Any) -> None:
    query = "select o.* from bodies m, lateral mtosi_objects(m.{}, 'ME'{}) o order by name_text"
    frame = spark.sql(query.format("text", ""))
    parsed = parse_messages(spark.table("bodies"), "ME", "text")
    assert frame.schema.names == parsed.schema.names
    assert [row.asDict(True) for row in frame.collect()] == [
        row.asDict(True) for row in parsed.orderBy("name_text").collect()
    ]
    assert sql(query.format("data", ", 'name_text,manufacturer'")) == [("MD=M/ME=x", None), ("MD=M/ME=y", "Acme")]
    outer = "select n, o.name_text from bodies left join lateral mtosi_objects(text, 'ME') o on true where n > 1"
    assert sorted(sql(outer)) == [(number, None) for number in range(2, 7)]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("concat('M', string(n))", "mtosi_objects: type must be a literal text"),
        ("'ME', 'nam_text'", "there is no 'nam_text'; did you mean name_text"),
    ],
)
def test_what_does_not_fit_is_an_error_before_anything_runs(
    arguments: str, reason: str, sql: Callable[[str], list[tuple[Any, ...]]]
) -> None:
    with pytest.raises(AnalysisException, match=reason):
        sql(f"select o.* from bodies, lateral mtosi_objects(text, {arguments}) o")


@pytest.mark.endurance
def test_in_a_stream(spark: Any, landing: Path, put: Put, envelopes: Any, tmp_path: Path) -> None:
    register_functions(spark)
    put("1.xml", envelopes.batch("a", 1, True, envelopes.me("x") + envelopes.me("y")))
    put("2.xml", "<order/>")
    spark.readStream.format("text").option("wholetext", True).load(str(landing)).createOrReplaceTempView("arriving")
    asked = spark.sql(
        "select mtosi_header(value).correlation_id, o.name_text"
        " from arriving, lateral mtosi_objects(value, 'ME', 'name_text') o"
    )
    writer = asked.writeStream.format("memory").queryName("arrived").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    found = sorted(tuple(row) for row in spark.table("arrived").collect())
    assert found == [("a", "MD=M/ME=x"), ("a", "MD=M/ME=y")]
    for view in ("arriving", "arrived"):
        spark.catalog.dropTempView(view)
