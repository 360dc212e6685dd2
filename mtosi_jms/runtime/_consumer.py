"""The consumer runtime. One thread, that of `run`, receives, acknowledges, retries and parks.

A message goes one way: `_receive` takes it from the provider or inbox, `_arrived` puts it into the lanes, a worker runs
the handler, and `_settle` acknowledges it, has it tried again, or parks it. docs/design/runtime.md has the rest.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import Final, Self, TypeAlias, TypeVar

from mtosi_jms.errors import (
    ClientIdInUseError,
    ConfigError,
    HandlerTimeoutError,
    IllegalStateError,
    MtosiError,
    ProtocolError,
    SpoolFullError,
    TransportError,
)
from mtosi_jms.exchange.signals import aside, on_signals
from mtosi_jms.jms import DeliveryMode, Destination, JmsMessage
from mtosi_jms.runtime._handlers import Handler, HandlingContext, RuntimeRules, answering
from mtosi_jms.runtime._health import ErrorHook, Health, Record, State
from mtosi_jms.runtime._workers import Task, Workers
from mtosi_jms.spool import (
    CONFLICT,
    InboxDelivery,
    InboxReceiver,
    IncomingJournal,
    give_back,
    mark_in_doubt,
    park,
    retry,
    watch_inbox,
)
from mtosi_jms.telemetry import Count
from mtosi_jms.transport import Connection, Delivery, Interruption, InterruptionHook, Session, publish

log = logging.getLogger(__package__)

ORIGINAL_DESTINATION: Final = "MTOSIX_originalDestination"
"""Of a parked message: where it was received from, with its kind: `queue:EMS.OS`."""
ORIGINAL_MESSAGE_ID: Final = "MTOSIX_originalMessageId"
"""Its JMSMessageID as received, if it had one; the parked message has another."""
REASON: Final = "MTOSIX_parkedReason"
"""The type of the last error: its text might quote the message."""
ATTEMPTS: Final = "MTOSIX_attempts"
"""How many attempts there were, an Integer."""


class Link:
    """A connection, and the session that receives, acknowledges and parks. Raises ConfigError: there is nowhere to
    park; TransportError: the provider failed.

    `parking`: None is the provider's dead-letter queue. Without an `inbox`, messages are acknowledged when they are
    done with."""

    def __init__(
        self,
        connection: Connection,
        *,
        owned: bool,
        generation: int,
        destination: str | Destination,
        selector: str | None,
        durable: str | None,
        parking: str | Destination | None,
        inbox: IncomingJournal | None,
        on_interrupted: InterruptionHook | None,
    ) -> None:
        self.connection = connection
        self.generation = generation
        self.on_interrupted = on_interrupted
        self._owned = owned
        try:
            self.session = connection.session()
            target = connection.names.lookup(destination)
            where = connection.dead_letter if parking is None else connection.names.lookup(parking)
            if where is None:
                raise ConfigError("the provider's dead-letter queue is not known: say where to park messages (parking)")
            if where == target:
                raise ConfigError(f"{target}: messages cannot be parked where they come from")
            if where.is_topic and not target.is_topic:
                raise ConfigError(f"{where}: a topic keeps no messages; those of a queue are parked at a queue (I18)")
            self.parking: Destination = where
            self.consumer = self.session.consumer(target, selector=selector, durable=durable)
            self.source = (
                self.consumer if inbox is None else InboxReceiver(self.session, self.consumer, inbox, conflicts=True)
            )
            self.consumer.on_interrupted = on_interrupted
            watch_inbox(connection.telemetry, inbox)
            connection.start()
        except BaseException:
            self.close()
            raise

    def park(self, message: JmsMessage, error: BaseException, attempts: int) -> None:
        """Sends a message to the dead-letter destination: persistent, without expiration, else unchanged."""
        properties = {
            **message.properties,
            ORIGINAL_DESTINATION: str(self.consumer.destination),
            REASON: type(error).__name__,
            ATTEMPTS: attempts,
        }
        if message.message_id is not None:
            properties[ORIGINAL_MESSAGE_ID] = message.message_id
        parked = replace(message, properties=properties, delivery_mode=DeliveryMode.PERSISTENT, time_to_live_ms=0)
        publish(self.session, self.parking, parked)

    def close(self) -> None:
        for one in (getattr(self, "session", None), self.connection if self._owned else None):
            try:
                if one is not None:
                    one.close()
            except MtosiError as error:
                log.debug("closing failed: %s", type(error).__name__)


T = TypeVar("T")
KeyFunction: TypeAlias = Callable[[JmsMessage], Hashable]

_LOOK: Final = 0.02
"""Seconds between looks at finished handlers, while messages are waited for at the same time."""


class ConsumerRuntime:
    """Handles the messages of one destination, several at a time, until it is told to drain.

    Once started, it handles messages until it is drained or its connection is closed, also if the program does not keep
    it.

    Args:
        connect: opens a connection, which belongs to the runtime, and is opened again when it is lost; or an open
            connection, which is started and not closed, and whose loss ends the runtime.
        handler: takes a message, in one of several threads; see `Handler`.
        key: returns the key of a message: messages with the same key are handled one at a time, in the order of
            arrival; None, or without a function: no order.
        inbox: stores each message before it is acknowledged, drops copies, and reports messages as in doubt that were
            with a handler when the process ended or their deadline passed: these are not handed out again by
            themselves.
        parking: where messages go that no attempt could handle; None: to the provider's dead-letter queue.
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
        self._connect = connect
        self._make_link = partial(
            Link,
            destination=destination,
            selector=selector,
            durable=durable,
            parking=parking,
            inbox=inbox,
            on_interrupted=on_interrupted,
        )
        self._key = key
        self._record = Record(str(destination), clock, on_error)
        self._clock = clock
        self._workers = Workers(
            self._observed(handler),
            self.rules,
            clock=clock,
            opener=self._open_session,
            generation=lambda: self._generation,
        )
        self._lock = threading.Lock()
        self._state = State.NEW
        self._link: Link | None = None
        self._generation = 0
        self._thread: threading.Thread | None = None
        self._ready, self._draining, self._over = threading.Event(), threading.Event(), threading.Event()
        self._drain_by: float | None = None
        self._abandoned = 0
        self._failure: BaseException | None = None

    # For any thread.

    @property
    def health(self) -> Health:
        state = self._state
        is_stuck = state is State.RUNNING and self._workers.is_stuck
        return self._record.health(State.STUCK if is_stuck else state, self._workers.counts())

    def run(self) -> None:
        """Handle messages until `drain`; in the main thread, SIGTERM and SIGINT drain too.

        A second SIGINT does not wait for handlers any more: their messages are handed back.

        Raises:
            ConfigError: there is nowhere to park messages, or the destination cannot be consumed from.
            IllegalStateError: it ran before, or was told to drain.
            TransportError: the provider failed, and the connection is not the runtime's own.
        """
        self._claim()
        self._run_here()

    def _claim(self) -> None:
        with self._lock:
            if self._state is not State.NEW:
                raise IllegalStateError("a consumer runtime runs once")
            self._state = State.CONNECTING

    def _run_here(self) -> None:
        self._thread = threading.current_thread()
        self._workers.start()
        with aside(lambda again: self._begin_drain(0.0 if again else None)) as drain, on_signals(drain):
            try:
                self._run()
            finally:
                self._end()

    def start(self) -> Self:
        """Handle messages in the background; the consumer exists when this returns. Raises as `run`, for errors before
        that."""
        self._claim()
        threading.Thread(target=self._run_in_background, name="consumer-runtime", daemon=True).start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def drain(self, seconds: float | None = None) -> bool:
        """Take no more messages, let running handlers finish, and hand back the messages that wait.

        After so many seconds (None: as the rules say) theirs are handed back too. Returns whether no handler runs any
        more; False also where a handler or `on_error` calls it: that call does not wait."""
        self._begin_drain(seconds)
        if self._over.is_set():
            return not self._workers.running
        if self._workers.is_mine() or threading.current_thread() is self._thread:
            return False
        self._over.wait()
        return not self._abandoned

    def __enter__(self) -> Self:
        return self if self.health.state is not State.NEW else self.start()

    def __exit__(self, *_: object) -> None:
        self.drain()

    def _begin_drain(self, seconds: float | None) -> None:
        with self._lock:
            self._drain_by = self._clock() + (self.rules.drain if seconds is None else seconds)
            self._draining.set()
            link = self._link
            if self._state is State.RUNNING:
                self._state = State.DRAINING
            elif self._state is State.NEW:
                self._state = State.ENDED
                self._over.set()
        if link is not None:  # without the lock: closing waits for the provider, and a signal may come twice
            link.consumer.close()
        self._workers.pause()

    def _observed(self, handler: Handler) -> Handler:
        def handle(message: JmsMessage, context: HandlingContext) -> object:
            link = self._link
            telemetry = link.connection.telemetry if link is not None else None
            if link is None or telemetry is None:
                return handler(message, context)
            with telemetry.process(message, link.consumer.destination, timed=not isinstance(handler, answering)):
                return handler(message, context)

        return handle

    def _open_session(self) -> tuple[Session, int]:
        """A session for a worker, at the current connection, and the number of that connection."""
        link = self._link
        if link is None:
            raise TransportError("the provider is not reached at the moment")
        return link.connection.session(), link.generation

    # For the thread of `run`: connecting and ending.

    def _run_in_background(self) -> None:
        try:
            self._run_here()
        except BaseException as error:  # noqa: BLE001 - start raises it while it waits, then the hook gets it
            if self._ready.is_set():
                self._record.report_error(error, None)
            self._failure = error
        finally:
            self._ready.set()

    def _run(self) -> None:
        losses, progress = 0, 0
        while not self._draining.is_set():
            try:
                self._serve(self._open())
            except (TransportError, IllegalStateError) as error:
                was_open = self._lost(error)
                # A connection that somebody closed is opened again, but not one that must not be opened.
                if isinstance(self._connect, Connection) or not (was_open or isinstance(error, TransportError)):
                    raise
                losses = losses + 1 if progress == self._record.settled else 1
                progress = self._record.settled
                self._draining.wait(self.rules.reconnect.seconds(losses))

    def _open(self) -> Link:
        """Reaches the provider, however long that takes. Raises TransportError: it was told to drain, or has no other
        connection."""
        if isinstance(self._connect, Connection):
            link = self._make_link(self._connect, owned=False, generation=self._generation)
        else:
            link = self._reach(self._connect)
        with self._lock:
            self._link = link
            draining = self._draining.is_set()
            self._state = State.DRAINING if draining else State.RUNNING
        if draining:
            link.consumer.close()
        self._record.connected(link.connection.metadata.provider)
        if self._generation and link.connection.telemetry is not None:
            link.connection.telemetry.count(Count.RECONNECTS)
        self._ready.set()
        return link

    def _reach(self, connect: Callable[[], Connection]) -> Link:
        # After a loss the broker may hold the client id and the subscription for the old connection for a while.
        passing = (TransportError, ClientIdInUseError, IllegalStateError) if self._generation else TransportError
        failures = 0
        while True:
            try:
                return self._make_link(connect(), owned=True, generation=self._generation)
            except passing as error:
                failures += 1
                self._record.not_reached(error)
                if self._draining.wait(self.rules.reconnect.seconds(failures)):
                    raise

    def _lost(self, error: MtosiError) -> bool:
        """The connection is lost: the provider delivers again what waited. Whether there was a connection."""
        with self._lock:
            link, self._link = self._link, None
            self._generation += 1
            self._state = State.CONNECTING
        for task in self._workers.clear():
            self._record.remember_failures(task)
            give_back(task.delivery)
        if link is not None:
            self._record.lost(error)
            link.close()
            Interruption(str(error)).tell(link.on_interrupted)
        return link is not None

    def _end(self) -> None:
        with self._lock:
            link, self._link = self._link, None
            self._state = State.ENDED
        self._abandoned = self._workers.end()
        if link is not None:
            link.close()
        self._record.ended(self._abandoned)
        self._over.set()

    # For the thread of `run`: a message's way.

    def _serve(self, link: Link) -> None:
        """Receives and settles, until all handlers have finished after `drain`, or the time for that is over. Raises
        TransportError: what was received on this link will be delivered again."""
        while True:
            while (outcome := self._workers.outcome()) is not None:
                self._settle(link, *outcome)
            if self._draining.is_set():
                for task in self._workers.clear():  # unacknowledged, so the provider has them again
                    give_back(task.delivery)
                is_late = self._drain_by is not None and self._clock() >= self._drain_by
                if is_late or not (self._workers.held() or self._workers.running):
                    return
                self._workers.await_outcome(_LOOK)
            elif self._workers.held() >= self.rules.most or self._workers.is_stuck:
                self._workers.await_outcome(_LOOK)
            else:
                self._receive(link)

    def _receive(self, link: Link) -> None:
        wait = _LOOK if self._workers.held() else None
        try:
            delivery = self._roomy(lambda: link.source.receive(wait))
        except IllegalStateError:
            if self._draining.is_set():  # which closed the consumer
                return
            raise
        if delivery is None:
            return
        if self._draining.is_set():
            give_back(delivery)
        else:
            self._arrived(link, delivery)

    def _roomy(self, work: Callable[[], T]) -> T | None:
        """Does what needs room on the disk of the inbox, and waits for room where there is none; None: draining."""
        failures = 0
        while True:
            try:
                return work()
            except SpoolFullError as error:
                failures += 1
                self._record.no_room(error)
                if self._draining.is_set() and failures > 1:
                    return None
                self._draining.wait(self.rules.reconnect.seconds(failures))

    def _arrived(self, link: Link, delivery: Delivery) -> None:
        failures, error = self._record.earlier_failures(delivery.message)
        task = Task(delivery, None, link.generation, failures, error)
        refused: BaseException | None = None
        if isinstance(delivery, InboxDelivery) and delivery.conflict:
            refused = ProtocolError(CONFLICT, delivery.message.correlation_id or "")
        elif failures >= self.rules.attempts and error is not None:
            self._park(link, task, error)
            return
        else:
            try:
                task.key = self._key(delivery.message) if self._key is not None else None
                hash(task.key)
            except Exception as raised:  # noqa: BLE001 - a message whose order is unknown cannot be handled
                refused = raised
        if refused is None:
            self._workers.add(task)
        else:
            self._record.failed(task, refused)
            self._park(link, task, refused)

    def _settle(self, link: Link, task: Task, error: BaseException | None) -> None:
        if isinstance(error, SpoolFullError) and isinstance(task.delivery, InboxDelivery) and not task.delivery.begun:
            self._record.no_room(error)  # the inbox could not note that it is handed out, so it was not
            self._workers.retry(task, self._clock() + self.rules.reconnect.seconds(1))
            return
        is_stale = self._is_stale(link, task)
        if error is not None:
            self._record.failed(task, error)
            if isinstance(error, HandlerTimeoutError) and mark_in_doubt(task.delivery):  # it may do its work yet
                self._workers.finish(task)
                return
            if task.failures < self.rules.attempts and not self._draining.is_set() and not is_stale:
                self._roomy(lambda: retry(task.delivery))
                self._workers.retry(task, self._clock() + self.rules.retry.seconds(task.failures))
                return
        try:
            if is_stale:
                self._record.remember_failures(task)
            elif error is None:
                self._roomy(task.delivery.acknowledge)
                self._record.handled(task)
            elif task.failures >= self.rules.attempts:
                self._park(link, task, error)
            else:
                give_back(task.delivery)
        finally:
            self._workers.finish(task)

    @staticmethod
    def _is_stale(link: Link, task: Task) -> bool:
        """Whether a message came by a session that is lost, so that it comes again in any case; not from an inbox."""
        return task.generation != link.generation and not isinstance(task.delivery, InboxDelivery)

    def _park(self, link: Link, task: Task, error: BaseException) -> None:
        try:
            link.park(task.delivery.message, error, task.failures)
            self._roomy(lambda: park(task.delivery))
        except (TransportError, IllegalStateError):
            self._record.remember_failures(task)
            give_back(task.delivery)
            raise
        self._record.parked(task, error, str(link.parking))
        if link.connection.telemetry is not None:
            link.connection.telemetry.count(Count.PARKED, link.consumer.destination)
