"""Transport to every JMS provider with a Java client, by JNDI: `jvm:NAME`, and JMS URIs with `jndi...` parameters. The
client runs in a Java virtual machine inside this process (JPype), so types, message ids, transactions and browsing are
its own."""

from __future__ import annotations

from collections.abc import Mapping

from mtosi_jms.jms import NamingContext
from mtosi_jms.transport.jvm._connection import JvmConnection
from mtosi_jms.transport.jvm._options import JvmOptions, parse_url

__all__ = ["JvmConnection", "JvmOptions", "connect"]


def connect(url: str, names: NamingContext, options: Mapping[str, object]) -> JvmConnection:
    """Serves `connect("jvm:...")`. Raises LoginRefusedError; NamingError: JNDI does not know the connection factory;
    ConfigError: an option is wrong, Java or a class is missing, or the client id is in use; MissingExtraError: JPype is
    not installed; TransportError: the provider cannot be reached."""
    lookup, checked = parse_url(url, options)
    del url, options  # error trackers record what stands in frames
    return JvmConnection(lookup, checked, names)
