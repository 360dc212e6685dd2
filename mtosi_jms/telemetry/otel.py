"""OpenTelemetry: spans and metrics of what the roles of a connection do (extra `otel`).

Spans follow the semantic conventions for messaging. A message carries the context of its span in the JMS properties
`traceparent` and `tracestate`, which are W3C's names. A peer that does not know them ignores them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from types import TracebackType
from typing import Any, Final, Self

from mtosi_jms.errors import ConfigError, MissingExtraError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.telemetry._metrics import SYSTEM, Counted, Histogram, Metrics, where
from mtosi_jms.telemetry._seam import BUCKETS, METRICS, Labels, Metric, Processing, Publication, Role

try:
    from opentelemetry import context as contexts
    from opentelemetry import metrics, trace
    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
    from opentelemetry.trace import (
        Link,
        NonRecordingSpan,
        NoOpTracer,
        Span,
        SpanContext,
        SpanKind,
        StatusCode,
        TraceFlags,
        TracerProvider,
        TraceState,
    )
except ImportError as error:
    raise MissingExtraError("opentelemetry-api", "otel") from error

__all__ = ["PROPERTIES", "OpenTelemetry"]

PROPERTIES: Final = ("traceparent", "tracestate")
"""The JMS properties that carry the context of a span."""

_NAME: Final = "mtosi_jms"
_BY_NAME: Final = {metric.name: metric for metric in METRICS}
_NUMBERS: Final = frozenset({"server.port", "http.response.status_code"})
_NO_CONTEXT: Final = Context()
_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
"""W3C's format; later versions may append fields."""


class OpenTelemetry(Metrics):
    """Makes spans, and offers its metrics to OpenTelemetry; connections may share one.

    Numbers are handed over when OpenTelemetry collects metrics, without exemplars.

    Args:
        tracer_provider: makes the spans; None: that of the process, if any. With `NoOpTracerProvider()` there are only
            metrics.
        meter_provider: takes the metrics; None: that of the process, if any.
        sample: share of the exchanges and notifications that get spans, 0 to 1. If the caller or the peer has a span,
            that decides instead. Leaving spans out here costs less than with a sampler of the provider.

    Raises:
        ConfigError: `sample` is not between 0 and 1.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        sample: float = 1.0,
    ) -> None:
        super().__init__()
        if not 0 <= sample <= 1:
            raise ConfigError(f"sample: it must be a number from 0 to 1, not {sample!r}")
        self._sample = sample
        self._tracer = trace.get_tracer(_NAME, tracer_provider=tracer_provider)
        self._makes_spans = not isinstance(self._tracer, NoOpTracer)
        self._seconds: dict[str, metrics.Histogram] = {}
        meter = metrics.get_meter(_NAME, meter_provider=meter_provider)
        for metric in METRICS:
            about = metric.name, metric.unit, metric.told
            if metric.kind == "histogram":
                made = meter.create_histogram(*about, explicit_bucket_boundaries_advisory=BUCKETS)
                self._seconds[metric.name] = made
            elif metric.kind == "counter":
                meter.create_observable_counter(metric.name, [self._reader(metric)], *about[1:])
            else:
                meter.create_observable_gauge(metric.name, [self._reader(metric)], *about[1:])

    def _reader(self, metric: Metric) -> Any:
        def read(options: CallbackOptions) -> Iterable[Observation]:
            return [Observation(value, _attributes(metric, labels)) for labels, value in self.numbers(metric.name)]

        return read

    def _histogram(self, metric: str, labels: Labels) -> Histogram:
        record, attributes = self._seconds[metric].record, _attributes(_BY_NAME[metric], labels)
        return _Recorded(partial(record, attributes=attributes, context=_NO_CONTEXT))

    def publish(
        self,
        message: JmsMessage,
        destination: Destination,
        operation: str = "",
        correlation_id: str = "",
        *,
        call: bool = False,
    ) -> Publication:
        """See `Telemetry.publish`: a span whose context the message carries: of a call `request DESTINATION`, kind
        CLIENT, else `publish DESTINATION`, kind PRODUCER."""
        counted = Counted(message, self, destination, operation, call=call)
        if not self._makes_spans:
            return counted
        ambient = trace.get_current_span().get_span_context()
        if not (ambient.trace_flags.sampled if ambient.is_valid else self._is_sampled()):
            if not ambient.is_valid:  # so that the peer makes no spans either
                counted.message = _carrying(message, _unsampled())
            return counted
        name, facts = self._facts("request" if call else "publish", "send", destination, message)
        facts["messaging.message.body.size"] = len(message.body)
        if operation:
            facts["mtosi.operation"] = operation
        if correlation_id:
            facts["messaging.message.conversation_id"] = correlation_id
        span = self._tracer.start_span(name, None, SpanKind.CLIENT if call else SpanKind.PRODUCER, facts)
        counted.message = _carrying(message, span.get_span_context())
        return _Publication(counted, span)

    def receive(
        self,
        message: JmsMessage,
        destination: Destination,
        since_ns: int,
        request: Publication | None = None,
        error: BaseException | None = None,
    ) -> None:
        """See `Telemetry.receive`: a span `receive DESTINATION`, kind CLIENT, linked to the span that published the
        message. If the message answers a request, the request's span is its parent."""
        super().receive(message, destination, since_ns, request, error)
        if not self._makes_spans or not (request is None or isinstance(request, _Publication)):
            return
        peer = _peer(message)
        if request is None and not self._goes_on(peer):
            return
        below = None if request is None else trace.set_span_in_context(request.span, Context())
        name, facts = self._facts("receive", "receive", destination, message)
        links = () if peer is None else (Link(peer),)
        span = self._tracer.start_span(name, below, SpanKind.CLIENT, facts, links, since_ns)
        if error is not None:
            _failed(span, type(error).__qualname__)
        span.end()

    def process(self, message: JmsMessage, destination: Destination, *, timed: bool = False) -> Processing:
        """See `Telemetry.process`: a span `process DESTINATION`, kind CONSUMER, which is the current span of the
        handler. Its parent is the span that published the message."""
        measured = super().process(message, destination, timed=timed)
        if not self._makes_spans:
            return measured
        peer = _peer(message)
        if not self._goes_on(peer):  # so that what the handler sends gets none either
            return _Current(measured, NonRecordingSpan(peer or _unsampled()))
        below = Context() if peer is None else trace.set_span_in_context(NonRecordingSpan(peer), Context())
        name, facts = self._facts("process", "process", destination, message)
        return _Current(measured, self._tracer.start_span(name, below, SpanKind.CONSUMER, facts))

    def ended(
        self, role: Role, operation: str, destination: Destination, error_type: str, seconds: float, batches: int
    ) -> None:
        """See `Telemetry.ended`; a supplier's span gets operation and batches, and a fault makes it a failure."""
        super().ended(role, operation, destination, error_type, seconds, batches)
        if role is Role.SUPPLIER and (span := trace.get_current_span()).is_recording():
            span.set_attributes({"mtosi.operation": operation or "other", "mtosi.batches": batches})
            if error_type:
                _failed(span, error_type)

    def _facts(self, name: str, kind: str, destination: Destination, message: JmsMessage) -> tuple[str, dict[str, Any]]:
        shown, common = _about(name, kind, destination, self._server())
        facts = common.copy()
        if message.message_id is not None:
            facts["messaging.message.id"] = message.message_id
        if message.redelivered:
            facts["mtosi.redelivered"] = True
        return shown, facts

    def _is_sampled(self) -> bool:
        return self._sample >= 1 or random.random() < self._sample

    def _goes_on(self, peer: SpanContext | None) -> bool:
        """Whether a received message gets a span. If the message has a context, its sender decides."""
        return self._is_sampled() if peer is None else peer.trace_flags.sampled


class _Recorded(Histogram):
    __slots__ = ("_record",)

    def __init__(self, record: Callable[[float], None]) -> None:
        super().__init__()
        self._record = record

    def add(self, numbers: Iterable[float]) -> None:
        super().add(numbers)
        for seconds in numbers:
            self._record(seconds)


class _Publication(Publication):
    __slots__ = ("_counted", "_is_open", "span")

    def __init__(self, counted: Publication, span: Span) -> None:
        self.message = counted.message
        self.span = span
        self._counted = counted
        self._is_open = True

    def sent(self, message_id: str | None = None) -> None:
        self._counted.sent(message_id)
        if message_id is not None:
            self.span.set_attribute("messaging.message.id", message_id)

    def end(self, error_type: str = "") -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._counted.end(error_type)
        if error_type:
            _failed(self.span, error_type)
        self.span.end()


class _Current(Processing):
    """Makes a span the current one for the block, and ends it."""

    __slots__ = ("_measured", "_span", "_token")

    def __init__(self, measured: Processing, span: Span) -> None:
        self._measured = measured
        self._span = span

    def __enter__(self) -> Self:
        self._token = contexts.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._measured.__exit__(kind, error, trace)
        contexts.detach(self._token)
        if kind is not None:
            _failed(self._span, kind.__qualname__)
        self._span.end()


@lru_cache(maxsize=1024)
def _about(
    name: str, kind: str, destination: Destination, server: tuple[str, int] | None
) -> tuple[str, dict[str, Any]]:
    facts: dict[str, Any] = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": str(destination),
    }
    if destination.is_temporary:
        facts["messaging.destination.temporary"] = True
    if server is not None:
        facts["server.address"], facts["server.port"] = server
    return f"{name} {where(destination)}", facts


def _attributes(metric: Metric, labels: Labels) -> dict[str, str | int]:
    named = zip(metric.labels, labels, strict=True)
    return {name: int(value) if name in _NUMBERS else value for name, value in named if value}


def _carrying(message: JmsMessage, context: SpanContext) -> JmsMessage:
    traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    message = message.with_property(PROPERTIES[0], traceparent)
    return message.with_property(PROPERTIES[1], context.trace_state.to_header()) if context.trace_state else message


def _peer(message: JmsMessage) -> SpanContext | None:
    """Return the context of the span that published a message; None if the message has none that is valid."""
    traceparent, state = map(message.properties.get, PROPERTIES)
    found = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    if found is None:
        return None
    rest = TraceState.from_header([state]) if isinstance(state, str) else None
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    context = SpanContext(trace_id, span_id, True, TraceFlags(flags), rest)
    return context if context.is_valid else None


def _unsampled() -> SpanContext:
    return SpanContext(random.getrandbits(127) + 1, random.getrandbits(63) + 1, is_remote=False)


def _failed(span: Span, kind: str) -> None:
    """Mark a span as failed, by the kind of the error: its text may quote a message, or hold a credential."""
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR, kind)
