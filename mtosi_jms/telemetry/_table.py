"""The table of all metrics."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from mtosi_jms.telemetry._seam import Count, Gauge

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
