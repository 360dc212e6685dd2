"""New projects: each runs at once, its tests pass, and nothing that is there is overwritten."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.cli import main
from mtosi_jms.cli._new import KINDS
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType

ROOT = Path(__file__).resolve().parents[2]
SHORT = [kind for kind in KINDS if kind != "spark-job"]


def execute(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", *words],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def run(folder: Path, *words: str) -> str:
    done = execute(folder, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("kind", "release"),
    [
        *((kind, "2.0") for kind in SHORT),
        (SHORT[0], "1.1"),
        *(pytest.param(kind, "1.1", marks=pytest.mark.endurance) for kind in SHORT[1:]),
        *(pytest.param("spark-job", release, marks=pytest.mark.endurance) for release in ("2.0", "1.1")),
    ],
)
def test_a_project_runs_and_its_tests_pass(
    kind: str, release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MTOSI_JMS_URL", raising=False)
    folder = tmp_path / "My project"
    assert main(["new", kind, str(folder), "--release", release]) == 0
    assert 'name = "my-project"' in (folder / "pyproject.toml").read_text(encoding="utf-8")
    if kind != "supplier":  # it answers until a signal comes
        assert run(tmp_path, str(folder / f"{KINDS[kind].module}.py")), "it runs from any folder"
    monkeypatch.setenv("MTOSI_JMS_URL", "stomp://nobody.invalid:1")  # left over from another try
    off = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")  # the largest part of what pytest imports here
    assert " passed" in run(tmp_path, "-m", "pytest", "-q", *off, str(folder))


@pytest.mark.broker
def test_on_a_real_provider_a_requestor_makes_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], activemq: Any
) -> None:
    """Else its simulator would answer requests of others."""

    class Ems(ManagedElementRetrieval.Supplier):
        def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[ManagedElementType]:
            yield ManagedElementType(name=name("MD=Real/ME=1"))

    assert main(["new", "requestor", str(tmp_path)]) == 0
    monkeypatch.setenv("MTOSI_JMS_CONFIG", str(tmp_path / "mtosi-jms.toml"))  # else the program sets it
    program = runpy.run_path(str(tmp_path / "requestor.py"))
    made: list[object] = []
    program["main"].__globals__["ManagedElementEms"] = lambda network: made.append(network) or Ems()
    url = activemq.endpoints.url("stomp")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MTOSI_JMS_URL", url)
    capsys.readouterr()
    with mtosi.connect(url) as connection, mtosi.Supplier(connection, "queue:EMS.OS", [Ems()]):
        assert program["main"]() == 0
    assert (capsys.readouterr().out, made) == ("MD=Real/ME=1 None None\n", [])


@pytest.mark.parametrize("kind", [SHORT[0], *(pytest.param(one, marks=pytest.mark.endurance) for one in [*KINDS][1:])])
def test_a_project_is_a_package_of_its_program_alone(kind: str, tmp_path: Path) -> None:
    assert main(["new", kind, str(tmp_path / "it")]) == 0
    run(tmp_path / "it", "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check")
    (wheel,) = (tmp_path / "it" / "dist").iterdir()
    modules = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    assert modules == [f"{KINDS[kind].module}.py"]


@pytest.mark.parametrize("kind", ["requestor", "supplier", "subscriber"])
def test_an_error_is_one_line(kind: str, tmp_path: Path) -> None:
    assert main(["new", kind, str(tmp_path / "it")]) == 0
    done = execute(tmp_path / "it", f"{KINDS[kind].module}.py", "prod")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.startswith("error: password file /run/secrets/broker")


def test_projects_are_valid_python_in_good_form(tmp_path: Path) -> None:
    for kind, release in product(KINDS, ("2.0", "1.1")):
        folder = tmp_path / f"{kind}-{release}"
        assert main(["new", kind, str(folder), "--release", release]) == 0
        run(folder, "-m", "ruff", "check", "--isolated", "--line-length=120", "--select=E,F,I,UP,B", ".")
    run(tmp_path, "-m", "ruff", "format", "--isolated", "--line-length=120", "--check", ".")


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text("mine", encoding="utf-8")
    assert main(["new", "requestor", str(tmp_path)]) == 1
    assert "is there and not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]
    assert main(["new", "requestor", str(tmp_path / "mine.py")]) == 1
    assert main(["new", "requestor", str(tmp_path / "...")]) == 1
    assert "no letter or digit" in capsys.readouterr().err
