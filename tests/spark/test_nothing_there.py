"""Tables are never replaced by what an empty, unreadable or missing input brings, unless that is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from mtosi_jms.cli import main
from mtosi_jms.errors import SpoolError
from mtosi_jms.spark import SourceOptions
from mtosi_jms.spark._engine import check_readable
from mtosi_jms.tables.landing import plan_landing

from ..packed import tarred, zipped

pytestmark = pytest.mark.spark

Put = Callable[..., Path]


def broken_inside(envelopes: Any) -> str:
    """A message whose head and end are whole."""
    elements = "".join(envelopes.me(f"n{index}") for index in range(300))
    return str(envelopes.batch("c", 1, True, f"{elements}<me:me></me:mo>{elements}"))


NOTHING: dict[str, Callable[[Any], dict[str, str | bytes]]] = {
    "nothing": lambda e: {},
    "folders": lambda e: {"a/b/.keep": ""},
    "other files": lambda e: {"readme.txt": "x", "1.xml.json": "{}", ".2.xml.part": e.request()},
    "no bytes": lambda e: {"1.xml": "", "2.xml": " \n"},
    "no envelopes": lambda e: {"1.xml": "<order/>", "2.xml": "not XML"},
    "cut off": lambda e: {"1.xml": e.batch("c", 1, True, e.me("a"))[:-20]},
    "no header": lambda e: {"1.xml": e.envelope("", "<v:x/>")},
    "broken inside": lambda e: {"1.xml": broken_inside(e), "2.xml": broken_inside(e)},
    "broken inside, packed": lambda e: {"1.xml.gz": broken_inside(e), "2.zip": zipped(("a.xml", "<order/>"))},
    "damaged gzip": lambda e: {"1.xml": b"\x1f\x8b\x08broken"},
    "archives without documents": lambda e: {"1.zip": zipped(("a.txt", "x")), "2.tar": tarred()},
    "damaged archive": lambda e: {"1.zip": zipped(("a.xml", "x" * 99))[:60]},
}
STAGES = ("ingesting: plan", "reading alarms: plan")
KEPT = {"objectType=ME/part-0.parquet", "alarms/part-0.parquet", "nodes/part-0.parquet", "changes/part-0.parquet"}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with tables of every job."""
    folder = tmp_path / "out"
    for name in KEPT:
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("what was there")
    (folder / "_report").mkdir()
    for job in ("summary", "alarms", "topology", "diff"):
        (folder / f"_report/{job}.json").write_text("{}")
    return folder


@pytest.fixture
def refused(out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """Runs a command that is to fail before Spark starts and to change nothing; what it told, line by line."""

    def no_spark(*arguments: Any, **options: Any) -> None:
        raise AssertionError("Spark was started")

    def call(*arguments: str) -> list[str]:
        before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
        assert main([*arguments, "--out", str(out)]) == 1
        assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
        shown = capsys.readouterr()
        assert shown.out == ""
        lines = [line for line in shown.err.splitlines() if line not in STAGES]
        assert lines
        assert all(line.startswith("error: ") for line in lines)
        return [line.removeprefix("error: ") for line in lines]

    monkeypatch.setattr("mtosi_jms.spark._session.local_session", no_spark)
    return call


@pytest.mark.parametrize("what", NOTHING)
def test_a_landing_without_a_readable_message_erases_nothing(
    what: str, refused: Any, landing: Path, put: Put, envelopes: Any
) -> None:
    files = NOTHING[what](envelopes)
    for name, content in files.items():
        put(name, content)
    rejected = len(plan_landing(SourceOptions.parse({"path": str(landing), "verify": "full"})).rejects)
    for command in (["ingest"], ["ingest", "--object", "ALL"], ["ingest", "--on-incomplete", "filter"], ["alarms"]):
        first, *others = refused(*command, str(landing))
        assert first.startswith(f"{landing}: no message in it can be read; tables stay as they are")
        assert "--allow-empty" in first
        assert len(others) == rejected


def test_a_landing_that_is_not_there_erases_nothing_either(refused: Any, tmp_path: Path) -> None:
    for command in ("ingest", "alarms"):
        for options in ([], ["--allow-empty"]):
            (line,) = refused(command, str(tmp_path / "unmounted"), *options)
            assert "no such file or folder" in line


def test_messages_in_which_no_stub_finds_anything_are_no_tables_of_all_types(
    refused: Any, landing: Path, put: Put, envelopes: Any
) -> None:
    put("1.xml", envelopes.envelope(envelopes.header(msgType="RESPONSE"), "<v:getOddResponse/>"))
    lines = refused("ingest", str(landing), "--object", "ALL")
    assert "no stub knows its body element getOddResponse" in lines[1]
    put("2.xml", envelopes.envelope(envelopes.header(msgType="RESPONSE"), f"<v:odd>{envelopes.me('w')}</v:odd>"))
    for kind in ("ME", "ALL"):
        options = SourceOptions.parse({"path": str(landing), "objectType": kind})
        check_readable(plan_landing(options), options)


def test_the_first_message_that_can_be_read_decides(landing: Path, put: Put, envelopes: Any) -> None:
    put("1.xml", "<order/>")
    put("2.xml", broken_inside(envelopes))
    put("3.xml", envelopes.request("r"))
    late = put("4.xml", envelopes.batch("d", 1, True, envelopes.me("a")))
    options = SourceOptions.parse({"path": str(landing)})
    planned = plan_landing(options)
    late.unlink()  # whoever looked further would not find it
    check_readable(planned, options)
    (landing / "3.xml").unlink()
    with pytest.raises(SpoolError, match=r"no message in it can be read(?s:.)*1\.xml(?s:.)*2\.xml(?s:.)*3\.xml"):
        check_readable(planned, options)


def test_many_rejects_are_told_in_few_lines(refused: Any, landing: Path, put: Put) -> None:
    for number in range(30):
        put(f"{number:02}.xml", "<order/>")
    lines = refused("ingest", str(landing))
    assert len(lines) == 22
    assert lines[-1] == "and 10 more"


def no_tables(folder: Path) -> dict[str, Path]:
    """Folders that are not a snapshot of anything, by what is wrong with them."""
    made = {name: folder / name for name in ("missing", "empty", "without tables", "table without files", "a file")}
    for name in ("empty", "without tables", "table without files"):
        made[name].mkdir()
    (made["without tables"] / "_report").mkdir()
    (made["without tables"] / "_report/summary.json").write_text('{"rejected": [], "sequences": []}')
    (made["table without files"] / "objectType=ME").mkdir()
    made["a file"].write_text("")
    return made


def snapshot(folder: Path) -> Path:
    (folder / "objectType=ME").mkdir(parents=True)
    names = {"name_text": ["MD=M/ME=a", "MD=M/ME=b"]}
    pq.write_table(pa.table(names), folder / "objectType=ME/part-0.parquet")
    return folder


def test_a_folder_without_tables_is_no_snapshot(refused: Any, tmp_path: Path) -> None:
    there = str(snapshot(tmp_path / "there"))
    for name, folder in no_tables(tmp_path).items():
        wrong = str(folder)
        for command in (["topology", wrong], ["diff", wrong, there], ["diff", there, wrong], ["diff", wrong, wrong]):
            (line,) = refused(*command)
            assert line.startswith(f"{wrong}: no "), line
            assert ("--allow-empty" in line) == (name not in ("missing", "a file"))


@pytest.mark.endurance
def test_who_means_it_gets_empty_tables(
    spark: Any, landing: Path, put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, envelopes: Any
) -> None:
    monkeypatch.setattr("mtosi_jms.spark._session.local_session", lambda *args, **options: nullcontext(spark))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> dict[str, Any]:
        assert main([*arguments, "--allow-empty", "--json"]) == 0, capsys.readouterr().err
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    assert run("ingest", "landing", "--out", "day1")["rows"] == {"ME": 1}
    put("1.xml", broken_inside(envelopes))
    assert main(["ingest", "landing", "--out", "day1"]) == 1
    assert "1.xml" in capsys.readouterr().err
    assert run("ingest", "landing", "--out", "day2", "--object", "ALL")["rows"] == {}
    assert run("ingest", "landing", "--out", "day3")["rows"] == {"ME": 0}
    assert run("alarms", "landing", "--out", "alarms")["rows"] == 0
    assert run("topology", "day2", "--out", "net")["nodes"] == {}
    snapshot(tmp_path / "there")
    assert run("diff", "there", "day2")["deleted"] == 2
    assert run("diff", "day2", "there")["created"] == 2
    assert run("diff", "day2", "day2")["types"] == {}
    assert main(["topology", "day3", "--out", "net"]) == 0, "a table without rows is a table"
