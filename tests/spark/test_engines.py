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
from mtosi_jms.tables import diff, ingest, topology, write
from mtosi_jms.tables.diff import DiffOptions
from mtosi_jms.tables.ingest import IngestOptions, choose, run_local
from mtosi_jms.tables.topology import TopologyOptions

from .troubles import repeating, written

Put = Callable[[str, "str | bytes"], Path]


@pytest.fixture
def troubled(troubled: Path, put: Put, envelopes: Any) -> Path:
    """Also objects that come again in other batches, and damage in the middle of a file."""
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
    return troubled


@pytest.mark.spark
@pytest.mark.parametrize(
    "options",
    [
        {"object_type": "ME", "on_incomplete": "filter"},
        pytest.param({"object_type": "ME,EH"}, marks=pytest.mark.endurance),
        {"object_type": "ALL"},
        pytest.param({"object_type": "ALL", "landing": "samples"}, marks=pytest.mark.endurance),
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
    ours, theirs = written(tmp_path / "local"), written(tmp_path / "spark")
    assert {name for name in ours if ours[name] != theirs.get(name)} == set()
    assert ours == theirs


@pytest.mark.spark
@pytest.mark.parametrize("types", ["ME", pytest.param("ALL", marks=pytest.mark.endurance)])
def test_both_engines_compare_and_draw_the_same(
    spark: Any, troubled: Path, put: Put, envelopes: Any, shared: Path, tmp_path: Path, types: str
) -> None:
    """Of tables with nested names and open content, much has changed."""
    from mtosi_jms.spark.jobs import run_diff, run_topology

    old, new, here, there = (tmp_path / name for name in ("old", "new", "here", "there"))
    write(shared / "samples" if (shared / "samples").exists() else troubled, old, object_type=types)
    put("more/1.xml", envelopes.batch("more", 1, True, envelopes.me("a", "<me:owner>%/=\\\u00e9\n'\"</me:owner>")))
    write(troubled, new, object_type=types)
    for name, snapshots in {"back": {"old": new, "new": old}, "forth": {"old": old, "new": new}}.items():
        run_diff(DiffOptions(out=there / name, **snapshots), spark=spark)
        diff.run_local(DiffOptions(out=here / name, **snapshots))
        ours = written(here / name, "changes/*")
        assert ours == written(there / name, "changes/*")
        assert ours["types"]["ME"]["changed"] or ours["types"]["ME"]["created"]
        if types == "ME":
            break
    by_spark = run_topology(TopologyOptions(snapshot=old, out=there / "network"), spark=spark)
    local = topology.run_local(TopologyOptions(snapshot=old, out=here / "network"))
    assert local.graph == by_spark.graph
    ours = written(local.out, "[en]*")
    assert ours == written(by_spark.out, "[en]*")
    assert ours["edges"][1]


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
    before = written(out)
    for options in ({"mode": "FAILFAST"}, {"on_incomplete": "fail"}, {"object_type": "Unheard"}, {"colour": "red"}):
        with pytest.raises(MtosiError):
            write(troubled, out, **options)
    with monkeypatch.context() as patched:
        patched.setattr("pyarrow.parquet.ParquetWriter.write", full_disk)
        with pytest.raises(SpoolError, match="cannot be written: No space left"):
            write(troubled, out)
    assert written(out) == before
    assert not list(out.glob("_s*"))


def full_disk(*arguments: Any) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, ""),
        ({"format": "delta"}, "the format is delta"),
        ({"write": "merge"}, "write is merge"),
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


def test_snapshots_that_only_spark_reads(troubled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(troubled, tmp_path / "in")
    given = TopologyOptions(snapshot=tmp_path / "in", out=tmp_path / "out")
    assert topology.choose(given)[0] == "local"
    command = ["topology", str(given.snapshot), "--out", str(given.out), "--engine", "local"]
    assert main(command) == 0
    assert main([*command, "--where", "known", "--format", "csv"]) == 0
    assert topology.choose(replace(given, where="known"))[0] == "spark", "as the condition is in its SQL"
    assert main([*command, "--at", "2026-01-01T00:00:00Z"]) == 2
    assert "--engine spark" in capsys.readouterr().err
    table = tmp_path / "in" / "objectType=ME"
    merged = pq.read_table(table, partitioning=None)
    pq.write_table(merged.append_column("_facts", [[None] * merged.num_rows]), table / "part-0.parquet")
    assert topology.choose(given) == ("spark", "objectType=ME is the table of a merge")
    (table / "_delta_log").mkdir()
    assert topology.choose(given) == ("spark", "objectType=ME is a table of delta")


@pytest.mark.parametrize("kept", ["nothing", "the beginning", "the footer"])
def test_a_damaged_snapshot_is_one_line(
    troubled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kept: str
) -> None:
    write(troubled, tmp_path / "in")
    file = max((tmp_path / "in" / "objectType=ME").iterdir(), key=lambda path: path.stat().st_size)
    data = file.read_bytes()
    footer = data[:1000] + b"\xff" * (len(data) - 7000) + data[-6000:]
    file.write_bytes({"nothing": b"", "the beginning": data[: len(data) // 2], "the footer": footer}[kept])
    for command in ("topology", "diff"):
        snapshots = [str(tmp_path / "in")] * (2 if command == "diff" else 1)
        assert main([command, *snapshots, "--out", str(tmp_path / command), "--json"]) == 1
        shown = capsys.readouterr()
        assert (shown.out, shown.err.count("\n")) == ("", 1)
        assert shown.err.startswith("error: ")
        assert not list((tmp_path / command).glob("[!_]*"))


def test_the_command_needs_neither_java_nor_spark(troubled: Path, tmp_path: Path) -> None:
    program = "import sys; sys.modules['pyspark'] = None; from mtosi_jms.cli import main; of, out = sys.argv[1:]\n"
    program += "code = main(['ingest', of, '--out', out, '--object', 'ALL']) or main(['alarms', of, '--out', out])\n"
    program += "code = code or main(['topology', out, '--out', out]) or main(['diff', out, out, '--out', out])\n"
    program += "sys.exit(code)"
    command = [sys.executable, "-c", program, str(troubled), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("note: engine local: ") == 4
    tables = {name.partition("=")[2]: held for name, held in written(tmp_path / "out").items() if "=" in name}
    summary = json.loads((tmp_path / "out" / "_report" / "summary.json").read_text())
    assert {name: len(rows) for name, (_, rows) in tables.items()} == summary["rows"]


def test_the_local_engine_is_refused_what_it_cannot(
    troubled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "out")]
    asked = ["ingest", str(troubled), *out, "--engine", "local"]
    assert main([*asked, "--write", "append", "--on-incomplete", "wait"]) == 2
    assert "--engine spark" in capsys.readouterr().err
    assert main([*asked, "--write", "merge"]) == 2
    assert "needs tables of Delta or Iceberg: --format delta or --format iceberg" in capsys.readouterr().err
