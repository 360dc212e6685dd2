"""Ways to JMS providers, one module or package for each, behind the seam of `base`."""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms.naming import NamesSource, NamingContext
from mtosi_jms.transport.base import AckMode, Connection, Consumer, Delivery, Session

__all__ = ["PROVIDERS", "AckMode", "Connection", "Consumer", "Delivery", "Session", "connect"]

PROVIDERS: Final = MappingProxyType({"memory": "mtosi_jms.transport.memory"})
"""URL scheme to the module that serves it; it is imported at the first use, so that its library may be absent."""


def connect(url: str, *, names: NamesSource = None, **options: object) -> Connection:
    """Opens a connection to a JMS provider; it is stopped, as JMS has it.

    Args:
        url: `memory:` or `memory:NAME`: a provider inside this process, the same for the same name.
        names: a naming context, a mapping of name to destination, or a file: `jndi.properties` or TOML.
        options: what the provider takes besides; `memory:` takes `clock`, a callable that returns seconds since 1970;
            `capacity`, messages that a destination holds before its senders wait; and `send_timeout`, how long.

    Raises:
        ConfigError: the URL has a scheme that no provider serves, the names are at fault, or an option is unknown.
        TransportError: the provider cannot be reached.
    """
    scheme, colon, rest = url.partition(":")
    module = PROVIDERS.get(scheme.lower())
    if module is None or not colon:
        shown = f"scheme {scheme!r}" if colon else "a URL without a scheme"  # the rest may hold a password
        raise ConfigError(f"{shown}: no provider serves it; there are {', '.join(f'{name}:' for name in PROVIDERS)}")
    context = NamingContext.of(names)
    connection: Connection = import_module(module).connect(rest, context, options)
    return connection
