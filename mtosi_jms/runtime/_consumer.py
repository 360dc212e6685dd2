"""The consumer runtime as its user sees it. `Work` does the work; docs/design/runtime.md describes how."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Self

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import Destination
from mtosi_jms.runtime._handlers import Handler
from mtosi_jms.runtime._health import ErrorHook, Health, Record, State
from mtosi_jms.runtime._link import Link
from mtosi_jms.runtime._rules import RuntimeRules
from mtosi_jms.runtime._work import KeyFunction, Work
from mtosi_jms.spool import IncomingJournal
from mtosi_jms.transport import Connection, InterruptionHook


class ConsumerRuntime:
    """Handles the messages of one destination, several at a time, until it is told to drain.

    Once started, it handles messages until it is drained or its connection is closed, also if the program does not keep
    it.

    Args:
        connect: opens a connection, which belongs to the runtime, and is opened again when it is lost; or an open
            connection, which is started and not closed, and whose loss ends the runtime.
        destination: name of a queue or topic, or the destination.
        handler: takes a message, in one of several threads; see `Handler`.
        selector: condition on headers and properties.
        durable: name of a durable subscription.
        key: returns the key of a message: messages with the same key are handled one at a time, in the order of
            arrival; None, or without a function: no order.
        inbox: stores each message before it is acknowledged, drops copies, and reports messages as in doubt that were
            with a handler when the process ended or their deadline passed: these are not handed out again by
            themselves.
        parking: where messages go that no attempt could handle; None: to the provider's dead-letter queue.
        rules: how many, how often, how long.
        on_error: called with the error of a failed attempt and the message; and, with None for the message, when the
            provider was lost or the runtime has failed.
        on_interrupted: called, in the receiving thread, when messages did not come for a while: the connection was
            lost, and is made again. What was sent meanwhile to a topic without `durable` is lost.
        clock: seconds, not running backwards: for deadlines, retries and `health`.

    Raises:
        ConfigError: `parking` is where the messages come from.
    """

    def __init__(
        self,
        connect: Connection | Callable[[], Connection],
        destination: str | Destination,
        handler: Handler,
        *,
        selector: str | None = None,
        durable: str | None = None,
        key: KeyFunction | None = None,
        inbox: IncomingJournal | None = None,
        parking: str | Destination | None = None,
        rules: RuntimeRules | None = None,
        on_error: ErrorHook | None = None,
        on_interrupted: InterruptionHook | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if parking is not None and parking == destination:
            raise ConfigError(f"{parking}: messages cannot be parked where they come from")
        self.rules = rules or RuntimeRules()
        link = partial(
            Link,
            destination=destination,
            selector=selector,
            durable=durable,
            parking=parking,
            inbox=inbox,
            on_interrupted=on_interrupted,
        )
        self._work = Work(connect, link, handler, key, self.rules, Record(str(destination), clock, on_error), clock)

    @property
    def health(self) -> Health:
        return self._work.health

    def run(self) -> None:
        """Handle messages until `drain`; in the main thread, SIGTERM and SIGINT drain too.

        A second SIGINT does not wait for handlers any more: their messages are handed back.

        Raises:
            ConfigError: there is nowhere to park messages, or the destination cannot be consumed from.
            IllegalStateError: it ran before, or was told to drain.
            TransportError: the provider failed, and the connection is not the runtime's own.
        """
        self._work.run()

    def start(self) -> Self:
        """Handle messages in the background; the consumer exists when this returns. Raises as `run`, for errors before
        that."""
        self._work.start()
        return self

    def drain(self, seconds: float | None = None) -> bool:
        """Take no more messages, let running handlers finish, and hand back the messages that wait.

        After so many seconds (None: as the rules say) theirs are handed back too. Returns whether no handler runs any
        more; False also where a handler or `on_error` calls it: that call does not wait."""
        return self._work.drain(seconds)

    def __enter__(self) -> Self:
        return self if self.health.state is not State.NEW else self.start()

    def __exit__(self, *_: object) -> None:
        self.drain()
