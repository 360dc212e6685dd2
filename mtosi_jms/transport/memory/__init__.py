"""The embedded provider, `memory:`: JMS inside one process, for tests, demonstrations and single programs.

What it holds is what was not delivered or not acknowledged yet; nothing outlives the process, whatever the delivery
mode.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import NamingContext
from mtosi_jms.transport.memory._connection import MemoryConnection
from mtosi_jms.transport.memory._gate import CompletionGate
from mtosi_jms.transport.memory._options import SYSTEM_CLOCK, Clock, Limits, Options
from mtosi_jms.transport.memory._provider import MemoryProvider

__all__ = ["Clock", "CompletionGate", "Limits", "MemoryConnection", "MemoryProvider", "connect", "provider"]

_lock = threading.Lock()
_providers: dict[str, MemoryProvider] = {}


def provider(name: str = "", *, clock: Clock | None = None, **limits: Any) -> MemoryProvider:
    """The provider that `memory:NAME` reaches, made at the first call; the empty name is that of `memory:`.

    Args:
        name: tells it from others; of any form.
        clock: returns seconds since 1970, for timestamps and expiry; the first caller decides, by default the system's.
        limits: fields of `Limits`: `capacity`, `send_timeout`, `max_deliveries`, `dead_letter`; given later, they hold
            from then on.

    Raises:
        ConfigError: the provider exists and goes by another clock, or a limit is of the wrong kind.
    """
    with _lock:
        found = _providers.get(name)
        if found is None:
            found = _providers[name] = MemoryProvider(name, clock=clock or SYSTEM_CLOCK)
        elif clock is not None and clock is not found.clock:
            raise ConfigError(f"memory:{name} is there already and goes by another clock")
    with found.lock:
        found.limits = found.limits.changed(**limits)
    return found


def connect(url: str, names: NamingContext, options: Mapping[str, Any]) -> MemoryConnection:
    """Serves `connect("memory:...")`.

    Raises:
        ConfigError: an option that there is not, or one of the wrong kind; the client id is in use.
    """
    given = Options.of(options)
    found = provider(url.partition(":")[2].removeprefix("//"), clock=given.clock, **given.limits)
    return MemoryConnection(found, names, client_id=given.client_id, send_rules=given.send_rules)
