"""Metrics: the reports of connections' roles as numbers.

A report costs the role a note of it. The notes are added up when the numbers are read, or when there are many: in one
go, which takes a third of the time. `METRICS` is the one table of them; `mtosi_jms.telemetry.prometheus` and
`mtosi_jms.telemetry.otel` hand them out.
"""

from __future__ import annotations

import copy
import threading
import time
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.telemetry._seam import (
    BATCHES,
    BUCKETS,
    CLIENT,
    CONSUMED,
    HTTP,
    IN_FLIGHT,
    METRICS,
    NOWHERE,
    PROCESS,
    REDELIVERIES,
    SENT,
    Count,
    Gauge,
    Labels,
    Processing,
    Publication,
    Role,
    Server,
    Telemetry,
)

SYSTEM: Final = "jms"
"""OpenTelemetry's name for what is spoken here."""
_TEMPORARY: Final = "(temporary)"
_MOST_NOTES: Final = 1000
_MOST_ERRORS: Final = 200
_MOST_KNOWN: Final = 10_000
_OTHER: Final = "_OTHER"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"})


@lru_cache(maxsize=1024)
def where(destination: Destination) -> str:
    """Return the label of a destination; all temporary destinations share one, because there are too many."""
    return _TEMPORARY if destination.is_temporary else str(destination)


class Number:
    """The value of a counter or gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, numbers: Iterable[float]) -> None:
        self.value += sum(numbers)


class Histogram:
    """How often what was measured fell into each bucket, and the sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, numbers: Iterable[float]) -> None:
        for seconds in numbers:
            self.counts[bisect_left(BUCKETS, seconds)] += 1
            self.total += seconds


Cell: TypeAlias = Number | Histogram
"""What one series adds up."""


_Key: TypeAlias = tuple[Callable[..., Sequence[Cell]], "Metrics", tuple[Any, ...]]
"""What has the cells of these facts, who reports, and the facts."""


class _Book:
    """What all views of one `Metrics` share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.notes: deque[tuple[_Key, tuple[float, ...]]] = deque()
        """What was reported: for which cells, and what to add to each."""
        self.numbers: dict[str, dict[Labels, Number]] = {one.name: {} for one in METRICS}
        self.histograms: dict[str, dict[Labels, Histogram]] = {one.name: {} for one in METRICS}
        self.known: dict[tuple[Any, ...], Sequence[Cell]] = {}
        self.watched: dict[str, dict[str, Callable[[], float | None]]] = {f"mtosi.{one.value}": {} for one in Gauge}
        self.errors = {"", _OTHER}


class Metrics(Telemetry):
    """Counts and measures what roles report; connections may share one.

    metrics = Metrics()
    with mtosi.connect(url, telemetry=metrics) as connection, Monitor(metrics=metrics.prometheus) as monitor: ...
    """

    def __init__(self) -> None:
        self._book = _Book()
        self._server: Server = lambda: None

    def at(self, server: Server) -> Self:
        other = copy.copy(self)
        other._server = server
        return other

    def publish(
        self,
        message: JmsMessage,
        destination: Destination,
        operation: str = "",
        correlation_id: str = "",
        *,
        call: bool = False,
    ) -> Publication:
        return Counted(message, self, destination, operation, call=call)

    def receive(
        self,
        message: JmsMessage,
        destination: Destination,
        since_ns: int,
        request: Publication | None = None,
        error: BaseException | None = None,
    ) -> None:
        kind = "" if error is None else type(error).__qualname__
        self._note(_received, ("receive", destination, kind), (1, message.redelivered))

    def process(self, message: JmsMessage, destination: Destination, *, timed: bool = False) -> Processing:
        self._note(_received, ("process", destination, ""), (1, message.redelivered))
        return _Timed(self, destination) if timed else _UNTIMED

    def began(self, role: Role) -> None:
        self._note(_began, (role,), (1,))

    def ended(
        self, role: Role, operation: str, destination: Destination, error_type: str, seconds: float, batches: int
    ) -> None:
        self._note(_ended, (role, operation or "other", destination, error_type), (-1, batches, seconds))

    def served(self, method: str, status: int, seconds: float) -> None:
        self._note(_served, (method if method in _METHODS else _OTHER, status), (seconds,))

    def count(self, what: Count, destination: Destination | None = None, number: int = 1) -> None:
        self._note(_counted, (what, destination), (number,))

    def watch(self, gauge: Gauge, name: str, read: Callable[[], float | None]) -> None:
        self._book.watched[f"mtosi.{gauge.value}"][name] = read

    def _note(self, cells: Callable[..., Sequence[Cell]], facts: tuple[Any, ...], numbers: tuple[float, ...]) -> None:
        notes = self._book.notes
        notes.append(((cells, self, facts), numbers))
        if len(notes) >= _MOST_NOTES:
            self._add_up()

    def _add_up(self) -> None:
        book = self._book
        notes, known = book.notes, book.known
        alike: defaultdict[_Key, list[tuple[float, ...]]] = defaultdict(list)
        with book.lock:
            for _ in range(len(notes)):
                key, numbers = notes.popleft()
                alike[key].append(numbers)
            for (cells, view, facts), many in alike.items():
                about = cells, facts, view._server()
                found = known.get(about)
                if found is None:
                    if len(known) >= _MOST_KNOWN:
                        known.clear()
                    found = known[about] = cells(view, *facts)
                for cell, each in zip(found, zip(*many, strict=True), strict=True):
                    cell.add(each)

    def number(self, metric: str, *labels: str) -> Cell:
        """The cell of these labels; this and the next two are for what a note refers to."""
        return self._book.numbers[metric].setdefault(labels, Number())

    def histogram(self, metric: str, *labels: str) -> Cell:
        """The same of a histogram."""
        histograms = self._book.histograms[metric]
        if labels not in histograms:
            histograms[labels] = self._histogram(metric, labels)
        return histograms[labels]

    def _histogram(self, metric: str, labels: Labels) -> Histogram:
        return Histogram()

    def messaging(self, name: str, destination: Destination, error_type: str) -> Labels:
        """The labels of a messaging operation of this name. Peers name kinds of faults: only so many are told apart."""
        errors = self._book.errors
        if error_type not in errors and len(errors) >= _MOST_ERRORS:
            error_type = _OTHER
        errors.add(error_type)
        host, port = self._server() or ("", "")
        return SYSTEM, name, where(destination), error_type, host, str(port)

    def numbers(self, name: str) -> list[tuple[Labels, float]]:
        """Return the series of a counter or gauge, with their values."""
        watched = self._book.watched.get(name)
        if watched is None:
            self._add_up()
            with self._book.lock:
                return [(labels, one.value) for labels, one in self._book.numbers[name].items()]
        found = [(key, read()) for key, read in list(watched.items())]
        for key, value in found:
            if value is None:
                watched.pop(key, None)
        return [((key,), value) for key, value in found if value is not None]

    def histograms(self, name: str) -> list[tuple[Labels, list[int], float]]:
        """Return the series of a histogram, with how often what was measured fell into each bucket, and the sum."""
        self._add_up()
        with self._book.lock:
            return [(labels, list(one.counts), one.total) for labels, one in self._book.histograms[name].items()]

    @property
    def prometheus(self) -> Callable[[], bytes]:
        """What returns all metrics in the text format of Prometheus, with those of the process. Raises
        MissingExtraError: the extra `prometheus` is not installed."""
        from mtosi_jms.telemetry.prometheus import exposition

        return exposition(self)


# The cells of the notes, by their facts. They are called once for the same facts.


def _received(self: Metrics, name: str, destination: Destination, error_type: str) -> Sequence[Cell]:
    labels = self.messaging(name, destination, error_type)
    return self.number(CONSUMED, *labels), self.number(REDELIVERIES, where(destination))


def _sent(self: Metrics, destination: Destination) -> Sequence[Cell]:
    return (self.number(SENT, *self.messaging("request", destination, "")),)


def _published(self: Metrics, destination: Destination, operation: str, error_type: str) -> Sequence[Cell]:
    labels = self.messaging("publish", destination, error_type)
    return self.number(SENT, *labels), self.histogram(CLIENT, *labels, operation)


def _processed(self: Metrics, destination: Destination, error_type: str) -> Sequence[Cell]:
    return (self.histogram(PROCESS, *self.messaging("process", destination, error_type), ""),)


def _began(self: Metrics, role: Role) -> Sequence[Cell]:
    return (self.number(IN_FLIGHT, role.value),)


def _ended(self: Metrics, role: Role, operation: str, destination: Destination, error_type: str) -> Sequence[Cell]:
    metric, name = (PROCESS, "process") if role is Role.SUPPLIER else (CLIENT, "request")
    took = self.histogram(metric, *self.messaging(name, destination, error_type), operation)
    return self.number(IN_FLIGHT, role.value), self.number(BATCHES, role.value, operation), took


def _served(self: Metrics, method: str, status: int) -> Sequence[Cell]:
    return (self.histogram(HTTP, method, str(status)),)


def _counted(self: Metrics, what: Count, destination: Destination | None) -> Sequence[Cell]:
    labels = () if destination is None or what in NOWHERE else (where(destination),)
    return (self.number(f"mtosi.{what.value}", *labels),)


class Counted(Publication):
    """A publication that is counted and, unless it is a call, measured."""

    __slots__ = ("_began", "_call", "_destination", "_metrics", "_operation")

    def __init__(
        self, message: JmsMessage, metrics: Metrics, destination: Destination, operation: str, *, call: bool
    ) -> None:
        self.message = message
        self._metrics: Metrics | None = metrics
        self._destination = destination
        self._operation = operation
        self._call = call
        self._began = time.perf_counter()

    def sent(self, message_id: str | None = None) -> None:
        if self._call and self._metrics is not None:
            self._metrics._note(_sent, (self._destination,), (1,))

    def end(self, error_type: str = "") -> None:
        metrics, self._metrics = self._metrics, None
        if metrics is not None and not self._call:
            facts = self._destination, self._operation, error_type
            metrics._note(_published, facts, (1, time.perf_counter() - self._began))


class _Timed(Processing):
    __slots__ = ("_began", "_destination", "_metrics")

    def __init__(self, metrics: Metrics, destination: Destination) -> None:
        self._metrics = metrics
        self._destination = destination
        self._began = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        facts = self._destination, kind.__qualname__ if kind is not None else ""
        self._metrics._note(_processed, facts, (time.perf_counter() - self._began,))


_UNTIMED: Final = Processing()
