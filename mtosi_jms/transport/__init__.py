"""Transports to JMS providers, one package each, behind one interface of connections, sessions and consumers."""

from __future__ import annotations

import re
import weakref
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import JmsUri, NamesSource, NamingContext, is_jms_uri
from mtosi_jms.masking import Hidden
from mtosi_jms.registry import registered
from mtosi_jms.telemetry import Telemetry
from mtosi_jms.transport._base import (
    AckMode,
    Connection,
    Consumer,
    Delivery,
    ErrorHook,
    Interruption,
    InterruptionHook,
    Listener,
    Producer,
    Session,
    publish,
    redeliver,
)
from mtosi_jms.transport._completion import AsyncSender, CompletionListener, SendRules, SendWindow
from mtosi_jms.transport._descriptor import ALL_CAPABILITIES, Capability, ConnectionMetadata
from mtosi_jms.transport._options import ConnectOptions
from mtosi_jms.transport._threads import Backoff, Wakeup, close_aside, dropped, is_open
from mtosi_jms.transport.settings import FILE, URL, provider

__all__ = [
    "ALL_CAPABILITIES",
    "PROVIDERS",
    "AckMode",
    "AsyncSender",
    "Backoff",
    "Capability",
    "CompletionListener",
    "ConnectOptions",
    "Connection",
    "ConnectionMetadata",
    "Consumer",
    "Delivery",
    "ErrorHook",
    "Interruption",
    "InterruptionHook",
    "Listener",
    "Producer",
    "SendRules",
    "SendWindow",
    "Session",
    "Wakeup",
    "close_aside",
    "connect",
    "dropped",
    "is_open",
    "provider_url",
    "publish",
    "redeliver",
]

_OF_JAVA: Final = frozenset(("amqp", "amqps", "tcp", "ssl", "nio", "failover", "mqtt", "vm", "http", "https"))
"""Schemes of addresses for other programs and clients than ours."""
_OF_IBM: Final = frozenset(("mq", "ibm-mq", "ibmmq", "wmq"))
PROVIDERS: Final = MappingProxyType({scheme: row["module"] for scheme, row in registered("transports").items()})
"""The module for each URL scheme. It is imported at its first use, so its optional library may be missing."""
_FAILOVER: Final = re.compile(r"failover:(?://)?\(?\s*", re.IGNORECASE)


def connect(
    url: str | None = None,
    *,
    environment: str | None = None,
    names: NamesSource = None,
    telemetry: Telemetry | None = None,
    **options: object,
) -> Connection:
    """Opens a connection to a JMS provider; it is stopped until `start`.

    Args:
        url: by default that of MTOSI_JMS_URL, else that of the configuration file.
            `memory:` or `memory:NAME`: a provider inside this process, the same for the same name.
            `stomp://USER:PASSWORD@HOST:PORT` or `stomp+ssl://...`: ActiveMQ or Artemis over STOMP;
            `failover:(stomp://A,stomp://B)`: the first of several that can be reached. `jndi:NAME`: the
            URL of a connection factory in `names` (P17), which a JMS URI names in `jndiConnectionFactoryName`.
            `jvm:NAME`: a connection factory of Java's JNDI, as is one of a JMS URI with `jndiInitialContextFactory`.
        environment: an environment of the configuration file (`transport.settings`); its values complete the call.
        names: a naming context, a mapping of name to destination, or a file: `jndi.properties` or TOML.
        telemetry: receives what the roles of the connection report, such as `mtosi_jms.telemetry.otel.OpenTelemetry`.
        options: options of the transport; times are in seconds. All transports take `client_id`, which identifies
            durable subscriptions; `jms_version`, the level of the provider's JMS API, 1.1 or later (R1); and for
            asynchronous sends `completion_timeout`, `strict_2012` and `on_completion_error`. In addition `memory:`
            takes the fields of `transport.memory.MemoryOptions`, `stomp:` those of `transport.stomp.StompOptions`, and
            `jvm:` those of `transport.jvm.JvmOptions`.

    Raises:
        ConfigError: the URL is missing, not text, or has an unknown scheme; the JMS version is too old; the names or
            the configuration file are wrong; or an option is unknown or of the wrong type.
        NamingError: the connection factory is not known.
        TransportError: the provider cannot be reached.
    """
    if url is None or environment is not None:
        meant = provider(url, environment=environment, names=names, given=options)
        url, names, options = meant.url, meant.names, {**meant.options, **options}
        if url is None:
            raise ConfigError(f"no URL: give one, or set {URL}, or name one in {FILE}")
    context = NamingContext.of(names)
    url, scheme = provider_url(url, context)
    # Where connecting fails, error trackers record what stands in the frames: no URL or option with a password may.
    given = Hidden((url, options))
    del url, options
    connection: Connection = import_module(PROVIDERS[scheme]).connect(given.value[0], context, given.value[1])
    if telemetry is not None and connection.server is not None:
        found = weakref.ref(connection)  # the telemetry must not keep the connection
        telemetry = telemetry.at(lambda: here.server if (here := found()) is not None else None)
    connection.telemetry = telemetry
    return connection


def provider_url(url: str, names: NamingContext) -> tuple[str, str]:
    """Return the URL of the provider itself, and its scheme, a key of `PROVIDERS`. `url`: as for `connect`. `names`:
    resolves a connection factory that the URL names. Raises ConfigError: the URL is not text, or its scheme is unknown;
    NamingError: the connection factory is not known."""
    _check_text(url)
    if is_jms_uri(url) and JmsUri.parse(url).parameters.get("jndiInitialContextFactory"):
        return url, "jvm"
    if (factory := _factory_name(url)) is not None:
        url = names.factory(factory)
    scheme, colon, _ = _FAILOVER.sub("", url).partition(":")
    if scheme.lower() not in PROVIDERS or not colon:
        shown = f"scheme {scheme!r}" if colon else "a URL without a scheme"  # the rest may hold a password
        known = ", ".join(f"{name}:" for name in PROVIDERS)
        if scheme.lower() in _OF_JAVA and colon:
            hint = "use STOMP, or its Java client by a URL that begins with jvm:, as mtosi-jms broker up prints"
        elif scheme.lower() in _OF_IBM:
            hint = "IBM MQ is jvm:ibm-mq?host=HOST&port=1414&channel=CHANNEL&queue_manager=NAME"
        else:
            near = get_close_matches(scheme.lower(), PROVIDERS, 1) if colon else []
            meant = f"did you mean {near[0]}:? " if near else ""
            hint = f"{meant}use one of {known}, such as stomp://HOST:PORT"
        raise ConfigError(f"{shown} is not supported; {hint}")
    return url, scheme.lower()


def _check_text(url: object) -> None:
    if isinstance(url, Connection):
        raise ConfigError(
            "a URL such as 'memory:' or 'stomp://host:61613' is needed here, not a connection, which is open already: "
            "give it to a Requestor, Supplier, Publisher or Subscriber"
        )
    if not isinstance(url, str):
        raise ConfigError(f"a URL must be text such as 'memory:' or 'stomp://host:61613', not {type(url).__name__}")


def _factory_name(url: str) -> str | None:
    """Return the name of the connection factory in a URL; None for a provider's own URL."""
    scheme, _, name = url.partition(":")
    if scheme.lower() == "jndi":
        return name
    if not is_jms_uri(url):
        return None
    found = JmsUri.parse(url).connection_factory
    if found is None:
        raise ConfigError("a JMS URI opens a connection only with the parameter jndiConnectionFactoryName")
    return found
