"""For readers that make no objects of a document, or only some: the plans of classes, envelopes, and the native core.

All of this may change with the readers; programs that want objects use `mtosi_jms.xmlbind`.
"""

from __future__ import annotations

from mtosi_jms.xmlbind._native import Enveloped, native_module, read_enveloped
from mtosi_jms.xmlbind._plan import OBJECT, Slot, plan_of

__all__ = ["OBJECT", "Enveloped", "Slot", "native_module", "plan_of", "read_enveloped"]
