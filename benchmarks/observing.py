"""What logs, metrics and spans cost of a request and its reply over `memory:`, in CPU time of both ends.

The sides run by turns, a few calls each, and what counts is the median of twenty rounds: a machine that is busy with
other things makes all of them slower.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from measure import Comparison, Line, SkippedError
from messaging import NAMES, WANTED, Ems
from network import managed_element, read_leaves

import mtosi_jms as mtosi
from mtosi_jms.errors import MissingExtraError
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.telemetry import Metrics, Telemetry

ROUNDS = 20
CALLS = 200


def telemetry(*, quick: bool) -> Comparison:
    """Telemetry off, with nothing behind the seam, with metrics, and with spans of a share of the exchanges."""
    calls, rounds = (20, 3) if quick else (CALLS, ROUNDS)
    kinds = {
        "off": lambda: None,
        "a telemetry that does nothing": Telemetry,
        "metrics": Metrics,
        "metrics and INFO lines": Metrics,
        "metrics, spans of one exchange in a hundred": lambda: _with_spans(0.01),
        "metrics, spans of every exchange": lambda: _with_spans(1.0),
    }
    with ExitStack() as stack:
        asks = {name: stack.enter_context(_pair(name, make())) for name, make in kinds.items()}
        lines = [Line(name, "ours" if name == "off" else "peer", calls) for name in kinds]
        for number in range(-1, rounds):  # the first round is not measured
            for line in lines if number % 2 else lines[::-1]:
                seconds = _cpu(asks[line.name], calls, logs="INFO" in line.name)
                if number >= 0:
                    line.seconds.append(seconds)
    off = lines[0]
    for line in lines:
        ratios = sorted(mine / other for mine, other in zip(line.seconds, off.seconds, strict=True))
        line.ratio = ratios[len(ratios) // 2]
    notes = [
        f"{line.name}: {line.ratio - 1:+.1%} of a round trip of {off.median / calls * 1e6:,.0f} µs"
        for line in lines[1:]
    ]
    title = f"CPU time of getManagedElement over memory:, median of {rounds} rounds"
    return Comparison("telemetry", title, "round trips", lines, rounds, notes)


def _with_spans(sample: float) -> Telemetry:
    """The SDK of OpenTelemetry, whose spans go through its batches to nowhere."""
    try:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

        from mtosi_jms.telemetry.otel import OpenTelemetry
    except (ImportError, MissingExtraError):
        raise SkippedError("the extra otel is not installed") from None

    class Nowhere(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(Nowhere()))
    meters = MeterProvider(metric_readers=[InMemoryMetricReader()])
    return OpenTelemetry(tracer_provider=tracers, meter_provider=meters, sample=sample)


@contextmanager
def _pair(name: str, heard: Telemetry | None) -> Iterator[Callable[[], None]]:
    """A call that a supplier in another thread answers."""
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
    """Seconds of CPU that some calls take, in all threads."""
    log, handler = logging.getLogger("mtosi_jms"), logging.NullHandler()
    log.addHandler(handler)
    log.setLevel(logging.INFO if logs else logging.WARNING)
    gc.collect()
    began = time.process_time()
    try:
        for _ in range(calls):
            call()
        return time.process_time() - began
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
