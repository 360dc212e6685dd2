"""Flipped bits in the databases: reported, dead, or refused; never another content, and never in silence."""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.errors import JournalDamageError, SpoolError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.spool import Inbox, Outbox

WORK = Queue("WORK")
ID = "MTOSIX_messageId"
KEYS = [f"order-{number}" for number in range(6)]
DATABASE = "messages.db"


def marked(key: str) -> JmsMessage:
    return JmsMessage(body=f"<order>{key}</order>".encode() * 40, properties={ID: key, "state": f"of {key}"})


def fill_outbox(folder: Path) -> None:
    with Outbox(folder) as outbox:
        for key in KEYS:
            outbox.put(marked(key), WORK)


def fill_inbox(folder: Path) -> None:
    with Inbox(folder) as inbox:
        for key in KEYS:
            inbox.land(marked(key))


class Found:
    """What a folder still gives, and what it tells of the rest."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.dead: list[str] = []
        self.refused = ""

    def send(self, destination: object, message: JmsMessage) -> JmsMessage:
        key = str(message.properties[ID])
        assert (message.body, message.properties["state"]) == (marked(key).body, f"of {key}")
        self.keys.append(key)
        return message


def drain_outbox(folder: Path) -> Found:
    found = Found()
    try:
        with Outbox(folder) as outbox:
            outbox.resend(found)
            found.dead = [one.key for one in outbox.dead]
    except JournalDamageError as error:
        found.refused = str(error)
    return found


def drain_inbox(folder: Path) -> Found:
    found = Found()
    try:
        with Inbox(folder) as inbox:
            while (entry := inbox.take()) is not None:
                inbox.hand(entry.key)
                found.send(None, entry.message)
                inbox.done(entry.key)
            found.dead = [one.key for one in inbox.dead]
            found.keys += [entry.key for entry in inbox.in_doubt]
    except JournalDamageError as error:
        found.refused = str(error)
    return found


ROLES = [pytest.param(fill_outbox, drain_outbox, id="outbox"), pytest.param(fill_inbox, drain_inbox, id="inbox")]


def flip(file: Path, bit: int) -> None:
    data = bytearray(file.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(data)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize(("fill", "drain"), ROLES)
@pytest.mark.usefixtures("quiet")
class TestAnyBit:
    def test_in_a_message(
        self, folders: Callable[[], Path], fill: Callable[[Path], None], drain: Callable[[Path], Found]
    ) -> None:
        """In body, headers or properties, of the last message too: it is dead and reported, the others go on."""
        whole = folders()
        fill(whole)
        data = (whole / DATABASE).read_bytes()
        chooser = random.Random(1)
        for key in KEYS:
            for part in (f"<order>{key}</order>", f'"of {key}"'):
                folder = folders()
                shutil.copytree(whole, folder)
                start = data.index(part.encode())
                flip(folder / DATABASE, start * 8 + chooser.randrange(8 * len(part)))
                found = drain(folder)
                assert not found.refused
                assert found.dead == [key]
                assert found.keys == [one for one in KEYS if one != key]

    def test_anywhere(
        self, folders: Callable[[], Path], fill: Callable[[Path], None], drain: Callable[[Path], Found]
    ) -> None:
        """The folder is refused with the way to rescue it, or each message is there or told, with its own content."""
        whole = folders()
        fill(whole)
        chooser = random.Random(2)
        size = (whole / DATABASE).stat().st_size
        for _ in range(200):
            folder = folders()
            shutil.copytree(whole, folder, ignore=shutil.ignore_patterns("reserve"))
            flip(folder / DATABASE, chooser.randrange(8 * size))
            with suppress(SpoolError):
                found = drain(folder)
                assert "spool verify" in found.refused or len(found.keys) + len(found.dead) == len(KEYS)
            shutil.rmtree(folder)


@pytest.mark.parametrize("what", ["gone", "empty"])
@pytest.mark.parametrize("kind", [Outbox, Inbox])
def test_a_missing_database_is_reported(tmp_path: Path, kind: Any, what: str) -> None:
    kind(tmp_path / "box").close()
    (tmp_path / "box" / DATABASE).unlink()
    if what == "empty":
        (tmp_path / "box" / DATABASE).touch()
    for _ in range(2):
        with pytest.raises(JournalDamageError, match="lost"):
            kind(tmp_path / "box")


class TestLanding:
    def test_any_byte_of_a_sidecar(self, tmp_path: Path) -> None:
        """A sidecar that is not as it was written says nothing, and that is told; a bit of each byte is flipped."""
        from mtosi_jms.spool import Spool, open_entry

        entry = Spool(tmp_path / "landing").write(
            JmsMessage(body=b"<m/>", properties={"MTOSI_batchSequenceNumber": 4, "MTOSI_correlationId": "abc"}), 5
        )
        sidecar = entry.path.with_suffix(".json")
        whole = sidecar.read_bytes()
        assert open_entry(entry.path).facts == entry.facts
        for bit in (8 * byte + byte % 8 for byte in range(len(whole))):
            flip(sidecar, bit)
            read = open_entry(entry.path)
            assert read.facts == entry.facts or (read.facts is None and read.damage()), f"bit {bit}"
            sidecar.write_bytes(whole)
