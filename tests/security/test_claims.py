"""Each statement of docs/security.md about what the SDK does names the tests that hold it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
LINK = re.compile(r"\[([A-Z]+\d+)\]\((?:conformance|wrong-peers)\.md#([a-z0-9]+)\)")
PAGE = (HOME / "docs" / "security.md").read_text(encoding="utf-8")


def statements() -> list[str]:
    """Rows of what a peer sends, points about other users, paragraphs about replies and the network."""
    parts = dict(re.findall(r"^##+ ([^\n]+)\n\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
    rows = parts["A peer that sends"].strip().splitlines()[2:]
    points = re.split(r"^- ", parts["Other users of the machine"], flags=re.MULTILINE)[1:]
    network = [text for text in parts["The network"].split("\n\n") if text.strip()]
    replies = [text for text in parts["Reply destinations"].split("\n\n") if text.strip() and not text.startswith("|")]
    assert min(len(rows), len(points), len(network), len(replies)) > 0
    return [*rows, *points, *network, *replies]


@pytest.mark.parametrize("text", statements(), ids=lambda text: text[:40])
def test_a_statement_names_what_holds_it(text: str) -> None:
    assert LINK.search(text)


def test_what_it_names_is_there() -> None:
    lines = "".join(
        file.read_text(encoding="utf-8") for file in (HOME / "tests" / "conformance" / "obligations").iterdir()
    )
    named = {name for name, _ in LINK.findall(PAGE)}
    assert all(name.lower() == anchor for name, anchor in LINK.findall(PAGE))
    assert {name for name in named if not re.search(rf"^{name} = ", lines, re.MULTILINE)} == set()
