"""The options that all bridges of a factory share."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from mtosi_jms.bridge.endpoints import Channel, QoS
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.bridge.omg import BridgeRules, message_of
from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.spool import OutgoingJournal
from mtosi_jms.transport import Backoff

log = logging.getLogger(__package__)

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
