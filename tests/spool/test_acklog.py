"""The acknowledgement log, and what kill -9 leaves of a landing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import SpoolError
from mtosi_jms.jms.message import Long
from mtosi_jms.spool import AckLog, Acknowledgement, entries, open_entry, read_acknowledgements, scan

ONE = Acknowledgement("1700000000000-000000-00000000", "corr ü\n", 1, "f" * 64)
TWO = Acknowledgement("1700000000000-000001-00000000", None, None, "0" * 64)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "ack.jsonl"


def test_lines_come_back(path: Path) -> None:
    with AckLog(path) as log:
        assert read_acknowledgements(path) == []
        log.append(ONE)
        log.append(TWO)
        assert read_acknowledgements(path) == [ONE, TWO]
    assert path.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize("torn", [b"{", b'{"entry": "x"', b"\x00" * 200_000, b'{"entry":"a","correlation_id":null}'])
def test_a_torn_last_line_is_ignored(path: Path, torn: bytes) -> None:
    with AckLog(path) as log:
        log.append(ONE)
    with path.open("ab") as file:
        file.write(torn)
    assert read_acknowledgements(path) == [ONE]
    with AckLog(path) as log:
        log.append(TWO)
    assert read_acknowledgements(path) == [ONE, TWO]


@given(cut=st.integers(0, 300))
def test_a_cut_at_any_byte_loses_only_the_last_line(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("cut") / "ack"
    with AckLog(path) as log:
        log.append(ONE)
        log.append(TWO)
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    expected = [ONE, TWO][: whole[:cut].count(b"\n")]
    assert read_acknowledgements(path) == expected
    with AckLog(path) as log:
        log.append(TWO)
    assert read_acknowledgements(path) == [*expected, TWO]


@pytest.mark.parametrize(
    "line",
    [b"", b"{}", b"[1]", b"null", b"[" * 100_000, b'{"entry":1,"correlation_id":null,"batch_number":1,"sha256":""}'],
)
def test_a_damaged_line_within_is_an_error(path: Path, line: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(line + b"\n")
    with pytest.raises(SpoolError, match="line 1 is damaged") as caught:
        read_acknowledgements(path)
    assert caught.value.path == str(path)


def test_each_line_is_synced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with AckLog(path) as log:
        sizes: list[int] = []
        monkeypatch.setattr(os, "fsync", lambda descriptor: sizes.append(os.fstat(descriptor).st_size))
        log.append(ONE)
        log.append(TWO)
        assert sizes == [path.read_bytes().index(b"\n") + 1, path.stat().st_size]


def test_failures_are_spool_errors(path: Path, tmp_path: Path) -> None:
    with pytest.raises(SpoolError) as caught:
        read_acknowledgements(path)
    assert caught.value.path == str(path)
    with pytest.raises(SpoolError):
        AckLog(tmp_path)
    log = AckLog(path)
    log.close()
    log.close()
    with pytest.raises(SpoolError, match="closed"):
        log.append(ONE)


def test_kill_9_loses_nothing_that_was_acknowledged(root: Path, tmp_path: Path) -> None:
    """A process that lands and acknowledges is killed at random moments; each run adds to what the last one left."""
    folder, log = tmp_path / "landing", tmp_path / "ack.jsonl"
    dice = random.Random(20_080_501)
    command = [sys.executable, str(Path(__file__).with_name("landing_process.py")), str(folder), str(log)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    for _ in range(6):
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(dice.uniform(0.0, 0.25))
            process.kill()
            assert process.wait() == -signal.SIGKILL
    acknowledged = read_acknowledgements(log)
    assert len(acknowledged) >= 6
    for line in acknowledged:
        entry = open_entry(folder / f"{line.entry}.xml", strict=True)
        assert entry.damage() == ""
        assert (entry.sha256, entry.facts is not None) == (line.sha256, True)
        number = entry.message().properties["number"]
        assert number == line.batch_number
        assert entry.message().properties["long"] == Long(number)
        assert entry.read_body().startswith(f"<batch>{number}</batch>".encode())
    landed = list(entries(folder, strict=True))
    assert len(landed) - len(acknowledged) <= 6, "at most the one in hand at each kill was landed and not logged"
    assert [line.entry for line in acknowledged] == sorted(line.entry for line in acknowledged)
    assert len(scan(folder).leftovers) <= 2 * 6
