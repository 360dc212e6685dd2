"""The folder of an outbox or inbox: private to its user, with lock files and a reserve for a full disk.

`lock` is locked while a folder is opened, and by an outbox as long as it is open. Each open inbox locks an
`owner-*.lock`, by which others see whether it lives. `reserve` is removed when the disk is full: in SQLite even a
deletion needs space."""

from __future__ import annotations

import logging
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Final

from mtosi_jms.compression import scheme_of
from mtosi_jms.errors import SpoolError, SpoolInUseError
from mtosi_jms.files import FileLock, sync


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turns an error of the operating system in the block into a SpoolError that names the path."""
    try:
        yield
    except SpoolError:
        raise
    except OSError as exc:
        raise SpoolError(str(path), exc.strerror or str(exc)) from exc
    except ValueError as exc:  # a NUL in the path
        raise SpoolError(str(path), str(exc)) from exc


def write_synced(path: Path, data: bytes, *, new: bool) -> None:
    """Writes a whole file and syncs it; after a failure no file is left, as far as the disk allows. Raises
    FileExistsError with `new`; OSError."""
    file = path.open("xb" if new else "wb", buffering=0)
    try:
        with file:
            write_all(file.fileno(), data)
            os.fsync(file.fileno())
    except OSError:
        remove(path)
        raise


def remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def check_here(folder: Path) -> None:
    """Raises SpoolError for the address of an object store or the like, which is no folder of this machine."""
    if scheme := scheme_of(folder):
        raise SpoolError(str(folder), f"must be a folder on a file system of this machine, and {scheme}: is none")


def make_folder(folder: Path) -> None:
    """Makes a folder, and those above it, durably. No effect if it exists. Raises SpoolError."""
    check_here(folder)
    with reporting(folder):
        missing = []
        above = folder
        while not above.exists():
            missing.append(above)
            above = above.parent
        folder.mkdir(parents=True, exist_ok=True)
        for made in missing:
            sync(made.parent)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise SpoolError(str(folder), "no permission to write here")


log = logging.getLogger(__package__)

LOCK: Final = "lock"
_RESERVE: Final = "reserve"
_ROOM: Final = 4 * 1024 * 1024
"""Size of the reserve in bytes, if the file system has at least eight times as many."""
_PATIENCE: Final = 30.0
"""Seconds to wait while others open the folder."""


class PrivateFolder:
    """The folder of an outbox or inbox. `room`: bytes of the reserve. Raises SpoolError: others may read it, or we
    cannot."""

    def __init__(self, path: Path, *, make: bool) -> None:
        self.path = path
        self._locks: list[FileLock] = []
        if make:
            _make(path)
        _check(path)
        with reporting(path):
            self.room = min(_ROOM, shutil.disk_usage(path).total // 8)

    def lock(self, name: str, *, wait: bool) -> FileLock:
        """Locks a file until the folder is closed. Raises SpoolInUseError: another process or object has locked it."""
        self._locks.append(FileLock(self.path / name))
        with reporting(self.path / name):
            if not self._locks[-1].take(seconds=_PATIENCE if wait else 0):
                raise SpoolInUseError(str(self.path), "another process, or object, has it open")
        return self._locks[-1]

    def enter(self, owner: str) -> None:
        """Locks the file of an inbox that is being opened, and removes the files of dead processes."""
        for path in self.path.glob("owner-*.lock"):
            self.lives(path.name.removeprefix("owner-").removesuffix(".lock"))
        self.lock(f"owner-{owner}.lock", wait=False)

    def lives(self, owner: str) -> bool:
        path = self.path / f"owner-{owner}.lock"
        with suppress(OSError, ValueError), FileLock(path) as lock:
            if path.exists():
                if not lock.take():
                    return True
                path.unlink(missing_ok=True)
        return False

    def free(self) -> int:
        with reporting(self.path):
            return shutil.disk_usage(self.path).free

    def has_reserve(self) -> bool:
        """Whether there is a reserve. If so, a database was made."""
        return (self.path / _RESERVE).exists()

    def make_reserve(self) -> None:
        path = self.path / _RESERVE
        if self.has_reserve():
            return
        try:
            with FileIO(path, "a", opener=private) as file:
                if hasattr(os, "posix_fallocate"):  # macOS has none
                    os.posix_fallocate(file.fileno(), 0, self.room)
                else:
                    write_all(file.fileno(), bytes(self.room))
        except OSError as error:
            path.unlink(missing_ok=True)
            log.warning("%s: no room for a reserve: %s", self.path, error.strerror)

    def give_up_reserve(self) -> bool:
        with suppress(OSError):
            (self.path / _RESERVE).unlink()
            log.warning("%s: the disk is full; the reserve is given up to settle messages", self.path)
            return True
        return False

    def close(self) -> None:
        for lock in self._locks:
            lock.close()


def private(path: str, flags: int) -> int:
    """Opens a file for `open`; one that is new belongs to its owner alone."""
    return os.open(path, flags, 0o600)


def _make(folder: Path) -> None:
    check_here(folder)
    make_folder(folder.parent)
    with reporting(folder), suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        sync(folder.parent)


def _check(folder: Path) -> None:
    """Refuses a folder that other users may read or write, or that has links."""
    with reporting(folder):
        status = folder.stat()
        if not stat.S_ISDIR(status.st_mode):
            raise SpoolError(str(folder), "is not a folder")
        if not hasattr(os, "geteuid"):
            return  # who may read it stands in lists of Windows, which a folder takes from the one above
        if status.st_uid != os.geteuid():
            raise SpoolError(str(folder), f"is another user's (uid {status.st_uid}); only its owner may use it")
        if status.st_mode & 0o077:
            reason = f"is not its owner's alone (mode {stat.S_IMODE(status.st_mode):04o})"
            raise SpoolError(str(folder), f"{reason}; chmod 700 it, or name a new one")
        for path in folder.iterdir():
            with suppress(FileNotFoundError):  # others at work make and remove files
                status = path.lstat()
                if stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid():
                    raise SpoolError(str(path), "is a symbolic link, or another user's; it must not be in this folder")
