"""docs/asyncio.md: its code runs and prints what the page says."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

PRINTS = """\
MD=EMS1/ME=NE-2
MD=EMS1/ME=NE-1
MD=EMS1/ME=NE-2
MD=EMS1/ME=NE-3
MD=EMS1/ME=NE-4
MD=EMS1/ME=NE-5
5 responses
1
total
0
MD=EMS2/ME=0 7
Alarm
"""


def test_the_code_on_the_page_runs(root: Path, run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    page = (root / "docs" / "asyncio.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 7
    space: dict[str, Any] = {}
    source = "async def page():\n" + textwrap.indent("\n".join(blocks), "    ")
    exec(compile(source, "asyncio.md", "exec"), space)
    run(space["page"]())
    assert capsys.readouterr().out == PRINTS
    for line in PRINTS.splitlines():
        assert f"# {line}" in page or line.startswith("MD=EMS1/ME=NE-"), "the page says what is printed"
