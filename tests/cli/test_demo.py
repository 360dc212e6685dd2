"""The demo, and what is left of one that was killed in the middle."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.cli import main
from mtosi_jms.spool import entries, read_acknowledgements

COMMAND = [sys.executable, "-m", "mtosi_jms", "demo"]


def kill_at_random(folder: Path, seed: int) -> tuple[Path, Path]:
    """Start a demo and kill it at a random moment of its exchange; its landing and its acknowledgement log."""
    out, log = folder / "demo", folder / "acknowledged.log"
    arguments = ["--elements", "40000", "--batch-size", "100", "--out", str(out), "--ack-log", str(log)]
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    moment = random.Random(seed).uniform(0.7, 3.0)
    try:
        process.wait(timeout=moment)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return out / "landing", log


def acknowledged(log: Path) -> set[tuple[str, int | None, str]]:
    if not log.exists():
        return set()
    return {(line.entry, line.batch_number, line.sha256) for line in read_acknowledgements(log)}


def by_call(arguments: list[str], capsys: Any) -> str:
    """What the demo prints when it is called in the session that is there."""
    assert main(["demo", *arguments]) == 0
    return str(capsys.readouterr().out)


def by_process(arguments: list[str], capsys: Any) -> str:
    """What it prints as a process of its own, which starts Spark."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.spark
@pytest.mark.usefixtures("own_plans")
@pytest.mark.parametrize(
    ("run", "release"),
    [(by_call, "2.0"), (by_call, "1.1"), pytest.param(by_process, "2.0", marks=pytest.mark.endurance)],
)
def test_the_demo_brings_what_was_asked_for(
    tmp_path: Path,
    in_session: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    run: Callable[[list[str], Any], str],
    release: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "demo"
    arguments = ["--elements", "500", "--batch-size", "120", "--out", str(out), "--json", "--release", release]
    summary = json.loads(run(arguments, capsys))
    assert {name: summary[name] for name in ("elements", "batches", "complete", "missing_batches", "rows")} == {
        "elements": 500,
        "batches": 5,
        "complete": True,
        "missing_batches": [],
        "rows": 500,
    }
    assert summary["notifications"] == 3
    assert set(summary["seconds"]) == {"exchange", "notifications", "ingest"}
    assert json.loads((out / "summary.json").read_text()) == summary
    replies = list((out / "landing").glob("*.xml"))
    assert [b'"tmf854.v1"' in reply.read_bytes() for reply in replies] == [release == "1.1"] * 5
    assert list((out / "inventory" / "objectType=ME").glob("*.parquet"))
    assert len(list((out / "notifications").glob("*.xml"))) == 3
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo"]


@pytest.mark.obligation("001-R5")
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.endurance
@pytest.mark.parametrize("kind", ["activemq", "artemis"])
def test_the_demo_on_a_broker_and_the_alarms_that_it_landed(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    in_session: None,
    monkeypatch: pytest.MonkeyPatch,
    capfd: Any,
    kind: str,
) -> None:
    endpoints = request.getfixturevalue(kind).endpoints
    out = tmp_path / "demo"
    url = f"stomp://{endpoints.user}@127.0.0.1:{endpoints.ports['stomp']}"
    arguments = ["--elements", "60", "--batch-size", "25", "--url", url, "--out", str(out), "--json"]
    monkeypatch.setenv("MTOSI_JMS_PASSWORD", endpoints.password)
    assert main(["demo", *arguments]) == 0
    said, errors = capfd.readouterr()
    summary = json.loads(said)
    assert (summary["complete"], summary["rows"], summary["batches"], summary["notifications"]) == (True, 60, 3, 3)
    assert url in (out / "report.html").read_text(encoding="utf-8")
    shown = [path for path in out.rglob("*") if path.is_file() and endpoints.password.encode() in path.read_bytes()]
    assert shown == []
    assert endpoints.password not in said + errors
    assert main(["alarms", str(out / "notifications"), "--out", str(tmp_path / "alarms"), "--latest", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["rows"], found["latest"], found["active"], found["severities"]) == (1, 1, 1, {"CRITICAL": 1})


@pytest.mark.parametrize("words", [("--url", "stomp://u:w-r-o-n-g@127.0.0.1:1"), ("--url", "nothing:w-r-o-n-g")])
def test_a_provider_that_cannot_be_reached(tmp_path: Path, words: tuple[str, ...], capsys: Any) -> None:
    assert main(["demo", "--out", str(tmp_path / "demo"), *words]) == 1
    out, err = capsys.readouterr()
    assert err.startswith("error: ")
    assert "w-r-o-n-g" not in out + err


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    assert main(["demo", "--out", str(tmp_path)]) == 1
    assert "thesis.txt" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.endurance) for seed in (1, 2))])
def test_a_killed_demo_has_landed_what_it_acknowledged(tmp_path: Path, seed: int) -> None:
    landing, log = kill_at_random(tmp_path, seed)
    landed = {(entry.name, entry.sha256) for entry in entries(landing)} if landing.exists() else set()
    for name, _, sha256 in acknowledged(log):
        assert (name, sha256) in landed
    for entry in entries(landing) if landing.exists() else ():
        assert not entry.damage()


@pytest.mark.endurance
@pytest.mark.spark
def test_twenty_killed_demos_ingest_to_exactly_what_was_acknowledged(tmp_path: Path) -> None:
    from mtosi_jms.spark import local_session
    from mtosi_jms.spark.jobs import IngestOptions, run_ingest

    seen = 0
    with local_session("kill rounds") as spark:
        for seed in range(20):
            folder = tmp_path / str(seed)
            folder.mkdir()
            landing, log = kill_at_random(folder, 1000 + seed)
            lines = acknowledged(log)
            if not lines:
                continue
            seen += 1
            result = run_ingest(IngestOptions(landing=landing, out=folder / "inventory"), spark=spark)
            (sequence,) = result.sequences
            numbers = {number for _, number, _ in lines if number is not None}
            assert numbers <= set(range(1, sequence.batches + len(sequence.missing) + 1)) - set(sequence.missing)
            assert len(numbers) == len(lines)
            assert result.rows["ME"] == sequence.batches * 100
            assert not result.rejected
    assert seen >= 10
