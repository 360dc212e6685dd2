"""The source in Spark: exact rows, ledger and rejects of a landing with every kind of trouble in it."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError

pytest.importorskip("pyspark")

import mtosi_jms.spark as mtosi_spark

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

Put = Callable[..., Path]


@pytest.fixture
def troubled(put: Put, landing: Path, envelopes: Any, other_prefixes: Any) -> Path:
    """A shuffled landing: `whole` is complete in five batches, `gap` lacks number 2, `open` its end."""

    def elements(maker: Any, cid: str, number: int) -> str:
        return "".join(maker.me(f"{cid}-{number}-{index}") for index in range(3))

    def batch(cid: str, number: int, end: bool, maker: Any = envelopes) -> str:
        return str(maker.batch(cid, number, end, elements(maker, cid, number)))

    files: list[tuple[str, str]] = [
        *((".xml", batch("whole", number, number == 5)) for number in (1, 2)),
        (".xml", batch("whole", 3, False, other_prefixes)),
        (".xml.gz", batch("whole", 4, False)),
        (".xml", batch("whole", 5, True)),
        (".xml", batch("whole", 1, False)),
        (".xml.zst", batch("whole", 2, False)),
        (".xml", batch("whole", 3, False)),
        (".xml", batch("gap", 1, False)),
        (".xml", batch("gap", 3, True)),
        (".xml", batch("open", 1, False)),
        (".xml", batch("clash", 1, True)),
        (".xml", batch("clash", 1, True).replace("clash-1-2", "clash-1-x")),
        (".xml", str(envelopes.batch(None, None, None, envelopes.me("alone")))),
        (".xml", str(envelopes.request("whole"))),
        (".xml", str(envelopes.fault())),
        (".cut.xml", batch("gap", 2, False)[:-200]),
        (".strange.xml", "<order/>"),
    ]
    random.Random(5).shuffle(files)
    for position, (ending, text) in enumerate(files):
        put(f"{position % 3}/{position:02d}{ending}", text)
    return landing


def load(spark: Any, folder: Path, **options: str) -> Any:
    return spark.read.format("mtosi").options(**options).load(str(folder))


WHOLE = {f"whole-{number}-{index}" for number in range(1, 6) for index in range(3)}
GAP = {f"gap-{number}-{index}" for number in (1, 3) for index in range(3)}
OPEN = {f"open-1-{index}" for index in range(3)}
CLASH = ["clash-1-0", "clash-1-0", "clash-1-1", "clash-1-1", "clash-1-2", "clash-1-x"]


def test_exact_rows_and_marks(spark: Any, troubled: Path) -> None:
    rows = load(spark, troubled, numPartitions="5").select("name_text", "complete", "correlation_id").collect()
    names = sorted(row.name_text.removeprefix("MD=M/ME=") for row in rows)
    assert names == sorted([*WHOLE, *GAP, *OPEN, *CLASH, "alone"])
    marks = {(row.correlation_id, row.complete) for row in rows}
    assert marks == {("whole", True), ("gap", False), ("open", False), ("clash", False), (None, True)}


def test_exact_ledger_whichever_way_messages_come(spark: Any, troubled: Path) -> None:
    expected = {
        "whole": (5, 5, [], 3, [], True),
        "gap": (2, 3, [2], 0, [], False),
        "open": (1, None, [], 0, [], False),
        "clash": (2 - 1, 1, [], 0, [1], False),
        None: (1, 1, [], 0, [], True),
    }
    messages = load(spark, troubled, objectType="MESSAGE", numPartitions="4")
    for row in mtosi_spark.ledger(messages).collect():
        found = (row.batches, row.expected, row.missing, row.duplicates, row.conflicts, row.complete)
        assert found == expected.pop(row.correlation_id), row
    assert expected == {}


def test_ledger_of_a_column_of_envelopes_counts_copies_itself(spark: Any, envelopes: Any, other_prefixes: Any) -> None:
    texts = [
        envelopes.batch("a", 1, False, envelopes.me("x")),
        other_prefixes.batch("a", 1, False, other_prefixes.me("x")),
        envelopes.batch("a", 3, True, ""),
        envelopes.batch(None, 1, True, ""),
        envelopes.batch(None, 1, True, ""),
        envelopes.fault("a"),
        envelopes.request("a"),
        "no xml",
    ]
    df = spark.createDataFrame([(text,) for text in texts], "value string")
    rows = mtosi_spark.ledger(df, "value").orderBy("correlation_id").collect()
    assert [(row.correlation_id, row.batches, row.duplicates, row.missing, row.faults) for row in rows] == [
        (None, 1, 0, [], 0),
        (None, 1, 0, [], 0),
        ("a", 2, 1, [2], 1),
    ]
    with pytest.raises(ConfigError, match=r"ledger\(\) needs rows of objectType MESSAGE"):
        mtosi_spark.ledger(df)


def test_ledger_has_first_and_last_time_whichever_way(spark: Any, put: Put, landing: Path, envelopes: Any) -> None:
    times = [("a", 1, "2024-01-01T13:00:00+02:00"), ("a", 2, "2024-01-01T10:00:00.5Z"), ("a", 3, "no time")]
    for cid, number, time in [*times, ("b", 1, "never")]:
        put(f"{cid}{number}.xml", envelopes.batch(cid, number, False, "", time=time))
    messages = load(spark, landing, objectType="MESSAGE")
    shown = "correlation_id", "cast(first_time as string) as first", "cast(last_time as string) as last"
    for ledger in (mtosi_spark.ledger(messages), mtosi_spark.ledger(messages.select("body"))):
        rows = [tuple(row) for row in ledger.selectExpr(*shown).orderBy("correlation_id").collect()]
        assert rows == [("a", "2024-01-01 10:00:00.5", "2024-01-01 11:00:00"), ("b", None, None)]
    untimed = mtosi_spark.ledger(messages.drop("header_timestamp")).select("first_time", "received").first()
    assert untimed.first_time is None


def test_message_rows(spark: Any, troubled: Path) -> None:
    df = load(spark, troubled, objectType="MESSAGE", columnNameOfCorruptRecord="_bad")
    rows = df.collect()
    good = [row for row in rows if row._bad is None]
    kinds = sorted(row.kind for row in good)
    assert kinds == ["fault", "request", *["response"] * 11]
    assert sorted(Path(row.source_file).name[2:] for row in rows if row._bad) == [".cut.xml", ".strange.xml"]
    whole = {row.batch_number: row for row in good if row.correlation_id == "whole" and row.kind == "response"}
    assert whole[1].objects == {"ME": 3}
    assert sum(len(row.duplicate_files) for row in whole.values()) == 3
    assert whole[4].body_element.endswith("}getAllManagedElementsResponse")
    assert bytes(whole[4].body).startswith(b"<?xml")


def test_corrupt_records_have_their_reason(spark: Any, troubled: Path) -> None:
    df = load(spark, troubled, columnNameOfCorruptRecord="_bad")
    bad = {Path(row.source_file).name[2:]: row for row in df.where("_bad is not null").collect()}
    assert sorted(bad) == [".cut.xml", ".strange.xml"]
    assert "ends early (truncated)" in bad[".cut.xml"]._bad
    assert "not SOAP" in bad[".strange.xml"]._bad
    assert bad[".cut.xml"].name_text is None
    assert df.where("_bad is null").count() == len(WHOLE | GAP | OPEN) + len(CLASH) + 1


def test_failfast_and_incomplete_end_the_job(spark: Any, troubled: Path) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=r"ends early|not SOAP"):
        load(spark, troubled, mode="FAILFAST").count()
    with pytest.raises(PySparkException, match="3 incomplete sequences"):
        load(spark, troubled, onIncomplete="fail").count()
    with pytest.raises(PySparkException, match="no option 'objtype'"):
        load(spark, troubled, objType="ME").count()
    with pytest.raises(PySparkException, match="no such file or folder"):
        load(spark, troubled / "nothing").count()


def test_incomplete_sequences_can_be_left_out(spark: Any, troubled: Path) -> None:
    rows = load(spark, troubled, onIncomplete="filter").select("correlation_id").distinct().collect()
    assert {row.correlation_id for row in rows} == {"whole", None}


def test_several_paths(spark: Any, troubled: Path) -> None:
    parts = [str(folder) for folder in troubled.iterdir()]
    assert len(parts) == 3
    assert spark.read.format("mtosi").load(parts).count() == load(spark, troubled).count()


def test_rows_do_not_depend_on_partitions(spark: Any, troubled: Path) -> None:
    seen = {
        tuple(sorted(row.name_text for row in load(spark, troubled, numPartitions=str(count)).collect()))
        for count in (1, 3, 20)
    }
    assert len(seen) == 1


def test_a_schema_narrows_the_columns(spark: Any, troubled: Path) -> None:
    from pyspark.errors import PySparkException

    reader = spark.read.format("mtosi")
    rows = reader.schema("source_file string, name_text string").load(str(troubled)).collect()
    assert len(rows) == len(WHOLE | GAP | OPEN) + len(CLASH) + 1
    assert rows[0].asDict().keys() == {"source_file", "name_text"}
    with pytest.raises(PySparkException, match="asks for 'colour'"):
        spark.read.format("mtosi").schema("colour string").load(str(troubled)).count()
    with pytest.raises(PySparkException, match="asks for name_text as int; it is string"):
        spark.read.format("mtosi").schema("name_text int").load(str(troubled)).count()


def test_long_form_and_empty_landing(spark: Any, troubled: Path, tmp_path: Path) -> None:
    row = load(spark, troubled, objectType="ALL").where("name_text = 'MD=M/ME=alone'").first()
    assert (row.object_type, row.attributes) == ("ME", {})
    assert row.xml.startswith("<me:me")
    (tmp_path / "empty").mkdir()
    assert load(spark, tmp_path / "empty").count() == 0


def test_parse_messages_gives_the_rows_of_the_source(spark: Any, troubled: Path) -> None:
    messages = load(spark, troubled, objectType="MESSAGE")
    parsed = mtosi_spark.parse_messages(messages, "ME", keep=("size",))
    direct = load(spark, troubled)
    assert parsed.columns == ["size", *direct.columns]
    ours = ["name_text", "correlation_id", "batch_number", "source_line", "source_position", "name"]
    assert sorted(parsed.select(*ours).collect(), key=repr) == sorted(direct.select(*ours).collect(), key=repr)
    assert {row.size > 0 for row in parsed.select("size").collect()} == {True}


def test_parse_messages_rejects(spark: Any, envelopes: Any) -> None:
    from pyspark.errors import PySparkException

    good = envelopes.batch("a", 1, True, envelopes.me("x"))
    df = spark.createDataFrame([(1, good), (2, good[:-90]), (3, None), (4, "<x/>")], "id int, body string")
    rows = mtosi_spark.parse_messages(df, "ME", corrupt_column="why", keep=("id",)).collect()
    found = {row.id: row.why for row in rows}
    assert found[1] is None
    assert "ends early" in found[2]
    assert found[3].endswith("empty document")
    assert "not SOAP" in found[4]
    assert mtosi_spark.parse_messages(df, "ME").count() == 1
    with pytest.raises(PySparkException, match=r"ends early|empty document|not SOAP"):
        mtosi_spark.parse_messages(df, "ME", mode="FAILFAST").collect()
    with pytest.raises(ConfigError, match="no column 'value'"):
        mtosi_spark.parse_messages(df, "ME", column="value")
    with pytest.raises(ConfigError, match="'warnings' of their own"):
        mtosi_spark.parse_messages(df.withColumnRenamed("id", "warnings"), "ME", keep=("warnings",))


def test_typed_values_survive_the_way_to_spark(spark: Any, put: Put, landing: Path, envelopes: Any) -> None:
    inner = (
        "<coi:vendorExtensions><v:a>1</v:a></coi:vendorExtensions>"
        "<me:manufactureDate>2020-02-29</me:manufactureDate><me:isInSyncState>false</me:isInSyncState>"
        "<me:communicationState>NEW</me:communicationState>"
    )
    put("a.xml", envelopes.batch("c", 1, True, envelopes.me("a", inner)))
    row = load(spark, landing).first()
    assert (row.manufacture_date, row.is_in_sync_state) == (dt.date(2020, 2, 29), False)
    assert row.vendor_extensions == {"a": "1"}
    assert [warning.rule for warning in row.warnings] == ["bad-value"]
    assert row.name.rdn[1].value == "a"


def test_timestamps_reach_spark_in_utc(spark: Any, put: Put, landing: Path, envelopes: Any) -> None:
    alarm = (
        '<a:alarm xmlns:a="http://www.tmforum.org/mtop/nra/xsd/alm/v1" xmlns:c="http://www.tmforum.org/mtop/fmw/xsd/cei/v1">'
        "<c:notificationId>n</c:notificationId><c:sourceTime>2024-01-01T12:00:00+02:00</c:sourceTime></a:alarm>"
    )
    put("a.xml", envelopes.envelope(envelopes.header(msgType="RESPONSE"), f"<v:getResponse>{alarm}</v:getResponse>"))
    df = load(spark, landing, objectType="nra.alm:Alarm")
    assert df.selectExpr("cast(source_time as string) as t").first().t == "2024-01-01 10:00:00"
    parsed = mtosi_spark.parse_messages(load(spark, landing, objectType="MESSAGE"), "nra.alm:Alarm")
    assert parsed.selectExpr("cast(source_time as string) as t").first().t == "2024-01-01 10:00:00"
