"""DataFrames that are made of one another hold their own rows each, whatever Spark keeps of the source between them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException

from mtosi_jms.errors import ConfigError, ExchangeError
from mtosi_jms.spark import SourceOptions
from mtosi_jms.spark._source import InventoryReader
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.landing import plan_landing, readable

pytestmark = pytest.mark.spark

Put = Callable[..., Path]


@pytest.fixture
def mixed(put: Put, landing: Path, envelopes: Any) -> Path:
    """`a` is complete in two batches, `b` lacks its end, one has no correlationId, one breaks off in the middle."""
    put("a1.xml", envelopes.batch("a", 1, False, envelopes.me("a1")))
    put("a2.xml", envelopes.batch("a", 2, True, envelopes.me("a2"), time="2024-01-02T00:00:00Z"))
    put("b1.xml", envelopes.batch("b", 1, False, envelopes.me("b1")))
    put("c.xml", envelopes.batch(None, None, None, envelopes.me("c")))
    put("d.xml", envelopes.batch("d", 1, True, "".join(map(envelopes.me, "d" * 99)) + "<me:me></me:mo>"))
    put("e.xml", envelopes.request("a"))
    put("f.xml", "<order/>")
    return landing


@pytest.fixture
def pushdown(spark: Any) -> Iterator[None]:
    """Spark hands filters to Python sources, which it does not by default."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


ROWS = {"a1": ("a", 1), "a2": ("a", 2), "b1": ("b", 1), "c": (None, None)}
CONDITIONS: dict[str, Callable[[str | None, int | None], bool]] = {
    "batch_number = 1": lambda cid, number: number == 1,
    "correlation_id = 'a'": lambda cid, number: cid == "a",
    "correlation_id is null": lambda cid, number: cid is None,
    "correlation_id in ('a', 'b') and batch_number > 1": lambda cid, number: number == 2,
}
EACH = {condition: {name for name, row in ROWS.items() if holds(*row)} for condition, holds in CONDITIONS.items()}


@pytest.mark.usefixtures("pushdown")
@pytest.mark.endurance
def test_a_filter_on_one_frame_says_nothing_about_the_others(spark: Any, mixed: Path) -> None:
    def load() -> Any:
        asked = spark.read.format("mtosi").option("columns", "name_text,correlation_id,batch_number")
        return asked.load(str(mixed)).selectExpr("split(name_text, '=')[2] as name", "correlation_id", "batch_number")

    def names(frame: Any) -> list[str]:
        return sorted(row.name for row in frame.select("name").collect())

    whole = load()
    filtered = {condition: whole.where(condition) for condition in CONDITIONS}
    for condition, frame in filtered.items():
        assert names(frame) == sorted(EACH[condition]), condition
    assert names(whole) == sorted(ROWS)
    for one, other in itertools.pairwise(CONDITIONS):
        fresh = load()
        union = fresh.where(one).unionAll(fresh.where(other))
        assert names(union) == sorted([*EACH[one], *EACH[other]]), (one, other)
    fresh = load()
    first = fresh.where("batch_number = 1").alias("x")
    joined = first.join(fresh.alias("y"), "correlation_id").selectExpr("y.name")
    assert names(joined) == ["a1", "a2", "b1"]
    assert names(fresh.where("correlation_id = 'a'").where("batch_number = 2")) == ["a2"]
    fresh = load()
    kept = fresh.where("correlation_id = 'a'").cache()
    assert (names(kept), names(fresh), names(kept.where("batch_number = 2"))) == (["a1", "a2"], sorted(ROWS), ["a2"])
    kept.unpersist()
    parts = "select name from {it} where batch_number = 2 union all select name from {it}"
    assert names(spark.sql(parts, it=fresh)) == sorted([*ROWS, "a2"])


def left(folder: Path, **options: str) -> str:
    """The files that a reader with these options is left with."""
    settings = SourceOptions.parse({"path": str(folder), **options})
    made = InventoryReader(settings, full_schema(settings)).partitions()
    return " ".join(sorted(Path(file.path).stem for part in made for file in part.files))


def test_correlation_id_as_an_option(mixed: Path, put: Put, envelopes: Any, tmp_path: Path) -> None:
    put("g.xml", envelopes.batch(" b", 1, True, envelopes.me("g")))
    assert left(mixed, correlationId="b") == "b1"
    assert left(mixed, correlationId=" b") == "g"
    whole = plan_landing(SourceOptions.parse({"path": str(mixed)}))
    options = SourceOptions.parse({"path": str(mixed), "correlationId": "a", "onIncomplete": "fail"})
    found = plan_landing(options)
    assert [sequence.correlation_id for sequence in found.sequences] == ["a"]
    assert [Path(reject.file).name for reject in found.rejects] == ["f.xml"]
    assert len(readable(found, options)) == len(readable(whole, options)) == 3
    other = SourceOptions.parse({"path": str(mixed), "correlationId": "b", "onIncomplete": "fail"})
    for plan in (whole, plan_landing(other)):
        with pytest.raises(ExchangeError, match="1 incomplete sequences: 'b'"):
            readable(plan, other)
    with pytest.raises(ConfigError, match="correlationId is empty"):
        SourceOptions.parse({"path": "x", "correlationId": ""})


CATALOG = {
    "path": ("using mtosi options (path '{0}', {1})", ""),
    "location": ("using mtosi options ({1}) location '{0}'", ""),
    "properties": (
        "using mtosi options (path '{0}', {1}) comment 'c' tblproperties ('k' = 'v', 'by.whom' = 'me')",
        "",
    ),
    "columns": ("(name_text string) using mtosi options ({1}) location '{0}'", "with (path '{0}')"),
}


@pytest.fixture
def table(spark: Any) -> Iterator[str]:
    """The name of a table that is gone after the test."""
    yield "network"
    spark.sql("drop table if exists network")


@pytest.mark.parametrize("how", CATALOG)
def test_a_table_of_the_catalog_is_read_with_its_options(how: str, spark: Any, mixed: Path, table: str) -> None:
    create, read = CATALOG[how]
    spark.sql(f"create table {table} " + create.format(mixed, "columns 'name_text', correlationId 'a'"))
    found = spark.sql(f"select name_text from {table} {read.format(mixed)}").collect()
    assert {row.name_text for row in found} >= {"MD=M/ME=a1", "MD=M/ME=a2"}
    if how == "columns":
        with pytest.raises(PySparkException, match=r"no path: .* create it without columns"):
            spark.table(table).collect()
        return
    assert len(found) == 2
    if how != "path":
        return
    twice = spark.table(table).alias("x").join(spark.table(table), "name_text")
    assert {row.name_text for row in twice.collect()} == {"MD=M/ME=a1", "MD=M/ME=a2"}
    assert spark.sql(f"select * from {table} with (correlationId 'b')").count() == 1


def test_a_table_of_the_catalog_with_an_option_that_there_is_not_is_refused(
    spark: Any, mixed: Path, table: str
) -> None:
    with pytest.raises(PySparkException, match="no option 'objcttype'; did you mean objectType"):
        spark.sql(f"create table {table} using mtosi options (path '{mixed}', objctType 'ME')")


@pytest.mark.parametrize("asked", ["filter", "fail"])
def test_a_sequence_with_a_document_that_is_damaged_inside_is_not_complete(
    asked: str, put: Put, landing: Path, envelopes: Any
) -> None:
    put("1.xml", envelopes.batch("c", 1, False, envelopes.me("a")))
    put("2.xml", envelopes.batch("c", 2, True, "".join(map(envelopes.me, "d" * 999)) + "<me:me></me:mo>"))
    put("3.xml", envelopes.batch("d", 1, True, envelopes.me("e")))

    if asked == "filter":
        assert left(landing, onIncomplete=asked) == "3"
    else:
        with pytest.raises(ExchangeError, match="1 incomplete sequences: 'c'"):
            left(landing, onIncomplete=asked)
    assert left(landing, onIncomplete=asked, verify="ends") == left(landing) == "1 2 3"
