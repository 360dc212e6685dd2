"""Commands that take documents take folders of them, too, and do with these what they do with the files."""

from __future__ import annotations

import gzip
import json
import os
import re
from importlib import import_module
from pathlib import Path

import pytest

from mtosi_jms.cli import COMMANDS, main
from mtosi_jms.compression import ZSTD
from mtosi_jms.simulator import Network
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, MessageTypeType
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage

Capture = pytest.CaptureFixture[str]

PROVIDER = ("--url", "memory:folders")
OPTIONS = {
    "inspect": (),
    "map": (),
    "validate": (),
    "publish": (*PROVIDER, "--topic", "topic:FAULT"),
    "replay": (*PROVIDER, "--to", "queue:AGAIN"),
}
"""The commands that take documents, with what they need besides."""


def notification(number: int) -> bytes:
    header = Header(
        activity_name="notify",
        msg_name="notify",
        msg_type=MessageTypeType.NOTIFICATION,
        sender_uri="urn:x",
        communication_pattern=CommunicationPatternType.Notification,
    )
    (event,) = list(Network(elements=5).events(number))[number - 1 :]
    body = Notify(topic="FAULT", message=NotifyMessage(common_event_information=[event]))
    return Envelope(header=header, body=body).to_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three notifications, two of them packed, and what is not a document."""
    made = tmp_path / "made"
    (made / "below").mkdir(parents=True)
    (made / "1.xml").write_bytes(notification(1))
    (made / "2.xml.gz").write_bytes(gzip.compress(notification(2)))
    (made / "3.xml.zst").write_bytes(import_module(ZSTD).compress(notification(3)))
    for other in ("other.json", ".hidden.xml", "notes.txt"):
        (made / other).write_text("no document", encoding="utf-8")
    return made


def told(capsys: Capture, command: str, *sources: object) -> list[str]:
    """The files that a command speaks of, in their order."""
    assert main([command, *map(str, sources), *OPTIONS[command], "--json"]) == 0
    return [json.loads(line)["file"] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("command", OPTIONS)
def test_a_folder_is_the_files_in_it(command: str, folder: Path, tmp_path: Path, capsys: Capture) -> None:
    alone = tmp_path / "alone.xml"
    alone.write_bytes(notification(4))
    files = [folder / "1.xml", folder / "2.xml.gz", folder / "3.xml.zst", alone]
    assert told(capsys, command, folder, alone) == told(capsys, command, *files) != []


@pytest.mark.parametrize("command", sorted(OPTIONS.keys() - {"replay"}))
def test_folders_below_count_and_come_last(command: str, folder: Path, capsys: Capture) -> None:
    (folder / "below" / "0.XML").write_bytes(notification(4))
    found = told(capsys, command, folder)
    assert [os.path.relpath(file, folder) for file in found] == ["1.xml", "2.xml.gz", "3.xml.zst", "below/0.XML"]


@pytest.mark.parametrize("command", OPTIONS)
def test_a_folder_without_documents_is_an_error(command: str, tmp_path: Path, capsys: Capture) -> None:
    assert main([command, str(tmp_path), *OPTIONS[command]]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(
        rf"error: {re.escape(str(tmp_path))}: holds no \w+ \(\*\.xml, \*\.xml\.gz, \*\.xml\.zst\)\n", err
    )


def test_every_command_that_takes_several_files_is_here(capsys: Capture) -> None:
    taking = set()
    for command in COMMANDS:
        assert main([command, "--help"]) == 0
        usage = " ".join(capsys.readouterr().out.partition("\n\n")[0].split())
        if re.search(r"(FILE|LANDING|SOURCE) \[\1 \.\.\.\]", usage):
            taking.add(command)
    assert taking == OPTIONS.keys() | {"mq"}  # tests/mq has that
