"""An operator's access to an outbox or inbox that processes may have open: view, redrive, withdraw."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from mtosi_jms.closing import Closeable
from mtosi_jms.compression import is_document_name
from mtosi_jms.errors import ConfigError, JournalDamageError, SpoolError
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.spool._files import reporting
from mtosi_jms.spool._store import DATABASE, DEAD, EMPTY, OPEN, READY, RESCUED, Store, StoredMessage

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
