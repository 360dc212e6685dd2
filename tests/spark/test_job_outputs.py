"""What all jobs have alike: `where`, formats, the page beside the summary, progress; bad conditions are one line."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError
from mtosi_jms.spark.jobs import DiffOptions, IngestOptions, TopologyOptions, run_diff, run_ingest, run_topology
from mtosi_jms.tables import write
from mtosi_jms.tables.ingest import run_local as local_ingest
from mtosi_jms.tables.topology import run_local as local_topology

pytestmark = pytest.mark.spark

EVIL = "<script>alert(1)</script>"


def lines(folder: Path, kind: str) -> list[str]:
    return [line for file in sorted(folder.glob(f"*.{kind}")) for line in file.read_text().splitlines()]


def test_an_ingest_and_a_diff_of_some_rows(spark: Any, put: Any, landing: Path, envelopes: Any, tmp_path: Path) -> None:
    makers = {"a": "Acme", "b": "Acme", "c": "Kilo"}
    elements = [envelopes.me(name, f"<me:manufacturer>{maker}</me:manufacturer>") for name, maker in makers.items()]
    put("1.xml", envelopes.batch("c", 1, True, "".join(elements)))
    evil = put(f"{EVIL.replace('/', '')}.xml", "<x/>")
    told: list[tuple[str, int, int]] = []
    options = IngestOptions(landing=landing, out=tmp_path / "old", where="manufacturer = 'Acme'")
    result = run_ingest(options, spark=spark, progress=lambda *step: told.append(step))
    assert (result.rows, result.summary()["where"]) == ({"ME": 2}, "manufacturer = 'Acme'")
    begun = [stage for stage, _, tasks in told if not tasks]
    assert begun == ["plan", "read and write", "count"]
    page = (tmp_path / "old/_report/report.html").read_text(encoding="utf-8")
    assert "Only rows where manufacturer = &#39;Acme&#39; are in the tables." in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page

    moved = elements[0].replace("<me:manufacturer>", "<me:location>x</me:location><me:manufacturer>")
    evil.unlink()
    put("1.xml", envelopes.batch("d", 1, True, moved + elements[2] + envelopes.me("d")))
    write(landing, tmp_path / "new")
    old, new, out = (tmp_path / name for name in ("old", "new", "out"))
    compared = DiffOptions(old=old, new=new, out=out, format="json", where="change <> 'deleted'")
    differences = run_diff(compared, spark=spark)
    counts = [differences.count(kind) for kind in ("created", "deleted", "changed")]
    assert (counts, differences.attributes) == ([2, 0, 1], {"ME": {"location": 1}})
    assert (differences.old_complete, differences.new_complete) == (False, True)
    rows = [json.loads(line) for line in lines(out / "changes/objectType=ME", "json")]
    assert {row["name_text"][-1]: row["change"] for row in rows} == {"a": "changed", "c": "created", "d": "created"}
    summary = json.loads((out / "_report/diff.json").read_text())
    assert summary == json.loads(json.dumps(differences.summary()))
    assert sorted(path.name for path in out.iterdir()) == ["_report", "changes"]
    assert "Changes by kind" in (out / "_report/diff.html").read_text(encoding="utf-8")


@pytest.mark.obligation("TAB11")
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_no_text_of_a_csv_table_is_a_formula(
    put: Any,
    landing: Path,
    envelopes: Any,
    tmp_path: Path,
    in_session: None,
    capsys: pytest.CaptureFixture[str],
    engine: str,
) -> None:
    texts = ['=HYPERLINK("http://e.example","x")', "+1", "-1", "@a", " =1", "a=1", "\u00e9"]
    put("1.xml", envelopes.batch("c", 1, True, "".join(map(envelopes.me, texts))))
    write(landing, tmp_path / "in")
    command = ["topology", str(tmp_path / "in"), "--out", str(tmp_path / "net"), "--engine", engine]
    assert main([*command, "--format", "csv", "--where", "type = 'ME'"]) == 0
    assert "7 objects, 0 only referred to, 0 edges" in capsys.readouterr().out, "the domain is not among the nodes"
    rows = csv.DictReader(lines(tmp_path / "net/nodes", "csv"))
    shown = {row["label"] for row in rows if row["type"] == "ME"}
    assert shown == {"a=1", "\u00e9", *(f"'{text}" for text in texts[:5])}
    page = (tmp_path / "net/_report/topology.html").read_text(encoding="utf-8")
    assert {"+1", "-1", "\u00e9"} <= set(re.findall(r'<text class="label"[^>]*>([^<]*)</text>', page))


@pytest.mark.parametrize("condition", ["colour = 'red'", "manufacturer = = 1", "manufacturer"])
def test_a_condition_that_does_not_fit_is_one_line_and_changes_nothing(
    condition: str, put: Any, landing: Path, envelopes: Any, tmp_path: Path, in_session: None, capsys: Any
) -> None:
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    out = tmp_path / "out"
    for engine in ("local", "auto"):
        given = ["--engine", engine, "--out", str(out), "--where", condition, "--json"]
        assert main(["ingest", str(landing), *given]) == 1
        shown = capsys.readouterr()
        assert shown.out == ""
        (line,) = shown.err.splitlines()
        assert line.startswith(f"error: where {condition!r}: ")
        assert not list(out.iterdir())


@pytest.mark.parametrize("format", ["json", "csv"])
def test_both_engines_write_the_same_text(
    spark: Any, put: Any, landing: Path, envelopes: Any, tmp_path: Path, format: str
) -> None:
    maker = '<me:manufacturer>Ac"me, =1\n</me:manufacturer>'
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a", maker) + envelopes.me("b")))
    here, there = tmp_path / "local", tmp_path / "spark"
    found: list[Any] = []
    for place, jobs in ((here, (local_ingest, local_topology)), (there, (run_ingest, run_topology))):
        session = {"spark": spark} if place == there else {}
        make, draw = jobs
        first = make(IngestOptions(landing=landing, out=place, where="manufacturer is not null"), **session)
        assert first.rows == {"ME": 1}
        draw(TopologyOptions(snapshot=place, out=place / "net", format=format, where="label <> 'x'"), **session)
        texts = [file.read_text().splitlines() for file in (place / "net/nodes").glob(f"*.{format}")]
        rows = [row for text in texts for row in (csv.DictReader(text) if format == "csv" else map(json.loads, text))]
        found.append(sorted(map(str, rows)))
    assert found[0] == found[1]
    assert found[0]


def test_a_format_that_is_none_is_refused(tmp_path: Path, landing: Path) -> None:
    assert main(["topology", str(landing), "--format", "delta"]) == 2
    with pytest.raises(ConfigError, match="format is 'xml'; there are parquet, json, csv"):
        run_topology(
            TopologyOptions(snapshot=landing, out=tmp_path / "out", format="xml", allow_empty=True),
        )
