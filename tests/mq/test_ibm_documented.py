"""docs/ibm.md: its code runs and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


def test_the_code_on_the_page_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (root / "docs" / "ibm.md").read_text(encoding="utf-8")
    ((block, printed),) = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", page, re.DOTALL)
    exec(compile(block, "ibm.md", "exec"), {})
    assert capsys.readouterr().out == "".join(line[4:] + "\n" for line in printed.splitlines())
