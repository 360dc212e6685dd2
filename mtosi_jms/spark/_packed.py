"""Members of packed files under paths of their own, `/landing/a.tar.gz!/000001.xml`, for all that opens files by path.

An archive that was opened stays open for the next of its members while somebody holds the shelf: the table of contents
is read once, and a TAR inside GZIP unpacked once, for each reading of a partition and not for each member. One archive
at most is kept that is not being read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from mtosi_jms.bulk import SEPARATOR, Archive
from mtosi_jms.errors import SpoolError

Identity = tuple[str, int, int]


def split_member(path: str) -> tuple[str, str]:
    """A path as archive and member; the member is empty for a file that is none."""
    archive, separator, member = path.partition(SEPARATOR)
    while separator and not os.path.exists(path):  # noqa: PTH110
        if os.path.isfile(archive):  # noqa: PTH113
            return archive, member
        more, separator, member = member.partition(SEPARATOR)
        archive += SEPARATOR + more
    return path, ""


@dataclass(slots=True)
class _Kept:
    archive: Archive
    readers: int = 0


class ArchiveShelf:
    """Open archives by file; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Identity, _Kept] = {}
        self._holders = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """While this lasts the archive that was read last stays open."""
        with self._lock:
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                self._clear(None)

    @contextmanager
    def archive(self, path: str) -> Iterator[Archive]:
        """A file as an archive, open.

        Raises:
            ArchiveError: damaged, unsafe or too large.
            SpoolError: it cannot be read.
        """
        key = _identity(path)
        with self._lock:
            self._clear(key)
            if key not in self._kept:
                self._kept[key] = _Kept(Archive(path))
            kept = self._kept[key]
            kept.readers += 1
        try:
            yield kept.archive
        finally:
            with self._lock:
                kept.readers -= 1
                self._clear(key)

    @contextmanager
    def member(self, path: str, name: str) -> Iterator[IO[bytes]]:
        """The bytes of a member, unpacked.

        Raises:
            ArchiveError, SpoolError: as for `archive`; ArchiveError also while it is read.
        """
        with self.archive(path) as archive, archive.open(name) as stream:
            yield stream

    def _clear(self, but: Identity | None) -> None:
        for key, kept in list(self._kept.items()):
            if not kept.readers and not (self._holders and key == but):
                del self._kept[key]
                kept.archive.close()


SHELF: Final = ArchiveShelf()


def _identity(path: str) -> Identity:
    """A file as it is now: one that was replaced is another."""
    try:
        facts = Path(path).stat()
    except OSError as error:
        raise SpoolError(path, error.strerror or str(error)) from error
    return path, facts.st_mtime_ns, facts.st_ino
