"""Responses of any size in constant memory: a gigabyte in `make endurance`, some megabytes here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MEGABYTE = 1_000_000
MOST_MB = 100
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")


def _stream(root: Path, way: str, form: str, size: int) -> dict[str, Any]:
    script = Path(__file__).with_name("large_process.py")
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), way, form, str(size)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["bytes"] >= size
    assert (found["objects"], found["checksum"]) == (found["written"], found["expected"])
    assert found["objects"] > size // 1000
    return found


@needs_proc
@pytest.mark.parametrize(
    ("way", "form"),
    [
        ("iter_decode", "odd"),
        ("iter_placed", "gzip"),
        *(pytest.param(way, "plain", marks=pytest.mark.endurance) for way in ("iter_decode", "iter_placed")),
    ],
)
def test_memory_does_not_grow_with_the_document(root: Path, way: str, form: str) -> None:
    found = _stream(root, way, form, 6 * MEGABYTE)
    assert found["peak_mb"] < MOST_MB / 2
    assert found["peak_mb"] - _stream(root, way, form, 2 * MEGABYTE)["peak_mb"] < 15


@pytest.mark.endurance
@needs_proc
@pytest.mark.parametrize(
    ("way", "form", "size"),
    [("iter_decode", "plain", 1000), ("iter_placed", "plain", 1000), ("iter_placed", "gzip", 200)],
)
def test_a_gigabyte(root: Path, way: str, form: str, size: int, capsys: pytest.CaptureFixture[str]) -> None:
    found = _stream(root, way, form, size * MEGABYTE)
    with capsys.disabled():
        rate = found["objects"] / found["seconds"]
        print(f"\n{way}, {form}, {size} MB: {found['objects']:,} objects, {rate:,.0f}/s, {found['peak_mb']:.0f} MB")
    assert found["peak_mb"] < MOST_MB
