"""The interface by which the roles of a connection report their work.

The calls are few and cheap, because they are made for every message. Without a telemetry, roles make no calls.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from types import TracebackType
from typing import Final, Literal, NamedTuple, Self, TypeAlias

from mtosi_jms.jms import Destination, JmsMessage

Server: TypeAlias = Callable[[], tuple[str, int] | None]
"""Returns host and port of the provider that a connection has at the moment; None if they are not known."""


class Role(enum.StrEnum):
    """The role at one end of an exchange."""

    REQUESTOR = "requestor"
    SUPPLIER = "supplier"


class Count(enum.Enum):
    """Events that are counted; `METRICS` says what each is."""

    DUPLICATES = "duplicates"
    GAPS = "gaps"
    ORPHANS = "orphans"
    PARKED = "parked"
    RECONNECTS = "reconnects"
    REDELIVERIES = "redeliveries"
    REJECTS = "rejects"


class Gauge(enum.Enum):
    """Values that are read on demand; `METRICS` says what each is."""

    OUTBOX_DEPTH = "outbox.depth"
    OUTBOX_AGE = "outbox.age"
    INBOX_SIZE = "inbox.size"
    DEAD = "dead"
    IN_HAND = "gateway.in_hand"
    ITERATORS = "gateway.iterators"


class Publication:
    """The sending of one message, to which a telemetry that links spans has added a property; a context manager. That
    of a call lasts until its exchange has ended."""

    __slots__ = ("message",)

    def __init__(self, message: JmsMessage) -> None:
        self.message = message

    def sent(self, message_id: str | None = None) -> None:
        """Called when the provider has taken the message."""

    def end(self, error_type: str = "") -> None:
        """Called when the message was sent, or failed, and for a call, when its exchange has ended. A second call does
        nothing. `error_type`: the kind of the fault, or the class of the error; empty: none."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end("" if kind is None else kind.__qualname__)


class Processing:
    """A context manager around the handler of a message. An error inside it is the handler's failure."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class Telemetry:
    """Receives reports of what the roles of a connection do. This base class does nothing.

    Several threads may call it at the same time. A method must not raise an error or wait for anything.
    """

    def at(self, server: Server) -> Self:
        """Return what a connection to a provider elsewhere reports to; by default the same."""
        return self

    def publish(
        self,
        message: JmsMessage,
        destination: Destination,
        operation: str = "",
        correlation_id: str = "",
        *,
        call: bool = False,
    ) -> Publication:
        """Called before a message is sent.

        Args:
            operation: operation that it belongs to; empty: none.
            correlation_id: correlation id of its exchange; empty: none.
            call: whether it is a request that is answered.
        """
        return Publication(message)

    def receive(
        self,
        message: JmsMessage,
        destination: Destination,
        since_ns: int,
        request: Publication | None = None,
        error: BaseException | None = None,
    ) -> None:
        """Called when a message was received and read, without a handler.

        Args:
            since_ns: when the work on it began, nanoseconds since 1970 UTC.
            request: that of the request which the message answers; None if it answers none.
            error: why it cannot be read; None if it was read.
        """

    def process(self, message: JmsMessage, destination: Destination, *, timed: bool = False) -> Processing:
        """Called before a message is handled. It is `timed` unless the exchange is, as that of a supplier."""
        return Processing()

    def began(self, role: Role) -> None:
        """Called when an exchange has begun."""

    def ended(
        self, role: Role, operation: str, destination: Destination, error_type: str, seconds: float, batches: int
    ) -> None:
        """Called when an exchange has ended; by a supplier inside the context of `process`.

        Args:
            operation: its name; empty: not known.
            error_type: the kind of the fault, the class of the error, or `abandoned`; empty: it went well.
            batches: replies that were handed out or sent.
        """

    def served(self, method: str, status: int, seconds: float) -> None:
        """Called when a request over HTTP was answered, or refused."""

    def count(self, what: Count, destination: Destination | None = None, number: int = 1) -> None:
        """Count what has happened at a destination, or to the connection (None)."""

    def watch(self, gauge: Gauge, name: str, read: Callable[[], float | None]) -> None:
        """Register a value of this name, to be read on demand, in any thread, until it is None: then it is gone."""


def published(
    telemetry: Telemetry | None,
    message: JmsMessage,
    destination: Destination,
    operation: str = "",
    correlation_id: str = "",
    *,
    call: bool = False,
) -> Publication:
    """Report to a telemetry, if there is one, that a message is going to be sent; see `Telemetry.publish`."""
    if telemetry is None:
        return Publication(message)
    return telemetry.publish(message, destination, operation, correlation_id, call=call)


Labels: TypeAlias = tuple[str, ...]
"""Values of the labels of a series, in the order of the metric's; an empty one counts as absent."""

BUCKETS: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    900.0,
)
"""Upper bounds of the histograms, seconds."""


class Metric(NamedTuple):
    """One metric.

    Attributes:
        name: its name in OpenTelemetry.
        unit: UCUM unit: `s`, or what is counted, in braces.
        labels: names of its labels.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    labels: tuple[str, ...]
    told: str

    @property
    def prometheus(self) -> str:
        """Its name in Prometheus, by the rules of OpenTelemetry."""
        name = self.name.replace(".", "_") + ("_seconds" if self.unit == "s" else "")
        return name + ("_total" if self.kind == "counter" else "")


_WHERE: Final = ("messaging.destination.name",)
_OPERATION: Final = "mtosi.operation"
_MESSAGING: Final = (
    "messaging.system",
    "messaging.operation.name",
    *_WHERE,
    "error.type",
    "server.address",
    "server.port",
)
_COUNTED: Final = {
    Count.DUPLICATES: "batches that came again, copies that an inbox has recognised",
    Count.GAPS: "batches that were missing when their exchange ended",
    Count.ORPHANS: "replies that belong to no exchange",
    Count.PARKED: "messages moved to dead letters",
    Count.RECONNECTS: "connections made again",
    Count.REDELIVERIES: "messages delivered before",
    Count.REJECTS: "messages that cannot be read, or are refused",
}
_GAUGES: Final = {
    Gauge.OUTBOX_DEPTH: ("{message}", "unconfirmed messages of an outbox"),
    Gauge.OUTBOX_AGE: ("s", "age of the oldest one"),
    Gauge.INBOX_SIZE: ("{message}", "unsettled messages of an inbox"),
    Gauge.DEAD: ("{message}", "dead messages of an outbox or inbox"),
    Gauge.IN_HAND: ("{request}", "requests over HTTP that are being answered"),
    Gauge.ITERATORS: ("{iterator}", "open iterators of clients over HTTP"),
}
IN_FLIGHT: Final = "mtosi.exchanges.in_flight"
BATCHES: Final = "mtosi.batches"
CLIENT: Final = "messaging.client.operation.duration"
PROCESS: Final = "messaging.process.duration"
SENT: Final = "messaging.client.sent.messages"
CONSUMED: Final = "messaging.client.consumed.messages"
HTTP: Final = "http.server.request.duration"
REDELIVERIES: Final = f"mtosi.{Count.REDELIVERIES.value}"
NOWHERE: Final = (Count.ORPHANS, Count.RECONNECTS)
"""Counts of the process, without a destination."""

METRICS: Final = (
    Metric(IN_FLIGHT, "gauge", "{exchange}", ("role",), "exchanges that have begun and not ended"),
    Metric(BATCHES, "counter", "{batch}", ("role", _OPERATION), "replies that were handed out, or sent"),
    Metric(CLIENT, "histogram", "s", (*_MESSAGING, _OPERATION), "how long requests took, with their replies, or sends"),
    Metric(PROCESS, "histogram", "s", (*_MESSAGING, _OPERATION), "how long suppliers and other handlers took"),
    Metric(SENT, "counter", "{message}", _MESSAGING, "messages sent, or not"),
    Metric(CONSUMED, "counter", "{message}", _MESSAGING, "messages received"),
    *(
        Metric(f"mtosi.{what.value}", "counter", "{message}", () if what in NOWHERE else _WHERE, text)
        for what, text in _COUNTED.items()
    ),
    Metric(
        HTTP,
        "histogram",
        "s",
        ("http.request.method", "http.response.status_code"),
        "how long answers over HTTP took",
    ),
    *(Metric(f"mtosi.{gauge.value}", "gauge", unit, ("name",), text) for gauge, (unit, text) in _GAUGES.items()),
)
"""All metrics."""
