"""Handlers: what they are given, and those for requests and notifications."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mtosi_jms.binding.profile import Validate, body_check
from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import ConfigError
from mtosi_jms.exchange import Supplier
from mtosi_jms.jms import JmsMessage
from mtosi_jms.notifications import log_warnings, read_notification
from mtosi_jms.soap import Envelope, names_of
from mtosi_jms.transport import Backoff, Session
from mtosi_jms.xmlbind import XmlObject

log = logging.getLogger(__package__)


class HandlingContext:
    """What a handler knows of its attempt.

    Attributes:
        attempt: which one it is for this message, from 1.
        cancelled: set when the attempt is over without the handler: its deadline has passed, or the runtime has ended.
            A thread cannot be ended from outside: a long-running handler should check this and return.
    """

    def __init__(self, attempt: int, session: Callable[[], Session]) -> None:
        self.attempt = attempt
        self.cancelled = threading.Event()
        self._session = session

    @property
    def session(self) -> Session:
        """A session to send from; it is this thread's, and is closed when the attempt is cancelled. Raises
        TransportError: the provider cannot be reached."""
        return self._session()


Handler: TypeAlias = Callable[[JmsMessage, HandlingContext], object]
"""Takes a message. When it returns, the message is acknowledged; when it raises, there is another attempt, or none."""


class answering:  # noqa: N801 - an instance is a function
    """The handler of requests: the supplier, which is not started, answers each one through the session of the thread.
    What is wrong with a request is answered, so an attempt fails only where the provider does."""

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
        validate: whether bodies must fit the schemas (001-S12), see `mtosi_jms.binding.profile.Validate`.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeRules:
    """How a consumer runtime handles messages.

    Attributes:
        concurrency: how many handlers run at the same time.
        in_flight: how many messages are held at most, waiting ones included; None: four times the concurrency.
        attempts: how often a message is handled before it is parked.
        deadline: seconds that a handler has for one attempt; None: any time.
        max_stuck: how many handlers may be past their deadline and hold a thread beside those of `concurrency`. At
            that number no more messages are taken until one of them returns; None: four times the concurrency.
        drain: seconds that handlers have to finish when the runtime is told to drain.
        retry: waiting between the attempts for one message.
        reconnect: waiting between attempts to reach the provider.

    Raises:
        ConfigError: a number out of its range.
    """

    concurrency: int = 1
    in_flight: int | None = None
    attempts: int = BOUNDS.handling_attempts
    deadline: float | None = BOUNDS.handling
    max_stuck: int | None = None
    drain: float = 30.0
    retry: Backoff = field(default_factory=Backoff)
    reconnect: Backoff = field(default_factory=Backoff)

    def __post_init__(self) -> None:
        counts: dict[str, Any] = {"concurrency": self.concurrency, "attempts": self.attempts}
        counts |= {name: value for name in ("in_flight", "max_stuck") if (value := getattr(self, name)) is not None}
        for name, value in counts.items():
            if type(value) is not int or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, not {value!r}")
        if self.deadline is not None and not self.deadline > 0:
            raise ConfigError(f"deadline must be more than 0 seconds, or None, not {self.deadline!r}")
        if not self.drain >= 0:
            raise ConfigError(f"drain must be at least 0 seconds, not {self.drain!r}")

    @property
    def most(self) -> int:
        return self.in_flight if self.in_flight is not None else 4 * self.concurrency

    @property
    def most_stuck(self) -> int:
        return self.max_stuck if self.max_stuck is not None else 4 * self.concurrency
