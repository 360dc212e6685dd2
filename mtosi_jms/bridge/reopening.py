"""A channel that is looked up again after its service has restarted, since old references are then invalid."""

from __future__ import annotations

import threading
from collections.abc import Callable

from mtosi_jms.bridge.endpoints import Channel, EventSink, EventSource, FlowStyle, Grouping, QoS
from mtosi_jms.errors import IllegalStateError, TransportError

__all__ = ["ReopeningChannel"]


class ReopeningChannel:
    """A channel by its address, not by a reference: it is looked up again when it does not answer. `channel_id`,
    `name`, `qos`: those of the channel that was found last. Raises TransportError: no channel is found."""

    def __init__(self, find: Callable[[], Channel]) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._channel = find()

    @property
    def channel_id(self) -> int:
        return self._channel.channel_id

    @property
    def name(self) -> str:
        return self._channel.name

    @property
    def qos(self) -> QoS:
        return self._channel.qos

    def event_source(
        self,
        style: FlowStyle = FlowStyle.PUSH,
        grouping: Grouping = Grouping.STRUCTURED_EVENT,
        *,
        qos: QoS | None = None,
        constraint: str = "",
    ) -> EventSource:
        used = self._channel
        try:
            return used.event_source(style, grouping, qos=qos, constraint=constraint)
        except (TransportError, IllegalStateError):
            return self._again(used).event_source(style, grouping, qos=qos, constraint=constraint)

    def event_sink(
        self,
        style: FlowStyle = FlowStyle.PUSH,
        grouping: Grouping = Grouping.STRUCTURED_EVENT,
        *,
        qos: QoS | None = None,
    ) -> EventSink:
        used = self._channel
        try:
            return used.event_sink(style, grouping, qos=qos)
        except (TransportError, IllegalStateError):
            return self._again(used).event_sink(style, grouping, qos=qos)

    def _again(self, used: Channel) -> Channel:
        with self._lock:
            if self._channel is used:
                self._channel = self._find()
                used.close()
            return self._channel

    def is_alive(self) -> bool:
        return self._channel.is_alive()

    def close(self) -> None:
        self._channel.close()
