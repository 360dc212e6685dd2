"""The table of bounds says what is so: each default, each option, and who takes it."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
from pathlib import Path

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
