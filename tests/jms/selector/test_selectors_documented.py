"""docs/selectors.md: its code runs and gives what stands beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.jms.message import RESERVED_WORDS
from mtosi_jms.jms.selector._parser import HEADERS


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "selectors.md").read_text(encoding="utf-8")


def blocks(page: str) -> list[str]:
    """The code of the page; what needs Spark runs in tests/spark."""
    return re.findall(r"(?<!<!-- spark -->\n)^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def test_each_line_gives_what_its_comment_says(page: str) -> None:
    """What follows a colon in the comment is for the reader."""
    first = blocks(page)[0]
    names: dict[str, Any] = {}
    exec(first, names)
    lines = [line.partition("# ")[::2] for line in first.splitlines() if "# " in line]
    assert len(lines) == 4
    assert [repr(eval(code, names)) for code, _ in lines] == [comment.partition(":")[0] for _, comment in lines]


def test_what_the_examples_print_stands_below_them(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks(page):
        exec(block, {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 4
    prose = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"^    (\S.*)$", prose, re.MULTILINE) == printed


@pytest.mark.obligation("001-I15")
def test_words_and_headers_are_all_named(page: str) -> None:
    for name in (*RESERVED_WORDS, *HEADERS):
        assert name in page
