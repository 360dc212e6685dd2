"""MTOSI's binding to JMS: Tables 2 and 4, the profile, W3C's properties, and what selectors may name."""

from __future__ import annotations

from mtosi_jms.binding.profile import BindingProfile

__all__ = ["BindingProfile"]
