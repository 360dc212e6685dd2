"""Hours of traffic over a connection that is cut again and again, in miniature: nothing lost, nothing growing.

A supplier, a requestor, and a publisher with two subscribers run as processes of their own. Every exchange is accounted
for, and memory, threads and descriptors are read from /proc. `make endurance ARGS="tests/transport/soak -q -s"` runs 20
minutes for each broker, or MTOSI_SOAK_SECONDS, and leaves its figures in out/soak-BROKER.json.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.broker import BrokerProcess

from ...processes import Program

pytestmark = [
    pytest.mark.broker,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc"),
]
ROLES = ("supplier", "requestor", "notifier")
MOST_MB = 150
MOST_KB_A_MINUTE = 64
MOST_THREADS = 24
WITH_JAVA = {"mb": 600, "kb_a_minute": 1_024, "threads": 90}
"""The same for a process with a Java machine, whose heap fills and is swept."""
BY_JAVA = {"jvm-activemq": "activemq", "jvm-artemis": "artemis"}
"""Over the transport `jvm:`, and the broker."""
SPREAD = 3
"""Threads and descriptors that may be there now and not then: a connection is just being made, another one ends."""


# A cut may leave a message with Artemis 2.44 until it starts again, see docs/delivery.md: its runs are read by hand.
@pytest.fixture(
    params=["activemq", *(pytest.param(one, marks=pytest.mark.endurance) for one in ("artemis", *BY_JAVA))],
)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def broker(kind: str, request: pytest.FixtureRequest) -> BrokerProcess:
    found: BrokerProcess = request.getfixturevalue(BY_JAVA.get(kind, kind))
    return found


@pytest.fixture
def proxy(kind: str, broker: BrokerProcess, make_proxy: Callable[..., Any]) -> Any:
    return make_proxy(broker.endpoints.ports["openwire" if kind in BY_JAVA else "stomp"], listen_in=False)


@pytest.fixture
def url(kind: str, broker: BrokerProcess, proxy: Any, request: pytest.FixtureRequest) -> str:
    """Of the way that is cut."""
    if kind in BY_JAVA:
        return str(request.getfixturevalue("java_url")(BY_JAVA[kind], broker.endpoints, port=proxy.port))
    return f"stomp://127.0.0.1:{proxy.port}"


class Child(Program):
    """One process, and what was seen of it."""

    def __init__(self, role: str, root: Path, broker: BrokerProcess, url: str, folder: Path) -> None:
        self.role = role
        self.samples: list[tuple[float, float, int, int]] = []
        variables = {
            "PYTHONPATH": f"{root}{os.pathsep}{root / 'codegen'}",
            "MTOSI_JMS_USER": broker.endpoints.user,
            "MTOSI_JMS_PASSWORD": broker.endpoints.password,
        }
        if url.startswith("jvm:"):
            # A small heap: Java touches a large one bit by bit, which looks like a leak for hours.
            variables["JAVA_TOOL_OPTIONS"] = "-Xmx32m -Xmn8m"
        script = Path(__file__).with_name("soaking_process.py")
        command = [sys.executable, "-W", "error", script, role, url, os.environ.get("MTOSI_SOAK_PACE", "0.05")]
        log = None if os.environ.get("MTOSI_SOAK_CENSUS") else folder / f"{role}.txt"
        super().__init__(command, environment=variables, log=log, patience=180)

    def sample(self, now: float) -> None:
        """Notes resident memory in KB, threads and descriptors."""
        assert self.process.poll() is None, f"the {self.role} has ended"
        folder = Path("/proc", str(self.process.pid))
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        memory = int(status["VmRSS"].split()[0])
        self.samples.append((now, memory, int(status["Threads"]), len(list((folder / "fd").iterdir()))))

    def finish(self) -> dict[str, Any]:
        """Has it come to its end; what it tells."""
        self.say("stop")
        found: dict[str, Any] = json.loads(self.line())
        assert self.process.wait(180) == 0
        return found

    def figures(self) -> dict[str, Any]:
        """Of the time after the first third, in which caches fill."""
        steady = self.samples[len(self.samples) // 3 :]
        times, memory, threads, descriptors = zip(*steady, strict=True)
        return {
            "rss_mb": round(max(memory) / 1024, 1),
            "kb_a_minute": round(slope(times, memory) * 60, 1),
            "threads": halves(threads),
            "descriptors": halves(descriptors),
        }


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """By least squares."""
    return statistics.linear_regression(times, values).slope if len(set(times)) > 1 else 0.0


def halves(values: Sequence[int]) -> tuple[float, float]:
    """The median of the first half and of the second."""
    middle = len(values) // 2
    return statistics.median(values[:middle]), statistics.median(values[middle:])


@pytest.fixture
def children(root: Path, broker: BrokerProcess, url: str, tmp_path: Path) -> Iterator[list[Child]]:
    made = [Child(role, root, broker, url, tmp_path) for role in ROLES]
    yield made
    for child in made:
        child.kill()


def soak(children: list[Child], proxy: Any, *, seconds: float, period: float) -> dict[str, Any]:
    """Lets it run, cuts all connections in each period, and has the children account for themselves."""
    for child in children:
        assert child.line() == "ready"
    begun = time.monotonic()
    pause = threading.Event()
    cuts = 0
    while (now := time.monotonic() - begun) < seconds:
        for child in children:
            child.sample(now)
        if now >= (cuts + 1) * period:
            proxy.cut()
            cuts += 1
        pause.wait(min(1.0, seconds / 20))
    ended = {child.role: child.finish() for child in reversed(children)}  # who asks ends before who answers
    return {
        "seconds": seconds,
        "cuts": cuts,
        **{child.role: {**ended[child.role], **child.figures()} for child in children},
    }


def check(found: dict[str, Any], kind: str) -> None:
    """Nothing is lost, wrong, untold or left, and nothing was too large."""
    asked, told = found["requestor"], found["notifier"]
    assert asked["done"] == asked["begun"] > 0
    assert not asked.get("lost")
    assert not asked.get("wrong")
    assert not asked["pending"]
    assert told["published"] > 0
    assert not told["lost"]
    assert not told["durable"].get("missed")
    assert not told["passing"].get("missed untold")
    assert told["passing"]["events"] > 0
    most_mb, most_threads = (WITH_JAVA["mb"], WITH_JAVA["threads"]) if kind in BY_JAVA else (MOST_MB, MOST_THREADS)
    for role in ROLES:
        assert found[role]["left"] == {}, role
        assert found[role]["rss_mb"] < most_mb, role
        for counted in ("threads", "descriptors"):
            before, after = found[role][counted]
            assert after - before <= SPREAD, (role, counted)
            assert after < most_threads, (role, counted)


@pytest.mark.slow
def test_a_short_soak(children: list[Child], proxy: Any, kind: str) -> None:
    found = soak(children, proxy, seconds=3, period=1)
    assert found["cuts"] >= 2
    check(found, kind)


@pytest.mark.endurance
def test_a_long_soak(children: list[Child], proxy: Any, root: Path, kind: str, capsys: Any) -> None:
    seconds = float(os.environ.get("MTOSI_SOAK_SECONDS", "1200"))
    found = soak(children, proxy, seconds=seconds, period=20)
    where = root / "out" / f"soak-{kind}.json"
    where.parent.mkdir(exist_ok=True)
    where.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    with capsys.disabled():
        print(f"\n{where}: {json.dumps(found)}")
    check(found, kind)
    if seconds >= 600:
        for role in ROLES:
            most = WITH_JAVA["kb_a_minute"] if kind in BY_JAVA else MOST_KB_A_MINUTE
            assert found[role]["kb_a_minute"] < most, role
