"""Prometheus: metrics in its text format, beside those of the process and of Python (extra `prometheus`).

`Metrics.prometheus` returns the text. A program with a registry of its own registers a `MetricsCollector` there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib import metadata
from itertools import accumulate
from typing import Protocol

from mtosi_jms.errors import MissingExtraError
from mtosi_jms.telemetry._seam import BUCKETS, METRICS, Labels

try:
    from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
    from prometheus_client.registry import Collector
except ImportError as error:
    raise MissingExtraError("prometheus-client", "prometheus") from error

__all__ = ["MetricsCollector", "Numbers", "exposition"]

_BOUNDS = (*map(str, BUCKETS), "+Inf")


class Numbers(Protocol):
    """What has the numbers: `Metrics`."""

    def numbers(self, name: str) -> list[tuple[Labels, float]]: ...

    def histograms(self, name: str) -> list[tuple[Labels, list[int], float]]: ...


class MetricsCollector(Collector):
    """Has a registry of Prometheus collect metrics, and `mtosi_jms_build_info`."""

    def __init__(self, metrics: Numbers) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily | HistogramMetricFamily | InfoMetricFamily]:
        """Return all metrics."""
        version = metadata.version("mtosi-jms")
        yield InfoMetricFamily("mtosi_jms_build", "the version of the SDK", {"version": version})
        for metric in METRICS:
            labels = [name.replace(".", "_") for name in metric.labels]
            if metric.kind == "histogram":
                family = HistogramMetricFamily(metric.prometheus, metric.told, labels=labels)
                for values, counts, total in self._metrics.histograms(metric.name):
                    family.add_metric(values, list(zip(_BOUNDS, accumulate(counts), strict=True)), total)
                yield family
            else:
                kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
                numbers = kind(metric.prometheus, metric.told, labels=labels)
                for values, number in self._metrics.numbers(metric.name):
                    numbers.add_metric(values, number)
                yield numbers


def exposition(metrics: Numbers) -> Callable[[], bytes]:
    """Return what gives all metrics in the text format of Prometheus."""
    registry = CollectorRegistry()
    for make in (PlatformCollector, ProcessCollector, GCCollector):
        make(registry=registry)
    registry.register(MetricsCollector(metrics))
    return partial(generate_latest, registry)
