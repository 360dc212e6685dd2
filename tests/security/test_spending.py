"""What one hostile input costs: the figures of docs/security.md, each measured in a process of its own."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| ([^|]+) \| ([\d.]+) s \| ([\d,]+) MB \|$", re.MULTILINE)


def benchmark() -> ModuleType:
    """`benchmarks/spending.py`, which is a script."""
    spec = importlib.util.spec_from_file_location("bench_spending", ROOT / "benchmarks" / "spending.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # NamedTuple looks its module up
    spec.loader.exec_module(module)
    return module


SPENDING = benchmark()


def figures() -> dict[str, tuple[float, float]]:
    """Seconds and megabytes by input, as the page has them."""
    rows = ROW.findall((ROOT / "docs" / "security.md").read_text(encoding="utf-8"))
    return {name: (float(seconds), float(size.replace(",", ""))) for name, seconds, size in rows}


def test_the_page_has_a_figure_for_each_input() -> None:
    assert figures().keys() == SPENDING.INPUTS.keys()


@pytest.mark.endurance
@pytest.mark.parametrize("name", SPENDING.INPUTS)
def test_an_input_costs_no_more_than_the_page_says(name: str) -> None:
    seconds, megabytes = figures()[name]
    took, grew = SPENDING.cost_of(name)
    assert took < 4 * seconds + 1  # other machines are slower
    assert grew < 1.3 * megabytes + 50
