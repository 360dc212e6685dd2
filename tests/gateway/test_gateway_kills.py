"""kill -9 of the broker and of the gateway while HTTP clients call and try again.

Every call ends with the answer to what was asked, a fault, or a broken connection. A list is whole or an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx", reason="the extra http is not installed")

from .gateway_kills import Stage

pytestmark = pytest.mark.broker

ROUNDS = int(os.environ.get("MTOSI_KILL_ROUNDS", "50"))
"""Of the long form."""
VICTIMS = ("gateway", "broker")


@pytest.fixture
def stage(start_broker: Any, tmp_path: Path) -> Iterator[Callable[[str], Stage]]:
    made: list[Stage] = []

    def start(kind: str, clients: int) -> Stage:
        made.append(Stage(partial(start_broker, kind, tmp_path / "broker", protocols=["stomp"]), clients))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.mark.slow
def test_one_of_each(stage: Callable[..., Stage]) -> None:
    there = stage("activemq", 3)
    for victim in VICTIMS:
        there.play(victim, 6)
    assert there.counts["error"], "nobody was hit by a kill"
    assert not [line for line in there.told() if "Traceback" in line]


@pytest.mark.endurance
@pytest.mark.parametrize("kind", ["artemis", "activemq"])
def test_kill_9_in_turn(stage: Callable[..., Stage], kind: str, root: Path) -> None:
    there = stage(kind, 6)
    try:
        for number in range(ROUNDS):
            there.play(VICTIMS[number % len(VICTIMS)], 40 + number % 7)
            assert not [line for line in there.told() if "Traceback" in line]
    finally:
        there.write(root / "out" / f"kill-gateway-{kind}-{ROUNDS}.json", kind=kind)
    assert there.counts["error"] >= ROUNDS // 2
