"""The table of bounds says what is so: each default, each option, and who takes it."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import mtosi_codegen
import mtosi_jms
from mtosi_jms.bounds import BOUNDS, Bound, table
from mtosi_jms.cli import main
from mtosi_jms.cli.checks import Check
from mtosi_jms.gateway.serving import add_http

UNITS = {"MB": 1 << 20}


def sources() -> str:
    """The code of the packages, without the table itself."""
    folders = [Path(package.__path__[0]) for package in (mtosi_jms, mtosi_codegen)]
    files = [file for folder in folders for file in folder.rglob("*.py") if "stubs" not in file.parts]
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file.name != "bounds.py")


def test_each_bound_is_taken_by_somebody() -> None:
    taken = set(re.findall(r"\bBOUNDS\.(\w+)", sources()))
    assert taken == {bound.name for bound in table()}


@pytest.mark.parametrize("bound", table(), ids=lambda bound: bound.name)
def test_options_have_the_default_of_the_table(bound: Bound) -> None:
    assert bound.value == getattr(BOUNDS, bound.name) > 0
    parser = argparse.ArgumentParser()
    add_http(parser)
    for option in bound.options:
        if option.startswith("--"):
            action = next(one for one in parser._actions if option in one.option_strings)
            assert action.default * UNITS.get(str(action.metavar), 1) == bound.value
        elif "." in option:
            package, name, parameter = option.split(".")
            made = getattr(importlib.import_module(f"mtosi_jms.{package}"), name)
            assert inspect.signature(made).parameters[parameter].default == bound.value
        else:
            assert option == "wholeFileBytes"  # Spark's, by the field of its options


def test_doctor_lists_the_bounds(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for check in ("cli._doctor.check_stubs", "broker._doctor.check", "cli._doctor.check_schemas"):
        monkeypatch.setattr(f"mtosi_jms.{check}", lambda: Check("x", "ok", ""))
    main(["doctor", "--json"])
    listed = json.loads(capsys.readouterr().out)["bounds"]
    assert [(one["name"], one["value"], one["unit"]) for one in listed] == [
        (bound.name, bound.value, bound.unit) for bound in table()
    ]
    main(["doctor"])
    shown = capsys.readouterr().out
    assert all(f"{bound.shown}  {bound.counts}" in shown for bound in table())


# Each statement of docs/security.md about what the SDK does names the tests that hold it.

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


# What one hostile input costs: the figures of docs/security.md, each measured in a process of its own.

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
