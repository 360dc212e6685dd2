"""Brokers that are killed and stopped, and a way that swallows, breaks and slows, while messages go over `jvm:`.

Nothing that was stored is lost or handed out twice, each key keeps its order, calls end in time, and what was opened is
closed. `make endurance ARGS="tests/transport/jvm/test_jvm_chaos.py -q -s"` runs 100 rounds for each broker, or
MTOSI_CHAOS_ROUNDS, and leaves its figures in out/chaos-BROKER.json.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.broker import BrokerProcess

from ...processes import Program

pytest.importorskip("jpype", reason="JPype is not installed")
pytestmark = [
    pytest.mark.broker,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc"),
]
FAULTS = ("kill", "stop", "swallow", "cut", "slow")
# Artemis sets a message aside that it has handed out ten times, and finds out after a minute that a client is gone.
BROKER = {"artemis": {"settings": "<max-delivery-attempts>-1</max-delivery-attempts>"}}
# Both may hand out messages to a new consumer before they take those back that a lost one has. So does Artemis, rarely,
# with an exclusive queue: it lets the new one begin while it puts those of the lost one back.
EXCLUSIVE = {"activemq": "?consumer.exclusive=true", "artemis": "?exclusive=true"}
PATIENCE = 180.0
"""Seconds after which what should go on does not."""


class Scene:
    """The broker, the way to it, and the process whose messages go there.

    Args:
        kind: of broker.
        get: returns a fixture.
        folder: for broker and process.
        seed: of all that is random.
    """

    def __init__(self, kind: str, get: Callable[[str], Any], folder: Path, seed: int) -> None:
        self.faults: Counter[str] = Counter()
        self._start = lambda **more: get("start_broker")(kind, folder / "broker", **BROKER.get(kind, {}), **more)
        self._broker: BrokerProcess = self._start(protocols=["openwire"])
        self._proxy = get("make_proxy")(self._broker.endpoints.ports["openwire"], listen_in=False)
        self._dice = random.Random(seed)
        self._pause = threading.Event()
        login = self._broker.endpoints
        script = Path(__file__).with_name("chaos_process.py")
        url = get("java_url")(kind, login, port=self._proxy.port)
        variables = {
            "PYTHONPATH": str(get("root")),
            "MTOSI_JMS_USER": login.user,
            "MTOSI_JMS_PASSWORD": login.password,
        }
        command = [sys.executable, script, url, folder, EXCLUSIVE[kind]]
        self.process = Program(command, environment=variables, patience=2 * PATIENCE)

    def begin(self) -> None:
        """Returns when messages get through."""
        assert self.process.line() == "ready"

    def round(self, longest: float = 4.0, handled: int = 100) -> None:
        """One fault at a random moment, and messages that get through after it. `longest`: seconds that the fault lasts
        at most. `handled`: how many messages."""
        self._pause.wait(self._dice.uniform(0.1, 1.0))
        fault = FAULTS[self.faults.total() % len(FAULTS)]
        self.faults[fault] += 1
        seconds = self._dice.uniform(0.2, longest)
        match fault:
            case "kill":
                self._broker.kill()
                self._pause.wait(seconds / 2)
                self._broker = self._start(endpoints=self._broker.endpoints)
            case "stop":
                self._broker.pause()
                self._pause.wait(seconds)
                self._broker.resume()
            case "swallow":
                self._proxy.stall(to_broker=True, to_client=self._dice.random() < 0.7)
                self._pause.wait(seconds)
                self._proxy.flow()
            case "cut":
                self._proxy.cut()
            case "slow":
                self._proxy.slow(0.05)
                self._pause.wait(seconds)
                self._proxy.flow()
        self._after(handled=handled)

    def end(self) -> dict[str, Any]:
        """Has the process come to its end; its figures."""
        self.process.say("end")
        found: dict[str, Any] = json.loads(self.process.line())
        return {"faults": dict(self.faults), "load": os.getloadavg(), **found}

    def _after(self, *, handled: int) -> None:
        wanted, until = self._progress() + handled, time.monotonic() + PATIENCE
        while self._progress() < wanted:
            assert time.monotonic() < until, f"nothing gets through any more after {self.faults}"
            self._pause.wait(0.1)

    def _progress(self) -> int:
        self.process.say("progress")
        return int(json.loads(self.process.line())["handled"])


@pytest.fixture(params=["activemq", "artemis"])
def scene(request: pytest.FixtureRequest, make_proxy: Any, start_broker: Any, tmp_path: Path) -> Iterator[Scene]:
    seed = int(os.environ.get("MTOSI_CHAOS_SEED", "20080501"))
    made = Scene(request.param, request.getfixturevalue, tmp_path, seed)
    try:
        made.begin()
        yield made
    finally:
        made.process.kill()


def check(found: dict[str, Any], disorder: int = 0) -> None:
    assert found["complete"]
    assert (found["lost"], found["twice"]) == (0, 0)
    assert found["out of order"] == found["arrived out of order"] <= disorder
    assert found["settled"], (found["before"], found["after"])
    late = {what: seconds for what, seconds in found["overrun"].items() if seconds >= 1.0}
    assert not late


@pytest.mark.slow
@pytest.mark.obligation("CON7")
@pytest.mark.parametrize("scene", ["activemq"], indirect=True)
def test_a_few_rounds_of_chaos(scene: Scene) -> None:
    for _ in range(len(FAULTS)):
        scene.round(longest=1.0, handled=30)
    check(scene.end())


@pytest.mark.endurance
@pytest.mark.obligation("CON7")
def test_many_rounds_of_chaos(scene: Scene, root: Path, request: pytest.FixtureRequest, capsys: Any) -> None:
    begun = time.monotonic()
    for _ in range(int(os.environ.get("MTOSI_CHAOS_ROUNDS", "100"))):
        scene.round()
    found = {"seconds": round(time.monotonic() - begun), **scene.end()}
    where = root / "out" / f"chaos-{request.node.callspec.params['scene']}.json"
    where.parent.mkdir(exist_ok=True)
    where.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    with capsys.disabled():
        print(f"\n{where}: {json.dumps(found)}")
    check(found, disorder=2 if "artemis" in request.node.name else 0)
