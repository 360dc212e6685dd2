"""What is told of the work: log records, spans and metrics, and the pages that a monitor asks for.

`Telemetry` is the seam: a connection that was opened with one tells it what its roles do. `OpenTelemetry`, of the extra
`otel`, makes spans and metrics of that. Without one nothing is told, and nothing of it is imported.

    from mtosi_jms.telemetry.otel import OpenTelemetry

    with mtosi.connect(url, telemetry=OpenTelemetry()) as connection: ...
"""

from __future__ import annotations

from mtosi_jms.telemetry._logs import JsonFormatter, LineFormatter, log_message, masked_envelope, of_message
from mtosi_jms.telemetry._monitor import Monitor
from mtosi_jms.telemetry._seam import Count, Gauge, Publication, Role, Telemetry

__all__ = [
    "Count",
    "Gauge",
    "JsonFormatter",
    "LineFormatter",
    "Monitor",
    "Publication",
    "Role",
    "Telemetry",
    "log_message",
    "masked_envelope",
    "of_message",
]
