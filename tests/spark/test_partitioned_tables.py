"""Tables partitioned on request, by columns of their rows or of folders such as `day=2026-01-01`, by both engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError
from mtosi_jms.tables import query, write
from mtosi_jms.tables.ingest import IngestOptions, check_write, source_options

Put = Callable[[str, "str | bytes"], Path]


@pytest.fixture
def days(put: Put, landing: Path, envelopes: Any) -> Path:
    """Two days, the second of an EMS whose name needs an escape, and a file in no such folder."""
    for name, ne in {"day=2026-01-01/": "a", "day=2026-01-02/ems=E%2F2/": "b", "": "c"}.items():
        put(f"{name}{ne}.xml", envelopes.batch(ne, 1, True, envelopes.me(ne)))
    return landing


def test_partitioned_tables(days: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    asked = ["ingest", str(days), "--out", str(out), "--option", "folderColumns=day", "--partition-by", "day"]
    assert main(asked) == 0
    table = out / "objectType=ME"
    names = ["2026-01-01", "2026-01-02", "__HIVE_DEFAULT_PARTITION__"]
    assert sorted(path.name for path in table.iterdir()) == [f"day={name}" for name in names]
    with query(out, "SELECT name_text FROM ME WHERE day = '2026-01-02'") as answer:
        assert list(answer.rows) == [("MD=M/ME=b",)]
    for job in (["topology", str(out)], ["diff", str(out), str(out)]):
        assert main([*job, "--out", str(tmp_path / job[0]), "--engine", "local"]) == 0
    capsys.readouterr()
    assert main([*asked[:-1], "vendor_extensions"]) == 1
    assert "ME has no plain column 'vendor_extensions'" in capsys.readouterr().err
    assert len(list(table.iterdir())) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"write": "merge", "format": "delta", "partition_by": ("day",)}, "goes with write replace"),
        ({"write": "merge", "format": "delta", "source": {"verify": "full"}}, "goes with write replace"),
        ({"format": "delta", "partition_by": ("day",)}, "is for Parquet"),
        ({"source": {"columns": "name_text"}}, "columns is an option of ingest itself"),
    ],
)
def test_what_ingest_refuses(days: Path, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    given = IngestOptions(landing=days, out=tmp_path / "out", **options)
    check = check_write if "format" in options else source_options
    with pytest.raises(ConfigError, match=message):
        check(given)


@pytest.mark.spark
@pytest.mark.parametrize("types", ["ME", "ME,EH"])
def test_spark_makes_the_same(spark: Any, days: Path, tmp_path: Path, types: str) -> None:
    from mtosi_jms.spark.jobs import run_ingest

    given: dict[str, Any] = {"landing": days, "object_type": types, "partition_by": ("ems", "day")}
    given["source"] = {"folderColumns": "day,ems"}
    write(out=tmp_path / "local", **given)
    run_ingest(IngestOptions(out=tmp_path / "spark", **given), spark=spark)
    ours, theirs = (
        ds.dataset(tmp_path / name / "objectType=ME", partitioning="hive").to_table().sort_by("name_text")
        for name in ("local", "spark")
    )
    assert ours.to_pylist() == theirs.to_pylist()
    assert set(ours.column("ems").to_pylist()) == {None, "E/2"}


def test_a_result_lists_a_thousand_sequences(put: Put, landing: Path, envelopes: Any, tmp_path: Path) -> None:
    for number in range(1002):
        put(f"{number}.xml", envelopes.batch(f"c{number:04}", 1, number not in (7, 1001), envelopes.me("a")))
    result = write(landing, tmp_path / "out")
    assert result.ledger == {"sequences": 1002, "complete": 1000, "duplicates": 0, "conflict": 0}
    assert not result.complete
    assert len(result.sequences) == 1000
    incomplete = [found.correlation_id for found in result.sequences if not found.complete]
    assert incomplete == ["c0007", "c1001"]
    assert len((tmp_path / "out/_report/ledger.jsonl").read_text().splitlines()) == 1002
    assert "1000 of 1002" in (tmp_path / "out/_report/report.html").read_text()
