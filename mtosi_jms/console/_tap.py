"""Records an application's own messages for a console, through the telemetry hooks of its roles."""

from __future__ import annotations

import time

from mtosi_jms.console._traffic import Traffic
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.telemetry import Metrics, Processing, Publication


class Tap(Metrics):
    """Records what requestors, suppliers, publishers, subscribers and consumers of a connection send and receive.

        traffic = Traffic()
        connection = mtosi.connect(url, telemetry=Tap(traffic))

    Args:
        source: name of the observer, in a word or two.
    """

    def __init__(self, traffic: Traffic, source: str = "application") -> None:
        super().__init__()
        self._traffic = traffic
        self._source = source
        traffic.set_metrics(source, self)

    def publish(
        self,
        message: JmsMessage,
        destination: Destination,
        operation: str = "",
        correlation_id: str = "",
        *,
        call: bool = False,
    ) -> Publication:
        """See `Telemetry.publish`: the message is recorded when it has been sent."""
        counted = super().publish(message, destination, operation, correlation_id, call=call)
        return _Publication(counted, destination, self._traffic, self._source, call=call)

    def receive(
        self,
        message: JmsMessage,
        destination: Destination,
        since_ns: int,
        request: Publication | None = None,
        error: BaseException | None = None,
    ) -> None:
        """See `Telemetry.receive`: the message is recorded."""
        super().receive(message, destination, since_ns, request, error)
        self._traffic.record(message, destination=destination, way="received", source=self._source)

    def process(self, message: JmsMessage, destination: Destination, *, timed: bool = False) -> Processing:
        """See `Telemetry.process`: the message is recorded."""
        self._traffic.record(message, destination=destination, way="received", source=self._source)
        return super().process(message, destination, timed=timed)


class _Publication(Publication):
    __slots__ = ("_call", "_counted", "_destination", "_message_id", "_source", "_traffic")

    def __init__(
        self, counted: Publication, destination: Destination, traffic: Traffic, source: str, *, call: bool
    ) -> None:
        super().__init__(counted.message)
        self._counted = counted
        self._call = call
        self._message_id: str | None = None
        self._destination = destination
        self._traffic: Traffic | None = traffic
        self._source = source

    def sent(self, message_id: str | None = None) -> None:
        self._counted.sent(message_id)
        self._message_id = message_id
        if self._call:
            self._record()

    def end(self, error_type: str = "") -> None:
        self._counted.end(error_type)
        if not error_type:
            self._record()
        self._traffic = None

    def _record(self) -> None:
        traffic, self._traffic = self._traffic, None
        if traffic is None:
            return
        message, message_id = self.message, self._message_id
        if message.message_id is None:
            message = message.stamped(self._destination, message_id=message_id, timestamp_ms=int(time.time() * 1000))
        traffic.record(message, destination=self._destination, way="sent", source=self._source)
