"""The receiving side of a consumer runtime, on one connection: the thread that receives, acknowledges and parks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias, TypeVar

from mtosi_jms.errors import (
    ConfigError,
    HandlerTimeoutError,
    IllegalStateError,
    MtosiError,
    ProtocolError,
    SpoolFullError,
    TransportError,
)
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.runtime._lanes import Task
from mtosi_jms.runtime._parking import parked
from mtosi_jms.runtime._record import Record
from mtosi_jms.runtime._rules import RuntimeRules
from mtosi_jms.runtime._workers import Workers
from mtosi_jms.spool import (
    CONFLICT,
    InboxDelivery,
    InboxReceiver,
    IncomingJournal,
    give_back,
    mark_in_doubt,
    park,
    retry,
)
from mtosi_jms.transport import Connection, Consumer, Delivery, InterruptionHook

log = logging.getLogger(__name__)

T = TypeVar("T")
KeyFunction: TypeAlias = Callable[[JmsMessage], Hashable]

_LOOK: Final = 0.02
"""Seconds between looks at what handlers have done, while messages are waited for at the same time."""


class Link:
    """A connection with the session that receives, acknowledges and parks.

    Args:
        connection: an open connection; it is started.
        destination: where messages come from, or its name.
        parking: where they are parked, or its name; None: the provider's dead-letter queue.
        subscription: `selector` and `durable` of the consumer.
        on_interrupted: of the consumer.
        owned: whether closing the link closes the connection.
        generation: tells the connection from those before it.
        inbox: stores what comes before it is acknowledged; None: it is acknowledged when it is done with.

    Raises:
        ConfigError: there is nowhere to park.
        TransportError: the provider failed.
    """

    def __init__(
        self,
        connection: Connection,
        destination: str | Destination,
        parking: str | Destination | None,
        subscription: dict[str, Any],
        *,
        on_interrupted: InterruptionHook | None,
        owned: bool,
        generation: int,
        inbox: IncomingJournal | None = None,
    ) -> None:
        self.connection = connection
        self.generation = generation
        self._owned = owned
        try:
            self.session = connection.session()
            target = connection.names.lookup(destination)
            where = connection.dead_letter if parking is None else connection.names.lookup(parking)
            if where is None:
                raise ConfigError("the provider's dead-letter queue is not known: say where to park messages")
            if where == target:
                raise ConfigError(f"{target}: messages cannot be parked where they come from")
            self.parking: Destination = where
            self.consumer: Consumer = self.session.consumer(target, **subscription)
            self.source = (
                self.consumer if inbox is None else InboxReceiver(self.session, self.consumer, inbox, conflicts=True)
            )
            self.consumer.on_interrupted = on_interrupted
            connection.start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the session, and the connection where it is the runtime's own."""
        for one in (getattr(self, "session", None), self.connection if self._owned else None):
            try:
                if one is not None:
                    one.close()
            except MtosiError as error:
                log.debug("closing failed: %s", type(error).__name__)


class Receiver:
    """Receives on one link and settles what the workers are done with, until it is told to drain.

    Args:
        link: what it receives on.
        workers: handle messages.
        rules: how many, how often.
        key: tells whose order a message keeps.
        record: notes what happens.
        clock: seconds.
        draining: set when no more messages are to be taken.
        is_late: whether draining has taken too long.
    """

    def __init__(
        self,
        link: Link,
        workers: Workers,
        rules: RuntimeRules,
        key: KeyFunction | None,
        record: Record,
        *,
        clock: Callable[[], float],
        draining: threading.Event,
        is_late: Callable[[], bool],
    ) -> None:
        self._link = link
        self._workers = workers
        self._rules = rules
        self._key = key
        self._record = record
        self._clock = clock
        self._draining = draining
        self._is_late = is_late

    def serve(self) -> None:
        """Returns when all handlers have come to their end after it was told to drain, or that took too long.

        Raises:
            TransportError: the provider failed; what was received by this link will be delivered again.
        """
        while True:
            while (outcome := self._workers.outcome()) is not None:
                self._settle(*outcome)
            if self._draining.is_set():
                for task in self._workers.clear():  # unacknowledged, so the provider has them again
                    give_back(task.delivery)
                if not (self._workers.held() or self._workers.running) or self._is_late():
                    return
                self._workers.await_outcome(_LOOK)
            elif self._workers.held() >= self._rules.most or self._workers.is_stuck:
                self._workers.await_outcome(_LOOK)
            else:
                self._receive()

    def _receive(self) -> None:
        wait = _LOOK if self._workers.held() else None
        try:
            delivery = self._roomy(lambda: self._link.source.receive(wait))
        except IllegalStateError:
            if self._draining.is_set():  # which closed the consumer
                return
            raise
        if delivery is None:
            return
        if self._draining.is_set():
            give_back(delivery)
        else:
            self._arrived(delivery)

    def _roomy(self, work: Callable[[], T]) -> T | None:
        """Does what needs room on the disk of the inbox, and waits for it where there is none; None: draining."""
        failures = 0
        while True:
            try:
                return work()
            except SpoolFullError as error:
                failures += 1
                self._record.no_room(error)
                if self._draining.is_set() and failures > 1:
                    return None
                self._draining.wait(self._rules.reconnect.seconds(failures))

    def _arrived(self, delivery: Delivery) -> None:
        failures, error = self._record.came_again(delivery.message)
        task = Task(delivery, None, self._link.generation, failures, error)
        if isinstance(delivery, InboxDelivery) and delivery.conflict:
            conflict = ProtocolError(CONFLICT, delivery.message.correlation_id or "")
            self._record.failed(task, conflict)
            self._park(task, conflict)
            return
        if failures >= self._rules.attempts and error is not None:
            self._park(task, error)
            return
        try:
            task.key = self._key(delivery.message) if self._key is not None else None
            hash(task.key)
        except Exception as raised:  # noqa: BLE001 - a message whose order cannot be told cannot be handled either
            self._record.failed(task, raised)
            self._park(task, raised)
            return
        self._workers.add(task)

    def _settle(self, task: Task, error: BaseException | None) -> None:
        """Acknowledge, park, or have tried again what a handler is done with."""
        if isinstance(error, SpoolFullError) and isinstance(task.delivery, InboxDelivery) and not task.delivery.begun:
            self._record.no_room(error)  # it could not be noted that it is handed out, so it was not
            self._workers.retry(task, self._clock() + self._rules.reconnect.seconds(1))
            return
        if error is not None:
            self._record.failed(task, error)
            if isinstance(error, HandlerTimeoutError) and mark_in_doubt(task.delivery):  # it may do its work yet
                self._workers.finish(task)
                return
            again = task.failures < self._rules.attempts
            if again and not self._draining.is_set() and not self._is_stale(task):
                self._roomy(lambda: retry(task.delivery))
                self._workers.retry(task, self._clock() + self._rules.retry.seconds(task.failures))
                return
        try:
            if self._is_stale(task):
                self._record.went_back(task)
            elif error is None:
                self._roomy(task.delivery.acknowledge)
                self._record.handled(task)
            elif task.failures >= self._rules.attempts:
                self._park(task, error)
            else:
                give_back(task.delivery)
        finally:
            self._workers.finish(task)

    def _is_stale(self, task: Task) -> bool:
        """Whether the session is gone that a message came by, so that it comes again whatever became of it; what an
        inbox has does not."""
        return task.generation != self._link.generation and not isinstance(task.delivery, InboxDelivery)

    def _park(self, task: Task, error: BaseException) -> None:
        link = self._link
        message = parked(task.delivery.message, link.consumer.destination, error, task.failures)
        try:
            link.session.send(link.parking, message)
            self._roomy(lambda: park(task.delivery))
        except (TransportError, IllegalStateError):
            self._record.went_back(task)
            give_back(task.delivery)
            raise
        self._record.parked(task, error, str(link.parking))
