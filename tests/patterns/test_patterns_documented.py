"""The documentation shows the tables that the code runs, and the machines share one face."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Mapping
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

import pytest

import mtosi_jms.patterns as patterns
from mtosi_jms.patterns import BatchAssembler, BatchRules, Exchange, SimpleExchange, Timeouts, _batches, _simple

S = TypeVar("S", bound=Enum)
V = TypeVar("V", bound=Enum)


def render_table(table: Mapping[S, Mapping[V, S]], final: Collection[S]) -> str:
    """A state table as a Markdown table: one row an event, one column a live state, the next state in the cell.

    `.` is the same state again, an empty cell a pair that cannot occur. Final states have no column: they are never
    left. The text ends with a line break.
    """
    live = [state for state in table if state not in final]
    events = list(dict.fromkeys(event for row in table.values() for event in row))
    lines = [
        "| event | " + " | ".join(f"in *{state.value}*" for state in live) + " |",
        "|---" * (len(live) + 1) + "|",
    ]
    for event in sorted(events, key=list(type(events[0])).index):
        cells = [_cell(state, table[state].get(event), final) for state in live]
        lines.append(f"| {event.value} | " + " | ".join(cells) + " |")
    lines += ["", "Final: " + ", ".join(f"**{state.value}**" for state in table if state in final) + "."]
    return "\n".join(lines) + "\n"


def _cell(state: S, following: S | None, final: Collection[S]) -> str:
    if following is None:
        return ""
    if following is state:
        return "."
    return f"**{following.value}**" if following in final else str(following.value)


TABLES: Final[dict[str, str]] = {
    "simple": render_table(_simple.TABLE, _simple.FINAL),
    "batches": render_table(_batches.TABLE, _batches.FINAL),
}
"""The rendered tables by the name that stands in the documentation's markers."""

_MARKED = re.compile(r"(<!-- table: (?P<name>\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def refresh(text: str) -> str:
    """A Markdown text with the tables between `<!-- table: NAME -->` and `<!-- end of table -->` made anew.

    Raises:
        KeyError: a marker that names no table.
    """
    return _MARKED.sub(lambda found: f"{found[1]}\n{TABLES[found['name']]}\n{found[3]}", text)


def test_the_tables_in_the_documentation_are_those_that_the_code_runs(root: Path) -> None:
    """MTOSI_UPDATE_DOCS=1 rewrites docs/patterns.md instead of failing."""
    page = root / "docs" / "patterns.md"
    text = page.read_text(encoding="utf-8")
    made = refresh(text)
    if made != text and os.environ.get("MTOSI_UPDATE_DOCS") == "1":
        page.write_text(made, encoding="utf-8")
        pytest.skip("docs/patterns.md was rewritten")
    assert made == text, "docs/patterns.md is out of date; MTOSI_UPDATE_DOCS=1 makes it anew"
    assert all(f"<!-- table: {name} -->" in text for name in TABLES)


def test_refresh_replaces_what_stands_between_the_marks_and_nothing_else() -> None:
    old = "before\n<!-- table: simple -->\nrotten\n<!-- end of table -->\nafter\n"
    made = refresh(old)
    assert "rotten" not in made
    assert TABLES["simple"] in made
    assert made.startswith("before\n")
    assert made.endswith("after\n")
    assert refresh(made) == made
    with pytest.raises(KeyError):
        refresh("<!-- table: other -->\n<!-- end of table -->")


def test_the_documentation_names_every_limit_and_rule(root: Path) -> None:
    text = (root / "docs" / "patterns.md").read_text(encoding="utf-8")
    for name in (*Timeouts.__dataclass_fields__, *BatchRules.__dataclass_fields__):
        assert f"`{name}`" in text, name


def test_the_example_in_the_documentation_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (root / "docs" / "patterns.md").read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    exec(compile(code, "patterns.md", "exec"), {})
    assert capsys.readouterr().out.split("\n") == ["batch 1", "batch 2", "batch 3", "complete", ""]


def test_both_machines_are_exchanges() -> None:
    both: list[Exchange[str]] = [SimpleExchange("a", started=0.0), BatchAssembler("b", started=0.0)]
    assert [one.finished for one in both] == [False, False]
    assert [one.correlation_id for one in both] == ["a", "b"]


def test_patterns_know_no_clock_thread_socket_or_client_library() -> None:
    allowed = {"__future__", "collections", "dataclasses", "enum", "hashlib", "re", "typing", "mtosi_jms"}
    folder = Path(patterns.__file__).parent
    for source in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= allowed, source.name
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                assert node.module.split(".")[0] in allowed, source.name
                ours = node.module.startswith(("mtosi_jms.bounds", "mtosi_jms.errors", "mtosi_jms.patterns"))
                assert ours or not node.module.startswith("mtosi_jms."), source.name
