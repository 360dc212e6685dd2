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

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

EVIL = "<script>alert(1)</script>"


def lines(folder: Path, kind: str) -> list[str]:
    return [line for file in sorted(folder.glob(f"*.{kind}")) for line in file.read_text().splitlines()]


def test_jobs_write_some_rows_in_other_formats(
    spark: Any, put: Any, landing: Path, envelopes: Any, tmp_path: Path
) -> None:
    makers = {"a": "Acme", "b": "Acme", "c": "Kilo"}
    elements = [envelopes.me(name, f"<me:manufacturer>{maker}</me:manufacturer>") for name, maker in makers.items()]
    put("1.xml", envelopes.batch("c", 1, True, "".join(elements)))
    put(f"{EVIL.replace('/', '')}.xml", "<x/>")
    told: list[tuple[str, int, int]] = []
    options = IngestOptions(landing=landing, out=tmp_path / "all", where="manufacturer = 'Acme'")
    result = run_ingest(options, spark=spark, progress=lambda *step: told.append(step))
    assert (result.rows, result.summary()["where"]) == ({"ME": 2}, "manufacturer = 'Acme'")
    begun = [stage for stage, _, tasks in told if not tasks]
    assert begun == ["plan", "read and write", "count"]
    page = (tmp_path / "all/_report/report.html").read_text(encoding="utf-8")
    assert "Only rows where manufacturer = &#39;Acme&#39; are in the tables." in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page

    put("1.xml", envelopes.batch("c", 1, True, elements[2] + envelopes.me("d")))
    run_ingest(IngestOptions(landing=landing, out=tmp_path / "new"), spark=spark)
    run_diff(DiffOptions(old=tmp_path / "all", new=tmp_path / "new", out=tmp_path / "diff", format="csv"), spark=spark)
    head, *rows = csv.reader(lines(tmp_path / "diff/changes/objectType=ME", "csv"))
    assert head[:3] == ["object_type", "name_text", "change"]
    assert sorted(row[2] for row in rows if row[:3] != head[:3]) == ["created", "created", "deleted", "deleted"]
    assert "Changes by kind" in (tmp_path / "diff/_report/diff.html").read_text(encoding="utf-8")

    network = TopologyOptions(snapshot=tmp_path / "new", out=tmp_path / "net", format="json", where="type = 'ME'")
    assert run_topology(network, spark=spark).edges == {}, "the domain is not among the nodes"
    names = sorted(json.loads(line)["id"] for line in lines(tmp_path / "net/nodes", "json"))
    assert names == ["MD=M/ME=c", "MD=M/ME=d"]
    page = (tmp_path / "net/_report/topology.html").read_text(encoding="utf-8")
    assert re.findall(r'<text class="label"[^>]*>(\w)</text>', page) == ["c", "d"]


@pytest.mark.obligation("TAB11")
def test_no_text_of_a_csv_table_is_a_formula(
    spark: Any, put: Any, landing: Path, envelopes: Any, tmp_path: Path
) -> None:
    texts = ['=HYPERLINK("http://e.example","x")', "+1", "-1", "@a", " =1", "a=1", "\u00e9"]
    put("1.xml", envelopes.batch("c", 1, True, "".join(map(envelopes.me, texts))))
    run_ingest(IngestOptions(landing=landing, out=tmp_path / "all"), spark=spark)
    options = TopologyOptions(snapshot=tmp_path / "all", out=tmp_path / "net", format="csv")
    run_topology(options, spark=spark)
    rows = csv.DictReader(lines(tmp_path / "net/nodes", "csv"))
    shown = {row["label"] for row in rows if row["type"] == "ME"}
    assert shown == {"a=1", "\u00e9", *(f"'{text}" for text in texts[:5])}


@pytest.mark.parametrize("condition", ["colour = 'red'", "manufacturer = = 1", "manufacturer"])
def test_a_condition_that_does_not_fit_is_one_line_and_changes_nothing(
    condition: str, put: Any, landing: Path, envelopes: Any, tmp_path: Path, in_session: None, capsys: Any
) -> None:
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    out = tmp_path / "out"
    assert main(["ingest", str(landing), "--out", str(out), "--where", condition, "--json"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert line.startswith(f"error: where {condition!r}: [")
    assert not list(out.iterdir())


def test_a_format_that_is_none_is_refused(tmp_path: Path, landing: Path) -> None:
    assert main(["topology", str(landing), "--format", "delta"]) == 2
    with pytest.raises(ConfigError, match="format is 'xml'; there are parquet, json, csv"):
        run_topology(
            TopologyOptions(snapshot=landing, out=tmp_path / "out", format="xml", allow_empty=True),
        )
