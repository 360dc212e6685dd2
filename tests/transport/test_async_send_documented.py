"""docs/asynchronous-send.md: its code runs and prints what the page says, and it names all options."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from mtosi_jms.transport import ConnectOptions


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "asynchronous-send.md").read_text(encoding="utf-8")


def test_the_code_on_the_page_prints_what_the_page_says(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, object] = {}
    found = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)*)", page, re.DOTALL)
    assert len(found) == 4
    for number, (block, printed) in enumerate(found, 1):
        exec(compile(block, f"asynchronous-send.md block {number}", "exec"), space)
        assert capsys.readouterr().out == re.sub("(?m)^    ", "", printed)


def test_the_page_names_every_option(page: str) -> None:
    for name in {one.name for one in fields(ConnectOptions)} - {"client_id", "jms_version"}:
        assert f"| `{name}` |" in page
