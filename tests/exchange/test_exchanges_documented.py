"""docs/exchanges.md: its code runs and prints what the page says, and it names all there is."""

from __future__ import annotations

import dataclasses
import inspect
import re
import tempfile
from pathlib import Path

import pytest

import mtosi_jms as mtosi
from mtosi_jms.exchange import Requestor, Supplier

PRINTS = """\
MD=EMS1/ME=NE-2
MD=EMS1/ME=NE-1
MD=EMS1/ME=NE-2
MD=EMS1/ME=NE-3
MD=EMS1/ME=NE-4
MD=EMS1/ME=NE-5
[2, 2, 1]
MD=EMS1/ME=NE-1
case 4711 []
first reply
nobody consumes queue:NOBODY: is the supplier running, and is this its destination?
entityNotFound - there is no MD=EMS1/ME=NE-99
[3, 3, 1]
1 3
2 3
3 1
7
GZIP TAR elements.tar.gz
5 objects
3 documents
3 3
"""


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "exchanges.md").read_text(encoding="utf-8")


def test_the_code_on_the_page_runs(
    page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 8
    space: dict[str, object] = {}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"exchanges.md block {number}", "exec"), space)
    assert capsys.readouterr().out == PRINTS
    for line in PRINTS.splitlines():
        assert line in page or line.startswith("MD=EMS1/ME=NE-"), "the page says what is printed"


def test_the_page_names_every_option_of_a_call(page: str) -> None:
    for field in dataclasses.fields(mtosi.CallOptions):
        assert field.name in page, field.name


def test_the_page_names_what_is_configured(page: str) -> None:
    left_out = {"self", "connection", "destination", "profile", "new_id", "clock"}
    for cls in (Requestor, Supplier):
        for parameter in set(inspect.signature(cls).parameters) - left_out:
            assert parameter in page, f"{cls.__name__}({parameter})"
