"""What helps people at the keyboard: examples, suggestions, the list of operations, completion, quiet."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from shutil import which
from typing import Any

import pytest

from mtosi_jms.cli import COMMANDS, EXAMPLES, main


@pytest.mark.parametrize("command", list(COMMANDS))
def test_help_shows_an_example_that_is_taken(
    command: str, parsed: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    assert f"Example: mtosi-jms {command} {EXAMPLES[command]}" in " ".join(capsys.readouterr().out.split())
    assert parsed(command, *shlex.split(EXAMPLES[command])).command == command


def test_a_misspelt_command_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingst"]) == 2
    assert "there is no command 'ingst'; did you mean ingest?" in capsys.readouterr().err
    assert main(["--quiet", "frobnicate"]) == 2
    assert "there are alarms, bridge" in capsys.readouterr().err


def test_operations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["operations", "ACTIVEALARMS", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["operation"], one["batches"], one["stubs"]) for one in found] == [
        ("getActiveAlarms", True, "mtosi_jms.stubs"),
        ("getActiveAlarmsCount", False, "mtosi_jms.stubs"),
        ("getActiveAlarms", True, "mtosi_jms.stubs11"),
        ("getActiveAlarmsIterator", True, "mtosi_jms.stubs11"),
        ("getActiveAlarmsCount", False, "mtosi_jms.stubs11"),
    ]
    assert {one["mep"] for one in found} == {"request-response"}
    assert main(["operations", "notificationconsumer"]) == 0
    assert "notify" in capsys.readouterr().out
    assert main(["operations", "nothing-of-the-kind"]) == 1
    assert "no operation has 'nothing-of-the-kind'" in capsys.readouterr().err


@pytest.mark.skipif(which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("mtosi-jms ing", ["ingest"]),
        ("mtosi-jms ingest --allow", ["--allow-empty"]),
        ("mtosi-jms queue br", ["browse"]),
    ],
)
def test_bash_completes(line: str, wanted: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    words = line.split()
    ask = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _mtosi_jms; echo ${{COMPREPLY[*]}}"
    done = subprocess.run(
        ["bash", "-c", f"{capsys.readouterr().out}\n{ask}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == wanted


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert [name for name in COMMANDS if name not in script] == []


def test_quiet_leaves_notes_out(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["queue", "copy", "queue:A", "--to", "queue:B", "--url", "memory:quiet", "--dry-run"]
    assert main(line) == 0
    noted = capsys.readouterr()
    assert main(["--quiet", "--no-color", *line]) == 0
    quiet = capsys.readouterr()
    assert quiet.out == noted.out
    assert "note:" not in quiet.err
