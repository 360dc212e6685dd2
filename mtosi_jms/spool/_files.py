"""Files that outlive a loss of power: each step is synced, each failure is a SpoolError with the path."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mtosi_jms.errors import SpoolError


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turns an operating system's error inside into a SpoolError that names the path."""
    try:
        yield
    except SpoolError:
        raise
    except OSError as exc:
        raise SpoolError(str(path), exc.strerror or str(exc)) from exc
    except ValueError as exc:  # a NUL in the path
        raise SpoolError(str(path), str(exc)) from exc


def write_synced(path: Path, data: bytes, *, new: bool) -> None:
    """Writes a whole file and syncs it, or leaves none, if the disk allows; `new`: it must not exist yet.

    Raises:
        FileExistsError: it exists, and `new` was asked for.
        OSError: it cannot be written whole.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL if new else os.O_TRUNC), 0o666)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    except OSError:
        remove(path)
        raise
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Removes a useless file; one that cannot be removed stays, and a reader reports it as left over."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes every byte; a single `write` may take fewer."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable: files made, renamed or removed there."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Makes a folder, and those above it, durably; no harm if it is there.

    Raises:
        SpoolError: it cannot be made, or written to.
    """
    with reporting(folder):
        missing = []
        above = folder
        while not above.exists():
            missing.append(above)
            above = above.parent
        folder.mkdir(parents=True, exist_ok=True)
        for made in missing:
            sync_folder(made.parent)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise SpoolError(str(folder), "no permission to write here")
