"""The README: its programs run one after another as printed."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n\n((?:    [^\n]*\n)+)", PAGE, re.DOTALL | re.MULTILINE)
"""The programs that print something, each with what stands below it; that with Spark shows a table."""


def test_the_programs_print_what_stands_below_them(tmp_path: Path) -> None:
    """Each continues the one before it. The time is that of the processor: the machine may be busy."""
    assert len(PROGRAMS) == 2
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "".join(program for program, _ in PROGRAMS)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(re.sub(r"(?m)^    ", "", printed) for _, printed in PROGRAMS)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 3
