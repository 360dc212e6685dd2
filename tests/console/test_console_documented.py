"""docs/console.md names every option of the command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mtosi_jms.cli import parser_for


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "console.md").read_text(encoding="utf-8")


def test_every_option_of_its_own_is_named(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser_for("console").parse_args(["console", "--help"])
    shown = capsys.readouterr().out
    own = shown[shown.index("what to watch") :]
    options = set(re.findall(r"--[a-z-]+", own[: own.rindex("Example") if "Example" in own else None]))
    assert sorted(option for option in options if option not in page) == []
