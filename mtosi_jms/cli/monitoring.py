"""`--monitor`: the pages by which a command that runs for long is watched, and the metrics that they show."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import address
from mtosi_jms.errors import MissingExtraError
from mtosi_jms.telemetry import Metrics, Monitor
from mtosi_jms.transport import Connection

__all__ = ["Check", "Monitoring", "add_monitor", "monitored", "reached"]

Check = Callable[[], str | None]
"""Returns the reason why the command cannot work at the moment; None if it can."""


def add_monitor(parser: argparse.ArgumentParser) -> None:
    """Add `--monitor` and `--host-name`."""
    parser.add_argument(
        "--monitor",
        type=address,
        metavar="HOST:PORT",
        help="serve /healthz, /readyz and /metrics (Prometheus) at this address, such as 127.0.0.1:9464, without a "
        "login",
    )
    parser.add_argument(
        "--host-name",
        action="append",
        default=[],
        metavar="NAME",
        help="a name by which HTTP clients call this computer, besides addresses and localhost; may be repeated",
    )


class Monitoring:
    """The monitoring of a command."""

    def __init__(self, telemetry: Metrics | None) -> None:
        self.telemetry = telemetry
        self._checks: list[Check] = []

    def add(self, *checks: Check) -> None:
        """Sets the checks: from now on the command is ready if none of them returns a reason against it."""
        self._checks.extend(checks)

    def why_not_ready(self) -> str | None:
        """The first reason against readiness; a command without checks is not ready."""
        if not self._checks:
            return "starting"
        return next((reason for check in self._checks if (reason := check()) is not None), None)


@contextlib.contextmanager
def monitored(args: argparse.Namespace) -> Iterator[Monitoring]:
    """Serve the pages that `--monitor` asks for while the block runs. Raises TransportError: it cannot listen there."""
    if args.monitor is None:
        yield Monitoring(None)
        return
    metrics = Metrics()
    found = Monitoring(metrics)
    try:
        text = metrics.prometheus
    except MissingExtraError as error:
        terminal.note(f"the monitor has no /metrics: {error}")
        text = None
    serving = Monitor(*args.monitor, why_not_ready=found.why_not_ready, metrics=text, host_names=args.host_name)
    with serving as monitor:
        terminal.note(f"monitor: {monitor.url}/readyz, /healthz{', /metrics' * (text is not None)}")
        yield found


def reached(connection: Connection) -> Check:
    """The check that a connection has its provider."""
    return lambda: None if connection.is_up else "the provider is lost"
