"""docs/commands.md: every command is in it, and every command line in it is one that the command takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.cli import COMMANDS
from mtosi_jms.simulator._command import SERVICES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
LINES = sorted({*re.findall(r"^\$ mtosi-jms (.*)$", PAGE, re.MULTILINE), *re.findall(r"`mtosi-jms ([^`]*)` \|", PAGE)})
TALKING = ("serve", "request", "publish", "subscribe", "replay", "queue", "spool")


def test_every_command_is_documented() -> None:
    assert [name for name in COMMANDS if f"| `{name}` |" not in PAGE] == []


@pytest.mark.parametrize("line", LINES)
def test_command_lines_are_taken(line: str, parsed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MTOSI_JMS_URL", "stomp://broker:61613")  # as the page says
    words = shlex.split(line)
    assert parsed(*words).command == words[0]


@pytest.mark.parametrize("command", TALKING)
def test_options_that_the_page_names_are_there(command: str, parsed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    section = re.search(rf"^## {command}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    with pytest.raises(SystemExit):
        parsed(command, "--help")
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert set(re.findall(r"`(--[a-z-]+)", section[1])) - options == set()


def test_the_services_are_named() -> None:
    assert ", ".join(SERVICES) in PAGE
