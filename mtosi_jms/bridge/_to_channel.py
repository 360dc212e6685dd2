"""Forwards messages of JMS to a channel."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from mtosi_jms.bridge._keeper import BridgeOptions, Keeper
from mtosi_jms.bridge.endpoints import Channel, EventSink, FlowStyle, Grouping, OnDisconnected
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.bridge.omg import event_of
from mtosi_jms.bridge.qos import Resender, is_acknowledged, number_of
from mtosi_jms.errors import EventError, IllegalStateError, MtosiError, TransportError
from mtosi_jms.jms import Destination
from mtosi_jms.transport import Connection, Consumer, Delivery, Session

log = logging.getLogger(__package__)

Connect = Callable[[], Connection]


class JmsToChannel(Keeper[EventSink]):
    """Receives messages from JMS, by a listener or by polling, and gives their events to a channel by push or pull.

    A message is acknowledged when the channel has its event: when the channel acknowledges it, if its quality of
    service has acknowledgement; else when `push` returns, or, if the channel pulls, when it pulls again.
    """

    def __init__(
        self,
        connect: Connect,
        destination: Destination,
        receives: FlowStyle,
        channel: Channel,
        sends: FlowStyle,
        grouping: Grouping,
        options: BridgeOptions,
    ) -> None:
        self._connect = connect
        self._destination = destination
        self._receives = receives
        self._sends = sends
        self._grouping = grouping
        self._connection: Connection | None = None
        self._session: Session | None = None
        self._consumer: Consumer | None = None
        self._pulling = threading.Lock()
        self._given: list[Delivery] = []
        self._unsettled: dict[int, list[Delivery]] = {}
        self._per_transaction = 0
        self._in_transaction = 0
        super().__init__(channel, options)

    def _proxy(self) -> EventSink:
        end = self._channel.event_sink(self._sends, self._grouping, qos=self._options.qos or None)
        self._resender = Resender(self._retries_at(end)) if is_acknowledged(end.qos) else None
        self._sent: object = None
        return end

    def _connect_end(self, end: EventSink, on_lost: OnDisconnected) -> None:
        resender = self._resender
        self._take_back()
        end.connect(
            None if self._sends is FlowStyle.PUSH else self._supply,
            on_lost,
            None if resender is None else partial(self._on_acknowledged, resender),
        )

    def _take_back(self) -> None:
        """Has JMS redeliver what was given over an earlier connection and not confirmed."""
        if (self._given or self._unsettled) and self._session is not None and self.is_ready:
            if self._per_transaction:
                self._session.rollback()
            else:
                self._session.recover()
        self._given, self._unsettled, self._in_transaction = [], {}, 0

    def _restart(self) -> None:
        if self._resender is not None:
            self._resender.restart(time.monotonic())

    def _open(self) -> None:
        with self._changed:
            self._ready()

    def start(self) -> None:
        super().start()
        with self._changed:
            if self._connection is not None:
                self._connection.start()

    def _ready(self) -> None:
        if self._consumer is None or self._session is None or self._session.is_closed:
            self._drop()
            self._connection = connection = self._connect()
            self._session = connection.session(transacted=self._per_transaction > 0)
            self._consumer = self._session.consumer(
                self._destination, self._options.selector or None, durable=self._options.durable
            )
            if self._receives is FlowStyle.PUSH:
                self._consumer.listen(self._on_message, self._on_error)
            if self._running:
                connection.start()

    def _drop(self) -> None:
        connection, self._connection, self._session, self._consumer = self._connection, None, None, None
        self._given = []
        if self._unsettled and self._resender is not None:
            self._resender.forget()  # they come again
        self._unsettled = {}
        self._in_transaction = 0
        if connection is not None:
            try:
                connection.close()
            except MtosiError as error:
                log.debug("closing a lost connection: %s: %s", type(error).__name__, error)

    def _hold(self) -> None:
        connection = self._connection
        if connection is not None:
            connection.stop()

    def _hang_up(self) -> None:
        connection = self._connection
        if connection is not None:
            connection.close()

    @property
    def is_ready(self) -> bool:
        """Whether messages can come from JMS."""
        return self._session is not None and not self._session.is_closed

    @property
    def is_reached(self) -> bool:
        connection = self._connection
        return connection is not None and connection.is_up

    def _has_work(self) -> bool:
        return not self.is_ready or (self._receives is FlowStyle.PULL and self._sends is FlowStyle.PUSH)

    def _work(self) -> None:
        if self.is_ready:
            self._forward()
        else:
            self._until_done(self._open, "JMS")

    def _events(self, deliveries: Sequence[Delivery]) -> tuple[list[StructuredEvent], list[str | None]]:
        """The events of messages, and their ids. Messages without an event are parked, expired ones are left out."""
        found, ids = [], []
        telemetry = self._connection.telemetry if self._connection is not None else None
        for one in deliveries:
            if telemetry is not None:
                telemetry.receive(one.message, self._destination, time.time_ns())
            try:
                event = event_of(one.message, self._options.rules)
            except EventError as error:
                self._options.park(one.message, error)
            else:
                if event is not None:
                    found.append(event)
                    ids.append(one.message.message_id)
        return found, ids

    # The bridge pushes.

    def _forward(self) -> None:
        most = self._options.batch if self._grouping is Grouping.SEQUENCE_EVENT else 1
        try:
            deliveries = self._received(most, self._options.pacing)
        except (TransportError, IllegalStateError) as error:
            log.info("nothing can be received: %s: %s", type(error).__name__, error)
            with self._changed:
                if not self._over and self._running:
                    self._drop()
            return
        if deliveries and self._push(*self._events(deliveries)):
            self._acknowledge(deliveries)

    def _received(self, most: int, timeout: float | None) -> list[Delivery]:
        consumer = self._consumer
        found: list[Delivery] = []
        while consumer is not None and len(found) < most:
            delivery = consumer.receive(0 if found else timeout)
            if delivery is None:
                break
            found.append(delivery)
        return found

    def _push(self, events: Sequence[StructuredEvent], ids: Sequence[str | None]) -> bool:
        """Returns True when the channel has the events; False if the bridge was stopped before: they come again."""
        key = tuple(ids) if all(ids) else object()
        failures = 0
        while events:
            ends = self._may_push()
            if ends is None:
                return False
            sink, resender = ends
            try:
                if resender is None:
                    sink.push(events)
                elif given := self._next(resender, events, key):
                    sink.push(given)
            except EventError as error:
                if len(events) > 1:  # one of several
                    return all(self._push([event], [id_]) for event, id_ in zip(events, ids, strict=True))
                self._options.park(events[0], error)
                return True
            except (TransportError, IllegalStateError) as error:
                failures += 1
                log.info("%s takes no event: %s: %s", self._channel.name, type(error).__name__, error)
                self._look(str(error))
                if resender is None:
                    self._pause(self._options.backoff.seconds(failures))
            else:
                if resender is None:
                    break
            if resender is not None and self._is_acknowledged(resender):
                break
        self.forwarded += len(events)
        return True

    def _may_push(self) -> tuple[EventSink, Resender | None] | None:
        """Waits until a push is possible; returns sink and resender, None at the end or if a listener must return."""
        mine = threading.current_thread() is self._keeper
        while True:
            if mine and self._lost is not None:
                self._connect_again()
            with self._changed:
                if self._over or not (self._running or mine):
                    return None
                if self._running and self._lost is None and not self._failed:
                    return self._end, self._resender
                self._changed.wait()

    def _next(
        self, resender: Resender, events: Sequence[StructuredEvent], key: object
    ) -> Sequence[StructuredEvent] | None:
        """The events to push: new ones, which get a number, or numbered ones again; None if there are none now."""
        with self._changed:
            if key != self._sent:
                self._sent = key
                resender.forget()
                return resender.send(events, time.monotonic())
        return self._due(resender)

    def _due(self, resender: Resender) -> Sequence[StructuredEvent] | None:
        with self._changed:
            found = resender.due(time.monotonic())
        if resender.is_stopped:
            self._fail(f"not acknowledged after {resender.limits.most} retries")
        return found

    def _is_acknowledged(self, resender: Resender) -> bool:
        """Waits for the acknowledgement, or until a resend is due or the bridge stops."""
        with self._changed:
            at = resender.due_at
            if at is not None and not self._failed:
                self._changed.wait_for(
                    lambda: not resender or not self._running or self._lost is not None, at - time.monotonic()
                )
            return not resender

    def _on_acknowledged(self, resender: Resender, numbers: Sequence[int]) -> None:
        with self._changed:
            resender.acknowledge(numbers)
            self._changed.notify_all()
        if self._sends is FlowStyle.PULL:
            with self._pulling:
                for number in numbers:
                    self._taken(self._unsettled.pop(number, ()))

    def _acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        try:
            for one in deliveries:
                one.acknowledge()
        except (TransportError, IllegalStateError) as error:  # JMS redelivers them, with the same ids
            log.info("an acknowledgement was lost: %s: %s", type(error).__name__, error)

    def _on_message(self, delivery: Delivery) -> None:
        if not self._push(*self._events([delivery])):
            raise IllegalStateError("the bridge was stopped: the message comes again")
        delivery.acknowledge()

    def _on_error(self, error: BaseException, delivery: Delivery | None) -> None:
        if self._running:
            log.info("the listener: %s: %s", type(error).__name__, error)
        with self._changed:
            self._changed.notify_all()

    # The channel pulls.

    def _supply(self, most: int, wait: bool) -> Sequence[StructuredEvent]:
        with self._pulling:
            try:
                resender = self._resender
                if resender is None:  # the channel pulls again, so it has the previous events
                    given, self._given = self._given, []
                    self._taken(given)
                if not self._running or self._failed:
                    return ()
                if resender is not None and ((again := self._due(resender)) or len(resender) >= self._options.batch):
                    return again or ()
                deliveries = self._received(max(1, most), self._options.pacing if wait else 0)
            except (TransportError, IllegalStateError) as error:
                with self._changed:
                    if not self._over and self._running:
                        self._drop()
                        self._changed.notify_all()
                raise TransportError(f"nothing can be received: {error}") from error
            events, _ = self._events(deliveries)
            self.forwarded += len(events)
            if resender is None:
                self._given = deliveries
                return events
            if not events:
                self._taken(deliveries)
                return ()
            with self._changed:
                sent = resender.send(events, time.monotonic())
                self._unsettled[number_of(sent) or 0] = deliveries
            return sent

    def _taken(self, given: Sequence[Delivery]) -> None:
        if not self._per_transaction:
            self._acknowledge(given)
            return
        self._in_transaction += 1 if given else 0
        if self._session is not None and self._in_transaction >= self._per_transaction and not self._unsettled:
            self._session.commit()
            self._in_transaction = 0

    @property
    def has_transaction(self) -> bool:
        with self._pulling:
            return self._per_transaction > 0 and (self._in_transaction > 0 or bool(self._given or self._unsettled))

    def enable(self, events: int, timeout: float) -> None:
        with self._pulling, self._changed:
            if self._session is not None and self._in_transaction:
                self._session.commit()
            self._per_transaction = events
            self._drop()
            if self._joined:
                self._ready()

    def disable(self) -> None:
        self.enable(0, 0)
