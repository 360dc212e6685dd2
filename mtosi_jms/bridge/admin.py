"""`CosBridgeAdmin`: bridges, their factory, external endpoints, and which pairs of them form a bridge (table 2-1)."""

from __future__ import annotations

import enum
import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from mtosi_jms.bridge._keeper import BridgeOptions, EventLoss
from mtosi_jms.bridge._to_channel import JmsToChannel
from mtosi_jms.bridge._to_jms import ChannelToJms, JmsSink
from mtosi_jms.bridge.endpoints import Channel, FlowStyle, Grouping
from mtosi_jms.bridge.qos import check_qos
from mtosi_jms.closing import Closeable
from mtosi_jms.errors import (
    BridgeAlreadyStarted,
    BridgeInactive,
    BridgeNotFound,
    IllegalStateError,
    InvalidExternalEndPoints,
    TransactionActive,
    TransactionAlreadyActive,
    UnsupportedTransaction,
)
from mtosi_jms.jms import Destination, Queue, Topic
from mtosi_jms.transport import Connection

__all__ = [
    "CONSISTENCY",
    "Bridge",
    "BridgeFactory",
    "BridgeStatus",
    "ExternalEndpoint",
    "ExternalEndpointErrorCode",
    "ExternalEndpointRole",
    "JMSDestination",
    "JMSDestinationType",
    "MessageType",
    "check_endpoints",
]


class ExternalEndpointRole(enum.Enum):
    """Whether events or messages come from an endpoint, or go to it."""

    SOURCE = "SOURCE"
    SINK = "SINK"


class JMSDestinationType(enum.Enum):
    """The two kinds of destinations."""

    QUEUE = "QUEUE"
    TOPIC = "TOPIC"


class MessageType(enum.Enum):
    """What an endpoint carries."""

    JMS_MESSAGE = "JMS_MESSAGE"
    STRUCTURED_EVENT = "STRUCTURED_EVENT"
    SEQUENCE_EVENT = "SEQUENCE_EVENT"


class ExternalEndpointErrorCode(enum.Enum):
    """What is wrong with an endpoint."""

    INVALID_CHANNELID = "INVALID_CHANNELID"
    INVALID_JMSDESTINATION = "INVALID_JMSDESTINATION"
    MISMATCH_ENDPOINTROLE_NOTIFSTYLE = "MISMATCH_ENDPOINTROLE_NOTIFSTYLE"


class BridgeStatus(enum.Enum):
    """Whether a bridge forwards: both of its sides are connected, and neither is stopped (000-B15, 000-X9)."""

    ACTIVE = "ACTIVE"
    INACTIVE = "INACTIVE"


@dataclass(frozen=True, slots=True)
class JMSDestination:
    """A destination of JMS. `destination_name`: its name at the provider, or in the naming context. `factory_name`:
    name of the connection factory, which the bridge factory must know."""

    destination_type: JMSDestinationType
    destination_name: str
    factory_name: str = ""

    @property
    def destination(self) -> Destination:
        made = Queue if self.destination_type is JMSDestinationType.QUEUE else Topic
        return made(self.destination_name)


@dataclass(frozen=True, slots=True)
class ExternalEndpoint:
    """One side of a bridge.

    Attributes:
        connector: a JMSDestination, or the id of a channel.
        style: who calls whom: a source of the style PUSH calls the bridge.
        type: JMS_MESSAGE goes with a JMSDestination, the others with a channel (000-B8).
    """

    role: ExternalEndpointRole
    connector: JMSDestination | int
    style: FlowStyle
    type: MessageType

    @property
    def grouping(self) -> Grouping:
        """How a channel's events travel."""
        return Grouping.SEQUENCE_EVENT if self.type is MessageType.SEQUENCE_EVENT else Grouping.STRUCTURED_EVENT


_PUSH, _PULL = FlowStyle.PUSH, FlowStyle.PULL
CONSISTENCY: Final[Mapping[tuple[str, FlowStyle, FlowStyle], bool]] = {
    ("channel to JMS", _PUSH, _PUSH): True,
    ("channel to JMS", _PULL, _PUSH): True,
    ("channel to JMS", _PUSH, _PULL): False,
    ("channel to JMS", _PULL, _PULL): False,
    ("JMS to channel", _PUSH, _PUSH): True,
    ("JMS to channel", _PUSH, _PULL): False,
    ("JMS to channel", _PULL, _PUSH): True,
    ("JMS to channel", _PULL, _PULL): True,
}
"""Table 2-1: whether a bridge supports a direction with these styles of source and sink (000-B5, 000-B6).

JMS has no sink that pulls. A JMS source that pushes to a sink that pulls would need a buffer, in which messages could
be lost. The specification leaves this to the bridge; this bridge does not support it.
"""


def check_endpoints(source: ExternalEndpoint, sink: ExternalEndpoint) -> str:
    """Checks that two endpoints can form a bridge (000-B9). Returns the direction: `channel to JMS` or `JMS to
    channel`. Raises InvalidExternalEndPoints: they cannot; it lists all problems of both."""
    found: list[tuple[str, str, str]] = []
    for role, one in ((ExternalEndpointRole.SOURCE, source), (ExternalEndpointRole.SINK, sink)):
        is_jms = one.type is MessageType.JMS_MESSAGE
        if one.role is not role:
            found.append((role.value, _MISMATCH, f"its role is {one.role.value}"))
        names_one = isinstance(one.connector, JMSDestination) and bool(one.connector.destination_name)
        if is_jms and not names_one:
            found.append((role.value, _NO_DESTINATION, "a JMS_MESSAGE goes with a JMSDestination that has a name"))
        if not is_jms and (isinstance(one.connector, bool) or not isinstance(one.connector, int)):
            found.append((role.value, _NO_CHANNEL, f"a {one.type.value} goes with the id of a channel"))
    directions = {True: "JMS to channel", False: "channel to JMS"}
    is_jms, other = (one.type is MessageType.JMS_MESSAGE for one in (source, sink))
    if is_jms is other:
        code = _NO_CHANNEL if is_jms else _NO_DESTINATION
        found.append(("SINK", code, "one side is a channel, and the other a destination of JMS"))
    elif not CONSISTENCY[directions[is_jms], source.style, sink.style]:
        found.append(("SINK", _MISMATCH, f"{directions[is_jms]}, {source.style.value} to {sink.style.value}"))
    if found:
        raise InvalidExternalEndPoints([one[:2] for one in found], [one[2] for one in found])
    return directions[is_jms]


_MISMATCH: Final = ExternalEndpointErrorCode.MISMATCH_ENDPOINTROLE_NOTIFSTYLE.value
_NO_CHANNEL: Final = ExternalEndpointErrorCode.INVALID_CHANNELID.value
_NO_DESTINATION: Final = ExternalEndpointErrorCode.INVALID_JMSDESTINATION.value


class Bridge(Closeable):
    """Forwards from one source to one sink (000-B2). A `BridgeFactory` makes it; at first it is stopped (000-B14).

    Threads may share it. It keeps no persistent state (000-T4).

    """

    def __init__(
        self,
        bridge_id: int,
        source: ExternalEndpoint,
        sink: ExternalEndpoint,
        way: ChannelToJms | JmsToChannel,
        forget: Callable[[int], object],
    ) -> None:
        self._id = bridge_id
        self._source = source
        self._sink = sink
        self._way = way
        self._forget = forget
        self._lock = threading.RLock()
        self._started = self._destroyed = False
        self._transactions = False

    @property
    def bridge_id(self) -> int:
        return self._id

    @property
    def end_point_receiver(self) -> ExternalEndpoint:
        """The source, from which the bridge receives (000-B21)."""
        return self._source

    @property
    def end_point_sender(self) -> ExternalEndpoint:
        """The sink, to which the bridge sends (000-B21)."""
        return self._sink

    @property
    def forwarded(self) -> int:
        """The number of messages that JMS got, or of events that the channel got, since the bridge was made."""
        return self._way.forwarded

    def start_bridge(self) -> None:
        """Connects both sides, or resumes them after `stop_bridge` (000-B16). Raises BridgeAlreadyStarted: it is
        started; TransportError: a side cannot be reached; IllegalStateError: it is destroyed."""
        with self._lock:
            self._check()
            if self._started:
                raise BridgeAlreadyStarted(f"bridge {self._id} is started")
            self._way.start()
            self._started = True

    def stop_bridge(self) -> None:
        """Suspends both sides: nothing is delivered until `start_bridge` (000-B17). Raises BridgeInactive: it is not
        started; IllegalStateError: it is destroyed."""
        with self._lock:
            self._check()
            if not self._started:
                raise BridgeInactive(f"bridge {self._id} is not started")
            self._started = False
            self._way.stop()

    def get_status(self) -> BridgeStatus:
        """ACTIVE if it is started and both sides are connected now (000-B15, 000-B18, 000-B19). Raises
        IllegalStateError: it is destroyed."""
        self._check()
        return BridgeStatus.ACTIVE if self._started and self._way.is_active else BridgeStatus.INACTIVE

    def destroy(self) -> None:
        """Disconnects both sides; the bridge cannot be used any longer (000-B20). May be called twice."""
        with self._lock:
            if self._destroyed:
                return
            self._destroyed = True
            self._started = False
        self._forget(self._id)
        self._way.close()

    def tell_loss(self, loss: EventLoss) -> None:
        """Reports a loss that somebody else noticed, as the bridge does its own: to `on_loss`, and to JMS as the sink.

        JMS gets the end of a loss when all that reported one have reported its end.
        """
        self._way.report_loss(loss)

    def enable_transaction(self, events: int, timeout: float) -> None:
        """Enables transactions to or from JMS, each of a number of events or sequences (000-T6).

        They are local transactions of JMS. Towards JMS, events of a rolled-back transaction are sent again in the next
        one. If the process dies, events that it took and did not commit are lost, unless the channel keeps events
        until they are acknowledged.

        Args:
            timeout: seconds after which an incomplete transaction is rolled back; 0: never.

        Raises:
            UnsupportedTransaction: only a channel that pushes to JMS, and one that pulls what is pulled from JMS, can
                take part (000-T3), and neither with an outbox.
            TransactionAlreadyActive: transactions are enabled already.
        """
        with self._lock:
            self._check()
            if events < 1 or timeout < 0:
                raise UnsupportedTransaction("a transaction has an event at least, and no time below 0")
            styles = self._source.style, self._sink.style
            both = FlowStyle.PUSH if isinstance(self._way, ChannelToJms) else FlowStyle.PULL
            if styles != (both, both) or (isinstance(self._way, ChannelToJms) and not self._way.can_roll_back):
                raise UnsupportedTransaction("only push from a channel to JMS, or pull from JMS by a channel, is one")
            if self._transactions:
                raise TransactionAlreadyActive(f"bridge {self._id} has transactions")
            self._way.enable(events, timeout)
            self._transactions = True

    def disable_transaction(self) -> None:
        """Disables transactions after the one in progress: events are forwarded one by one again (000-T7). Raises
        TransactionActive: a transaction is in progress; it is committed, and no other follows."""
        with self._lock:
            self._check()
            if not self._transactions:
                return
            in_progress = self._way.has_transaction
            self._way.disable()
            self._transactions = False
            if in_progress:
                raise TransactionActive(f"bridge {self._id} had a transaction in progress, which was the last")

    def _check(self) -> None:
        if self._destroyed:
            raise IllegalStateError(f"bridge {self._id} is destroyed")

    close = destroy


class BridgeFactory(Closeable):
    """Makes bridges between the channels and the connections that it knows.

    Args:
        channels: channels by their ids.
        connections: functions that open connections, by the name of the connection factory; the bridge closes the
            connections. The name "" is for a JMSDestination without a factory.
        options: options of its bridges.
    """

    def __init__(
        self,
        channels: Mapping[int, Channel],
        connections: Mapping[str, Callable[[], Connection]],
        options: BridgeOptions | None = None,
    ) -> None:
        self._channels = channels
        self._connections = connections
        self._options = options or BridgeOptions()
        self._bridges: dict[int, Bridge] = {}
        self._ids = itertools.count()
        self._lock = threading.Lock()

    def create_bridge(self, source: ExternalEndpoint, sink: ExternalEndpoint) -> tuple[Bridge, int]:
        """Makes a bridge, which is not started; returns it and its id (000-B10, 000-B13).

        Raises:
            InvalidExternalEndPoints: the endpoints cannot form a bridge, or this factory does not know them (000-B9).
            UnsupportedQoS: the tables or the channel do not support the quality of service in the options.
            TransportError: the channel cannot be reached.
        """
        to_jms = check_endpoints(source, sink) == "channel to JMS"
        outside, inside = (source, sink) if to_jms else (sink, source)
        channel, destination = self._channels.get(_number(outside)), inside.connector
        wrong = []
        if channel is None:
            wrong.append(((outside.role.value, _NO_CHANNEL), "there is no such channel"))
        if not isinstance(destination, JMSDestination) or destination.factory_name not in self._connections:
            wrong.append(((inside.role.value, _NO_DESTINATION), "there is no such connection factory"))
        if wrong or channel is None or not isinstance(destination, JMSDestination):
            raise InvalidExternalEndPoints([one for one, _ in wrong], [reason for _, reason in wrong])
        options, there = self._options, destination.destination
        check_qos(options.qos, there.kind, fifo_within_priority=options.fifo_within_priority)
        connect = self._connections[destination.factory_name]
        way: ChannelToJms | JmsToChannel
        if to_jms:
            way = ChannelToJms(channel, source.style, source.grouping, JmsSink(connect, there, options), options)
        else:
            way = JmsToChannel(connect, there, source.style, channel, sink.style, sink.grouping, options)
        with self._lock:
            bridge_id = next(self._ids)
            made = Bridge(bridge_id, source, sink, way, self._forget)
            self._bridges[bridge_id] = made
        return made, bridge_id

    def get_all_bridges(self) -> list[int]:
        with self._lock:
            return sorted(self._bridges)

    def get_bridge_with_id(self, bridge_id: int) -> Bridge:
        """Returns a bridge by its id (000-B12). Raises BridgeNotFound: there is no bridge with this id."""
        with self._lock:
            found = self._bridges.get(bridge_id)
        if found is None:
            raise BridgeNotFound(bridge_id)
        return found

    def close(self) -> None:
        with self._lock:
            left = list(self._bridges.values())
        for one in left:
            one.destroy()

    def _forget(self, bridge_id: int) -> None:
        with self._lock:
            self._bridges.pop(bridge_id, None)


def _number(endpoint: ExternalEndpoint) -> int:
    return endpoint.connector if isinstance(endpoint.connector, int) else -1
