"""Delta as the format of an ingest: what is told where it cannot be, and what becomes of tables that are there."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError
from mtosi_jms.spark.jobs import IngestOptions, run_ingest
from mtosi_jms.spark.jobs import _delta as delta

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


@pytest.mark.skipif(importlib.util.find_spec("delta") is not None, reason="Delta Lake is installed")
def test_a_missing_package_is_told_with_its_install_line(
    put: Any, landing: Path, envelopes: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    assert main(["ingest", str(landing), "--out", str(tmp_path / "out"), "--format", "delta"]) == 1
    told = "the format delta needs Delta Lake, which is not installed: pip install delta-spark"
    assert capsys.readouterr().err == f"error: {told}\n"
    assert main(["ingest", str(landing), "--format", "csv"]) == 2


def test_tables_of_the_other_format_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    delta.check_format("delta", tmp_path)
    (tmp_path / "objectType=ME").mkdir()
    delta.check_format("parquet", tmp_path)
    with pytest.raises(ConfigError, match="holds tables of the format parquet"):
        delta.check_format("delta", tmp_path)
    (tmp_path / "objectType=ME/_delta_log").mkdir()
    delta.check_format("delta", tmp_path)
    with pytest.raises(ConfigError, match="holds tables of the format delta"):
        delta.check_format("parquet", tmp_path)
    with pytest.raises(ConfigError, match="there are parquet, delta"):
        delta.check_format("csv", tmp_path)


def test_the_way_of_a_commit(
    spark: Any, put: Any, landing: Path, envelopes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parquet stands in for Delta here: which tables are written and where, not how Delta does it."""
    monkeypatch.setattr(delta, "check_format", lambda name, out: None)
    monkeypatch.setattr("mtosi_jms.spark.jobs._ingest.check_format", lambda name, out: None)
    monkeypatch.setattr("mtosi_jms.spark.jobs._ingest.DELTA", "stand-in")
    monkeypatch.setattr("mtosi_jms.spark.jobs._ingest.delta_settings", dict)
    monkeypatch.setattr(delta, "DELTA", "parquet")
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a") + envelopes.me("b")))
    out = tmp_path / "out"
    result = run_ingest(IngestOptions(landing=landing, out=out, format="stand-in"), spark=spark)
    assert result.rows == {"ME": 2}
    assert "commit" in json.loads((out / "_report/summary.json").read_text())["stages"]
    names = [
        row["name_text"] for file in out.glob("objectType=ME/*.parquet") for row in pq.read_table(file).to_pylist()
    ]
    assert sorted(names) == ["MD=M/ME=a", "MD=M/ME=b"]
    assert sorted(path.name for path in out.iterdir()) == ["_report", "objectType=ME"]
