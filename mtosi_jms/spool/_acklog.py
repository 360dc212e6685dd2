"""The acknowledgement log: one synced line for each message that its provider was told is done with.

It proves what a landing must hold: every line names an entry that was written before it. A process killed in the middle
of a line leaves a torn one at the end, which says nothing; whoever opens the log next cuts it off.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any, Final, NamedTuple

from mtosi_jms.errors import SpoolError
from mtosi_jms.spool._files import Closing, make_folder, reporting, sync_folder, write_all

_CHUNK: Final = 65_536
_KINDS: Final = ((str,), (str, type(None)), (int, type(None)), (str,))


class Acknowledgement(NamedTuple):
    """One line of the log.

    Attributes:
        entry: name of the spool's entry.
        correlation_id: the header's correlationId, None where there is none.
        batch_number: batchSequenceNumber, None where there is none.
        sha256: of the body, in hexadecimal.
    """

    entry: str
    correlation_id: str | None
    batch_number: int | None
    sha256: str


class AckLog(Closing):
    """Appends to an acknowledgement log; any number of threads may share one, processes may not.

    Args:
        path: the file; made, with its folder, if it is not there, and added to if it is.

    Attributes:
        path: the same.

    Raises:
        SpoolError: it cannot be made or written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        make_folder(self.path.parent)
        with reporting(self.path):
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            try:
                _cut_torn_line(self._descriptor)
                sync_folder(self.path.parent)
            except OSError:
                self.close()
                raise

    def append(self, acknowledgement: Acknowledgement) -> None:
        """Writes a line and syncs it.

        Raises:
            SpoolError: it could not be written and synced, or the log is closed.
        """
        line = json.dumps(acknowledgement._asdict()).encode("ascii") + b"\n"
        with self._lock, reporting(self.path):
            if self._descriptor < 0:
                raise SpoolError(str(self.path), "the acknowledgement log is closed")
            write_all(self._descriptor, line)
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Closes the file; it may be called again."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1


def read_acknowledgements(path: str | os.PathLike[str]) -> list[Acknowledgement]:
    """The lines of a log, a torn one at the end left out.

    Raises:
        SpoolError: it cannot be read, or a line within is damaged; with its number.
    """
    file = Path(path)
    with reporting(file):
        data = file.read_bytes()
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


def _cut_torn_line(descriptor: int) -> None:
    """Shortens the file to the end of its last whole line."""
    end = os.fstat(descriptor).st_size
    keep = end
    while keep:
        start = max(0, keep - _CHUNK)
        at = os.pread(descriptor, keep - start, start).rfind(b"\n")
        if at >= 0:
            keep = start + at + 1
            break
        keep = start
    if keep < end:
        os.ftruncate(descriptor, keep)
        os.fsync(descriptor)
