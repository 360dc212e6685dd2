"""The index of errors names every class, each once, and says what to do."""

from __future__ import annotations

import re
from pathlib import Path

from mtosi_jms import errors

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split("|") for line in re.findall(r"^\| `[A-Z]\w+`.*$", PAGE, re.MULTILINE)]


def test_every_class_has_a_row() -> None:
    names = [name for row in ROWS for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(names) == sorted({*errors.__all__} - {"MtosiError"})


def test_every_row_has_causes_and_says_what_to_do() -> None:
    assert [row for row in ROWS if len(row) != 3 or not all(cell.strip() for cell in row)] == []
