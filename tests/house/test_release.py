"""What makes a release: the workflow, and the recipe for conda."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

yaml = pytest.importorskip("yaml", reason="the documentation's tools have it")

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
WORKFLOW = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
JOBS: dict[str, Any] = yaml.safe_load(WORKFLOW)["jobs"]
SCRIPTS = [step["run"] for job in JOBS.values() for step in job["steps"] if "run" in step]
RECIPE: dict[str, Any] = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))


def test_the_changelog_has_each_version_once_and_this_one() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^#{1,2} (.*)$", text, re.MULTILINE)
    assert sections[:2] == ["Changelog", "[Unreleased]"]
    assert len(sections) == len(set(sections))
    assert f"## [{PROJECT['version']}] - " in text


def test_the_workflow_has_no_secret_and_writes_only_where_it_must() -> None:
    assert "secrets." not in WORKFLOW
    assert yaml.safe_load(WORKFLOW)["permissions"] == {"contents": "read"}
    writing = {name for name, job in JOBS.items() if "write" in str(job.get("permissions"))}
    assert writing == {"draft", "docs"}
    used = [step["uses"] for job in JOBS.values() for step in job["steps"] if "uses" in step]
    assert [action for action in used if not re.fullmatch(r"actions/[a-z-]+@v\d+", action)] == []


@pytest.mark.parametrize("script", SCRIPTS)
def test_its_scripts_are_well_formed_and_what_they_run_is_there(script: str) -> None:
    plain = re.sub(r"\$\{\{.*?\}\}", "x", script)
    assert subprocess.run(["bash", "-n", "-c", plain], capture_output=True, text=True).stderr == ""
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert [target for target in re.findall(r"^make (\S+)", script, re.MULTILINE) if target not in targets] == []
    assert [path for path in re.findall(r"(?<![/\w])\.ci/\w+(?:\.py)?", script) if not (ROOT / path).is_file()] == []


def test_the_recipe_is_of_the_project() -> None:
    about, host = RECIPE["about"], RECIPE["requirements"]["host"]
    assert {f"{one.name} {one.specifier}" for one in map(Requirement, PYPROJECT["build-system"]["requires"])} <= {*host}
    points = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == points
    assert (about["license"], about["license_file"]) == (PROJECT["license"], PROJECT["license-files"])
    assert about["summary"] == PROJECT["description"]
