"""Forwards events of a channel to JMS."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Final
from uuid import UUID

from mtosi_jms.bridge._keeper import BridgeOptions, EventLoss, Keeper
from mtosi_jms.bridge.endpoints import Channel, EventSource, FlowStyle, Grouping, OnDisconnected
from mtosi_jms.bridge.events import RefusedEvent, StructuredEvent
from mtosi_jms.bridge.qos import SEQUENCE_NUMBER, Duplicates, is_acknowledged, number_of
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
    UnsupportedQoS,
)
from mtosi_jms.jms import DUPLICATE_ID, Destination, JmsMessage
from mtosi_jms.jms.ids import random_id
from mtosi_jms.spool import OutboxPump
from mtosi_jms.transport import Connection, Session, publish

log = logging.getLogger(__package__)

Connect = Callable[[], Connection]
_NAMES: Final = frozenset({"JMSMessageID", "notificationId", "notificatId"})
_REMEMBERED: Final = 10_000
_PULLS, _ACKNOWLEDGEMENTS = 0, 1


class JmsSink:
    """Sends messages to JMS; returns when the provider or the outbox has them. For one thread at a time."""

    def __init__(self, connect: Connect, destination: Destination, options: BridgeOptions) -> None:
        self._connect = connect
        self._destination = destination
        self._options = options
        self._connection: Connection | None = None
        self._session: Session | None = None
        self._batches: Session | None = None
        self._transacted = False
        self._lock = threading.RLock()
        self._pump: OutboxPump | None = None

    def open(self) -> None:
        """Connects; an outbox, if there is one, sends from now on."""
        with self._lock:
            if self._options.outbox is None:
                self._ready()
            elif self._pump is None:
                self._pump = OutboxPump(self._options.outbox, self._connect, backoff=self._options.backoff)

    @property
    def is_ready(self) -> bool:
        return self._options.outbox is not None or (self._session is not None and not self._session.is_closed)

    @property
    def is_reached(self) -> bool:
        connection = self._connection
        return self._options.outbox is not None or (connection is not None and connection.is_up)

    def transacted(self, switch: bool) -> None:
        """Sets whether sent messages take effect only at `commit`; opens a new session."""
        with self._lock:
            if switch is not self._transacted:
                self._transacted = switch
                self._lose()

    def send(self, messages: Sequence[JmsMessage]) -> None:
        """Sends messages in order. Several go in one transaction, all or none; an outbox takes each by itself. Raises
        MessageRefusedError, ResourceLimitError: the provider refuses one of them, or cannot take it now;
        TransportError: the provider failed; the messages may have been sent."""
        with self._lock:
            outbox = self._options.outbox
            if outbox is not None:
                for message in messages:
                    outbox.put(message, self._to(message))
                if self._pump is not None:
                    self._pump.wake()
                return
            several = len(messages) > 1 and not self._transacted
            try:
                session = self._batched() if several else self._ready()
                for message in messages:
                    publish(session, self._to(message), message)
                if several:
                    session.commit()
            except (MessageRefusedError, ResourceLimitError):
                if several:
                    self._lose()
                raise
            except (TransportError, IllegalStateError) as error:
                self._lose()
                raise error if isinstance(error, TransportError) else TransportError(str(error)) from error

    def _to(self, message: JmsMessage) -> Destination:
        return (message.destination if self._options.mapper is not None else None) or self._destination

    def commit(self) -> None:
        with self._lock:
            if self._session is None:
                raise TransportError("the connection was lost, and with it the transaction")
            try:
                self._session.commit()
            except (TransportError, IllegalStateError) as error:
                self._lose()
                raise TransportError(str(error)) from error

    def rollback(self) -> None:
        with self._lock:
            self._lose()

    def _ready(self) -> Session:
        if self._session is None or self._session.is_closed:
            self._lose()
            self._connection = self._connect()
            self._session = self._connection.session(transacted=self._transacted)
        return self._session

    def _batched(self) -> Session:
        """A second session, for transactions of one batch each."""
        self._ready()
        if self._batches is None and self._connection is not None:
            self._batches = self._connection.session(transacted=True)
        if self._batches is None:
            raise TransportError("the connection was lost")
        return self._batches

    def _lose(self) -> None:
        connection, self._connection, self._session, self._batches = self._connection, None, None, None
        if connection is not None:
            try:
                connection.close()
            except MtosiError as error:
                log.debug("closing a lost connection: %s: %s", type(error).__name__, error)

    def close(self) -> None:
        if self._pump is not None:
            self._pump.close()
        with self._lock:
            self._lose()


class Identities:
    """Makes ids of events, so that an inbox delivers each event once.

    An event that names itself gets an id from its content: whenever it comes again, it is the same event. The id of any
    other event also counts how many of the last 10,000 taken events had equal content: two equal ones are two events.
    An event that was not taken is not counted, so it gets the same id when it comes again. A random text goes into
    these ids, so they differ from those of an earlier process.
    """

    def __init__(self) -> None:
        self._own = random_id()
        self._taken: OrderedDict[bytes, int] = OrderedDict()
        self._given: list[bytes] = []

    def of(self, events: Sequence[StructuredEvent]) -> list[str]:
        """Makes the ids of events that are not taken yet."""
        before: Counter[bytes] = Counter()
        found = []
        self._given = []
        for event in events:
            digest, is_named = self._digest(event)
            if not is_named:
                self._given.append(digest)
                count = self._taken.get(digest, 0) + before[digest]
                before[digest] += 1
                digest = sha256(digest + str(count).encode()).digest()
            found.append(str(UUID(bytes=digest[:16], version=5)))
        return found

    def take(self) -> None:
        """Marks the events of the last `of` as taken."""
        for digest in self._given:
            self._taken[digest] = self._taken.pop(digest, 0) + 1
            if len(self._taken) > _REMEMBERED:
                self._taken.popitem(last=False)
        self._given = []

    def _digest(self, event: StructuredEvent) -> tuple[bytes, bool]:
        header = [(one.name, one.value.value) for one in event.variable_header if one.name != SEQUENCE_NUMBER]
        data = [(one.name, one.value.value) for one in event.filterable_data]
        is_named = any(value and name in _NAMES for name, value in data)
        fixed = "" if is_named else self._own, event.domain_name, event.type_name, event.event_name
        content = repr((fixed, header, data, event.remainder_of_body.value))
        return sha256(content.encode("utf-8", "surrogatepass")).digest(), is_named


class ChannelToJms(Keeper[EventSource]):
    """Takes events of a channel, pushed or pulled, and gives them to JMS."""

    def __init__(
        self, channel: Channel, style: FlowStyle, grouping: Grouping, sink: JmsSink, options: BridgeOptions
    ) -> None:
        self._style = style
        self._grouping = grouping
        self._sink = sink
        self._identities = Identities()
        self._per_transaction = 0
        self._lifetime = 0.0
        self._uncommitted: list[tuple[Sequence[StructuredEvent], Sequence[JmsMessage]]] = []
        self._timer: threading.Timer | None = None
        self._taking = threading.RLock()
        self._losing: set[str] = set()
        self._unsent_losses: deque[Sequence[JmsMessage]] = deque()
        super().__init__(channel, options)

    def _proxy(self) -> EventSource:
        options = self._options
        end = self._channel.event_source(
            self._style, self._grouping, qos=options.qos or None, constraint=options.constraint
        )
        acknowledges = end.acknowledges
        if is_acknowledged(options.qos) and not acknowledges:
            end.disconnect()
            raise UnsupportedQoS("the channel does not have the interfaces of acknowledgement", ["DeliveryReliability"])
        self._duplicates = Duplicates()
        # Pulls and acknowledgements have separate counts; without acknowledgement retries have no limit.
        self._retries = (self._retries_at(end), self._retries_at(end)) if acknowledges else None
        return end

    def _connect_end(self, end: EventSource, on_lost: OnDisconnected) -> None:
        end.connect(self.take if self._style is FlowStyle.PUSH else None, on_lost, keep_refused=True)

    def _restart(self) -> None:
        for one in self._retries or ():
            one.reset()

    def _open(self) -> None:
        self._sink.open()

    @property
    def is_ready(self) -> bool:
        return self._sink.is_ready

    @property
    def is_reached(self) -> bool:
        return self._sink.is_reached

    def _finish(self) -> None:
        with self._taking:  # events that JMS has get acknowledged first
            pass

    def close(self) -> None:
        super().close()
        self._cancel()
        self._report_losses()
        if self._uncommitted:
            try:
                self._commit()
            except TransportError as error:
                log.warning(
                    "%d events were taken and not committed: %s: %s",
                    len(self._uncommitted),
                    type(error).__name__,
                    error,
                )
        self._sink.close()

    def report_loss(self, loss: EventLoss) -> None:
        super().report_loss(loss)
        with self._changed:
            (self._losing.discard if loss.over else self._losing.add)(loss.source)
            if self._options.loss_mapper is not None and not (loss.over and self._losing):
                made = self._options.loss_mapper(loss)
                self._unsent_losses.append([_with_id(one, random_id()) for one in made])
                self._has_unsent = True
                self._changed.notify_all()

    def _send_losses(self, end: float) -> None:
        """Sends unsent losses to JMS, with retries until a time. The caller holds `_taking`. Raises TransportError: JMS
        cannot be reached now."""
        while self._unsent_losses:
            try:
                self._insist(partial(self._send_once, (), self._unsent_losses[0]), end)
            except MessageRefusedError as error:
                log.error("JMS is not told of a loss: %s: %s", type(error).__name__, error)  # noqa: TRY400 - the text says it
            self._unsent_losses.popleft()

    def _report_losses(self) -> None:
        self._has_unsent = False
        if not self._unsent_losses or not self._taking.acquire(blocking=False):
            return  # the thread that takes events now sends it, or the next step does
        try:
            self._send_losses(time.monotonic())
        except TransportError as error:
            log.warning("JMS is not told of a loss yet: %s: %s", type(error).__name__, error)
        finally:
            self._taking.release()

    def _has_work(self) -> bool:
        return self._style is FlowStyle.PULL

    def _work(self) -> None:
        most = self._options.batch if self._grouping is Grouping.SEQUENCE_EVENT else 1
        try:
            events = self._end.pull(most, timeout=self._options.pacing)
        except (TransportError, IllegalStateError) as error:
            self._look(str(error))
            self._may_retry(_PULLS, f"nothing can be pulled: {error}")
            return
        if self._retries is not None:
            self._retries[_PULLS].reset()
        failures = 0
        while events and not self._over:  # pulled events are gone from the channel: it does not give them again
            try:
                self.take(events)
                return
            except TransportError as error:
                failures += 1
                log.warning("JMS does not take an event: %s: %s", type(error).__name__, error)
                self._pause(self._options.backoff.seconds(failures))

    def _may_retry(self, what: int, reason: str) -> bool:
        """Waits until the next retry; False if there are no more."""
        if self._lost is not None or self._over:
            return False
        if self._retries is None:
            self._pause(self._options.backoff.seconds(1))
            return True
        now = time.monotonic()
        again = self._retries[what].after_failure(now)
        if again is None:
            self._fail(reason)
            return False
        self._pause(again - now)
        return not self._over

    def take(self, events: Sequence[StructuredEvent]) -> None:
        """Returns when JMS has the events. Raises TransportError: after `patience` JMS does not have them; the channel
        must deliver them again."""
        number = number_of(events) if self._end.acknowledges else None
        with self._taking:
            self._send_losses(time.monotonic() + self._options.patience)
            if self._duplicates.is_new(number):
                named = zip(events, self._identities.of(events), strict=True)
                made = [(event, one) for event, identifier in named for one in self._messages(event, identifier)]
                self._send(events, made)
                self._duplicates.store(number)
                self._identities.take()
                self.forwarded += len(made)
            if number is not None and not self._per_transaction:
                self._acknowledge([number])

    def _acknowledge(self, numbers: Sequence[int]) -> None:
        """Acknowledges events. Retries for pulled events; pushed ones come again and are recognised."""
        while True:
            try:
                self._end.acknowledge(numbers)
            except (TransportError, IllegalStateError) as error:
                log.info("an acknowledgement was lost: %s: %s", type(error).__name__, error)
                if self._style is FlowStyle.PUSH or not self._may_retry(
                    _ACKNOWLEDGEMENTS, f"not acknowledged: {error}"
                ):
                    return
            else:
                if self._retries is not None:
                    self._retries[_ACKNOWLEDGEMENTS].reset()
                return

    def _messages(self, event: StructuredEvent, identifier: str) -> Sequence[JmsMessage]:
        """The messages for an event, each with the id that identifies copies."""
        try:
            if isinstance(event, RefusedEvent):
                raise event.error
            found = self._options.messages_of(event)
        except (ConfigError, EncodeError, EventError) as error:
            self._options.park(event, error)
            return ()
        ids = (f"{identifier}.{number}" if number else identifier for number in range(len(found)))
        return [_with_id(one, made) for one, made in zip(found, ids, strict=True)]

    def _send(self, events: Sequence[StructuredEvent], made: Sequence[tuple[StructuredEvent, JmsMessage]]) -> None:
        end = time.monotonic() + self._options.patience
        if self._per_transaction:
            messages = [message for _, message in made]
            try:
                self._insist(partial(self._send_once, events, messages), end)
            except MessageRefusedError as error:
                for event in events:
                    self._options.park(event, error)
            return
        for at in range(0, len(made), self._options.batch):
            some = made[at : at + self._options.batch]
            try:
                self._insist(partial(self._sink.send, [message for _, message in some]), end)
            except MessageRefusedError:
                self._send_singly(some, end)

    def _send_singly(self, made: Sequence[tuple[StructuredEvent, JmsMessage]], end: float) -> None:
        """Sends messages one by one, after a refusal; refused ones are reported as parked."""
        for event, message in made:
            try:
                self._insist(partial(self._sink.send, [message]), end)
            except MessageRefusedError as error:
                self._options.park(event, error)

    def _insist(self, send: Callable[[], None], end: float) -> None:
        failures = 0
        while True:
            try:
                send()
                return
            except MessageRefusedError:
                raise
            except SpoolError as error:
                failure = TransportError(str(error))
            except TransportError as error:
                failure = error
            failures += 1
            pause = self._options.backoff.seconds(failures)
            if time.monotonic() + pause > end or self._over:
                raise failure
            self._pause(pause)

    def _send_once(self, events: Sequence[StructuredEvent], messages: Sequence[JmsMessage]) -> None:
        if not self._per_transaction:
            self._sink.send(messages)
            return
        if not self._sink.is_ready:  # the connection is lost, with everything uncommitted
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
            self._uncommitted = self._uncommitted[:-1]  # the last one is delivered again, or its sender retries it
            raise
        numbers = [number_of(events) for events, _ in self._uncommitted]
        self._uncommitted = []
        if self._end.acknowledges:
            self._acknowledge([number for number in numbers if number is not None])

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        """Ends an expired transaction: rolls it back and sends its messages in a transaction of their own."""
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
                log.warning("a transaction is tried again: %s: %s", type(error).__name__, error)
                self._uncommitted = waiting
                self._arm()

    @property
    def can_roll_back(self) -> bool:
        """Whether a rollback is possible: messages go to JMS directly; an outbox would keep them."""
        return self._options.outbox is None

    @property
    def has_transaction(self) -> bool:
        with self._taking:
            return bool(self._uncommitted)

    def enable(self, events: int, timeout: float) -> None:
        with self._taking:
            self._sink.transacted(True)
            self._per_transaction, self._lifetime = events, timeout

    def disable(self) -> None:
        with self._taking:
            self._cancel()
            if self._uncommitted:
                self._commit()
            self._per_transaction = 0
            self._sink.transacted(False)


def _with_id(message: JmsMessage, identifier: str) -> JmsMessage:
    """The message with the id that identifies copies, unless it has one already."""
    return message if DUPLICATE_ID in message.properties else message.with_property(DUPLICATE_ID, identifier)
