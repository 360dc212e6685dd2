"""An HTTP server, in a thread of its own, for an endpoint or another application. A client holds no connection without
asking, and takes its answers in time."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
import threading
from asyncio.sslproto import SSLProtocol
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Protocol, Self

from mtosi_jms.errors import ConfigError, IllegalStateError, MissingExtraError, TransportError
from mtosi_jms.gateway._bodies import PIECE, load_certificate
from mtosi_jms.gateway._endpoint import HttpOptions

try:
    import uvicorn
    from h11 import LocalProtocolError
    from starlette.responses import PlainTextResponse
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise MissingExtraError("uvicorn", "http") from error

log = logging.getLogger(__package__)

_READ: Final = 1024
"""Octets that are read at a time. The event loop reads up to 32 times before others have their turn, and in chunks of
one octet these take a fifth of a second."""
_READ_LENGTH: Final = 64 * 1024
"""The same for the body of a request that says its length."""
_FRAMING: Final = 8 * 1024
"""Octets of the sizes of chunks that any request may have; larger ones may have an eighth of their content."""
_UNASKED: Final = 64 * 1024
"""Octets without a request: more than headers may have, and more than one turn."""
_SHORT: Final = 4
"""Digits of a length that is not worth a large buffer."""
_KEY: Final = "mtosi_connection"
_SOON: Final = 1.0
"""Seconds that a new connection has to ask, and after which the log tells of clients for the first time."""
_OFTEN: Final = 60.0
"""Seconds between two lines of the log that say the same of clients."""


class Connections:
    """The connections of a server. `most`: how many there may be; twice as many for a moment. A further one takes the
    place of the one that has asked. `patience`: seconds that a connection may be without a request, or take for a piece
    of its answer."""

    def __init__(self, most: int, patience: float) -> None:
        self.most = most
        self.patience = patience
        self.busy = 0
        self.open: set[Connection] = set()
        self.waiting: dict[Connection, float] = {}
        """Those without a request, and since when: the one that has asked nothing for longest first."""
        self._told: Counter[str] = Counter()
        self._telling: asyncio.TimerHandle | None = None
        self._last = -_OFTEN

    def served(self, app: ASGIApp) -> ASGIApp:
        """An application whose requests these connections see."""

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            connection: Connection = scope["state"][_KEY]
            connection.begin(scope)
            answer = app
            if self.busy > self.most:
                self.tell("more requests at a time than connections are allowed: status 503")
                answer = _BUSY
            try:
                await answer(scope, connection.receiving(receive), connection.sending(send))
            finally:
                connection.end()

        return watched

    def make_room(self, now: float) -> None:
        """End connections without a request if there are too many; a new one has a moment to ask, if it can."""
        while self.waiting and (over := len(self.open) - self.most) > 0:
            oldest, since = next(iter(self.waiting.items()))
            if over <= self.most and now - since < _SOON:
                return
            self.forget(oldest)
            oldest.abort()
            self.tell(f"more than {self.most} connections: one without a request was closed")

    def forget(self, connection: Connection) -> None:
        self.open.discard(connection)
        self.waiting.pop(connection, None)

    def tell(self, what: str) -> None:
        """Log what a client did, soon, and what clients do again and again once a minute, with how often."""
        self._told[what] += 1
        if self._telling is None:
            loop = asyncio.get_running_loop()
            wait = _SOON if loop.time() - self._last > _OFTEN else _OFTEN
            self._telling = loop.call_later(wait, self._tell, loop)

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        self._telling, self._last = None, loop.time()
        self.flush()

    def flush(self) -> None:
        """Log what is not logged yet."""
        for what, times in self._told.items():
            log.warning("%s (%d times)", what, times)
        self._told.clear()


_BUSY: Final = PlainTextResponse("too many requests at a time\n", 503, {"Retry-After": "1"})


class Connection(asyncio.BufferedProtocol):
    """A connection. The server's own protocol speaks HTTP; this one sees to turns and time."""

    def __init__(self, all_: Connections, *, app_state: Mapping[str, Any], **server: Any) -> None:
        self._all = all_
        self._http = H11Protocol(app_state={**app_state, _KEY: self}, **server)
        self._small = self._buffer = bytearray(_READ)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._gone = asyncio.Event()
        self._is_paused = False
        self._requests = 0
        self._came = 0
        """Octets since a request began, or since one was answered."""

    def accepted(self, transport: asyncio.Transport) -> None:
        """Count the connection, which TLS may still have to secure."""
        self._transport = transport
        self._all.make_room(self._loop.time())
        self._all.open.add(self)
        self._wait()

    def ended(self) -> None:
        self._all.forget(self)
        self._unwatch()
        self._gone.set()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.BaseProtocol`, as for the methods below."""
        if self not in self._all.open:
            self.accepted(transport)
        self._transport = transport
        self._http.connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended()
        self._http.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)  # of a bytearray itself, TLS would fill copies of its parts

    def buffer_updated(self, nbytes: int) -> None:
        self._came += nbytes
        if not self._requests and self._came > _UNASKED:  # the rest of a refused request, not worth parsing
            self._watch(min(_SOON, self._until - self._loop.time()))
            return
        try:
            self._http.data_received(bytes(memoryview(self._buffer)[:nbytes]))
        except LocalProtocolError:  # what is not HTTP, while an answer is under way
            self._transport.abort()

    def eof_received(self) -> None:
        self._http.eof_received()

    def pause_writing(self) -> None:
        self._is_paused = True
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._http.resume_writing()

    def abort(self) -> None:
        """End it, whatever it was about."""
        self._transport.abort()

    def begin(self, scope: Scope) -> None:
        """A request is there: the application has its own times."""
        if any(name == b"content-length" and len(value) > _SHORT for name, value in scope["headers"]):
            self._buffer = bytearray(_READ_LENGTH)
        self._requests += 1
        self._came = 0
        self._all.busy += 1
        self._all.waiting.pop(self, None)
        self._unwatch()

    def end(self) -> None:
        """It is answered; the rest of the answer may be on its way."""
        self._requests -= 1
        self._all.busy -= 1
        if not self._requests and self in self._all.open:
            self._wait()

    def receiving(self, receive: Receive) -> Receive:
        """What receives a request, and ends the connection if that comes in chunks of a few octets: each costs as much
        time as a large one."""
        content = 0

        async def counted() -> Message:
            nonlocal content
            message = await receive()
            content += len(message.get("body", b""))
            if self._came > _FRAMING + content + content // 8:
                self._all.tell("a request in very small chunks: the connection was closed")
                self.abort()
            return message

        return counted

    def sending(self, send: Send) -> Send:
        """What sends an answer, piece by piece, and ends the connection if the client does not take a piece in time."""

        async def in_pieces(message: Message) -> None:
            body = message.get("body", b"")
            for at in range(0, len(body) or 1, PIECE):
                part = message
                if len(body) > PIECE:
                    more = message.get("more_body", False) or at + PIECE < len(body)
                    part = {**message, "body": body[at : at + PIECE], "more_body": more}
                if self._is_paused:  # otherwise nothing waits for the client
                    self._watch(self._all.patience)
                try:
                    await send(part)
                except LocalProtocolError:  # what the client sent last is not HTTP: it has had its 400 already
                    self.abort()
                    await self._gone.wait()
                finally:
                    self._unwatch()

        return in_pieces

    def _wait(self) -> None:
        now = self._loop.time()
        self._all.waiting[self] = now
        self._buffer, self._came = self._small, 0
        self._until = now + self._all.patience
        self._watch(self._all.patience)

    def _watch(self, seconds: float) -> None:
        self._unwatch()
        self._timer = self._loop.call_later(seconds, self._transport.abort)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class SecureConnection(SSLProtocol):
    """TLS around a connection, which counts and is closed in time also while nobody completes the handshake."""

    def __init__(self, all_: Connections, tls: ssl.SSLContext, **server: Any) -> None:
        self._counted = Connection(all_, **server)
        loop = asyncio.get_running_loop()
        waits: Any = None  # nobody does
        super().__init__(loop, self._counted, tls, waits, server_side=True)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._counted.accepted(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._counted.ended()  # without a handshake nobody else says so


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
