"""The consumer runtime: one thread receives, acknowledges and parks; others run the handlers.

A message is acknowledged when its handler has returned, or when it was parked: until then the provider has it, and
delivers it again whatever happens to this process. So nothing is lost, and what was handled may be handled again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tenacity import RetryCallState, Retrying, retry_if_exception_type, sleep_using_event, stop_when_event_set

from mtosi_jms.errors import ConfigError, IllegalStateError, MtosiError, TransportError
from mtosi_jms.exchange.signals import aside, on_signals
from mtosi_jms.jms import Destination
from mtosi_jms.runtime._handlers import Handler
from mtosi_jms.runtime._health import Health, State
from mtosi_jms.runtime._receiving import KeyFunction, Link, Receiver
from mtosi_jms.runtime._record import ErrorHook, Record
from mtosi_jms.runtime._rules import RuntimeRules
from mtosi_jms.runtime._workers import Workers
from mtosi_jms.spool.journal import IncomingJournal, give_back
from mtosi_jms.transport import Connection, Interruption, InterruptionHook, Session, dropped, is_open


class ConsumerRuntime:
    """Has the messages of one destination handled, some at a time, until it is told to drain.

    Args:
        connect: opens a connection, which is the runtime's own, and is opened again when it is lost; or an open
            connection, which is started and not closed, and whose loss ends the runtime.
        destination: name of a queue or topic, or the destination.
        handler: takes a message, in one of several threads; see `Handler`.
        selector: condition on headers and properties.
        durable: name of a durable subscription.
        key: tells whose order a message keeps: those with the same key are handled one at a time, in the order of
            arrival; where it is None, or there is no function, nobody's.
        inbox: stores each message before it is acknowledged, drops what was here before, and tells what was with a
            handler when the process ended, or ran past its deadline: that is not handed out again by itself.
        parking: where messages go that no attempt could handle; None: to the provider's dead-letter queue.
        rules: how many, how often, how long.
        on_error: told what an attempt failed with, and the message; and, without one, why the provider was lost or the
            runtime ended.
        on_interrupted: told, in the thread that receives, why messages did not come for a while: the connection was
            lost, and it or the runtime makes it again. What was sent meanwhile to a topic without `durable` is lost.
        clock: seconds, not running backwards: deadlines, retries and `health` go by it.

    Attributes:
        rules: the same.

    Raises:
        ConfigError: parking is where messages come from.
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
        self._work = _Work(
            connect,
            destination,
            handler,
            self.rules,
            Record(str(destination), clock, on_error),
            subscription={"selector": selector, "durable": durable},
            key=key,
            inbox=inbox,
            parking=parking,
            on_interrupted=on_interrupted,
            clock=clock,
        )

    @property
    def health(self) -> Health:
        """How it is; for any thread."""
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
        """Handle messages in the background; the consumer exists when this returns.

        The threads do not keep the runtime: one that nobody refers to any more ends, with a ResourceWarning.

        Raises:
            As `run`, as far as it comes to light before the first message.
        """
        self._work.start()
        return self

    def drain(self, seconds: float | None = None) -> bool:
        """Take no more messages, let the handlers that run come to their end, and hand back what waits for its turn.

        Args:
            seconds: that handlers have for it; then their messages are handed back too. None: what the rules say.

        Returns:
            Whether no handler runs any more, be it one that is past its deadline. False also where a handler or
            `on_error` asks: nothing is waited for then.
        """
        return self._work.drain(seconds)

    def __del__(self) -> None:
        work = getattr(self, "_work", None)
        if work is not None and work.is_open:
            dropped("a ConsumerRuntime", lambda: work.begin_drain(0.0))

    def __enter__(self) -> Self:
        return self if self._work.health.state is not State.NEW else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drain()


class _Work:
    """What the threads of a runtime do and know; they keep this, and not the runtime. See there."""

    def __init__(
        self,
        connect: Connection | Callable[[], Connection],
        destination: str | Destination,
        handler: Handler,
        rules: RuntimeRules,
        record: Record,
        *,
        subscription: dict[str, Any],
        key: KeyFunction | None,
        inbox: IncomingJournal | None,
        parking: str | Destination | None,
        on_interrupted: InterruptionHook | None,
        clock: Callable[[], float],
    ) -> None:
        self.rules = rules
        self._connect = connect
        self._destination = destination
        self._handler = handler
        self._subscription = subscription
        self._on_interrupted = on_interrupted
        self._key = key
        self._inbox = inbox
        self._parking = parking
        self._clock = clock
        self._record = record
        self._lock = threading.Lock()
        self._state = State.NEW
        self._link: Link | None = None
        self._generation = 0
        self._workers: Workers | None = None
        self._thread: threading.Thread | None = None
        self._ready, self._draining, self._over = threading.Event(), threading.Event(), threading.Event()
        self._drain_by: float | None = None
        self._abandoned = 0
        self._failure: BaseException | None = None

    @property
    def health(self) -> Health:
        workers, state = self._workers, self._state
        if workers is None:
            return self._record.health(state, (0, 0, 0))
        is_stuck = state is State.RUNNING and workers.is_stuck
        return self._record.health(State.STUCK if is_stuck else state, workers.counts())

    def run(self) -> None:
        with self._lock:
            if self._state is not State.NEW:
                raise IllegalStateError("a consumer runtime runs once")
            self._state = State.CONNECTING
            self._thread = threading.current_thread()
            self._workers = workers = Workers(
                self.rules.concurrency,
                self._handler,
                deadline=self.rules.deadline,
                max_stuck=self.rules.most_stuck,
                clock=self._clock,
                opener=self._open_session,
                generation=lambda: self._generation,
                name="handler",
            )
        with aside(lambda again: self.begin_drain(0.0 if again else None)) as drain, on_signals(drain):
            try:
                self._run(workers)
            finally:
                self._end(workers)

    @property
    def is_open(self) -> bool:
        """Whether it runs, and has not lost for good what it runs on."""
        link, state = self._link, self._state
        return state not in (State.NEW, State.ENDED) and (link is None or is_open(link.session))

    def start(self) -> None:
        thread = threading.Thread(target=self._run_kept, name="consumer-runtime", daemon=True)
        thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure

    def drain(self, seconds: float | None) -> bool:
        self.begin_drain(seconds)
        workers = self._workers
        if self._over.is_set():
            return workers is None or not workers.running
        if workers is not None and (workers.is_mine() or threading.current_thread() is self._thread):
            return False
        self._over.wait()
        return not self._abandoned

    def begin_drain(self, seconds: float | None) -> None:
        """Have it end, and do not wait for that."""
        with self._lock:
            self._drain_by = self._clock() + (self.rules.drain if seconds is None else seconds)
            self._draining.set()
            link, workers = self._link, self._workers
            if self._state is State.RUNNING:
                self._state = State.DRAINING
            elif self._state is State.NEW:
                self._state = State.ENDED
                self._over.set()
        if link is not None:
            link.consumer.close()
        if workers is not None:
            workers.pause()

    def _run_kept(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001 - start raises it where it still waits, else the hook has it
            if self._ready.is_set():
                self._record.tell(error, None)
            self._failure = error
        finally:
            self._ready.set()

    def _run(self, workers: Workers) -> None:
        losses, progress = 0, 0
        while not self._draining.is_set():
            try:
                link = self._open()
                receiver = Receiver(
                    link,
                    workers,
                    self.rules,
                    self._key,
                    self._record,
                    clock=self._clock,
                    draining=self._draining,
                    is_late=self._is_late,
                )
                receiver.serve()
            except (TransportError, IllegalStateError) as error:
                was_open = self._lost(workers, error)
                # A connection that somebody closed is opened again; one that may not be opened is not asked for again.
                if isinstance(self._connect, Connection) or not (was_open or isinstance(error, TransportError)):
                    raise
                losses = losses + 1 if progress == self._record.settled else 1
                progress = self._record.settled
                self._draining.wait(self.rules.reconnect.seconds(losses))

    def _open(self) -> Link:
        """Reach the provider, however often that takes.

        Raises:
            TransportError: it was told to drain meanwhile, or the connection is not its own.
        """
        if isinstance(self._connect, Connection):
            link = self._linked(self._connect, owned=False)
        else:
            connect = self._connect
            link = Retrying(
                retry=retry_if_exception_type(TransportError),
                wait=self.rules.reconnect.strategy(),
                stop=stop_when_event_set(self._draining),
                sleep=sleep_using_event(self._draining),
                before_sleep=self._not_reached,
                reraise=True,
            )(lambda: self._linked(connect(), owned=True))
        with self._lock:
            self._link = link
            draining = self._draining.is_set()
            self._state = State.DRAINING if draining else State.RUNNING
        if draining:
            link.consumer.close()
        self._record.connected(link.connection.metadata.provider)
        self._ready.set()
        return link

    def _linked(self, connection: Connection, *, owned: bool) -> Link:
        return Link(
            connection,
            self._destination,
            self._parking,
            self._subscription,
            on_interrupted=self._on_interrupted,
            owned=owned,
            generation=self._generation,
            inbox=self._inbox,
        )

    def _not_reached(self, state: RetryCallState) -> None:
        self._record.not_reached(state.outcome.exception() if state.outcome is not None else None)

    def _open_session(self) -> tuple[Session, int]:
        link = self._link
        if link is None:
            raise TransportError("the provider is not reached at the moment")
        return link.connection.session(), link.generation

    def _lost(self, workers: Workers, error: MtosiError) -> bool:
        """What is held belongs to a session that is gone: the provider delivers it again. Whether there was one."""
        with self._lock:
            link, self._link = self._link, None
            self._generation += 1
            self._state = State.CONNECTING
        for task in workers.clear():
            self._record.went_back(task)
            give_back(task.delivery)
        if link is not None:
            self._record.lost(error)
            link.close()
            Interruption(str(error)).tell(self._on_interrupted)
        return link is not None

    def _is_late(self) -> bool:
        return self._drain_by is not None and self._clock() >= self._drain_by

    def _end(self, workers: Workers) -> None:
        with self._lock:
            link, self._link = self._link, None
            self._state = State.ENDED
        self._abandoned = workers.end()
        if link is not None:
            link.close()
        self._record.ended(self._abandoned)
        self._over.set()
