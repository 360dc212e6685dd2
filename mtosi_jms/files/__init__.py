"""Files in the ways of every system: locks between processes, and what survives a loss of power."""

from __future__ import annotations

import os
import time
from io import FileIO
from pathlib import Path
from typing import Any, Final

from mtosi_jms.closing import Closeable

__all__ = ["FileLock", "sync"]

_PAUSE: Final = 0.005
"""Seconds between two tries."""


class FileLock(Closeable):
    """A lock on a file against other processes, and against others in this one; not locked at first.

    The system releases it when the process ends.

    Args:
        path: the file. If it is missing, it is made, for its owner alone. Whoever holds its lock may remove it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None

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
        while self._file is None:
            # It is held by this object before it is locked: an interrupt may come at any moment.
            self._file = FileIO(self._path, "a", opener=_private)
            try:
                if not _lock(self._file.fileno()):
                    self.close()
                    return False
            except OSError as error:
                self.close()
                raise OSError(error.errno, error.strerror, str(self._path)) from error
            if not self._is_there(self._file):
                self.close()  # its holder removed the file before it let go: this lock keeps nobody out
        return True

    def _is_there(self, file: FileIO) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Let it go. May be called again."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner may read, without following a link where the system can refuse one."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        windows: Any = msvcrt
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            windows.locking(descriptor, windows.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True
    posix: Any = fcntl
    try:
        posix.flock(descriptor, posix.LOCK_EX | posix.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
