"""Lets telemetry read the depth of outboxes and inboxes. It does not keep them alive; closed ones are left out."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TypeVar

from mtosi_jms.errors import SpoolError
from mtosi_jms.spool._inbox import Inbox
from mtosi_jms.spool._journal import IncomingJournal, OutgoingJournal
from mtosi_jms.spool._outbox import Outbox
from mtosi_jms.telemetry import Gauge, Telemetry

T = TypeVar("T", Outbox, Inbox)


def watch_outbox(telemetry: Telemetry | None, outbox: OutgoingJournal | None) -> None:
    """Have a telemetry read how many messages of an outbox wait, since when, and how many are dead."""
    if telemetry is None or not isinstance(outbox, Outbox):
        return
    name = str(outbox.folder)
    telemetry.watch(Gauge.OUTBOX_DEPTH, name, _reader(outbox, lambda one: float(len(one))))
    telemetry.watch(Gauge.OUTBOX_AGE, name, _reader(outbox, lambda one: one.age))
    telemetry.watch(Gauge.DEAD, name, _reader(outbox, lambda one: float(one.dead_count)))


def watch_inbox(telemetry: Telemetry | None, inbox: IncomingJournal | None) -> None:
    """Have a telemetry read how many messages of an inbox are unsettled, and how many are dead."""
    if telemetry is None or not isinstance(inbox, Inbox):
        return
    name = str(inbox.folder)
    telemetry.watch(Gauge.INBOX_SIZE, name, _reader(inbox, lambda one: float(len(one))))
    telemetry.watch(Gauge.DEAD, name, _reader(inbox, lambda one: float(one.dead_count)))


def _reader(journal: T, value: Callable[[T], float]) -> Callable[[], float | None]:
    weak = weakref.ref(journal)

    def read() -> float | None:
        one = weak()
        try:
            return value(one) if one is not None else None
        except SpoolError:  # closed, or its folder cannot be read
            return None

    return read
