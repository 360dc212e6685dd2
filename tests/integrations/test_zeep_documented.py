"""docs/zeep.md: its code runs and prints what the page says, and it names all there is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from mtosi_jms.integrations.zeep import Client, client

PRINTS = """\
NE-2
RESPONSE
case 4711
[2, 2, 1]
entityNotFound - there is no ME=NE-99
there is no ME=NE-99
"""


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "zeep.md").read_text(encoding="utf-8")


def test_the_code_on_the_page_runs(
    page: str, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    space: dict[str, object] = {}
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page, re.DOTALL), 1):
        exec(compile(block, f"zeep.md block {number}", "exec"), space)
    assert capsys.readouterr().out == PRINTS
    assert all(f"# {line}" in page for line in PRINTS.splitlines())


def test_the_page_and_the_function_name_every_option(page: str) -> None:
    for name in set(inspect.signature(Client).parameters) - {"self"}:
        assert name in page, name
        assert name in (client.__doc__ or ""), name
