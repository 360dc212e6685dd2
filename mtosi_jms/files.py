"""Files in the ways of every system: locks between processes, and what survives a loss of power."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["lock_file", "sync"]

_PAUSE = 0.005


def lock_file(path: Path, *, seconds: float = 0.0) -> sqlite3.Connection | None:
    """Lock a file against other processes, and against others in this one.

    The lock is an SQLite transaction on the file, which stays empty: SQLite knows how each system locks. On POSIX the
    lock goes when this process closes the file by other means, so nothing else may open it.

    Args:
        path: the file. If it is missing, it is made, for its owner alone. Whoever holds its lock may remove it.
        seconds: how long to wait for another holder.

    Returns:
        What holds the lock until it is closed, or this process ends; None if another one holds it.

    Raises:
        OSError: the file cannot be made or locked.
    """
    give_up = time.monotonic() + seconds
    while (lock := _try(path)) is None and time.monotonic() < give_up:
        time.sleep(_PAUSE)
    return lock


def _try(path: Path) -> sqlite3.Connection | None:
    while True:
        before = _identity(path)
        try:
            lock = sqlite3.connect(path, 0, isolation_level=None, check_same_thread=False)
            try:
                lock.execute("BEGIN EXCLUSIVE")
            except BaseException:
                lock.close()
                raise
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                return None
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # the system may say more
            raise OSError(errno.EIO, f"cannot be locked: {error}", str(path)) from error
        if before is not None and before == _identity(path):
            return lock
        if before is None:  # SQLite has made it for all to read
            with suppress(FileNotFoundError):
                path.chmod(0o600)
        lock.close()  # else its holder removed the file before it let go: this lock keeps nobody out


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
