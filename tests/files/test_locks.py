"""Locks of files between processes and threads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mtosi_jms.files import FileLock, sync

HOLDER = """
import sys
from pathlib import Path
from mtosi_jms.files import FileLock
lock = FileLock(Path(sys.argv[1]))
print(lock.take(), flush=True)
sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ü ?#%.lock"


def test_one_process_has_it_until_it_ends(path: Path) -> None:
    with FileLock(path) as lock, holder(path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        assert not lock.take()
        other.kill()
        assert lock.take(seconds=30)
        with FileLock(path) as second, holder(path) as third:
            assert not second.take()  # and takes nothing from the holder
            assert third.communicate("")[0] == "False\n"
        assert (path.stat().st_size, path.stat().st_mode & 0o777) == (0, 0o600)


def test_one_of_many_threads_has_it(path: Path) -> None:
    most = inside = 0

    def work() -> None:
        nonlocal most, inside
        for _ in range(10):
            with FileLock(path) as lock:
                assert lock.take(seconds=60)
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without forks")
def test_a_fork_does_not_keep_it(path: Path) -> None:
    with FileLock(path) as lock, FileLock(path) as other:
        assert lock.take()
        child = os.fork()
        if not child:
            lock.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert not other.take()


def test_what_cannot_be_a_lock_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for wrong in tmp_path, tmp_path / "missing" / "lock", tmp_path / "link":
        with FileLock(wrong) as lock, pytest.raises(OSError, match=re.escape(str(wrong))):
            lock.take()


def test_a_lock_file_that_its_holder_removed_keeps_nobody_out(path: Path) -> None:
    with FileLock(path) as first, FileLock(path) as second:
        assert first.take()
        path.unlink()
        assert second.take()
        assert path.exists()


def test_files_and_folders_are_synced(tmp_path: Path, path: Path) -> None:
    path.write_bytes(b"x")
    sync(path)
    sync(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync(tmp_path / "missing")
