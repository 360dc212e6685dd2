"""The spool: byte for byte, type for type, in the order of arrival, whatever happened in between."""

from __future__ import annotations

import errno
import json
import math
import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError, SpoolError
from mtosi_jms.jms import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from mtosi_jms.jms.message import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    Byte,
    Char,
    DeliveryMode,
    Float,
    JmsMessage,
    Long,
    MessageType,
    Short,
    is_property_name,
)
from mtosi_jms.spool import Spool, entries, open_entry, scan
from mtosi_jms.spool._sidecar import Sidecar, decode_sidecar, encode_sidecar

NOW = 1_700_000_000_000
BODY = "<größe>\U0001f600</größe>\r\n\x00".encode()

FULL = JmsMessage(
    body=BODY,
    message_type=MessageType.BYTES,
    properties={
        "text": "ü\n\ud800",
        "truth": True,
        "integer": 1,
        "long": Long(1),
        "double": 1.0,
        "infinite": math.inf,
        "MTOSI_batchSequenceEndOfReply": False,
    },
    destination=Queue("MTOSI.R TO"),
    reply_to=TemporaryQueue("t-1", "connection-7"),
    delivery_mode=DeliveryMode.PERSISTENT,
    priority=9,
    time_to_live_ms=1_800_000,
    message_id="ID:1",
    timestamp_ms=NOW - 5,
    expiration_ms=NOW + 5,
    correlation_id="ID:0",
    jms_type="kind",
    redelivered=True,
    delivery_count=3,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "landing"


def exact(message: JmsMessage) -> tuple[Any, ...]:
    """A message with the types of what compares equal: True, 1, Long(1) and 1.0 are four things."""
    owner = getattr(message.reply_to, "owner", None)
    types = {name: type(value) for name, value in message.properties.items()}
    return message, types, type(message.priority), type(message.redelivered), owner


class TestRoundTrip:
    def test_everything_comes_back(self, folder: Path) -> None:
        written = Spool(folder).write(FULL, NOW)
        (read,) = entries(folder)
        assert exact(read.message()) == exact(FULL)
        assert read == written
        assert read.read_body() == BODY
        assert (read.received_ms, read.problem, read.damage()) == (NOW, "", "")
        assert read.facts is not None
        assert read.facts.body == b""

    def test_the_envelope_is_the_file(self, folder: Path) -> None:
        entry = Spool(folder).write(FULL, NOW)
        assert entry.path.read_bytes() == BODY
        assert entry.path.name == f"{entry.name}.xml"
        assert entry.name.startswith("1700000000000-000000-")
        assert entry.sha256 is not None
        assert entry.name.endswith(entry.sha256[:8])
        assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".xml"]

    @pytest.mark.parametrize(
        "destination", [None, Queue("q"), Topic("t"), TemporaryQueue("q", "c"), TemporaryTopic("t", "c")], ids=str
    )
    def test_destinations_keep_their_kind(self, folder: Path, destination: Destination | None) -> None:
        Spool(folder).write(JmsMessage(destination=destination, reply_to=destination), NOW)
        (read,) = entries(folder)
        assert read.facts is not None
        assert read.facts.reply_to == read.facts.destination == destination
        assert type(read.facts.reply_to) is type(destination)
        assert getattr(read.facts.reply_to, "owner", "") == getattr(destination, "owner", "")

    @given(
        st.builds(
            JmsMessage,
            message_type=st.sampled_from(MessageType),
            properties=st.dictionaries(
                st.from_regex(r"\A[A-Za-z_$][A-Za-z0-9_$]{0,6}\Z").filter(is_property_name),
                st.one_of(
                    st.text(),
                    st.booleans(),
                    st.floats(allow_nan=False),
                    st.integers(INT_MIN, INT_MAX),
                    st.integers(LONG_MIN, LONG_MAX).map(Long),
                    st.integers(-128, 127).map(Byte),
                    st.integers(-(2**15), 2**15 - 1).map(Short),
                    st.floats(allow_nan=False, width=32).map(Float),
                ),
            ),
            reply_to=st.none() | st.builds(Queue, st.text("ab/.-: ü", min_size=1)) | st.just(Topic("t")),
            priority=st.integers(0, 9),
            time_to_live_ms=st.integers(0, 2**60),
            message_id=st.none() | st.text(),
            timestamp_ms=st.none() | st.integers(0, 2**60),
            correlation_id=st.none() | st.text(),
            redelivered=st.booleans(),
            delivery_count=st.integers(1, 9),
        ),
        st.integers(0, 10**13 - 1),
    )
    def test_a_sidecar_round_trip(self, message: JmsMessage, received_ms: int) -> None:
        written = Sidecar(message, received_ms, "f" * 64, 5)
        read = decode_sidecar(encode_sidecar(written), Path("x.json"))
        assert exact(read.facts) == exact(message)
        assert read == written

    @pytest.mark.parametrize("kind", [MessageType.MAP, MessageType.STREAM])
    def test_content_comes_back_with_its_types(self, kind: MessageType) -> None:
        values = {"a": "x\0", "b": Byte(-1), "c": Char("ä"), "d": b"\xff", "e": None, "f": math.inf, "g": Float(0.5)}
        values |= {"h": Long(2**40), "i": Short(3), "j": True, "k": 7}
        written = JmsMessage(message_type=kind, content=values if kind is MessageType.MAP else list(values.values()))
        read = decode_sidecar(encode_sidecar(Sidecar(written, NOW, "f" * 64, 0)), Path("x.json")).facts
        assert read == written
        seen = read.content.values() if isinstance(read.content, Mapping) else read.content
        assert [type(one) for one in seen] == [type(one) for one in values.values()]

    def test_not_a_number(self) -> None:
        written = Sidecar(JmsMessage(properties={"n": math.nan}), NOW, "f" * 64, 0)
        value = decode_sidecar(encode_sidecar(written), Path("x.json")).facts.properties["n"]
        assert isinstance(value, float)
        assert math.isnan(value)


class TestOrder:
    def test_names_sort_by_arrival(self, folder: Path) -> None:
        """Also within a millisecond, and when the clock is set back."""
        spool = Spool(folder)
        times = [NOW, NOW, NOW, NOW + 1, NOW - 1000, NOW - 1000, NOW + 2]
        written = [spool.write(JmsMessage(body=b"%d" % n), at) for n, at in enumerate(times)]
        read = list(entries(folder))
        assert read == written
        assert [entry.received_ms for entry in read] == times

    def test_several_are_written_in_their_order(self, folder: Path) -> None:
        bodies = [b"%d" % number for number in range(40)]
        written = Spool(folder).write_all([JmsMessage(body=body) for body in bodies], NOW)
        assert list(entries(folder, strict=True)) == written
        assert [entry.read_body() for entry in written] == bodies

    def test_a_second_run_adds_behind_the_first(self, folder: Path) -> None:
        first = [Spool(folder).write(JmsMessage(body=b"1"), NOW)]
        second = Spool(folder)
        first += [second.write(JmsMessage(body=b"%d" % n), NOW - 10) for n in range(2)]
        assert list(entries(folder)) == first

    def test_new_folders_are_synced_into_those_above(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Else the power may take a landing's folder away, and every synced file with it."""
        synced: list[int] = []
        monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
        Spool(tmp_path / "a" / "b")
        assert {tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino} <= set(synced)

    def test_two_spools_at_once_overwrite_nothing(self, folder: Path) -> None:
        """Two processes may land in one folder: the same names would come up."""
        one, two = Spool(folder), Spool(folder)
        written = [spool.write(FULL, NOW) for spool in (one, two, one, two)]
        assert len({entry.name for entry in written}) == len(scan(folder).envelopes) == 4

    def test_an_envelope_whose_sidecar_was_lost_is_not_overwritten(self, folder: Path) -> None:
        spool = Spool(folder)
        other = Spool(folder)
        entry = spool.write(FULL, NOW)
        entry.path.with_suffix(".json").unlink()
        assert other.write(FULL, NOW).name != entry.name
        assert len(scan(folder).envelopes) == 2

    def test_numbers_overflow_into_the_next_millisecond(self, folder: Path) -> None:
        folder.mkdir()
        (folder / f"{NOW}-999999-00000000.xml").write_bytes(b"")
        entry = Spool(folder).write(JmsMessage(body=b"x"), NOW)
        assert entry.name.startswith(f"{NOW + 1}-000000-")

    @pytest.mark.parametrize("received_ms", [-1, 10**13, 1.5, True])
    def test_times_are_whole_milliseconds(self, folder: Path, received_ms: Any) -> None:
        with pytest.raises(ConfigError, match="received_ms"):
            Spool(folder).write(FULL, received_ms)


class TestLeftovers:
    def test_what_a_crash_leaves_is_reported_and_not_read(self, folder: Path) -> None:
        entry = Spool(folder).write(FULL, NOW)
        torn = folder / "1700000000001-000000-0a0a0a0a.xml.tmp"
        torn.write_bytes(b"<half")
        alone = folder / "1700000000001-000000-0a0a0a0a.json"
        alone.write_bytes(b'{"for')
        listing = scan(folder)
        assert listing.envelopes == (entry.path,)
        assert [leftover.path for leftover in listing.leftovers] == [alone, torn]
        assert all(leftover.reason for leftover in listing.leftovers)
        assert list(entries(folder)) == [entry]
        assert Spool(folder).write(FULL, NOW - 1).name.startswith("1700000000001-000001")

    def test_other_files_are_listed_apart(self, folder: Path) -> None:
        (folder / "sub.xml").mkdir(parents=True)
        for name in ("readme.txt", "other.json", "b.xml.gz", ".hidden", "_SUCCESS", "stray.xml", "stray.json"):
            (folder / name).write_bytes(b"x")
        listing = scan(folder)
        assert [path.name for path in listing.envelopes] == ["stray.xml"]
        assert [path.name for path in listing.others] == ["b.xml.gz", "other.json", "readme.txt"]
        assert listing.leftovers == ()

    @pytest.mark.parametrize("step", ["sidecar", "envelope", "rename"])
    def test_a_crash_at_any_step_leaves_all_or_nothing(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        """The process dies, so nothing is cleaned up: a BaseException, as a signal raises it."""

        class Died(BaseException):
            pass

        spool = Spool(folder)
        kept = spool.write(FULL, NOW)
        synced: list[int] = []
        sync = os.fsync

        def fsync(descriptor: int) -> None:
            synced.append(descriptor)
            if len(synced) == {"sidecar": 1, "envelope": 2}.get(step):
                raise Died
            sync(descriptor)

        def rename(self: Path, target: Path) -> Path:
            raise Died

        monkeypatch.setattr(os, "fsync", fsync)
        if step == "rename":
            monkeypatch.setattr(Path, "rename", rename)
        with pytest.raises(Died):
            spool.write(FULL, NOW)
        monkeypatch.undo()
        listing = scan(folder)
        assert listing.envelopes == (kept.path,)
        assert len(listing.leftovers) == (1 if step == "sidecar" else 2)


class TestDamage:
    @pytest.mark.parametrize(
        "change",
        [
            lambda document: document.clear(),
            lambda document: document.update(format=3),
            lambda document: document.update(received_ms="5"),
            lambda document: document.update(message_type="MapMessage"),
            lambda document: document.update(headers=[]),
            lambda document: document["headers"].update(JMSPriority=10),
            lambda document: document["headers"].update(JMSRedelivered=1),
            lambda document: document["headers"].update(JMSReplyTo="queue:X"),
            lambda document: document["headers"].update(JMSReplyTo={"kind": "pipe", "name": "X"}),
            lambda document: document["headers"].update(JMSReplyTo={"kind": "queue", "name": ""}),
            lambda document: document["headers"].update(JMSDeliveryMode=1),
            lambda document: document["properties"].update({"a b": {"type": "String", "value": "x"}}),
            lambda document: document["properties"].update({"a": {"type": "Integer", "value": "1"}}),
            lambda document: document["properties"].update({"a": {"type": "Integer", "value": True}}),
            lambda document: document["properties"].update({"a": {"type": "Double", "value": 1.0}}),
            lambda document: document["properties"].update({"a": {"type": "Double", "value": "x"}}),
            lambda document: document["properties"].update({"a": {"type": "Short", "value": 1}}),
            lambda document: document["properties"].update({"a": {"type": "Integer", "value": 2**31}}),
            lambda document: document["properties"].update({"a": 1}),
        ],
    )
    def test_a_damaged_sidecar_never_loses_the_envelope(self, folder: Path, change: Any) -> None:
        entry = Spool(folder).write(FULL, NOW)
        sidecar = entry.path.with_suffix(".json")
        document = json.loads(sidecar.read_bytes())
        change(document)
        sidecar.write_text(json.dumps(document))
        (read,) = entries(folder)
        assert (read.facts, read.sha256, read.received_ms) == (None, None, NOW)
        assert read.read_body() == BODY
        assert read.message() == JmsMessage(body=BODY)
        assert sidecar.name in read.problem
        assert read.damage() == read.problem
        with pytest.raises(SpoolError, match=r"damaged sidecar|sidecar format 3 is unknown") as caught:
            list(entries(folder, strict=True))
        assert caught.value.path == str(sidecar)

    @pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b"\xff", b"null", b"5", b'{"format": 1' + b"0" * 5000])
    def test_other_content_is_a_damaged_sidecar(self, folder: Path, data: bytes) -> None:
        entry = Spool(folder).write(FULL, NOW)
        entry.path.with_suffix(".json").write_bytes(data)
        assert "damaged sidecar" in next(iter(entries(folder))).problem

    @given(st.binary(max_size=60) | st.text('{}[]",:0123456789 tfn', max_size=60).map(str.encode))
    def test_any_bytes_at_all(self, data: bytes) -> None:
        with pytest.raises(SpoolError) as caught:
            decode_sidecar(data, Path("any.json"))
        assert caught.value.path == "any.json"

    def test_a_missing_sidecar(self, folder: Path) -> None:
        entry = Spool(folder).write(FULL, NOW)
        entry.path.with_suffix(".json").unlink()
        read = open_entry(entry.path)
        assert (read.facts, read.received_ms) == (None, NOW)
        assert read.read_body() == BODY
        assert "No such file" in read.problem
        with pytest.raises(SpoolError, match="No such file"):
            open_entry(entry.path, strict=True)

    def test_any_folder_of_envelopes_reads(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "stray.xml").write_bytes(BODY)
        (read,) = entries(folder)
        assert (read.name, read.received_ms, read.read_body()) == ("stray", None, BODY)

    @pytest.mark.parametrize("lose_sidecar", [False, True])
    def test_changed_bytes_are_reported(self, folder: Path, lose_sidecar: bool) -> None:
        """By the sidecar's hash, and without it by the name's."""
        entry = Spool(folder).write(FULL, NOW)
        entry.path.write_bytes(BODY + b"x")
        if lose_sidecar:
            entry.path.with_suffix(".json").unlink()
        (read,) = entries(folder)
        assert "not those that were received" in read.damage()
        assert read.read_body() == BODY + b"x"

    def test_an_envelope_that_cannot_be_read(self, folder: Path) -> None:
        entry = Spool(folder).write(FULL, NOW)
        entry.path.unlink()
        for action in (entry.read_body, entry.message, entry.damage):
            with pytest.raises(SpoolError) as caught:
                action()
            assert caught.value.path == str(entry.path)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The system refuses to write a file beyond this size, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestFailures:
    def test_a_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        for bad in (tmp_path / "file", tmp_path / "file" / "sub" / "sub", Path("/proc/none/landing")):
            with pytest.raises(SpoolError) as caught:
                Spool(bad)
            assert caught.value.path == str(bad)
        with pytest.raises(SpoolError, match="null"):
            Spool(f"{tmp_path}/a\x00b")

    def test_a_folder_without_permission(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.mkdir(mode=0o500)
        if os.geteuid() == 0:  # root may write everywhere: say what the system would say to others
            monkeypatch.setattr(os, "access", lambda path, mode: False)
        with pytest.raises(SpoolError, match="no permission") as caught:
            Spool(folder)
        assert caught.value.path == str(folder)

    def test_a_folder_that_is_not_there(self, folder: Path) -> None:
        for action in (lambda: scan(folder), lambda: list(entries(folder))):
            with pytest.raises(SpoolError) as caught:
                action()
            assert caught.value.path == str(folder)

    def test_a_folder_that_was_removed(self, folder: Path) -> None:
        spool = Spool(folder)
        folder.rmdir()
        with pytest.raises(SpoolError, match="No such file"):
            spool.write(FULL, NOW)

    def test_a_disk_that_ends_in_the_middle_of_the_envelope(self, folder: Path) -> None:
        spool = Spool(folder)
        with largest_file(65_536), pytest.raises(SpoolError, match="too large") as caught:
            spool.write(JmsMessage(body=b"x" * 1_000_000), NOW)
        assert caught.value.path.endswith(".xml")
        assert list(folder.iterdir()) == []
        assert spool.write(JmsMessage(body=b"x"), NOW).damage() == ""

    @pytest.mark.parametrize("which", [1, 2, 3])
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
    def test_a_disk_that_cannot_sync(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, which: int, number: int
    ) -> None:
        """The sidecar, the envelope, the folder: each failure is told, and nothing half-written stays."""
        spool = Spool(folder)
        calls: list[int] = []

        def fsync(descriptor: int) -> None:
            calls.append(descriptor)
            if len(calls) == which:
                raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(SpoolError) as caught:
            spool.write(FULL, NOW)
        assert os.strerror(number) in str(caught.value)
        assert scan(folder).leftovers == ()
        assert len(scan(folder).envelopes) == (1 if which == 3 else 0)

    @given(sizes=st.lists(st.integers(1, 7), max_size=40))
    def test_short_writes_are_continued(self, sizes: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
        """The system may take fewer bytes than it was given."""
        folder = tmp_path_factory.mktemp("short")
        steps = iter(sizes)
        write = os.write
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[: next(steps, len(data))]))
            entry = Spool(folder).write(FULL, NOW)
        assert exact(entry.message()) == exact(FULL)
        assert open_entry(entry.path) == entry
