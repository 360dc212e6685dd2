"""What makes a release: the workflow, and the recipe for conda."""

from __future__ import annotations

import re
import shutil
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
WORKFLOWS: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / ".github/workflows").glob("*.yml")
}
STEPS = [step for workflow in WORKFLOWS.values() for job in workflow["jobs"].values() for step in job["steps"]]
WRITES = {
    "draft": {"attestations", "contents", "id-token"},
    "publish": {"id-token"},
    "docs": {"contents"},
}
RECIPE: dict[str, Any] = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))


def test_the_changelog_has_each_version_once_and_this_one() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^#{1,2} (.*)$", text, re.MULTILINE)
    assert sections[:2] == ["Changelog", "[Unreleased]"]
    assert len(sections) == len(set(sections))
    assert f"## [{PROJECT['version']}] - " in text


def test_workflows_have_no_secret_and_write_only_where_they_must() -> None:
    assert set(WORKFLOWS) == {"ci", "release"}
    assert "secrets." not in str(WORKFLOWS)
    for workflow in WORKFLOWS.values():
        assert workflow["permissions"] == {}
        for name, job in workflow["jobs"].items():
            rights = job["permissions"]
            assert {right for right, access in rights.items() if access != "read"} == WRITES.get(name, set())


def test_workflows_use_pinned_actions_and_keep_no_credentials() -> None:
    used = [step for step in STEPS if "uses" in step]
    assert [
        step["uses"] for step in used if not re.fullmatch(r"(actions|pypa)/[a-z-]+@[0-9a-f]{40}", step["uses"])
    ] == []
    checkouts = [step["with"] for step in used if step["uses"].startswith("actions/checkout@")]
    assert all(options["persist-credentials"] is False for options in checkouts)


@pytest.mark.parametrize("command", ["actionlint", "zizmor --offline --quiet --no-progress"])
def test_workflows_pass_the_linters(command: str) -> None:
    linter, *options = command.split()
    if shutil.which(linter) is None:
        pytest.skip(f"{linter} is not installed; see CONTRIBUTING.md")
    files = sorted(map(str, (ROOT / ".github/workflows").glob("*.yml")))
    done = subprocess.run([linter, *options, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ci_runs_on_the_pythons_that_are_declared() -> None:
    declared = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert WORKFLOWS["ci"]["jobs"]["core"]["strategy"]["matrix"]["python"] == declared


@pytest.mark.parametrize("script", [step["run"] for step in STEPS if "run" in step])
def test_their_scripts_are_well_formed_and_what_they_run_is_there(script: str) -> None:
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
