"""The benchmarks over brokers run, and say what they promise. No figure is judged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LINES = {
    "request-100": ["threads", "asyncio", "jvm:, threads", "jvm:, asyncio", "the transport alone", "bare stomp.py"],
    "batches": ["handed over", "every leaf read", "jvm:, handed over", "the transport alone", "bare stomp.py"],
    "stream": ["sessions", "jvm:", "bare stomp.py"],
}
"""Those of `jvm:` where JPype is installed; where there is a JDK, a program in Java stands beside them."""


def run(root: Path, out: Path, names: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "benchmarks" / "run.py"), "--quick", "--only", names, "--out", str(out)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}, timeout=300
    )


@pytest.mark.broker
@pytest.mark.parametrize(
    ("broker", "names"),
    [
        pytest.param("activemq", LINES, marks=pytest.mark.endurance),
        pytest.param("artemis", LINES, marks=pytest.mark.endurance),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_ours_stands_beside_bare_stomp_py(root: Path, tmp_path: Path, broker: str, names: list[str]) -> None:
    out = tmp_path / "bench.json"
    done = run(root, out, ",".join(f"{broker}-{name}" for name in names))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    if found["skipped"]:
        pytest.skip(done.stderr)
    for benchmark, name in zip(found["benchmarks"], names, strict=True):
        lines = [*LINES[name], *(["plain Java"] if shutil.which("javac") else [])]
        assert benchmark["name"] == f"{broker}-{name}"
        assert [line["name"] for line in benchmark["lines"]] == lines
        assert all(line["per_second"] > 0 for line in benchmark["lines"])
        assert len(benchmark["notes"]) == len(lines)
        told = [note for note in benchmark["notes"] if not note.startswith("bare stomp.py")]
        assert all("of bare stomp.py" in note and "who answers" in note for note in told)
        assert all(note in done.stdout for note in benchmark["notes"])


def test_a_benchmark_without_its_broker_is_skipped(root: Path, tmp_path: Path) -> None:
    """Without Java, or on a machine that can fetch no broker, the run says why there is none, and is not a failure."""
    out = tmp_path / "bench.json"
    done = run(root, out, "activemq-stream", PATH="", JAVA_HOME="")
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["benchmarks"] == []
    assert list(found["skipped"]) == ["activemq-stream"]
    why = found["skipped"]["activemq-stream"]
    assert why
    assert f"skipped: activemq-stream: {why}" in done.stderr
