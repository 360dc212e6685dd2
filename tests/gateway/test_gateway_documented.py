"""docs/gateway.md: its code runs, and it names every option."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from mtosi_jms.gateway import HttpOptions


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "gateway.md").read_text(encoding="utf-8")


def test_the_code_on_the_page_runs(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(block, "gateway.md", "exec"), {})
    assert capsys.readouterr().out == "MD=EMS1/ME=NE-3\nTrue\n"


def test_the_page_names_all_options(page: str) -> None:
    for option in fields(HttpOptions):
        assert f"`{option.name}`" in page
