"""docs/bridge.md: its matrix is that of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mtosi_jms.bridge.admin import CONSISTENCY

PAGE = (Path(__file__).parents[2] / "docs" / "bridge.md").read_text(encoding="utf-8")


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
