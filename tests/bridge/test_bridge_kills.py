"""kill -9 of bridge, broker and notification service, while events go to a durable subscriber.

What the channel had kept arrives, in order and, with an inbox, once. What died with the channel is told as a loss.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from .kills import Stage

pytestmark = pytest.mark.broker

ROUNDS = int(os.environ.get("MTOSI_KILL_ROUNDS", "50"))
"""Of the long form."""
EVENTS = 5_000
VICTIMS = ("bridge", "broker", "service")


@pytest.fixture
def stage(orb: Any, start_broker: Any, tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    made: list[Stage] = []

    def start(kind: str, *words: str) -> Stage:
        broker = partial(start_broker, kind, tmp_path / "broker", protocols=["stomp"])
        made.append(Stage(broker, orb, tmp_path, words))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.mark.slow
def test_one_of_each(stage: Callable[..., Stage]) -> None:
    there = stage("activemq", "--durable", "noc")
    for victim in VICTIMS:
        there.play(victim, 200, 40)
    assert there.ledger.losses == 1


@pytest.mark.endurance
@pytest.mark.parametrize("kind", ["artemis", "activemq"])
def test_kill_9_in_turn(stage: Callable[..., Stage], kind: str, root: Path) -> None:
    there = stage(kind, "--durable", "noc")
    dice = random.Random(20_041_009)
    try:
        for number in range(ROUNDS):
            there.play(VICTIMS[number % len(VICTIMS)], EVENTS, dice.randint(1, EVENTS // 2))
    finally:
        there.write(root / "out" / f"kill-bridge-{kind}-{ROUNDS}.json", kind=kind, events=EVENTS)
    assert there.ledger.losses == there.ledger.rounds["service"]
