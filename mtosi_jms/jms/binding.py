"""The binding under its published name; the package `mtosi_jms.binding` has it all."""

from __future__ import annotations

from mtosi_jms.binding.mapping import from_jms, to_jms

__all__ = ["from_jms", "to_jms"]
