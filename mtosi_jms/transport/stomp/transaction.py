"""A STOMP transaction: everything at once, and the receipt of COMMIT alone counts.

What the broker refuses of it must keep the rest from being committed. ActiveMQ fails the COMMIT then, so that all goes
out in one write. Artemis ends the connection, which leaves open whether it had seen the COMMIT: so that is sent after
the last message is confirmed, and all before it by that.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from mtosi_jms.errors import MtosiError, TransportError, UnknownOutcomeError
from mtosi_jms.transport.stomp.frames import Frame
from mtosi_jms.transport.stomp.link import Link
from mtosi_jms.transport.stomp.subscription import Entry
from mtosi_jms.transport.stomp.wire import WriteError

_LATE: Final = 2.0
"""Seconds that the reason for a COMMIT that failed may come after it."""


def transact(
    link: Link, name: str, sends: Sequence[Frame], entries: Sequence[Entry], deadline: float, *, at_once: bool
) -> None:
    """Sends and acknowledges as one transaction.

    Args:
        link: on which; what is acknowledged came on it.
        name: of the transaction, never used again.
        sends: SEND frames.
        entries: what is acknowledged.
        deadline: by the monotonic clock.
        at_once: whether COMMIT need not wait for what comes before it.

    Raises:
        UnknownOutcomeError: COMMIT was sent and not confirmed.
        MtosiError: any other reason; nothing took effect.
    """
    transaction = {"transaction": name}
    frames = [("BEGIN", transaction, b""), *_inside(sends, transaction)]
    link.take_refused()
    if not at_once:
        _announce(link, frames, deadline)
        frames = []
    frames += _inside([entry.acknowledgement() for entry in entries], transaction)
    try:
        link.request([("COMMIT", transaction, b"")], deadline - time.monotonic(), before=frames)
    except WriteError as error:
        raise TransportError(f"{error}; the transaction is rolled back") from error
    except UnknownOutcomeError as error:
        link.end(TransportError(f"a transaction did not end well: {error}"))
        raise
    except MtosiError as error:
        reason = link.await_refused(_LATE) if at_once else link.take_refused()
        if entries:  # the broker's own book of them is of no use any more
            link.end(TransportError(f"a transaction did not end well: {error}"))
        raise reason or error from error


def _announce(link: Link, frames: Sequence[Frame], deadline: float) -> None:
    """Sends what comes before COMMIT, and waits until the broker has taken it."""
    *before, last = frames
    try:
        link.request([last], deadline - time.monotonic(), before=before)
    except (UnknownOutcomeError, WriteError) as error:  # COMMIT was not sent, so the outcome is known all the same
        link.end(TransportError(f"a transaction was not taken: {error}"))
        raise link.take_refused() or TransportError(f"{error}; the transaction is rolled back") from error


def _inside(frames: Sequence[Frame], transaction: dict[str, str]) -> list[Frame]:
    return [(command, {**headers, **transaction}, body) for command, headers, body in frames]
