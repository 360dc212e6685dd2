"""What an operator does with the folder of an outbox or inbox: look, verify, redrive, withdraw.

It works beside the process that has the folder open; a damaged one is rescued when nobody has.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.spool.files import reporting, sync_folder
from mtosi_jms.spool.store import DATABASE, EMPTY, Store, StoredMessage, make_tables

log = logging.getLogger(__name__)

_READY: Final = {"outbox": "waits", "inbox": "landed"}


class Verification(NamedTuple):
    """What `SpoolFolder.verify` found.

    Attributes:
        messages: how many are there, those that are done with excluded.
        damaged: keys of those that are not as they were stored; they are dead now.
        problems: what is wrong with the database, a line each; empty where nothing is.
        kept: where the damaged database is, of which all that can be read was written to a new one; None: it was whole.
    """

    messages: int
    damaged: list[str]
    problems: list[str]
    kept: Path | None


class SpoolFolder:
    """The folder of an outbox or inbox.

    Args:
        folder: it.

    Attributes:
        kind: "outbox" or "inbox".

    Raises:
        SpoolError: there is no outbox or inbox, or it cannot be read.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._store = Store(Path(folder), "")
        self.kind = self._store.kind

    def messages(self) -> list[StoredMessage]:
        """All that is not done with, in the order of arrival: waits, landed, handed, doubt, dead.

        Raises:
            SpoolError: it cannot be read.
        """
        return self._store.messages()

    def message(self, key: str) -> JmsMessage:
        """A message.

        Raises:
            JournalDamageError: it is not as it was stored.
            ConfigError: there is none of this key.
        """
        message = self._store.message(self._find(key).number, key)
        if message is None:
            raise ConfigError(f"{key}: it has been settled")
        return message

    def redrive(self, key: str) -> None:
        """Have a dead message, or one in doubt, sent or handed out again, in its old place.

        Raises:
            ConfigError: there is none of this key, or it is neither dead nor in doubt.
            SpoolError: that cannot be noted.
        """
        found = self._find(key)
        self._store.message(found.number, key)
        if not self._store.redrive(key, _READY[self.kind]):
            raise ConfigError(f"{key}: neither dead nor in doubt, but {found.state}")

    def withdraw(self, key: str) -> None:
        """Have a message neither sent nor handed out: an outbox forgets it, an inbox takes it for done with.

        Raises:
            ConfigError: there is none of this key, or a handler has it.
            SpoolError: that cannot be noted.
        """
        found = self._find(key)
        if found.state == "handed":
            raise ConfigError(f"{key}: a handler has it")
        statement = "DELETE FROM message WHERE number = ? AND state = ?"
        if self.kind == "inbox":
            statement = f"UPDATE message SET state = 'done', {EMPTY} WHERE number = ? AND state = ?"
        self._store.write(lambda: self._store.execute(statement, found.number, found.state), sync=True)

    def verify(self) -> Verification:
        """Compares all with their checksums. What is not as it was stored is set aside; a damaged database is rescued.

        Raises:
            SpoolInUseError: it is damaged, and a process has it open.
            SpoolError: it cannot be read or written.
        """
        problems = self._store.integrity()
        kept = self._rescue() if problems else None
        damaged = self._store.verify()
        return Verification(len(self._store.messages()), damaged, problems, kept)

    def _rescue(self) -> Path:
        """Writes what can be read to a new database, and puts it in the place of the damaged one, which is kept."""
        folder = self._store.folder
        self._store.hold()
        path, rescued = folder / DATABASE, folder / "rescued.db"
        kept = folder / f"{DATABASE}.damaged-{int(time.time() * 1000)}"
        rows = _readable(self._store)
        with reporting(path):
            rescued.unlink(missing_ok=True)
            _write(rescued, self.kind, rows)
            os.link(path, kept)
            for suffix in "-wal", "-shm":  # of the damaged one; its messages have been read
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            rescued.replace(path)
            sync_folder(folder)
        self._store.close()
        self._store = Store(folder, "")
        return kept

    def close(self) -> None:
        """Let go of the folder."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _find(self, key: str) -> StoredMessage:
        found = next((one for one in self._store.messages() if one.key == key), None)
        if found is None:
            raise ConfigError(f"{key}: no message of this key is here")
        return found


def _readable(store: Store) -> list[Any]:
    """The rows of a damaged database that can be read: from either end, and those between one by one."""
    rows: dict[int, Any] = {}
    for order in "ASC", "DESC":
        with suppress(sqlite3.Error, UnicodeDecodeError):
            for row in store.execute(f"SELECT rowid, * FROM message NOT INDEXED ORDER BY rowid {order}"):
                if row[0] in rows:
                    break
                rows[row[0]] = row
    for number in range(min(rows, default=0), max(rows, default=0)):
        if number not in rows:
            with suppress(sqlite3.Error, UnicodeDecodeError):
                query = "SELECT rowid, * FROM message WHERE rowid = ?"
                rows.update((row[0], row) for row in store.execute(query, number))
    return [(number, *row[2:]) for number, row in sorted(rows.items())]  # the name of a column may be damaged


def _write(path: Path, kind: str, rows: list[Any]) -> None:
    """A new database with these rows; one that does not fit, with a damaged key, say, is told in the log."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN")
        make_tables(database.execute, kind)
        for row in rows:
            try:
                database.execute(f"INSERT INTO message VALUES ({', '.join('?' * len(row))})", row)
            except sqlite3.Error as error:
                log.error("the message %s is not rescued: %s", row[1], error)  # noqa: TRY400
        database.execute("COMMIT")
