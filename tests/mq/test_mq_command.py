"""The command `mq`: files of a queue into a landing and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mtosi_jms.cli import main
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.mq import read_mq, write_mq
from mtosi_jms.spool import entries

MESSAGES = [
    JmsMessage(body=b"<a>%d</a>" % number, properties={"n": number}, reply_to=Queue("R")) for number in range(3)
]


@pytest.fixture
def unloaded(tmp_path: Path) -> Path:
    folder = tmp_path / "unloaded"
    folder.mkdir()
    for number, message in enumerate(MESSAGES):
        (folder / f"{number}.mq").write_bytes(write_mq(message, with_mqmd=True))
    return folder


@pytest.mark.obligation("001-X4")
def test_into_a_landing_and_back(unloaded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    landing, back = tmp_path / "landing", tmp_path / "back"
    assert main(["mq", "read", str(unloaded), "--out", str(landing)]) == 0
    assert "3 messages landed in" in capsys.readouterr().out
    assert [entry.message() for entry in entries(landing)] == MESSAGES
    arguments = ["--mqmd", "--byte-order", "little", "--ccsid", "1200", "--json"]
    assert main(["mq", "write", str(landing), "--out", str(back), *arguments]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [read_mq(Path(line["file"]).read_bytes()) for line in lines] == MESSAGES


def test_a_damaged_file_stops_no_other(unloaded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (unloaded / "1.mq").write_bytes(b"no message")
    (unloaded / "3.mq").mkdir()
    assert main(["mq", "read", str(unloaded), "--out", str(tmp_path / "landing")]) == 1
    told = capsys.readouterr()
    assert "2 messages landed in" in told.out
    assert "2 refused" in told.out
    assert "1.mq: neither an MQMD nor an MQRFH2" in told.err
    assert "3.mq: cannot be read" in told.err
    assert len(list(entries(tmp_path / "landing"))) == 2


def test_what_becomes_of_invalid_properties(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = write_mq(JmsMessage(body=b"x", properties={"n": 12345}))
    (tmp_path / "a.mq").write_bytes(whole.replace(b'dt="i4">12345', b'dt="i1">12345'))
    source = [str(tmp_path / "a.mq"), "--out", str(tmp_path / "landing")]
    assert main(["mq", "read", *source]) == 1
    assert "property n" in capsys.readouterr().err
    assert main(["mq", "read", *source, "--on-invalid", "ignore"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["mq", "read", *source, "--on-invalid", "warn"]) == 0
    assert (
        capsys.readouterr().err
        == "note: property n is kept as text: DecodeError: '12345' is not of type i1: it is out of range\n"
    )
    assert [entry.message().properties for entry in entries(tmp_path / "landing")] == [{"n": "12345"}] * 2


def test_nothing_to_read_or_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("read", "write"):
        assert main(["mq", action, str(tmp_path), "--out", str(tmp_path / "out")]) == 1
        assert "holds no" in capsys.readouterr().err


@pytest.mark.obligation("001-I6")
def test_documents_to_edit_and_back(unloaded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trees, back = tmp_path / "trees", tmp_path / "back"
    assert main(["mq", "read", str(unloaded), "--out", str(trees), "--tree"]) == 0
    assert f"3 messages written to {trees}" in capsys.readouterr().out
    assert sorted(file.name for file in trees.iterdir()) == ["0.tree.xml", "1.tree.xml", "2.tree.xml"]
    edited = trees / "1.tree.xml"
    edited.write_text(edited.read_text().replace('<n dt="i4">1</n>', '<n dt="i4">17</n>'))
    assert main(["mq", "write", str(trees), "--out", str(back)]) == 0
    read = [read_mq(file.read_bytes()) for file in sorted(back.iterdir())]
    assert [message.properties["n"] for message in read] == [0, 17, 2]
    assert [message.body for message in read] == [message.body for message in MESSAGES]
    assert [message.reply_to for message in read] == [Queue("R")] * 3


def test_a_document_that_was_edited_badly(unloaded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trees, back = tmp_path / "trees", tmp_path / "back"
    assert main(["mq", "read", str(unloaded / "1.mq"), "--out", str(trees), "--tree"]) == 0
    (edited,) = trees.iterdir()
    edited.write_text(edited.read_text().replace('dt="i4">1<', 'dt="i1">999<'))
    write = ["mq", "write", str(edited), "--out", str(back)]
    assert main(write) == 1
    assert "n: '999' is not of type i1: it is out of range" in capsys.readouterr().err
    assert main([*write, "--on-invalid", "ignore"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*write, "--on-invalid", "warn"]) == 0
    assert "note: n is kept as text" in capsys.readouterr().err
    assert read_mq((back / "1.mq").read_bytes()).properties == {"n": "999"}
    edited.write_text("<Root>")
    assert main(write) == 1
    assert "line 1" in capsys.readouterr().err
    assert main(["mq", "write", str(edited), "--out", str(edited)]) == 1
    assert "cannot be made" in capsys.readouterr().err
    (tmp_path / "taken" / "1.tree.xml").mkdir(parents=True)
    assert main(["mq", "read", str(unloaded / "1.mq"), "--out", str(tmp_path / "taken"), "--tree"]) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.obligation("001-I7")
def test_without_the_reply_destination(unloaded: Path, tmp_path: Path) -> None:
    """001-I7: IBM's JMSOutput node would send each message there."""
    landing, back = tmp_path / "landing", tmp_path / "back"
    assert main(["mq", "read", str(unloaded), "--out", str(landing)]) == 0
    assert main(["mq", "write", str(landing), "--out", str(back), "--mqmd", "--no-reply-to"]) == 0
    for file in back.iterdir():
        assert read_mq(file.read_bytes()).reply_to is None
        assert b"<Rto>" not in file.read_bytes()
    assert main(["mq", "read", str(unloaded), "--out", str(tmp_path / "none"), "--no-reply-to"]) == 0
    assert {entry.message().reply_to for entry in entries(tmp_path / "none")} == {None}
