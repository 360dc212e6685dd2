"""docs/testing.md: its test passes, and it names all there is."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mtosi_jms.simulator import TECHNOLOGIES, Network
from mtosi_jms.testing import fixtures


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "testing.md").read_text(encoding="utf-8")


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def test_the_test_on_the_page_passes(page: str, tmp_path: Path, root: Path) -> None:
    (tmp_path / "test_page.py").write_text(next(block for block in blocks(page) if "def test_" in block))
    command = [sys.executable, "-m", "pytest", "-q", "-p", fixtures.__name__, "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(root)}, capture_output=True, text=True)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_page_names_all_there_is(page: str) -> None:
    named = [
        *fixtures.__all__,
        *TECHNOLOGIES,
        *(field.name for field in dataclasses.fields(Network)),
        *("gap", "duplicate", "reorder", "delay", "late", "truncate"),
        *("exchange", "notifications", "ManualClock", "ScriptedSupplier", "standing_alarms"),
    ]
    assert len(named) > 25
    assert [name for name in named if f"`{name}`" not in page and f"`{name}(" not in page] == []
