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
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from types import TracebackType
from typing import Any, Final, Self

from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.telemetry._seam import Count, Gauge, Processing, Publication, Role, Server, Telemetry
from mtosi_jms.telemetry._table import (
    BATCHES,
    BUCKETS,
    BY_NAME,
    CLIENT,
    CONSUMED,
    HTTP,
    IN_FLIGHT,
    METRICS,
    NOWHERE,
    PROCESS,
    REDELIVERIES,
    SENT,
    Labels,
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


class Histogram:
    """How often what was measured fell into each bucket, and the sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Number:
    """The value of a counter or gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0


class _Book:
    """What all views of one `Metrics` share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.notes: deque[tuple[Any, ...]] = deque()
        self.series: dict[str, dict[Labels, Any]] = {one.name: {} for one in METRICS}
        self.known: dict[tuple[Any, ...], Any] = {}
        """Series by what the notes say of them."""
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
        self._note((_received, self, "receive", destination, kind, message.redelivered))

    def process(self, message: JmsMessage, destination: Destination, *, timed: bool = False) -> Processing:
        self._note((_received, self, "process", destination, "", message.redelivered))
        return _Timed(self, destination) if timed else _UNTIMED

    def began(self, role: Role) -> None:
        self._note((_began, self, role))

    def ended(
        self, role: Role, operation: str, destination: Destination, error_type: str, seconds: float, batches: int
    ) -> None:
        self._note((_ended, self, role, operation or "other", destination, error_type, seconds, batches))

    def served(self, method: str, status: int, seconds: float) -> None:
        self._note((_served, self, method if method in _METHODS else _OTHER, status, seconds))

    def count(self, what: Count, destination: Destination | None = None, number: int = 1) -> None:
        self._note((_counted, self, what, destination, number))

    def watch(self, gauge: Gauge, name: str, read: Callable[[], float | None]) -> None:
        self._book.watched[f"mtosi.{gauge.value}"][name] = read

    def _note(self, note: tuple[Any, ...]) -> None:
        notes = self._book.notes
        notes.append(note)
        if len(notes) >= _MOST_NOTES:
            self._add_up()

    def _add_up(self) -> None:
        book = self._book
        with book.lock:
            for _ in range(len(book.notes)):
                note = book.notes.popleft()
                note[0](*note[1:])

    def _plain(self, metric: str, *labels: str) -> Any:
        """The series of these labels. The lock is held, as by the other methods for notes."""
        series = self._book.series[metric]
        found = series.get(labels)
        if found is None:
            found = series[labels] = self._made(metric, labels)
        return found

    def _made(self, metric: str, labels: Labels) -> Any:
        return Histogram() if BY_NAME[metric].kind == "histogram" else Number()

    def _messaging(self, metric: str, name: str, destination: Destination, error_type: str, *operation: str) -> Any:
        """The series of a messaging operation of this name. Peers name kinds of faults: only so many are told apart."""
        server, book = self._server(), self._book
        key = metric, name, destination, error_type, operation, server
        found = book.known.get(key)
        if found is None:
            if error_type not in book.errors and len(book.errors) >= _MOST_ERRORS:
                return self._messaging(metric, name, destination, _OTHER, *operation)
            book.errors.add(error_type)
            host, port = server or ("", "")
            place = where(destination)
            found = self._plain(metric, SYSTEM, name, place, error_type, host, str(port), *operation)
            if len(book.known) >= _MOST_KNOWN:
                book.known.clear()
            book.known[key] = found
        return found

    def numbers(self, name: str) -> list[tuple[Labels, float]]:
        """Return the series of a counter or gauge, with their values."""
        watched = self._book.watched.get(name)
        if watched is None:
            self._add_up()
            with self._book.lock:
                return [(labels, one.value) for labels, one in self._book.series[name].items()]
        found = [(key, read()) for key, read in list(watched.items())]
        for key, value in found:
            if value is None:
                watched.pop(key, None)
        return [((key,), value) for key, value in found if value is not None]

    def histograms(self, name: str) -> list[tuple[Labels, list[int], float]]:
        """Return the series of a histogram, with how often what was measured fell into each bucket, and the sum."""
        self._add_up()
        with self._book.lock:
            return [(labels, list(one.counts), one.total) for labels, one in self._book.series[name].items()]

    @property
    def prometheus(self) -> Callable[[], bytes]:
        """What returns all metrics in the text format of Prometheus, with those of the process. Raises
        MissingExtraError: the extra `prometheus` is not installed."""
        from mtosi_jms.telemetry.prometheus import exposition

        return exposition(self)


# The notes, as functions. All have what reported it first.


def _received(self: Metrics, name: str, destination: Destination, error_type: str, redelivered: bool) -> None:
    self._messaging(CONSUMED, name, destination, error_type).value += 1
    if redelivered:
        self._plain(REDELIVERIES, where(destination)).value += 1


def _sent(self: Metrics, name: str, destination: Destination, error_type: str) -> None:
    self._messaging(SENT, name, destination, error_type).value += 1


def _published(self: Metrics, destination: Destination, operation: str, error_type: str, seconds: float) -> None:
    self._messaging(SENT, "publish", destination, error_type).value += 1
    self._messaging(CLIENT, "publish", destination, error_type, operation).add(seconds)


def _processed(self: Metrics, destination: Destination, operation: str, error_type: str, seconds: float) -> None:
    self._messaging(PROCESS, "process", destination, error_type, operation).add(seconds)


def _began(self: Metrics, role: Role) -> None:
    self._plain(IN_FLIGHT, role.value).value += 1


def _ended(
    self: Metrics,
    role: Role,
    operation: str,
    destination: Destination,
    error_type: str,
    seconds: float,
    batches: int,
) -> None:
    self._plain(IN_FLIGHT, role.value).value -= 1
    self._plain(BATCHES, role.value, operation).value += batches
    metric, name = (PROCESS, "process") if role is Role.SUPPLIER else (CLIENT, "request")
    self._messaging(metric, name, destination, error_type, operation).add(seconds)


def _served(self: Metrics, method: str, status: int, seconds: float) -> None:
    self._plain(HTTP, method, str(status)).add(seconds)


def _counted(self: Metrics, what: Count, destination: Destination | None, number: int) -> None:
    labels = () if destination is None or what in NOWHERE else (where(destination),)
    self._plain(f"mtosi.{what.value}", *labels).value += number


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
            self._metrics._note((_sent, self._metrics, "request", self._destination, ""))

    def end(self, error_type: str = "") -> None:
        metrics, self._metrics = self._metrics, None
        if metrics is not None and not self._call:
            seconds = time.perf_counter() - self._began
            metrics._note((_published, metrics, self._destination, self._operation, error_type, seconds))


class _Timed(Processing):
    __slots__ = ("_began", "_destination", "_metrics")

    def __init__(self, metrics: Metrics, destination: Destination) -> None:
        self._metrics = metrics
        self._destination = destination
        self._began = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failed = kind.__qualname__ if kind is not None else ""
        seconds = time.perf_counter() - self._began
        self._metrics._note((_processed, self._metrics, self._destination, "", failed, seconds))


_UNTIMED: Final = Processing()
