"""`mtosi_jms.tables`: a landing as Arrow, with the rows, columns and errors of the Spark source."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mtosi_jms.errors import ConfigError, ExchangeError, MtosiError, SpoolError
from mtosi_jms.tables import read

Put = Callable[[str, "str | bytes"], Path]


def by_place(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["source_file"] or "", row.get("source_position") or 0, str(row)))


@pytest.mark.spark
@pytest.mark.parametrize(
    "options",
    [
        {"objectType": "ME", "columnNameOfCorruptRecord": "why"},
        pytest.param({"objectType": "ME,EH", "onIncomplete": "filter"}, marks=pytest.mark.endurance),
        {"objectType": "ALL", "mode": "DROPMALFORMED", "columns": "xml,source_file,complete,attributes"},
        {"objectType": "MESSAGE", "verify": "full"},
    ],
    ids=lambda options: options["objectType"],
)
def test_rows_and_columns_are_those_of_the_spark_source(spark: Any, troubled: Path, options: dict[str, str]) -> None:
    theirs = spark.read.format("mtosi").options(**options).load(str(troubled)).toArrow()
    ours = read(troubled, options.pop("objectType"), **options)
    assert ours.schema.names == theirs.schema.names
    assert by_place(ours.to_arrow().to_pylist()) == by_place(theirs.to_pylist())
    assert by_place(ours.batches().read_all().to_pylist()) == by_place(theirs.to_pylist())


@pytest.mark.spark
@pytest.mark.parametrize("object_type", ["ME", "ME,EH", "ALL", "MESSAGE"])
def test_folders_give_columns(spark: Any, put: Put, landing: Path, envelopes: Any, object_type: str) -> None:
    for number, folder in enumerate(["day=1/Site=a%20b/", "DAY=1/day=2/", "site=__HIVE_DEFAULT_PARTITION__/", ""]):
        put(f"{folder}{number}.xml", envelopes.batch("whole", number + 1, number == 3, envelopes.me(f"e{number}")))
    put("day=2/bad.xml", "<a>")
    options = {"folderColumns": "day, site", "columnNameOfCorruptRecord": "why"}
    theirs = spark.read.format("mtosi").options(objectType=object_type, **options).load(str(landing)).toArrow()
    ours = read(landing, object_type, **options)
    assert by_place(ours.to_arrow().to_pylist()) == by_place(theirs.to_pylist())
    found = {Path(row["source_file"]).name: (row["day"], row["site"]) for row in ours.to_arrow().to_pylist()}
    assert found == {
        "0.xml": ("1", "a b"), "1.xml": ("2", None), "2.xml": (None, None), "3.xml": (None, None),
        "bad.xml": ("2", None),
    }  # fmt: skip


def test_files_in_folders_that_a_filter_excludes_are_not_read(put: Put, landing: Path, envelopes: Any) -> None:
    for day in "12":
        put(f"day={day}/{day}.xml", envelopes.batch("whole", int(day), day == "2", envelopes.me(f"e{day}")))
    found = read(landing, folderColumns="day", filter=(pc.field("day") == "2") & pc.field("name_text").is_valid())
    (landing / "day=1" / "1.xml").unlink()
    assert found.to_arrow().select(["day", "name_text", "complete"]).to_pylist() == [
        {"day": "2", "name_text": "MD=M/ME=e2", "complete": True}
    ]
    with pytest.raises(ConfigError, match="filter: "):
        read(landing, folderColumns="day", filter=pc.field("night") == "2")


def test_ledger_and_rejects_are_tables(troubled: Path) -> None:
    table = read(str(troubled))
    ledger = {row["correlation_id"]: row for row in table.ledger.to_pylist()}
    assert (ledger["whole"]["complete"], ledger["whole"]["duplicates"], ledger["gap"]["missing"]) == (True, 3, [2])
    names = [Path(row["file"]).name for row in table.rejects.to_pylist()]
    assert names == sorted(names, key=names.index)
    assert {"soap.xml", "empty.xml", "early.xml", "damaged.zip"} <= set(names)
    assert table.rejects.schema.names == ["file", "line", "reason"]


def test_options_are_those_of_the_source_as_text_or_values(troubled: Path) -> None:
    named = read(troubled, columns=["name_text", "complete"], correlation_id="whole", batchRows=1)
    assert named.schema.names == ["name_text", "complete"]
    assert [batch.num_rows for batch in named.batches()] == [1, 1, 1]
    flat = read(troubled, recursive_file_lookup=False, filter=pc.field("name_text") == "MD=M/ME=o1")
    assert flat.to_arrow().column("name_text").to_pylist() == ["MD=M/ME=o1"]
    both = read([troubled / "gap", troubled / "open.xml"], pathGlobFilter="*.xml")
    assert sorted(both.to_arrow()["name_text"].to_pylist()) == ["MD=M/ME=g1", "MD=M/ME=g3", "MD=M/ME=o1"]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"onIncomplete": "fail"}, ExchangeError, "incomplete sequences"),
        ({"on_incomplete": "perhaps"}, ConfigError, "onIncomplete is 'perhaps'"),
        ({"mode": "failfast"}, MtosiError, "bad.xml:1: not SOAP"),
        ({"color": "red"}, ConfigError, "no option 'color'"),
        ({"columns": "colour"}, ConfigError, "there is no 'colour'"),
        ({"path": "."}, ConfigError, "an argument of read"),
    ],
)
def test_errors_come_before_the_first_row(
    troubled: Path, options: dict[str, Any], error: type[MtosiError], says: str
) -> None:
    with pytest.raises(error, match=says):
        read(troubled, **options)


def test_a_filter_that_does_not_fit_is_an_error_of_ours(troubled: Path) -> None:
    for condition in (pc.field("colour") == "red", pc.field("complete") > "x"):
        with pytest.raises(ConfigError, match="filter: "):
            read(troubled, filter=condition).to_arrow()


def test_nothing_to_read_is_an_error(put: Put, landing: Path, tmp_path: Path) -> None:
    put("bad.xml", "<x/>")
    with pytest.raises(SpoolError, match="no message in it can be read"):
        read(landing)
    assert read(landing, allow_empty=True).to_arrow().num_rows == 0
    with pytest.raises(SpoolError, match="no such file or folder"):
        read(tmp_path / "unmounted")


def test_damage_in_the_middle_is_told_and_makes_its_sequence_incomplete(
    put: Put, landing: Path, envelopes: Any, caplog: pytest.LogCaptureFixture
) -> None:
    put("1.xml", envelopes.batch("c", 1, False, envelopes.me("a")))
    many = "".join(envelopes.me(f"b{number}") for number in range(100))
    put("2.xml", envelopes.batch("c", 2, True, f"{many}<me:me></v:me>{many}"))
    table = read(landing)
    assert table.rejects.num_rows == 0
    assert table.batches().read_all().column("complete").to_pylist() == [True]
    assert "2.xml" in caplog.text
    assert table.rejects.num_rows == 1
    whole = read(landing)
    assert whole.to_arrow().column("complete").to_pylist() == [False]
    assert (whole.rejects.num_rows, whole.ledger.column("complete").to_pylist()) == (1, [False])


def test_a_file_that_changes_is_an_error_that_names_it(put: Put, landing: Path, envelopes: Any) -> None:
    path = put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    table = read(landing)
    path.write_text(envelopes.batch("c", 1, True, envelopes.me("another")))
    for reads in (table.to_arrow, lambda: table.batches().read_all(), lambda: pa.table(table)):
        with pytest.raises((SpoolError, OSError), match=r"1\.xml.*has changed"):
            reads()


def test_other_libraries_take_it_as_a_stream(troubled: Path) -> None:
    table = read(troubled, columns="name_text,complete")
    assert pa.table(table).equals(table.to_arrow())
    assert len(table.to_pandas()) == table.to_arrow().num_rows
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        table.to_duckdb(connection, "elements")
        for _ in range(2):
            found = connection.execute("SELECT count(*) FROM elements WHERE complete").fetchall()
            assert found == [(pc.sum(table.to_arrow()["complete"]).as_py(),)]


def test_libraries_that_are_missing_are_named(troubled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ConfigError, match="pip install polars"):
        read(troubled).to_polars()


def test_neither_spark_nor_pandas_is_loaded(troubled: Path) -> None:
    """pandas takes longer than all the rest, and `pyarrow.array` loads it, which the Python core uses."""
    pytest.importorskip("mtosi_jms.xmlbind._core", reason="the native core is not built")
    program = (
        "import sys; from mtosi_jms.tables import read; batch = next(iter(read(sys.argv[1], correlationId='whole')"
        ".batches())); print(batch.num_rows, {'pandas', 'pyspark', 'py4j'} & sys.modules.keys() or 'none')"
    )
    done = subprocess.run([sys.executable, "-c", program, str(troubled)], capture_output=True, text=True)
    assert done.stdout.split() == ["3", "none"], done.stderr
