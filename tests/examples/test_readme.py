"""The README: its programs run one after another as printed."""

from __future__ import annotations

import os
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.endurance
def test_five_minutes(tmp_path: Path) -> None:
    """The commands and the program with Spark in a fresh folder; the broker's part is the tutorial's too."""
    part = PAGE.partition("## Five minutes\n")[2].partition("With a real broker")[0]
    (program,) = re.findall(r"^```python\n(.*?)^```", part, re.DOTALL | re.MULTILINE)
    commands = [shlex.split(line, comments=True) for line in re.findall(r"^\$ mtosi-jms (.*)$", part, re.MULTILINE)]
    assert len(commands) == 5
    for words in (*(["-m", "mtosi_jms", *one] for one in commands), ["-c", program]):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8"
        )
        assert done.returncode == 0, done.stderr
    counts = [int(count) for count in re.findall(r"\|\s*(\d+)\|$", done.stdout, re.MULTILINE)]
    assert sum(counts) == 2000
