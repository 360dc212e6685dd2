"""Files that others left: too large a one is refused with its name, before memory holds it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mtosi_codegen.findings import Findings
from mtosi_codegen.load import load
from mtosi_jms import soap, xmlbind
from mtosi_jms.bounds import BOUNDS
from mtosi_jms.cli import main
from mtosi_jms.errors import MtosiError
from mtosi_jms.spool import open_entry, read_acknowledgements


def sized(path: Path, size: int) -> Path:
    """A file of zeros, which takes no room on most disks."""
    path.touch()
    os.truncate(path, size)
    return path


@pytest.fixture
def large(tmp_path: Path) -> Path:
    return sized(tmp_path / "large.xml", BOUNDS.message_bytes + 1)


@pytest.mark.obligation("SEC30")
@pytest.mark.parametrize(
    "read",
    [
        lambda path: open_entry(path).read_body(),
        lambda path: open_entry(path).message(),
        read_acknowledgements,
        soap.read,
        xmlbind.read_xml,
    ],
    ids=["body", "message", "acknowledgements", "envelope", "document"],
)
def test_a_file_that_is_too_large_is_an_error_with_its_name(read: Callable[[Path], object], large: Path) -> None:
    with pytest.raises(MtosiError, match=r"(?s)large\.xml.*larger than"):
        read(large)


def test_a_side_car_that_is_too_large_is_damaged(tmp_path: Path) -> None:
    envelope = tmp_path / "one.xml"
    envelope.write_bytes(b"<a/>")
    sized(envelope.with_suffix(".json"), BOUNDS.settings_bytes + 1)
    entry = open_entry(envelope)
    assert "larger than" in entry.problem
    assert entry.read_body() == b"<a/>"


def test_a_wsdl_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    sized(tmp_path / "large.wsdl", BOUNDS.source_bytes + 1)
    findings = Findings()
    load([tmp_path], findings)
    assert [(one.rule, one.file) for one in findings if one.failed] == [("unreadable", "large.wsdl")]


@pytest.mark.parametrize(
    "arguments",
    [
        ["mq", "write", "large.xml", "--out", "out"],
        ["mq", "write", "large.tree.xml", "--out", "out"],
        ["mq", "read", "large.mqmsg", "--out", "out"],
        ["channel", "publish", "large.xml", "--at", "127.0.0.1:1"],
    ],
    ids=lambda arguments: " ".join(arguments[:3]),
)
def test_commands_refuse_such_a_file(
    arguments: list[str], large: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(large.parent)
    if arguments[2] != large.name:
        large.rename(large.with_name(arguments[2]))
    assert main(arguments) == 1
    said = capsys.readouterr().err
    assert arguments[2] in said
    assert "larger than" in said
