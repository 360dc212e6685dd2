"""Which worker of the suite runs a test, and when; and the rooms of the house, whose tests run alone.

A worker gets whole files, the longest first: else at the end one long file would keep a core busy and the others idle.
Tests that share the Spark session are one worker's, and so are those that use Java in the process.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parent
DURATIONS = TESTS / "durations.json"
"""Seconds of files and groups, as a run with `--record-durations` measured them; shorter ones are not listed."""
LISTED = 2.0
"""Seconds from which a file is listed."""

ROOMS = {
    "bridge": ("bridge/",),
    "codegen": ("codegen/", "integrations/"),
    "commands": ("cli/", "docs/", "examples/", "report/"),
    "console": ("console/",),
    "gateway": ("gateway/",),
    "house": ("benchmarks/", "conformance/", "house/"),
    "jvm": ("interop/", "transport/jvm/"),
    "mq": ("mq/", "mqtt/"),
    "simulator": ("bulk/", "simulator/", "testing/"),
    "spark": ("spark/", "exchange/test_landed_answers.py"),
}
"""The satellites' folders; all others are the room `core`."""

_TAKES_SPARK = re.compile(r"\b(?:spark|in_session|lake): ")
_seconds: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the suite's own."""
    parser.addoption("--room", choices=["core", *ROOMS], help="run the tests of one room of the house alone")
    parser.addoption("--record-durations", action="store_true", help=f"write tests/{DURATIONS.name} from this run")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores: while one test waits for a broker, others run."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give whole groups and files to workers."""
    from xdist.scheduler import LoadGroupScheduling

    class Scheduling(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _unit(nodeid)

    return Scheduling(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_collection(session: pytest.Session) -> None:
    """Let each worker begin with other folders: of a file that one has compiled the others read the result."""
    work = getattr(session.config, "workerinput", None)
    if work is not None and session.config.args == session.config.getini("testpaths"):
        folders = sorted(str(folder) for folder in TESTS.iterdir() if any(folder.glob("**/test_*.py")))
        first = len(folders) * int(work["workerid"].removeprefix("gw")) // work["workercount"]
        session.config.args = folders[first:] + folders[:first]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of other rooms."""
    room = config.getoption("room")
    if not room or collection_path.suffix != ".py" or TESTS not in collection_path.parents:
        return None
    file = collection_path.relative_to(TESTS).as_posix()
    return not (_room(file) == room or (room == "jvm" and file.startswith("transport/"))) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the units of work; what a room leaves out is deselected."""
    room = config.getoption("room")
    if room:
        config.hook.pytest_deselected(items=[item for item in items if _room(item.nodeid) != room])
        items[:] = [item for item in items if _room(item.nodeid) == room]
    seconds = json.loads(DURATIONS.read_text(encoding="utf-8"))
    items.sort(key=lambda item: (-seconds.get(_unit(item.nodeid), 0), _file(item.nodeid)))
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and _unit(item.nodeid) != "spark":
            raise pytest.UsageError(f"{item.nodeid} takes the Spark session, and is not in its group: see {__file__}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up what a unit takes."""
    _seconds[_unit(report.nodeid)] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was recorded."""
    if session.config.getoption("record_durations") and not hasattr(session.config, "workerinput"):
        found = {unit: round(took) for unit, took in sorted(_seconds.items()) if took >= LISTED}
        DURATIONS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0].removeprefix("tests/")


def _unit(nodeid: str) -> str:
    """The group of a test, else its file. The process that gives units to workers knows tests by their ids alone."""
    file = _file(nodeid)
    if "[jvm-" in nodeid or file.startswith("transport/jvm/"):
        return "jvm"
    return "spark" if _takes_spark(file) else file


@cache
def _takes_spark(file: str) -> bool:
    return bool(_TAKES_SPARK.search((TESTS / file).read_text(encoding="utf-8")))


def _room(nodeid: str) -> str:
    found = next((name for name, folders in ROOMS.items() if _file(nodeid).startswith(folders)), "core")
    return "jvm" if found == "core" and "[jvm-" in nodeid else found
