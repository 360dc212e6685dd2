"""docs/bridge.md: its command lines are taken, and its matrix is that of the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from mtosi_jms.bridge.admin import CONSISTENCY
from mtosi_jms.cli import parser_for

PAGE = (Path(__file__).parents[2] / "docs" / "bridge.md").read_text(encoding="utf-8")
LINES = [line.rstrip(" &") for line in re.findall(r"^\$ mtosi-jms (.*)$", PAGE.replace("\\\n", ""), re.MULTILINE)]


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
