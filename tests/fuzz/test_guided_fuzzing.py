"""The long form of the fuzz tests, guided by coverage: `MTOSI_FUZZ_SECONDS` of CPU time (150) for each entry point.

The default makes ten minutes. What is found stands in the failure with the bytes that bring it about.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = int(os.environ.get("MTOSI_FUZZ_SECONDS") or 150)
MACHINE_IS_BUSY = 6
"""How many times longer than its CPU time a run may take before it counts as hanging."""


guided = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris is not installed: its wheels are for CPython 3.11 to 3.13 on Linux x86-64",
)


def _fuzzed(target: str, seconds: int, root: Path, folder: Path) -> dict[str, float]:
    """The figures of a run that found nothing."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), str(root / "codegen")))}
    script = Path(__file__).with_name("guided_process.py")
    done = subprocess.run(
        [sys.executable, str(script), target, str(seconds), str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds * MACHINE_IS_BUSY + 120,
    )
    crashes = {path.name: path.read_bytes() for path in (folder / "crashes").glob("*")}
    assert (done.returncode, crashes) == (0, {}), done.stderr[-4000:]
    figures: dict[str, float] = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
    assert figures["cpu_seconds"] >= seconds
    assert figures["results"] > 0
    return figures


@guided
@pytest.mark.endurance
@pytest.mark.parametrize("target", ["soap", "decode", "jms", "wsdl"])
def test_guided(target: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = _fuzzed(target, SECONDS, root, tmp_path)
    with capsys.disabled():
        print(f"\n{target}: " + ", ".join(f"{value} {name}" for name, value in figures.items()))
    assert figures["executions"] > SECONDS
