"""Commands that run until SIGTERM, SIGINT or another thread stops them: how they stop, how they are watched
(`--monitor`), and how they run a supplier."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from typing import Final

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import address
from mtosi_jms.cli.log import log_in_lines
from mtosi_jms.cli.program import INTERRUPTED, Stop, closing_at, listening
from mtosi_jms.errors import MissingExtraError, TransportError
from mtosi_jms.exchange import Supplier
from mtosi_jms.exchange.signals import on_signals
from mtosi_jms.telemetry import Metrics, Monitor
from mtosi_jms.transport import Connection

__all__ = [
    "INTERRUPTED",
    "Check",
    "Monitoring",
    "Stop",
    "add_monitor",
    "answer",
    "answers",
    "closing_at",
    "monitored",
    "reached",
    "until_signalled",
]

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


@contextlib.contextmanager
def until_signalled(args: argparse.Namespace | None = None, *, is_prompt: bool = False) -> Iterator[Stop]:
    """A stop that SIGTERM and SIGINT set while the block runs; the SDK's log is on standard error meanwhile.

    From the first look at it, the command ends in order. Until then a signal interrupts it.

    Raises:
        KeyboardInterrupt: at a second SIGINT, and soon after the first signal if the command does not end in order.
    """
    with Stop(is_prompt=is_prompt) as stop, log_in_lines(args), listening(stop):

        def on_signal(again: bool) -> None:
            stop.set()
            if again:
                raise KeyboardInterrupt

        with on_signals(on_signal):
            yield stop


_LOOK: Final = 1.0
"""Seconds between checks whether the supplier still runs: its threads end when the provider is gone for good."""


def answers(supplier: Supplier) -> Check:
    """The check that a supplier has not ended."""
    return lambda: None if supplier.is_running else "the supplier has stopped"


def answer(supplier: Supplier, threads: int, grace: float, stop: Stop, on_ready: Callable[[], object]) -> int:
    """Answers requests until the stop is set, then those in hand; 0.

    Args:
        grace: seconds for those in hand.
        on_ready: called once requests are received.

    Raises:
        TransportError: the provider is gone.
    """
    supplier.start(threads)
    try:
        on_ready()
        while not stop.wait(_LOOK):
            if not supplier.is_running:
                raise TransportError(f"the supplier at {supplier.destination} has stopped: the provider is gone")
    finally:
        if not supplier.drain(grace):
            terminal.note(f"a request was not answered within {grace:g} seconds: the provider delivers it again")
        supplier.stop(0)
    return 0
