"""Ways to JMS providers, one module or package for each, behind the seam of `base`."""

from __future__ import annotations

import re
from importlib import import_module
from types import MappingProxyType
from typing import Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import JmsUri, NamesSource, NamingContext, is_jms_uri
from mtosi_jms.transport._descriptor import ALL_CAPABILITIES, Capability, ConnectionMetadata, check_jms_version
from mtosi_jms.transport._producer import Producer
from mtosi_jms.transport.base import (
    AckMode,
    Connection,
    Consumer,
    Delivery,
    ErrorHook,
    InterruptionHook,
    Listener,
    Session,
    redeliver,
)
from mtosi_jms.transport.completion import CompletionListener, SendRules
from mtosi_jms.transport.window import SendWindow

__all__ = [
    "ALL_CAPABILITIES",
    "PROVIDERS",
    "AckMode",
    "Capability",
    "CompletionListener",
    "Connection",
    "ConnectionMetadata",
    "Consumer",
    "Delivery",
    "ErrorHook",
    "InterruptionHook",
    "Listener",
    "Producer",
    "SendRules",
    "SendWindow",
    "Session",
    "connect",
    "provider_url",
    "redeliver",
]

PROVIDERS: Final = MappingProxyType(
    {
        "memory": "mtosi_jms.transport.memory",
        "stomp": "mtosi_jms.transport.stomp",
        "stomp+ssl": "mtosi_jms.transport.stomp",
    }
)
"""URL scheme to the module that serves it; it is imported at the first use, so that its library may be absent."""
_FAILOVER: Final = re.compile(r"failover:(?://)?\(?\s*", re.IGNORECASE)


def connect(url: str, *, names: NamesSource = None, **options: object) -> Connection:
    """Opens a connection to a JMS provider; it is stopped, as JMS has it.

    Args:
        url: `memory:` or `memory:NAME`: a provider inside this process, the same for the same name.
            `stomp://USER:PASSWORD@HOST:PORT` or `stomp+ssl://...`: ActiveMQ or Artemis over STOMP;
            `failover:(stomp://A,stomp://B)`: the first of several that can be reached. `jndi:NAME`: the
            URL of a connection factory in `names` (P17), which a JMS URI names in `jndiConnectionFactoryName`.
        names: a naming context, a mapping of name to destination, or a file: `jndi.properties` or TOML.
        options: what the provider takes besides. All take `client_id`, which durable subscriptions are known by;
            `jms_version`, the level of the provider's JMS API, 1.1 or later (R1); and for asynchronous sends
            `completion_timeout`, `strict_2012` and `on_completion_error` (`SendRules`). `memory:` takes
            `clock`, a callable that returns seconds since 1970; `capacity`, messages that a destination holds before
            its senders wait, and `send_timeout`, how long; `max_deliveries` of a message that is not acknowledged, and
            `dead_letter`, the queue where it is parked then. Those of `stomp:` are the
            fields of `transport.stomp.StompOptions`.

    Raises:
        ConfigError: the URL has a scheme that no provider serves, the JMS version is too old, the names are at fault,
            or an option is unknown.
        NamingError: no such connection factory.
        TransportError: the provider cannot be reached.
    """
    context = NamingContext.of(names)
    url, scheme = provider_url(url, context)
    module = PROVIDERS[scheme]
    if options.get("jms_version") is not None:
        check_jms_version(options["jms_version"])
    connection: Connection = import_module(module).connect(url, context, options)
    return connection


def provider_url(url: str, names: NamingContext) -> tuple[str, str]:
    """The URL of the provider itself, and its scheme, a key of `PROVIDERS`.

    Args:
        url: as for `connect`.
        names: has the connection factory that it may name.

    Raises:
        ConfigError: no provider serves its scheme.
        NamingError: no such connection factory.
    """
    if (factory := _factory_name(url)) is not None:
        url = names.factory(factory)
    scheme, colon, _ = _FAILOVER.sub("", url).partition(":")
    if scheme.lower() not in PROVIDERS or not colon:
        shown = f"scheme {scheme!r}" if colon else "a URL without a scheme"  # the rest may hold a password
        raise ConfigError(f"{shown}: no provider serves it; there are {', '.join(f'{name}:' for name in PROVIDERS)}")
    return url, scheme.lower()


def _factory_name(url: str) -> str | None:
    """The name of the connection factory that a URL asks for; None where it is a provider's own URL."""
    scheme, _, name = url.partition(":")
    if scheme.lower() == "jndi":
        return name
    if not is_jms_uri(url):
        return None
    found = JmsUri.parse(url).connection_factory
    if found is None:
        raise ConfigError("a JMS URI opens a connection only with the parameter jndiConnectionFactoryName")
    return found
