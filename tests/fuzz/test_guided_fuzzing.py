"""The long form of the fuzz tests: guided by coverage, `MTOSI_FUZZ_SECONDS` (300) for each entry point."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = int(os.environ.get("MTOSI_FUZZ_SECONDS") or 300)


@pytest.mark.endurance
@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris is not installed: pip install atheris (it is in no lock, and has no wheel for every Python)",
)
@pytest.mark.parametrize("target", ["soap", "decode", "jms", "wsdl"])
def test_guided(target: str, root: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), str(root / "codegen")))}
    script = Path(__file__).with_name("guided_process.py")
    done = subprocess.run(
        [sys.executable, str(script), target, str(SECONDS), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS + 120,
    )
    crashes = [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
    assert done.returncode == 0, (done.stderr[-4000:], crashes)
    assert crashes == []
