"""Checkpoints that do not fit, and clocks that go backwards: told before Spark starts, with nothing lost."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

pytest.importorskip("pyspark")

from mtosi_jms.errors import ConfigError, SpoolError
from mtosi_jms.spark import SourceOptions
from mtosi_jms.spark.jobs import IngestOptions, run_ingest
from mtosi_jms.spark.jobs._checkpoint import Checkpoint
from mtosi_jms.tables.landing import Landing

pytestmark = pytest.mark.spark

HOUR = 3_600_000_000_000


def write_checkpoint(folder: Path, *documents: Path, version: int = 1, left_out: str = "", **identity: Any) -> None:
    """What an ingest leaves that has read some files."""
    metadata: dict[str, Any] = {"version": version, "identity": identity, "closings": [], "from_zero": [], "tables": {}}
    metadata.pop(left_out, None)
    facts = [{"size": file.stat().st_size, "time_ns": file.stat().st_mtime_ns} for file in documents]
    rows = [
        {**fact, "path": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "state": "read"}
        for file, fact in zip(documents, facts, strict=True)
    ]
    texts = ("path", "sha256", "state", "kind", "correlation_id", "body_tag", "timestamp")
    columns = [(name, pa.string()) for name in texts]
    columns += [
        ("size", pa.int64()),
        ("time_ns", pa.int64()),
        ("batch_number", pa.int64()),
        ("end_of_reply", pa.bool_()),
    ]
    table = pa.Table.from_pylist(rows, pa.schema(columns))
    folder.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table.replace_schema_metadata({"mtosi": json.dumps(metadata)}), folder / "checkpoint.parquet")


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ({"version": 99}, "a checkpoint of version 99, this is 1: ingest into another folder"),
        ({"landing": "/mnt/elsewhere"}, "is a checkpoint of .* not .*: choose another folder"),
    ],
)
def test_a_checkpoint_of_something_else(
    made: dict[str, Any], told: str, landing: Path, put: Any, envelopes: Any, tmp_path: Path
) -> None:
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    write_checkpoint(tmp_path / "out/_report", **made)
    before = (tmp_path / "out/_report/checkpoint.parquet").read_bytes()
    with pytest.raises(ConfigError, match=told):
        run_ingest(IngestOptions(landing=landing, out=tmp_path / "out", write="append", on_incomplete="wait"))
    assert (tmp_path / "out/_report/checkpoint.parquet").read_bytes() == before


@pytest.mark.parametrize("name", ["closings", "from_zero", "tables"])
def test_a_checkpoint_that_lacks_a_part(name: str, tmp_path: Path) -> None:
    write_checkpoint(tmp_path, left_out=name)
    with pytest.raises(SpoolError, match="is a damaged checkpoint"):
        Checkpoint(tmp_path, {})


def test_clocks_that_go_backwards(landing: Path, put: Any, envelopes: Any, tmp_path: Path) -> None:
    """A file is new by its name and content: its time decides nothing."""
    read = put("1.xml", envelopes.batch("c", 1, False, envelopes.me("a")))
    write_checkpoint(tmp_path / "report", read)
    late = put("2.xml", envelopes.batch("c", 2, True, envelopes.me("b")))
    now = read.stat().st_mtime_ns
    os.utime(read, ns=(now - HOUR, now - HOUR))
    os.utime(late, ns=(now - 2 * HOUR, now - 2 * HOUR))
    options = SourceOptions.parse({"path": str(landing)})
    news = Checkpoint(tmp_path / "report", {}).look(Landing(options), options, since_last=True)
    assert [Path(file.path).name for file in news.plan(options).files] == ["2.xml"]
    assert news.changed == ()
