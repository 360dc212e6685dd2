"""The records of a journal's file: framed, with checksums, so that what was written is told from what was not.

A file begins with a salt that goes into every checksum: bytes of another journal, carried in a body, are no records.
A record says how far the file had been synced when it was written. Bytes that are no record, with a record behind them
that counts on them, are damage. With none behind them they are what a crash left of the last writes, and say nothing.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mtosi_jms.errors import JournalDamageError

_MAGIC: Final = b"MTOSI-J1"
_MARK: Final = b"MJr\x01"
_SALT: Final = 8
_CHECK: Final = struct.Struct(">I")
_HEAD: Final = struct.Struct(">4sBQIII")

FILE_HEAD: Final = len(_MAGIC) + _SALT + _CHECK.size
"""Bytes before the first record."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    Attributes:
        kind: what it says, 0 to 255.
        meta: facts, as the writer encoded them.
        body: of a message; empty where the record has none.
        offset: of its first byte in the file.
        size: its bytes.
    """

    kind: int
    meta: bytes
    body: bytes
    offset: int
    size: int


def new_file_head() -> bytes:
    """The beginning of a new file, with a salt of its own."""
    start = _MAGIC + os.urandom(_SALT)
    return start + _CHECK.pack(zlib.crc32(start))


def salt_of(data: bytes, path: str) -> int | None:
    """What the checksums of a file begin with; None: a crash has cut it off before there was any record.

    Raises:
        JournalDamageError: it does not begin as a journal's file does.
    """
    start, check = data[: FILE_HEAD - _CHECK.size], data[FILE_HEAD - _CHECK.size : FILE_HEAD]
    if len(data) >= FILE_HEAD and start.startswith(_MAGIC) and check == _CHECK.pack(zlib.crc32(start)):
        return zlib.crc32(start)
    if len(data) <= FILE_HEAD:
        return None
    raise JournalDamageError(path, 0)


def encode_record(kind: int, meta: bytes, body: bytes, *, synced: int, salt: int) -> bytes:
    """A record as it stands in the file.

    Args:
        kind: 0 to 255.
        meta: facts.
        body: of a message.
        synced: bytes of the file that are safe already.
        salt: of the file.
    """
    check = _check(kind, synced, meta, body, salt)
    return _HEAD.pack(_MARK, kind, synced, len(meta), len(body), check) + meta + body


def decode_record(data: bytes, offset: int, salt: int) -> tuple[Record, int] | None:
    """The record at an offset, and how much of the file it takes for safe; None: there is none."""
    if len(data) - offset < _HEAD.size:
        return None
    mark, kind, synced, meta_size, body_size, check = _HEAD.unpack_from(data, offset)
    begin = offset + _HEAD.size
    end = begin + meta_size + body_size
    if mark != _MARK or end > len(data):
        return None
    meta, body = data[begin : begin + meta_size], data[begin + meta_size : end]
    if check != _check(kind, synced, meta, body, salt):
        return None
    return Record(kind, meta, body, offset, end - offset), synced


def read_records(data: bytes, path: str, salt: int, *, last: bool) -> Iterator[Record]:
    """The records of a file, in order, up to what a crash left at its end.

    Args:
        data: the whole file.
        path: for the error.
        salt: of the file.
        last: whether the file is the one that was being written; of any other, everything is safe.

    Raises:
        JournalDamageError: something that was written is not there as it was.
    """
    offset = FILE_HEAD
    while offset < len(data):
        found = decode_record(data, offset, salt)
        if found is None:
            if not last or _counted_on(data, offset, salt):
                raise JournalDamageError(path, offset)
            return
        yield found[0]
        offset += found[0].size


def _counted_on(data: bytes, offset: int, salt: int) -> bool:
    """Whether a record further on was written when the bytes at an offset were safe already."""
    at = data.find(_MARK, offset + 1)
    while at >= 0:
        found = decode_record(data, at, salt)
        if found is not None and found[1] > offset:
            return True
        at = data.find(_MARK, at + 1)
    return False


def _check(kind: int, synced: int, meta: bytes, body: bytes, salt: int) -> int:
    facts = struct.pack(">BQII", kind, synced, len(meta), len(body))
    return zlib.crc32(body, zlib.crc32(meta, zlib.crc32(facts, salt)))
