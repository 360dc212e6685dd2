"""Each example runs as a user runs it, and prints what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXPECTED = {
    "e01_simple_call": [
        "MD=EMS1/ME=NE-7 Bergen, room 12 9.2.0",
        "fault: entityNotFound - there is no MD=EMS1/ME=NE-8",
    ],
    "e02_batches": [
        "5 elements, batches of 2: [2, 2, 1]",
        "1000 elements, batches of 300: [300, 300, 300, 100] in all 1000",
    ],
    "e04_notifications": [
        "first OS on jms/InventoryTopic got ResourceObjectCreation",
        "first OS on jms/FaultTopic got Alarm",
        "second OS on jms/InventoryTopic got ResourceObjectCreation",
        "second OS on jms/FaultTopic got Alarm",
        "severity: MTOSI_perceivedSeverity = 'CRITICAL': ME=NE-1/PTP=1",
        "event type: MTOSI_EventType = 'AlarmInformation': ME=NE-1/PTP=1, ME=NE-1/PTP=2, ME=NE-11/PTP=1",
        "name prefix: MTOSI_objectName LIKE 'MD=EMS1/ME=NE-1/%': ME=NE-1/PTP=1, ME=NE-1/PTP=2",
        "layer rate: MTOSI_layerRate = 'LR_Ethernet': ME=NE-1/PTP=1, ME=NE-11/PTP=1",
        "boolean: MTOSI_isEdgePointRelated = TRUE: ME=NE-1/PTP=1",
        "number: MTOSI_osTime >= 1777896180000: ME=NE-1/PTP=2, ME=NE-11/PTP=1",
        "types: MTOSI_EventType IN ('ObjectCreation', 'ObjectDeletion'): ME=NE-9, ME=NE-8",
        "changes: 123 as the network is now: True",
    ],
}


def run(root: Path, name: str, folder: Path) -> str:
    """What an example prints, run from a folder that is not the project's, with warnings as errors."""
    command = [sys.executable, "-W", "error::ResourceWarning", str(root / "examples" / f"{name}.py")]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.obligation("P41", "F10", "P34", "P39")
@pytest.mark.parametrize("name", EXPECTED)
def test_the_example_prints_what_it_promises(name: str, root: Path, tmp_path: Path) -> None:
    assert run(root, name, tmp_path).splitlines() == EXPECTED[name]


def test_no_example_is_forgotten(root: Path) -> None:
    """That with Spark runs once, where the wheel is tested."""
    names = {path.stem for path in (root / "examples").glob("*.py")}
    assert names == {*EXPECTED, "e03_spark_landing"}


@pytest.mark.parametrize("name", [*EXPECTED, "e03_spark_landing"])
def test_the_example_says_how_to_run_it(name: str, root: Path) -> None:
    text = (root / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert f"Run it: python examples/{name}.py" in text
