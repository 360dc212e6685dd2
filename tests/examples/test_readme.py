"""The README: its programs run one after another as printed, its commands are taken, and it names every extra."""

from __future__ import annotations

import os
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mtosi_jms.cli import parser_for

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n\n((?:    [^\n]*\n)+)", PAGE, re.DOTALL | re.MULTILINE)
"""The programs that print something, each with what stands below it; that with Spark shows a table."""
COMMANDS = re.findall(r"^\$ mtosi-jms (.*)$", PAGE, re.MULTILINE)


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


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_are_taken(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MTOSI_JMS_URL", "stomp://127.0.0.1:61613")  # as the page exports it
    words = shlex.split(line.removesuffix("&"), comments=True)
    assert parser_for(words[0]).parse_args(words).command == words[0]
