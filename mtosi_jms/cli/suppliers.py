"""Runs a supplier until its command is stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mtosi_jms.cli import terminal
from mtosi_jms.cli.monitoring import Check
from mtosi_jms.cli.stopping import Stop
from mtosi_jms.errors import TransportError
from mtosi_jms.exchange import Supplier

__all__ = ["answer", "answers"]

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
