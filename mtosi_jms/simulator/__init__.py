"""A supplier OS to try things against: a generated network and the services that answer for it."""

from __future__ import annotations

from mtosi_jms.simulator.ems import InventoryEms, ManagedElementEms
from mtosi_jms.simulator.network import Network

__all__ = ["InventoryEms", "ManagedElementEms", "Network"]
