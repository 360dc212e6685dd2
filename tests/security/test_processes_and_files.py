"""What other users of the machine can see: command lines of processes, and files."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mtosi_jms.bridge.corba import OrbOptions
from mtosi_jms.broker import Endpoints
from mtosi_jms.broker._process import write_private
from mtosi_jms.cli import parser_for
from mtosi_jms.errors import MtosiError
from mtosi_jms.jms import JmsMessage
from mtosi_jms.spool import Spool
from mtosi_jms.transport import connect

MARK = "S3cr3t-Mark"
PATIENCE = 120
OTHERS = stat.S_IRWXG | stat.S_IRWXO

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


def command_lines(pid: int) -> Iterator[str]:
    """Of a process and of all that came from it, as the list of processes shows them."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    for one in parents:
        above = one
        while above not in (pid, 0, 1):
            above = parents.get(above, 0)
        try:
            if above == pid:
                yield Path(f"/proc/{one}/cmdline").read_text(errors="replace")
        except OSError:
            continue


@pytest.mark.obligation("SEC24")
@linux
@pytest.mark.broker
@pytest.mark.parametrize("kind", ["activemq", "artemis"])
def test_a_broker_of_ours(kind: str, request: pytest.FixtureRequest) -> None:
    broker = request.getfixturevalue(kind)
    (shown,) = command_lines(broker.pid)
    assert "java" in shown
    assert broker.endpoints.password not in shown


@pytest.mark.obligation("SEC25")
@pytest.mark.broker
@pytest.mark.parametrize("kind", ["activemq", "artemis"])
def test_files_of_a_broker_that_hold_its_password(kind: str, request: pytest.FixtureRequest) -> None:
    broker = request.getfixturevalue(kind)
    files = [path for path in broker.log.parent.rglob("*") if path.suffix in (".xml", ".properties", ".log", ".config")]
    holding = [path for path in files if broker.endpoints.password in path.read_text(errors="replace")]
    assert holding
    assert [path.name for path in holding if path.stat().st_mode & OTHERS] == []


@pytest.mark.obligation("SEC25")
def test_a_private_file_is_private_whatever_was_there(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        file = tmp_path / "file"
        file.write_text("x" * 100)
        file.chmod(0o644)
        write_private({file: "password", tmp_path / "new": "password"}, [tmp_path / "a" / "b"])
    finally:
        os.umask(before)
    assert file.read_text() == "password"
    assert [path.stat().st_mode & OTHERS for path in (file, tmp_path / "new", tmp_path / "a" / "b")] == [0, 0, 0]


CHILD = """
import subprocess, sys
from mtosi_jms.cli.providers import mask_url
mask_url(sys.argv[1])
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
print("ready", flush=True)
sys.stdin.read()
child.stdin.close()
child.wait()
"""


@pytest.mark.obligation("SEC24")
@linux
def test_a_url_of_the_command_line_is_masked_and_goes_to_no_child() -> None:
    url = f"failover:(stomp://noc:{MARK}@a,stomp://noc:{MARK}@b)"
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    shown = list(command_lines(process.pid))
    process.communicate(timeout=PATIENCE)
    assert len(shown) == 2
    assert [line for line in shown if MARK in line] == []
    assert any("noc:***" in line for line in shown)


def test_no_password_stands_in_what_broker_status_says_of_a_broker_that_ended(tmp_path: Path) -> None:
    """The file of a broker's folder is read by `broker`; what is wrong with it is told without what it holds."""
    (tmp_path / "service.json").write_text(json.dumps({"password": MARK, "pid": "x"}))
    done = subprocess.run(
        [sys.executable, "-m", "mtosi_jms", "broker", "status", "--dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert MARK not in done.stdout + done.stderr


@pytest.mark.parametrize("file", ["binary", "folder", "empty"])
def test_password_files_that_cannot_be_used(tmp_path: Path, file: str) -> None:
    (tmp_path / "binary").write_bytes(f"\xff{MARK}".encode("latin-1"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").write_text(f"\n{MARK}")
    with pytest.raises(MtosiError) as caught:
        connect("stomp://h", password_file=tmp_path / file)
    assert MARK not in f"{caught.value} {caught.value.__cause__!r}"
    assert MARK not in repr(Endpoints({}, "noc", MARK))


def heard_at(pid: int) -> set[str]:
    """The addresses at which a process listens, as hexadecimal digits of the kernel."""
    found = set()
    inodes = {str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()}
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                found.add(fields[1].partition(":")[0])
    return found


LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


@linux
@pytest.mark.broker
@pytest.mark.obligation("SEC26")
@pytest.mark.parametrize("kind", ["activemq", "artemis"])
def test_a_broker_listens_on_loopback_alone(kind: str, request: pytest.FixtureRequest) -> None:
    found = heard_at(request.getfixturevalue(kind).pid)
    assert found
    assert found <= LOOPBACK


@pytest.mark.obligation("SEC26")
def test_an_orb_listens_on_loopback_unless_told_otherwise() -> None:
    assert OrbOptions().listen == "127.0.0.1"
    words = ["bridge", "--from", "corbaloc::a/b", "--to", "topic:A"]
    assert parser_for("bridge").parse_args(words).listen_host == "127.0.0.1"


@pytest.mark.obligation("SEC25")
@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_the_umask_says_who_may_read_a_landing(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        Spool(tmp_path / "landing").write(JmsMessage(body=b"<a/>", properties={"a": 1}), 0)
    finally:
        os.umask(before)
    found = list((tmp_path / "landing").rglob("*"))
    assert len([path for path in found if path.is_file()]) >= 2
    assert [path for path in (tmp_path / "landing", *found) if path.stat().st_mode & OTHERS] == []
