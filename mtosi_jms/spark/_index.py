"""The index of a stream. Each file has a position, from 1, in the order in which the stream first saw the files.

The index is a SQLite file, which one process at a time has open. When `add` returns, its files survive a crash of the
process or the machine. docs/design/streams.md explains the tables and what remains after a kill.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from mtosi_jms.errors import ConfigError, JournalDamageError, SpoolError, SpoolInUseError
from mtosi_jms.jms.ids import random_id
from mtosi_jms.tables.files import FileState
from mtosi_jms.tables.landing import PlannedFile, senders_from_zero

FORMAT: Final = 1
"""The version of the format of the index and of offsets."""
_APPLICATION: Final = 0x4D545349
_REMEMBERED: Final = 1_000_000
"""The number of trimmed messages whose keys are kept."""
_AT_ONCE: Final = 500
_SCHEMA: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE file (position INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT UNIQUE, size INTEGER NOT NULL,
        modified_ns INTEGER NOT NULL, key TEXT UNIQUE)""",
    "CREATE TABLE document (position INTEGER NOT NULL, correlation_id TEXT, facts TEXT NOT NULL)",
    "CREATE INDEX by_position ON document (position)",
    "CREATE INDEX by_correlation ON document (correlation_id, position) WHERE correlation_id IS NOT NULL",
)


@dataclass(frozen=True, slots=True)
class Added:
    """The result of `StreamIndex.add`.

    Attributes:
        changed: files that have a position and have changed since they got it.
        copies: files with the key of another file; they get no position.
    """

    changed: tuple[str, ...]
    copies: tuple[str, ...]


class StreamIndex:
    """The positions of files; see the module docstring.

    Args:
        path: the SQLite file; made if it does not exist.
        of: what the stream reads, such as the paths of a landing. An index never changes this.
        patience: seconds to wait while another process has the index open.

    Attributes:
        id: a unique identifier of the index.

    Raises:
        ConfigError: the file is the index of another stream, not an index, or of another version.
        SpoolInUseError: another query has the index open.
        JournalDamageError: the index is damaged.
        SpoolError: the index cannot be read or written.
    """

    def __init__(self, path: str | os.PathLike[str], of: str, *, patience: float = 10.0) -> None:
        self.path = Path(path)
        with self._reporting():
            self._database = sqlite3.connect(self.path, timeout=patience, isolation_level=None, check_same_thread=False)
        try:
            with self._reporting():
                for setting in "locking_mode = EXCLUSIVE", "journal_mode = DELETE", "synchronous = EXTRA":
                    self._database.execute(f"PRAGMA {setting}").fetchall()
                with self._transaction():
                    self._make(of)
        except BaseException:
            self._database.close()
            raise
        self.id = self._meta("id")

    def _make(self, of: str) -> None:
        (application,) = self._one("PRAGMA application_id")
        if not application and not self._one("SELECT count(*) FROM sqlite_master")[0]:
            for statement in _SCHEMA:
                self._database.execute(statement)
            self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
            made = {"format": str(FORMAT), "id": random_id(), "of": of, "trimmed": "0"}
            self._database.executemany("INSERT INTO meta VALUES (?, ?)", made.items())
        elif application != _APPLICATION:
            raise ConfigError(f"{self.path} is not an index of a stream: name a file that is not there yet")
        if self._meta("format") != str(FORMAT):
            raise ConfigError(f"{self.path} is an index of format {self._meta('format')}; this version has {FORMAT}")
        if self._meta("of") != of:
            raise ConfigError(f"{self.path} is the index of {self._meta('of')}, and not of {of}")

    @property
    def last(self) -> int:
        """The last position; 0 if there is none."""
        with self._reporting():
            return int(self._one("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'file'")[0])

    @property
    def trimmed(self) -> int:
        """The position up to which files were trimmed; 0 if none were."""
        with self._reporting():
            return int(self._meta("trimmed"))

    def offset(self, position: int) -> dict[str, Any]:
        """Return the offset of a position, for Spark's checkpoint."""
        return {"format": FORMAT, "index": self.id, "position": position}

    def position(self, offset: Mapping[str, Any]) -> int:
        """Return the position of an offset."""
        position = offset.get("position")
        if offset.get("format") != FORMAT or type(position) is not int:
            raise ConfigError(f"{self.path}: the checkpoint is of another source, or of another version of this one")
        if offset.get("index") != self.id:
            raise ConfigError(
                f"{self.path} is not the index of this checkpoint: name that one, or begin anew with a new checkpoint"
            )
        if position > self.last:
            raise JournalDamageError(
                str(self.path), f"the checkpoint is at position {position}, and the index ends at {self.last}"
            )
        return position

    def add(self, files: Iterable[FileState]) -> Added:
        """Give positions to files that have none, in the given order, and sync the index."""
        changed: list[str] = []
        copies: list[str] = []
        with self._reporting(), self._transaction():
            for some in _in_groups(files):
                known = self._known(some)
                for file in some:
                    before = known.get(file.path)
                    if before is not None:
                        if before != (file.size, file.modified_ns):
                            changed.append(file.path)
                    elif not self._insert(file):
                        copies.append(file.path)
        return Added(tuple(changed), tuple(copies))

    def _known(self, files: Sequence[FileState]) -> dict[str, tuple[int, int]]:
        marks = ",".join("?" * len(files))
        query = f"SELECT path, size, modified_ns FROM file WHERE path IN ({marks})"  # noqa: S608 - marks alone
        rows = self._database.execute(query, [file.path for file in files])
        return {path: (size, modified_ns) for path, size, modified_ns in rows}

    def _insert(self, file: FileState) -> bool:
        if self._database.execute("SELECT 1 FROM file WHERE key = ?", (file.key,)).fetchone() is not None:
            return False
        statement = "INSERT INTO file (path, size, modified_ns, key) VALUES (?, ?, ?, ?)"
        self._database.execute(statement, (file.path, file.size, file.modified_ns, file.key))
        return True

    def has(self, path: str) -> bool:
        """Whether a file has a position and was not trimmed."""
        with self._reporting():
            return self._database.execute("SELECT 1 FROM file WHERE path = ?", (path,)).fetchone() is not None

    def files(self, start: int, end: int) -> list[FileState]:
        """Return the files after the position `start` up to the position `end`."""
        if start < end and start < self.trimmed:
            raise JournalDamageError(
                str(self.path),
                f"the checkpoint asks for what follows position {start}, and the index was trimmed up to "
                f"{self.trimmed}: another query has had these files, or the checkpoint is an old copy",
            )
        query = "SELECT path, size, modified_ns, key FROM file WHERE position > ? AND position <= ? ORDER BY position"
        with self._reporting():
            return [FileState(*row) for row in self._database.execute(query, (start, end)) if row[0] is not None]

    @property
    def from_zero(self) -> frozenset[str]:
        """The senders of which a batch 0 was stored: they count from 0 (C23)."""
        with self._reporting():
            found = self._database.execute("SELECT value FROM meta WHERE name = 'from_zero'").fetchone()
        return frozenset(json.loads(found[0]) if found else ())

    def keep(self, start: int, end: int, documents: Sequence[PlannedFile]) -> None:
        """Store the messages that the planning of a batch has found, for later batches."""
        known = self.from_zero
        from_zero = known | senders_from_zero(documents)
        with self._reporting(), self._transaction():
            self._database.execute("DELETE FROM document WHERE position > ? AND position <= ?", (start, end))
            rows = [(end, found.correlation_id, json.dumps(asdict(found))) for found in documents]
            self._database.executemany("INSERT INTO document VALUES (?, ?, ?)", rows)
            if from_zero != known:
                value = json.dumps(sorted(from_zero))
                self._database.execute("INSERT OR REPLACE INTO meta VALUES ('from_zero', ?)", (value,))

    def earlier(self, position: int) -> EarlierDocuments:
        """Return the messages of batches up to a position."""
        return EarlierDocuments(self, position)

    def documents(self, correlation_id: str, position: int) -> list[PlannedFile]:
        """Return the messages with a correlationId in batches up to a position."""
        query = "SELECT facts FROM document WHERE correlation_id = ? AND position <= ?"
        with self._reporting():
            found = [json.loads(text) for (text,) in self._database.execute(query, (correlation_id, position))]
        return [PlannedFile(**{**item, "duplicates": tuple(item["duplicates"])}) for item in found]

    def trim(self, end: int) -> None:
        """Forget the paths of all files up to a position; the keys of the last million messages stay."""
        with self._reporting(), self._transaction():
            trimmed = max(end, int(self._meta("trimmed")))
            self._database.execute("UPDATE file SET path = NULL WHERE position <= ? AND path IS NOT NULL", (trimmed,))
            oldest = (trimmed - _REMEMBERED,)
            self._database.execute("DELETE FROM file WHERE position <= ?", oldest)
            self._database.execute("DELETE FROM document WHERE position <= ?", oldest)
            self._database.execute("UPDATE meta SET value = ? WHERE name = 'trimmed'", (str(trimmed),))

    def close(self) -> None:
        """Close the index; may be called again."""
        self._database.close()

    def _meta(self, name: str) -> str:
        return str(self._one("SELECT value FROM meta WHERE name = ?", name)[0])

    def _one(self, query: str, *values: object) -> tuple[Any, ...]:
        row: tuple[Any, ...] | None = self._database.execute(query, values).fetchone()
        if row is None:
            raise JournalDamageError(str(self.path), "the index of the stream is damaged")
        return row

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN EXCLUSIVE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise SpoolInUseError(str(self.path), "another query has this index of a stream") from error
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise JournalDamageError(str(self.path), f"the index of the stream is damaged: {error}") from error
            raise SpoolError(str(self.path), f"the index of the stream: {error}") from error


class EarlierDocuments(Mapping[str, Sequence[PlannedFile]]):
    """The messages of earlier batches by correlationId; each is read from the index when it is needed."""

    def __init__(self, index: StreamIndex, position: int) -> None:
        self._index = index
        self._position = position
        self.returned: set[str] = set()

    def __getitem__(self, correlation_id: str) -> Sequence[PlannedFile]:
        found = self._index.documents(correlation_id, self._position)
        self.returned.update(file.path for file in found)
        return found

    def __iter__(self) -> Iterator[str]:
        raise TypeError("correlationIds are not listed")

    def __len__(self) -> int:
        raise TypeError("correlationIds are not counted")

    def __bool__(self) -> bool:
        return True


def _in_groups(files: Iterable[FileState]) -> Iterator[list[FileState]]:
    group: list[FileState] = []
    for file in files:
        group.append(file)
        if len(group) == _AT_ONCE:
            yield group
            group = []
    if group:
        yield group
