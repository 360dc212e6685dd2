"""kill -9 of sender and receiver under load: nothing that was stored is lost, nothing is handed out twice."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.jms import Queue
from mtosi_jms.spool import Inbox

from .counting import ROUNDS, Child, Nursery, Tally, count, take_copies

pytestmark = pytest.mark.broker

# Artemis sets a message aside that it has handed out ten times; a receiver that is killed a hundred times needs more.
PATIENT = {"artemis": {"settings": "<max-delivery-attempts>-1</max-delivery-attempts>"}}


class Pair:
    """Sender and receiver of one queue, each with the journal of those before it."""

    def __init__(self, url: str, root: Path, folder: Path) -> None:
        self._nursery = Nursery({"BROKER_URL": url, "PYTHONPATH": str(root)}, folder)
        self._folder = folder
        self.tally = Tally()
        self._living: list[Child] = []

    def start(self, what: str, name: str = "last") -> Child:
        journal = self._folder / ("inbox" if what == "receive" else "outbox")
        child = self._nursery.start(what, "kill.client", str(journal), name)
        self._living.append(child)
        return child

    def count(self, child: Child, lines: list[Any]) -> None:
        self._living.remove(child)
        count(self.tally, lines)

    def end(self) -> None:
        for child in self._living:
            child.kill()
        self._nursery.close()


@pytest.mark.parametrize("kind", ["activemq", "artemis"])
@pytest.mark.parametrize(
    "rounds", [pytest.param(3, id="few"), pytest.param(ROUNDS, id="many", marks=pytest.mark.endurance)]
)
def test_kill_9_of_sender_and_receiver(
    kind: str, rounds: int, root: Path, tmp_path: Path, start_broker: Any, request: pytest.FixtureRequest
) -> None:
    folder, options = tmp_path / "broker", PATIENT.get(kind, {})
    broker = start_broker(kind, folder, protocols=["stomp"], **options)
    pair = Pair(broker.endpoints.url("stomp"), root, tmp_path)
    request.addfinalizer(pair.end)
    dice = random.Random(20_080_501)
    for number in range(rounds):
        sender, receiver = pair.start("send", f"r{number}"), pair.start("receive")
        sent = dice.randint(10, 80)
        ends = [(sender, "stored", sent), (receiver, "handed", dice.randint(1, sent - 1))]
        dice.shuffle(ends)
        for child, word, times in ends:
            child.until(word, times)
            pair.count(child, child.kill())
    last = pair.start("resend")
    pair.count(last, last.join())
    if kind == "artemis":
        # It keeps to itself what it was delivering to a receiver that died, until it is started again.
        broker.kill()
        broker = start_broker(kind, folder, endpoints=broker.endpoints, **options)
    receiver = pair.start("receive")
    seen = set(pair.tally.handed) | pair.tally.in_doubt
    receiver.wait_for(
        lambda lines: pair.tally.stored <= seen | {line.rest[0] for line in lines if line.word in ("handed", "doubt")}
    )
    pair.count(receiver, receiver.stop())
    with Inbox(tmp_path / "inbox") as inbox:
        take_copies(broker.endpoints.url("stomp"), Queue("kill.client"), inbox, pair.tally)
    pair.tally.write(root / "out" / f"kill-client-{kind}-{rounds}.json", kind=kind, rounds=rounds)
    assert pair.tally.lost == set()
    assert pair.tally.twice == set()
    assert len(pair.tally.stored) > rounds * 10
