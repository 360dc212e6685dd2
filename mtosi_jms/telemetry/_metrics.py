"""Metrics: the reports of connections' roles as numbers.

They are plain numbers and not instruments of a library: adding to one takes less than a microsecond, and `/metrics` of
a `Monitor` needs nothing to be installed. `METRICS` is the one table of them; `mtosi_jms.telemetry.otel` offers the
same to OpenTelemetry.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from types import TracebackType
from typing import Final, Literal, NamedTuple, TypeAlias

from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.telemetry._seam import Count, Gauge, Publication, Role, Telemetry

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values of the labels of a series, in a fixed order."""

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
_TEMPORARY: Final = "(temporary)"


class Metric(NamedTuple):
    """One metric.

    Attributes:
        name: its name in OpenTelemetry.
        unit: UCUM unit: `s`, or what is counted, in braces.
        labels: names of its labels; the histogram of handlers has `error.type` only if the handler failed.
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
_COUNTED: Final = {
    Count.DUPLICATES: "batches that came again, and copies of messages that an inbox has recognised",
    Count.GAPS: "batches that were missing when their exchange ended",
    Count.ORPHANS: "replies that belong to no exchange",
    Count.PARKED: "messages sent to a dead-letter destination",
    Count.RECONNECTS: "connections that were lost and made again",
    Count.REDELIVERIES: "messages that the provider had handed out before",
    Count.REJECTS: "messages that cannot be read, or are refused",
}
_GAUGES: Final = {
    Gauge.OUTBOX_DEPTH: ("{message}", "messages of an outbox that the provider has not confirmed"),
    Gauge.OUTBOX_AGE: ("s", "how long the oldest of them has waited"),
    Gauge.INBOX_SIZE: ("{message}", "messages of an inbox that are not done with"),
    Gauge.DEAD: ("{message}", "messages of an outbox or inbox that are not sent or handed out any more"),
}
_IN_FLIGHT: Final = "mtosi.exchanges.in_flight"
_EXCHANGE: Final = "mtosi.exchange.duration"
_BATCHES: Final = "mtosi.batches"
_PROCESS: Final = "messaging.process.duration"
_SENT: Final = "messaging.client.sent.messages"
_CONSUMED: Final = "messaging.client.consumed.messages"
_NOWHERE: Final = (Count.ORPHANS, Count.RECONNECTS)
"""Counts of the process, without a destination."""

METRICS: Final = (
    Metric(_IN_FLIGHT, "gauge", "{exchange}", ("role",), "exchanges that have begun and not ended"),
    Metric(_EXCHANGE, "histogram", "s", ("role", "operation", "outcome"), "how long exchanges took"),
    Metric(_BATCHES, "counter", "{batch}", ("role", "operation"), "replies that were handed out, or sent"),
    Metric(_PROCESS, "histogram", "s", (*_WHERE, "error.type"), "how long handlers of a consumer runtime took"),
    Metric(_SENT, "counter", "{message}", _WHERE, "messages sent"),
    Metric(_CONSUMED, "counter", "{message}", _WHERE, "messages received"),
    *(
        Metric(f"mtosi.{what.value}", "counter", "{message}", () if what in _NOWHERE else _WHERE, text)
        for what, text in _COUNTED.items()
    ),
    *(Metric(f"mtosi.{gauge.value}", "gauge", unit, ("name",), text) for gauge, (unit, text) in _GAUGES.items()),
)
"""All metrics."""


@lru_cache(maxsize=1024)
def where(destination: Destination) -> Labels:
    """Return the label of a destination; all temporary destinations share one, because there are too many."""
    return (("messaging.destination.name", _TEMPORARY if destination.is_temporary else str(destination)),)


class _Histogram:
    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Metrics(Telemetry):
    """Counts and measures what roles report; connections may share one.

    metrics = Metrics()
    with mtosi.connect(url, telemetry=metrics) as connection, Monitor(metrics=metrics.prometheus) as monitor: ...
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[str, defaultdict[Labels, float]] = {one.name: defaultdict(float) for one in METRICS}
        self._histograms: dict[str, defaultdict[Labels, _Histogram]] = {
            one.name: defaultdict(_Histogram) for one in METRICS if one.kind == "histogram"
        }
        self._ends: dict[tuple[Role, str, str], tuple[Labels, Labels]] = {}
        self._watched: dict[str, dict[str, Callable[[], float | None]]] = {f"mtosi.{one.value}": {} for one in Gauge}

    def publish(
        self, message: JmsMessage, destination: Destination, operation: str = "", correlation_id: str = ""
    ) -> Publication:
        return _Counted(message, self, destination)

    def receive(
        self,
        message: JmsMessage,
        destination: Destination,
        since_ns: int,
        publication: Publication | None = None,
        error: BaseException | None = None,
    ) -> None:
        labels = where(destination)
        self._add(_CONSUMED, labels)
        if message.redelivered:
            self._add(f"mtosi.{Count.REDELIVERIES.value}", labels)

    def process(
        self, message: JmsMessage, destination: Destination, *, timed: bool = False
    ) -> AbstractContextManager[object]:
        Metrics.receive(self, message, destination, 0)
        return _Timed(self, where(destination)) if timed else nullcontext()

    def began(self, role: Role) -> None:
        self._add(_IN_FLIGHT, _ROLE[role])

    def ended(self, role: Role, operation: str, outcome: str, seconds: float, batches: int) -> None:
        end = role, operation, outcome
        found = self._ends.get(end)
        if found is None:
            labels = (*_ROLE[role], ("operation", operation or "other"))
            found = self._ends[end] = labels, (*labels, ("outcome", outcome))
        with self._lock:
            self._numbers[_IN_FLIGHT][_ROLE[role]] -= 1
            self._numbers[_BATCHES][found[0]] += batches
        self.record(_EXCHANGE, found[1], seconds)

    def count(self, what: Count, destination: Destination | None = None, number: int = 1) -> None:
        has_place = destination is not None and what not in _NOWHERE
        self._add(f"mtosi.{what.value}", where(destination) if has_place and destination else (), number)

    def watch(self, gauge: Gauge, name: str, read: Callable[[], float | None]) -> None:
        self._watched[f"mtosi.{gauge.value}"][name] = read

    def record(self, name: str, labels: Labels, seconds: float) -> None:
        """Add a measurement to a histogram."""
        with self._lock:
            self._histograms[name][labels].add(seconds)

    def _add(self, name: str, labels: Labels, number: float = 1) -> None:
        with self._lock:
            self._numbers[name][labels] += number

    def numbers(self, name: str) -> Iterator[tuple[Labels, float]]:
        """Return the series of a counter or gauge, with their values."""
        watched = self._watched.get(name)
        if watched is None:
            with self._lock:
                yield from list(self._numbers[name].items())
            return
        for key, read in list(watched.items()):
            value = read()
            if value is None:
                watched.pop(key, None)
            else:
                yield (("name", key),), value

    def prometheus(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return "".join(line + "\n" for metric in METRICS for line in self._lines(metric)).encode()

    def _lines(self, metric: Metric) -> Iterable[str]:
        name = metric.prometheus
        yield f"# HELP {name} {metric.told}"
        yield f"# TYPE {name} {metric.kind}"
        if metric.kind != "histogram":
            for labels, value in self.numbers(metric.name):
                yield f"{name}{_shown(labels)} {value:.17g}"
            return
        with self._lock:
            found = [(labels, list(one.counts), one.total) for labels, one in self._histograms[metric.name].items()]
        for labels, counts, total in found:
            below = 0
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                below += count
                yield f"{name}_bucket{_shown((*labels, ('le', bound)))} {below}"
            yield f"{name}_sum{_shown(labels)} {total:.17g}"
            yield f"{name}_count{_shown(labels)} {below}"


_ROLE: Final = {role: (("role", role.value),) for role in Role}
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def _shown(labels: Labels) -> str:
    inner = ",".join(f'{name.replace(".", "_")}="{value.translate(_ESCAPES)}"' for name, value in labels)
    return f"{{{inner}}}" if inner else ""


class _Counted(Publication):
    __slots__ = ("_destination", "_metrics")

    def __init__(self, message: JmsMessage, metrics: Metrics, destination: Destination) -> None:
        self.message = message
        self._metrics: Metrics | None = metrics
        self._destination = destination

    def end(self, message_id: str | None = None, error: BaseException | None = None) -> None:
        metrics, self._metrics = self._metrics, None
        if metrics is not None and error is None:
            metrics._add(_SENT, where(self._destination))


class _Timed:
    __slots__ = ("_began", "_labels", "_metrics")

    def __init__(self, metrics: Metrics, labels: Labels) -> None:
        self._metrics = metrics
        self._labels = labels
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failed = (("error.type", kind.__qualname__),) if kind is not None else ()
        self._metrics.record(_PROCESS, (*self._labels, *failed), time.perf_counter() - self._began)
