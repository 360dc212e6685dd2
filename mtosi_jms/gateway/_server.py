"""An HTTP server, in a thread of its own, for an endpoint or another application."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import threading
from types import TracebackType
from typing import ClassVar, Final, Protocol, Self

from mtosi_jms.errors import ConfigError, MissingExtraError, TransportError
from mtosi_jms.gateway._certificates import load_certificate
from mtosi_jms.gateway._endpoint import HttpOptions

try:
    import h11
    import uvicorn
    from starlette.types import Receive, Scope, Send
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise MissingExtraError("uvicorn", "http") from error

_START: Final = 30.0
_KEEP_ALIVE: Final = 5
_BACKLOG: Final = 2048


class _Impatient(H11Protocol):
    """Closes a connection if its first request does not begin in time, if the headers of a request do not end in time,
    if it goes on sending a request that is already answered, or if it reads nothing of its answer."""

    patience: ClassVar[float]
    _watch: asyncio.TimerHandle | None = None
    _had_part = False
    _unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch = self.loop.call_later(self.patience, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def _unsupported_upgrade_warning(self) -> None:
        """Logs nothing: Java's HTTP client proposes HTTP/2 with each request and then goes on with HTTP/1.1."""

    def send_400_response(self, msg: str) -> None:
        """Answers data that is not HTTP; closes the connection if the response to a request has begun."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def _look(self) -> None:
        """Closes the connection if the last look found the same: incomplete headers, the body of an answered request,
        or octets that the client does not read."""
        cycle: object = self.cycle
        begins = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        goes_on = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        has_part = begins or goes_on
        if cycle is None or (has_part and self._had_part):
            self.transport.close()
            return
        unsent, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        if 0 < unsent == self._unsent:
            self.transport.abort()
            return
        self._had_part = has_part
        self._watch = self.loop.call_later(self.patience, self._look)


class Application(Protocol):
    """What a server serves: an ASGI application, such as an `Endpoint`.

    Attributes:
        options: options; the server uses only `read_timeout`.
        public_url: its URL; if that is empty, the server sets it, unless it listens at all addresses.
    """

    options: HttpOptions
    public_url: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What an ASGI server calls."""


class HttpServer:
    """Serves an endpoint, or another application, over HTTP/1.1.

    Args:
        endpoint: the application that answers.
        host, port: address at which it listens; port 0: a free port.
        certificate, key: files of TLS; None: plain HTTP.

    Attributes:
        url: its URL.

    Raises:
        TransportError: it cannot listen at that address.
        ConfigError: a certificate cannot be used.
    """

    def __init__(
        self,
        endpoint: Application,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        certificate: str | None = None,
        key: str | None = None,
    ) -> None:
        if certificate is not None:
            load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate, key)
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
        config = uvicorn.Config(
            endpoint,
            http=type("Impatient", (_Impatient,), {"patience": endpoint.options.read_timeout}),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # a client can write anything into X-Forwarded-For
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=5,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        config.load()
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="mtosi-http", daemon=True)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=self._server.config.get_loop_factory()) as runner:
            runner.run(self._server.serve(sockets=[self._socket]))

    def start(self) -> Self:
        """Starts to serve.

        Raises:
            TransportError: the server did not start in time.
        """
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
        """Whether it serves."""
        return self._thread.is_alive()

    def stop(self, wait: float = 10.0) -> None:
        """Answers the requests in progress, and ends.

        Args:
            wait: seconds for those requests.
        """
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(wait)
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
