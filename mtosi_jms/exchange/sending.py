"""What requestors, suppliers and publishers share: they check their connection, send through a session that threads
share, one message at a time and each within the time of its call, and report to the log and to the telemetry."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mtosi_jms.errors import ConfigError, ResourceLimitError, TransportError, UnknownOutcomeError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.masking import without_login
from mtosi_jms.patterns import rounded
from mtosi_jms.telemetry import Publication, Role, Telemetry, of_message, published
from mtosi_jms.transport import Connection, Session

__all__ = ["TimedSender", "check_connection", "error_type", "report", "unanswered"]

_TICK: Final = 0.001
"""Tolerance for the difference of clocks, in seconds."""


class TimedSender:
    """Sends through a session, within so many seconds in all from now, or without limit. An outbox accepts it in place
    of the session. `lock` is held while it sends, inside `with sender` or `with sender.in_time("... to queue:EMS")`."""

    def __init__(self, session: Session, lock: threading.Lock, seconds: float | None) -> None:
        self._session = session
        self._lock = lock
        self._end = None if seconds is None else time.monotonic() + seconds
        self.seconds = seconds

    def _left(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def is_over(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end - _TICK

    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """Send a message, as `Session.send` does. Call this inside `with`."""
        left = self._left()
        send = self._session.send
        return send(destination, message) if left is None else send(destination, message, timeout=left)

    def __enter__(self) -> None:
        left = self._left()
        if not self._lock.acquire(timeout=-1 if left is None else min(left, threading.TIMEOUT_MAX)):
            raise TransportError("another message, which came before it, is still being sent")

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @contextmanager
    def in_time(self, what: str) -> Iterator[None]:
        """Do what `with` does; if the block fails because its time is over, the error says so."""
        try:
            with self:
                yield
        except TransportError as error:
            if not self.is_over():
                raise
            text = f"{what}: not sent within {rounded(self.seconds or 0)} s: {error}"
            if isinstance(error, UnknownOutcomeError):
                raise UnknownOutcomeError(text, error.messages) from error
            raise (ResourceLimitError if isinstance(error, ResourceLimitError) else TransportError)(text) from error


def check_connection(role: str, given: object) -> None:
    """Check that a role gets a connection. Raises ConfigError: the argument is not a connection; the error says what to
    write."""
    if isinstance(given, Connection):
        return
    if isinstance(given, str):
        shown = without_login(given)
        raise ConfigError(f"{role}: {shown!r} is a URL; give a connection, mtosi_jms.connect({shown!r})")
    raise ConfigError(f"{role}: give a connection of mtosi_jms.connect(...), not {type(given).__name__}")


_WAY = {Role.REQUESTOR: "to", Role.SUPPLIER: "at"}


_WELL = frozenset({"answered", "done"})


def error_type(outcome: str, fault: str) -> str:
    """The kind of a fault, the class of an error, or `abandoned`; empty: all went well."""
    return fault or ("" if outcome in _WELL else outcome)


def report(
    log: logging.Logger,
    role: Role,
    telemetry: Telemetry | None,
    operation: str,
    destination: Destination,
    correlation_id: str,
    *,
    outcome: str,
    seconds: float,
    batches: int,
    error: BaseException | None = None,
    message_id: str | None = None,
    error_type: str = "",
) -> None:
    """Report the end of an exchange, to the log at INFO and to the telemetry.

    `outcome`: `answered`, `fault`, `done` (one-way), `abandoned`, or the name of an error's class. `batches`: replies
    that were handed out or sent. `error_type`: as the function of that name says."""
    if telemetry is not None:
        telemetry.ended(role, operation, destination, error_type, seconds, batches)
    if log.isEnabledFor(logging.INFO):
        facts: dict[str, object] = {
            "role": role.value,
            "operation": operation,
            "destination": str(destination),
            "correlation_id": correlation_id,
            "batches": batches,
            "seconds": round(seconds, 6),
            "outcome": outcome,
            "message_id": message_id,
        }
        shown = (
            operation or "a message",
            _WAY[role],
            destination,
            outcome,
            correlation_id or "none",
            batches,
            seconds,
            f": {error}" if error is not None else "",
        )
        _log_info(log, "%s %s %s: %s, correlation id %s, %d batches, %.3f s%s", shown, facts)


def _log_info(log: logging.Logger, text: str, shown: tuple[object, ...], facts: dict[str, object]) -> None:
    """Do `log.info(text, *shown, extra=facts)` in a third of the time: without looking for the caller or the task,
    checking the facts' names, or making anew what all these records share. A factory of the application is called."""
    factory = logging.getLogRecordFactory()
    if factory is logging.LogRecord:
        record, now = factory.__new__(factory), time.time()
        own = {
            "name": log.name,
            "msg": text,
            "args": shown,
            "created": now,
            "msecs": now % 1 * 1000,
            "relativeCreated": (now - _STARTED) * 1000,
            "thread": threading.get_ident(),
            "threadName": threading.current_thread().name,
            "process": os.getpid(),
        }
        record.__dict__ = _SHARED | own | facts
    else:
        record = factory(log.name, logging.INFO, __file__, _LINE, text, shown, None, "report")
        vars(record).update(facts)
    log.handle(record)


_LINE: Final = _log_info.__code__.co_firstlineno
_SHARED: Final = vars(logging.LogRecord("", logging.INFO, __file__, _LINE, "", None, None, "report"))
_STARTED: Final = _SHARED["created"] - _SHARED["relativeCreated"] / 1000


@contextmanager
def unanswered(
    log: logging.Logger,
    telemetry: Telemetry | None,
    operation: str,
    destination: Destination,
    message: JmsMessage,
    correlation_id: str = "",
) -> Iterator[Publication]:
    """Report that the block sends a message that nobody answers: a line at INFO or WARNING, and the telemetry. The
    block sends `Publication.message`, and says that it was `sent`."""
    began = time.monotonic()
    try:
        with published(telemetry, message, destination, operation, correlation_id) as publication:
            yield publication
    except BaseException as error:
        text = "%s to %s: not sent, correlation id %s: %s: %s"
        facts = of_message(message, destination)
        kind = type(error).__name__
        log.warning(text, operation, destination, correlation_id or "none", kind, error, extra=facts)
        raise
    if log.isEnabledFor(logging.INFO):
        seconds = time.monotonic() - began
        facts = of_message(message, destination) | {
            "operation": operation,
            "seconds": round(seconds, 6),
            "outcome": "sent",
        }
        shown = operation, destination, correlation_id or "none", seconds
        _log_info(log, "%s to %s: sent, correlation id %s, %.3f s", shown, facts)
