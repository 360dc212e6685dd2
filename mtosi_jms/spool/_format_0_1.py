"""Reads the journals of version 0.1, once: their messages move into the database, then the files are removed.

A folder held files `0000000001.journal` of framed records, each with a checksum. A record stored a message, noted its
state, or listed remembered ids.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from mtosi_jms.errors import JournalDamageError
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.spool._files import reporting, sync_folder
from mtosi_jms.spool._sidecar import decode_sidecar

_NAME: Final = re.compile(r"[0-9]{10}\.journal")
_MAGIC: Final = b"MTOSI-J1"
_MARK: Final = b"MJr\x01"
_SALTED: Final = len(_MAGIC) + 8
_FILE_HEAD: Final = _SALTED + 4
_HEAD: Final = struct.Struct(">4sBQIII")
_STATES: Final = {"waits": "waits", "landed": "landed", "handed": "doubt"}


class OldMessage(NamedTuple):
    """A message with its state in the current format. A settled one has no message, and `since_ms` 0."""

    key: str
    state: str
    since_ms: int
    message: JmsMessage | None


def read(folder: Path) -> list[OldMessage]:
    """Returns the messages in the journals of a folder, in the order of arrival; empty if there are none.

    Raises:
        JournalDamageError: the journals are damaged.
        SpoolError: the journals cannot be read.
    """
    known: dict[str, tuple[int, OldMessage]] = {}
    for path, meta, body, offset in _records(folder):
        first, _, sidecar = meta.partition(b"\n")
        try:
            entry: Any = json.loads(first)
            if sidecar:
                key, number, state = entry
                facts, since_ms = decode_sidecar(sidecar, path)[:2]
                known[key] = number, OldMessage(key, _STATES[state], since_ms, replace(facts, body=body))
            elif entry and isinstance(entry[0], str):
                key, state = entry
                if key in known:
                    number, one = known[key]
                    is_done = state == "settled"
                    known[key] = (
                        number,
                        (OldMessage(key, "done", 0, None) if is_done else one._replace(state=_STATES[state])),
                    )
            else:
                for key, number in entry:
                    known.setdefault(key, (number, OldMessage(key, "done", 0, None)))
        except (ValueError, TypeError, LookupError) as error:
            raise _damage(path, offset) from error
    return [one for _, one in sorted(known.values(), key=lambda item: item[0])]


def remove(folder: Path) -> None:
    """Removes the journals, whose messages are in the database now.

    Raises:
        SpoolError: a journal cannot be removed.
    """
    for path in _journals(folder):
        with reporting(path):
            path.unlink(missing_ok=True)
            sync_folder(folder)


def is_there(names: Iterable[str]) -> bool:
    """Whether files of these names are journals."""
    return any(map(_NAME.fullmatch, names))


def _journals(folder: Path) -> list[Path]:
    with reporting(folder):
        return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def _records(folder: Path) -> Iterator[tuple[Path, bytes, bytes, int]]:
    """Yields each record: its file, facts, body and offset. Unfinished writes of a crash are left out."""
    paths = _journals(folder)
    for path in paths:
        with reporting(path):
            data = path.read_bytes()
        is_last = path == paths[-1]
        if is_last and len(data) <= _FILE_HEAD and not _is_head(data):
            return
        if not _is_head(data):
            raise _damage(path, 0)
        salt = zlib.crc32(data[:_SALTED])
        offset = _FILE_HEAD
        while offset < len(data):
            found = _record(data, offset, salt)
            if found is None:
                if not is_last or _counted_on(data, offset, salt):
                    raise _damage(path, offset)
                return
            meta, body, size, _ = found
            yield path, meta, body, offset
            offset += size


def _is_head(data: bytes) -> bool:
    head = data[:_SALTED]
    return head.startswith(_MAGIC) and data[_SALTED:_FILE_HEAD] == struct.pack(">I", zlib.crc32(head))


def _record(data: bytes, offset: int, salt: int) -> tuple[bytes, bytes, int, int] | None:
    """Returns the record at an offset: facts, body, size, and how much of the file was synced before; else None."""
    if len(data) - offset < _HEAD.size:
        return None
    mark, kind, synced, meta_size, body_size, check = _HEAD.unpack_from(data, offset)
    begin = offset + _HEAD.size
    end = begin + meta_size + body_size
    meta, body = data[begin : begin + meta_size], data[begin + meta_size : end]
    facts = struct.pack(">BQII", kind, synced, meta_size, body_size)
    if mark != _MARK or end > len(data) or check != zlib.crc32(body, zlib.crc32(meta, zlib.crc32(facts, salt))):
        return None
    return meta, body, end - offset, synced


def _counted_on(data: bytes, offset: int, salt: int) -> bool:
    """Whether a later record was written after the bytes at an offset were synced."""
    at = data.find(_MARK, offset + 1)
    while at >= 0:
        found = _record(data, at, salt)
        if found is not None and found[3] > offset:
            return True
        at = data.find(_MARK, at + 1)
    return False


def _damage(path: Path, offset: int) -> JournalDamageError:
    return JournalDamageError(
        str(path), f"damaged at byte {offset}: it is not read any further, and nothing is guessed"
    )
