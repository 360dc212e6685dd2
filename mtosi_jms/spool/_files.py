"""Files that survive a loss of power: each step is synced. Each failure is a SpoolError with the path."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mtosi_jms.compression import scheme_of
from mtosi_jms.errors import SpoolError
from mtosi_jms.files import sync


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
