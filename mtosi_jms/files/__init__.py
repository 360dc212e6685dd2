"""Files in the ways of every system: locks between processes, and what survives a loss of power."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from mtosi_jms.closing import Closeable

__all__ = ["FileLock", "sync"]

_PAUSE = 0.005


class FileLock(Closeable):
    """A lock on a file against other processes, and against others in this one; not locked at first.

    It is an SQLite transaction on the file, which stays empty: SQLite knows how each system locks. On POSIX the lock
    goes when this process closes the file by other means, so nothing else may open it. It ends with the process.

    Args:
        path: the file. If it is missing, it is made, for its owner alone. Whoever holds its lock may remove it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: sqlite3.Connection | None = None

    def take(self, *, seconds: float = 0.0) -> bool:
        """Lock the file; return False if another one holds it.

        Args:
            seconds: how long to wait for another holder.

        Raises:
            OSError: the file cannot be made or locked.
        """
        give_up = time.monotonic() + seconds
        while not self._take():
            if time.monotonic() >= give_up:
                return False
            time.sleep(_PAUSE)
        return True

    def _take(self) -> bool:
        while True:
            before = _identity(self._path)
            try:
                # It is held by this object before it is locked: an interrupt may come at any moment.
                self._held = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
                self._held.execute("BEGIN EXCLUSIVE")
            except sqlite3.Error as error:
                self.close()
                if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                    return False
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))  # the system may say more
                raise OSError(errno.EIO, f"cannot be locked: {error}", str(self._path)) from error
            if before is not None and before == _identity(self._path):
                return True
            if before is None:  # SQLite has made it for all to read
                with suppress(FileNotFoundError):
                    self._path.chmod(0o600)
            self.close()  # else its holder removed the file before it let go: this lock keeps nobody out

    def close(self) -> None:
        """Let it go. May be called again."""
        held, self._held = self._held, None
        if held is not None:
            held.close()


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns


def sync(path: Path) -> None:
    """Make a file durable, or the names in a folder: those of files that were made, renamed or removed.

    Windows keeps the names in folders by itself.

    Raises:
        OSError: the file system cannot do that.
    """
    flags = os.O_RDONLY
    if os.name == "nt":
        if path.is_dir():
            return
        flags = os.O_RDWR  # it syncs no file that is only read
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
