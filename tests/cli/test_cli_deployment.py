"""`mtosi-jms deployment`: the sheet, as a table and as JSON, and one line for each problem."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mtosi_jms.cli import main

DEPLOYMENT = """
name = "jms/OS"
[names]
"jms/OS" = "queue:OS"
"jms/EmsOS" = "queue:EMS"
"jms/FaultTopic" = "topic:FAULT"
[requestors]
ManagedElementRetrieval = "jms/EmsOS"
[topics]
Fault = "jms/FaultTopic"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "os.toml"
    path.write_text(DEPLOYMENT)
    return path


@pytest.mark.obligation("O12b", "P21")
def test_the_sheet_is_shown(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["deployment", str(file)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "asks ManagedElementRetrieval jms/EmsOS queue EMS" in lines
    assert "replies ManagedElementRetrieval jms/OS queue OS" in lines
    assert "publishes Fault jms/FaultTopic topic FAULT" in lines
    assert "AlarmInformation on Fault 1800000" in lines
    assert "MTOSI_perceivedSeverity String its name (C26)" in lines


@pytest.mark.obligation("O12b")
def test_the_sheet_is_one_json_document(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["deployment", str(file), "--json"]) == 0
    sheet = json.loads(capsys.readouterr().out)
    kinds = {(entry["role"], entry["kind"], entry["physical"]) for entry in sheet["destinations"]}
    assert kinds == {("asks", "queue", "EMS"), ("replies", "queue", "OS"), ("publishes", "topic", "FAULT")}
    assert sheet["notifications"]["properties"][0]["property"] == "MTOSI_EventType"
    assert sheet["messages"]["time_to_live_ms"]["REQUEST"] == 1_800_000


def test_each_problem_is_a_line(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = tmp_path / "jndi.properties"
    names.write_text("queue.jms/OS=OS\nqueue.jms/EmsO=X\nqueue.jms/FaultTopic=F\n")
    assert main(["deployment", str(file), "--names", str(names), "--json"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    first, second = err.splitlines()
    assert first.startswith(
        f"error: {file}: ManagedElementRetrieval: 'jms/EmsOS': no destination is known by this name"
    )
    assert second.startswith(f"note: {file}: Fault goes to queue:F")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gone.toml"], "the deployment cannot be read"),
        (["os.toml", "--names", "gone.properties"], "the names cannot be read"),
        (["os.toml", "--stubs", "no_such_package"], "put the folder that contains it on PYTHONPATH"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(file.parent)
    assert main(["deployment", *arguments]) == 1
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert words in err
