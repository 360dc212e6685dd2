"""A supplier OS to try things against: a network, generated or recorded, its events, and services that answer."""

from __future__ import annotations

from mtosi_jms.simulator._alarming import AlarmEms
from mtosi_jms.simulator._ems import InventoryEms, ManagedElementEms
from mtosi_jms.simulator._equipment import EquipmentEms
from mtosi_jms.simulator._events import alarm_key, standing_alarms
from mtosi_jms.simulator._nesting import RecordedInventoryEms
from mtosi_jms.simulator._network import Network
from mtosi_jms.simulator._recording import Recording
from mtosi_jms.simulator._technologies import TECHNOLOGIES, Technology

__all__ = [
    "TECHNOLOGIES",
    "AlarmEms",
    "EquipmentEms",
    "InventoryEms",
    "ManagedElementEms",
    "Network",
    "RecordedInventoryEms",
    "Recording",
    "Technology",
    "alarm_key",
    "standing_alarms",
]
