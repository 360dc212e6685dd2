"""The journals' files cut and damaged at any byte: what was confirmed stays, a torn record goes, damage is told."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtosi_jms.errors import JournalDamageError, SpoolError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.spool import Inbox, Outbox
from mtosi_jms.spool.records import FILE_HEAD, decode_record, salt_of

WORK = Queue("WORK")
ID = "MTOSIX_messageId"
FILE = "0000000001.journal"


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of journals are opened here, and no machine goes down."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def marked(number: int) -> JmsMessage:
    return JmsMessage(body=b"<n>%d</n>" % number, properties={ID: f"id-{number}"})


def write_outbox(folder: Path) -> list[dict[str, str]]:
    """Fills a journal, and tells what it says after each of its records."""
    states: list[dict[str, str]] = [{}]
    with Outbox(folder) as outbox:
        for number in range(4):
            message = outbox.put(marked(number), WORK)
            states.append({**states[-1], f"id-{number}": "waits"})
            if number % 2:
                outbox.confirm(message)
                states.append({key: state for key, state in states[-1].items() if key != f"id-{number}"})
    return states


def write_inbox(folder: Path) -> list[dict[str, str]]:
    """The same for an inbox: landed, handed out, done with."""
    states: list[dict[str, str]] = [{}]
    with Inbox(folder) as inbox:
        for number in range(3):
            key = f"id-{number}"
            inbox.land(marked(number))
            states.append({**states[-1], key: "landed"})
            inbox.take()
            if number:
                inbox.hand(key)
                states.append({**states[-1], key: "handed"})
            if number == 1:
                inbox.done(key)
                states.append({**states[-1], key: "done"})
    return states


def read_outbox(folder: Path) -> dict[str, str]:
    with Outbox(folder) as outbox:
        for message in outbox.unconfirmed():
            assert message.body == b"<n>%s</n>" % str(message.properties[ID]).removeprefix("id-").encode()
        return {str(message.properties[ID]): "waits" for message in outbox.unconfirmed()}


def read_inbox(folder: Path) -> dict[str, str]:
    with Inbox(folder) as inbox:
        found = {entry.key: "handed" for entry in inbox.in_doubt}
        while (entry := inbox.take()) is not None:
            assert entry.message.body == b"<n>%s</n>" % entry.key.removeprefix("id-").encode()
            found[entry.key] = "landed"
        for number in range(3):
            if f"id-{number}" not in found and not inbox.land(marked(number)):
                found[f"id-{number}"] = "done"
        return found


KINDS = {"outbox": (write_outbox, read_outbox), "inbox": (write_inbox, read_inbox)}
Write = Callable[[Path], list[dict[str, str]]]
Read = Callable[[Path], dict[str, str]]


class Written:
    """A journal of one file, and where its records end."""

    def __init__(self, folder: Path, write: Write, read: Read) -> None:
        self.folder = folder
        self.read = read
        self.states = write(folder)
        self.data = (folder / FILE).read_bytes()
        salt = salt_of(self.data, FILE)
        assert salt is not None
        self.ends = [FILE_HEAD]
        while self.ends[-1] < len(self.data):
            found = decode_record(self.data, self.ends[-1], salt)
            assert found is not None
            self.ends.append(self.ends[-1] + found[0].size)
        assert len(self.ends) == len(self.states)

    def whole(self, size: int) -> int:
        """How many records are whole in so many bytes."""
        return sum(end <= size for end in self.ends[1:])

    def says(self, data: bytes) -> dict[str, str]:
        (self.folder / FILE).write_bytes(data)
        return self.read(self.folder)

    def outcome(self, data: bytes) -> dict[str, str] | SpoolError:
        try:
            return self.says(data)
        except SpoolError as error:
            return error


@pytest.fixture(params=sorted(KINDS))
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Written:
    return Written(tmp_path / "journal", *KINDS[request.param])


def test_cut_at_every_byte(written: Written) -> None:
    """What the file held before the cut is there, and what came with the torn record is not."""
    for size in range(len(written.data) + 1):
        assert written.says(written.data[:size]) == written.states[written.whole(size)], size


def test_what_follows_a_torn_record_is_kept(written: Written) -> None:
    """The torn one is cut off, so that what is written next is not taken for damage behind it."""
    for size in random.Random(5).sample(range(FILE_HEAD, len(written.data)), 40):
        written.says(written.data[:size])
        with Outbox(written.folder) if written.read is read_outbox else Inbox(written.folder) as journal:
            if isinstance(journal, Outbox):
                journal.put(marked(9), WORK)
            else:
                journal.land(marked(9))
        assert "id-9" in written.read(written.folder)


@settings(deadline=None, max_examples=150)
@given(data=st.data(), junk=st.binary(max_size=200))
def test_damage_at_the_tail(data: st.DataObject, junk: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Anything at all in place of the last record: those before it stay."""
    for name, (write, read) in KINDS.items():
        written = Written(tmp_path_factory.mktemp("tail") / name, write, read)
        begin, end = written.ends[-2], written.ends[-1]
        cut = data.draw(st.integers(begin, end - 1))
        changed = written.data[:cut] + junk
        expected = written.states[-1] if changed.startswith(written.data) else written.states[-2]
        if changed[:end] != written.data:
            assert written.says(changed) == expected
        shutil.rmtree(written.folder.parent)


def test_damage_within_is_told_with_its_place(written: Written) -> None:
    """Any changed byte that the process had made safe before it wrote on."""
    told = 0
    for at in range(len(written.data)):
        damaged = bytearray(written.data)
        damaged[at] ^= 0x55
        begin = max((end for end in written.ends if end <= at), default=0)
        if at < FILE_HEAD:
            begin = 0
        outcome = written.outcome(bytes(damaged))
        if isinstance(outcome, JournalDamageError):
            told += 1
            assert (outcome.path, outcome.offset) == (str(written.folder / FILE), begin)
            assert str(begin) in str(outcome)
        else:  # nothing behind it counts on it: a crash may have left it so
            assert outcome == written.states[written.whole(begin)]
            assert begin >= written.ends[-3]
    assert told > len(written.data) * 0.7


def test_damage_in_an_older_file_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "outbox"
    with Outbox(folder, segment_bytes=1_500) as outbox:
        for number in range(10):
            outbox.put(marked(number), WORK)
    first, *_, last = sorted(folder.glob("*.journal"))
    whole = first.read_bytes()
    for changed in (whole[:-1], whole[:-1] + b"\x00", whole + b"\x00", whole[: FILE_HEAD - 3], b""):
        first.write_bytes(changed)
        with pytest.raises(JournalDamageError) as caught:
            Outbox(folder)
        assert caught.value.path == str(first)
    first.write_bytes(whole)
    last.write_bytes(b"")
    with Outbox(folder) as outbox:
        assert len(outbox) > 3


def test_a_message_that_rots_while_it_waits(tmp_path: Path) -> None:
    with Outbox(tmp_path / "outbox") as outbox:
        outbox.put(marked(1), WORK)
        file = tmp_path / "outbox" / FILE
        file.write_bytes(file.read_bytes().replace(b"<n>1</n>", b"<n>2</n>"))
        with pytest.raises(JournalDamageError) as caught:
            outbox.unconfirmed()
        assert caught.value.offset == FILE_HEAD


def test_one_that_rots_hurts_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is read when its file is to be dropped; who stores another message meanwhile is not told that this failed."""
    with Inbox(tmp_path / "inbox", segment_bytes=2_000) as inbox:
        inbox.land(marked(0))
        inbox.take()
        file = tmp_path / "inbox" / FILE
        file.write_bytes(file.read_bytes().replace(b"<n>0</n>", b"<n>9</n>"))
        for number in range(1, 60):
            assert inbox.land(marked(number))
            entry = inbox.take()
            assert entry is not None
            inbox.hand(entry.key)
            inbox.done(entry.key)
        assert len(inbox) == 1
    assert caplog.text.count("cannot be dropped") == 1


def test_a_journal_within_a_message_is_not_read_as_one(tmp_path: Path) -> None:
    """A torn message that carries a journal, whose records are whole, is torn all the same."""
    with Outbox(tmp_path / "inner") as inner:
        for number in range(3):
            inner.put(marked(number), WORK)
    carried = (tmp_path / "inner" / FILE).read_bytes()
    with Outbox(tmp_path / "outer") as outer:
        outer.put(marked(7), WORK)
        outer.put(JmsMessage(body=carried), WORK)
    file = tmp_path / "outer" / FILE
    file.write_bytes(file.read_bytes()[:-1])
    with Outbox(tmp_path / "outer") as outer:
        assert [message.properties[ID] for message in outer.unconfirmed()] == ["id-7"]


@settings(deadline=None, max_examples=200)
@given(junk=st.binary(max_size=300))
def test_any_bytes_at_all(junk: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("junk")
    (folder / FILE).write_bytes(junk)
    if 0 < len(junk) <= FILE_HEAD:  # a file that was being begun
        with Inbox(folder) as inbox:
            assert len(inbox) == 0
    elif junk:
        with pytest.raises(JournalDamageError) as caught:
            Inbox(folder)
        assert (caught.value.path, caught.value.offset) == (str(folder / FILE), 0)
    shutil.rmtree(folder)
