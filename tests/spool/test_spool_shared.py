"""Others at work in the same folder, between any two lines of what one object does: nobody fails for want of the other.

Each test runs a story once to find the lines of `mtosi_jms.spool` that it runs, then once for each of them with the
others' work there: where it is run for the first time outside of a transaction, in which they would wait.
"""

from __future__ import annotations

import logging
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import mtosi_jms.spool
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.spool import Inbox, Outbox, SpoolFolder, verify_folder

WORK = Queue("WORK")
SPOOL = str(Path(mtosi_jms.spool.__file__).parent)
KEYS = ("a", "b", "c")
Place = tuple[str, int]


def marked(key: str) -> JmsMessage:
    return JmsMessage(body=f"<order>{key}</order>".encode(), properties={"MTOSIX_messageId": key})


def is_whole(key: str, message: JmsMessage | None) -> bool:
    return message is not None and message.body == marked(key).body


class Turn:
    """Notes the lines of the spool that are run in its block; others have their turn at one of them, once."""

    def __init__(self, at: Place | None = None) -> None:
        self.lines: dict[Place, None] = {}
        self._at = at

    @contextmanager
    def of(self, folder: Path, others: Callable[[], object]) -> Iterator[None]:
        """The block."""

        def line(frame: FrameType, event: str, argument: object) -> Any:
            place = frame.f_code.co_filename, frame.f_lineno
            if event == "line":
                self.lines[place] = None
                if place == self._at and self._is_free(folder):
                    self._at = None
                    sys.settrace(None)
                    others()
            return line

        sys.settrace(lambda frame, event, argument: line if frame.f_code.co_filename.startswith(SPOOL) else None)
        try:
            yield
        finally:
            sys.settrace(None)

    @staticmethod
    def _is_free(folder: Path) -> bool:
        with closing(sqlite3.connect(folder / "messages.db", timeout=0, isolation_level=None)) as database:
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            return True


def every_line(story: Callable[[Turn], None]) -> None:
    """Runs a story with others that do nothing, then with their work at each line."""
    counting = Turn()
    story(counting)
    assert len(counting.lines) > 10
    for line in counting.lines:
        story(Turn(line))


def settle(inbox: Inbox) -> None:
    for entry in inbox.in_doubt:
        inbox.done(entry.key)


def hand_all(inbox: Inbox, handed: Counter[str]) -> None:
    while (entry := inbox.take()) is not None:
        inbox.hand(entry.key)
        assert is_whole(entry.key, entry.message)
        handed[entry.key] += 1
        inbox.done(entry.key)


def test_what_is_in_doubt(folders: Callable[[], Path], caplog: pytest.LogCaptureFixture) -> None:
    """Listed, told at the opening, and noted, while another process settles it."""
    caplog.set_level(logging.ERROR)

    def story(turn: Turn) -> None:
        folder, told = folders(), []
        with Inbox(folder) as other:
            for key in KEYS:
                other.land(marked(key))
                other.hand(key)
                if key != "c":
                    other.mark_in_doubt(key)
            with turn.of(folder, lambda: settle(other)), Inbox(folder, on_doubt=told.append) as inbox:
                told += inbox.in_doubt
                other.mark_in_doubt("c")
                inbox.mark_in_doubt("c")
            assert all(is_whole(entry.key, entry.message) for entry in told)

    every_line(story)
    assert caplog.messages == []


def test_what_is_handed_out(folders: Callable[[], Path]) -> None:
    """Two take from one inbox."""

    def story(turn: Turn) -> None:
        folder, handed = folders(), Counter[str]()
        with Inbox(folder) as inbox, Inbox(folder) as other:
            for one in KEYS:
                inbox.land(marked(one))
            with turn.of(folder, lambda: hand_all(other, handed)):
                hand_all(inbox, handed)
        assert handed == Counter(KEYS)

    every_line(story)


def test_one_inbox_opens_as_another_closes(folders: Callable[[], Path]) -> None:
    """Each inbox has a file in the folder while it is open, and SQLite some of its own."""

    def story(turn: Turn) -> None:
        folder = folders()
        other = Inbox(folder)
        other.land(marked("a"))
        assert other.take() is not None
        with turn.of(folder, other.close), Inbox(folder) as inbox:
            pass
        other.close()
        with Inbox(folder) as inbox:
            assert [entry.key for entry in [inbox.take()] if entry is not None] == ["a"]

    every_line(story)


def test_an_outbox_that_is_looked_at(folders: Callable[[], Path]) -> None:
    """What one withdraws is missing in the other's lists, no more."""

    def story(turn: Turn) -> None:
        folder = folders()
        with Outbox(folder) as outbox:
            for key in KEYS:
                outbox.put(marked(key), WORK)
            with closing(SpoolFolder(folder)) as looking:

                def confirm() -> None:
                    for message in outbox.unconfirmed():
                        outbox.confirm(message)

                with turn.of(folder, confirm):
                    assert verify_folder(folder).damaged == []

                def withdraw() -> None:
                    for one in looking.messages():
                        looking.withdraw(one.key)

                outbox.put(marked("d"), WORK)
                with turn.of(folder, withdraw):
                    found = outbox.unconfirmed(), outbox.dead
                assert all(is_whole(str(message.properties["MTOSIX_messageId"]), message) for message in found[0])
                assert found[1] == []

    every_line(story)
