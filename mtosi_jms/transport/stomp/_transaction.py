"""A STOMP transaction: everything is sent at once, and only the receipt of COMMIT counts.

If the broker refuses a part, ActiveMQ fails the COMMIT. Artemis ends the connection, which leaves open whether it has
seen the COMMIT: there COMMIT is sent only after everything before it is confirmed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from mtosi_jms.errors import MtosiError, TransportError, UnknownOutcomeError, WriteError
from mtosi_jms.transport.stomp._frames import Frame
from mtosi_jms.transport.stomp._link import Link
from mtosi_jms.transport.stomp._subscriptions import Entry

_LATE: Final = 2.0
"""Seconds by which the reason of a failed COMMIT may come after it."""


class Transaction(NamedTuple):
    """One transaction on one link. Its name is never used again."""

    link: Link
    name: str


class Begun:
    """The transaction of a session that was begun at the broker before its commit, if any."""

    def __init__(self, new: Callable[[Link], Transaction]) -> None:
        self._new = new
        self._lock = threading.Lock()
        self._transaction: Transaction | None = None
        self._ended = False

    @property
    def is_open(self) -> bool:
        return self._transaction is not None

    def acknowledge(self, entries: Sequence[Entry]) -> None:
        """Acknowledges inside the transaction what came in it on one link; the link's loss undoes that."""
        with self._lock:
            if self._ended or any(one.is_stale for one in entries):  # a stale one keeps it from being committed
                return
            link = entries[0].link
            frames: list[Frame] = []
            if self._transaction is None:
                self._transaction = self._new(link)
                frames.append(("BEGIN", {"transaction": self._transaction.name}, b""))
            if self._transaction.link is not link:
                return
            for one in entries:
                one.uncommitted = True
            try:
                link.send([*frames, *_acknowledgements(self._transaction, entries)])
            except BaseException as error:  # whether the broker has some of it is unknown
                link.end(TransportError(f"a transaction cannot go on: {error}"))
                if not isinstance(error, WriteError):
                    raise

    def take(self) -> Transaction | None:
        with self._lock:
            taken, self._transaction = self._transaction, None
            return taken

    def end(self, deadline: float) -> None:
        """Aborts the transaction, and refuses others, because the session is closed."""
        with self._lock:
            self._ended = True
        self.abort(deadline)

    def abort(self, deadline: float) -> None:
        """Aborts the transaction. The broker redelivers messages only after their subscriptions are ended."""
        taken = self.take()
        if taken is None:
            return
        try:
            taken.link.send([("ABORT", {"transaction": taken.name}, b"")], deadline)
        except WriteError as error:  # the end of the link undoes it as well
            taken.link.end(TransportError(f"a transaction was not undone: {error}"))


def transact(
    transaction: Transaction,
    sends: Sequence[Frame],
    entries: Sequence[Entry],
    deadline: float,
    *,
    begun: bool,
    at_once: bool,
) -> None:
    """Sends and acknowledges as one transaction. `at_once`: COMMIT need not wait for what is before it.

    Raises UnknownOutcomeError: COMMIT was sent and not confirmed; MtosiError: nothing took effect."""
    link, name = transaction
    named = {"transaction": name}
    frames: list[Frame] = [] if begun else [("BEGIN", named, b"")]
    frames += _inside(sends, named)
    link.take_refused()
    if not at_once and frames:
        _announce(link, frames, deadline)
        frames = []
    frames += _acknowledgements(transaction, entries)
    try:
        link.send([("COMMIT", named, b"")], deadline, before=frames, confirmed=True)
    except WriteError as error:
        if begun:
            link.end(TransportError(f"a transaction was not ended: {error}"))
        raise TransportError(f"{error}; the transaction is rolled back") from error
    except UnknownOutcomeError as error:
        link.end(TransportError(f"a transaction did not end well: {error}"))
        raise
    except MtosiError as error:
        reason = link.await_refused(_LATE) if at_once else link.take_refused()
        if entries or begun:  # the broker's own book of them is of no use any more
            link.end(TransportError(f"a transaction did not end well: {error}"))
        raise reason or error from error


def _announce(link: Link, frames: Sequence[Frame], deadline: float) -> None:
    *before, last = frames
    try:
        link.send([last], deadline, before=before, confirmed=True)
    except (UnknownOutcomeError, WriteError) as error:  # COMMIT was not sent, so the outcome is known all the same
        link.end(TransportError(f"a transaction was not taken: {error}"))
        raise link.take_refused() or TransportError(f"{error}; the transaction is rolled back") from error


def _acknowledgements(transaction: Transaction, entries: Sequence[Entry]) -> list[Frame]:
    return _inside([entry.acknowledgement() for entry in entries], {"transaction": transaction.name})


def _inside(frames: Sequence[Frame], transaction: dict[str, str]) -> list[Frame]:
    return [(command, {**headers, **transaction}, body) for command, headers, body in frames]
