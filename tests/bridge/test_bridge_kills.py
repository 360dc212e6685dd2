"""kill -9 of bridge, broker and notification service, while events go to a durable subscriber.

What the channel had kept arrives, in order and, with an inbox, once. What died with the channel is told as a loss.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.bridge.endpoints import Grouping
from mtosi_jms.bridge.events import Property, StructuredEvent, any_of
from mtosi_jms.bridge.qos import qos
from mtosi_jms.broker import BrokerProcess, start_channel_process
from mtosi_jms.errors import IllegalStateError, MtosiError, TransportError
from mtosi_jms.jms import Topic
from mtosi_jms.spool import Inbox, InboxReceiver, handed_out
from mtosi_jms.transport import Backoff, connect

from ..processes import Program, command
from .bridges import address

pytestmark = pytest.mark.broker

PATIENCE = 60.0
TOPIC = "bridged.alarms"
PERSISTENT = Property("EventReliability", qos(EventReliability=1)["EventReliability"])
IN_A_CALL = 20


def body(number: int) -> str:
    """What an event says."""
    return f"{number} " * (number % 23)


def event(number: int) -> StructuredEvent:
    """One that names itself."""
    data = (Property("number", any_of(number)), Property("notificationId", any_of(f"n{number}")))
    return StructuredEvent("telecom", "Alarm", "", (PERSISTENT,), data, any_of(body(number)))


@dataclass
class Ledger:
    """Events by number, over all rounds.

    Attributes:
        pushed: what the channel has taken, in order.
        in_doubt: whose push failed: the channel may have them.
        delivered: what the durable subscriber was handed out by its inbox, in order.
        lost: pushed, never delivered, and told as lost.
        copies: what the inbox has dropped.
        losses: how often the bridge told of a loss.
        rounds: how many were played, by what was killed.
    """

    pushed: list[int] = field(default_factory=list)
    in_doubt: list[int] = field(default_factory=list)
    delivered: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    copies: int = 0
    losses: int = 0
    rounds: dict[str, int] = field(default_factory=dict)

    def figures(self) -> dict[str, object]:
        """All of it in numbers."""
        return {
            "rounds": self.rounds,
            "pushed": len(self.pushed),
            "in_doubt": len(self.in_doubt),
            "delivered": len(self.delivered),
            "twice_without_inbox": self.copies,
            "losses_told": self.losses,
            "lost_and_told": len(self.lost),
        }


class Subscriber:
    """A durable subscriber with an inbox, which goes on over lost connections. `url`: of the broker. `folder`: of the
    inbox. `ledger`: gets what it is handed out."""

    def __init__(self, url: str, folder: Path, ledger: Ledger) -> None:
        self.changed = threading.Condition()
        self._url = url
        self._inbox = Inbox(folder)
        self._ledger = ledger
        self._over = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    def _run(self) -> None:
        failures, backoff = 0, Backoff(0.1, 1.0, 0.1)
        while not self._over.is_set():
            try:
                with connect(self._url, client_id="noc", connect_timeout=5, reconnect=False) as connection:
                    session = connection.session()
                    source = InboxReceiver(session, session.consumer(Topic(TOPIC), durable="noc"), self._inbox)
                    connection.start()
                    self._ready.set()
                    while not self._over.is_set():
                        self._take(source)
                        failures = 0
            except (TransportError, IllegalStateError):
                failures += 1
                self._over.wait(backoff.seconds(failures))

    def _take(self, source: InboxReceiver) -> None:
        delivery = source.receive(0.2)
        if delivery is None:
            return
        with handed_out(delivery):
            number = int(str(delivery.message.properties["$fd_number"]))
            is_whole = delivery.message.body == body(number).encode()
        with self.changed:
            self._ledger.delivered.append(number if is_whole else -1)
            self._ledger.copies = self._inbox.duplicates
            self.changed.notify_all()

    def close(self) -> None:
        """Ends it."""
        self._over.set()
        self._thread.join(PATIENCE)
        self._ledger.copies = self._inbox.duplicates
        self._inbox.close()


class Stage:
    """A notification service, a bridge, a broker with a durable subscriber: and who pushes events.

    Args:
        start_broker: starts the broker; again, where it is told its endpoints.
        orb: of who pushes.
        folder: for everything.
        words: of the bridge's command line, besides where from and to.
    """

    def __init__(
        self, start_broker: Callable[..., BrokerProcess], orb: Any, folder: Path, words: Sequence[str] = ()
    ) -> None:
        self.ledger = Ledger()
        self._start_broker = start_broker
        self._folder = folder
        self._orb = orb
        self._broker = start_broker()
        self._service = start_channel_process(folder / "service")
        self._address = address(self._service)
        url = self._broker.endpoints.url("stomp")
        self._subscriber = Subscriber(url, folder / "inbox", self.ledger)
        self._words = ("--from", self._address, "--to", f"topic:{TOPIC}", "--url", url, "--json", *words)
        self._numbers = itertools.count()
        self._dead = threading.Event()
        self._bridge = self._bridged()

    def _bridged(self) -> Program:
        environment = {"XDG_STATE_HOME": str(self._folder / "state")}
        made = command("bridge", *self._words, environment=environment)
        made.await_line("ready:")
        return made

    def play(self, victim: str, count: int, at: int) -> None:
        """A round: pushes so many events, kills something when the subscriber has got some, and looks what arrives.

        The second half is pushed when the victim is dead; the notification service has just come back then.
        """
        ledger, bridge = self.ledger, self._bridge
        before, got, told = len(ledger.pushed), len(ledger.delivered), bridge.count("EventLossOccurred")
        after: list[int] = []
        self._dead.clear()
        pusher = threading.Thread(target=self._push_halves, args=(count,))
        pusher.start()
        try:
            self._until(lambda: len(ledger.delivered) >= got + at, "nothing is delivered")
            after = getattr(self, f"_kill_{victim}")()
        finally:
            self._dead.set()
            pusher.join()
        if victim == "service":  # what the channel kept died with it; who connects now gets what comes from now on
            self._push(IN_A_CALL)
        last = ledger.pushed[-1]
        self._until(lambda: last in ledger.delivered[-1:], f"{victim}: {last} does not come")
        ledger.rounds[victim] = ledger.rounds.get(victim, 0) + 1
        losses = self._bridge.count("EventLossOccurred") - (told if self._bridge is bridge else 0)
        ledger.losses += losses
        self._check(victim, ledger.pushed[before:], ledger.delivered[got:], losses, after)

    def _check(self, victim: str, pushed: list[int], delivered: list[int], losses: int, after: list[int]) -> None:
        assert delivered == sorted(set(delivered)), f"{victim}: not in order, or twice"
        arrived = set(delivered)
        missing = [number for number in pushed if number not in arrived]
        assert losses == (victim == "service"), f"{victim}: {losses} losses were told"
        if not missing:
            return
        assert victim == "service", f"{victim}: {missing[:3]} to {missing[-1]}, {len(missing)} in all, are missing"
        inside = [number for number in delivered if missing[0] < number < missing[-1]]
        assert not inside, f"{victim}: two gaps, and one loss was told"
        assert after, "the loss was not told to be over"
        assert missing[-1] <= after[0], f"{victim}: {missing[-1]} was pushed when the loss was told to be over"
        self.ledger.lost += missing

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        with self._subscriber.changed:
            done = self._subscriber.changed.wait_for(condition, PATIENCE)
        assert done, f"{what}; {self.ledger.figures()}; {self._bridge.told[-5:]}"

    def _push_halves(self, count: int) -> None:
        self._push(count // 2)
        self._dead.wait(PATIENCE)
        self._push(count - count // 2)

    def _push(self, count: int) -> None:
        """Pushes events, some in a call; over lost connections. Where the channel has not taken them they are lost."""
        sink, done, deadline = None, 0, time.monotonic() + PATIENCE
        channel = None
        while done < count and time.monotonic() < deadline:
            numbers = []
            try:
                if sink is None or channel is None:
                    channel = self._orb.channel(self._address)
                    sink = channel.event_sink(grouping=Grouping.SEQUENCE_EVENT)
                    sink.connect()
                numbers = list(itertools.islice(self._numbers, min(IN_A_CALL, count - done)))
                sink.push([event(number) for number in numbers])
            except MtosiError:
                self.ledger.in_doubt += numbers
                done += len(numbers)
                if channel is not None:
                    channel.close()
                sink = channel = None
                threading.Event().wait(0.1)
            else:
                self.ledger.pushed += numbers
                done += len(numbers)
        if channel is not None:
            channel.close()

    def _kill_bridge(self) -> list[int]:
        self._bridge.kill()
        self._dead.set()
        self._bridge = self._bridged()
        return []

    def _kill_broker(self) -> list[int]:
        self._broker.kill()
        self._dead.set()
        self._broker = self._start_broker(endpoints=self._broker.endpoints)
        return []

    def _kill_service(self) -> list[int]:
        """The last event of which nobody knows whether it was pushed before the bridge was connected again."""
        cleared = self._bridge.count("EventLossCleared")
        port = self._service.endpoints.ports["giop"]
        self._service.kill()
        self._service = start_channel_process(self._folder / "service", port)
        self._dead.set()
        self._bridge.await_line("EventLossCleared", cleared + 1)
        return [self.ledger.pushed[-1] + IN_A_CALL]

    def write(self, path: Path, **facts: object) -> None:
        """Writes and prints the figures."""
        figures = {**facts, **self.ledger.figures()}
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(figures))

    def close(self) -> None:
        """Ends all of them."""
        self._bridge.kill()
        self._subscriber.close()
        self._service.kill()
        self._broker.kill()


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
