"""kill -9 of brokers and clients under load, with competing receivers and a Ctrl-C now and then.

Nothing that was stored is lost, nothing is handed out twice, nothing comes with another content.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.broker import BrokerProcess, Endpoints

from .counting import Traffic

pytestmark = pytest.mark.broker

ROUNDS = int(os.environ.get("MTOSI_KILL_ROUNDS", "100"))
"""Of the long form."""
BY_JAVA = {"jvm-activemq": "activemq", "jvm-artemis": "artemis"}
"""Over the transport `jvm:`, and the broker."""
# Artemis sets a message aside that it has handed out ten times; receivers that are killed a hundred times need more.
OPTIONS = {"artemis": {"settings": "<max-delivery-attempts>-1</max-delivery-attempts>"}}


class Broker:
    """One that is killed and comes back with what it has stored."""

    def __init__(self, start_broker: Any, kind: str, folder: Path) -> None:
        self._start = lambda **more: start_broker(kind, folder, **OPTIONS.get(kind, {}), **more)
        self._process: BrokerProcess = self._start(protocols=["stomp", "openwire"])

    @property
    def endpoints(self) -> Endpoints:
        return self._process.endpoints

    def restart(self) -> None:
        self._process.kill()
        self._process = self._start(endpoints=self._process.endpoints)


LONG = [pytest.param(kind, marks=pytest.mark.endurance) for kind in ("artemis", *BY_JAVA)]


@pytest.fixture(params=["activemq", *LONG])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def broker(start_broker: Any, kind: str, tmp_path: Path) -> Broker:
    return Broker(start_broker, BY_JAVA.get(kind, kind), tmp_path / "broker")


@pytest.fixture
def traffic(broker: Broker, kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Traffic]:
    url, variables = broker.endpoints.url("stomp"), {}
    if kind in BY_JAVA:
        url = request.getfixturevalue("java_url")(BY_JAVA[kind], broker.endpoints)
        variables = {"MTOSI_JMS_USER": broker.endpoints.user, "MTOSI_JMS_PASSWORD": broker.endpoints.password}
    made = Traffic(url, tmp_path, 20_080_501, variables)
    yield made
    made.close()


def kill_broker(traffic: Traffic, broker: Broker) -> None:
    traffic.after(stored=traffic.dice.randint(1, 80), handed=1)
    broker.restart()


def kill_clients(traffic: Traffic, broker: Broker) -> None:
    """The sender, and one receiver or both, one after the other; what a dead one had goes to the one that is left."""
    sent = traffic.dice.randint(10, 80)
    receivers = traffic.dice.sample(traffic.RECEIVERS, traffic.dice.choice([1, 1, 2]))
    victims = ["send", *receivers]
    traffic.dice.shuffle(victims)
    for place, victim in enumerate(victims):
        if victim == "send":
            traffic.after(stored=sent)
        elif "send" in victims[place:]:  # else there may be nothing left to be handed out
            traffic.after(handed=traffic.dice.randint(1, sent))
        traffic.kill(victim)
    traffic.start(*victims)


def play(traffic: Traffic, broker: Broker, rounds: int, kill: Callable[[Traffic, Broker], None]) -> None:
    for _ in range(rounds):
        pressed = traffic.interrupt()
        kill(traffic, broker)
        pressed.join()


def finish(traffic: Traffic, path: Path, between: Callable[[], None] = lambda: None, **facts: object) -> None:
    """All that was stored arrives, and the copies before the last message; then it is counted."""
    traffic.after(stored=10, handed=1)
    for part in "send", *traffic.RECEIVERS:
        traffic.stop(part)
    between()
    traffic.start("resend")
    traffic.join("resend")
    traffic.start("take")
    tally = traffic.tally
    traffic.until(lambda: not tally.lost)
    traffic.stop("take")
    tally.write(path, **facts)
    assert (tally.lost, tally.twice, tally.wrong) == (set(), set(), set())
    assert tally.interrupted > 0


def test_a_few_of_both(kind: str, broker: Broker, traffic: Traffic, root: Path) -> None:
    traffic.start("send", *traffic.RECEIVERS)
    play(traffic, broker, 1, kill_clients)
    play(traffic, broker, 1, kill_broker)
    finish(traffic, root / "out" / f"kill-both-{kind}-1.json", killed="both", kind=kind, rounds=1)


@pytest.mark.endurance
def test_kill_9_of_the_broker(kind: str, broker: Broker, traffic: Traffic, root: Path) -> None:
    traffic.start("send", *traffic.RECEIVERS)
    play(traffic, broker, ROUNDS, kill_broker)
    path = root / "out" / f"kill-broker-{kind}-{ROUNDS}.json"
    finish(traffic, path, killed="broker", kind=kind, rounds=ROUNDS)


@pytest.mark.endurance
def test_kill_9_of_sender_and_receivers(kind: str, broker: Broker, traffic: Traffic, root: Path) -> None:
    traffic.start("send", *traffic.RECEIVERS)
    play(traffic, broker, ROUNDS, kill_clients)
    # Artemis keeps to itself what it was delivering to a receiver that died, until it is started again.
    between = broker.restart if kind == "artemis" else lambda: None
    path = root / "out" / f"kill-clients-{kind}-{ROUNDS}.json"
    finish(traffic, path, between, killed="clients", kind=kind, rounds=ROUNDS)
