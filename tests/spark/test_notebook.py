"""The notebook of the examples runs from its first cell to its last, and ends with a picture of the network."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

pytestmark = pytest.mark.spark


def shown(source: str, space: dict[str, Any]) -> Any:
    """Run a cell as Jupyter does: what its last expression gives, if it ends with one."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), space)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), space) if isinstance(last, ast.Expr) else None


def code(root: Path) -> list[str]:
    """The notebook's cells of code."""
    notebook = json.loads((root / "examples" / "inventory.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["language"]) == (4, "python")
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_every_name_that_it_imports_is_there(root: Path) -> None:
    """The short form: what it calls is run by the tests of the guides."""
    found = [node for cell in code(root) for node in ast.walk(ast.parse(cell))]
    lines = [node for node in found if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert lines
    for line in lines:
        exec(ast.unparse(line), {})


@pytest.mark.endurance
def test_the_notebook_runs(
    spark: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    results = [shown(cell, space) for cell in code(root)]
    printed = capsys.readouterr().out
    assert "complete {'ME': 24" in printed
    assert "|Northwind Optical|   10|" in printed
    picture = results[-1]._repr_html_()
    assert len(re.findall('<circle class="node"', picture)) == 24
    assert len(re.findall('<line class="edge"', picture)) >= 24, "a ring and chords"
    assert "<h2>Network</h2>" in (tmp_path / "inventory-out/topology/_report/topology.html").read_text(encoding="utf-8")
