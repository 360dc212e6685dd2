"""The facts about each sample, with the shipped stubs and with a package generated from TM Forum's release 2.0."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mtosi_codegen import generate, write

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def _facts(shared: Path, root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("release")
    result = generate([shared / "mtosi" / "2.0"])
    assert not result.failed
    write(folder / "release20", result.files)
    return {"stubs": _run(root, shared), "2.0": _run(root, shared, str(folder), "release20")}


def _run(root: Path, shared: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), str(root / "codegen")))}
    command = [sys.executable, "-W", "error", str(HERE / "roundtrip_process.py"), str(shared / "samples"), *arguments]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.fixture(params=["stubs", "2.0"])
def seen(request: pytest.FixtureRequest, _facts: dict[str, dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """File to facts, with one of the packages."""
    return _facts[request.param]


@pytest.fixture
def seen_with_release(_facts: dict[str, dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """File to facts, with the package generated from the release."""
    return _facts["2.0"]
