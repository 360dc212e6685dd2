"""The landing: a folder of received messages, each stored before it is acknowledged. See docs/design/spool.md.

An entry is two files of one name, written once, that sort by arrival: `.json`, the sidecar with headers and properties,
and `.xml`, the body. The acknowledgement log has one synced line for each acknowledged message; an incomplete last one,
of a killed process, is ignored."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from mtosi_jms.binding.soap_jms import self_describing
from mtosi_jms.bounds import BOUNDS
from mtosi_jms.closing import Closeable
from mtosi_jms.compression import is_document_name, open_file, read_file
from mtosi_jms.errors import ConfigError, SpoolError
from mtosi_jms.files import sync
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.spool._folder import make_folder, remove, reporting, write_all, write_synced
from mtosi_jms.spool._sidecar import Sidecar, decode_sidecar, encode_sidecar

_CHUNK: Final = 65_536
_KINDS: Final = ((str,), (str, type(None)), (int, type(None)), (str,))


class Acknowledgement(NamedTuple):
    entry: str
    correlation_id: str | None
    batch_number: int | None
    sha256: str


class AckLog(Closeable):
    """Appends to an acknowledgement log. Threads may share one, processes must not. Raises SpoolError: the file cannot
    be made or written."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        make_folder(self.path.parent)
        with reporting(self.path):
            self._file = self.path.open("a+b", buffering=0)
            try:
                _cut_torn_line(self._file)
                sync(self.path.parent)
            except OSError:
                self.close()
                raise

    def append(self, acknowledgement: Acknowledgement) -> None:
        """Writes a line and syncs it. Raises SpoolError: the line could not be written and synced, or the log is
        closed."""
        line = json.dumps(acknowledgement._asdict()).encode("ascii") + b"\n"
        with self._lock, reporting(self.path):
            if self._file.closed:
                raise SpoolError(str(self.path), "the acknowledgement log is closed")
            write_all(self._file.fileno(), line)
            os.fsync(self._file.fileno())

    def close(self) -> None:
        with self._lock:
            self._file.close()


def read_acknowledgements(path: str | os.PathLike[str]) -> list[Acknowledgement]:
    """Returns the lines of a log, without an incomplete one at the end. Raises SpoolError: the log cannot be read, or a
    line is damaged; the error gives its number."""
    file = Path(path)
    with reporting(file):
        data = read_file(file, BOUNDS.message_bytes)
    *lines, _torn = data.split(b"\n")
    return [_read_line(file, number, line) for number, line in enumerate(lines, 1)]


def _read_line(path: Path, number: int, line: bytes) -> Acknowledgement:
    try:
        item: Any = json.loads(line)
        values = [item[name] for name in Acknowledgement._fields]
    except (ValueError, TypeError, LookupError, RecursionError) as exc:
        raise SpoolError(str(path), f"line {number} is damaged: {exc}") from exc
    for value, kinds in zip(values, _KINDS, strict=True):
        if type(value) not in kinds:
            raise SpoolError(str(path), f"line {number} is damaged: a value of the wrong type")
    return Acknowledgement(*values)


def _cut_torn_line(file: FileIO) -> None:
    end = file.seek(0, os.SEEK_END)
    keep = end
    while keep:
        start = max(0, keep - _CHUNK)
        file.seek(start)
        at = file.read(keep - start).rfind(b"\n")
        if at >= 0:
            keep = start + at + 1
            break
        keep = start
    if keep < end:
        file.truncate(keep)
        os.fsync(file.fileno())


_ENVELOPE: Final = ".xml"
_SIDECAR: Final = ".json"
_UNFINISHED: Final = ".tmp"
_NAME: Final = re.compile(r"([0-9]{13})-([0-9]{6})-([0-9a-f]{8})")
"""The name of an entry: milliseconds of arrival, a number within the millisecond, the start of the body's SHA-256."""
_LATEST: Final = 10**13 - 1
_LAST_NUMBER: Final = 999_999
_TOGETHER: Final = 8
"""Threads that write messages at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolEntry:
    """One message of a spool, without its body: `read_body` and `message` read that from the disk each time.

    Attributes:
        facts: the message without its body; None if the sidecar is missing or damaged.
        received_ms: when it was received, milliseconds since 1970 UTC; None if neither sidecar nor name has it.
        sha256: SHA-256 of the received body, in hexadecimal; None if the sidecar does not have it.
        problem: what is wrong with the sidecar; empty if nothing is.
    """

    path: Path
    facts: JmsMessage | None
    received_ms: int | None
    sha256: str | None
    problem: str = ""

    @property
    def name(self) -> str:
        return self.path.name.removesuffix(_ENVELOPE)

    def read_body(self) -> bytes:
        """The envelope's bytes as received, or in UTF-8 if only the message said how to read them. Raises SpoolError:
        the file cannot be read, or is larger than 256 MiB, which `damage` does not mind."""
        with reporting(self.path):
            return read_file(self.path, BOUNDS.message_bytes)

    def message(self) -> JmsMessage:
        """Returns the whole message; without a usable sidecar, with default headers and no properties."""
        body = self.read_body()
        return replace(self.facts, body=body) if self.facts is not None else JmsMessage(body=body)

    def damage(self) -> str:
        """Returns what is wrong with the entry; empty: nothing. Compares the body with the SHA-256 at its arrival."""
        named = _NAME.fullmatch(self.name)
        expected = self.sha256 or (named[3] if named else "")
        digest = hashlib.sha256()
        with reporting(self.path), open_file(self.path) as file:
            while part := file.read(_CHUNK):
                digest.update(part)
        if not digest.hexdigest().startswith(expected):
            return "the envelope's bytes are not those that were received"
        return self.problem


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file of a message that was not written completely because of a crash. The message was not acknowledged."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The content of a folder at one moment.

    Attributes:
        envelopes: the files of the entries, in the order of arrival.
        leftovers: unfinished files, which an active writer may still finish.
        others: files that do not belong to a spool, except hidden ones (`.x`, `_x`).
    """

    envelopes: tuple[Path, ...]
    leftovers: tuple[Leftover, ...]
    others: tuple[Path, ...]

    @property
    def documents(self) -> list[Path]:
        """The envelopes, and the others that are compressed documents by their names, in the order of the names."""
        return sorted([*self.envelopes, *(path for path in self.others if is_document_name(path.name))])


def scan(folder: str | os.PathLike[str]) -> Listing:
    """Lists a folder without reading any file. Raises SpoolError: the folder cannot be read."""
    base = Path(folder)
    with reporting(base), os.scandir(base) as found:
        names = sorted(item.name for item in found if not item.is_dir() and item.name[0] not in "._")
    present = frozenset(names)
    envelopes: list[Path] = []
    leftovers: list[Leftover] = []
    others: list[Path] = []
    for name in names:
        path = base / name
        if path.suffix == _ENVELOPE:
            envelopes.append(path)
        elif reason := _left_over(path, present):
            leftovers.append(Leftover(path, reason))
        elif path.suffix != _SIDECAR or path.stem + _ENVELOPE not in present:
            others.append(path)
    return Listing(tuple(envelopes), tuple(leftovers), tuple(others))


def _left_over(path: Path, present: frozenset[str]) -> str:
    if path.suffix == _UNFINISHED and _NAME.match(path.name):
        return "an envelope that was not written to its end"
    if path.suffix == _SIDECAR and _NAME.fullmatch(path.stem) and path.stem + _ENVELOPE not in present:
        return "a sidecar whose envelope was not written"
    return ""


def entries(folder: str | os.PathLike[str], *, strict: bool = False) -> Iterator[SpoolEntry]:
    """Yields the entries of a folder in the order of arrival, one in memory at a time, without their bodies.

    An envelope without a usable sidecar is yielded too: its `facts` are None, and `problem` says why.

    Args:
        folder: a spool, or any folder of envelopes (`*.xml`).
        strict: whether to raise an error if a sidecar is missing or damaged.

    Raises:
        SpoolError: the folder cannot be read; with `strict`, a sidecar is missing or damaged.
    """
    for path in scan(folder).envelopes:
        yield open_entry(path, strict=strict)


def open_entry(path: str | os.PathLike[str], *, strict: bool = False) -> SpoolEntry:
    """Returns the entry of one envelope file. Reads its sidecar, but not its body. Raises SpoolError: with `strict`,
    the sidecar is missing or damaged."""
    envelope = Path(path)
    named = _NAME.fullmatch(envelope.name.removesuffix(_ENVELOPE))
    arrival = int(named[1]) if named else None
    beside = envelope.with_suffix(_SIDECAR)
    try:
        with reporting(beside):
            data = read_file(beside)
        sidecar = decode_sidecar(data, beside)
    except SpoolError as exc:
        if strict:
            raise
        return SpoolEntry(path=envelope, facts=None, received_ms=arrival, sha256=None, problem=str(exc))
    return SpoolEntry(path=envelope, facts=sidecar.facts, received_ms=sidecar.received_ms, sha256=sidecar.sha256)


class Spool:
    """A folder in which received messages are stored. Threads may share a Spool; each process needs its own.

    Names sort by arrival, also over several runs and after the clock was set back: a new name sorts after all others.

    Args:
        folder: the folder; created if it is missing. Existing entries stay.

    Raises:
        SpoolError: the folder cannot be made, read or written.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        make_folder(self.folder)
        self._lock = threading.Lock()
        with reporting(self.folder):
            names = [match for path in self.folder.iterdir() if (match := _NAME.match(path.name))]
        self._last = max(((int(match[1]), int(match[2])) for match in names), default=(-1, 0))

    def write(self, message: JmsMessage, received_ms: int) -> SpoolEntry:
        """Writes and syncs a message. When this returns, the message survives a crash of process and machine.

        Args:
            received_ms: when it was received, milliseconds since 1970 UTC.

        Raises:
            SpoolError: the message could not be written and synced: do not acknowledge it. No unfinished files are
                left, as far as the disk allows.
            ConfigError: the time is out of range.
        """
        entry = self._write(*self._named(message, received_ms))
        self._sync()
        return entry

    def write_all(self, messages: Iterable[JmsMessage], received_ms: int) -> list[SpoolEntry]:
        """Writes several messages as `write` does, many times as fast: a disk syncs them together. If one cannot be
        written, others of them may be stored. The names have the order of the messages."""
        named = [self._named(message, received_ms) for message in messages]
        with ThreadPoolExecutor(_TOGETHER) as pool:
            entries = list(pool.map(lambda one: self._write(*one), named))
        self._sync()
        return entries

    def _sync(self) -> None:
        with reporting(self.folder):
            sync(self.folder)

    def _named(self, message: JmsMessage, received_ms: int) -> tuple[JmsMessage, Sidecar, str]:
        if type(received_ms) is not int or not 0 <= received_ms <= _LATEST:
            raise ConfigError(f"received_ms {received_ms}: whole milliseconds since 1970 have at most 13 digits")
        message = self_describing(message)
        sha256 = _sha256(message.body)
        facts = replace(message, body=b"") if message.body else message
        return message, Sidecar(facts, received_ms, sha256, len(message.body)), self._next_name(received_ms, sha256)

    def _write(self, message: JmsMessage, sidecar: Sidecar, name: str) -> SpoolEntry:
        name = self._reserve(name, sidecar)
        path = self.folder / (name + _ENVELOPE)
        unfinished = self.folder / (name + _ENVELOPE + _UNFINISHED)
        with reporting(path):
            try:
                write_synced(unfinished, message.body, new=False)
                unfinished.rename(path)
            except OSError:
                remove(unfinished)
                remove(self.folder / (name + _SIDECAR))
                raise
        return SpoolEntry(path=path, facts=sidecar.facts, received_ms=sidecar.received_ms, sha256=sidecar.sha256)

    def _reserve(self, name: str, sidecar: Sidecar) -> str:
        """Writes the sidecar under this name, or the next that is free, which reserves the name; returns the name."""
        data = encode_sidecar(sidecar)
        while True:
            path = self.folder / (name + _SIDECAR)
            with reporting(path):
                # An envelope without a sidecar must not be overwritten.
                if not (self.folder / (name + _ENVELOPE)).exists():
                    # Another process may have been here in the same millisecond, with the same bytes.
                    with suppress(FileExistsError):
                        write_synced(path, data, new=True)
                        return name
            name = self._next_name(sidecar.received_ms, sidecar.sha256)

    def _next_name(self, received_ms: int, sha256: str) -> str:
        with self._lock:
            last_ms, last_number = self._last
            if received_ms > last_ms:
                self._last = received_ms, 0
            elif last_number < _LAST_NUMBER:
                self._last = last_ms, last_number + 1
            else:
                self._last = last_ms + 1, 0
            milliseconds, number = self._last
        return f"{milliseconds:013d}-{number:06d}-{sha256[:8]}"


class Landing(Protocol):
    """Stores received messages before they are acknowledged. `DurableLanding` implements it."""

    def land(self, message: JmsMessage) -> Any:
        """Write a message durably. If this raises an error, the waiting caller gets it, and the message is not
        acknowledged."""
        ...

    def acknowledged(self, landed: Any, *, correlation_id: str | None, batch_number: int | None) -> None: ...


class DurableLanding(Closeable):
    """Stores each received message durably before it is acknowledged.

    Args:
        folder: the folder for the messages; created if it is missing.
        ack_log: file that gets one synced line for each acknowledgement; None: no log.
        clock: seconds since 1970 UTC.

    Raises:
        SpoolError: folder or log cannot be written.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        ack_log: str | os.PathLike[str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.spool = Spool(folder)
        self._ack_log = AckLog(ack_log) if ack_log is not None else None
        self._clock = clock

    def land(self, message: JmsMessage) -> SpoolEntry:
        """Write a message. When this returns, it is stored durably. Raises SpoolError: the message cannot be written,
        and must not be acknowledged."""
        return self.spool.write(message, int(self._clock() * 1000))

    def acknowledged(self, landed: SpoolEntry, *, correlation_id: str | None, batch_number: int | None) -> None:
        """Log that a message was acknowledged. Raises SpoolError: the log cannot be written."""
        if self._ack_log is not None:
            self._ack_log.append(Acknowledgement(landed.name, correlation_id, batch_number, landed.sha256 or ""))

    def close(self) -> None:
        if self._ack_log is not None:
            self._ack_log.close()


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
