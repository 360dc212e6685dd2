"""Reports the end of an exchange: one line in the log, and the telemetry."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.telemetry import Publication, Role, Telemetry, of_message, published

__all__ = ["Asked", "error_type", "report", "unanswered"]

_WAY = {Role.REQUESTOR: "to", Role.SUPPLIER: "at"}


class Asked(NamedTuple):
    """What an exchange is about."""

    operation: str
    destination: Destination


_WELL = frozenset({"answered", "done"})


def error_type(outcome: str, fault: str) -> str:
    """The kind of a fault, the class of an error, or `abandoned`; empty: all went well."""
    return fault or ("" if outcome in _WELL else outcome)


def report(
    log: logging.Logger,
    role: Role,
    telemetry: Telemetry | None,
    asked: Asked,
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
        telemetry.ended(role, *asked, error_type, seconds, batches)
    if log.isEnabledFor(logging.INFO):
        facts: dict[str, object] = {
            "role": role.value,
            "operation": asked.operation,
            "destination": str(asked.destination),
            "correlation_id": correlation_id,
            "batches": batches,
            "seconds": round(seconds, 6),
            "outcome": outcome,
            "message_id": message_id,
        }
        shown = (
            asked.operation or "a message",
            _WAY[role],
            asked.destination,
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
    log: logging.Logger, telemetry: Telemetry | None, asked: Asked, message: JmsMessage, correlation_id: str = ""
) -> Iterator[Publication]:
    """Report that the block sends a message that nobody answers: a line at INFO or WARNING, and the telemetry. The
    block sends `Publication.message`, and says that it was `sent`."""
    began = time.monotonic()
    try:
        with published(telemetry, message, asked.destination, asked.operation, correlation_id) as publication:
            yield publication
    except BaseException as error:
        text = "%s to %s: not sent, correlation id %s: %s: %s"
        facts = of_message(message, asked.destination)
        kind = type(error).__name__
        log.warning(text, asked.operation, asked.destination, correlation_id or "none", kind, error, extra=facts)
        raise
    if log.isEnabledFor(logging.INFO):
        seconds = time.monotonic() - began
        facts = of_message(message, asked.destination) | {
            "operation": asked.operation,
            "seconds": round(seconds, 6),
            "outcome": "sent",
        }
        shown = asked.operation, asked.destination, correlation_id or "none", seconds
        _log_info(log, "%s to %s: sent, correlation id %s, %.3f s", shown, facts)
