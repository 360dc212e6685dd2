"""Filters that decide about files: the same rows with and without them, and fewer files read."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, ExchangeError
from mtosi_jms.spark.landing import plan_landing, readable
from mtosi_jms.spark.options import SourceOptions

pytest.importorskip("pyspark", minversion="4.1", reason="filters are pushed from PySpark 4.1 on")

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    Not,
    StringContains,
    StringEndsWith,
)

from mtosi_jms.spark.source import InventoryReader, full_schema

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

Put = Callable[..., Path]
SETTING = "spark.sql.python.filterPushdown.enabled"


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


def planned(folder: Path, filters: Sequence[Any], **options: str) -> tuple[str, InventoryReader]:
    """First letters and digits of the files that are left to be read, and the reader, which went through pickle."""
    settings = SourceOptions.parse({"path": str(folder), **options})
    reader = InventoryReader(settings, full_schema(settings))
    assert list(reader.pushFilters(list(filters))) == list(filters)
    files = [file for part in reader.partitions() for file in part.files]
    return " ".join(sorted(Path(file.path).stem for file in files)), pickle.loads(pickle.dumps(reader))


ALL_FILES = "a1 a2 b1 c d e"


@pytest.mark.parametrize(
    ("asked", "files"),
    [
        ([], ALL_FILES),
        ([EqualTo(("correlation_id",), "a")], "a1 a2 e"),
        ([IsNotNull(("correlation_id",)), EqualTo(("correlation_id",), "a"), EqualTo(("complete",), True)], "a1 a2"),
        ([In(("correlation_id",), ("a", "b"))], "a1 a2 b1 e"),
        ([In(("correlation_id",), ("b", None))], "b1"),
        ([Not(In(("correlation_id",), ("b", None)))], ""),
        ([Not(EqualTo(("correlation_id",), "a"))], "b1 d"),
        ([EqualTo(("correlation_id",), None)], ""),
        ([IsNull(("correlation_id",))], "c"),
        ([EqualNullSafe(("correlation_id",), None)], "c"),
        ([Not(EqualNullSafe(("correlation_id",), "a"))], "b1 c d"),
        ([EqualTo(("complete",), False)], "b1"),
        ([EqualTo(("end_of_reply",), True)], "a2 d"),
        ([GreaterThan(("batch_number",), 1)], "a2"),
        ([LessThan(("batch_number",), 2)], "a1 b1 d"),
        ([EqualTo(("header_timestamp",), "2024-01-02T00:00:00Z")], "a2"),
        ([EqualTo(("header_sender_uri",), "/nobody")], ""),
        ([IsNull(("header_activity_name",))], ""),
        ([StringEndsWith(("source_file",), "1.xml")], "a1 b1"),
        ([StringContains(("correlation_id",), "a")], "a1 a2 e"),
    ],
    ids=str,
)
def test_files_that_are_left(mixed: Path, asked: list[Any], files: str) -> None:
    assert planned(mixed, asked)[0] == files


@pytest.mark.parametrize(
    "asked",
    [
        EqualTo(("name_text",), "x"),
        EqualTo(("name", "rdn"), "x"),
        EqualTo(("object_type",), "ME"),
        EqualTo(("batch_number",), "1"),
        EqualTo(("batch_number",), True),
        EqualTo(("kind",), "response"),
        GreaterThan(("correlation_id",), "z"),
        StringContains(("batch_number",), "z"),
        Not(GreaterThan(("correlation_id",), "a")),
        Filter,
    ],
    ids=str,
)
def test_what_is_not_understood_leaves_all_files(mixed: Path, asked: Any) -> None:
    assert planned(mixed, [asked])[0] == ALL_FILES


def test_message_rows_have_columns_of_their_own(mixed: Path) -> None:
    message = {"objectType": "MESSAGE"}
    assert planned(mixed, [EqualTo(("kind",), "request")], **message)[0] == "e"
    assert planned(mixed, [StringEndsWith(("body_element",), "Response")], **message)[0] == "a1 a2 b1 c d"
    assert planned(mixed, [LessThan(("size",), 10)], **message)[0] == ""
    assert planned(mixed, [EqualTo(("correlation_id",), "b")], objectType="ALL")[0] == "b1"
    assert planned(mixed, [EqualTo(("correlation_id",), "b")], objectType="ME,PTP")[0] == "b1"


def test_a_damaged_file_is_read_where_its_row_could_pass(mixed: Path) -> None:
    """Of a damaged file there is a row in which all is null but file, line and reason."""
    corrupt = {"columnNameOfCorruptRecord": "_bad"}
    asked = [IsNull(("correlation_id",)), StringContains(("source_file",), "d.xml")]
    files, reader = planned(mixed, asked, **corrupt)
    assert files == "d"
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    (row,) = [row for row in rows if row["source_file"].endswith("d.xml")]
    assert (row["correlation_id"], "not well-formed" in row["_bad"]) == (None, True)
    assert planned(mixed, asked)[0] == ""
    assert planned(mixed, asked, mode="DROPMALFORMED", **corrupt)[0] == ""


def test_failfast_reads_every_file(landing: Path, put: Put, envelopes: Any) -> None:
    put("a.xml", envelopes.batch("a", 1, True, envelopes.me("a")))
    put("b.xml", envelopes.batch("b", 1, True, envelopes.me("b")))
    asked = [EqualTo(("correlation_id",), "a")]
    assert planned(landing, asked)[0] == "a"
    assert planned(landing, asked, mode="FAILFAST")[0] == "a b"


def test_a_plan_that_was_made_before_knows_no_headers(mixed: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan_landing(SourceOptions.parse({"path": str(mixed)})).save(plan)
    read = {"planFile": str(plan)}
    assert planned(mixed, [EqualTo(("header_sender_uri",), "/nobody")], **read)[0] == ALL_FILES
    assert planned(mixed, [EqualTo(("correlation_id",), "b")], **read)[0] == "b1"


def test_correlation_id_as_an_option(mixed: Path, put: Put, envelopes: Any, tmp_path: Path) -> None:
    put("g.xml", envelopes.batch(" b", 1, True, envelopes.me("g")))
    assert planned(mixed, [], correlationId="b")[0] == "b1"
    assert planned(mixed, [], correlationId=" b")[0] == "g"
    whole = plan_landing(SourceOptions.parse({"path": str(mixed)}))
    whole.save(tmp_path / "plan.json")
    assert planned(mixed, [], correlationId="b", planFile=str(tmp_path / "plan.json"))[0] == "b1"
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


def test_the_same_rows_from_fewer_files_in_spark(spark: Any, mixed: Path) -> None:
    columns = "name_text,correlation_id,batch_number,complete,source_position,header_timestamp,_bad"
    frame = spark.read.format("mtosi").option("columns", columns).option("numPartitions", "20")
    frame = frame.option("columnNameOfCorruptRecord", "_bad").load(str(mixed))

    def asked(condition: str) -> tuple[list[Any], int]:
        """Rows, and partitions: one a file, and one for what planning rejected."""
        df = frame.where(condition)
        return sorted(df.collect(), key=repr), df.rdd.getNumPartitions()

    conditions = {
        "correlation_id in ('a', 'b') and header_timestamp >= '2024' and name_text like '%1'": 4,
        "complete and batch_number = 2": 2,
        "correlation_id is null": 7,
    }
    off = {condition: asked(condition) for condition in conditions}
    spark.conf.set(SETTING, "true")
    try:
        on = {condition: asked(condition) for condition in conditions}
    finally:
        spark.conf.unset(SETTING)
    assert {condition: rows for condition, (rows, _) in on.items()} == {
        condition: rows for condition, (rows, _) in off.items()
    }
    assert [len(rows) for rows, _ in on.values()] == [2, 1, 3]
    assert {count for _, count in off.values()} == {7}
    assert {condition: count for condition, (_, count) in on.items()} == conditions
