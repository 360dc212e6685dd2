"""What helps people at the keyboard: examples, suggestions, the list of operations, completion, quiet."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_codegen.cli import main as codegen
from mtosi_jms.cli import COMMANDS, EXAMPLES, GROUPS, main


@pytest.mark.parametrize("command", list(COMMANDS))
def test_help_shows_an_example_that_is_taken(
    command: str, parsed: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    assert f"Example: mtosi-jms {command} {EXAMPLES[command]}" in " ".join(capsys.readouterr().out.split())
    assert parsed(command, *shlex.split(EXAMPLES[command])).command == command
    assert main(["--help"]) == 0
    assert " ".join(COMMANDS[command].split()) in " ".join(capsys.readouterr().out.split())


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


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("mtosi-jms ing", "ingest"),
        ("mtosi-jms ingest --allow", "--allow-empty"),
        ("mtosi-jms --quiet queue br", "browse"),
        ("mtosi-jms request getActiveAlarmsC", "getActiveAlarmsCount"),
        ("mtosi-codegen insp", "inspect"),
    ],
)
def test_a_shell_completes_commands_options_and_values(line: str, wanted: str, tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    asked |= {"COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9"}
    program = line.split(maxsplit=1)[0].replace("-", "_")
    subprocess.run([sys.executable, "-m", program], env={**os.environ, **asked}, check=False)
    assert answer.read_text().split() == [wanted]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_a_shell_completes_both_programs(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "mtosi-jms" in script
    assert "mtosi-codegen" in script


@pytest.mark.parametrize(("program", "names"), [(main, list(COMMANDS)), (codegen, ["generate", "docs", "help"])])
def test_help_texts_and_man_pages_are_one_source(
    program: Callable[[list[str]], int], names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `help` shows of a command, word for word, is in its page."""
    assert program(["help", "--man", str(tmp_path)]) == 0
    capsys.readouterr()
    for name in names:
        assert program(["help", name]) == 0
        told = capsys.readouterr().out
        (page,) = tmp_path.glob(f"*-{name}.1")
        shown = set(re.findall(r"\w+", re.sub(r"\\f[A-Z]|\\/|\\,", "", page.read_text()).replace("\\", "").lower()))
        of_argparse = "usage positional arguments options h help show this help message and exit"
        assert set(re.findall(r"\w+", told.lower())) - shown <= set(of_argparse.split())


def test_the_help_lists_every_command_in_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    told = capsys.readouterr().out
    assert re.findall(r"^(\w+):$", told, re.MULTILINE) == list(GROUPS)
    assert sorted(re.findall(r"^  ([a-z]\S*)", told, re.MULTILINE)) == sorted(COMMANDS)


def test_quiet_leaves_notes_out(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["queue", "copy", "queue:A", "--to", "queue:B", "--url", "memory:quiet", "--dry-run"]
    assert main(line) == 0
    noted = capsys.readouterr()
    assert main([*line, "--quiet", "--no-color"]) == 0
    quiet = capsys.readouterr()
    assert quiet.out == noted.out
    assert "note:" not in quiet.err


@pytest.mark.parametrize(("columns", "framed"), [(40, False), (80, True)])
def test_a_table_has_no_slivers_on_a_narrow_terminal(columns: int, framed: bool) -> None:
    """Where the columns do not fit, each cell has a line; a column without a value leaves."""
    script = (
        "from mtosi_jms.cli import terminal\n"
        "terminal.table('', ('message', 'reason', 'empty', 'from'), [('a' * 20, 'b' * 20, None, 'c' * 20)])"
    )
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    subprocess.run([sys.executable, "-c", script], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    shown = os.read(ours, 65_536).decode()
    os.close(ours)
    assert ("│" in shown) is framed
    assert "empty" not in shown
    for letter in "abc":
        assert letter * 12 in shown
