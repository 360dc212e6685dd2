"""The tables of docs/mqtt.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mqtt.md"
COLUMNS = {"activemq": 1, "artemis": 2}
"""Those of the brokers."""


def tables() -> list[list[list[str]]]:
    """Each table as rows of cells, the head first."""
    found = re.findall(r"(?:^\|.*\|\n)+", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [[_cells(line) for number, line in enumerate(text.splitlines()) if number != 1] for text in found]


def table(head: str) -> Sequence[Sequence[str]]:
    """The rows of the table whose first column has a head, without the head."""
    ((_, *rows),) = [one for one in tables() if one[0][0] == head]
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
