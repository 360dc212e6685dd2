"""How bridges work: what all bridges of a factory share."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from mtosi_jms.bridge.endpoints import QoS
from mtosi_jms.bridge.events import Any, StructuredEvent
from mtosi_jms.bridge.omg import BridgeRules, message_of
from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.spool import Outbox
from mtosi_jms.transport import Backoff

log = logging.getLogger(__package__)

LOSS_OCCURRED: Final = "EventLossOccurred"
LOSS_CLEARED: Final = "EventLossCleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLoss:
    """Events may have been lost from now on, or no more are.

    Attributes:
        source: who lost them: the same one tells the end.
        over: whether it is the end.
        reason: for people.
        time: when it began or ended; None: now.
        notification_id: of the first event that was lost; empty where nobody says.
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

NO_QOS: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeOptions:
    """How bridges work.

    Attributes:
        rules: the switches of the mapping.
        qos: quality of service of the channel's proxies; checked before anything is sent, and read back.
        constraint: in Extended TCL, which events come out of the channel (`mtosi_jms.bridge.filters.to_etcl` makes one
            of a selector); empty: all.
        selector: which messages come from JMS; empty: all.
        durable: name of the durable subscription that messages of a topic come from; None: none.
        batch: how many events go in a sequence at most.
        pacing: seconds between two rounds where the bridge pulls and nothing waited: PacingInterval (000-B5).
        patience: seconds for which an event that JMS does not take now is tried again, before the channel is told; a
            channel gives up a consumer that fails too often, with all that it keeps for it.
        watch: seconds after which a channel that says nothing is asked whether it is there.
        outbox: takes what goes to JMS, and sends it in its own time; None: the provider itself must have it.
        mapper: what an event becomes, in order; None: the one message of the OMG's mapping. A message with a
            destination goes there.
        loss_mapper: what a loss becomes that JMS is told of, between the events before it and those behind it; None:
            nothing.
        on_parked: told of an event or message that cannot become the other, with the error; the others go on. None: the
            log is.
        on_failed: told, with the reason, that all retries failed where the channel has acknowledgement: nothing is
            delivered until the bridge is stopped and started (000-A15). None: the log is.
        on_loss: told `EventLossOccurred` when a connection to the channel is lost, and `EventLossCleared` when there is
            one again, with the reason. None: the log is.
        backoff: waiting before what failed is tried again.
        fifo_within_priority: whether the channel keeps the order of events of one priority (000-Q7).

    Raises:
        ConfigError: a number out of its range.
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
    outbox: Outbox | None = None
    mapper: Mapper | None = None
    loss_mapper: LossMapper | None = None
    on_parked: OnParked | None = None
    on_failed: OnFailed | None = None
    on_loss: OnLoss | None = None
    backoff: Backoff = field(default_factory=lambda: Backoff(0.1, 5.0, 0.1))
    fifo_within_priority: bool = False

    def __post_init__(self) -> None:
        if self.batch < 1 or min(self.pacing, self.watch) <= 0 or self.patience < 0:
            raise ConfigError("a bridge: batch is at least 1, pacing and watch above 0, patience not below 0")

    def messages_of(self, event: StructuredEvent) -> Sequence[JmsMessage]:
        """What an event becomes; nothing where it has expired."""
        if self.mapper is not None:
            return self.mapper(event)
        message = message_of(event, self.rules)
        return () if message is None else (message,)

    def park(self, what: StructuredEvent | JmsMessage, error: MtosiError) -> None:
        """Tells of what cannot go on."""
        if self.on_parked is not None:
            self.on_parked(what, error)
        else:
            log.error("not forwarded: %s: %s", type(error).__name__, error)

    def fail(self, reason: str) -> None:
        """Tells that delivery has stopped."""
        if self.on_failed is not None:
            self.on_failed(reason)
        else:
            log.error("delivery has stopped, until the bridge is stopped and started: %s", reason)

    def lose(self, what: str, reason: str) -> None:
        """Tells of a lost connection to the channel, or of its end."""
        if self.on_loss is not None:
            self.on_loss(what, reason)
        else:
            log.warning("%s: %s", what, reason)
