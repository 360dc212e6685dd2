"""Verifies an outbox or inbox, its database by SQLite and each message by its checksum, and rescues readable messages.

docs/design/spool.md has the steps of a rescue, and what a kill between them leaves.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from io import FileIO
from pathlib import Path
from typing import Any, Final, NamedTuple

from mtosi_jms.closing import Closeable
from mtosi_jms.compression import is_document_name
from mtosi_jms.errors import ConfigError, JournalDamageError, SpoolError, SpoolFullError, SpoolInUseError
from mtosi_jms.files import FileLock, sync
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.spool._folder import LOCK, private, reporting
from mtosi_jms.spool._store import (
    APPLICATION_IDS,
    DATABASE,
    DEAD,
    EMPTY,
    KINDS,
    NOT_AS_STORED,
    OPEN,
    READY,
    RESCUED,
    SETTLED,
    Store,
    StoredMessage,
    finish_rescue,
    has_tables,
    is_whole,
    make_tables,
)

_READY: Final = {"outbox": "waits", "inbox": "landed"}
_DOUBT: Final = "doubt"


class SpoolFolder(Closeable):
    """The folder of an outbox or inbox. Every method may raise SpoolError: the folder cannot be read or written.

    Attributes:
        kind: "outbox" or "inbox".

    Raises:
        JournalDamageError: the database is damaged; see `verify_folder`.
        SpoolError: the folder is not an outbox or inbox, or cannot be read.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        check_kind(Path(folder))
        self._store = Store(Path(folder), "")
        self.kind = self._store.kind

    def messages(self) -> list[StoredMessage]:
        """Returns all unsettled messages in the order of arrival. States: waits, landed, handed, doubt, dead; in doubt
        also if the process that has it is gone."""
        lives = cache(self._store.place.lives)
        return [_as_it_is(one, lives) for one in self._store.messages()]

    def find(self, key: str) -> StoredMessage:
        """Returns what is known of a message. Raises ConfigError: no message has this key, or it is settled."""
        found = self._find(key)
        if found is None:
            raise ConfigError(f"{key}: no message of this key is here")
        return _as_it_is(found, self._store.place.lives)

    def message(self, key: str) -> JmsMessage:
        message = self._store.message(self.find(key).number, key)
        if message is None:
            raise ConfigError(f"{key}: no message of this key is here any more")
        return message

    def redrive(self, key: str) -> None:
        """Have a message that is dead or in doubt sent or handed out again, in its old place. Raises ConfigError: there
        is none; JournalDamageError: it is not as it was stored."""
        found = self.find(key)
        if found.state not in (DEAD, _DOUBT):
            raise ConfigError(f"{key}: neither dead nor in doubt, but {found.state}")
        self._store.message(found.number, key)
        self._change(found, f"UPDATE message SET state = '{_READY[self.kind]}', {READY}")

    def withdraw(self, key: str) -> None:
        """Withdraw a message, so that it is neither sent nor handed out. An outbox removes it, an inbox settles it.
        Raises ConfigError: there is no message with this key, or a consumer has taken it."""
        found = self.find(key)
        if found.owner:
            raise ConfigError(f"{key}: a consumer has it")
        if self.kind == "outbox":
            self._change(found, "DELETE FROM message")
        else:
            self._change(found, f"UPDATE message SET state = 'done', {EMPTY}")

    def _find(self, key: str) -> StoredMessage | None:
        try:
            return next(iter(self._store.query(f"key = ? AND {OPEN}", key)), None)
        except UnicodeEncodeError:  # only a damaged key has such characters
            return next((one for one in self._store.messages() if one.key == key), None)

    def _change(self, found: StoredMessage, statement: str) -> None:
        def work() -> bool:
            now = self._find(found.key)
            if now is None or _as_it_is(now, self._store.place.lives) != found:
                return False
            self._store.execute(f"{statement} WHERE number = ?", found.number)
            return True

        if not self._store.write(work, sync=True):
            raise ConfigError(f"{found.key}: another process has changed it just now; look at it again")

    def close(self) -> None:
        self._store.close()


def _as_it_is(one: StoredMessage, lives: Callable[[str], bool]) -> StoredMessage:
    """Returns a message with its real state: if its owner is gone it has none, and is in doubt if it was handed out."""
    if not one.owner or lives(one.owner):
        return one
    return one._replace(owner="", state=_DOUBT if one.state == "handed" else one.state)


def check_kind(folder: Path) -> None:
    """Refuses a folder that is not an outbox or inbox; the error says what it is."""
    with reporting(folder):
        names = {path.name for path in folder.iterdir()}
    if RESCUED in names:
        reason = f"a rescue was cut off, or is under way; mtosi-jms spool verify {folder} finishes it"
        raise JournalDamageError(str(folder), reason)
    if DATABASE in names:
        return
    if any(map(is_document_name, names)):
        reason = "holds no outbox or inbox but envelopes, as a landing does; see mtosi-jms inspect and replay"
        raise SpoolError(str(folder), reason)
    raise SpoolError(str(folder), "holds no outbox or inbox")


_COPY: Final = "rescue.db"
_NEW: Final = "rescue-new.db"
_SUFFIXES: Final = ("", "-wal", "-shm", "-journal")
_ERRORS: Final = (sqlite3.Error, MemoryError, OverflowError)
"""Errors from damaged pages. MemoryError comes from a page that gives a value an absurd size."""
_ROOT: Final = 2
"""First page of the table of messages, in every database that `make_tables` made."""
_MOST: Final = 1_000_000
"""How many numbers between the first and the last readable message are tried one by one at most."""


class Verification(NamedTuple):
    """The result of `verify_folder`.

    Attributes:
        damaged: keys of messages that are not as they were stored; they are dead now.
        problems: what was wrong with the database, one line each.
        kept: the damaged database, if a new one replaces it; None: it was sound or could be repaired.
        lost: what could not be rescued, as far as known, one line each.
    """

    kind: str
    messages: int
    damaged: list[str]
    problems: list[str]
    kept: Path | None
    lost: list[str]

    @property
    def is_whole(self) -> bool:
        return not (self.damaged or self.problems)


def verify_folder(folder: str | os.PathLike[str]) -> Verification:
    """Checks all messages by their checksums, makes damaged ones dead, and rescues a damaged database.

    Raises:
        SpoolInUseError: the database is damaged, and a process has it open.
        SpoolError: the folder is not an outbox or inbox, cannot be read or written, or nothing can be rescued.
    """
    folder = Path(folder)
    problems: list[str] = []
    kept, lost = None, list[str]()
    if (folder / RESCUED).exists():
        with _alone(folder, "a rescue was cut off"):
            finish_rescue(folder)
        problems.append(f"a rescue was cut off, and is finished now; the damaged database is {DATABASE}.damaged-*")
    found, left = _problems(folder)
    problems += found
    if left:
        kept, lost = _rescue(folder, left[0])
    with closing(Store(folder, "")) as store:
        damaged = store.verify()
        if _recount(store):
            problems.append("the totals by state were wrong; they are counted again")
        return Verification(store.kind, len(store.messages()), damaged, problems, kept, lost)


def _recount(store: Store) -> bool:
    def work() -> bool:
        query = "SELECT state, count(*), sum(size) FROM message GROUP BY state"
        counted = {state: (number, size) for state, number, size in store.execute(query)}
        right = [(state, *counted.get(state, (0, 0))) for state in KINDS[store.kind]]
        if sorted(right, key=repr) == sorted(store.execute("SELECT * FROM total").fetchall(), key=repr):
            return False
        store.execute("DELETE FROM total")
        for row in right:
            store.execute("INSERT INTO total VALUES (?, ?, ?)", *row)
        return True

    return store.write(work, sync=True)


def _problems(folder: Path) -> tuple[list[str], list[str]]:
    """Returns the problems of a database, and those of them that only a rescue can repair."""
    check_kind(folder)
    try:
        with closing(Store(folder, "")) as store:
            return store.mend()
    except JournalDamageError as error:
        found = [str(error.__cause__ or error.reason)]
        return found, found


@contextmanager
def _alone(folder: Path, why: str) -> Iterator[None]:
    with ExitStack() as stack:
        for path in (folder / LOCK, *folder.glob("owner-*.lock")):
            with reporting(path):
                taken = stack.enter_context(FileLock(path)).take()
            if not taken:
                raise SpoolInUseError(
                    str(folder), f"{why}; an outbox or inbox has it open: end its process, and verify once more"
                )
        yield


def _rescue(folder: Path, why: str) -> tuple[Path, list[str]]:
    """Replaces a damaged database by one with all readable messages. Returns the old one's path, and what is lost."""
    path = folder / DATABASE
    with _alone(folder, f"damaged: {why}"), reporting(folder):
        kept = folder / f"{DATABASE}.damaged-{int(time.time() * 1000)}"
        try:
            _remove(folder)
            for suffix in _existing(path):
                _copy(Path(f"{path}{suffix}"), folder / f"{_COPY}{suffix}")
            lost = _Salvage(folder).lost
            for suffix in _existing(path):
                os.link(f"{path}{suffix}", f"{kept}{suffix}")
            (folder / _NEW).rename(folder / RESCUED)
            sync(folder)
            finish_rescue(folder)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                raise SpoolFullError(str(folder), f"no room on the disk for a rescue: {error}") from error
            raise SpoolError(str(folder), f"no new database can be written: {error}") from error
        finally:
            _remove(folder)
    return kept, lost


def _existing(path: Path) -> list[str]:
    return [suffix for suffix in ("", "-wal") if Path(f"{path}{suffix}").exists()]


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as data, FileIO(target, "w", opener=private) as copy:
        shutil.copyfileobj(data, copy, 1024 * 1024)


def _remove(folder: Path) -> None:
    for name in _COPY, _NEW:
        for suffix in _SUFFIXES:
            (folder / f"{name}{suffix}").unlink(missing_ok=True)


class _Salvage:
    """Copies the readable messages of a damaged database to a new one. Raises SpoolError: nothing can be read;
    sqlite3.Error: the new database cannot be written."""

    def __init__(self, folder: Path) -> None:
        self.lost: list[str] = []
        self._numbers: set[int] = set()
        self._keys: set[str] = set()
        self._damaged: list[tuple[Any, ...]] = []
        copy = folder / _COPY
        if not _is_sound(copy):
            _replace_first_page(copy, folder / _NEW)
        with closing(_opened(copy)) as old, closing(_opened(folder / _NEW)) as new:
            kind = _kind_of(old)
            if not kind:
                raise SpoolError(
                    str(folder), f"nothing in {DATABASE} can be read; an outbox or inbox needs a new folder"
                )
            new.execute("BEGIN")
            make_tables(new.execute, kind)
            opened, keys = _indexed(old)
            for row in _rows(old, keys):
                self._take(new, row)
            for row in self._damaged:  # last, so that a damaged key does not block a sound one
                self._add_damaged(new, row)
            self._account(old, new, opened, keys)
            new.execute("COMMIT")

    def _take(self, new: sqlite3.Connection, row: tuple[Any, ...]) -> None:
        number, key, state, since = row[0], row[1], row[2], row[8]
        digest, facts, body = row[12:]
        self._numbers.add(number)
        self._keys.add(key)
        values = f"VALUES ({', '.join('?' * len(row))})"
        try:
            if state in SETTLED and facts is None:
                new.execute(f"INSERT OR IGNORE INTO message {values}", row)
            elif is_whole(key, since, digest, facts, body):
                new.execute(f"INSERT OR REPLACE INTO message {values}", row)
            else:
                self._damaged.append(row)
        except sqlite3.IntegrityError:  # a value is missing
            self._damaged.append(row)

    def _add_damaged(self, new: sqlite3.Connection, row: tuple[Any, ...]) -> None:
        """Keeps the remains of a damaged message as a dead message."""
        number, key, since, size = row[0], row[1], row[8], row[9]
        columns = "number, key, state, since_ms, size, reason, content, digest, facts, body"
        statement = f"INSERT INTO message ({columns}) VALUES (?, ?, '{DEAD}', ?, ?, '{NOT_AS_STORED}', ?, ?, ?, ?)"
        sizes = (value if isinstance(value, int) else 0 for value in (since, size))
        rest = (*sizes, *row[11:])
        try:
            new.execute(statement, (number, key if isinstance(key, str) else f"message {number}", *rest))
        except sqlite3.IntegrityError:
            new.execute(statement, (number, f"{key} (message {number})", *rest))

    def _account(
        self, old: sqlite3.Connection, new: sqlite3.Connection, opened: dict[int, str], keys: dict[int, str]
    ) -> None:
        """Lists the messages that were not rescued: by the indexes, which name them, or by the totals."""
        gone = [number for number in {**opened, **keys} if number not in self._numbers]
        gone = [number for number in gone if keys.get(number) not in self._keys]
        has_index = bool(opened)  # else the index of what is not settled cannot be read
        for number in sorted(gone):
            if number in opened or not has_index:
                key = keys.get(number, f"message {number}, of an unknown key")
                self.lost.append(f"{key} ({opened.get(number, 'its state is not known')})")
        settled = len(gone) - len(self.lost)
        if settled:
            self.lost.append(f"{settled} ids of messages that were done with")
        listed = sum(number in opened or not has_index for number in gone)
        query = f"SELECT coalesce(sum(messages), 0) FROM total WHERE {OPEN}"
        counted = next(iter(_until_damage(old, query)), (None,))[0]
        ((there,),) = new.execute(f"SELECT count(*) FROM message WHERE {OPEN}").fetchall()
        if not isinstance(counted, int):
            self.lost.append("it is not known whether there was more")
        elif counted > there + listed:
            self.lost.append(f"{counted - there - listed} messages of which nothing can be read")


def _opened(path: Path) -> sqlite3.Connection:
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    database = sqlite3.connect(path, isolation_level=None)
    database.text_factory = lambda text: text.decode("utf-8", "replace")
    return database


def _is_sound(copy: Path) -> bool:
    """Whether the first page, which says where the tables are, can be read."""
    with closing(_opened(copy)) as database, suppress(*_ERRORS):
        database.execute("SELECT * FROM message LIMIT 0")
        roots = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'message'").fetchall()
        return has_tables(database.execute) and roots == [(_ROOT,)]
    return False


def _replace_first_page(copy: Path, scratch: Path) -> None:
    """Replaces the first page by that of a new database, whose table of messages begins at the same page."""
    with closing(_opened(scratch)) as database:
        make_tables(database.execute, "inbox")
    page = bytearray(scratch.read_bytes()[:4096])
    scratch.unlink()
    page[24:28], page[92:96] = (b"\0\0\0\1", b"\0\0\0\0")  # differ: the file size counts
    page[32:40] = bytes(8)  # no list of free pages
    with copy.open("r+b") as file:
        page[68:72] = file.read(72)[68:]  # may still say whether it is an outbox or inbox
        file.seek(0)
        file.write(page)


def _kind_of(database: sqlite3.Connection) -> str:
    """Returns "outbox" or "inbox", by the id of the database or the states of its messages; empty: unknown."""
    application_id = next(iter(_until_damage(database, "PRAGMA application_id")), (0,))[0]
    for kind, number in APPLICATION_IDS.items():
        if number == application_id:
            return kind
    states: set[object] = set()
    for query in (
        "SELECT state FROM message NOT INDEXED",
        "SELECT state FROM message NOT INDEXED ORDER BY number DESC",
        "SELECT state FROM total",
    ):
        states.update(state for (state,) in _until_damage(database, query))
    return next((kind for kind, known in KINDS.items() if states & set(known) - {DEAD}), "")


def _until_damage(database: sqlite3.Connection, query: str, *values: object) -> Iterator[Any]:
    with suppress(*_ERRORS):
        yield from database.execute(query, values)


def _indexed(database: sqlite3.Connection) -> tuple[dict[int, str], dict[int, str]]:
    """Returns the content of the indexes: the states of unsettled messages, and all keys, by number."""
    opened: dict[int, str] = {}
    keys: dict[int, str] = {}
    by_state = f"SELECT number, state FROM message INDEXED BY open WHERE {OPEN} ORDER BY state {{0}}, number {{0}}"
    by_key = "SELECT number, key FROM message INDEXED BY sqlite_autoindex_message_1 ORDER BY key {0}"
    for found, query in (opened, by_state), (keys, by_key):
        for order in "ASC", "DESC":
            for number, value in _until_damage(database, query.format(order)):
                if number in found:
                    break
                found[number] = value
    return opened, keys


def _rows(database: sqlite3.Connection, known: Iterable[int]) -> Iterator[tuple[Any, ...]]:
    """Yields the readable messages: from either end, then those between one by one."""
    numbers: set[int] = set()
    for order in "ASC", "DESC":
        for row in _until_damage(database, f"SELECT * FROM message NOT INDEXED ORDER BY number {order}"):
            if row[0] in numbers:
                break
            numbers.add(row[0])
            yield row
    first, last = min(numbers, default=0), max(numbers, default=0)
    for number in (*known, *range(first, min(last, first + _MOST))):
        if number not in numbers:
            for row in _until_damage(database, "SELECT * FROM message NOT INDEXED WHERE number = ?", number):
                numbers.add(number)
                yield row
