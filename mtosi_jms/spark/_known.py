"""What was read before: the files of a landing and the messages in them, in one SQLite file.

A stream has it as its index, in which each file has a position, from 1, in the order in which the stream first saw the
files. An ingest that adds to its tables has it as its checkpoint (`jobs/_checkpoint`). The process holds neither the
listing nor what is known: both are tables that SQLite joins. docs/design/streams.md and docs/design/lake.md explain it.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from mtosi_jms.errors import ConfigError, JournalDamageError, SpoolError, SpoolInUseError
from mtosi_jms.jms.ids import random_id
from mtosi_jms.tables.files import FileState, disk_file
from mtosi_jms.tables.landing import PlannedFile, senders_from_zero

FORMAT: Final = 2
OFFSETS: Final = 1
"""The versions of the tables, and of offsets."""
_APPLICATION: Final = 0x4D545349
_REMEMBERED: Final = 1_000_000
"""The number of trimmed messages whose keys are kept."""
_SCHEMA: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE file (position INTEGER PRIMARY KEY, path TEXT UNIQUE, size INTEGER NOT NULL,
        modified_ns INTEGER NOT NULL, key TEXT UNIQUE)""",
    # A document's path is what follows the path of its file: nothing, or `!/MEMBER` in an archive.
    """CREATE TABLE document (position INTEGER NOT NULL, path TEXT NOT NULL, state TEXT NOT NULL, sha256 TEXT,
        correlation_id TEXT, facts TEXT)""",
    "CREATE UNIQUE INDEX by_position ON document (position, path)",
    "CREATE INDEX by_correlation ON document (correlation_id, position) WHERE correlation_id IS NOT NULL",
    "CREATE INDEX by_state ON document (state) WHERE state IN ('waiting', 'stuck')",
)
_LISTED: Final = """CREATE TEMP TABLE IF NOT EXISTS listed (path TEXT PRIMARY KEY, place TEXT NOT NULL,
    size INTEGER NOT NULL, modified_ns INTEGER NOT NULL, key TEXT, changed_ns INTEGER, sha256 TEXT,
    stale INTEGER NOT NULL DEFAULT 0)"""


class KnownFiles:
    """The files that were read before; see the module docstring.

    Args:
        what: what the file is called in errors.
        of: what is read, such as the paths of a landing.
        patience: seconds to wait while another process has the file open.
        make: make the file if it does not exist; else a database of this process takes its place.

    Raises:
        ConfigError: the file is something else, or of another version.
        SpoolInUseError: another process has it open.
        JournalDamageError: it is damaged.
        SpoolError: it cannot be read or written.
    """

    def __init__(
        self, path: str | os.PathLike[str], what: str, of: str, *, patience: float = 10.0, make: bool = True
    ) -> None:
        self.path = Path(path)
        self._what = what
        name = self.path if make or self.path.exists() else ""
        with self._reporting():
            self._database = sqlite3.connect(name, timeout=patience, isolation_level=None, check_same_thread=False)
        try:
            with self._reporting():
                for setting in "locking_mode = EXCLUSIVE", "journal_mode = DELETE", "synchronous = EXTRA":
                    self._database.execute(f"PRAGMA {setting}").fetchall()
                with self._transaction("EXCLUSIVE"):
                    self._make(of)
                self._database.execute(_LISTED)
        except BaseException:
            self._database.close()
            raise

    def _make(self, of: str) -> None:
        (application,) = self._one("PRAGMA application_id")
        if not application and not self._one("SELECT count(*) FROM sqlite_master")[0]:
            for statement in _SCHEMA:
                self._database.execute(statement)
            self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
            made = {"format": str(FORMAT), "id": random_id(), "of": of, "trimmed": "0", "from_zero": "[]"}
            self._database.executemany("INSERT INTO meta VALUES (?, ?)", made.items())
        elif application != _APPLICATION:
            raise ConfigError(f"{self.path} is not the {self._what}: name a file that is not there yet")
        if self._meta("format") != str(FORMAT):
            made_by = f"version {self._meta('format')}, and this is version {FORMAT}"
            raise ConfigError(f"{self.path}: the {self._what} is of {made_by}: begin anew with another one")

    def list(self, files: Iterable[FileState], relative: Callable[[str], str] = str) -> int:
        """Note which files there are now, under the names that `relative` gives their paths; return their number."""
        rows = ((relative(file.path), *file) for file in files)
        with self._reporting(), self._transaction():
            self._database.execute("DELETE FROM listed")
            statement = "INSERT OR REPLACE INTO listed (path, place, size, modified_ns, key, changed_ns) VALUES "
            self._database.executemany(f"{statement} (?, ?, ?, ?, ?, ?)", rows)
            return int(self._one("SELECT count(*) FROM listed")[0])

    @property
    def from_zero(self) -> frozenset[str]:
        """The senders of which a batch 0 was stored: they count from 0 (C23)."""
        with self._reporting():
            return frozenset(json.loads(self._meta("from_zero")))

    def close(self) -> None:
        self._database.close()

    def _meta(self, name: str) -> str:
        return str(self._one("SELECT value FROM meta WHERE name = ?", name)[0])

    def _one(self, query: str, *values: object) -> tuple[Any, ...]:
        row: tuple[Any, ...] | None = self._database.execute(query, values).fetchone()
        if row is None:
            raise JournalDamageError(str(self.path), f"the {self._what} is damaged")
        return row

    @contextmanager
    def _transaction(self, how: str = "") -> Iterator[None]:
        self._database.execute(f"BEGIN {how}")
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
                raise SpoolInUseError(str(self.path), f"another process has this {self._what} open") from error
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise JournalDamageError(str(self.path), f"the {self._what} is damaged: {error}") from error
            raise SpoolError(str(self.path), f"the {self._what}: {error}") from error


def facts_text(message: PlannedFile) -> str:
    return json.dumps(asdict(message))


def message_of(facts: str, **other: Any) -> PlannedFile:
    """Return a stored message, with some `other` facts."""
    return planned_file({**json.loads(facts), **other})


def planned_file(row: dict[str, Any]) -> PlannedFile:
    """Return a message from what `asdict` made of it."""
    return PlannedFile(**{**row, "duplicates": tuple(row["duplicates"] or ())})


class StreamIndex(KnownFiles):
    """The positions of files. When `add` returns, its files survive a crash of the process or the machine.

    Raises:
        ConfigError: the file is the index of another stream.
        MtosiError: as `KnownFiles`.
    """

    def __init__(self, path: str | os.PathLike[str], of: str, *, patience: float = 10.0) -> None:
        super().__init__(path, "index of a stream", of, patience=patience)
        if (known := self._meta("of")) != of:
            self.close()
            raise ConfigError(f"{self.path} is the index of {known}, and not of {of}")
        self.id = self._meta("id")

    @property
    def last(self) -> int:
        with self._reporting():
            return int(self._one("SELECT coalesce(max(position), 0) FROM file")[0])

    @property
    def trimmed(self) -> int:
        """The position up to which files were trimmed; 0 if none were."""
        with self._reporting():
            return int(self._meta("trimmed"))

    def offset(self, position: int) -> dict[str, Any]:
        return {"format": OFFSETS, "index": self.id, "position": position}

    def position(self, offset: Mapping[str, Any]) -> int:
        """Return the position of an offset."""
        position = offset.get("position")
        if offset.get("format") != OFFSETS or type(position) is not int:
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

    def add(self, files: Iterable[FileState]) -> tuple[list[str], list[str]]:
        """Give positions to files that have none, the oldest first, and sync the index.

        Returns:
            Files that have changed since they got their position; and files with the key of another file, which get
            none.
        """
        self.list(files)
        differs = "(l.size, l.modified_ns) <> (f.size, f.modified_ns)"
        with self._reporting(), self._transaction("EXCLUSIVE"):
            changed = self._database.execute(
                f"SELECT path FROM listed l JOIN file f USING (path) WHERE {differs} ORDER BY path"  # noqa: S608 - a constant
            ).fetchall()
            self._database.execute(
                "INSERT OR IGNORE INTO file (path, size, modified_ns, key) SELECT path, size, modified_ns, key "
                "FROM listed WHERE path NOT IN (SELECT path FROM file WHERE path IS NOT NULL) "
                "ORDER BY modified_ns, path"
            )
            copies = self._database.execute(
                "SELECT path FROM listed l WHERE NOT EXISTS (SELECT 1 FROM file f WHERE f.path = l.path) ORDER BY path"
            ).fetchall()
        return [path for (path,) in changed], [path for (path,) in copies]

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._position(path) is not None

    def _position(self, path: str) -> int | None:
        with self._reporting():
            found = self._database.execute("SELECT position FROM file WHERE path = ?", (path,)).fetchone()
        return None if found is None else int(found[0])

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

    def keep(self, start: int, end: int, documents: Sequence[PlannedFile]) -> None:
        """Store the messages that the planning of a batch has found, for later batches."""
        rows = []
        for found in documents:
            file = disk_file(found.path, self) or found.path
            rows.append((self._position(file) or end, found.path.removeprefix(file), found))
        known = self.from_zero
        from_zero = known | senders_from_zero(documents)
        with self._reporting(), self._transaction("EXCLUSIVE"):
            self._database.execute("DELETE FROM document WHERE position > ? AND position <= ?", (start, end))
            self._database.executemany(
                "INSERT INTO document VALUES (?, ?, '', NULL, ?, ?)",
                ((position, path, found.correlation_id, facts_text(found)) for position, path, found in rows),
            )
            if from_zero != known:
                value = json.dumps(sorted(from_zero))
                self._database.execute("UPDATE meta SET value = ? WHERE name = 'from_zero'", (value,))

    def earlier(self, position: int, correlation_id: str) -> list[PlannedFile]:
        """Return the messages of a correlationId in batches up to a position."""
        query = "SELECT facts FROM document WHERE correlation_id = ? AND position <= ?"
        with self._reporting():
            return [message_of(text) for (text,) in self._database.execute(query, (correlation_id, position))]

    def trim(self, end: int) -> None:
        """Forget the paths of all files up to a position; the keys of the last million messages stay."""
        with self._reporting(), self._transaction("EXCLUSIVE"):
            trimmed = max(end, int(self._meta("trimmed")))
            self._database.execute("UPDATE file SET path = NULL WHERE position <= ? AND path IS NOT NULL", (trimmed,))
            oldest = (trimmed - _REMEMBERED,)
            self._database.execute("DELETE FROM file WHERE position <= ?", oldest)
            self._database.execute("DELETE FROM document WHERE position <= ?", oldest)
            self._database.execute("UPDATE meta SET value = ? WHERE name = 'trimmed'", (str(trimmed),))
