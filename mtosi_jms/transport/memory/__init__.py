"""The embedded provider, `memory:`: JMS inside one process, for tests, demonstrations and single programs.

What it holds is what was not delivered or not acknowledged yet; nothing outlives the process, whatever the delivery
mode.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms.naming import NamingContext
from mtosi_jms.transport.memory.provider import Clock, MemoryProvider
from mtosi_jms.transport.memory.session import MemoryConnection

__all__ = ["Clock", "MemoryConnection", "MemoryProvider", "connect", "provider"]

_lock = threading.Lock()
_providers: dict[str, MemoryProvider] = {}


def provider(
    name: str = "",
    *,
    clock: Clock | None = None,
    capacity: int | None = None,
    send_timeout: float | None = None,
) -> MemoryProvider:
    """The provider that `memory:NAME` reaches, made at the first call; the empty name is that of `memory:`.

    Args:
        name: tells it from others; of any form.
        clock: returns seconds since 1970, for timestamps and expiry; the first caller decides, by default the system's.
        capacity: messages that wait at a destination before senders have to; given later, it holds from then on.
        send_timeout: seconds that a sender waits for room at most; 0 refuses at once; None waits.

    Raises:
        ConfigError: the provider exists and goes by another clock.
    """
    with _lock:
        found = _providers.get(name)
        if found is None:
            found = _providers[name] = MemoryProvider(name, clock=clock or time.time)
        elif clock is not None and clock is not found.clock:
            raise ConfigError(f"memory:{name} is there already and goes by another clock")
    if capacity is not None:
        with found.lock:
            found.capacity, found.send_timeout = capacity, send_timeout
    return found


def connect(address: str, names: NamingContext, options: Mapping[str, Any]) -> MemoryConnection:
    """Serves `connect("memory:...")`; `address` is what follows the scheme.

    Raises:
        ConfigError: an option other than `clock`, `capacity` and `send_timeout`, or one of the wrong kind.
    """
    unknown = sorted(set(options) - {"clock", "capacity", "send_timeout"})
    if unknown:
        raise ConfigError(f"memory: takes no option {', '.join(unknown)}; there are clock, capacity and send_timeout")
    clock = options.get("clock")
    if clock is not None and not callable(clock):
        raise ConfigError("option clock: a callable that returns seconds since 1970 is wanted")
    capacity = options.get("capacity")
    if capacity is not None and (type(capacity) is not int or capacity < 1):
        raise ConfigError("option capacity: a whole number of messages, 1 or more, is wanted")
    found = provider(
        address.removeprefix("//"), clock=clock, capacity=capacity, send_timeout=options.get("send_timeout")
    )
    return MemoryConnection(found, names)
