"""docs/stomp.md: its code runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "stomp.md").read_text(encoding="utf-8")


@pytest.mark.broker
def test_the_code_on_the_page_runs(
    page: str, broker: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BROKER_URL", broker.endpoints.url("stomp"))
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(block, "stomp.md", "exec"), {})
    assert capsys.readouterr().out == "b'<request/>'\n"
