"""A supplier OS to try things against: a generated network, its events, and the services that answer for it."""

from __future__ import annotations

from mtosi_jms.simulator.ems import InventoryEms, ManagedElementEms
from mtosi_jms.simulator.events import alarm_key, standing_alarms
from mtosi_jms.simulator.network import Network
from mtosi_jms.simulator.technologies import TECHNOLOGIES, Technology

__all__ = [
    "TECHNOLOGIES",
    "InventoryEms",
    "ManagedElementEms",
    "Network",
    "Technology",
    "alarm_key",
    "standing_alarms",
]
