"""`mtosi-jms queue` on real brokers: one that browses and receives in transactions, and one that does neither."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mtosi_jms as mtosi
from mtosi_jms.broker import BrokerProcess
from mtosi_jms.cli import main
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue
from mtosi_jms.jms.message import MessageType
from mtosi_jms.spool import entries
from mtosi_jms.transport import Capability, Connection

pytestmark = pytest.mark.broker
PATIENCE = 120.0
QUIET = "1.5"
_numbers = itertools.count(1)

Capture = pytest.CaptureFixture[str]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(params=["activemq", pytest.param("artemis", marks=pytest.mark.endurance)])
def broker(request: pytest.FixtureRequest) -> BrokerProcess:
    started: BrokerProcess = request.getfixturevalue(request.param)
    return started


@pytest.fixture
def connection(broker: BrokerProcess) -> Iterator[Connection]:
    with mtosi.connect(broker.endpoints.url("stomp")) as connection:
        connection.start()
        yield connection


@pytest.fixture
def here() -> Queue:
    return Queue(f"queue.{os.getpid()}.{next(_numbers)}")


@pytest.fixture
def there(here: Queue) -> Queue:
    return Queue(f"{here.name}.there")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "mtosi-jms" / "queue"


@pytest.fixture
def run(broker: BrokerProcess, capsys: Capture) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        code = main(["queue", *words, "--wait", QUIET, "--url", broker.endpoints.url("stomp")])
        out, err = capsys.readouterr()
        assert broker.endpoints.password not in out + err
        return code, out, err

    return call


def fill(connection: Connection, place: Queue, messages: list[JmsMessage]) -> None:
    with connection.session(transacted=True) as session:
        for message in messages:
            session.send(place, message)
        session.commit()


def numbered(count: int) -> list[JmsMessage]:
    made = DeliveryMode.PERSISTENT
    properties = [{"MTOSI_batchSequenceNumber": number} for number in range(count)]
    return [JmsMessage(body=b"<n>%d</n>" % n, properties=one, delivery_mode=made) for n, one in enumerate(properties)]


def taken(connection: Connection, place: Queue, count: int) -> list[JmsMessage]:
    """So many messages of a queue, each waited for."""
    found = []
    with connection.session() as session, session.consumer(place) as consumer:
        for _ in range(count):
            delivery = consumer.receive(PATIENCE)
            assert delivery is not None, f"{len(found)} of {count} came"
            delivery.acknowledge()
            found.append(delivery.message)
    return found


def test_a_message_arrives_as_it_was(
    run: Run, connection: Connection, here: Queue, there: Queue, state: Path, broker: BrokerProcess
) -> None:
    message = JmsMessage(
        body="<first>é</first>".encode(),
        properties={"MTOSI_msgName": "m", "MTOSI_batchSequenceNumber": 7, "MTOSIX_messageId": "uuid-1", "free": "text"},
        delivery_mode=DeliveryMode.PERSISTENT,
        priority=7,
        time_to_live_ms=3_600_000,
        correlation_id="ID:of-a-request",
        jms_type="T",
    )
    with mtosi.connect(broker.endpoints.url("stomp")) as requestor, requestor.session() as session:
        message = JmsMessage(**{name: getattr(message, name) for name in KEPT}, reply_to=session.temporary_queue())
        fill(connection, here, [message, JmsMessage(body=b"\xff", message_type=MessageType.BYTES)])
        code, _, err = run("move", str(here), "--to", str(there), "--json")
        assert code == 0, err
        first, second = taken(connection, there, 2)
        for name in KEPT:
            if name != "time_to_live_ms":
                assert getattr(first, name) == getattr(message, name), name
        assert 0 < first.time_to_live_ms <= 3_600_000
        assert first.reply_to is not None
        connection.session().send(first.reply_to, JmsMessage(body=b"<reply/>"))
        requestor.start()
        reply = session.consumer(message.reply_to).receive(PATIENCE)  # type: ignore[arg-type]
        assert reply is not None, "who waits for the reply still gets it"
    assert (second.body, second.message_type) == (b"\xff", MessageType.BYTES)
    (record,) = state.iterdir()
    assert [entry.message().body for entry in entries(record, strict=True)] == [first.body, second.body]


KEPT = ("body", "properties", "delivery_mode", "priority", "time_to_live_ms", "correlation_id", "jms_type")


def test_what_takes_messages_works_and_what_only_looks_says_what_it_can(
    run: Run, connection: Connection, here: Queue, there: Queue
) -> None:
    fill(connection, here, numbered(250))
    for words in (("browse",), ("purge", "--dry-run"), ("move", "--to", str(there), "--dry-run")):
        code, out, err = run(words[0], str(here), *words[1:], "--json")
        assert (code, len(out.splitlines())) == (0, 250), err
    assert run("count", str(here), "--selector", "MTOSI_batchSequenceNumber >= 100") == (0, "150\n", "")
    assert run("browse", str(here), "--limit", "1")[2] == f"note: 1 of 250 messages at {here}\n"
    assert run("copy", str(here), "--to", str(there), "--limit", "230")[0] == 0
    assert [message.body for message in taken(connection, there, 230)] == [one.body for one in numbered(230)]
    words = ("--selector", "MTOSI_batchSequenceNumber >= 100", "--limit", "120")
    code, out, err = run("move", str(here), "--to", str(there), *words)
    assert (code, out.split()[0]) == (0, "120"), err
    assert [message.body for message in taken(connection, there, 120)] == [one.body for one in numbered(220)[100:]]
    code, out, err = run("purge", str(here), "--limit", "50")
    assert (code, out.split()[0]) == (0, "50"), err
    left = {message.body for message in taken(connection, here, 80)}
    assert len(left) == 80
    assert left < {one.body for one in [*numbered(100), *numbered(250)[220:]]}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_it_says_what_was_done(
    broker: BrokerProcess, connection: Connection, here: Queue, there: Queue, tmp_path: Path, number: int
) -> None:
    fill(connection, here, numbered(900))
    words = ["queue", "move", str(here), "--to", str(there), "--record", str(tmp_path / "record"), "--json"]
    command = [sys.executable, "-m", "mtosi_jms", *words, "--url", broker.endpoints.url("stomp")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.send_signal(number)
        moved = 1 + len(process.stdout.readlines())
        err = process.stderr.read()
    assert process.returncode == 128 + number
    assert err.startswith(f"error: {moved} messages moved from {here} to {there}; then it was stopped")
    assert 100 <= moved < 900
    bodies = [message.body for message in numbered(900)]
    assert [message.body for message in taken(connection, there, moved)] == bodies[:moved]
    assert sorted(message.body for message in taken(connection, here, 900 - moved)) == sorted(bodies[moved:])


def test_a_kill_in_the_middle_loses_nothing(
    broker: BrokerProcess, connection: Connection, here: Queue, there: Queue, tmp_path: Path
) -> None:
    whole = {message.body for message in numbered(350)}
    fill(connection, here, numbered(350))
    words = ["queue", "move", str(here), "--to", str(there), "--record", str(tmp_path / "record"), "--json"]
    command = [sys.executable, "-m", "mtosi_jms", *words, "--url", broker.endpoints.url("stomp")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [json.loads(process.stdout.readline()) for _ in range(120)]  # the second batch has gone
        process.kill()
    assert [one["bytes"] for one in told] == [len(message.body) for message in numbered(120)]
    found: dict[bytes, int] = {}
    with connection.session() as session:
        consumers = [session.consumer(place) for place in (there, here)]
        while set(found) != whole:
            for consumer in consumers:
                while (delivery := consumer.receive(0.05)) is not None:
                    found[delivery.message.body] = found.get(delivery.message.body, 0) + 1
                    delivery.acknowledge()
    if Capability.TRANSACTED_RECEIVE in connection.capabilities:
        assert set(found.values()) == {1}
    recorded = [entry.message().body for entry in entries(tmp_path / "record")]
    assert recorded == [message.body for message in numbered(len(recorded))]
    assert len(recorded) >= 200


@pytest.mark.endurance
@pytest.mark.obligation("OPS3")
@pytest.mark.parametrize(("kind", "by_java"), [("activemq", False), ("artemis", True), ("artemis", False)])
def test_a_large_queue_is_counted_whole(
    request: pytest.FixtureRequest,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    here: Queue,
    kind: str,
    by_java: bool,
) -> None:
    """Artemis pages such a queue to its disk, and its browser says in the middle of it that there is no more. Its
    management lists one in parts."""
    endpoints = request.getfixturevalue(kind).endpoints
    monkeypatch.setenv("MTOSI_JMS_USER", endpoints.user)
    monkeypatch.setenv("MTOSI_JMS_PASSWORD", endpoints.password)
    url = request.getfixturevalue("java_url")(kind, endpoints) if by_java else endpoints.url("stomp")
    with mtosi.connect(endpoints.url("stomp")) as connection, connection.session(transacted=True) as session:
        for _ in range(100):
            for _ in range(1000):
                session.send(here, JmsMessage(body=b"x" * 1000))
            session.commit()
    assert main(["queue", "count", str(here), "--url", url]) == 0
    assert capsys.readouterr().out == "100000\n"
    with mtosi.connect(endpoints.url("stomp")) as connection, connection.session() as session:
        assert len({one.message_id for one in session.headers(here)}) == 100_000
