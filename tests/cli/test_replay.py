"""`mtosi-jms replay` over the embedded provider."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.cli import main
from mtosi_jms.cli._replay import replay
from mtosi_jms.cli.documents import landed_files
from mtosi_jms.cli.running import Stop
from mtosi_jms.compression import ZSTD
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue, TemporaryQueue
from mtosi_jms.jms.message import Long, MessageType
from mtosi_jms.spool import Spool, entries
from mtosi_jms.transport import Connection

Capture = pytest.CaptureFixture[str]

MESSAGES = [
    JmsMessage(
        body=b"<first/>",
        properties={"MTOSI_msgName": "first", "n": 1, "l": Long(2), "b": True, "d": 0.5, "MTOSIX_messageId": "uuid-1"},
        delivery_mode=DeliveryMode.PERSISTENT,
        priority=7,
        time_to_live_ms=60_000,
        correlation_id="ID:of-a-request",
        jms_type="T",
        reply_to=Queue("REPLIES"),
        message_id="ID:old",
    ),
    JmsMessage(
        body=b"\xffno XML at all",
        message_type=MessageType.BYTES,
        properties={"n": 2, "JMSXDeliveryCount": 3, "JMS_AMQ_x": "y"},
        reply_to=TemporaryQueue("gone", "ID:another"),
    ),
    JmsMessage(body=b"<third/>", properties={"n": 3}),
]


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    spool = Spool(tmp_path / "landing")
    for place, message in enumerate(MESSAGES):
        spool.write(message, 1_700_000_000_000 + place)
    return tmp_path / "landing"


@pytest.fixture
def connection(url: str) -> Iterator[Connection]:
    with mtosi.connect(url) as connection:
        connection.start()
        yield connection


def received(connection: Connection) -> list[JmsMessage]:
    found = []
    with connection.session() as session, session.consumer(Queue("AGAIN")) as consumer:
        while (delivery := consumer.receive(0)) is not None:
            delivery.acknowledge()
            found.append(delivery.message)
    return found


def test_messages_come_again_as_they_were(url: str, landing: Path, connection: Connection, capsys: Capture) -> None:
    assert main(["replay", str(landing), "--url", url, "--to", "queue:AGAIN"]) == 0
    out, err = capsys.readouterr()
    assert [line.rpartition(": ")[2] for line in out.splitlines()] == ["first", *["a message without properties"] * 2]
    assert err == "note: 3 messages sent to queue:AGAIN\n"
    again = received(connection)
    for message, before in zip(again, MESSAGES, strict=True):
        assert (message.body, message.message_type) == (before.body, before.message_type)
        assert (message.priority, message.time_to_live_ms) == (before.priority, before.time_to_live_ms)
        assert (message.correlation_id, message.jms_type) == (before.correlation_id, before.jms_type)
        assert message.delivery_mode is before.delivery_mode
        assert message.message_id != before.message_id
        assert not message.redelivered
    assert again[0].properties == MESSAGES[0].properties
    assert [type(value) for value in again[0].properties.values()] == [str, int, Long, bool, float, str]
    assert again[1].properties == {"n": 2}
    assert [message.reply_to for message in again] == [Queue("REPLIES"), None, None]


@pytest.mark.parametrize(
    ("selector", "numbers"),
    [("n >= 2", [2, 3]), ("JMSPriority = 7", [1]), ("JMSDeliveryMode = 'NON_PERSISTENT'", [2, 3]), ("nothing = 1", [])],
)
def test_a_selector_lets_some_through(
    url: str, landing: Path, connection: Connection, capsys: Capture, selector: str, numbers: list[int]
) -> None:
    assert main(["replay", str(landing), "--url", url, "--to", "queue:AGAIN", "--selector", selector, "--json"]) == 0
    out, err = capsys.readouterr()
    assert [message.properties["n"] for message in received(connection)] == numbers
    assert f"; the selector left out {3 - len(numbers)}" in err
    assert len([json.loads(line) for line in out.splitlines()]) == len(numbers)


def of_the_header(message: JmsMessage) -> dict[str, Any]:
    """The properties of a message without those that no envelope tells."""
    return {name: value for name, value in message.properties.items() if not name.startswith("MTOSIX_")}


def test_an_envelope_without_a_side_car_gets_the_properties_of_its_header(
    url: str, serving: Any, connection: Connection, tmp_path: Path, capsys: Capture
) -> None:
    serving("--elements", "3")
    words = ["--url", url, "--to", "queue:EMS", "--batch-size", "1", "--landing", str(tmp_path)]
    assert main(["request", "getAllManagedElements", *words]) == 0
    before = [entry.message() for entry in entries(tmp_path, strict=True)]
    for side_car in tmp_path.glob("*.json"):
        side_car.unlink()
    first, *_, last = sorted(tmp_path.glob("*.xml"))
    Path(f"{last}.gz").write_bytes(gzip.compress(last.read_bytes()))
    Path(f"{first}.zst").write_bytes(import_module(ZSTD).compress(first.read_bytes()))
    first.unlink()
    last.unlink()
    assert main(["replay", str(tmp_path), "--url", url, "--to", "queue:AGAIN"]) == 0
    again = received(connection)
    assert [message.properties for message in again] == [of_the_header(message) for message in before]
    assert [message.body for message in again] == [message.body for message in before]


def test_what_is_damaged_is_left_out_and_told(url: str, landing: Path, connection: Connection, capsys: Capture) -> None:
    first, second, _ = sorted(landing.glob("*.xml"))
    first.write_bytes(b"<fir")
    second.with_suffix(".json").write_text("{", encoding="utf-8")
    (landing / "note.xml").write_text("<note/>", encoding="utf-8")
    assert main(["replay", str(landing), "--url", url, "--to", "queue:AGAIN"]) == 1
    err = capsys.readouterr().err
    assert "the envelope's bytes are not those that were received" in err
    assert "damaged sidecar" in err
    assert "note.xml" in err
    assert err.splitlines()[-1] == "note: 1 message sent to queue:AGAIN; 3 at fault"
    assert [message.body for message in received(connection)] == [b"<third/>"]


def test_a_rate_spreads_messages_and_a_stop_ends_it(
    landing: Path, connection: Connection, parsed: Any, background: Any, capsys: Capture
) -> None:
    args = parsed("replay", str(landing), "--url", "memory:", "--to", "queue:AGAIN", "--rate", "0.001")
    with Stop() as stop, connection.session() as session:
        running = background(lambda: replay(connection, args, landed_files(landing), stop))
        with session.consumer(Queue("AGAIN")) as consumer:
            first = consumer.receive(30)
            assert first is not None
            first.acknowledge()
            assert consumer.receive(0) is None
        stop.set()
        assert running.result(30) == 130
    assert "stopped: sent 1 message to queue:AGAIN; the next is " in capsys.readouterr().err
    assert received(connection) == []


def test_a_folder_without_envelopes(url: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["replay", str(tmp_path), "--url", url, "--to", "queue:AGAIN"]) == 1
    assert "holds no envelope" in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "none"), "--url", url, "--to", "queue:AGAIN"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
