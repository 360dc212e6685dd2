"""The order in which the files of the suite begin, and the rooms of the house, whose tests run alone.

The longest files begin: else at the end one of them would keep a core busy and the others idle. Files that share what
takes long to start, a session of Spark or the brokers, are one worker's as long as the others have work without.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parent
DURATIONS = TESTS / "durations.json"
"""Seconds of files, as a run with `--record-durations` measured them; shorter ones are not listed."""
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

HOMES = (r"\b(spark|lake|in_session): (Any|None)\b", r"^transport/contract/|\bmark\.broker\b")
"""What the first worker starts for all, Spark, and what the second starts, brokers: their files, by name or content."""
WORTH = 90
"""Seconds of such files that must be left for another worker to start the same."""

_seconds: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the suite's own."""
    parser.addoption("--room", choices=["core", *ROOMS], help="run the tests of one room of the house alone")
    parser.addoption("--record-durations", action="store_true", help=f"write tests/{DURATIONS.name} from this run")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two workers more than cores: while tests wait for a broker or a JVM, others run."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Files are units, handed out by what they share."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Homes(LoadFileScheduling):
        """Gives each worker files of its home, then those without one, then those of other homes."""

        def _assign_work_unit(self, node: Any) -> None:
            worker, *workers = (int(one.gateway.id.removeprefix("gw")) for one in (node, *self.assigned_work))
            file = choose(self.workqueue, worker, workers, _durations())
            if file is None:
                node.shutdown()
            else:
                self.workqueue.move_to_end(file, last=False)
                super()._assign_work_unit(node)

    return Homes(config, log)


def choose(files: Iterable[str], worker: int, workers: Collection[int], seconds: dict[str, float]) -> str | None:
    """Return the file that a worker runs next; None if it leaves the rest to others.

    Args:
        files: those that are left, the longest first.
        worker: its number.
        workers: the numbers of all that run; the home of another has none.
        seconds: what files take.
    """
    homes: dict[int | None, list[str]] = {}
    for file in files:
        home = _home(file)
        homes.setdefault(home if home in workers else None, []).append(file)
    for home in (worker, None):
        if homes.get(home):
            return homes[home][0]
    left = {home: sum(seconds.get(_file(file), 0.5) for file in those) for home, those in homes.items()}
    most = max(left, key=lambda home: left[home])
    return homes[most][0] if left[most] > WORTH else None


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
    """Order the files; what a room leaves out is deselected."""
    room = config.getoption("room")
    if room:
        config.hook.pytest_deselected(items=[item for item in items if _room(item.nodeid) != room])
        items[:] = [item for item in items if _room(item.nodeid) == room]
    seconds = _durations()
    items.sort(key=lambda item: (-seconds.get(_file(item.nodeid), 0), _file(item.nodeid)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up what a file takes."""
    _seconds[_file(report.nodeid)] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was recorded."""
    if session.config.getoption("record_durations") and not hasattr(session.config, "workerinput"):
        found = {file: round(took) for file, took in sorted(_seconds.items()) if took >= LISTED}
        DURATIONS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _durations() -> dict[str, float]:
    found: dict[str, float] = json.loads(DURATIONS.read_text(encoding="utf-8"))
    return found


@cache
def _home(file: str) -> int | None:
    text = f"{_file(file)}\n{(TESTS / _file(file)).read_text(encoding='utf-8')}"
    return next((number for number, uses in enumerate(HOMES) if re.search(uses, text)), None)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0].removeprefix("tests/")


def _room(nodeid: str) -> str:
    found = next((name for name, folders in ROOMS.items() if _file(nodeid).startswith(folders)), "core")
    return "jvm" if found == "core" and "[jvm-" in nodeid else found
