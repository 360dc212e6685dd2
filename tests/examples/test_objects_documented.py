"""docs/objects.md: its code runs and prints what stands beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


def test_the_code_on_the_page_prints_what_stands_beside_it(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (root / "docs" / "objects.md").read_text(encoding="utf-8")
    space: dict[str, object] = {}
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page, re.DOTALL), 1):
        exec(compile(block, f"objects.md block {number}", "exec"), space)
    expected = re.findall(r"^print\(.*\) {2,}# (.+)$", page, re.MULTILINE)
    assert len(expected) == 8
    assert capsys.readouterr().out.splitlines() == expected
