"""ActiveMQ Classic and ActiveMQ Artemis over STOMP: `stomp://`, `stomp+ssl://`, `failover:(...)`.

A frame goes one way, by one verb: `StompSession.send`, `Channel.send` (which link), `Link.send` (which receipt),
`FrameWriter.send` (with what else), `Wire.send` (the socket). `send_soon` beside it waits for nothing.

Of stomp.py the life of a connection is used (`BaseTransport`: its thread, its beginning and its end). Why the rest is
our own: its socket sets no TCP_NODELAY, sends without a deadline, and over TLS writes in the thread that reads, where
one call from a listener stops both for good. It cuts a frame of 2 kB with 15 headers in 50 microseconds, here it takes
8; a large frame it looks through from the beginning whenever more of it has come; and it damages headers from Java that
hold characters beyond U+FFFF. Its receipts tell nothing of refusals, and its heart-beats end no connection that a send
blocks. Its listeners, and its `StompConnection12`, stand on these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtosi_jms.jms import NamingContext
from mtosi_jms.transport.stomp._connection import StompConnection
from mtosi_jms.transport.stomp._options import Address, StompOptions, parse_url

__all__ = ["Address", "StompConnection", "StompOptions", "connect", "parse_url"]


def connect(url: str, names: NamingContext, options: Mapping[str, Any]) -> StompConnection:
    """Serves `connect("stomp://...")`.

    Raises:
        LoginRefusedError: the login is refused.
        ConfigError: an address or an option at fault, or the client id is in use.
        MissingExtraError: stomp.py is not installed.
        TransportError: no broker can be reached.
    """
    addresses, checked = parse_url(url, options)
    return StompConnection(addresses, checked, names)
