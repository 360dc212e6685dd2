"""A supplier OS to try things against: a network, generated or recorded, its events, and services that answer."""

from __future__ import annotations

from mtosi_jms.simulator.alarming import AlarmEms
from mtosi_jms.simulator.ems import InventoryEms, ManagedElementEms
from mtosi_jms.simulator.equipment import EquipmentEms
from mtosi_jms.simulator.events import alarm_key, standing_alarms
from mtosi_jms.simulator.nesting import RecordedInventoryEms
from mtosi_jms.simulator.network import Network
from mtosi_jms.simulator.recording import Recording
from mtosi_jms.simulator.technologies import TECHNOLOGIES, Technology

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
