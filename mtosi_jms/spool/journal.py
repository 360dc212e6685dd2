"""A durable journal in a folder: records appended to one file after another, each file dropped as a whole.

One process has the folder, one object of it; a lock says so. The folder is its owner's alone (0700, files 0600).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from mtosi_jms.errors import JournalDamageError, SpoolError, SpoolInUseError
from mtosi_jms.spool.files import make_folder, reporting, sync_folder, write_all
from mtosi_jms.spool.records import (
    FILE_HEAD,
    Record,
    decode_record,
    encode_record,
    new_file_head,
    read_records,
    salt_of,
)

_NAME: Final = re.compile(r"([0-9]{10})\.journal")
_LOCK: Final = "lock"
NOTE: Final = 128
"""Kinds of records from here on count for no file's size: what is written when a file goes must begin no new one."""


class Place(NamedTuple):
    """Where a record stands.

    Attributes:
        segment: number of the file.
        offset: of its first byte.
        size: its bytes.
    """

    segment: int
    offset: int
    size: int


class Journal:
    """See above. It has no lock against threads: who uses it has.

    Args:
        folder: made, for its owner alone, if it is not there.
        segment_bytes: size from which on another file is begun.

    Attributes:
        folder: the same.
        segments: numbers of the files, the oldest first; the last one is written to.
        segment_bytes: the same.

    Raises:
        SpoolInUseError: another process, or object, has the folder.
        SpoolError: it cannot be read or written.
    """

    def __init__(self, folder: Path, segment_bytes: int) -> None:
        self.folder = folder
        self.segments: list[int] = []
        self.segment_bytes = segment_bytes
        self._salts: dict[int, int] = {}
        self._file = -1
        self._end = self._synced = self._filled = 0
        self._broken = ""
        _make_private(folder)
        with reporting(folder):
            self._lock_file = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._take_lock()
            with reporting(folder):
                names = (_NAME.fullmatch(path.name) for path in folder.iterdir())
                self.segments = sorted(int(name[1]) for name in names if name is not None)
        except BaseException:
            self.close()
            raise

    def records(self) -> Iterator[tuple[int, Record]]:
        """Everything that is there, each record with the number of its file; to be read through once, before anything
        is appended.

        Raises:
            JournalDamageError: a file holds what was not written.
            SpoolError: one cannot be read.
        """
        end = 0
        for number in list(self.segments):
            path, last = self.path(number), number == self.segments[-1]
            with reporting(path):
                data = path.read_bytes()
            salt = salt_of(data, str(path))
            if salt is None and last:
                end = 0
                break
            if salt is None:
                raise JournalDamageError(str(path), 0)
            self._salts[number] = salt
            end, self._filled = FILE_HEAD, 0
            for record in read_records(data, str(path), salt, last=last):
                end = record.offset + record.size
                self._fill(record.kind, record.size)
                yield number, record
        self._go_on(end)

    def append(self, kind: int, meta: bytes, body: bytes = b"", *, sync: bool) -> Place:
        """Writes a record.

        Args:
            kind: 0 to 255.
            meta: facts.
            body: of a message.
            sync: whether it must outlive a crash of the machine; else it outlives that of the process.

        Raises:
            SpoolError: it could not be written; what stands there in part is taken back, or nothing more can be.
        """
        if self._filled >= self.segment_bytes and kind < NOTE:
            self.sync()
            self._begin(self.segments[-1] + 1)
        number = self.segments[-1]
        data = encode_record(kind, meta, body, synced=self._synced, salt=self._salts[number])
        place = Place(number, self._end, len(data))
        with reporting(self.path(number)):
            self._check()
            try:
                write_all(self._file, data)
                if sync:
                    os.fsync(self._file)
            except OSError as error:
                self._undo(error)
                raise
        self._end += len(data)
        self._fill(kind, len(data))
        if sync:
            self._synced = self._end
        return place

    def sync(self) -> None:
        """What was written outlives a crash of the machine from now on.

        Raises:
            SpoolError: it could not be synced.
        """
        with reporting(self.path(self.segments[-1])):
            self._check()
            try:
                os.fsync(self._file)
            except OSError as error:
                self._broken = error.strerror or "it could not be synced"
                raise
        self._synced = self._end

    def read(self, place: Place) -> Record:
        """A record that was written.

        Raises:
            JournalDamageError: it is not there as it was written.
            SpoolError: the file cannot be read.
        """
        path = self.path(place.segment)
        with reporting(path), path.open("rb") as file:
            data = os.pread(file.fileno(), place.size, place.offset)
        found = decode_record(data, 0, self._salts[place.segment])
        if found is None:
            raise JournalDamageError(str(path), place.offset)
        return found[0]

    def drop(self, number: int) -> None:
        """Removes a file other than the one that is written to.

        Raises:
            SpoolError: it cannot be removed.
        """
        path = self.path(number)
        with reporting(path):
            path.unlink(missing_ok=True)
            sync_folder(self.folder)
        self.segments.remove(number)
        self._salts.pop(number, None)

    def path(self, number: int) -> Path:
        """The file of a number."""
        return self.folder / f"{number:010d}.journal"

    def close(self) -> None:
        """Lets go of the folder; it may be called again."""
        for descriptor in (self._file, self._lock_file):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._lock_file = -1
        self._broken = self._broken or "the journal is closed"

    def _fill(self, kind: int, size: int) -> None:
        if kind < NOTE:
            self._filled += size

    def _take_lock(self) -> None:
        import fcntl  # the package imports where there is none

        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SpoolInUseError(str(self.folder), "another process, or object, has it open") from error
        except OSError as error:
            raise SpoolError(str(self.folder), f"it cannot be locked: {error.strerror}") from error

    def _check(self) -> None:
        if self._broken:
            raise SpoolError(str(self.folder), self._broken)

    def _undo(self, error: OSError) -> None:
        """Takes back a record that was not written whole. After a failed sync the system may have forgotten more."""
        self._broken = f"an earlier write failed: {error.strerror}"
        try:
            os.ftruncate(self._file, self._end)
            os.fsync(self._file)
        except OSError:
            return
        self._broken = ""

    def _go_on(self, end: int) -> None:
        """Opens the last file for writing, without what a crash left at its end."""
        if not self.segments or not end:
            self._begin(self.segments.pop() if self.segments else 1)
            return
        path = self.path(self.segments[-1])
        with reporting(path):
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            os.ftruncate(self._file, end)
            os.fsync(self._file)
        self._end = self._synced = end

    def _begin(self, number: int) -> None:
        path, head = self.path(number), new_file_head()
        with reporting(path):
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
            file = os.open(path, flags, 0o600)
            try:
                write_all(file, head)
                os.fsync(file)
                sync_folder(self.folder)
            except OSError:
                os.close(file)
                raise
        if self._file >= 0:
            os.close(self._file)
        self._file, self._filled = file, 0
        self._end = self._synced = FILE_HEAD
        self.segments.append(number)
        salt = salt_of(head, str(path))
        self._salts[number] = salt if salt is not None else 0


def _make_private(folder: Path) -> None:
    make_folder(folder.parent)
    with reporting(folder):
        try:
            folder.mkdir(mode=0o700)
            sync_folder(folder.parent)
        except FileExistsError:
            make_folder(folder)
