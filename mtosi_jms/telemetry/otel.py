"""OpenTelemetry: spans and metrics of what the roles of a connection do (extra `otel`).

Spans follow the semantic conventions for messaging. A message carries the context of its span in the JMS properties
`traceparent` and `tracestate`, which are W3C's names. A peer that does not know them ignores them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import lru_cache
from types import TracebackType
from typing import Any, Final

from mtosi_jms.errors import ConfigError, MissingExtraError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.telemetry._metrics import BUCKETS, METRICS, Labels, Metric, Metrics, where
from mtosi_jms.telemetry._seam import Publication, Role

try:
    from opentelemetry import context as contexts
    from opentelemetry import metrics, trace
    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, Histogram, MeterProvider, Observation
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
_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
"""W3C's format; later versions may append fields."""


class OpenTelemetry(Metrics):
    """Makes spans, and offers its metrics to OpenTelemetry; connections may share one.

    Counters are read when OpenTelemetry collects metrics; only durations are recorded one by one.

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
        self._seconds: dict[str, Histogram] = {}
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
            return [Observation(value, dict(labels)) for labels, value in self.numbers(metric.name)]

        return read

    def record(self, name: str, labels: Labels, seconds: float) -> None:
        super().record(name, labels, seconds)
        self._seconds[name].record(seconds, dict(labels))

    def publish(
        self, message: JmsMessage, destination: Destination, operation: str = "", correlation_id: str = ""
    ) -> Publication:
        """See `Telemetry.publish`: a span `publish DESTINATION`, kind PRODUCER, whose context the message carries."""
        counted = super().publish(message, destination)
        if not self._makes_spans:
            return counted
        ambient = trace.get_current_span().get_span_context()
        if not (ambient.trace_flags.sampled if ambient.is_valid else self._is_sampled()):
            if not ambient.is_valid:  # so that the peer makes no spans either
                counted.message = _carrying(message, _unsampled())
            return counted
        name, facts = _facts("publish", "send", destination, message)
        facts["messaging.message.body.size"] = len(message.body)
        if operation:
            facts["mtosi.operation"] = operation
        if correlation_id:
            facts["messaging.message.conversation_id"] = correlation_id
        span = self._tracer.start_span(name, None, SpanKind.PRODUCER, facts)
        counted.message = _carrying(message, span.get_span_context())
        return _Publication(counted, span)

    def receive(
        self,
        message: JmsMessage,
        destination: Destination,
        since_ns: int,
        publication: Publication | None = None,
        error: BaseException | None = None,
    ) -> None:
        """See `Telemetry.receive`: a span `receive DESTINATION`, kind CONSUMER, linked to the span that published the
        message. If the message answers a request, the request's span is its parent."""
        super().receive(message, destination, since_ns, publication, error)
        if not self._makes_spans or not (publication is None or isinstance(publication, _Publication)):
            return
        peer = _peer(message)
        if publication is None and not self._goes_on(peer):
            return
        below = None if publication is None else trace.set_span_in_context(publication.span, Context())
        name, facts = _facts("receive", "receive", destination, message)
        links = () if peer is None else (Link(peer),)
        span = self._tracer.start_span(name, below, SpanKind.CONSUMER, facts, links, since_ns)
        if error is not None:
            _failed(span, error)
        span.end()

    def process(
        self, message: JmsMessage, destination: Destination, *, timed: bool = False
    ) -> AbstractContextManager[object]:
        """See `Telemetry.process`: a span `process DESTINATION`, kind CONSUMER, which is the current span of the
        handler. Its parent is the span that published the message."""
        measured = super().process(message, destination, timed=timed)
        if not self._makes_spans:
            return measured
        peer = _peer(message)
        if not self._goes_on(peer):  # so that what the handler sends gets none either
            return _Current(measured, NonRecordingSpan(peer or _unsampled()))
        below = Context() if peer is None else trace.set_span_in_context(NonRecordingSpan(peer), Context())
        name, facts = _facts("process", "process", destination, message)
        return _Current(measured, self._tracer.start_span(name, below, SpanKind.CONSUMER, facts))

    def ended(self, role: Role, operation: str, outcome: str, seconds: float, batches: int) -> None:
        """See `Telemetry.ended`; a supplier's span gets operation, outcome and batches."""
        super().ended(role, operation, outcome, seconds, batches)
        if role is Role.SUPPLIER and (span := trace.get_current_span()).is_recording():
            name = operation or "other"
            span.set_attributes({"mtosi.operation": name, "mtosi.outcome": outcome, "mtosi.batches": batches})

    def _is_sampled(self) -> bool:
        return self._sample >= 1 or random.random() < self._sample

    def _goes_on(self, peer: SpanContext | None) -> bool:
        """Whether a received message gets a span. If the message has a context, its sender decides."""
        return self._is_sampled() if peer is None else peer.trace_flags.sampled


class _Publication(Publication):
    __slots__ = ("_counted", "_is_open", "span")

    def __init__(self, counted: Publication, span: Span) -> None:
        self.message = counted.message
        self.span = span
        self._counted = counted
        self._is_open = True

    def end(self, message_id: str | None = None, error: BaseException | None = None) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._counted.end(message_id, error)
        if error is not None:
            _failed(self.span, error)
        elif message_id is not None:
            self.span.set_attribute("messaging.message.id", message_id)
        self.span.end()


class _Current:
    """Makes a span the current one for the block, and ends it."""

    __slots__ = ("_measured", "_span", "_token")

    def __init__(self, measured: AbstractContextManager[object], span: Span) -> None:
        self._measured = measured
        self._span = span

    def __enter__(self) -> None:
        self._token = contexts.attach(trace.set_span_in_context(self._span))
        self._measured.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._measured.__exit__(kind, error, trace)
        contexts.detach(self._token)
        if error is not None:
            _failed(self._span, error)
        self._span.end()


@lru_cache(maxsize=1024)
def _about(name: str, kind: str, destination: Destination) -> tuple[str, dict[str, Any]]:
    facts: dict[str, Any] = {
        "messaging.system": "jms",
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": str(destination),
    }
    if destination.is_temporary:
        facts["messaging.destination.temporary"] = True
    return f"{name} {where(destination)[0][1]}", facts


def _facts(name: str, kind: str, destination: Destination, message: JmsMessage) -> tuple[str, dict[str, Any]]:
    shown, common = _about(name, kind, destination)
    facts = common.copy()
    if message.message_id is not None:
        facts["messaging.message.id"] = message.message_id
    if message.redelivered:
        facts["mtosi.redelivered"] = True
    return shown, facts


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


def _failed(span: Span, error: BaseException) -> None:
    """Mark a span as failed, by the type of the error: its text may quote a message, or hold a credential."""
    kind = type(error).__qualname__
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR, kind)
