"""A checkout whose stubs are missing can make them: the generator needs none of what it generates."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def test_the_generator_makes_the_stubs_of_a_checkout_without_any(root: Path, tmp_path: Path) -> None:
    for folder in ("mtosi_jms", "codegen", "wsdl", "xsd"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("stubs*", "__pycache__"))
    path = os.pathsep.join((str(tmp_path), str(tmp_path / "codegen")))
    done = subprocess.run(
        [sys.executable, "-m", "mtosi_codegen", "generate", "wsdl", "xsd", "--package", "stubs", "--out", "mtosi_jms"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for shipped in (root / "mtosi_jms" / "stubs").rglob("*.py"):
        assert (tmp_path / shipped.relative_to(root)).read_bytes() == shipped.read_bytes()
