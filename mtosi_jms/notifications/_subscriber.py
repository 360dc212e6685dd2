"""The subscriber: receives notifications, stores and acknowledges them, and hands them out event by event (R8, R10)."""

from __future__ import annotations

import asyncio
import enum
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Generic, Self, TypeAlias, TypeVar

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import sender_of
from mtosi_jms.binding.profile import Validate, body_check
from mtosi_jms.binding.selector import lint
from mtosi_jms.errors import ConfigError, IllegalStateError, SpoolError, TransportError, XmlError
from mtosi_jms.exchange.messages import warn
from mtosi_jms.exchange.sending import check_connection
from mtosi_jms.exchange.worker import Closing, Worker
from mtosi_jms.jms import DeliveryMode, Destination, JmsMessage
from mtosi_jms.jms.selector import Condition, Selector
from mtosi_jms.masking import shown_half_made
from mtosi_jms.notifications._events import Event, Received, log_warnings, name_of, object_name_of, read_notification
from mtosi_jms.service import check_seconds
from mtosi_jms.soap import correlation_id, names_of
from mtosi_jms.spool import InboxDelivery, InboxReceiver, IncomingJournal, Landing, begin, mark_in_doubt, watch_inbox
from mtosi_jms.telemetry import Count, of_message
from mtosi_jms.transport import Connection, Delivery, dropped, is_open, redeliver
from mtosi_jms.xmlbind import XmlObject


class LossCause(enum.Enum):
    """The sign by which a loss shows, as JMS does not number the notifications of a topic.

    HEARTBEAT: no heartbeat of a sender, or of anybody so far, for longer than was promised; over with the next one.
    SENDER: EventLossOccurred; over with EventLossCleared about the same object. TRANSPORT: the provider failed, or the
    connection was lost and may not have kept all; over with the next message."""

    HEARTBEAT = "heartbeat overdue"
    SENDER = "told by the sender"
    TRANSPORT = "provider interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Events may have been lost, or the loss is over.

    Attributes:
        cause: the sign by which it was noticed.
        sender: senderURI of the publisher concerned; empty if not known.
        object_name: name of the object whose events are lost; empty if the sender does not say.
        since: when it was noticed, in seconds of the subscriber's clock.
        over: whether no more events are lost; `since` is still the time when the loss was noticed.
        event: the event that reported the loss, or its end; None if there was none.
        reason: the transport's error; empty for other causes.
    """

    cause: LossCause
    sender: str = ""
    object_name: str = ""
    since: float
    over: bool = False
    event: Event | None = None
    reason: str = ""


LossHook: TypeAlias = Callable[[Loss], object]
"""Called with each loss when it begins and when it is over, in the thread that receives."""

_Key: TypeAlias = tuple[LossCause, str, str]


class LossWatch:
    """The losses of one subscriber; for one thread at a time. `heartbeat`: seconds that were promised, or None.
    `keeps_durable`: the provider keeps all for a durable subscription during a reconnect."""

    def __init__(self, hook: LossHook | None, clock: Callable[[], float], heartbeat: float | None) -> None:
        self.keeps_durable = False
        self._hook = hook
        self._clock = clock
        self._heartbeat = heartbeat
        self._open: dict[_Key, Loss] = {}
        # Until the first heartbeat, that of any sender is awaited, under the empty name.
        self._seen_at: dict[str, float] = {} if heartbeat is None else {"": clock()}

    @property
    def open(self) -> tuple[Loss, ...]:
        """The losses that are not over, in the order in which they began."""
        return tuple(self._open.values())

    def due(self) -> float | None:
        times = [time for sender, time in self._seen_at.items() if (LossCause.HEARTBEAT, sender, "") not in self._open]
        if self._heartbeat is None or not times:
            return None
        return max(0.0, min(times) + self._heartbeat - self._clock())

    def check(self) -> None:
        if self._heartbeat is None:
            return
        now = self._clock()
        for sender, seen in self._seen_at.items():
            if now - seen >= self._heartbeat:
                self._begin(Loss(cause=LossCause.HEARTBEAT, sender=sender, since=seen))

    def heartbeat(self, sender: str, event: Event) -> None:
        if self._heartbeat is None:
            return
        self._seen_at.pop("", None)
        self._seen_at[sender] = self._clock()
        for concerned in ("", sender):
            self._end((LossCause.HEARTBEAT, concerned, ""), event)

    def loss_reported(self, sender: str, event: Event, *, over: bool) -> None:
        """Note that a sender reports a loss of events, or its end, even if its beginning was missed."""
        name = object_name_of(event)
        loss = Loss(cause=LossCause.SENDER, sender=sender, object_name=name, since=self._clock(), event=event)
        if not over:
            self._begin(loss)
        elif not self._end(_key_of(loss), event):
            self._report(replace(loss, over=True))

    def reconnected(self, reason: str) -> None:
        """Note a loss, unless a durable subscription has kept all that was sent meanwhile."""
        if not self.keeps_durable:
            self.interrupted(reason)

    def interrupted(self, reason: str) -> None:
        self._begin(Loss(cause=LossCause.TRANSPORT, since=self._clock(), reason=reason))

    def received(self) -> None:
        self._end((LossCause.TRANSPORT, "", ""), None)

    def _begin(self, loss: Loss) -> None:
        if _key_of(loss) not in self._open:
            self._open[_key_of(loss)] = loss
            self._report(loss)

    def _end(self, key: _Key, event: Event | None) -> bool:
        loss = self._open.pop(key, None)
        if loss is not None:
            self._report(replace(loss, over=True, event=event))
        return loss is not None

    def _report(self, loss: Loss) -> None:
        what = "no more events are lost" if loss.over else "events may have been lost"
        log.warning("%s: %s %s%s", what, loss.cause.value, loss.sender, f", {loss.reason}" if loss.reason else "")
        if self._hook is None:
            return
        try:
            self._hook(loss)
        except Exception:
            log.exception("on_loss failed")


def _key_of(loss: Loss) -> _Key:
    return loss.cause, loss.sender, loss.object_name


T = TypeVar("T")
log = logging.getLogger(__package__)

_LOSS_IS_OVER: Final = {"EventLossOccurred": False, "EventLossCleared": True}
_VOLATILE: Final = (
    "the message is NON_PERSISTENT: the broker loses such messages of a durable subscription when it restarts; "
    "publishers have `persistent=True`"
)


class Subscriber(Iterator[Received]):
    """Receives notifications, event by event, each with its delivery; for one thread at a time.

        for event, envelope, message in subscriber: ...

    Each message is stored in the landing, if there is one, and acknowledged before its events are handed out. A message
    that cannot be read, or is empty, goes to `on_error` and stays in the landing. Iteration may go on after an error.
    An event of an unknown class is handed out as `RawXml`, in its place among the others. The body of a message that is
    not a notification is handed out as it is.

    Args:
        selector: condition on headers and properties (R10): text, a `Selector`, or an expression of the builder `P`. A
            part of it that no notification can meet is logged (R20c).
        durable: name of a durable subscription, which keeps notifications while nobody receives (P8); for a topic, and
            a connection with a client id. Only PERSISTENT ones survive a restart of the broker: the first message that
            is not has a warning (O6b), and from then on a lost connection is a loss.
        timeout: seconds to wait for an event before iteration ends; None waits for ever.
        inbox: stores each message before it is acknowledged and drops copies of earlier ones. Its events are handed out
            once. A message is settled when the event after its last one is requested, at the end of a `with` block
            without an error, or by `done`; otherwise it is in doubt (`Inbox.in_doubt`), also if anything interrupts
            the reading or handing out of its events.
        on_error: called with the error of a message that cannot be read; without it the error is raised.
        package: generated package whose classes are preferred to those of all others.
        profile: the binding profile of the publishers. The selector is checked against it; with `validation="strict"`
            findings about the selector and breaches of the schema are errors.
        heartbeat: seconds within which each publisher promised a heartbeat; a missing heartbeat is a loss.
        on_loss: called when events may have been lost, and when the loss is over; see `Loss`.
        validate: whether bodies must fit the schemas (001-S12), see `mtosi_jms.binding.profile.Validate`.
        understands: header blocks that the application understands, as Clark names or classes of elements. A message
            with another block that must be understood is treated as one that cannot be read.

    Raises:
        NamingError: the destination cannot be resolved.
        SelectorError: the selector does not parse.
        ConfigError: an argument of the wrong type, `durable` for a queue, a strict profile and a selector with
            findings, or something that the transport lacks.
        TransportError: the provider failed.
    """

    def __init__(
        self,
        connection: Connection,
        destination: str | Destination,
        *,
        selector: str | Selector | Condition | None = None,
        durable: str | None = None,
        timeout: float | None = None,
        landing: Landing | None = None,
        inbox: IncomingJournal | None = None,
        on_error: Callable[[Exception], object] | None = None,
        package: str | None = None,
        profile: BindingProfile | None = None,
        heartbeat: float | None = None,
        on_loss: LossHook | None = None,
        clock: Callable[[], float] = time.monotonic,
        validate: Validate = "ignore",
        understands: Collection[str | type[XmlObject]] = (),
    ) -> None:
        check_connection("Subscriber", connection)
        check_seconds("timeout", timeout, zero=True)
        check_seconds("heartbeat", heartbeat)
        for name, hook in (("on_error", on_error), ("on_loss", on_loss)):
            if hook is not None and not callable(hook):
                raise ConfigError(f"{name}: give a function, not {type(hook).__name__}")
        self._destination = connection.names.lookup(destination)
        self._timeout = timeout
        self._landing = landing
        self._on_error = on_error
        self._package = package
        self._check = body_check(validate)
        self._understands = names_of(understands)
        self._strict = profile is not None and profile.validation == "strict"
        self._vendors = profile.header if profile is not None else ""
        self._events: deque[Received] = deque()
        self._in_hand: Delivery | None = None
        self._making = threading.Lock()
        self._aio: AsyncSubscriber | None = None
        self._watch = LossWatch(on_loss, clock, heartbeat)
        text = None if selector is None else str(selector)
        if text is not None:
            self._check_selector(text, profile)
        self._session = connection.session()
        try:
            self._consumer = self._session.consumer(self._destination, text, durable=durable)
            if self._destination.is_topic:  # a queue keeps messages during a reconnect
                # The watch's method, not the subscriber's: a consumer must not keep a subscriber that was dropped.
                self._watch.keeps_durable = durable is not None
                self._consumer.on_interrupted = self._watch.reconnected
            connection.start()
        except BaseException:
            self._session.close()
            raise
        watch_inbox(connection.telemetry, inbox)
        self._source = self._consumer if inbox is None else InboxReceiver(self._session, self._consumer, inbox)

    def _check_selector(self, selector: str, profile: BindingProfile | None) -> None:
        for finding in lint(selector, mode="strict" if self._strict else "lenient", filters=profile):
            if self._strict:
                raise ConfigError(f"selector: {finding}")
            log.warning("selector: %s", finding)

    @shown_half_made
    def __repr__(self) -> str:
        durable = f", durable {self._consumer.durable}" if self._consumer.durable is not None else ""
        return f"<Subscriber {self._destination}{durable}, {'closed' if self._session.is_closed else 'open'}>"

    @property
    def destination(self) -> Destination:
        return self._destination

    @property
    def aio(self) -> AsyncSubscriber:
        """The same subscriber for coroutines; not to be used together with the blocking iteration."""
        with self._making:
            if self._aio is None:
                self._aio = AsyncSubscriber(self._receive, self._take, self._events, self.close, self._timeout)
            return self._aio

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The losses that are not over."""
        return self._watch.open

    def __next__(self) -> Received:
        try:
            deadline = None if self._timeout is None else time.monotonic() + self._timeout
            while not self._events:
                delivery = self._receive(None if deadline is None else max(0.0, deadline - time.monotonic()))
                if delivery is None:
                    raise StopIteration
                self._take(delivery)
            return self._events.popleft()
        except XmlError:
            raise
        except BaseException:
            self._leave_in_doubt()
            raise

    def _leave_in_doubt(self) -> None:
        if isinstance(self._in_hand, InboxDelivery):
            self._events.clear()
            with suppress(SpoolError):  # then it is in doubt when the inbox is opened again
                mark_in_doubt(self._in_hand)
            self._in_hand = None

    def _receive(self, seconds: float | None) -> Delivery | None:
        """Settle the previous message, then wait for the next one and return it. Checks heartbeats meanwhile."""
        self.done()
        deadline = None if seconds is None else time.monotonic() + seconds
        waited = False
        while True:
            self._watch.check()
            due = self._watch.due()
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            wait = due if left is None else left if due is None else min(left, due)
            try:
                self._in_hand = delivery = self._source.receive(wait)
            except IllegalStateError:
                if waited:  # it was closed while we waited
                    return None
                raise
            except TransportError as error:
                self._watch.interrupted(str(error))
                raise
            if delivery is not None or wait == left:
                self._watch.check()
                return delivery
            waited = True

    def _take(self, delivery: Delivery) -> None:
        """Land, acknowledge and read one message. If that is interrupted, an inbox has it in doubt."""
        try:
            self._read(delivery)
        except XmlError:  # reported
            raise
        except BaseException:
            self._leave_in_doubt()
            raise

    def _read(self, delivery: Delivery) -> None:
        try:
            landed = self._landing.land(delivery.message) if self._landing is not None else None
            if isinstance(self._source, InboxReceiver):
                begin(delivery)
            else:
                delivery.acknowledge()
        except BaseException:
            redeliver(self._session)
            raise
        self._watch.received()
        since_ns = time.time_ns()
        try:
            envelope, events = read_notification(
                delivery.message,
                strict=self._strict,
                package=self._package,
                header=self._vendors,
                understands=self._understands,
                check=self._check,
            )
        except XmlError as error:
            self._report(delivery.message, since_ns, error)
            self._log_acknowledged(landed, None)
            if self._on_error is None:
                raise
            self._on_error(error)
            return
        self._log_acknowledged(landed, correlation_id(envelope.header))
        if self._watch.keeps_durable:
            self._watch.keeps_durable = delivery.message.delivery_mode is DeliveryMode.PERSISTENT
            if not self._watch.keeps_durable:
                warn(envelope, "O6b", _VOLATILE)
        log_warnings(log, delivery.message, envelope)
        received = [Received(event, envelope, delivery.message) for event in events]
        for one in received:
            self._note(one)
        self._events.extend(received)
        self._report(delivery.message, since_ns, None)

    def _report(self, message: JmsMessage, since_ns: int, error: XmlError | None) -> None:
        facts = of_message(message, self._destination)
        if error is not None:
            text = "a message at %s cannot be read, message %s: %s: %s"
            log.warning(text, self._destination, message.message_id, type(error).__name__, error, extra=facts)
        elif log.isEnabledFor(logging.INFO):
            log.info("received at %s: message %s", self._destination, message.message_id, extra=facts)
        telemetry = self._session.connection.telemetry
        if telemetry is not None:
            telemetry.receive(message, self._destination, since_ns, error=error)
            if error is not None:
                telemetry.count(Count.REJECTS, self._destination)

    def _log_acknowledged(self, landed: object, found: str | None) -> None:
        if self._landing is not None:
            self._landing.acknowledged(landed, correlation_id=found, batch_number=None)

    def _note(self, received: Received) -> None:
        event, envelope, message = received
        name = name_of(event)
        if name != "Heartbeat" and name not in _LOSS_IS_OVER:
            return
        sender = (sender_of(message, envelope.header) if envelope.header is not None else None) or ""
        if name == "Heartbeat":
            self._watch.heartbeat(sender, event)
        else:
            self._watch.loss_reported(sender, event, over=_LOSS_IS_OVER[name])

    def interrupted(self, reason: str) -> None:
        """Report that messages may have been missed because the connection was lost, or made again. The loss is over
        with the next message. Call it from the thread that receives."""
        self._watch.interrupted(reason)

    def done(self) -> None:
        """Settle, in the inbox, the message whose events were handed out last. Raises SpoolError: the inbox cannot note
        it."""
        if isinstance(self._in_hand, InboxDelivery):
            self._in_hand.acknowledge()
        self._in_hand = None

    def unsubscribe(self) -> None:
        """End the subscription for good; a durable one loses everything that it kept. Raises TransportError: the
        provider failed."""
        durable = self._consumer.durable
        self._consumer.close()
        if durable is not None:
            self._session.unsubscribe(durable)
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_source") and is_open(self._session):
            dropped("a Subscriber")  # its session lives on until the connection is closed

    def close(self) -> None:
        """End the subscription; a durable one goes on keeping notifications."""
        with self._making:
            if self._aio is not None:
                self._aio.stop()
        self._session.close()
        in_hand, self._in_hand = self._in_hand, None
        if in_hand is not None:
            mark_in_doubt(in_hand)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.done()
        self.close()


class AsyncSubscriber(Closing, AsyncIterator[Received]):
    """A subscriber as coroutines see it; made by `Subscriber.aio`.

    A message is received when a task waits for an event and no event is left of the message before. A task that is
    cancelled loses nothing: a message received later is neither landed nor acknowledged before a task waits again. It
    is for one task at a time, and not for use beside the blocking iteration.

    Args:
        timeout: seconds to wait for an event before iteration ends; None waits for ever.
    """

    def __init__(
        self,
        receive: Callable[[float | None], Delivery | None],
        take: Callable[[Delivery], None],
        events: deque[Received],
        close: Callable[[], None],
        timeout: float | None,
    ) -> None:
        super().__init__(close, "the subscriber")
        self._receive = receive
        self._take = take
        self._events = events
        self._timeout = timeout
        self._worker = Worker("mtosi-subscribe", "the subscriber")
        self._receiving: _Job[Delivery | None] = _Job(self._worker)
        self._taking: _Job[None] = _Job(self._worker)
        self._stopped = False

    async def __anext__(self) -> Received:
        if self._stopped and not self._events:
            raise IllegalStateError("the subscriber is closed")
        try:
            return await self._next()
        except IllegalStateError:
            if self._stopped:  # it was closed while this task waited
                raise StopAsyncIteration from None
            raise

    async def _next(self) -> Received:
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        while not self._events:
            if not self._taking.is_begun:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                self._receiving.begin(partial(self._receive, left))
                delivery = await self._receiving.result()
                if delivery is None:
                    raise StopAsyncIteration
                self._taking.begin(partial(self._take, delivery))
            await self._taking.result()
        return self._events.popleft()

    def stop(self) -> None:
        """End the iteration, also for a task that waits, as the subscription is closed."""
        self._stopped = True
        self._worker.close()


class _Job(Generic[T]):
    """A job of a thread. If the task that waits for it is cancelled, the job goes on: the next task gets its result."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._future: Future[T] | None = None

    @property
    def is_begun(self) -> bool:
        return self._future is not None

    def begin(self, job: Callable[[], T]) -> None:
        """Begin a job, unless an earlier one still has a result to give."""
        if self._future is None:
            self._future = self._worker.submit(job)

    async def result(self) -> T:
        if self._future is None:
            raise IllegalStateError("another task waits for an event")
        try:
            result = await asyncio.shield(asyncio.wrap_future(self._future))
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._future = None
            raise
        self._future = None
        return result
