"""The interface between the bridge and Notification Services: channels, their sources and sinks.

`mtosi_jms.bridge.corba` reaches channels behind an ORB; `mtosi_jms.testing.MemoryChannel` is a channel in the process.
Every method raises `mtosi_jms.errors.TransportError` if the channel cannot be reached or is gone, and
`IllegalStateError` after `disconnect` or `close`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from mtosi_jms.bridge.events import Any, StructuredEvent

__all__ = [
    "Channel",
    "EventConsumer",
    "EventSink",
    "EventSource",
    "EventSupplier",
    "FlowStyle",
    "Grouping",
    "OnAcknowledged",
    "OnDisconnected",
    "QoS",
]

QoS: TypeAlias = Mapping[str, Any]
"""Quality-of-service properties by their names in CosNotification, such as `EventReliability`."""


class FlowStyle(enum.Enum):
    """Who calls whom (000-B7)."""

    PUSH = "PUSH"
    PULL = "PULL"


class Grouping(enum.Enum):
    """How events travel: one by one, or several in one call; the names are CosBridgeAdmin's (000-B7)."""

    STRUCTURED_EVENT = "STRUCTURED_EVENT"
    SEQUENCE_EVENT = "SEQUENCE_EVENT"


EventConsumer: TypeAlias = Callable[[Sequence[StructuredEvent]], None]
"""Takes pushed events: one, or those of a sequence.

One thread at a time calls it, in order. When it returns, the events are taken. If it raises, none of them is taken: the
channel gets TRANSIENT and delivers them again.
"""

EventSupplier: TypeAlias = Callable[[int, bool], Sequence[StructuredEvent]]
"""Gives events to a channel that pulls: called with the most events that it takes, and whether it waits for the first.

An empty answer means that there are none. If it raises, the channel gets TRANSIENT.
"""

OnDisconnected: TypeAlias = Callable[[str], None]
"""Called with the reason when the channel ended the connection or the proxy is gone; not called for `disconnect`."""

OnAcknowledged: TypeAlias = Callable[[Sequence[int]], None]
"""Called with the SequenceNumbers that the channel acknowledges (000-A11)."""


class _EventEnd(Protocol):
    @property
    def style(self) -> FlowStyle: ...
    @property
    def grouping(self) -> Grouping: ...
    @property
    def qos(self) -> QoS: ...

    def suspend(self) -> None:
        """Suspends the connection until `resume`: events do not pass, and `push` raises IllegalStateError.

        A source's channel keeps them by its quality of service."""

    def resume(self) -> None:
        """Resumes the connection: events pass again."""

    def is_connected(self) -> bool:
        """Asks the channel whether the connection exists (`AlreadyConnected`); a suspended one does."""

    def disconnect(self) -> None:
        """Ends the connection, from any thread, more than once; returns when nothing of ours that it calls runs."""


class EventSource(_EventEnd, Protocol):
    """A proxy supplier of a channel with our consumer: events come out of the channel here.

    Attributes:
        style: PUSH: the channel calls; PULL: `pull` does.
        grouping: one event a call, or a sequence.
        qos: what the proxy has, read back after it was set.
        acknowledges: whether the proxy has the interfaces of CosNotifyChannelAdminAck.
    """

    @property
    def acknowledges(self) -> bool: ...

    def connect(
        self,
        consumer: EventConsumer | None = None,
        on_disconnected: OnDisconnected | None = None,
        *,
        keep_refused: bool = False,
    ) -> None:
        """Connects; events may come before it returns.

        Args:
            consumer: needed where the style is PUSH, None where it is PULL.
            on_disconnected: called when the connection is lost.
            keep_refused: whether a `RefusedEvent` replaces an event that cannot be decoded; if not, `pull` raises
                EventError, and a channel that pushes gets TRANSIENT.

        Raises:
            IllegalStateError: it was connected before.
        """

    def pull(self, maximum: int = 1, *, wait: bool = True, timeout: float | None = None) -> Sequence[StructuredEvent]:
        """The next events, in order; for the style PULL.

        Args:
            maximum: how many at most; one where events are not grouped.
            wait: whether to wait for the first (`pull`), or not (`try_pull`).
            timeout: how long, seconds; None: until one comes or the source is disconnected.

        Returns:
            Nothing where none came in time, or the source was disconnected meanwhile.
        """

    def acknowledge(self, numbers: Sequence[int]) -> None:
        """Acknowledges SequenceNumbers to the channel; only if `acknowledges`."""


class EventSink(_EventEnd, Protocol):
    """A proxy consumer of a channel with our supplier: events go into the channel here.

    Attributes:
        style: PUSH: `push` calls the channel; PULL: the channel calls.
        grouping: one event a call, or a sequence.
        qos: what the proxy has, read back after it was set.
    """

    def connect(
        self,
        supplier: EventSupplier | None = None,
        on_disconnected: OnDisconnected | None = None,
        on_acknowledged: OnAcknowledged | None = None,
    ) -> None:
        """Connects.

        Args:
            supplier: needed where the style is PULL, None where it is PUSH.
            on_disconnected: called when the connection is lost.
            on_acknowledged: called for acknowledgements, if the channel has the Ack interfaces.

        Raises:
            IllegalStateError: it was connected before.
        """

    def push(self, events: Sequence[StructuredEvent]) -> None:
        """Pushes events in order, for the style PUSH; returns when the channel has them. Ungrouped: one call each."""


class Channel(Protocol):
    """An event channel.

    Attributes:
        channel_id: its number at its factory (`CosNotifyChannelAdmin::ChannelID`).
        name: its address, for people, without credentials.
        qos: its quality of service.
    """

    @property
    def channel_id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def qos(self) -> QoS: ...

    def event_source(
        self,
        style: FlowStyle = FlowStyle.PUSH,
        grouping: Grouping = Grouping.STRUCTURED_EVENT,
        *,
        qos: QoS | None = None,
        constraint: str = "",
    ) -> EventSource:
        """A new proxy supplier, not yet connected. `qos`: set at the proxy and read back. `constraint`: a filter in
        Extended TCL; empty: all events. Raises UnsupportedQoS: the channel refuses one, or accepts it and does not keep
        it; EventError: the channel refuses the constraint."""

    def event_sink(
        self,
        style: FlowStyle = FlowStyle.PUSH,
        grouping: Grouping = Grouping.STRUCTURED_EVENT,
        *,
        qos: QoS | None = None,
    ) -> EventSink:
        """A new proxy consumer, not yet connected. `qos`: set at the proxy and read back. Raises UnsupportedQoS: the
        channel refuses one, or accepts it and does not keep it."""

    def is_alive(self) -> bool: ...

    def close(self) -> None:
        """Disconnects what was connected through this object, and lets the channel be; more than once."""
