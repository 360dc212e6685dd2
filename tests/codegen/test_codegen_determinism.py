"""The same sources give the same bytes: whatever the hash seed, the order of sources, the folder and the clock."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAM = (
    "import hashlib, sys\n"
    "from mtosi_codegen import generate\n"
    "result = generate(sys.argv[1:])\n"
    "total = hashlib.sha256()\n"
    "for path, text in result.files.items(): total.update(f'{path}\\0{text}\\0'.encode())\n"
    "print(total.hexdigest(), [str(finding) for finding in result.findings])\n"
)


def _run(sources: list[Path], cwd: Path, seed: str, root: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, sources)],
        capture_output=True, text=True, cwd=cwd, check=True,
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(root), str(root / "codegen")])},
    )  # fmt: skip
    return done.stdout


@pytest.fixture(scope="module")
def expected(root: Path) -> str:
    """The output for the plain order in the plain place."""
    return _run(sorted((HERE / "sources").iterdir()), HERE, "0", root)


@pytest.mark.parametrize("seed", ["1", "2", "4711"])
def test_hash_seed_and_source_order(seed: str, expected: str, root: Path) -> None:
    files = sorted((HERE / "sources").iterdir(), key=lambda path: hashlib.sha256((seed + path.name).encode()).digest())
    assert _run(files, HERE, seed, root) == expected


def test_folder_and_working_directory(expected: str, tmp_path: Path, root: Path) -> None:
    copy = tmp_path / "elsewhere" / "copy"
    copy.mkdir(parents=True)
    for path in sorted((HERE / "sources").iterdir(), reverse=True):
        shutil.copy(path, copy / path.name)
    assert _run([copy], tmp_path, "0", root) == expected
    assert _run([Path("copy")], tmp_path / "elsewhere", "3", root) == expected
