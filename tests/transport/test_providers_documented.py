"""docs/providers.md: its code runs and prints what the page says, and it names all there is."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from mtosi_jms.transport import AckMode, Capability, memory

PRINTS = """\
b'<urgent/>' 9
b'<request/>' 4
1
2
3
b'<poison/>' queue:EMS.OS
delivered 3 times without being acknowledged
b'CRITICAL'
not the first time - 1
heard b'<event/>'
"""


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "providers.md").read_text(encoding="utf-8")


def test_the_code_on_the_page_runs(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 4
    space: dict[str, object] = {}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"providers.md block {number}", "exec"), space)
    assert capsys.readouterr().out == PRINTS
    for line in PRINTS.splitlines():
        assert line in page or line in "123", "the page says what is printed"


def test_the_page_names_all_there_is(page: str) -> None:
    for option in fields(memory.MemoryOptions):
        assert f"| `{option.name}` |" in page, option
    for one in (*Capability, *AckMode):
        assert one.name in page, one.name
    for name in (memory.ORIGINAL_DESTINATION, memory.REASON, memory.DELIVERIES):
        assert name in page, name
