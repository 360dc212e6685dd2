"""The pages for a monitor, served by a thread: `/healthz`, `/readyz` and `/metrics`."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.closing import Closeable
from mtosi_jms.errors import TransportError

log: Final = logging.getLogger("mtosi_jms.telemetry")

_PATIENCE: Final = BOUNDS.monitor_read
"""Seconds that a client may take for its request and the page."""
_MOST: Final = BOUNDS.monitor_connections
"""Most connections; a further one takes the place of the oldest."""
_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^][:/?#@\\]*)(?::[0-9]*)?")
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


def is_own_host(host: str, names: Collection[str] = ()) -> bool:
    """Whether the Host of a request may be a server's own: an address, `localhost`, or a name that it was told.

    Any other name may belong to a web site that has it point to this computer (DNS rebinding), so that the pages of the
    site reach the server through the browser of somebody who may.

    Args:
        host: the value of the header, with or without a port.
        names: the names of the server, in lower case.
    """
    found = _HOST.fullmatch(host.lower())
    if found is None:  # a path behind the port, say, which libraries take for the path of the request
        return False
    name = found[1].strip("[]")
    if name == "localhost" or name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Monitor(Closeable):
    """Serves `/healthz`, `/readyz` and `/metrics` over HTTP, to whoever may reach the address.

    `/healthz` answers 200 as long as the process can answer. `/readyz` answers 200, or 503 with the reason if
    `why_not_ready` returns one, such as a lost broker or a role that has ended. `/metrics` returns the text of
    `metrics` for Prometheus, or 404 without it.

        with Monitor(why_not_ready=lambda: None if connection.is_up else "the broker is lost") as monitor:
            print(monitor.url)

    Args:
        host, port: where it listens; by default on the loopback interface. Port 0: a free port.
        why_not_ready: returns why work cannot be done at the moment, None if it can. Called in any thread.
        host_names: names by which clients may call it, besides addresses and `localhost`; see `is_own_host`.
        metrics: returns the text of `/metrics`, such as `Metrics.prometheus`; None: there is no such page.

    Raises:
        TransportError: it cannot listen there.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        why_not_ready: Callable[[], str | None] = lambda: None,
        metrics: Callable[[], bytes] | None = None,
        host_names: Collection[str] = (),
    ) -> None:
        self.host_names = frozenset(name.lower() for name in host_names)
        self.why_not_ready = why_not_ready
        self.metrics = metrics
        kind = type("Server", (_Server,), {"address_family": socket.AF_INET6 if ":" in host else socket.AF_INET})
        try:
            self._server = kind((host, port), self)
        except (OSError, OverflowError) as error:
            raise TransportError(f"{host}:{port}: cannot listen: {error}") from None
        found = self._server.server_address
        shown = f"[{found[0]}]" if ":" in str(found[0]) else str(found[0])
        self.url = f"http://{shown}:{found[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="mtosi-monitor", daemon=True)
        self._thread.start()

    def page(self, path: str) -> tuple[HTTPStatus, str, bytes]:
        """Return status, content type and octets of a page; an HTTP server of the application may use it too."""
        if path == "/healthz":
            return _json(HTTPStatus.OK, {"status": "up"})
        if path == "/readyz":
            reason = self.why_not_ready()
            if reason is None:
                return _json(HTTPStatus.OK, {"ready": True})
            return _json(HTTPStatus.SERVICE_UNAVAILABLE, {"ready": False, "reason": reason})
        if path == "/metrics" and self.metrics is not None:
            return HTTPStatus.OK, _TEXT, self.metrics()
        return _json(HTTPStatus.NOT_FOUND, {"error": "no such page; there are /healthz, /readyz and /metrics"})

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _json(status: HTTPStatus, facts: dict[str, Any]) -> tuple[HTTPStatus, str, bytes]:
    return status, "application/json", json.dumps(facts).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    block_on_close = False  # a client that sends nothing must not hold up the end

    def __init__(self, address: tuple[str, int], monitor: Monitor) -> None:
        self.monitor = monitor
        self._since: dict[socket.socket, float] = {}
        """When each open connection began, the oldest first."""
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._since[request] = time.monotonic()
            self._end(most=_MOST)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Ends connections that take too long; called twice a second."""
        with self._lock:
            self._end(most=len(self._since), before=time.monotonic() - _PATIENCE)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._since.pop(request, None)
        super().shutdown_request(request)

    def _end(self, most: int, before: float = 0.0) -> None:
        """Ends the oldest connections; their threads see that the client has gone."""
        while self._since and (len(self._since) > most or next(iter(self._since.values())) < before):
            oldest = next(iter(self._since))
            del self._since[oldest]
            with contextlib.suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log it at debug level only: a client that goes away before it has the page is not a failure."""
        log.debug("a page of the monitor was not delivered: %s", type(sys.exception()).__name__)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _PATIENCE
    server_version = "mtosi-jms"
    sys_version = ""

    def do_GET(self) -> None:
        host, monitor = self.headers.get("Host"), self.server.monitor
        try:
            if host is not None and not is_own_host(host, monitor.host_names):
                status, kind, data = _json(HTTPStatus.MISDIRECTED_REQUEST, {"error": "this name is not the monitor's"})
            else:
                status, kind, data = monitor.page(self.path.partition("?")[0])
        except Exception:
            log.exception("the monitor's page %s failed", self.path.partition("?")[0][:80])
            status, kind, data = _json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "the page failed"})
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_HEAD = do_GET  # noqa: N815 - the base class's name

    def log_message(self, format: str, *args: object) -> None:
        """Log no requests: a probe comes every few seconds."""
