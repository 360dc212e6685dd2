"""Landings that Spark plans: the same as those that the driver plans, on any Hadoop file system."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from mtosi_jms.spark.jobs import IngestOptions, run_ingest

from .troubles import troubled_landing

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

Put = Callable[..., Path]
MOUNT = "fs.viewfs.mounttable.here.link./landing"


@pytest.fixture
def mounted(spark: Any, landing: Path) -> Iterator[str]:
    """The landing on another file system of Hadoop's."""
    spark.conf.set(MOUNT, landing.as_uri())
    yield "viewfs://here/landing"
    spark.conf.unset(MOUNT)


def content(out: Path, landing: str) -> dict[str, Any]:
    """What an ingest wrote, as if the landing was at `/`."""
    report = {name: (out / "_report" / name).read_text() for name in ("ledger.jsonl", "rejects.jsonl", "summary.json")}
    summary = json.loads(report.pop("summary.json"))
    for name in ("seconds", "stages", "out"):
        del summary[name]
    rows = {
        folder.name: sorted(repr(row) for file in folder.glob("*.parquet") for row in pq.read_table(file).to_pylist())
        for folder in out.glob("objectType=*")
    }
    found = {"summary": summary, **report, **rows}
    return {name: json.loads(json.dumps(value).replace(landing, "")) for name, value in found.items()}


def test_an_ingest_from_elsewhere_is_that_from_here(
    spark: Any, landing: Path, mounted: str, put: Put, envelopes: Any, other_prefixes: Any, tmp_path: Path
) -> None:
    troubled_landing(put, envelopes, other_prefixes)
    run_ingest(IngestOptions(landing=landing, out=tmp_path / "here"), spark=spark)
    result = run_ingest(IngestOptions(landing=mounted, out=tmp_path / "there"), spark=spark)
    assert result.rows == {"ME": 3012}
    assert not result.complete
    here, there = content(tmp_path / "here", str(landing)), content(tmp_path / "there", mounted)
    assert there == here
