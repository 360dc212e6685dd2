"""What is told of the work: log records, spans and metrics, and the pages that a monitor asks for.

`Telemetry` is the seam: a connection that was opened with one tells it what its roles do. `Metrics` counts and
measures, and gives that to Prometheus. `mtosi_jms.telemetry.otel.OpenTelemetry` makes spans too (extra `otel`).
Without one nothing is told.

    metrics = Metrics()
    with mtosi.connect(url, telemetry=metrics) as connection, Monitor(metrics=metrics.prometheus): ...
"""

from __future__ import annotations

from mtosi_jms.telemetry._logs import JsonFormatter, LineFormatter, log_message, masked_envelope, of_message
from mtosi_jms.telemetry._metrics import METRICS, Metric, Metrics
from mtosi_jms.telemetry._monitor import Monitor
from mtosi_jms.telemetry._seam import Count, Gauge, Publication, Role, Telemetry

__all__ = [
    "METRICS",
    "Count",
    "Gauge",
    "JsonFormatter",
    "LineFormatter",
    "Metric",
    "Metrics",
    "Monitor",
    "Publication",
    "Role",
    "Telemetry",
    "log_message",
    "masked_envelope",
    "of_message",
]
