"""Handlers: what they are given, and those for requests and notifications."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from typing import Any, Protocol, TypeAlias

from mtosi_jms.binding.body_check import Validate, body_check
from mtosi_jms.exchange import Supplier
from mtosi_jms.jms import JmsMessage
from mtosi_jms.notifications import log_warnings, read_notification
from mtosi_jms.soap import Envelope, names_of
from mtosi_jms.transport import Session
from mtosi_jms.xmlbind import XmlObject

log = logging.getLogger(__package__)


class HandlingContext(Protocol):
    """What a handler knows of its attempt.

    Attributes:
        attempt: which one it is for this message, from 1.
        cancelled: set when the attempt is over without the handler: its deadline has passed, or the runtime has ended.
            A thread cannot be ended from outside: a long-running handler should check this and return.
    """

    attempt: int
    cancelled: threading.Event

    @property
    def session(self) -> Session:
        """A session to send from; it is this thread's, and is closed when the attempt is cancelled. Raises
        TransportError: the provider cannot be reached."""
        ...


Handler: TypeAlias = Callable[[JmsMessage, HandlingContext], object]
"""Takes a message. When it returns, the message is acknowledged; when it raises, there is another attempt, or none."""


def answering(supplier: Supplier) -> Handler:
    """The handler of requests: the supplier, which is not started, answers each one through the session of the thread.
    What is wrong with a request is answered, so an attempt fails only where the provider does."""

    return Answering(supplier)


class Answering:
    """Its exchanges are reported by the supplier."""

    def __init__(self, supplier: Supplier) -> None:
        self._supplier = supplier

    def __call__(self, message: JmsMessage, context: HandlingContext) -> None:
        self._supplier.answer(message, context.session)


def events(
    on_event: Callable[[Any, Envelope], object],
    *,
    strict: bool = False,
    validate: Validate = "ignore",
    understands: Collection[str | type[XmlObject]] = (),
) -> Handler:
    """The handler of notifications: calls a function for each event of a message, in order.

    The attempt fails where the message cannot be read, or the function raises: then it is called again for all events.

    Args:
        on_event: takes an event, and the envelope that it came in. Other bodies are passed on unchanged.
        strict: departures from the schema are errors.
        validate: whether bodies must fit the schemas (001-S12), see `mtosi_jms.binding.body_check.Validate`.
        understands: header blocks that the application understands; with another one that must be understood, a message
            cannot be read.
    """

    check, understood = body_check(validate), names_of(understands)

    def handle(message: JmsMessage, context: HandlingContext) -> None:
        envelope, found = read_notification(message, strict=strict, understands=understood, check=check)
        log_warnings(log, message, envelope)
        for event in found:
            if context.cancelled.is_set():
                return
            on_event(event, envelope)

    return handle
