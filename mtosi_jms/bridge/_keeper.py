"""What both directions of a bridge share: options, and who connects to the channel, holds delivery, reconnects."""

from __future__ import annotations

import datetime as dt
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

from mtosi_jms.bridge.endpoints import Channel, EventSink, EventSource, OnDisconnected, QoS
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.bridge.omg import BridgeRules, message_of
from mtosi_jms.bridge.qos import Retries, retries_of
from mtosi_jms.errors import ConfigError, IllegalStateError, MtosiError, TransportError
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.spool import OutgoingJournal
from mtosi_jms.transport import Backoff

log = logging.getLogger(__package__)

_CHANNEL: Final = "channel"
End = TypeVar("End", EventSource, EventSink)


LOSS_OCCURRED: Final = "EventLossOccurred"
LOSS_CLEARED: Final = "EventLossCleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLoss:
    """The start or the end of a loss of events.

    Attributes:
        source: who lost events; the start and the end have the same source.
        over: whether this is the end.
        reason: the reason, for people.
        time: when the loss began or ended; None: now.
        notification_id: id of the first lost event; empty if unknown.
    """

    source: str
    over: bool
    reason: str
    time: dt.datetime | None = None
    notification_id: str = ""

    @property
    def what(self) -> str:
        """`EventLossOccurred` or `EventLossCleared`."""
        return LOSS_CLEARED if self.over else LOSS_OCCURRED


OnParked: TypeAlias = Callable[[StructuredEvent | JmsMessage, MtosiError], object]
OnFailed: TypeAlias = Callable[[str], object]
OnLoss: TypeAlias = Callable[[str, str], object]
Mapper: TypeAlias = Callable[[StructuredEvent], Sequence[JmsMessage]]
LossMapper: TypeAlias = Callable[[EventLoss], Sequence[JmsMessage]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeOptions:
    """Options of bridges.

    Attributes:
        rules: the switches of the mapping.
        qos: quality of service of the channel's proxies; checked before anything is sent, and read back.
        constraint: filter of the events from the channel, in Extended TCL (`mtosi_jms.bridge.filters.to_etcl` makes one
            from a selector); empty: all.
        selector: filter of the messages from JMS; empty: all.
        durable: name of the durable subscription of a topic; None: the subscription is not durable.
        batch: most events in a sequence.
        pacing: seconds between two pulls if the bridge pulls and no event waited (PacingInterval), and the longest wait
            for a message from JMS.
        patience: seconds of retries for an event that JMS does not take, before the channel gets an error. A channel
            drops a consumer that fails too often, with all events that it keeps for it.
        watch: seconds of silence after which the bridge checks whether the channel is there.
        outbox: takes the messages to JMS and sends them later; None: the bridge sends them to the provider itself.
        mapper: makes the messages for an event, in order; None: the one message of the OMG's mapping. A message with a
            destination goes there.
        loss_mapper: makes the messages that report a loss to JMS, sent between the events before and after it; None:
            JMS gets none.
        on_parked: called with an event or message that cannot be forwarded, and the error; the others go on. None: it
            is logged.
        on_failed: called with the reason when all retries failed and the channel has acknowledgement: nothing is
            delivered until the bridge is stopped and started (000-A15). None: it is logged.
        on_loss: called with `EventLossOccurred` when a connection to the channel is lost, and with `EventLossCleared`
            when it is back, each with the reason. None: it is logged.
        backoff: waiting times between retries.
        find_channel: looks up the channel again when it does not answer; None: it is never looked up again.
        fifo_within_priority: whether the channel keeps the order of events of one priority (000-Q7).

    Raises:
        ConfigError: a number is out of its range.
    """

    rules: BridgeRules = field(default_factory=BridgeRules)
    qos: QoS = field(default_factory=dict)
    constraint: str = ""
    selector: str = ""
    durable: str | None = None
    batch: int = 50
    pacing: float = 0.5
    patience: float = 30.0
    watch: float = 5.0
    outbox: OutgoingJournal | None = None
    mapper: Mapper | None = None
    loss_mapper: LossMapper | None = None
    on_parked: OnParked | None = None
    on_failed: OnFailed | None = None
    on_loss: OnLoss | None = None
    backoff: Backoff = field(default_factory=lambda: Backoff(0.1, 5.0, 0.1))
    find_channel: Callable[[], Channel] | None = None
    fifo_within_priority: bool = False

    def __post_init__(self) -> None:
        if self.batch < 1 or min(self.pacing, self.watch) <= 0 or self.patience < 0:
            raise ConfigError("a bridge: batch is at least 1, pacing and watch above 0, patience not below 0")

    def messages_of(self, event: StructuredEvent) -> Sequence[JmsMessage]:
        """The messages for an event; none if it has expired."""
        if self.mapper is not None:
            return self.mapper(event)
        message = message_of(event, self.rules)
        return () if message is None else (message,)

    def park(self, what: StructuredEvent | JmsMessage, error: MtosiError) -> None:
        if self.on_parked is not None:
            self.on_parked(what, error)
        else:
            log.error("not forwarded: %s: %s", type(error).__name__, error)

    def fail(self, reason: str) -> None:
        """Reports that delivery has stopped."""
        if self.on_failed is not None:
            self.on_failed(reason)
        else:
            log.error("delivery has stopped, until the bridge is stopped and started: %s", reason)

    def lose(self, what: str, reason: str) -> None:
        """Reports a lost connection to the channel, or that it is back."""
        if self.on_loss is not None:
            self.on_loss(what, reason)
        else:
            log.warning("%s: %s", what, reason)


class Keeper(ABC, Generic[End]):
    """One direction of a bridge. Its own thread does the work and keeps the connection to the channel. `forwarded`:
    number of messages that JMS got, or of events that the channel got."""

    def __init__(self, channel: Channel, options: BridgeOptions) -> None:
        self._channel = channel
        self._options = options
        self._changed = threading.Condition()
        self._running = self._over = self._joined = False
        self._lost: str | None = None
        self._failed = False
        self._has_unsent = False
        self._keeper: threading.Thread | None = None
        self.forwarded = 0
        self._end: End = self._new_end()

    @abstractmethod
    def _proxy(self) -> End: ...

    @abstractmethod
    def _connect_end(self, end: End, on_lost: OnDisconnected) -> None: ...

    @abstractmethod
    def _open(self) -> None: ...

    @abstractmethod
    def _has_work(self) -> bool:
        """Whether `_work` has something to do while the bridge runs and the channel is connected."""

    @abstractmethod
    def _work(self) -> None:
        """Does one step of the thread's work."""

    def _report_losses(self) -> None:
        """Reports losses that the other side does not know yet; setting `_has_unsent` causes a call soon."""

    def report_loss(self, loss: EventLoss) -> None:
        """Reports a loss."""
        self._options.lose(loss.what, loss.reason)

    def _restart(self) -> None:
        """Resets the count of retries."""

    def _hold(self) -> None:
        """Stops delivery from JMS, before the channel is suspended."""

    def _finish(self) -> None:
        """Waits for forwarding in progress, before the channel is disconnected."""

    def _hang_up(self) -> None:
        """Ends calls that wait for JMS, before `close` waits for the thread."""

    @property
    @abstractmethod
    def is_ready(self) -> bool:
        """Whether JMS is connected, or the connection is being made again by its transport."""

    @property
    @abstractmethod
    def is_reached(self) -> bool: ...

    def start(self) -> None:
        with self._changed:
            self._open()
            if not self._joined:
                self._join()
            elif self._lost is None:
                self._end.resume()
            self._restart()
            self._failed = False
            self._running = True
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep, name="bridge-keeper", daemon=True)
                self._keeper.start()
            self._changed.notify_all()

    def _join(self) -> None:
        self._connect_end(self._end, partial(self._on_lost, self._end))
        self._joined = True

    def stop(self) -> None:
        with self._changed:
            self._running = False
            self._changed.notify_all()
            is_lost = self._lost is not None
        self._hold()
        if not is_lost:
            self._end.suspend()

    def close(self) -> None:
        """Closes both connections; the next consumer gets again what is not acknowledged."""
        with self._changed:
            self._over, self._running = True, False
            self._changed.notify_all()
        self._finish()
        self._end.disconnect()
        self._hang_up()
        keeper = self._keeper
        if keeper is not None and keeper is not threading.current_thread():  # a callback for failures may call this
            keeper.join()
        self._end.disconnect()  # the proxy that was made meanwhile

    @property
    def is_active(self) -> bool:
        """Whether both sides are connected, and not stopped."""
        there = self._lost is None and not self._failed and self.is_ready and self.is_reached
        return self._running and there and self._end.is_connected()

    def _keep(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._is_awaited, self._options.watch)
                if self._over:
                    return
                works = self._works()
            self._report_losses()
            if self._lost is not None:
                self._connect_again()
            elif works:
                self._work()
            else:
                self._look(f"{self._channel.name} does not know the bridge any more")

    def _is_awaited(self) -> bool:
        return self._over or self._lost is not None or self._has_unsent or self._works()

    def _works(self) -> bool:
        return self._running and not self._failed and self._has_work()

    def _on_lost(self, end: End, reason: str) -> None:
        with self._changed:
            if self._over or self._lost is not None or end is not self._end:
                return
            self._lost = reason
            self._changed.notify_all()
        self.report_loss(EventLoss(source=_CHANNEL, over=False, reason=reason))

    def _fail(self, reason: str) -> None:
        """Handles the failure of all retries: delivery stops until the bridge is stopped and started (000-A15)."""
        with self._changed:
            if self._failed:
                return
            self._failed = True
            self._changed.notify_all()
        self._options.fail(f"{self._channel.name}: {reason}")

    def _look(self, reason: str) -> None:
        """Asks the channel whether the proxy still exists: its loss may go unreported."""
        end = self._end
        if self._running and self._lost is None and not end.is_connected():
            self._on_lost(end, reason)

    def _connect_again(self) -> None:
        reason = self._lost or ""
        if self._until_done(self._join_again, self._channel.name):
            self.report_loss(EventLoss(source=_CHANNEL, over=True, reason=reason))

    def _join_again(self) -> None:
        if self._end.is_connected():  # the channel was only silent and kept the connection
            self._lost = None
            return
        old, self._end = self._end, self._new_end()
        old.disconnect()
        with self._changed:
            self._join()
            if not self._running:
                self._end.suspend()
            self._lost = None
            self._changed.notify_all()

    def _new_end(self) -> End:
        """A proxy of the channel. A channel that does not answer is looked up again: after its service has restarted,
        old references are invalid."""
        try:
            return self._proxy()
        except (TransportError, IllegalStateError):
            if self._options.find_channel is None:
                raise
            before, self._channel = self._channel, self._options.find_channel()
            before.close()
            return self._proxy()

    def _until_done(self, connect: Callable[[], object], where: str) -> bool:
        """Tries to connect until that works; False if the bridge ended first."""
        failures = 0
        while not self._over:
            try:
                connect()
            except MtosiError as error:
                failures += 1
                log.warning("no connection to %s: %s: %s", where, type(error).__name__, error)
                self._pause(self._options.backoff.seconds(failures))
                self._report_losses()
            else:
                return True
        return False

    def _retries_at(self, end: End) -> Retries:
        """The retries at a new proxy: how often, and when."""
        try:
            return retries_of(end.qos, self._channel.qos)
        except MtosiError:
            end.disconnect()
            raise

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._over, seconds)
