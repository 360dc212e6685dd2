"""An HTTP server, in a thread of its own, for an endpoint or another application."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
import threading
from functools import partial
from typing import Any, Final, Protocol, Self

from mtosi_jms.errors import ConfigError, IllegalStateError, MissingExtraError, TransportError
from mtosi_jms.gateway._certificates import load_certificate
from mtosi_jms.gateway._connections import Connection, Connections, SecureConnection
from mtosi_jms.gateway._endpoint import HttpOptions

try:
    import uvicorn
    from starlette.types import Receive, Scope, Send
except ImportError as error:
    raise MissingExtraError("uvicorn", "http") from error

log = logging.getLogger(__package__)

_START: Final = 30.0
_KEEP_ALIVE: Final = 5
_BACKLOG: Final = 2048
_SAYS: Final = "uvicorn.error"
"""Where uvicorn logs all but requests."""


class Application(Protocol):
    """What a server serves: an ASGI application, such as an `Endpoint`. `public_url`: its URL; if that is empty, the
    server sets it, unless it listens at all addresses."""

    options: HttpOptions
    public_url: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class HttpServer:
    """Serves an endpoint, or another application, over HTTP/1.1. `host`, `port`: address at which it listens; port 0: a
    free port. `certificate`, `key`: files of TLS; None: plain HTTP. Raises TransportError: it cannot listen at that
    address; ConfigError: a certificate cannot be used."""

    def __init__(
        self,
        endpoint: Application,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        certificate: str | None = None,
        key: str | None = None,
    ) -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if certificate is not None else None
        if tls is not None and certificate is not None:
            load_certificate(tls, certificate, key)
        elif key is not None:
            raise ConfigError("key: it needs a certificate")
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._socket = socket.create_server((host, port), family=family, backlog=_BACKLOG)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # its connections inherit the option
        except (OSError, OverflowError) as error:
            raise TransportError(f"{host}:{port}: cannot listen: {error}") from None
        found = self._socket.getsockname()
        shown = f"[{found[0]}]" if ":" in found[0] else found[0]
        self.url = f"{'https' if certificate else 'http'}://{shown}:{found[1]}"
        if not endpoint.public_url and not ipaddress.ip_address(found[0]).is_unspecified:
            endpoint.public_url = self.url
        self._connections = Connections(endpoint.options.connections, endpoint.options.read_timeout)
        http: Any = partial(Connection, self._connections)
        if tls is not None:
            http = partial(SecureConnection, self._connections, tls)
        config = uvicorn.Config(
            self._connections.served(endpoint),
            http=http,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # a client can write anything into X-Forwarded-For
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=5,
        )
        config.load()
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="mtosi-http", daemon=True)

    def _run(self) -> None:
        said = logging.getLogger(_SAYS)
        said.addFilter(self._say)
        try:
            with asyncio.Runner(loop_factory=self._server.config.get_loop_factory()) as runner:
                runner.run(self._server.serve(sockets=[self._socket]))
        finally:
            said.removeFilter(self._say)
            self._connections.flush()

    def _say(self, record: logging.LogRecord) -> bool:
        """Log what uvicorn logs of this server as the gateway's; leave that of others alone."""
        if record.thread != self._thread.ident:
            return True
        text = record.getMessage().strip()
        if record.levelno > logging.WARNING:
            log.error("the HTTP server: %s", text, exc_info=record.exc_info)
        elif record.levelno == logging.WARNING and "pgrade" not in text and "WebSocket" not in text:
            # Java's HTTP client proposes HTTP/2 with each request, and then goes on with HTTP/1.1.
            self._connections.tell(text)
        return False

    def start(self) -> Self:
        """Starts to serve.

        Raises IllegalStateError: it was started before; TransportError: it does not start in time.
        """
        if self._thread.ident is not None:
            raise IllegalStateError(f"{self.url}: the server was started before")
        self._thread.start()
        waiting = threading.Event()
        for _ in range(int(_START / 0.01)):
            if self._server.started:
                return self
            if not self._thread.is_alive():
                break
            waiting.wait(0.01)
        self.stop()
        raise TransportError(f"{self.url}: the server did not start")

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def stop(self, wait: float = 10.0) -> None:
        """Answers the requests in progress, and ends. `wait`: seconds for those requests."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(wait)
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
