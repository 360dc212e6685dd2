"""OpenTelemetry: spans and metrics of what the roles of a connection do (extra `otel`).

Spans follow the semantic conventions for messaging. The context goes along as the JMS properties `traceparent` and
`tracestate`, which are legal names and W3C's own; a peer that knows nothing of them ignores them.

Counters are plain numbers that are asked for when metrics are read, because adding to an instrument of the SDK takes
as long as a twentieth of a round trip over `memory:`. The two histograms are instruments.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from mtosi_jms.errors import MissingExtraError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.telemetry._seam import Count, Gauge, Publication, Role, Telemetry

try:
    from opentelemetry import metrics, trace
    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
    from opentelemetry.trace import Link, Span, SpanKind, StatusCode, TracerProvider
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as error:
    raise MissingExtraError("opentelemetry-api", "otel") from error

__all__ = ["PROPERTIES", "OpenTelemetry"]

PROPERTIES: Final = ("traceparent", "tracestate")
"""The JMS properties that carry the context of a span."""

_NAME: Final = "mtosi_jms"
_TEMPORARY: Final = "(temporary)"
_PROPAGATOR: Final = TraceContextTextMapPropagator()
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)

_COUNTED: Final = {
    Count.DUPLICATES: "batches and messages that came again and were recognised",
    Count.GAPS: "batches that were missing when their exchange ended",
    Count.ORPHANS: "replies that belong to no exchange",
    Count.PARKED: "messages sent to a dead-letter destination",
    Count.RECONNECTS: "connections that were lost and made again",
    Count.REDELIVERIES: "messages that the provider had handed out before",
    Count.REJECTS: "messages that cannot be read, or are refused",
}
_GAUGES: Final = {
    Gauge.OUTBOX_DEPTH: ("{message}", "messages that the provider has not confirmed"),
    Gauge.OUTBOX_AGE: ("s", "how long the oldest of them has waited"),
    Gauge.INBOX_SIZE: ("{message}", "messages of an inbox that are not done with"),
    Gauge.DEAD: ("{message}", "messages of an outbox or inbox that are not sent or handed out any more"),
}

_Key = tuple[tuple[str, str], ...]


class OpenTelemetry(Telemetry):
    """Makes spans and metrics of what it is told; connections may share one.

    Args:
        tracer_provider: makes the spans; None: the one that the process has set, or none.
        meter_provider: takes the metrics; None: the same.
    """

    def __init__(
        self, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        self._tracer = trace.get_tracer(_NAME, tracer_provider=tracer_provider)
        self._meter = metrics.get_meter(_NAME, meter_provider=meter_provider)
        self._lock = threading.Lock()
        self._counts: dict[str, dict[_Key, float]] = {}
        self._watched: dict[Gauge, dict[str, Callable[[], float | None]]] = {gauge: {} for gauge in Gauge}
        make = self._meter.create_histogram
        self._exchange_seconds = make(
            "mtosi.exchange.duration", "s", "of exchanges", explicit_bucket_boundaries_advisory=_SECONDS
        )
        self._process_seconds = make(
            "messaging.process.duration", "s", "of handlers", explicit_bucket_boundaries_advisory=_SECONDS
        )
        for what, told in _COUNTED.items():
            self._observe(f"mtosi.{what.value}", "{message}", told)
        self._observe("mtosi.batches", "{batch}", "replies that were handed out or sent")
        self._observe("messaging.client.sent.messages", "{message}", "messages sent")
        self._observe("messaging.client.consumed.messages", "{message}", "messages received")
        self._observe(
            "mtosi.exchanges.in_flight", "{exchange}", "exchanges that have begun and not ended", up_down=True
        )
        for gauge, (unit, told) in _GAUGES.items():
            self._meter.create_observable_gauge(f"mtosi.{gauge.value}", [self._reader(gauge)], unit, told)

    def _observe(self, name: str, unit: str, told: str, *, up_down: bool = False) -> None:
        meter, counts = self._meter, self._counts.setdefault(name, {})

        def read(options: CallbackOptions) -> Iterator[Observation]:
            with self._lock:
                found = list(counts.items())
            return (Observation(value, dict(key)) for key, value in found)

        make = meter.create_observable_up_down_counter if up_down else meter.create_observable_counter
        make(name, [read], unit, told)

    def _reader(self, gauge: Gauge) -> Callable[[CallbackOptions], Iterator[Observation]]:
        watched = self._watched[gauge]

        def read(options: CallbackOptions) -> Iterator[Observation]:
            for name, ask in list(watched.items()):
                value = ask()
                if value is None:
                    watched.pop(name, None)
                else:
                    yield Observation(value, {"name": name})

        return read

    def _add(self, name: str, key: _Key, number: float = 1) -> None:
        counts = self._counts[name]
        with self._lock:
            counts[key] = counts.get(key, 0) + number

    def publish(
        self, message: JmsMessage, destination: Destination, operation: str = "", correlation_id: str = ""
    ) -> Publication:
        """See `Telemetry.publish`: a span `publish DESTINATION`, kind PRODUCER, whose context the message carries."""
        span = self._tracer.start_span(f"publish {_shown(destination)}", kind=SpanKind.PRODUCER)
        if span.is_recording():
            facts = _facts("publish", "send", destination, message)
            facts["messaging.message.body.size"] = len(message.body)
            if operation:
                facts["mtosi.operation"] = operation
            if correlation_id:
                facts["messaging.message.conversation_id"] = correlation_id
            span.set_attributes(facts)
        context = trace.set_span_in_context(span, Context())
        if span.get_span_context().is_valid:
            carrier: dict[str, str] = {}
            _PROPAGATOR.inject(carrier, context)
            for name, value in carrier.items():
                message = message.with_property(name, value)
        return _Publication(message, span, context, lambda: self._add(_SENT, _where(destination)))

    def receive(
        self,
        message: JmsMessage,
        destination: Destination,
        since_ns: int,
        publication: Publication | None = None,
        error: BaseException | None = None,
    ) -> None:
        """See `Telemetry.receive`: a span `receive DESTINATION`, kind CONSUMER, below the request's span where the
        message answers one, and linked to the span that published it."""
        self._came(message, destination)
        below = publication.context if isinstance(publication, _Publication) else None
        span = self._tracer.start_span(
            f"receive {_shown(destination)}", below, SpanKind.CONSUMER, links=_links(message), start_time=since_ns
        )
        if span.is_recording():
            span.set_attributes(_facts("receive", "receive", destination, message))
            if error is not None:
                _failed(span, error)
        span.end()

    @contextmanager
    def process(self, message: JmsMessage, destination: Destination) -> Iterator[None]:
        """See `Telemetry.process`: a span `process DESTINATION`, kind CONSUMER, below the span that published the
        message, and the present one for the handler."""
        self._came(message, destination)
        began = time.perf_counter()
        carrier = _carrier(message)
        below = _PROPAGATOR.extract(carrier, Context()) if carrier else None
        failure = ""
        with self._tracer.start_as_current_span(
            f"process {_shown(destination)}",
            below,
            SpanKind.CONSUMER,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            if span.is_recording():
                span.set_attributes(_facts("process", "process", destination, message))
            try:
                yield
            except BaseException as error:
                failure = type(error).__qualname__
                _failed(span, error)
                raise
            finally:
                facts = dict(_where(destination)) | ({"error.type": failure} if failure else {})
                self._process_seconds.record(time.perf_counter() - began, facts)

    def _came(self, message: JmsMessage, destination: Destination) -> None:
        key = _where(destination)
        self._add(_RECEIVED, key)
        if message.redelivered:
            self._add("mtosi.redeliveries", key)

    def began(self, role: Role) -> None:
        """See `Telemetry.began`."""
        self._add("mtosi.exchanges.in_flight", _ROLE[role])

    def ended(self, role: Role, operation: str, outcome: str, seconds: float, batches: int) -> None:
        """See `Telemetry.ended`; a supplier's span gets operation, outcome and batches."""
        name = operation or "other"
        self._add("mtosi.exchanges.in_flight", _ROLE[role], -1)
        if batches:
            self._add("mtosi.batches", (*_ROLE[role], ("operation", name)), batches)
        self._exchange_seconds.record(seconds, {"role": role.value, "operation": name, "outcome": outcome})
        if role is Role.SUPPLIER and (span := trace.get_current_span()).is_recording():
            facts = {"mtosi.operation": name, "mtosi.outcome": outcome, "mtosi.batches": batches}
            span.set_attributes(facts)

    def count(self, what: Count, destination: Destination | None = None, number: int = 1) -> None:
        """See `Telemetry.count`."""
        self._add(f"mtosi.{what.value}", _where(destination) if destination is not None else (), number)

    def watch(self, gauge: Gauge, name: str, read: Callable[[], float | None]) -> None:
        """See `Telemetry.watch`."""
        self._watched[gauge][name] = read


_SENT: Final = "messaging.client.sent.messages"
_RECEIVED: Final = "messaging.client.consumed.messages"
_ROLE: Final[Mapping[Role, _Key]] = {role: (("role", role.value),) for role in Role}


class _Publication(Publication):
    """A span that is open until `end`."""

    __slots__ = ("_sent", "_span", "context")

    def __init__(self, message: JmsMessage, span: Span, context: Context, sent: Callable[[], None]) -> None:
        super().__init__(message)
        self.context = context
        self._span: Span | None = span
        self._sent = sent

    def end(self, message_id: str | None = None, error: BaseException | None = None) -> None:
        span, self._span = self._span, None
        if span is None:
            return
        if error is not None:
            _failed(span, error)
        else:
            self._sent()
            if message_id is not None and span.is_recording():
                span.set_attribute("messaging.message.id", message_id)
        span.end()


def _shown(destination: Destination) -> str:
    """A destination in the name of a span; of temporary ones there are too many."""
    return _TEMPORARY if destination.is_temporary else str(destination)


def _where(destination: Destination) -> _Key:
    return (("messaging.destination.name", _shown(destination)),)


def _facts(name: str, kind: str, destination: Destination, message: JmsMessage) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "messaging.system": "jms",
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": str(destination),
    }
    if destination.is_temporary:
        facts["messaging.destination.temporary"] = True
    if message.message_id is not None:
        facts["messaging.message.id"] = message.message_id
    correlation = message.properties.get("MTOSI_correlationId")
    if isinstance(correlation, str) and correlation:
        facts["messaging.message.conversation_id"] = correlation
    if message.redelivered:
        facts["messaging.message.redelivered"] = True
    return facts


def _carrier(message: JmsMessage) -> dict[str, str]:
    """What a message says of the span that published it; a peer may write anything there."""
    found = {name: message.properties.get(name) for name in PROPERTIES}
    return {name: value for name, value in found.items() if isinstance(value, str)}


def _links(message: JmsMessage) -> list[Link]:
    carrier = _carrier(message)
    if not carrier:
        return []
    context = trace.get_current_span(_PROPAGATOR.extract(carrier, Context())).get_span_context()
    return [Link(context)] if context.is_valid else []


def _failed(span: Span, error: BaseException) -> None:
    """Marks a span. The text of an error may quote a message, or hold a credential: its type has to do."""
    kind = type(error).__qualname__
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR, kind)
