"""`mtosi-jms spool` on folders of outboxes and inboxes, beside who has them open, and on what is none."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from mtosi_jms.cli import main
from mtosi_jms.errors import MessageRefusedError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.jms.display import shown_body
from mtosi_jms.jms.message import Long
from mtosi_jms.spool import Inbox, Outbox, Spool, SpoolFolder, verify_folder
from mtosi_jms.spool import _store as store
from mtosi_jms.transport import Backoff

Run = Callable[..., tuple[int, str, str]]

GOOD, BAD = Queue("GOOD"), Queue("BAD")
ID = "MTOSIX_messageId"
DATABASE = "messages.db"
BODY = b"<order>%s</order>"


def marked(key: str, **properties: Any) -> JmsMessage:
    return JmsMessage(body=BODY % key.encode() * 20, properties={ID: key, **properties}, destination=GOOD)


class Refusing:
    """A provider that refuses what goes to BAD."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, destination: Any, message: JmsMessage) -> JmsMessage:
        if destination == BAD:
            raise MessageRefusedError(destination, "no permission")
        self.sent.append(str(message.properties[ID]))
        return message


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "mtosi_jms")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> tuple[int, str, str]:
        code = main(["spool", *map(str, words)])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        assert "internal error" not in err
        return code, out, err

    return call


@pytest.fixture
def outbox(folders: Callable[[], Path]) -> Path:
    """One message that waits, and two that are dead."""
    folder = folders()
    with Outbox(folder, attempts=1, retry=Backoff(0, 0), clock=lambda: 1_000_000.0) as box:
        for key in "dead-1", "dead-2":
            box.put(marked(key), BAD)
        box.resend(Refusing())
        box.put(marked("waits-1"), GOOD)
    return folder


@pytest.fixture
def inbox(folders: Callable[[], Path]) -> Path:
    """Of a process that was killed: one message landed and taken, one landed, one handed out; and one in doubt."""
    folder = folders()

    def work() -> None:
        box = Inbox(folder)
        for key in "doubt-1", "handed-1", "taken-1", "landed-1":
            box.land(marked(key))
        for _ in range(2):
            entry = box.take()
            assert entry is not None
            box.hand(entry.key)
        box.mark_in_doubt("doubt-1")
        box.take()
        os._exit(0)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    return folder


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def states(folder: Path) -> dict[str, str]:
    with SpoolFolder(folder) as opened:
        return {one.key: one.state for one in opened.messages()}


def handed_out(folder: Path) -> list[str]:
    with Inbox(folder) as box:
        keys = []
        while (entry := box.take()) is not None:
            box.hand(entry.key)
            assert entry.message.body == marked(entry.key).body
            keys.append(entry.key)
            box.done(entry.key)
        return keys


def sent(folder: Path) -> list[str]:
    provider = Refusing()
    with Outbox(folder) as box, suppress(MessageRefusedError):
        box.resend(provider)
    return provider.sent


class TestList:
    def test_for_scripts(self, run: Run, outbox: Path) -> None:
        code, out, err = run("list", outbox, "--json")
        found = lines(out)
        assert code == 0
        assert [(one["key"], one["state"], one["destination"]) for one in found] == [
            ("dead-1", "dead", "queue:BAD"),
            ("dead-2", "dead", "queue:BAD"),
            ("waits-1", "waits", "queue:GOOD"),
        ]
        assert "no permission" in found[0]["reason"]
        assert (found[2]["reason"], found[2]["attempts"]) == (None, 0)
        assert all(one["size"] > 20 * len(BODY) and one["age"] > 1e8 for one in found)
        assert "3 messages (1 waits, 2 dead), " in err

    def test_for_people(self, run: Run, outbox: Path) -> None:
        code, out, _ = run("list", outbox, "--state", "dead")
        heading, *rows = out.splitlines()
        assert (code, heading.split()[:2], len(rows)) == (0, ["state", "age"], 2)
        assert "dead-1" in rows[0]
        assert " d " in rows[0]

    def test_messages_of_a_dead_process_are_shown_in_doubt_and_not_changed(self, run: Run, inbox: Path) -> None:
        for _ in range(2):
            found = {one["key"]: one["state"] for one in lines(run("list", inbox, "--json")[1])}
            assert found == {"doubt-1": "doubt", "handed-1": "doubt", "taken-1": "landed", "landed-1": "landed"}
        told: list[str] = []
        with Inbox(inbox, on_doubt=lambda entry: told.append(entry.key)):
            assert sorted(told) == ["doubt-1", "handed-1"], "it is still news to the application"

    def test_a_message_that_a_live_process_has_is_shown_as_handed(self, run: Run, folders: Callable[[], Path]) -> None:
        folder = folders()
        with Inbox(folder) as box:
            box.land(marked("1"))
            box.land(marked("2"))
            entry = box.take()
            assert entry is not None
            box.hand(entry.key)
            assert states(folder) == {"1": "handed", "2": "landed"}
            for action in "redrive", "withdraw":
                code, out, err = run(action, folder, "1")
                assert (code, out) == (1, "")
                assert "1: " in err
            assert states(folder) == {"1": "handed", "2": "landed"}

    def test_an_empty_one(self, run: Run, folders: Callable[[], Path]) -> None:
        folder = folders()
        Outbox(folder).close()
        code, out, err = run("list", folder)
        assert (code, out) == (0, "")
        assert "no unfinished message" in err


class TestShow:
    def test_headers_types_and_body(self, run: Run, folders: Callable[[], Path]) -> None:
        folder, values = folders(), {"i": 1, "l": Long(2), "b": True, "d": float("inf"), "password": "hunter2"}
        body = b"<a>caf\xc3\xa9<hdr><security>hunter3</security></hdr></a>"
        with Outbox(folder) as box:
            box.put(JmsMessage(body=body, properties={ID: "1", **values}, priority=7, reply_to=Queue("R")), GOOD)
        code, out, err = run("show", folder, "1", "--json")
        (one,) = lines(out)
        assert (code, err) == (0, "")
        assert (one["priority"], one["reply_to"], one["destination"]) == (7, "queue:R", "queue:GOOD")
        assert {name: (item["type"], item["value"]) for name, item in one["properties"].items()} == {
            ID: ("String", "1"),
            "i": ("Integer", 1),
            "l": ("Long", 2),
            "b": ("Boolean", True),
            "d": ("Double", "inf"),
            "password": ("String", "***"),
        }
        assert one["body"] == "<a>café<hdr><security>***</security></hdr></a>"
        code, text, _ = run("show", folder, "1")
        assert code == 0
        assert "hunter" not in text + out
        assert "café" in text
        assert ["property", "l", "Long", "2"] in [line.split() for line in text.splitlines()]
        shown = run("show", folder, "1", "--show-secrets")[1]
        assert "hunter2" in shown
        assert body.decode() in shown

    @pytest.mark.parametrize("body", [b"<security>hunter2", b"\xff\xfehunter2", b"", b"<!DOCTYPE a><a>hunter2</a>"])
    def test_other_than_xml_is_shown_on_request(self, run: Run, folders: Callable[[], Path], body: bytes) -> None:
        folder = folders()
        with Outbox(folder) as box:
            box.put(JmsMessage(body=body, properties={ID: "1"}), GOOD)
        code, out, err = run("show", folder, "1")
        assert code == 0
        assert "hunter2" not in out + err
        assert "--show-secrets" in err
        assert lines(run("show", folder, "1", "--json")[1])[0]["body"] is None
        assert run("show", folder, "1", "--show-secrets")[0] == 0

    @pytest.mark.parametrize(
        "document",
        [
            "<a><security>hunter2</security></a>",
            "<Security><b><c>hunter2</c>hunter2</b><!--hunter2--><?d hunter2?></Security>",
            "<a><w:Token xmlns:w='urn:w' w:e='hunter2'>hunter2</w:Token></a>",
            "<a password='hunter2'/>",
            "<a xmlns:w='urn:w' w:userPassword='hunter2'/>",
            "<a><p><propName>credential</propName><propValue>hunter2</propValue></p></a>",
            "<a><p><propValue>hunter2</propValue><propName>authToken</propName></p></a>",
            "<a b='stomp://me:hunter2@host'>stomp://me:hunter2@host<c/>stomp://me:hunter2@host</a>",
            "<a><secret><![CDATA[hunter2]]></secret></a>",
        ],
    )
    def test_possible_credentials_in_a_body_are_masked(self, document: str) -> None:
        for body in document.encode(), document.encode("utf-16"):
            shown = shown_body(body)
            assert shown is not None
            assert "***" in shown
            assert "hunter2" not in shown
        assert "hunter2" in str(shown_body(document.encode(), secrets=True))

    def test_control_characters_of_a_message_do_not_reach_the_terminal(
        self, run: Run, folders: Callable[[], Path]
    ) -> None:
        folder, key = folders(), "\x1b[31m\n1"
        with Outbox(folder) as box:
            box.put(JmsMessage(body=b"<a>\xc2\x9b31m</a>", properties={ID: key}), GOOD)
        for action in ("list",), ("show", "--state", "waits"), ("withdraw", key):
            code, out, err = run(action[0], folder, *action[1:])
            assert code == 0
            assert not {"\x1b", "\x9b"} & set(out + err)


class TestSettling:
    def test_dead_ones_of_an_outbox(self, run: Run, outbox: Path) -> None:
        assert run("redrive", outbox, "dead-2")[:2] == (0, "redriven: dead-2 (was: dead)\n")
        code, out, err = run("withdraw", outbox, "--state", "dead", "--json")
        assert (code, [one["key"] for one in lines(out)]) == (0, ["dead-1"])
        assert "1 message withdrawn" in err
        assert states(outbox) == {"dead-2": "waits", "waits-1": "waits"}
        assert sent(outbox) == ["waits-1"]

    def test_those_in_doubt_of_an_inbox(self, run: Run, inbox: Path) -> None:
        assert run("redrive", inbox, "handed-1")[0] == 0
        assert run("withdraw", inbox, "doubt-1", "taken-1")[0] == 0
        assert handed_out(inbox) == ["handed-1", "landed-1"]
        with Inbox(inbox) as box:
            assert not box.land(marked("doubt-1")), "its id is known"

    def test_beside_a_process_that_has_it_open(self, run: Run, outbox: Path) -> None:
        provider = Refusing()
        with Outbox(outbox, attempts=1) as box:
            with closing(sqlite3.connect(outbox / DATABASE)) as database:
                database.execute("UPDATE message SET destination = 'queue:GOOD'")
            assert run("redrive", outbox, "dead-1")[0] == 0
            assert run("withdraw", outbox, "waits-1")[0] == 0
            assert run("verify", outbox)[0] == 0
            box.resend(provider)
        assert provider.sent == []
        assert states(outbox) == {"dead-1": "dead", "dead-2": "dead"}

    def test_dead_messages_are_redriven_and_others_refused(self, run: Run, outbox: Path) -> None:
        code, out, err = run("redrive", outbox, "nowhere", "waits-1", "dead-1", "dead-1")
        assert (code, out) == (1, "redriven: dead-1 (was: dead)\n")
        assert "error: nowhere: no message of this key" in err
        assert "error: waits-1: neither dead nor in doubt, but waits" in err

    def test_a_damaged_one_is_withdrawn_and_not_redriven(self, run: Run, outbox: Path) -> None:
        flip(outbox, BODY % b"dead-1")
        assert run("show", outbox, "dead-1")[0] == 1
        assert run("redrive", outbox, "dead-1")[0] == 1
        code, out, err = run("verify", outbox)
        assert (code, out) == (1, "")
        assert "dead-1: not as it was stored" in err
        assert run("withdraw", outbox, "dead-1")[0] == 0
        assert run("verify", outbox)[0] == 0


def flip(folder: Path, text: bytes) -> None:
    """Flips a bit of each copy of a text."""
    data = (folder / DATABASE).read_bytes()
    assert text in data
    (folder / DATABASE).write_bytes(data.replace(text, text[:1] + bytes([text[1] ^ 1]) + text[2:]))


KEYS = [f"order-{number:03}" for number in range(30)]


@pytest.fixture(params=["outbox", "inbox"])
def filled(request: pytest.FixtureRequest, folders: Callable[[], Path]) -> Path:
    folder = folders()
    if request.param == "outbox":
        with Outbox(folder) as outbox:
            for key in KEYS:
                outbox.put(marked(key), GOOD)
    else:
        with Inbox(folder) as inbox:
            for key in KEYS:
                inbox.land(marked(key))
    return folder


def damaged(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Databases that are damaged in some way."""
    data, chooser, page = (folder / DATABASE).read_bytes(), random.Random(7), 4096
    for number in range(len(data) // page):
        around = data[: number * page], data[(number + 1) * page :]
        yield f"page {number} is another", (bytes(page) if number % 2 else chooser.randbytes(page)).join(around)
    for _ in range(5):
        yield "it is cut off", data[: chooser.randrange(4 * page, len(data))]
    for _ in range(15):
        flipped = bytearray(data)
        for _ in range(20):
            flipped[chooser.randrange(len(data))] ^= 1 << chooser.randrange(8)
        yield "bits are flipped", bytes(flipped)


class TestVerify:
    def test_whatever_is_damaged(self, filled: Path, folders: Callable[[], Path]) -> None:
        """What can be read is there, with its own content; all else is told, named or counted; then all is whole."""
        for how, data in damaged(filled):
            folder = folders()
            shutil.copytree(filled, folder)
            (folder / DATABASE).write_bytes(data)
            found = verify_folder(folder)
            there = states(folder)
            with SpoolFolder(folder) as opened:
                for key, state in there.items():
                    if state != "dead":
                        assert opened.message(key).body == marked(key).body, how
            assert sorted(found.damaged) == sorted(key for key, state in there.items() if state == "dead"), how
            named = {line.split()[0] for line in found.lost}
            counted = [int(line.split()[0]) for line in found.lost if "nothing can be read" in line]
            assert not named & there.keys(), how
            accounted = len((there.keys() | named) & set(KEYS)) + len(found.damaged) + sum(counted)
            assert accounted >= len(KEYS) or "it is not known whether there was more" in found.lost, how
            assert found.kept is None or found.kept.read_bytes() == data, how
            again = verify_folder(folder)
            assert not again.problems, how
            assert set(again.damaged) <= set(found.damaged), how
            left = handed_out(folder) if found.kind == "inbox" else sent(folder)
            assert left == sorted(key for key, state in there.items() if state != "dead"), how
            shutil.rmtree(folder)

    def test_a_first_page_that_is_lost_costs_no_message(self, run: Run, filled: Path) -> None:
        data = (filled / DATABASE).read_bytes()
        (filled / DATABASE).write_bytes(bytes(4096) + data[4096:])
        for action in ("list",), ("show", KEYS[0]), ("redrive", KEYS[0]), ("withdraw", KEYS[0]):
            code, out, err = run(action[0], filled, *action[1:])
            assert (code, out) == (1, "")
            assert f"mtosi-jms spool verify {filled}" in err
        code, out, err = run("verify", filled, "--json")
        (told,) = lines(out)
        assert (code, told["messages"], told["damaged"], told["lost"]) == (1, len(KEYS), [], [])
        assert f"the damaged one is kept as {told['kept']}" in err
        assert list(states(filled)) == KEYS
        assert run("verify", filled)[0] == 0

    def test_what_was_done_with_is_known_after_a_rescue(self, folders: Callable[[], Path]) -> None:
        folder = folders()
        with Inbox(folder) as box:
            for key in KEYS:
                box.land(marked(key))
            for key in KEYS[:15]:
                box.done(key)
        data = (folder / DATABASE).read_bytes()
        (folder / DATABASE).write_bytes(b"?" * 4096 + data[4096:])
        assert verify_folder(folder).messages == 15
        with Inbox(folder) as box:
            assert [box.land(marked(key)) for key in KEYS] == [False] * len(KEYS)

    def test_wrong_totals_are_reported_and_mended(self, run: Run, outbox: Path) -> None:
        with closing(sqlite3.connect(outbox / DATABASE)) as database:
            database.execute("UPDATE total SET messages = messages + 5")
            database.commit()
        assert run("verify", outbox)[0] == 1
        assert run("verify", outbox)[0] == 0
        with Outbox(outbox) as box:
            assert len(box) == 1

    def test_an_open_folder_is_not_rescued(self, run: Run, filled: Path) -> None:
        opened = Inbox(filled) if "landed" in states(filled).values() else Outbox(filled)
        data = (filled / DATABASE).read_bytes()
        with opened, (filled / DATABASE).open("r+b") as file:
            file.seek(5 * 4096)
            file.write(b"\xff" * 4096)
            file.flush()
            code, _, err = run("verify", filled)
            assert code == 1
            assert "verify once more" in err
            file.seek(0)
            file.write(data)

    def test_killed_in_the_middle_of_a_rescue(self, folders: Callable[[], Path]) -> None:
        """At each line of what swaps the databases: the next one has all that the first would have had."""
        whole = folders()
        with Outbox(whole) as box:
            for key in KEYS:
                box.put(marked(key), GOOD)
        data = (whole / DATABASE).read_bytes()
        for line in range(1, 200):
            folder = folders()
            shutil.copytree(whole, folder)
            (folder / DATABASE).write_bytes(bytes(4096) + data[4096:])
            process = multiprocessing.get_context("fork").Process(target=killed_at, args=(folder, line))
            process.start()
            process.join()
            verify_folder(folder)
            assert verify_folder(folder).is_whole
            assert list(states(folder)) == KEYS
            assert sent(folder) == KEYS
            shutil.rmtree(folder)
            if process.exitcode == 0:
                break
        assert 15 < line < 199

    def test_a_disk_without_room(self, filled: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        data = bytes(4096) + (filled / DATABASE).read_bytes()[4096:]
        (filled / DATABASE).write_bytes(data)

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(shutil, "copyfileobj", full)
            code, _, err = run("verify", filled)
        assert (code, "No space left" in err) == (1, True)
        assert (filled / DATABASE).read_bytes() == data
        assert [path.name for path in filled.iterdir() if "rescue" in path.name] == []


def killed_at(folder: Path, at: int) -> None:
    """Verifies a folder, and is gone before a line of `_rescue` or `finish_rescue`."""
    left = at

    def on_line(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if frame.f_code.co_name not in ("_rescue", "finish_rescue"):
            return None
        if event == "line":
            left -= 1
            if not left:
                os._exit(9)
        return on_line

    sys.settrace(on_line)
    verify_folder(folder)
    os._exit(0)


class TestRefused:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("show", "F"), "needs KEYs"),
            (("redrive", "F"), "needs KEYs"),
            (("withdraw", "F"), "needs KEYs"),
            (("withdraw", "F", "1", "--state", "dead"), "needs KEYs"),
            (("withdraw", "F", "--state", "waits"), "--state dead"),
            (("redrive", "F", "--state", "landed"), "--state dead"),
            (("list", "F", "1"), "takes no KEY"),
            (("verify", "F", "1"), "takes no KEY"),
            (("verify", "F", "--state", "dead"), "takes no --state"),
            (("list", "F", "--state", "lost"), "lost"),
            (("drop", "F"), "drop"),
            (("list",), "FOLDER"),
        ],
    )
    def test_wrong_usage(self, run: Run, words: tuple[str, ...], said: str) -> None:
        code, out, err = run(*words)
        assert (code, out) == (2, "")
        assert said in err

    @pytest.mark.parametrize("action", [("list",), ("show", "1"), ("verify",), ("redrive", "1"), ("withdraw", "1")])
    def test_other_folders_are_refused(self, run: Run, tmp_path: Path, action: tuple[str, ...]) -> None:
        def refused(folder: Path, said: str) -> None:
            before = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
            code, out, err = run(action[0], folder, *action[1:])
            assert (code, out, len(err.splitlines())) == (1, "", 1)
            assert str(folder) in err
            assert said in err
            assert before == (sorted(path.name for path in folder.iterdir()) if folder.is_dir() else [])

        refused(tmp_path / "missing", "No such file")
        (tmp_path / "file").touch()
        refused(tmp_path / "file", "Not a directory")
        (tmp_path / "empty").mkdir()
        refused(tmp_path / "empty", "no outbox or inbox")
        Spool(tmp_path / "landing").write(marked("1"), 5)
        refused(tmp_path / "landing", "landing")
        Outbox(tmp_path / "open").close()
        (tmp_path / "open").chmod(0o755)
        refused(tmp_path / "open", "chmod 700")
        Outbox(tmp_path / "linked").close()
        (tmp_path / "linked" / "link").symlink_to(tmp_path)
        refused(tmp_path / "linked", "symbolic link")
        (tmp_path / "begun").mkdir(0o700)
        (tmp_path / "begun" / DATABASE).touch()
        refused(tmp_path / "begun", "no outbox or inbox")


def files_of(pid: int) -> set[str]:
    """The files that a process has open."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found.add(str(link.readlink()))
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="which files a process has open is told by Linux alone")
def test_ctrl_c_changes_nothing(outbox: Path) -> None:
    """While another process is in a transaction: the command waits, and ends with one line."""
    with closing(sqlite3.connect(outbox / DATABASE, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        words = [sys.executable, "-m", "mtosi_jms", "spool", "redrive", str(outbox), "dead-1"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None and str(outbox / DATABASE) not in files_of(process.pid):
                os.sched_yield()
            process.send_signal(signal.SIGINT)
            database.execute("ROLLBACK")
            out, err = process.communicate(timeout=60)
    assert (out, "Traceback" in err) in {("", False), ("redriven: dead-1 (was: dead)\n", False)}
    assert states(outbox)["dead-1"] == ("waits" if out else "dead")


def test_the_states_on_offer_are_those_of_the_store(capsys: pytest.CaptureFixture[str]) -> None:
    known = {state for kind in store.KINDS.values() for state in kind} - set(store.SETTLED)
    assert main(["spool", "list", "folder", "--state", "?"]) == 2
    assert set(re.findall(r"'(\w+)'", capsys.readouterr().err)) == known
