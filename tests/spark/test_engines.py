"""`ingest` by both engines: the same tables, report and errors; and which engine is taken."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError, MtosiError, SpoolError
from mtosi_jms.tables import ingest, write
from mtosi_jms.tables.ingest import IngestOptions, choose, run_local

from .troubles import repeating, troubled_landing

Put = Callable[[str, "str | bytes"], Path]
OTHER = {"seconds", "stages", "out", "submit"}
"""What the engines may say differently."""


@pytest.fixture
def troubled(put: Put, landing: Path, envelopes: Any, other_prefixes: Any) -> Path:
    """Everything that a plan must see; objects that come again in other batches; damage in the middle of a file."""
    troubled_landing(put, envelopes, other_prefixes)
    repeating(put, envelopes)
    batch, me = envelopes.batch, envelopes.me
    more = "<me:location>here</me:location>"
    put("again/1.xml", batch("again", 1, False, me("a") + me("b") + me("c", more)))
    put("again/2.xml", batch("again", 2, False, me("a") + me("b", more) + me("d")))
    put("again/3.xml", batch("again", 3, True, me("c", "<me:location>there</me:location>") + me("a")))
    many = "".join(me(f"m{number}") for number in range(100))
    put("middle/1.xml", batch("middle", 1, False, me("whole")))
    put("middle/2.xml", batch("middle", 2, True, f"{many}<me:me></v:me>{many}"))
    unknown = envelopes.header(msgType="RESPONSE", correlationId="strange")
    put("strange.xml", envelopes.envelope(unknown, "<v:getNothingResponse/>"))
    return landing


def made(out: Path) -> dict[str, Any]:
    """The tables and the report of an ingest."""
    report = {
        name: [json.loads(line) for line in (out / "_report" / name).read_text().splitlines()]
        for name in ("ledger.jsonl", "rejects.jsonl")
    }
    summary = json.loads((out / "_report" / "summary.json").read_text())
    tables = {}
    for folder in sorted(out.glob("objectType=*")):
        table = pq.read_table(folder, partitioning=None)
        rows = sorted(table.to_pylist(), key=lambda row: (row["source_file"], row["source_position"]))
        tables[folder.name] = {name: str(table.schema.field(name).type) for name in table.schema.names}, rows
    return {**report, **{name: value for name, value in summary.items() if name not in OTHER}, "tables": tables}


@pytest.mark.spark
@pytest.mark.parametrize(
    "options",
    [
        {"object_type": "ME", "on_incomplete": "filter"},
        pytest.param({"object_type": "ME,EH"}, marks=pytest.mark.endurance),
        {"object_type": "ALL"},
        {"object_type": "ALL", "landing": "samples"},
    ],
    ids=str,
)
def test_both_engines_make_the_same(
    spark: Any, troubled: Path, tmp_path: Path, shared: Path, options: dict[str, str]
) -> None:
    from mtosi_jms.spark.jobs import run_ingest

    given: dict[str, Any] = {"landing": troubled, **options}
    if options.get("landing"):
        given["landing"] = shared / "samples"
        if not given["landing"].exists():
            pytest.skip("the reference material is not there")
    run_local(IngestOptions(out=tmp_path / "local", **given))
    run_ingest(IngestOptions(out=tmp_path / "spark", **given), spark=spark)
    ours, theirs = made(tmp_path / "local"), made(tmp_path / "spark")
    assert {name for name in ours if ours[name] != theirs.get(name)} == set()
    assert ours == theirs


def test_copies_of_a_sequence_are_left_out(troubled: Path, tmp_path: Path) -> None:
    result = write(troubled / "again", tmp_path / "out")
    assert (result.rows, result.copies, result.differing) == ({"ME": 4}, {"ME": 4}, {"ME": 2})
    columns = ["name_text", "location", "batch_number"]
    rows = pq.read_table(tmp_path / "out" / "objectType=ME", columns=columns).to_pylist()
    kept = {(row["name_text"][-1], row["location"], row["batch_number"]) for row in rows}
    assert kept == {("a", None, 1), ("b", "here", 2), ("c", "here", 1), ("d", None, 2)}


def test_a_job_that_fails_leaves_the_tables(troubled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    write(troubled, out)
    before = made(out)
    for options in ({"mode": "FAILFAST"}, {"on_incomplete": "fail"}, {"object_type": "Unheard"}, {"colour": "red"}):
        with pytest.raises(MtosiError):
            write(troubled, out, **options)
    with monkeypatch.context() as patched:
        patched.setattr("pyarrow.parquet.ParquetWriter.write", full_disk)
        with pytest.raises(SpoolError, match="cannot be written: No space left"):
            write(troubled, out)
    assert made(out) == before
    assert not list(out.glob("_s*"))


def full_disk(*arguments: Any) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, ""),
        ({"format": "delta"}, "the format is delta"),
        ({"write": "merge"}, "write is merge"),
        ({"where": "complete"}, "where"),
        ({"conf": {"spark.jars": "x"}}, "conf"),
    ],
)
def test_spark_does_what_this_process_cannot(troubled: Path, options: dict[str, Any], why: str) -> None:
    given = IngestOptions(**{"landing": troubled, "out": "out", **options})
    engine, reason = choose(given)
    assert engine == ("spark" if why else "local")
    assert why in reason
    assert choose(given, "spark")[0] == "spark"
    assert choose(replace(given, landing=f"local://{troubled}"))[0] == engine
    if why:
        with pytest.raises(ConfigError, match=why):
            run_local(given)


def test_large_landings_go_to_spark(troubled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "LOCAL_BYTES", 1000)
    given = IngestOptions(landing=troubled, out="out")
    assert choose(given)[0] == "spark"
    assert choose(given, "local")[0] == "local"


def test_the_command_needs_neither_java_nor_spark(troubled: Path, tmp_path: Path) -> None:
    program = "import sys; sys.modules['pyspark'] = None; from mtosi_jms.cli import main; of, out = sys.argv[1:]\n"
    program += "sys.exit(main(['ingest', of, '--out', out, '--object', 'ALL']) or main(['alarms', of, '--out', out]))"
    command = [sys.executable, "-c", program, str(troubled), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("note: engine local: 0.") == 2
    tables = made(tmp_path / "out")["tables"]
    assert made(tmp_path / "out")["rows"] == {name.partition("=")[2]: len(rows) for name, (_, rows) in tables.items()}


def test_the_local_engine_is_refused_what_it_cannot(
    troubled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "out")]
    asked = ["ingest", str(troubled), *out, "--engine", "local"]
    assert main([*asked, "--write", "append", "--on-incomplete", "wait"]) == 2
    assert "--engine spark" in capsys.readouterr().err
    assert main([*asked, "--write", "merge"]) == 2
    assert "needs tables of Delta or Iceberg: --format delta or --format iceberg" in capsys.readouterr().err
