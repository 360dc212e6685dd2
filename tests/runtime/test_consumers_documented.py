"""docs/consumers.md: its code runs and prints what the page says, and it names all there is."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from mtosi_jms.runtime import Health, RuntimeRules
from mtosi_jms.runtime import _link as parking


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "consumers.md").read_text(encoding="utf-8")


def test_the_code_on_the_page_prints_what_the_page_says(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)*)", page, re.DOTALL)
    assert len(found) == 5
    space: dict[str, object] = {}
    for number, (block, printed) in enumerate(found, 1):
        exec(compile(block, f"consumers.md block {number}", "exec"), space)
        assert capsys.readouterr().out == re.sub("(?m)^    ", "", printed)


def test_the_page_names_what_there_is(page: str) -> None:
    names = [field.name for cls in (Health, RuntimeRules) for field in dataclasses.fields(cls)]
    names += [value for name, value in vars(parking).items() if name.isupper()]
    assert [name for name in names if f"`{name}`" not in page and f".{name}`" not in page] == []
