"""The ingest job and its command: tables, ledger, rejects, report, exit codes.

Most of it by the engine of this process: `test_engines.py` holds that Spark's engine makes the same.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError, MtosiError, SpoolError
from mtosi_jms.spark import local_session
from mtosi_jms.spark.jobs import IngestOptions, IngestResult, run_ingest
from mtosi_jms.tables import write
from mtosi_jms.tables.landing import partition

pytestmark = pytest.mark.spark

Put = Callable[..., Path]


@pytest.fixture
def run(landing: Path, tmp_path: Path) -> Callable[..., IngestResult]:
    def call(folder: Path = landing, **options: Any) -> IngestResult:
        return write(folder, tmp_path / "out", **options)

    return call


def table(out: Path, name: str) -> list[dict[str, Any]]:
    files = sorted((out / f"objectType={name}").glob("*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def test_one_type(run: Any, put: Put, envelopes: Any) -> None:
    put("1.xml", envelopes.batch("c", 1, False, envelopes.me("a", "<me:manufacturer>Acme</me:manufacturer>")))
    put("2.xml", envelopes.batch("c", 2, True, envelopes.me("b")))
    put("3.xml", envelopes.batch("c", 2, True, envelopes.me("b")))
    put("4.xml", "<x/>")
    put("5.xml", envelopes.request())
    result = run()
    assert result.rows == {"ME": 2}
    assert result.complete
    assert result.messages == {"request": 1, "response": 3}
    assert result.vendors == {"Acme": 1, "not given": 1}
    rows = table(result.out, "ME")
    assert sorted(row["name_text"] for row in rows) == ["MD=M/ME=a", "MD=M/ME=b"]
    assert {row["complete"] for row in rows} == {True}
    summary = result.summary()
    assert summary["sequences"][0] == {
        "correlation_id": "c",
        "file": None,
        "batches": 2,
        "expected": 2,
        "missing": [],
        "missing_count": 0,
        "duplicates": 1,
        "conflicts": [],
        "unexpected": [],
        "faults": 0,
        "complete": True,
        "first_time": "2024-01-01T00:00:00Z",
        "last_time": "2024-01-01T00:00:00Z",
    }
    reject = {"file": str(result.out.parent / "landing/4.xml"), "line": 1, "reason": "not SOAP: the root element is x"}
    assert summary["rejected"] == [reject]
    assert sorted(path.name for path in result.out.iterdir()) == ["_report", "objectType=ME"]
    assert {path.suffix for path in (result.out / "objectType=ME").iterdir()} == {".parquet"}
    files = {path.name: path.read_text() for path in (result.out / "_report").iterdir()}
    assert sorted(files) == ["ledger.jsonl", "rejects.jsonl", "report.html", "summary.json"]
    assert json.loads(files["summary.json"])["rows"] == {"ME": 2}
    assert json.loads(files["ledger.jsonl"])["first_time"] == "2024-01-01T00:00:00Z"
    assert json.loads(files["rejects.jsonl"]) == reject


def test_all_types_have_their_folders(run: Any, put: Put, envelopes: Any) -> None:
    equipment = "<inv:eqInv><inv:eqNm>1</inv:eqNm><inv:eqAttrs><coi:owner>o</coi:owner></inv:eqAttrs></inv:eqInv>"
    holder = f"<inv:ehInv><inv:ehNm>/r</inv:ehNm><inv:ehAttrs/>{equipment}</inv:ehInv>"
    me = f"<inv:meInv><inv:meNm>N</inv:meNm><inv:meAttrs/><inv:ehList>{holder}</inv:ehList></inv:meInv>"
    put(
        "i.xml",
        envelopes.inventory(
            f"<inv:mdList><inv:md><inv:mdNm>D</inv:mdNm><inv:meList>{me}</inv:meList></inv:md></inv:mdList>"
        ),
    )
    put("b.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    put("u.xml", envelopes.envelope(envelopes.header(msgType="RESPONSE"), "<v:getOddResponse/>"))
    put(
        "w.xml",
        envelopes.envelope(envelopes.header(msgType="RESPONSE"), f"<v:getResponse>{envelopes.me('w')}</v:getResponse>"),
    )
    result = run(object_type="ALL")
    assert result.rows == {"ME": 3, "EQ": 1, "EH": 1, "MD": 1}
    assert sorted(path.name for path in result.out.glob("objectType=*")) == [
        "objectType=EH",
        "objectType=EQ",
        "objectType=MD",
        "objectType=ME",
    ]
    (row,) = table(result.out, "EQ")
    assert (row["name_text"], row["owner"]) == ("MD=D/ME=N/EH=%2Fr/EQ=1", "o")
    assert "me" not in row
    (reject,) = result.rejected
    assert reject.file.endswith("u.xml")
    assert reject.reason.startswith("wrong kind: no stub knows its body element getOddResponse")


def test_named_types_have_tables_even_without_rows(run: Any, put: Put, envelopes: Any) -> None:
    put("b.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    result = run(object_type="ME,PTP")
    assert result.rows == {"ME": 1, "PTP": 0}
    (file,) = (result.out / "objectType=PTP").glob("*.parquet")
    assert "direction" in pq.read_schema(file).names


def test_a_file_broken_in_the_middle_makes_its_sequence_incomplete(run: Any, put: Put, envelopes: Any) -> None:
    text = envelopes.batch("c", 1, False, "".join(envelopes.me(f"n{index}") for index in range(300)))
    middle = text.index("<me:me>", len(text) // 2)
    put("1.xml", text[:middle] + "<oops>" + text[middle:])
    put("2.xml", envelopes.batch("c", 2, True, envelopes.me("b")))
    for kind in ("ME", "ALL"):
        result = run(object_type=kind)
        assert result.rows == {"ME": 1}
        assert [row["complete"] for row in table(result.out, "ME")] == [False]
        (sequence,) = result.sequences
        assert (sequence.missing, sequence.complete) == ((1,), False)
        assert result.rejected[0].reason.startswith("not well-formed")


def test_a_reply_that_holds_no_objects_is_complete_only_if_it_is_whole(run: Any, put: Put, envelopes: Any) -> None:
    header = envelopes.header(msgType="RESPONSE", correlationId="c", batchSequenceNumber=1, batchSequenceEndOfReply=1)
    count = '<a:getActiveAlarmsCountResponse xmlns:a="http://www.tmforum.org/mtop/rtm/xsd/ar/v1">{}'
    put("0.xml", envelopes.request())
    for inner, complete in (("<a:count>1</a:count>", [True]), ("<v:x></v:y>" * 999, [])):
        put("1.xml", envelopes.envelope(header, f"{count.format(inner)}</a:getActiveAlarmsCountResponse>"))
        result = run(object_type="ALL")
        assert [found.complete for found in result.sequences] == complete
        assert len(result.rejected) == 1 - len(complete)


def test_again_into_the_same_folder_replaces_it(run: Any, put: Put, landing: Path, envelopes: Any) -> None:
    file = put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    run(object_type="ME,PTP")
    file.unlink()
    put("2.xml", envelopes.batch("c", 1, True, envelopes.me("b")))
    result = run()
    assert [row["name_text"] for row in table(result.out, "ME")] == ["MD=M/ME=b"]
    assert not (result.out / "objectType=PTP").exists()


def test_folders_of_others_are_left_alone(run: Any, put: Put, tmp_path: Path, envelopes: Any) -> None:
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    (tmp_path / "out/objectType=ME").mkdir(parents=True)
    with pytest.raises(ConfigError, match="no ingest of ours made"):
        run()


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"landing": "nothing"}, SpoolError, "no such file or folder"),
        ({"object_type": "Nonsense"}, ConfigError, "no such class"),
        ({"object_type": "MESSAGE"}, ConfigError, "tables of objects"),
        ({"stubs": "no_such_package"}, ConfigError, "cannot be imported"),
    ],
)
def test_wrong_use_is_told_before_spark_starts(
    landing: Path, tmp_path: Path, given: dict[str, Any], error: type[MtosiError], said: str
) -> None:
    with pytest.raises(error, match=said):
        run_ingest(IngestOptions(**{"landing": landing, "out": tmp_path / "out", **given}))


def test_error_inside_spark_is_one_line(
    spark: Any, put: Put, landing: Path, envelopes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))

    def parts(files: Any, most: int | None) -> Any:
        file.unlink()  # between the plan and the tasks
        return partition(files, most)

    monkeypatch.setattr("mtosi_jms.spark._engine.partition", parts)
    with pytest.raises(MtosiError, match=r"^Spark: .*1\.xml: cannot be read on host") as caught:
        run_ingest(IngestOptions(landing=landing, out=tmp_path / "out"), spark=spark)
    assert "\n" not in str(caught.value)


def test_official_batches_are_one_complete_sequence(run: Any, shared: Path) -> None:
    result = run(shared / "samples" / "official-2.0" / "ManageResourceInventory", object_type="ALL")
    by_id = {found.correlation_id: found for found in result.sequences if found.correlation_id}
    assert (by_id["2222"].batches, by_id["2222"].received, by_id["2222"].complete) == (2, (1, 2), True)
    rows = [row for row in table(result.out, "ME") if row["correlation_id"] == "2222"]
    files = {Path(row["source_file"]).name[:3]: row["batch_number"] for row in rows}
    assert files == {"2-2": 1}, "the second batch of the samples has the same elements"
    assert result.copies["ME"] == 4
    assert {row["complete"] for row in rows} == {True}
    assert result.messages == {"request": 8, "response": 10, "fault": 6}
    assert set(result.rows) == {"ME", "PTP", "CTP", "OS", "MD", "TMD"}
    assert result.rejected == ()


def test_official_samples_that_are_damaged_are_listed(run: Any, shared: Path) -> None:
    result = run(shared / "samples" / "official-2.0")
    damaged = [reject for reject in result.rejected if "not well-formed" in reject.reason]
    assert sorted(Path(reject.file).name for reject in damaged) == [
        "notify-EventLossCleared.xml",
        "notify-EventLossOccured.xml",
    ]
    assert {reject.line for reject in damaged} == {32}


def test_command_prints_json_and_nothing_else(
    put: Put, landing: Path, envelopes: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    put("1.xml", envelopes.batch("c", 1, False, envelopes.me("a")))
    put("2.xml", "<x/>")
    monkeypatch.chdir(landing.parent)
    assert main(["ingest", "landing", "--out", "o", "--object", "ALL", "--json"]) == 0
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["rows"] == {"ME": 1}
    assert document["sequences"][0]["expected"] is None
    assert document["rejected"] == [{"file": "landing/2.xml", "line": 1, "reason": "not SOAP: the root element is x"}]
    assert document["seconds"] > 0
    assert shown.err == ""


def test_the_command_prints_what_is_on_the_page(put: Put, landing: Path, envelopes: Any, capsys: Any) -> None:
    maker = "<me:manufacturer>Acme</me:manufacturer>"
    put("1.xml", envelopes.batch("whole", 1, True, envelopes.me("a", maker) + envelopes.me("b")))
    put("2.xml", envelopes.batch("open", 1, False, envelopes.me("c")))
    put("3.xml", envelopes.batch("open", 3, False, envelopes.me("d")))
    put("4.xml", "<x/>")
    put("5.xml", envelopes.request())
    out = landing.parent / "o"
    assert main(["ingest", str(landing), "--out", str(out)]) == 0
    page, (text, notes) = (out / "_report" / "report.html").read_text(encoding="utf-8"), capsys.readouterr()
    assert "note: Draw the network: mtosi-jms topology" in notes
    assert main(["ingest", str(landing), "--out", str(landing.parent / "dry"), "--dry-run"]) == 0
    assert "Draw the network" not in capsys.readouterr().err, "there are no tables to draw"
    for title in ("Objects by type", "Objects by manufacturer", "Rejected", "Time"):
        assert f"<h2>{title}</h2>" in page
        assert title in text
    for part in ("Acme", "not given", "objects a second", "1 of 2", "1 requests", "unknown"):
        assert part in page, part
        assert part in text, part
    lines = [line.split() for line in text.splitlines()]
    for cells in (["ME", "4"], ["Acme", "1"], [str(landing / "4.xml"), "1", "not", "SOAP:"], ["plan"], ["count"]):
        assert any(line[: len(cells)] == cells for line in lines), cells
    assert "<script" not in page
    for part in ("Ledger of sequences", "<p>ME: 4</p>", "MD=M/ME=a", "incomplete", "not SOAP: the root element is x"):
        assert part in page, part
    for place in ("../objectType%3DME/", "rejects.jsonl", "ledger.jsonl", "summary.json"):
        assert f'href="{place}"' in page


def test_command_exit_codes(
    put: Put, landing: Path, envelopes: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    put("1.xml", envelopes.batch("c", 2, True, envelopes.me("a")))
    put("2.xml", "<x/>")
    put("3.xml", "<y/>")
    out = ["--out", str(landing.parent / "o")]
    assert main(["ingest", str(landing), *out, "--mode", "failfast"]) == 1
    stage, *lines = capsys.readouterr().err.splitlines()
    assert (stage, len(lines)) == ("ingesting: plan", 2)
    assert lines[0].endswith("2.xml:1: not SOAP: the root element is x")
    assert main(["ingest", str(landing), *out, "--on-incomplete", "fail"]) == 1
    assert main(["ingest", str(landing / "no"), *out]) == 1
    assert main(["ingest", str(landing), *out, "--mode", "loose"]) == 2
    assert main(["ingest"]) == 2


def test_missing_java_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(
        ConfigError, match=r"Spark requires Java 17 or later, and there is none in JAVA_HOME, .*: install"
    ):
        local_session().__enter__()


def test_old_java_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="is 8: install Java 17"):
        local_session().__enter__()


def session_alone(work: str, **environment: str) -> str:
    """What a process says that ends with an error; there is one session in each process."""
    program = f"import mtosi_jms as mtosi\nwith mtosi.spark.local_session(cores=1) as spark: {work}"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1
    return done.stderr


def test_a_package_of_which_maven_has_half_is_named(tmp_path: Path) -> None:
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    failure = "RuntimeException: [download failed: org.xerial.snappy#snappy-java;1.1.10.7!snappy-java.jar(bundle)]"
    real = shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin{os.pathsep}{os.environ['PATH']}")
    others = f'case "$*" in *launcher.Main*|*-version*) exec {real} "$@";; esac'
    java.write_text(f"#!/bin/sh\n{others}\necho '{failure}' >&2\nexit 1\n")
    java.chmod(0o755)
    folder = "~/.m2/repository/org/xerial/snappy/snappy-java/1.1.10.7"
    said = session_alone("pass", JAVA_HOME=str(tmp_path))
    assert f"Java does not start: {failure}; if {folder} has a .pom and no .jar, remove it" in said


@pytest.mark.endurance
def test_an_error_of_spark_outlives_its_session() -> None:
    said = session_alone("spark.sql('select x from nowhere')")
    assert "AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] The table or view `nowhere`" in said
    assert "str() failed" not in said


def test_java_options_of_the_caller_come_last(spark: Any, spark_java: str) -> None:
    options = spark.conf.get("spark.driver.extraJavaOptions")
    assert "-Dlog4j2.configurationFile=" in options
    assert options.endswith(f" {spark_java}")


def test_second_session_in_one_process_is_refused(spark: Any) -> None:
    with pytest.raises(ConfigError, match="hand its session over"), local_session():
        pass
