"""docs/bridge.md: its code runs and prints what stands beside it, and its command lines are taken."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.bridge.admin import CONSISTENCY
from mtosi_jms.cli import parser_for

PAGE = (Path(__file__).parents[2] / "docs" / "bridge.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
LINES = [line.rstrip(" &") for line in re.findall(r"^\$ mtosi-jms (.*)$", PAGE.replace("\\\n", ""), re.MULTILINE)]


def test_the_code_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, Any] = {}
    for number, block in enumerate(BLOCKS, 1):
        exec(compile(block, f"bridge.md block {number}", "exec"), space)
    promised = re.findall(r"print\(.*\)\s+# (.*)", "".join(BLOCKS))
    assert len(promised) == 7
    assert capsys.readouterr().out.splitlines() == promised


@pytest.mark.parametrize("line", LINES)
def test_the_commands_are_taken(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MTOSI_JMS_URL", "memory:")
    words = shlex.split(line)
    assert parser_for(words[0]).parse_args(words).command == words[0]


@pytest.mark.obligation("000-B6")
def test_the_matrix_of_what_is_supported() -> None:
    told = {
        (f"{source} to {sink}", one, other)
        for source, sink, ones, others in re.findall(
            r"^\| (channel|JMS) \| (channel|JMS) \| ([A-Z or]+) \| ([A-Z or]+) \|$", PAGE, re.MULTILINE
        )
        for one in ones.split(" or ")
        for other in others.split(" or ")
    }
    assert told == {(way, one.value, other.value) for (way, one, other), there in CONSISTENCY.items() if there}
