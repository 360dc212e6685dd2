"""What makes a release: the workflow, and the recipe for conda."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

yaml = pytest.importorskip("yaml", reason="the documentation's tools have it")

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
WORKFLOWS = {path.stem: path for path in (ROOT / ".github/workflows").glob("*.yml")}
RECIPE: dict[str, Any] = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))


def test_the_changelog_has_each_version_once_and_this_one() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^#{1,2} (.*)$", text, re.MULTILINE)
    assert sections[:2] == ["Changelog", "[Unreleased]"]
    assert len(sections) == len(set(sections))
    assert f"## [{PROJECT['version']}] - " in text


@pytest.mark.parametrize("command", ["actionlint", "zizmor --offline --quiet --no-progress"])
def test_workflows_pass_the_linters(command: str) -> None:
    linter, *options = command.split()
    found = shutil.which(linter, path=os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]]))
    if found is None:
        pytest.skip(f"{linter} is not installed; see CONTRIBUTING.md")
    done = subprocess.run([found, *options, *WORKFLOWS.values()], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ci_runs_on_the_pythons_that_are_declared() -> None:
    declared = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    core = yaml.safe_load(WORKFLOWS["ci"].read_text(encoding="utf-8"))["jobs"]["core"]
    assert core["strategy"]["matrix"]["python"] == declared


def test_the_recipe_is_of_the_project() -> None:
    about, host = RECIPE["about"], RECIPE["requirements"]["host"]
    assert {f"{one.name} {one.specifier}" for one in map(Requirement, PYPROJECT["build-system"]["requires"])} <= {*host}
    points = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == points
    assert (about["license"], about["license_file"]) == (PROJECT["license"], PROJECT["license-files"])
    assert about["summary"] == PROJECT["description"]
