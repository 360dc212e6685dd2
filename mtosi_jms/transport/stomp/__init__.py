"""Transport to ActiveMQ Classic and ActiveMQ Artemis over STOMP: `stomp://`, `stomp+ssl://`, `failover:(...)`.

A frame passes through `StompSession.send`, `Channel.send` (chooses the link), `Link.send` (adds the receipt),
`FrameWriter.send` (combines frames) and `Wire.send` (the socket).

Of stomp.py only `BaseTransport` is used: the thread, start and end of a connection. Its socket does not set TCP_NODELAY
and sends without a deadline; over TLS it writes in the reading thread, where one call from a listener blocks both for
good. Its parser takes six times as long, scans a large frame anew whenever more data comes, and damages headers from
Java beyond U+FFFF. Its receipts do not report refusals, and its heart-beats do not end a connection on which a send
blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtosi_jms.jms import NamingContext
from mtosi_jms.transport.stomp._options import Address, StompOptions, parse_url
from mtosi_jms.transport.stomp._session import StompConnection

__all__ = ["Address", "StompConnection", "StompOptions", "connect", "parse_url", "time_limits"]


def connect(url: str, names: NamingContext, options: Mapping[str, Any]) -> StompConnection:
    """Serves `connect("stomp://...")`. Raises LoginRefusedError; ConfigError: an address or an option is wrong, or the
    client id is in use; MissingExtraError: stomp.py is not installed; TransportError: no broker can be reached."""
    addresses, checked = parse_url(url, options)
    del url, options  # error trackers record what stands in frames
    return StompConnection(addresses, checked, names)


def time_limits(url: str, seconds: float) -> dict[str, float]:
    """Return the options that bound connecting, to all brokers of a URL in turn, and sending to so many seconds."""
    addresses, options = parse_url(url, {})
    return {
        "connect_timeout": min(options.connect_timeout, seconds / len(addresses)),
        "send_timeout": min(options.send_timeout, seconds),
    }
