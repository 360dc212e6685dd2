"""The Java virtual machine of this process, for other packages that need Java: started once, shared with `jvm:`."""

from __future__ import annotations

from mtosi_jms.transport.jvm._machine import attach, blocking, context_loader, find_class, is_ending, loader, start

__all__ = ["attach", "blocking", "context_loader", "find_class", "is_ending", "loader", "start"]
