"""The landing of a requestor or subscriber: a spool and, if wanted, the log of what was acknowledged."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from mtosi_jms.jms import JmsMessage
from mtosi_jms.spool._acklog import AckLog, Acknowledgement
from mtosi_jms.spool._entry import SpoolEntry
from mtosi_jms.spool._writer import Spool


class DurableLanding:
    """Keeps each received message durably before it is acknowledged.

    Requestors and subscribers may share one.

    Args:
        folder: where the messages go; made if it is not there.
        ack_log: file that gets one synced line for each acknowledgement; None: no log.
        clock: seconds since 1970 UTC.

    Attributes:
        spool: the folder as a spool.

    Raises:
        SpoolError: folder or log cannot be written.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        ack_log: str | os.PathLike[str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.spool = Spool(folder)
        self._ack_log = AckLog(ack_log) if ack_log is not None else None
        self._clock = clock

    def land(self, message: JmsMessage) -> SpoolEntry:
        """Write a message; it is safe when this returns.

        Raises:
            SpoolError: it cannot be written; it must not be acknowledged.
        """
        return self.spool.write(message, int(self._clock() * 1000))

    def acknowledged(self, landed: SpoolEntry, *, correlation_id: str | None, batch_number: int | None) -> None:
        """Log that a message was acknowledged.

        Raises:
            SpoolError: the log cannot be written.
        """
        if self._ack_log is not None:
            self._ack_log.append(Acknowledgement(landed.name, correlation_id, batch_number, landed.sha256 or ""))

    def close(self) -> None:
        """Close the log."""
        if self._ack_log is not None:
            self._ack_log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
