"""The embedded provider, `memory:`: JMS inside one process, for tests, demonstrations and single programs.

It holds messages that are not delivered or not acknowledged yet. Nothing survives the process, in any delivery mode.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import NamingContext
from mtosi_jms.transport._descriptor import ORIGINAL_DESTINATION
from mtosi_jms.transport._options import checked
from mtosi_jms.transport.memory._provider import (
    DELIVERIES,
    REASON,
    SYSTEM_CLOCK,
    Clock,
    CompletionGate,
    MemoryOptions,
    MemoryProvider,
    QueueLimits,
)
from mtosi_jms.transport.memory._session import MemoryConnection, MemorySession

__all__ = [
    "DELIVERIES",
    "ORIGINAL_DESTINATION",
    "REASON",
    "Clock",
    "CompletionGate",
    "MemoryConnection",
    "MemoryOptions",
    "MemoryProvider",
    "MemorySession",
    "QueueLimits",
    "connect",
    "provider",
]

_lock = threading.Lock()
_providers: dict[str, MemoryProvider] = {}


def provider(name: str = "", *, clock: Clock | None = None, **limits: Any) -> MemoryProvider:
    """The provider that `memory:NAME` reaches, made at the first call; the empty name is that of `memory:`. `clock`:
    returns seconds since 1970, for timestamps and expiry; the first caller decides, by default the system's. `limits`:
    fields of `QueueLimits`; given later, they hold from then on. Raises ConfigError: the provider exists and goes by
    another clock, or a limit is of the wrong type."""
    with _lock:
        found = _providers.get(name)
        if found is None:
            found = _providers[name] = MemoryProvider(name, clock=clock or SYSTEM_CLOCK)
        elif clock is not None and clock is not found.clock:
            raise ConfigError(f"memory:{name} exists and goes by another clock")
    with found.lock:
        found.limits = found.limits.changed(**limits)
    return found


def connect(url: str, names: NamingContext, options: Mapping[str, Any]) -> MemoryConnection:
    """Serves `connect("memory:...")`. Raises ConfigError: an unknown option, or one of the wrong type; the client id is
    in use."""
    given = checked(MemoryOptions, "memory", options)
    limits = {one.name: given[one.name] for one in fields(QueueLimits) if one.name in given}
    settings = MemoryOptions(**given)
    found = provider(url.partition(":")[2].removeprefix("//"), clock=settings.clock, **limits)
    return MemoryConnection(found, names, client_id=settings.client_id, send_rules=settings.send_rules)
