"""Sends what an outbox stores, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from mtosi_jms.closing import Closeable
from mtosi_jms.errors import IllegalStateError, MtosiError, SpoolError, TransportError
from mtosi_jms.spool._journal import OutgoingJournal
from mtosi_jms.transport import Backoff, Connection

log = logging.getLogger(__package__)

_LOOK: Final = 1.0
"""Seconds between looks at the outbox: the next attempt of a refused message may be due."""


class OutboxPump(Closeable):
    """Sends the messages of an outbox until it is closed; whoever has a message only stores it (`Outbox.put`). Close
    the outbox after the pump.

    `connect` opens a connection, again after each loss; the pump closes it. `backoff`: pauses while the provider cannot
    be reached, or the outbox cannot be read."""

    def __init__(
        self, outbox: OutgoingJournal, connect: Callable[[], Connection], *, backoff: Backoff | None = None
    ) -> None:
        self._outbox = outbox
        self._connect = connect
        self._backoff = backoff or Backoff()
        self._stored = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="outbox-pump", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Send at once what was stored just now; without this it goes within a second."""
        self._stored.set()

    def _run(self) -> None:
        failures = 0
        while not self._over.is_set():
            try:
                with self._connect() as connection, connection.session() as session:
                    while not self._over.is_set():
                        self._outbox.resend(session)
                        failures = 0
                        self._stored.wait(_LOOK)
                        self._stored.clear()  # before the look at `_over`, or the last wake of `close` could be missed
            except (TransportError, IllegalStateError) as error:
                log.warning("the outbox waits: %s: %s", type(error).__name__, error)
            except SpoolError:
                log.exception("the outbox cannot be read")
            except MtosiError:
                log.exception("the outbox cannot be sent")
            failures += 1
            self._over.wait(self._backoff.seconds(failures))

    def close(self) -> None:
        self._over.set()
        self._stored.set()
        self._thread.join()
