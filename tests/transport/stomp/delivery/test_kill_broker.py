"""kill -9 of the broker under load: nothing that was stored is lost, nothing is handed out twice."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.errors import TransportError, UnknownOutcomeError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.runtime import Backoff, ConsumerRuntime, RuntimeRules
from mtosi_jms.spool import Inbox, Outbox
from mtosi_jms.transport import Connection, connect

from .counting import PATIENCE, ROUNDS, Tally, name_of, take_copies

pytestmark = pytest.mark.broker

QUEUE = Queue("kill.broker")
SETTINGS = {"artemis": {"settings": "<max-delivery-attempts>-1</max-delivery-attempts>"}}
PADDING = b"x" * 1_000


class Traffic:
    """A sender with an outbox and a receiver with an inbox, at work until they are told to end."""

    def __init__(self, url: str, folder: Path) -> None:
        self.tally = Tally()
        self._url = url
        self._outbox, self._inbox = Outbox(folder / "outbox"), Inbox(folder / "inbox")
        self._changed = threading.Condition()
        self._ending, self._abandoned, self._up = threading.Event(), threading.Event(), threading.Event()
        self._up.set()
        self._confirmed = 0
        self._failure: list[BaseException] = []
        self._sender = threading.Thread(target=self._send_kept, daemon=True)
        self._runtime = ConsumerRuntime(
            self._connect,
            QUEUE,
            self._handle,
            inbox=self._inbox,
            parking=Queue("parked"),
            rules=RuntimeRules(reconnect=Backoff(0.1, 1.0, 0.1)),
        )
        self._runtime.start()
        self._sender.start()

    @property
    def _goes_on(self) -> bool:
        return not self._abandoned.is_set() and (not self._ending.is_set() or len(self._outbox) > 0)

    def _connect(self) -> Connection:
        """Lost once it is gone for good: one that comes back by itself waits longer each time that a broker dies."""
        return connect(self._url, connect_timeout=5, reconnect=False)

    @contextmanager
    def broken(self) -> Iterator[None]:
        """While the broker is down, nobody tries to send."""
        self._up.clear()
        yield
        self._up.set()

    def after(self, messages: int) -> None:
        """Returns when so many more were confirmed."""
        with self._changed:
            until = self._confirmed + messages
        self._wait(lambda: self._confirmed >= until)

    def finish(self) -> None:
        """Sends no more, and returns when all that was stored has arrived."""
        self._ending.set()
        self._sender.join(PATIENCE)
        assert not self._sender.is_alive()
        self._wait(lambda: not self.tally.lost)
        self._runtime.drain()
        self.tally.resent, self.tally.in_doubt = self._outbox.resent, {name_of(one[1]) for one in self._inbox.in_doubt}
        take_copies(self._url, QUEUE, self._inbox, self.tally)

    def end(self) -> None:
        self._ending.set()
        self._abandoned.set()
        self._up.set()
        self._runtime.drain(1.0)
        self._sender.join(PATIENCE)
        self._outbox.close()
        self._inbox.close()

    def _wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            there = self._changed.wait_for(lambda: condition() or self._failure, PATIENCE)
        if self._failure:
            raise self._failure[0]
        assert there, (self._confirmed, len(self._outbox), len(self.tally.lost), self._runtime.health)

    def _handle(self, message: JmsMessage, context: Any) -> None:
        with self._changed:
            self.tally.handed[name_of(message)] += 1
            self._changed.notify_all()

    def _send_kept(self) -> None:
        try:
            while self._goes_on:
                assert self._up.wait(PATIENCE)
                with suppress(TransportError), self._connect() as connection:
                    self._send(connection.session())
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self._failure.append(error)

    def _send(self, session: Any) -> None:
        while self._goes_on:
            try:
                if self._ending.is_set():
                    self._outbox.resend(session)
                    continue
                stored = self._outbox.put(JmsMessage(body=b"m%d %s" % (len(self.tally.stored), PADDING)), QUEUE)
                with self._changed:
                    self.tally.stored.add(name_of(stored))
                sent = self._outbox.resend(session)
            except UnknownOutcomeError as error:
                self.tally.unknown += len(error.messages)
                raise
            with self._changed:
                self._confirmed += sent
                self._changed.notify_all()


@pytest.fixture
def traffic(tmp_path: Path) -> Iterator[Callable[[str], Traffic]]:
    made: list[Traffic] = []

    def start(url: str) -> Traffic:
        made.append(Traffic(url, tmp_path))
        return made[-1]

    yield start
    for one in made:
        one.end()


@pytest.mark.parametrize("kind", ["activemq", "artemis"])
@pytest.mark.parametrize(
    "rounds", [pytest.param(3, id="few"), pytest.param(ROUNDS, id="many", marks=pytest.mark.endurance)]
)
def test_kill_9_of_the_broker(
    kind: str, rounds: int, root: Path, tmp_path: Path, start_broker: Any, traffic: Callable[[str], Traffic]
) -> None:
    options = SETTINGS.get(kind, {})
    broker = start_broker(kind, tmp_path / "broker", protocols=["stomp"], **options)
    under_way = traffic(broker.endpoints.url("stomp"))
    dice = random.Random(20_080_501)
    for _ in range(rounds):
        under_way.after(dice.randint(1, 80))
        broker.kill()
        with under_way.broken():
            broker = start_broker(kind, tmp_path / "broker", endpoints=broker.endpoints, **options)
    under_way.after(10)
    under_way.finish()
    tally = under_way.tally
    tally.write(root / "out" / f"kill-broker-{kind}-{rounds}.json", kind=kind, rounds=rounds)
    assert tally.lost == set()
    assert tally.twice == set()
    assert tally.in_doubt == set()
    assert len(tally.stored) > rounds
