"""docs/corba-channels.md: its code runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "corba-channels.md").read_text(encoding="utf-8")


def test_the_code_on_the_page_runs(
    page: str, jacorb_address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHANNEL", jacorb_address)
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(block, "corba-channels.md", "exec"), {})
    assert capsys.readouterr().out == "Alarm 2 MAJOR\n"
