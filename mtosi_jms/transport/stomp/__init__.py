"""ActiveMQ Classic and ActiveMQ Artemis over STOMP: `stomp://`, `stomp+ssl://`, `failover:(...)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtosi_jms.jms import NamingContext
from mtosi_jms.transport.completion import OPTIONS, SendRules
from mtosi_jms.transport.stomp._connection import StompConnection
from mtosi_jms.transport.stomp.options import StompOptions, parse_url

__all__ = ["StompConnection", "StompOptions", "connect"]


def connect(url: str, names: NamingContext, options: Mapping[str, Any]) -> StompConnection:
    """Serves `connect("stomp://...")`.

    Raises:
        LoginRefusedError: the login is refused.
        ConfigError: an address or an option at fault, or the client id is in use.
        MissingExtraError: stomp.py is not installed.
        TransportError: no broker can be reached.
    """
    rules = SendRules.of(options)
    own = {name: value for name, value in options.items() if name not in OPTIONS}
    addresses, checked = parse_url(url, own)
    return StompConnection(addresses, checked, names, rules)
