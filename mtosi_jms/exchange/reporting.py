"""Reports the end of an exchange: one line in the log, and the telemetry."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.telemetry import Publication, Role, Telemetry, of_message

__all__ = ["Asked", "published", "report"]

_WAY = {Role.REQUESTOR: "to", Role.SUPPLIER: "at"}


class Asked(NamedTuple):
    """What an exchange is about."""

    operation: str
    destination: Destination


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
) -> None:
    """Report the end of an exchange, to the log at INFO and to the telemetry.

    `outcome`: `answered`, `fault`, `done` (one-way), `abandoned`, or the name of an error's class. `batches`: replies
    that were handed out or sent."""
    if telemetry is not None:
        telemetry.ended(role, asked.operation, outcome, seconds, batches)
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
    """Do `log.info(text, *shown, extra=facts)` faster, without looking for the caller or checking the facts' names."""
    line = _log_info.__code__.co_firstlineno
    record = logging.getLogRecordFactory()(log.name, logging.INFO, __file__, line, text, shown, None, "report")
    vars(record).update(facts)
    log.handle(record)


@contextmanager
def published(
    log: logging.Logger, telemetry: Telemetry | None, asked: Asked, message: JmsMessage, correlation_id: str = ""
) -> Iterator[Publication]:
    """Report that the block sends a message that nobody answers: a line at INFO or WARNING, and the telemetry. The
    block sends `Publication.message`, and ends the publication with its id."""
    began = time.monotonic()
    if telemetry is not None:
        publication = telemetry.publish(message, asked.destination, asked.operation, correlation_id)
    else:
        publication = Publication(message)
    try:
        yield publication
    except BaseException as error:
        publication.end(error=error)
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
