"""What is told of an exchange when it is over: one line of the log, and the telemetry."""

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
    """What an exchange is about.

    Attributes:
        operation: its name; empty: not known.
        destination: where the request goes.
    """

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
    """Tell the end of an exchange: to the log at INFO, and to the telemetry.

    Args:
        log: of the role.
        role: whose end it is.
        telemetry: None: nobody.
        asked: the operation and where its request goes.
        correlation_id: of the exchange.
        outcome: `answered`, `fault`, `sent` (nobody answers), `abandoned`, or the name of an error's class.
        seconds: that it took.
        batches: replies that were handed out, or sent.
        error: what ended it.
        message_id: of the request, where it was received.
    """
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
        _tell(log, "%s %s %s: %s, correlation id %s, %d batches, %.3f s%s", shown, facts)


def _tell(log: logging.Logger, text: str, shown: tuple[object, ...], facts: dict[str, object]) -> None:
    """`log.info(text, *shown, extra=facts)` at half its cost: the caller is not looked for, nor the names of facts."""
    line = _tell.__code__.co_firstlineno
    record = logging.getLogRecordFactory()(log.name, logging.INFO, __file__, line, text, shown, None, "report")
    vars(record).update(facts)
    log.handle(record)


@contextmanager
def published(
    log: logging.Logger, telemetry: Telemetry | None, asked: Asked, message: JmsMessage, correlation_id: str = ""
) -> Iterator[Publication]:
    """Tell the sending of a message that nobody answers, which the block does: a line at INFO, and the telemetry.

    Args:
        log: of the role.
        telemetry: None: nobody.
        asked: the operation or event and where the message goes.
        message: as it would be sent; the block sends `Publication.message`, and ends the publication with its id.
        correlation_id: of the message.
    """
    began = time.monotonic()
    if telemetry is not None:
        publication = telemetry.publish(message, asked.destination, asked.operation, correlation_id)
    else:
        publication = Publication(message)
    try:
        yield publication
    except BaseException as error:
        publication.end(error=error)
        told = "%s to %s: not sent, correlation id %s: %s: %s"
        facts = of_message(message, asked.destination)
        kind = type(error).__name__
        log.warning(told, asked.operation, asked.destination, correlation_id or "none", kind, error, extra=facts)
        raise
    if log.isEnabledFor(logging.INFO):
        seconds = time.monotonic() - began
        facts = of_message(message, asked.destination) | {
            "operation": asked.operation,
            "seconds": round(seconds, 6),
            "outcome": "sent",
        }
        shown = asked.operation, asked.destination, correlation_id or "none", seconds
        _tell(log, "%s to %s: sent, correlation id %s, %.3f s", shown, facts)
