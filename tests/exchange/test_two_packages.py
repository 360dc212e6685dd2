"""Two generated packages in one process, of the same namespaces: each stub gets objects of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run(root: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), str(root / "codegen")))}
    done = subprocess.run([sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_stub_gets_objects_of_its_own_package(root: Path, tmp_path: Path) -> None:
    run(root, "-m", "mtosi_codegen", "generate", "wsdl", "xsd", "--package", "acme", "--out", str(tmp_path))
    said = run(root, str(Path(__file__).with_name("two_packages_process.py")), str(tmp_path))
    roots = ("mtosi_jms.stubs", "acme")
    assert said.splitlines() == [
        f"{asking} asks {answering}: here, there is none, ERROR" for asking in roots for answering in roots
    ]
