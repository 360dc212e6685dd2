"""Messages by key, each in a state, in one SQLite database: the common part of outbox and inbox.

docs/design/spool.md has the states, the transactions, and what a crash leaves. In short: each change is one
transaction; transactions that store a message or hand it out are synced; all relevant state is in the database.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import IllegalStateError, JournalDamageError, SpoolError, SpoolFullError, SpoolInUseError
from mtosi_jms.files import sync
from mtosi_jms.jms.ids import random_id
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.spool._folder import LOCK, PrivateFolder, reporting
from mtosi_jms.spool._sidecar import decode_facts, encode_facts
from mtosi_jms.telemetry import Gauge, Telemetry

log = logging.getLogger(__package__)

T = TypeVar("T")
J = TypeVar("J", bound="HasFolder")

DATABASE: Final = "messages.db"
RESCUED: Final = "rescued.db"
"""The database that `spool verify` has rescued, complete and synced, until it replaces the damaged one."""
LIMIT_BYTES: Final = BOUNDS.spool_bytes
"""Bytes of unsettled messages that an outbox or inbox takes by default."""
DEAD: Final = "dead"
SETTLED: Final = ("done", "parked")
"""The final states: an inbox keeps only the id of such a message."""
KINDS: Final = {"outbox": ("waits", DEAD), "inbox": ("landed", "handed", "doubt", DEAD, *SETTLED)}
"""The states in an outbox and in an inbox."""
APPLICATION_IDS: Final = {"outbox": 0x4D544F42, "inbox": 0x4D544942}
NOT_AS_STORED: Final = "it is not as it was stored"

OPEN: Final = "state NOT IN ('done', 'parked')"
"""Condition of the index of unsettled messages; SQLite uses the index for queries that repeat it word for word."""
EMPTY: Final = "owner = NULL, size = 0, reason = NULL, digest = NULL, facts = NULL, body = NULL"
"""Assignments for a settled message of an inbox, which keeps key, state and the digest of its body."""
READY: Final = "owner = NULL, reason = NULL, conflict = 0, attempts = 0, next_ms = 0"
"""Assignments, beside the state, for a message that starts again as if it had just come."""
_TO_DEAD: Final = f"UPDATE message SET state = 'dead', reason = ?, owner = NULL WHERE number = ? AND {OPEN}"

_BUSY: Final = 30.0
"""Seconds to wait for another process's transaction."""
_PAGE: Final = 4096
_VACUUM: Final = 16 * 1024 * 1024
"""Unused bytes from which on opening makes the database smaller, if they are more than half of it."""
_SCHEMA: Final = (
    """CREATE TABLE message (
        number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, state TEXT NOT NULL, destination TEXT, owner TEXT,
        conflict INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, next_ms INTEGER NOT NULL DEFAULT 0,
        since_ms INTEGER NOT NULL, size INTEGER NOT NULL, reason TEXT, content BLOB, digest BLOB, facts BLOB,
        body BLOB)""",
    f"CREATE INDEX open ON message (state, number) WHERE {OPEN}",
    "CREATE TABLE total (state TEXT PRIMARY KEY, messages INTEGER NOT NULL, bytes INTEGER NOT NULL)",
    """CREATE TRIGGER added AFTER INSERT ON message BEGIN
        UPDATE total SET messages = messages + 1, bytes = bytes + new.size WHERE state = new.state; END""",
    """CREATE TRIGGER removed AFTER DELETE ON message BEGIN
        UPDATE total SET messages = messages - 1, bytes = bytes - old.size WHERE state = old.state; END""",
    """CREATE TRIGGER changed AFTER UPDATE OF state ON message BEGIN
        UPDATE total SET messages = messages - 1, bytes = bytes - old.size WHERE state = old.state;
        UPDATE total SET messages = messages + 1, bytes = bytes + new.size WHERE state = new.state; END""",
)
_FORMAT: Final = 1
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""Codes that mean damage. The statements are correct, so if SQLite rejects one, the tables have changed."""
_COLUMNS: Final = (
    "number, CAST(key AS TEXT), CAST(state AS TEXT), CAST(since_ms AS INTEGER), CAST(size AS INTEGER),"
    " CAST(attempts AS INTEGER), CAST(coalesce(reason, '') AS TEXT), CAST(coalesce(destination, '') AS TEXT),"
    " CAST(coalesce(owner, '') AS TEXT)"
)
"""The columns of `StoredMessage`, with casts, as a damaged column may hold a value of any type."""
_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
"""Errors of SQLite. A UnicodeDecodeError comes from a damaged name in the text of an error."""


class StoredMessage(NamedTuple):
    """What the database knows of a message, without the message itself.

    Attributes:
        number: its place in the order of arrival.
        state: of an outbox `waits` or `dead`; of an inbox `landed`, `handed`, `doubt` or `dead`.
        since_ms: when it was stored, milliseconds since 1970 UTC.
        attempts: how often the provider has refused it.
        reason: why it is dead; empty if it is not.
        destination: where it goes, or where it was received, as `queue:NAME`; empty if it has none.
        owner: the inbox that has taken it; empty if none has.
    """

    number: int
    key: str
    state: str
    since_ms: int
    size: int
    attempts: int
    reason: str
    destination: str
    owner: str


class DeadMessage(NamedTuple):
    """A message that was refused, in conflict, or damaged on disk; `message` is None if it cannot be read."""

    key: str
    reason: str
    message: JmsMessage | None


class HasFolder(Protocol):
    @property
    def folder(self) -> Path: ...


class Store:
    """The database of an outbox or inbox; threads may share it.

    `kind`: empty opens what exists, also while processes have it open. `alone`: lock the folder against all others.
    `limits`: bytes and number of unsettled messages, or None. `lock` is held by each method, and for
    several calls that belong together; take it before the database's. `me`: this object in the column `owner`.

    Raises SpoolInUseError; JournalDamageError: `mtosi-jms spool verify` rescues what can be read; SpoolError: the
    folder cannot be read or written, or others may access it; SpoolFullError: of any method, on a full disk."""

    def __init__(
        self,
        folder: Path,
        kind: str,
        *,
        clock: Callable[[], float] = time.time,
        alone: bool = False,
        limits: tuple[int | None, int | None] = (None, None),
    ) -> None:
        self.folder = folder
        self.kind = kind
        self.lock = threading.RLock()
        self.me = random_id()
        self._clock = clock
        self._limits = limits
        self._pid = os.getpid()
        self._database: sqlite3.Connection | None = None
        self._path = folder / DATABASE
        self.place = PrivateFolder(folder, make=bool(kind))
        try:
            self._open(alone)
        except BaseException:
            self.close()
            self.place.close()  # where there was no database yet
            raise
        _stores.add(self)

    def _open(self, alone: bool) -> None:
        if not self.kind:
            self._guarded(self._connect)
            return
        guard = self.place.lock(LOCK, wait=not alone)
        finish_rescue(self.folder)
        if self.place.has_reserve() and not (self._path.exists() and self._path.stat().st_size):
            raise JournalDamageError(str(self._path), "gone, or empty: its messages are lost; name a new folder")
        if not self._path.exists():
            with reporting(self._path):
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self._guarded(self._connect, reserve=True)
        if not self.execute("PRAGMA application_id").fetchone()[0]:
            self.write(partial(make_tables, self.execute, self.kind), sync=True)
        self._guarded(self._look_over, reserve=True)
        self.place.make_reserve()
        if self.kind == "inbox":
            self.place.enter(self.me)
        if not alone:
            guard.close()

    def _connect(self) -> None:
        if self._database is not None:  # at a second attempt
            self._database.close()
        self._database = sqlite3.connect(self._path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        self._database.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        pages = self.place.room // 2 // _PAGE
        for setting in "journal_mode = WAL", f"wal_autocheckpoint = {pages}", f"journal_size_limit = {pages * _PAGE}":
            self.execute(f"PRAGMA {setting}").fetchall()
        (made,) = self.execute("PRAGMA application_id").fetchone()
        found = next((kind for kind, number in APPLICATION_IDS.items() if number == made), "")
        if not found and (made or (not self.kind and self.execute("SELECT 1 FROM sqlite_master").fetchone())):
            raise sqlite3.DatabaseError("the database does not say that it is an outbox's or inbox's")
        if made and found != (self.kind or found):
            raise SpoolError(str(self.folder), f"holds no {self.kind}")
        if not (made or self.kind):
            raise SpoolError(str(self.folder), "holds no outbox or inbox yet; another process is making one")
        self.kind = self.kind or found

    def _look_over(self) -> None:
        """Checks the integrity of the database, and frees unused space if there is much."""
        wrong, found = self.mend()
        if wrong and not found:
            for key in self.verify():
                log.error("%s: the message %s is damaged, and dead now", self._path, key)
        if found:
            raise self._damage(found[0])
        (pages,), (free,) = (self.execute(f"PRAGMA {name}_count").fetchone() for name in ("page", "freelist"))
        if free * _PAGE > _VACUUM and free * 2 > pages:
            try:
                self.execute("VACUUM")
            except sqlite3.Error as error:  # no room for it, or others are at work
                log.debug("%s: the database keeps its size: %s: %s", self.folder, type(error).__name__, error)

    def integrity(self) -> list[str]:
        try:
            texts = [str(text) for (text,) in self.execute("PRAGMA integrity_check")]
            lines = [line for text in texts for line in text.splitlines() if not line.startswith("***")] or texts
            if not has_tables(self.execute):
                lines.append("the tables are not those that were made")
        except _ERRORS as error:
            if _code(error) not in _DAMAGED:
                raise self._mapped(error) from error
            lines = [str(error)]
        return [] if lines == ["ok"] else lines

    def mend(self) -> tuple[list[str], list[str]]:
        """Rebuilds indexes that do not fit the messages. Returns what was wrong with the database, and what is now."""
        found = self.integrity()
        if not found or not all("index" in line or "UNIQUE" in line for line in found):
            return found, found
        # The pages are consistent, and a message is not as it was stored: its checksum shows which one.
        try:
            self.write(lambda: self.execute("REINDEX"), sync=True)
        except (SpoolFullError, SpoolInUseError):
            raise
        except SpoolError:  # two messages of one key
            return found, found
        return found, self.integrity()

    # Transactions.

    def write(self, work: Callable[[], T], *, sync: bool, settles: bool = True) -> T:
        """Changes the database in one transaction by `work`. `sync`: it must survive a crash of the machine. `settles`:
        it may use up the reserve, as all may but those that store new messages."""
        with self.lock:
            return self._guarded(lambda: self._transact(work, sync=sync), reserve=settles)

    def _guarded(self, work: Callable[[], T], *, reserve: bool = False) -> T:
        """Maps errors. With `reserve`, on a full disk it frees the reserve and tries again."""
        try:
            return work()
        except _ERRORS as error:
            if not (reserve and self._is_full(error) and self.place.give_up_reserve()):
                raise self._mapped(error) from error
        return self._guarded(work)

    def _transact(self, work: Callable[[], T], *, sync: bool) -> T:
        database = self._connection()
        if database.in_transaction:  # an exception came between two lines of this function
            database.rollback()
        database.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
        try:
            database.execute("BEGIN IMMEDIATE")
            result = work()
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:
                database.rollback()
            raise
        return result

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Runs a statement inside `write`."""
        return self._connection().execute(statement, values)

    def change(self, statement: str, *values: Any, sync: bool) -> bool:
        """Runs one statement in its own transaction; returns whether it changed anything."""
        return self.write(lambda: self.execute(statement, *values).rowcount > 0, sync=sync)

    def read(self, statement: str, *values: Any) -> list[Any]:
        with self.lock:
            return self._guarded(lambda: self.execute(statement, *values).fetchall())

    def first(self, statement: str, wanted: Callable[[Any], bool]) -> Any:
        """Returns the first row of a query for which `wanted` is true; None if there is none."""
        with self.lock:
            return self._guarded(lambda: next(filter(wanted, self.execute(statement)), None))

    def _connection(self) -> sqlite3.Connection:
        if os.getpid() != self._pid:
            raise IllegalStateError(
                f"{self.folder}: opened by the process that this one was forked from; open the folder after the fork"
            )
        if self._database is None:
            raise SpoolError(str(self.folder), f"the {self.kind} is closed")
        return self._database

    def _is_full(self, error: Exception) -> bool:
        """Whether the disk is full. For the index of its log, SQLite reports only that it cannot be written."""
        code = _code(error)
        return code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and self.place.free() < _PAGE * 64)

    def _damage(self, reason: object) -> JournalDamageError:
        reason = f"damaged: {reason}; mtosi-jms spool verify {self.folder} rescues what can be read"
        return JournalDamageError(str(self._path), reason)

    def _full(self, reason: str) -> SpoolFullError:
        return SpoolFullError(str(self.folder), f"{reason}; free some on the file system of this folder")

    def _mapped(self, error: Exception) -> SpoolError:
        code = _code(error)
        if self._is_full(error):
            return self._full("no room on the disk")
        if code in _DAMAGED:
            return self._damage(error)
        if code == sqlite3.SQLITE_BUSY:
            return SpoolInUseError(str(self.folder), f"another process is in a transaction for more than {_BUSY:g} s")
        return SpoolError(str(self._path), str(error))

    # Messages. Methods that change the database are called inside `write`, unless they say otherwise.

    def now_ms(self) -> int:
        return int(self._clock() * 1000)

    def insert(self, key: str, message: JmsMessage, state: str, *, conflict: bool = False) -> int:
        """Stores a message, if it is within the limits, and returns its number."""
        facts, since = encode_facts(message), self.now_ms()
        size = len(facts) + len(message.body)
        self._check_limits(size)
        cursor = self.execute(
            "INSERT INTO message (key, state, destination, conflict, since_ms, size, content, digest, facts, body)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(key, state, str(message.destination), conflict, since, size, content_digest(message.body)),
            *(digest_of(key, since, facts, message.body), facts, message.body),
        )
        return cursor.lastrowid or 0

    def message(self, number: int, key: str) -> JmsMessage | None:
        """Returns a message; None if another process has settled it. Raises JournalDamageError: the message is not as
        it was stored."""
        row = self.read(f"SELECT key, since_ms, digest, facts, body FROM message WHERE number = ? AND {OPEN}", number)
        if not row or row[0][0] != key:
            return None
        _, since_ms, digest, facts, body = row[0]
        if is_whole(key, since_ms, digest, facts, body):
            return decode_facts(facts, body)
        raise JournalDamageError(str(self._path), f"the message {key!s} is not as it was stored")

    def move_to_dead(self, number: int, reason: str) -> None:
        """Makes a message dead: it stays but is not sent or handed out any more. Runs its own transaction."""
        self.change(_TO_DEAD, reason, number, sync=True)

    def sound_message(self, number: int, key: str) -> JmsMessage | None:
        """Returns a message; None if it is settled or damaged. Makes a damaged one dead. Do not call it in `write`."""
        try:
            return self.message(number, key)
        except JournalDamageError as error:
            self.move_to_dead(number, NOT_AS_STORED)
            log.error("a message is damaged, and dead now: %s: %s", type(error).__name__, error)  # noqa: TRY400 - the fault is the disk's
            return None

    def verify(self) -> list[str]:
        """Checks each message by its checksum, makes damaged ones dead, and returns their keys. Others may have it
        open."""
        return [one.key for one in self.messages() if self.write(partial(self._is_damaged, one), sync=True)]

    def _is_damaged(self, one: StoredMessage) -> bool:
        columns = "key, since_ms, digest, facts, body, state"
        row = self.execute(f"SELECT {columns} FROM message WHERE number = ? AND {OPEN}", one.number).fetchone()
        if row is None:  # settled meanwhile
            return False
        whole, known = is_whole(*row[:5]), row[5] in KINDS[self.kind]
        if row[5] != DEAD and not (whole and known):
            self.execute(_TO_DEAD, "it was in no known state" if whole else NOT_AS_STORED, one.number)
        return not (whole and known)

    def messages(self, *states: str) -> list[StoredMessage]:
        """Returns the messages in these states, in the order of arrival; without states, all unsettled ones."""
        where = f"state IN ({marks(states)}) AND {OPEN}" if states else OPEN
        return self.query(f"{where} ORDER BY number", *states)

    def query(self, where: str, *values: str) -> list[StoredMessage]:
        return [StoredMessage(*row) for row in self.read(f"SELECT {_COLUMNS} FROM message WHERE {where}", *values)]

    def dead(self) -> list[DeadMessage]:
        found = []
        for one in self.messages(DEAD):
            try:
                message = self.message(one.number, one.key)
            except JournalDamageError:
                found.append(DeadMessage(one.key, one.reason, None))
            else:
                found += [DeadMessage(one.key, one.reason, message)] if message is not None else []
        return found

    def count(self, *states: str) -> int:
        query = f"SELECT coalesce(sum(messages), 0) FROM total WHERE state IN ({marks(states)})"
        ((messages,),) = self.read(query, *states)
        return int(messages)

    def _check_limits(self, size: int) -> None:
        most_bytes, most_messages = self._limits
        query = "SELECT sum(messages), sum(bytes) FROM total WHERE state NOT IN ('done', 'parked')"
        ((messages, taken),) = self.execute(query)
        for most, needed, what in (most_bytes, taken + size, "bytes"), (most_messages, messages + 1, "messages"):
            if most is not None and needed > most:
                raise SpoolFullError(str(self.folder), f"the {self.kind} has reached its limit of {most:,} {what}")
        if self.place.free() < 2 * size + self.place.room // 2:
            # A message is written twice, to the log and then to the database, and settling needs room too.
            raise self._full("too little room on the disk")
        self.place.make_reserve()

    # The folder.

    def owners_gone(self) -> list[str]:
        """Returns the owners of messages whose inbox is no longer open."""
        owners = self.read(f"SELECT DISTINCT owner FROM message WHERE owner IS NOT NULL AND {OPEN}")
        return [owner for (owner,) in owners if owner != self.me and not self.place.lives(owner)]

    def close(self) -> None:
        """Releases the folder; unsettled messages stay in it. May be called again."""
        with self.lock:
            if self._database is None or os.getpid() != self._pid:
                return
            self._database.close()
            (self.folder / f"owner-{self.me}.lock").unlink(missing_ok=True)
            self.place.close()
            self._database = None  # last, so that after an interruption it can be closed again

    def left_by_fork(self) -> None:
        """Lets go of the database in a child process: it belongs to the parent, also from SQLite's point of view."""
        database, self._database = self._database, None
        if database is not None and not database.in_transaction:
            database.close()  # the parent keeps its own copy, and its locks
        else:
            _abandoned.append(database)
        self.place.close()

    def __del__(self) -> None:
        if self.__dict__.get("_database") is not None and os.getpid() == self._pid:
            self.close()
            warnings.warn(f"{self.folder}: the {self.kind} was not closed", ResourceWarning, stacklevel=2)


def watch(telemetry: Telemetry, gauge: Gauge, journal: J, value: Callable[[J], float]) -> None:
    """Have a telemetry read a value of an outbox or inbox. That does not keep it alive; closed ones are left out."""
    weak = weakref.ref(journal)

    def read() -> float | None:
        one = weak()
        try:
            return float(value(one)) if one is not None else None
        except SpoolError:  # closed, or its folder cannot be read
            return None

    telemetry.watch(gauge, str(journal.folder), read)


def marks(values: tuple[str, ...] | list[str]) -> str:
    """Returns the placeholders for values in a statement."""
    return ", ".join("?" * len(values))


def _code(error: Exception) -> int:
    """Returns the code of SQLite's error; for any other error, the code of damage."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF


def make_tables(execute: Callable[[str], object], kind: str) -> None:
    """Creates the tables of an outbox or inbox in an empty database."""
    for statement in _SCHEMA:
        execute(statement)
    for state in KINDS[kind]:
        execute(f"INSERT INTO total VALUES ('{state}', 0, 0)")
    execute(f"PRAGMA application_id = {APPLICATION_IDS[kind]}")
    execute(f"PRAGMA user_version = {_FORMAT}")


def has_tables(execute: Callable[[str], sqlite3.Cursor]) -> bool:
    """Whether a database has exactly the tables of `make_tables`, because SQLite would use a damaged definition."""
    made = execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    return sorted(str(sql) for (sql,) in made) == sorted(_SCHEMA)


def content_digest(body: bytes) -> bytes:
    """Returns a digest that identifies a body."""
    return blake2b(body, digest_size=16).digest()


def digest_of(key: str, since_ms: int, facts: bytes, body: bytes) -> bytes:
    digest = blake2b(f"{key}\n{since_ms}\n{len(facts)}\n".encode("utf-8", "surrogateescape"), digest_size=16)
    digest.update(facts)
    digest.update(body)
    return digest.digest()


def is_whole(key: Any, since_ms: Any, digest: Any, facts: Any, body: Any) -> bool:
    try:
        return bool(digest == digest_of(key, since_ms, facts, body))
    except (TypeError, ValueError, AttributeError):  # a column with a value of another type
        return False


def finish_rescue(folder: Path) -> None:
    """Replaces the damaged database by a rescued one, if there is one. The caller has locked the folder."""
    path, rescued = folder / DATABASE, folder / RESCUED
    with reporting(folder):
        if not rescued.exists():
            return
        for suffix in "-wal", "-shm":  # of the damaged one: SQLite would take them for the new one's
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        rescued.replace(path)
        sync(folder)


_stores: Final[weakref.WeakSet[Store]] = weakref.WeakSet()
_held: Final[list[Store]] = []
_abandoned: Final[list[sqlite3.Connection | None]] = []
"""Connections of a parent process in a transaction: closing one here would roll back the parent's transaction."""


def _before_fork() -> None:
    """Takes the locks of all stores, so that no fork happens in a transaction."""
    for store in list(_stores):
        store.lock.acquire()
        _held.append(store)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().lock.release()


def _after_fork_in_child() -> None:
    for store in _held:
        store.left_by_fork()
    _after_fork_in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
