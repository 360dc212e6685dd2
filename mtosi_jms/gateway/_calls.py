"""Connections to an HTTP peer whose calls have a bound in all: the HTTP client bounds each read and write alone."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any, Final

from mtosi_jms.errors import MissingExtraError

try:
    import httpcore
    import httpx
except ImportError as error:
    raise MissingExtraError("httpx", "http") from error

_AT_ONCE: Final = 1 << 16
"""Octets that are written at a time."""
_AROUND: Final = 1 << 20
"""Octets that the headers of an answer and the sizes of its chunks may have."""
_KEPT: Final = 100


class CallsTransport(httpx.HTTPTransport):
    """Sends requests over connections of its own. A call ends in time, whatever comes: headers that trickle, interim
    answers without end, chunks without content.
    """

    def __init__(self, trust: ssl.SSLContext) -> None:
        self._bounds = _Bounds()
        self._pool = httpcore.ConnectionPool(
            ssl_context=trust,
            max_connections=None,
            max_keepalive_connections=_KEPT,
            keepalive_expiry=5.0,
            network_backend=_Network(self._bounds),
        )

    def begin(self, seconds: float, octets: int) -> None:
        """Begin a call of this thread. `octets`: how long the content of its answer may be, as it comes."""
        self._bounds.until = time.monotonic() + seconds
        self._bounds.octets = octets + _AROUND


class _Bounds(threading.local):
    """What is left for the call of a thread: until when, and how many octets of an answer."""

    until: float = 0.0
    octets: int = 0

    def seconds(self) -> float:
        """How long the next step may take."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("the call took too long")
        return left


class _Network(httpcore.SyncBackend):
    def __init__(self, bounds: _Bounds) -> None:
        self._bounds = bounds

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        stream = super().connect_tcp(host, port, self._bounds.seconds(), local_address, socket_options)
        return _Stream(stream, self._bounds)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, bounds: _Bounds) -> None:
        self._stream = stream
        self._bounds = bounds

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._stream.read(max_bytes, self._bounds.seconds())
        self._bounds.octets -= len(data)
        if self._bounds.octets < 0:
            raise httpcore.ReadError("the answer is larger than allowed")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for at in range(0, len(buffer), _AT_ONCE):
            self._stream.write(buffer[at : at + _AT_ONCE], self._bounds.seconds())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._bounds.seconds())
        return _Stream(stream, self._bounds)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
