"""The source in Spark: exact rows, ledger and rejects of a landing with every kind of trouble in it."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError

pytest.importorskip("pyspark")

import mtosi_jms.spark as mtosi_spark

from .conftest import Envelopes, Put, writer

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shuffled landing: `whole` is complete in five batches, `gap` lacks number 2, `open` its end."""
    landing = tmp_path_factory.mktemp("troubled")
    envelopes, other_prefixes, put = Envelopes(), Envelopes("z"), writer(landing)

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
        (".xml", batch("gap", 1, False).replace(TIME, "2024-01-01T13:00:00+02:00")),
        (".xml", batch("gap", 3, True).replace(TIME, "2024-01-01T10:00:00.5Z")),
        (".xml", batch("open", 1, False).replace(TIME, "never")),
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


TIME = "2024-01-01T00:00:00Z"
WHOLE = {f"whole-{number}-{index}" for number in range(1, 6) for index in range(3)}
GAP = {f"gap-{number}-{index}" for number in (1, 3) for index in range(3)}
OPEN = {f"open-1-{index}" for index in range(3)}
CLASH = ["clash-1-0", "clash-1-0", "clash-1-1", "clash-1-1", "clash-1-2", "clash-1-x"]
ALL = len(WHOLE | GAP | OPEN) + len(CLASH) + 1


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
    times = "cast(first_time as string) as first", "cast(last_time as string) as last"
    rows = mtosi_spark.ledger(messages).selectExpr("*", *times).collect()
    assert {row.correlation_id: (row.first, row.last) for row in rows if row.correlation_id in ("gap", "open")} == {
        "gap": ("2024-01-01 10:00:00.5", "2024-01-01 11:00:00"),
        "open": (None, None),
    }
    for row in rows:
        found = (row.batches, row.expected, row.missing, row.duplicates, row.conflicts, row.complete)
        assert found == expected.pop(row.correlation_id), row
    assert expected == {}
    untimed = mtosi_spark.ledger(messages.drop("header_timestamp")).select("first_time").first()
    assert untimed.first_time is None


def test_ledger_of_a_column_of_envelopes_counts_copies_itself(spark: Any, envelopes: Any, other_prefixes: Any) -> None:
    texts = [
        envelopes.batch("a", 1, False, envelopes.me("x"), time="2024-01-01T13:00:00+02:00"),
        other_prefixes.batch("a", 1, False, other_prefixes.me("x"), time="no time"),
        envelopes.batch("a", 3, True, "", time="2024-01-01T10:00:00.5Z"),
        envelopes.batch(None, 1, True, ""),
        envelopes.batch(None, 1, True, ""),
        envelopes.fault("a"),
        envelopes.request("a"),
        "no xml",
    ]
    df = spark.createDataFrame([(text,) for text in texts], "value string")
    asked = "batches", "duplicates", "missing", "faults", "cast(first_time as string)", "cast(last_time as string)"
    rows = mtosi_spark.ledger(df, "value").selectExpr("correlation_id", *asked).collect()
    assert sorted(map(tuple, rows), key=str) == [
        ("a", 2, 1, [2], 1, "2024-01-01 10:00:00.5", "2024-01-01 11:00:00"),
        *[(None, 1, 0, [], 0, "2024-01-01 00:00:00", "2024-01-01 00:00:00")] * 2,
    ]
    with pytest.raises(ConfigError, match=r"ledger\(\) needs rows of objectType MESSAGE"):
        mtosi_spark.ledger(df)


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
    rows = load(spark, troubled, columnNameOfCorruptRecord="_bad").select("source_file", "name_text", "_bad").collect()
    bad = {Path(row.source_file).name[2:]: row for row in rows if row._bad}
    assert sorted(bad) == [".cut.xml", ".strange.xml"]
    assert "ends early (truncated)" in bad[".cut.xml"]._bad
    assert "not SOAP" in bad[".strange.xml"]._bad
    assert bad[".cut.xml"].name_text is None
    assert len(rows) - len(bad) == ALL


def test_an_incomplete_sequence_or_no_landing_ends_the_job(spark: Any, troubled: Path) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="3 incomplete sequences"):
        load(spark, troubled, onIncomplete="fail").count()
    with pytest.raises(PySparkException, match="no such file or folder"):
        load(spark, troubled / "nothing").count()


def test_several_paths_and_a_schema_that_narrows_the_columns(spark: Any, troubled: Path) -> None:
    from pyspark.errors import PySparkException

    parts = [str(folder) for folder in troubled.iterdir()]
    assert len(parts) == 3
    rows = spark.read.format("mtosi").schema("source_file string, name_text string").load(parts).collect()
    assert len(rows) == ALL
    assert rows[0].asDict().keys() == {"source_file", "name_text"}
    with pytest.raises(PySparkException, match="asks for 'colour'"):
        spark.read.format("mtosi").schema("colour string").load(str(troubled)).count()
    with pytest.raises(PySparkException, match="asks for name_text as int; it is string"):
        spark.read.format("mtosi").schema("name_text int").load(str(troubled)).count()


def test_an_empty_landing_has_no_rows(spark: Any, landing: Path) -> None:
    assert load(spark, landing).count() == 0


def test_parse_messages_gives_the_rows_of_the_source(spark: Any, troubled: Path) -> None:
    messages = load(spark, troubled, objectType="MESSAGE")
    parsed = mtosi_spark.parse_messages(messages, "ME", keep=("size",))
    direct = load(spark, troubled)
    assert parsed.columns == ["size", *direct.columns]
    ours = ["name_text", "correlation_id", "batch_number", "source_line", "source_position", "name"]
    rows = parsed.select(*ours, "size").collect()
    assert sorted((row[:-1] for row in rows), key=repr) == sorted(map(tuple, direct.select(*ours).collect()), key=repr)
    assert all(row.size > 0 for row in rows)


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
