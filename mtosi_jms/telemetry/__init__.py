"""Log records, spans and metrics, and the pages for a monitor.

`Telemetry` is the interface: a connection that was opened with one reports what its roles do. `Metrics` counts and
measures, and Prometheus reads it (extra `prometheus`). `mtosi_jms.telemetry.otel.OpenTelemetry` hands the same to
OpenTelemetry, and makes spans (extra `otel`). Without a telemetry nothing is reported.

    metrics = Metrics()
    with mtosi.connect(url, telemetry=metrics) as connection, Monitor(metrics=metrics.prometheus): ...
"""

from __future__ import annotations

from mtosi_jms.telemetry._logs import JsonFormatter, LineFormatter, log_message, masked_envelope, of_message
from mtosi_jms.telemetry._metrics import Metrics
from mtosi_jms.telemetry._monitor import Monitor, is_own_host
from mtosi_jms.telemetry._seam import (
    METRICS,
    Count,
    Gauge,
    Metric,
    Processing,
    Publication,
    Role,
    Server,
    Telemetry,
    published,
)

__all__ = [
    "METRICS",
    "Count",
    "Gauge",
    "JsonFormatter",
    "LineFormatter",
    "Metric",
    "Metrics",
    "Monitor",
    "Processing",
    "Publication",
    "Role",
    "Server",
    "Telemetry",
    "is_own_host",
    "log_message",
    "masked_envelope",
    "of_message",
    "published",
]
