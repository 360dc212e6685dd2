"""A STOMP transaction: everything at once, and only the receipt of COMMIT counts.

A receipt inside a transaction comes before the commit: it tells that the broker takes the message, so that one which it
refuses keeps the others from being committed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from mtosi_jms.errors import MtosiError, TransportError, UnknownOutcomeError
from mtosi_jms.transport.stomp.frames import Frame
from mtosi_jms.transport.stomp.link import Link
from mtosi_jms.transport.stomp.subscription import Entry
from mtosi_jms.transport.stomp.wire import WriteError


def transact(link: Link, name: str, sends: Sequence[Frame], entries: Sequence[Entry], deadline: float) -> None:
    """Sends and acknowledges as one transaction.

    Args:
        link: on which; what is acknowledged came on it.
        name: of the transaction, never used again.
        sends: SEND frames.
        entries: what is acknowledged.
        deadline: by the monotonic clock.

    Raises:
        UnknownOutcomeError: COMMIT was sent and not confirmed.
        MtosiError: any other reason; nothing took effect.
    """
    transaction = {"transaction": name}
    try:
        link.request([("BEGIN", transaction, b""), *_inside(sends, transaction)], deadline - time.monotonic())
    except (UnknownOutcomeError, WriteError) as error:  # COMMIT was not sent, so the outcome is known all the same
        link.end(TransportError(f"a transaction was not taken: {error}"))
        raise TransportError(f"{error}; the transaction is rolled back") from error
    except MtosiError:
        with contextlib.suppress(TransportError):
            link.post([("ABORT", transaction, b"")])
        raise
    try:
        link.post(_inside([entry.acknowledgement() for entry in entries], transaction), deadline)
        link.request([("COMMIT", transaction, b"")], deadline - time.monotonic())
    except MtosiError as error:
        link.end(TransportError(f"a transaction did not end well: {error}"))
        raise


def _inside(frames: Sequence[Frame], transaction: dict[str, str]) -> list[Frame]:
    return [(command, {**headers, **transaction}, body) for command, headers, body in frames]
