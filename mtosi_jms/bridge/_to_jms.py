"""Events of a channel to JMS."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from uuid import UUID

from mtosi_jms.bridge._options import BridgeOptions, EventLoss
from mtosi_jms.bridge.endpoints import Channel, EventSource, FlowStyle, Grouping
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.bridge.reliable import SEQUENCE_NUMBER, Duplicates, number_of
from mtosi_jms.errors import (
    ConfigError,
    EncodeError,
    EventError,
    IllegalStateError,
    MessageRefusedError,
    MtosiError,
    ResourceLimitError,
    SpoolError,
    TransportError,
)
from mtosi_jms.jms import DUPLICATE_ID, DeliveryMode, Destination, JmsMessage
from mtosi_jms.jms.ids import random_id
from mtosi_jms.transport import Connection, Session

log = logging.getLogger(__name__)

Connect = Callable[[], Connection]
_NAMED = ("JMSMessageID", "notificationId")
_CHANNEL = "channel"


class JmsSink:
    """Sends to JMS, and returns when the provider or the outbox has it. One thread at a time."""

    def __init__(self, connect: Connect, destination: Destination, options: BridgeOptions) -> None:
        self._connect = connect
        self._destination = destination
        self._options = options
        self._connection: Connection | None = None
        self._session: Session | None = None
        self._transacted = False
        self._lock = threading.RLock()
        self._stored = threading.Event()
        self._over = threading.Event()
        self._pump: threading.Thread | None = None

    def open(self) -> None:
        """Connects; where there is an outbox, that sends from now on."""
        with self._lock:
            if self._options.outbox is None:
                self._ready()
            elif self._pump is None:
                self._pump = threading.Thread(target=self._send_stored, name="bridge-outbox", daemon=True)
                self._pump.start()

    @property
    def is_ready(self) -> bool:
        """Whether something can be taken."""
        return self._options.outbox is not None or (self._session is not None and not self._session.is_closed)

    def transacted(self, switch: bool) -> None:
        """Whether what is sent takes effect at `commit` alone; with a new session."""
        with self._lock:
            if switch is not self._transacted:
                self._transacted = switch
                self._lose()

    def send(self, messages: Sequence[JmsMessage]) -> None:
        """Sends messages in order.

        Raises:
            TransportError: the provider failed; some may have gone.
        """
        with self._lock:
            outbox = self._options.outbox
            for message in messages:
                to = message.destination if self._options.mapper is not None else None
                to = to or self._destination
                if outbox is not None:
                    outbox.put(message, to)
                    continue
                try:
                    self._ready().send(to, message)
                except (MessageRefusedError, ResourceLimitError):
                    raise
                except (TransportError, IllegalStateError) as error:
                    self._lose()
                    raise error if isinstance(error, TransportError) else TransportError(str(error)) from error
            self._stored.set()

    def commit(self) -> None:
        """Has what was sent take effect; what fails is rolled back."""
        with self._lock:
            if self._session is None:
                raise TransportError("the connection was lost, and with it the transaction")
            try:
                self._session.commit()
            except (TransportError, IllegalStateError) as error:
                self._lose()
                raise TransportError(str(error)) from error

    def rollback(self) -> None:
        """Forgets what was sent."""
        with self._lock:
            self._lose()

    def _ready(self) -> Session:
        if self._session is None or self._session.is_closed:
            self._lose()
            self._connection = self._connect()
            self._session = self._connection.session(transacted=self._transacted)
        return self._session

    def _lose(self) -> None:
        connection, self._connection, self._session = self._connection, None, None
        if connection is not None:
            try:
                connection.close()
            except MtosiError as error:
                log.debug("closing a lost connection: %s", error)

    def _send_stored(self) -> None:
        failures = 0
        outbox = self._options.outbox
        while outbox is not None and not self._over.is_set():
            self._stored.clear()
            try:
                with self._lock:
                    session = self._ready()
                outbox.resend(session)
                failures = 0
                self._stored.wait(1.0)
            except (TransportError, IllegalStateError) as error:
                failures += 1
                log.warning("the outbox waits: %s", error)
                with self._lock:
                    self._lose()
                self._over.wait(self._options.backoff.seconds(failures))
            except SpoolError:
                log.exception("the outbox cannot be read")
                self._over.wait(self._options.backoff.seconds(9))

    def close(self) -> None:
        """Ends; what the outbox has is kept."""
        self._over.set()
        self._stored.set()
        if self._pump is not None:
            self._pump.join()
        with self._lock:
            self._lose()


class ChannelToJms:
    """Takes events of a channel, pushed or pulled, and gives them to JMS."""

    def __init__(
        self, channel: Channel, style: FlowStyle, grouping: Grouping, sink: JmsSink, options: BridgeOptions
    ) -> None:
        self._channel = channel
        self._style = style
        self._grouping = grouping
        self._sink = sink
        self._options = options
        self._changed = threading.Condition()
        self._source: EventSource = self._proxy()
        self._connected = self._running = self._over = False
        self._lost: str | None = None
        self._keeper: threading.Thread | None = None
        self._duplicates = Duplicates()
        self._ids: dict[StructuredEvent, str] = {}
        self._per_transaction = 0
        self._lifetime = 0.0
        self._uncommitted: list[tuple[Sequence[StructuredEvent], Sequence[JmsMessage]]] = []
        self._timer: threading.Timer | None = None
        self._taking = threading.RLock()
        self._losing: set[str] = set()
        self._untold: deque[Sequence[JmsMessage]] = deque()
        self._has_news = False
        self.forwarded = 0

    def _proxy(self) -> EventSource:
        options = self._options
        return self._channel.event_source(
            self._style, self._grouping, qos=options.qos or None, constraint=options.constraint
        )

    def start(self) -> None:
        """Connects, or resumes."""
        self._sink.open()
        with self._changed:
            self._running = True
            if self._connected:
                self._source.resume()
            else:
                self._join()
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep, name="bridge-keeper", daemon=True)
                self._keeper.start()
            self._changed.notify_all()

    def _join(self) -> None:
        self._connected = True
        try:
            if self._style is FlowStyle.PUSH:
                self._source.connect(self.take, self._on_lost)
            else:
                self._source.connect(None, self._on_lost)
        except BaseException:
            self._connected = False
            raise

    def stop(self) -> None:
        """Suspends: no event is taken until `start`."""
        with self._changed:
            self._running = False
            if self._lost is None:
                self._source.suspend()

    def close(self) -> None:
        """Ends both connections."""
        with self._changed:
            self._over = True
            self._running = False
            self._changed.notify_all()
        self._source.disconnect()
        if self._keeper is not None:
            self._keeper.join()
        self._cancel()
        self._try_to_tell_jms()
        if self._uncommitted:
            try:
                self._commit()
            except TransportError as error:
                log.warning("%d events were taken and not committed: %s", len(self._uncommitted), error)
        self._sink.close()

    @property
    def is_active(self) -> bool:
        """Whether both sides are connected, and not stopped."""
        return self._running and self._lost is None and self._source.is_connected() and self._sink.is_ready

    def _on_lost(self, reason: str) -> None:
        with self._changed:
            if not self._over:
                self._lost = reason
                self._changed.notify_all()
        if not self._over:
            self.tell(EventLoss(source=_CHANNEL, over=False, reason=reason))

    def tell(self, loss: EventLoss) -> None:
        """Tells of a loss, and has JMS told, which is told of an end when nobody loses any more."""
        self._options.lose(loss.what, loss.reason)
        with self._changed:
            (self._losing.discard if loss.over else self._losing.add)(loss.source)
            if self._options.loss_mapper is not None and not (loss.over and self._losing):
                made = self._options.loss_mapper(loss)
                self._untold.append([_with_id(one, random_id()) for one in made])
                self._has_news = True
                self._changed.notify_all()

    def _tell_jms(self, send: Callable[[Sequence[StructuredEvent], Sequence[JmsMessage]], None]) -> None:
        """Sends what JMS was not told yet; for who has `_taking`.

        Raises:
            TransportError: it cannot be told now.
        """
        while self._untold:
            send((), self._untold[0])
            self._untold.popleft()

    def _try_to_tell_jms(self) -> None:
        self._has_news = False
        if not self._untold or not self._taking.acquire(blocking=False):
            return  # who takes events now tells it with the next one, or the next look does
        try:
            self._tell_jms(self._send_once)
        except MessageRefusedError as error:
            log.error("JMS is not told of a loss: %s", error)  # noqa: TRY400 - the text says it
            self._untold.popleft()
        except (TransportError, SpoolError) as error:
            log.warning("JMS is not told of a loss yet: %s", error)
        finally:
            self._taking.release()

    def _keep(self) -> None:
        """Pulls, where events are pulled; and connects again when the connection is lost."""
        while True:
            with self._changed:
                self._changed.wait_for(self._has_work, self._options.watch)
                if self._over:
                    return
                lost = self._lost
            self._try_to_tell_jms()
            if lost is not None:
                self._connect_again(lost)
            elif self._running and self._style is FlowStyle.PULL:
                self._pull()
            elif self._running and not self._source.is_connected():
                self._on_lost(f"{self._channel.name} does not know the bridge any more")

    def _has_work(self) -> bool:
        pulls = self._running and self._style is FlowStyle.PULL
        return self._over or self._lost is not None or self._has_news or pulls

    def _connect_again(self, reason: str) -> None:
        failures = 0
        while not self._over:
            try:
                old, self._source = self._source, self._proxy()
                old.disconnect()
                self._duplicates.clear()
                with self._changed:
                    self._join()
                    if not self._running:
                        self._source.suspend()
                    self._lost = None
            except MtosiError as error:
                failures += 1
                log.info("no connection to %s: %s", self._channel.name, error)
                with self._changed:
                    self._changed.wait_for(lambda: self._over, self._options.backoff.seconds(failures))
                self._try_to_tell_jms()
            else:
                self.tell(EventLoss(source=_CHANNEL, over=True, reason=reason))
                return

    def _pull(self) -> None:
        most = self._options.batch if self._grouping is Grouping.SEQUENCE_EVENT else 1
        try:
            events = self._source.pull(most, timeout=self._options.pacing)
        except (TransportError, IllegalStateError) as error:
            self._look(str(error))
            return
        failures = 0
        while events and not self._over:  # pulled is taken: they are not given again
            try:
                self.take(events)
                return
            except TransportError as error:
                failures += 1
                log.warning("JMS does not take an event: %s", error)
                with self._changed:
                    self._changed.wait_for(lambda: self._over, self._options.backoff.seconds(failures))

    def _look(self, reason: str) -> None:
        """A proxy that has gone may be told by nobody where the bridge pulls."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._lost is not None, self._options.pacing)
            known = self._over or not self._running or self._lost is not None
        if not known and not self._source.is_connected():
            self._on_lost(reason)

    def take(self, events: Sequence[StructuredEvent]) -> None:
        """Returns when JMS has the events.

        Raises:
            TransportError: it has not, after `patience`: they are to come again.
        """
        number = number_of(events) if self._source.acknowledges else None
        with self._taking:
            self._tell_jms(self._send)
            if self._duplicates.is_new(number):
                messages = [message for event in events for message in self._messages(event)]
                self._send(events, messages)
                self._duplicates.store(number)
                self._ids.clear()
                self.forwarded += len(messages)
            if number is not None and not self._per_transaction:
                self._acknowledge([number])

    def _acknowledge(self, numbers: Sequence[int]) -> None:
        try:
            self._source.acknowledge(numbers)
        except (TransportError, IllegalStateError) as error:  # then the events come again, and are known
            log.info("an acknowledgement was lost: %s", error)

    def _messages(self, event: StructuredEvent) -> Sequence[JmsMessage]:
        try:
            found = self._options.messages_of(event)
        except (ConfigError, EncodeError, EventError) as error:
            self._options.park(event, error)
            return ()
        return [self._named(event, number, message) for number, message in enumerate(found)]

    def _named(self, event: StructuredEvent, number: int, message: JmsMessage) -> JmsMessage:
        """The message with the id by which a second copy is known."""
        persistent = self._options.outbox is not None or message.delivery_mode is DeliveryMode.PERSISTENT
        if DUPLICATE_ID in message.properties or not persistent:
            return message
        if any(event.get(name) is not None for name in _NAMED):
            # The event names itself: after a crash, too, it gets the same id.
            header = tuple(one for one in event.variable_header if one.name != SEQUENCE_NUMBER)
            told = repr((number, replace(event, variable_header=header)))
            digest = sha256(told.encode("utf-8", "surrogatepass")).digest()
            identifier = str(UUID(bytes=digest[:16], version=5))
        else:
            identifier = f"{self._ids.setdefault(event, random_id())}{f'.{number}' if number else ''}"
        return _with_id(message, identifier)

    def _send(self, events: Sequence[StructuredEvent], messages: Sequence[JmsMessage]) -> None:
        end = time.monotonic() + self._options.patience
        failures = 0
        while True:
            try:
                self._send_once(events, messages)
                return
            except (MessageRefusedError, ResourceLimitError) as error:
                if isinstance(error, MessageRefusedError):
                    for event in events:
                        self._options.park(event, error)
                    if not events:
                        log.error("JMS is not told of a loss: %s", error)  # noqa: TRY400 - the text says it
                    return
                failure: TransportError = error
            except SpoolError as error:
                failure = TransportError(str(error))
            except TransportError as error:
                failure = error
            failures += 1
            pause = self._options.backoff.seconds(failures)
            if time.monotonic() + pause > end or self._over:
                raise failure
            with self._changed:
                self._changed.wait_for(lambda: self._over, pause)

    def _send_once(self, events: Sequence[StructuredEvent], messages: Sequence[JmsMessage]) -> None:
        if not self._per_transaction:
            self._sink.send(messages)
            return
        if not self._sink.is_ready:  # lost, and with it what was not committed
            for _, before in self._uncommitted:
                self._sink.send(before)
        self._sink.send(messages)
        self._uncommitted.append((events, messages))
        if len(self._uncommitted) >= self._per_transaction:
            self._commit()
        else:
            self._arm()

    def _arm(self) -> None:
        if self._timer is None and self._lifetime:
            self._timer = threading.Timer(self._lifetime, self._expire)
            self._timer.daemon = True
            self._timer.start()

    def _commit(self) -> None:
        self._cancel()
        try:
            self._sink.commit()
        except TransportError:
            self._uncommitted = self._uncommitted[:-1]  # the last comes again, or is tried again by who sends it
            raise
        numbers = [number_of(events) for events, _ in self._uncommitted]
        self._uncommitted = []
        if self._source.acknowledges:
            self._acknowledge([number for number in numbers if number is not None])

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        """The lifetime of a transaction is over: it is rolled back, and what it had goes in one of its own."""
        with self._taking:
            self._timer = None
            waiting, self._uncommitted = self._uncommitted, []
            if not waiting:
                return
            self._sink.rollback()
            try:
                for _, messages in waiting:
                    self._sink.send(messages)
                self._uncommitted = waiting
                self._commit()
            except TransportError as error:
                log.warning("a transaction is tried again: %s", error)
                self._uncommitted = waiting
                self._arm()

    @property
    def can_roll_back(self) -> bool:
        """Whether JMS itself takes the events: an outbox keeps what it has."""
        return self._options.outbox is None

    @property
    def has_transaction(self) -> bool:
        """Whether something was sent and not committed."""
        return bool(self._uncommitted)

    def enable(self, events: int, timeout: float) -> None:
        """Transactions of so many events, or sequences."""
        with self._taking:
            self._sink.transacted(True)
            self._per_transaction, self._lifetime = events, timeout

    def disable(self) -> None:
        """No transactions, from the end of the one in progress."""
        with self._taking:
            self._cancel()
            if self._uncommitted:
                self._commit()
            self._per_transaction = 0
            self._sink.transacted(False)


def _with_id(message: JmsMessage, identifier: str) -> JmsMessage:
    """The message with the id by which a second copy is known."""
    return replace(message, properties={**message.properties, DUPLICATE_ID: identifier})
