"""docs/console.md: its commands are taken, and it names every option."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from mtosi_jms.cli import parser_for


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "console.md").read_text(encoding="utf-8")


def test_command_lines_are_taken(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MTOSI_JMS_URL", "memory:")
    lines = [line for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    commands = [shlex.split(line) for line in lines]
    assert len(commands) > 3
    for program, *words in commands:
        assert (program, parser_for(words[0]).parse_args(words).command) == ("mtosi-jms", "console")


def test_every_option_of_its_own_is_named(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser_for("console").parse_args(["console", "--help"])
    shown = capsys.readouterr().out
    own = shown[shown.index("what to watch") :]
    options = set(re.findall(r"--[a-z-]+", own[: own.rindex("Example") if "Example" in own else None]))
    assert sorted(option for option in options if option not in page) == []
