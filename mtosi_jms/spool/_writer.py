"""Writes a spool. An entry is written once, never changed, and only acknowledged after `write` has returned."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.spool._entry import ENVELOPE, NAME, SIDECAR, UNFINISHED, SpoolEntry, digest
from mtosi_jms.spool._files import make_folder, remove, reporting, sync_folder, write_synced
from mtosi_jms.spool._sidecar import Sidecar, encode_sidecar

_LATEST: Final = 10**13 - 1
_LAST_NUMBER: Final = 999_999


class Spool:
    """A folder that messages land in. Any number of threads may write; processes too, each with a Spool of its own.

    Names sort by arrival, also over several runs and when the clock was set back: no name sorts before one that was
    there.

    Args:
        folder: where; made if it is not there. What it holds already stays, and is added to.

    Attributes:
        folder: the same.

    Raises:
        SpoolError: the folder cannot be made, read or written.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        make_folder(self.folder)
        self._lock = threading.Lock()
        self._last = self._latest_name()

    def write(self, message: JmsMessage, received_ms: int) -> SpoolEntry:
        """Writes and syncs a message: when this returns, it outlives a crash of process and machine.

        Args:
            message: as it was received.
            received_ms: when, milliseconds since 1970 UTC.

        Raises:
            SpoolError: it could not be written and synced: do not acknowledge. Nothing half-written is left, if the
                disk allows.
            ConfigError: the time is out of range.
        """
        if type(received_ms) is not int or not 0 <= received_ms <= _LATEST:
            raise ConfigError(f"received_ms {received_ms}: whole milliseconds since 1970 have at most 13 digits")
        sha256 = digest(message.body)
        facts = replace(message, body=b"") if message.body else message
        data = encode_sidecar(Sidecar(facts, received_ms, sha256, len(message.body)))
        name = self._reserve(received_ms, sha256, data)
        path = self.folder / (name + ENVELOPE)
        unfinished = self.folder / (name + ENVELOPE + UNFINISHED)
        with reporting(path):
            try:
                write_synced(unfinished, message.body, new=False)
                unfinished.rename(path)
            except OSError:
                remove(unfinished)
                remove(self.folder / (name + SIDECAR))
                raise
            sync_folder(self.folder)
        return SpoolEntry(path=path, facts=facts, received_ms=received_ms, sha256=sha256)

    def _reserve(self, received_ms: int, sha256: str, sidecar: bytes) -> str:
        """Writes the sidecar under a name that nobody has, and so makes the name ours."""
        while True:
            name = self._next_name(received_ms, sha256)
            path = self.folder / (name + SIDECAR)
            with reporting(path):
                if (self.folder / (name + ENVELOPE)).exists():  # its sidecar was lost: not to be overwritten
                    continue
                try:
                    write_synced(path, sidecar, new=True)
                except FileExistsError:  # another process was here in the same millisecond, with the same bytes
                    continue
            return name

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

    def _latest_name(self) -> tuple[int, int]:
        latest = (-1, 0)
        with reporting(self.folder):
            for path in self.folder.iterdir():
                match = NAME.match(path.name)
                if match is not None:
                    latest = max(latest, (int(match[1]), int(match[2])))
        return latest
