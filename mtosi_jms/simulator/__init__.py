"""A supplier OS to test against: a network, generated or recorded, its events, and services that answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtosi_jms.registry import names_from
from mtosi_jms.simulator._events import alarm_key, standing_alarms
from mtosi_jms.simulator._inventory import InventoryEms, RecordedInventoryEms
from mtosi_jms.simulator._network import Network
from mtosi_jms.simulator._parts import TECHNOLOGIES, Technology
from mtosi_jms.simulator._recording import Recording
from mtosi_jms.simulator._services import AlarmEms, EquipmentEms, ManagedElementEms

if TYPE_CHECKING:
    from mtosi_jms.simulator._release1 import event_in_release1, in_release1

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
    "event_in_release1",
    "in_release1",
    "standing_alarms",
]

# Whoever serves MTOSI 2.0 does not wait for the stubs of 1.1.
__getattr__ = names_from(__name__, ("event_in_release1", "in_release1"), "_release1")
