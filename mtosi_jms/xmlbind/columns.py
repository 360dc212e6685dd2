"""For readers that make few or no objects from a document: the plans of classes, envelopes, and the native core.

These names may change with the readers. Programs that need objects use `mtosi_jms.xmlbind`.
"""

from __future__ import annotations

from mtosi_jms.xmlbind._native import Enveloped, native_bounds, native_module, read_enveloped
from mtosi_jms.xmlbind._plan import OBJECT, STRING, Slot, plan_of

__all__ = ["OBJECT", "STRING", "Enveloped", "Slot", "native_bounds", "native_module", "plan_of", "read_enveloped"]
