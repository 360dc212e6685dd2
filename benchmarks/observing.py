"""The cost of logs, metrics and spans for a request and its reply over `memory:`, in CPU time of both ends.

The sides run in turns of twenty calls each, so other work of the machine affects all sides alike. The figures are
medians of twenty rounds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from measure import Comparison, Line, SkippedError, one_core
from messaging import NAMES, WANTED, Ems
from network import managed_element, read_leaves

import mtosi_jms as mtosi
from mtosi_jms.jms import JmsMessage
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.telemetry import Metrics, Processing, Publication, Telemetry

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_PROVIDERS: list[TracerProvider] = []
"""The providers whose spans wait for export; each turn exports its own spans."""
ROUNDS = 20
TURNS = 12
CALLS = 20


def telemetry(*, quick: bool) -> Comparison:
    """Telemetry that is off, does nothing, has metrics, or has spans for a share of the exchanges."""
    turns, rounds = (1, 3) if quick else (TURNS, ROUNDS)
    calls = turns * CALLS
    kinds = {
        "off": lambda: None,
        "a telemetry that does nothing": Telemetry,
        "metrics": Metrics,
        "metrics and INFO lines": Metrics,
        "metrics, given to OpenTelemetry": lambda: _with_spans(None),
        "metrics, spans of one exchange in a hundred": lambda: _with_spans(0.01),
        "metrics, spans of every exchange": lambda: _with_spans(1.0),
        "four spans of the SDK of OpenTelemetry, empty": _empty_spans,
    }
    with one_core(), ExitStack() as stack:
        asks = {name: stack.enter_context(_pair(name, make())) for name, make in kinds.items()}
        lines = [Line(name, "ours" if name == "off" else "peer", calls) for name in kinds]
        for number in range(-1, rounds):  # the first round is not measured
            seconds = dict.fromkeys(kinds, 0.0)
            for turn in range(turns):  # short turns, each with another side first, because the load changes
                for at in range(len(lines)):
                    name = lines[(at + turn + number) % len(lines)].name
                    seconds[name] += _cpu(asks[name], CALLS, logs="INFO" in name)
            if number >= 0:
                for line in lines:
                    line.seconds.append(seconds[line.name])
    off = lines[0]
    for line in lines:
        ratios = sorted(mine / other for mine, other in zip(line.seconds, off.seconds, strict=True))
        line.ratio = ratios[len(ratios) // 2]
    notes = [
        f"{line.name}: {line.ratio - 1:+.1%} of a round trip of {off.median / calls * 1e6:,.0f} µs"
        for line in lines[1:]
    ]
    title = f"CPU time of getManagedElement over memory:, on one core, median of {rounds} rounds"
    return Comparison("telemetry", title, "round trips", lines, rounds, notes)


def _with_spans(sample: float | None) -> Telemetry:
    """Return telemetry with OpenTelemetry's SDK: metrics only, or spans that are batched and then dropped."""
    tracers = _tracers()
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.trace import NoOpTracerProvider

    from mtosi_jms.telemetry.otel import OpenTelemetry

    if sample is not None:
        return OpenTelemetry(tracer_provider=tracers, sample=sample)
    meters = MeterProvider(metric_readers=[InMemoryMetricReader()])
    return OpenTelemetry(tracer_provider=NoOpTracerProvider(), meter_provider=meters)


def _empty_spans() -> Telemetry:
    """Return telemetry that makes as many spans as `OpenTelemetry`, but empty ones: the cost of the SDK itself."""
    tracer = _tracers().get_tracer("bare")

    class Empty(Telemetry):
        def publish(self, message: JmsMessage, *about: object, **more: object) -> Publication:
            tracer.start_span("publish").end()
            return Publication(message)

        def receive(self, *about: object, **more: object) -> None:
            tracer.start_span("receive").end()

        def process(self, *about: object, **more: object) -> Processing:
            tracer.start_span("process").end()
            return Processing()

    return Empty()


def _tracers() -> TracerProvider:
    try:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    except ImportError:
        raise SkippedError("the extra otel is not installed") from None

    class Nowhere(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(Nowhere()))
    _PROVIDERS.append(tracers)
    return tracers


@contextmanager
def _pair(name: str, heard: Telemetry | None) -> Iterator[Callable[[], None]]:
    """Provide a call that a supplier in another thread answers."""
    with (
        mtosi.connect(f"memory:observing-{abs(hash(name))}", names=NAMES, telemetry=heard) as connection,
        mtosi.Supplier(connection, "jms/EmsOS", services=[Ems([managed_element(7)])]),
        mtosi.Requestor(connection, sender_uri="jms/InventoryOS") as requestor,
    ):
        service = ManagedElementRetrieval(requestor, "jms/EmsOS")

        def call() -> None:
            me = service.get_managed_element(me_ref=WANTED).me
            if me is None:
                raise RuntimeError("an answer without its managed element")
            read_leaves(me)

        yield call


def _cpu(call: Callable[[], None], calls: int, *, logs: bool) -> float:
    """Return the CPU time of some calls in seconds, for all threads."""
    log, handler = logging.getLogger("mtosi_jms"), logging.NullHandler()
    log.addHandler(handler)
    log.setLevel(logging.INFO if logs else logging.WARNING)
    began = time.process_time()
    try:
        for _ in range(calls):
            call()
        for provider in _PROVIDERS:
            provider.force_flush()
        return time.process_time() - began
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
