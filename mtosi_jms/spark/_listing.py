"""A listing of a landing, for loads and streams that remember which files were read. The driver plans the new ones.

On this machine the driver lists and reads the files; on a Hadoop file system Spark's tasks do (`EngineListing`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

from mtosi_jms.errors import SpoolError
from mtosi_jms.spark._index import SeenFile
from mtosi_jms.tables.files import SHELF, Reject, Sieve, input_files, raw_bytes, unreadable
from mtosi_jms.tables.landing import Plan, PlannedFile, Scanned, plan_scanned, scan_file
from mtosi_jms.tables.options import SourceOptions

_CHUNK: Final = 1024 * 1024
_AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True)
class Scan:
    """A file that was read.

    Attributes:
        path: of the file.
        sha256: of its bytes, without decompression.
        scanned: its messages and rejects.
    """

    path: str
    sha256: str
    scanned: tuple[Scanned, ...]


class Listing(Protocol):
    """A listed landing."""

    @property
    def files(self) -> Mapping[str, SeenFile]:
        """Its files by path, archives unopened."""

    @property
    def rejects(self) -> tuple[Reject, ...]:
        """Folders and files that cannot be listed."""

    def look(self, paths: Iterable[str], options: SourceOptions) -> Iterator[Scan]:
        """Read some of the files.

        Raises:
            SpoolError: a file cannot be read, or is gone.
        """

    def plan(
        self,
        scanned: Iterable[Scanned],
        options: SourceOptions,
        known: Mapping[str, tuple[PlannedFile, ...]],
        recalled: Iterable[str],
    ) -> Plan:
        """Plan documents in these files, as `plan_scanned` does."""


class LocalListing:
    """A landing on this machine's file systems."""

    def __init__(self, paths: Iterable[str], sieve: Sieve) -> None:
        """List the landing.

        Args:
            paths: of the landing.
            sieve: conditions on its files.

        Raises:
            SpoolError: the landing does not exist or cannot be read.
        """
        self.files: dict[str, SeenFile] = {}
        rejects: list[Reject] = []
        for path in input_files(paths, rejects, sieve):
            try:
                self.files[path] = SeenFile.look(path)
            except SpoolError as error:
                rejects.append(unreadable(error, path))
        self.rejects = tuple(rejects)

    def look(self, paths: Iterable[str], options: SourceOptions) -> Iterator[Scan]:
        paths = list(paths)
        with ThreadPoolExecutor(_AT_ONCE) as pool, SHELF.held():
            for path, digest in zip(paths, pool.map(checksum, paths), strict=True):
                yield Scan(path, digest, tuple(scan_file(path, options)))

    def plan(
        self,
        scanned: Iterable[Scanned],
        options: SourceOptions,
        known: Mapping[str, tuple[PlannedFile, ...]],
        recalled: Iterable[str],
    ) -> Plan:
        with SHELF.held():
            return plan_scanned(scanned, options, known, recalled)


def checksum(path: str) -> str:
    """Return the SHA-256 of the bytes of a file, without decompression.

    Raises:
        SpoolError: the file cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with raw_bytes(path) as stream:
            while data := stream.read(_CHUNK):
                digest.update(data)
    except OSError as error:
        raise SpoolError(path, error.strerror or str(error)) from error
    return digest.hexdigest()
