"""The socket below stomp.py: encrypted or not, never blocking without an end, with an eye on the signs of life.

stomp.py keeps the life of the connection: its thread, its beginning and its end. Its own socket sets no TCP_NODELAY,
sends without a deadline, and over TLS writes in the thread that reads, where one call from a listener stops both for
good; so this one takes its place, and cuts the stream by `frames.FrameReader`, which is faster.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from mtosi_jms.errors import MissingExtraError, TransportError, WriteError
from mtosi_jms.transport.stomp._frames import FrameReader, Received
from mtosi_jms.transport.stomp.options import Address

_SCAN: Final = "STOMP_SKIP_HOSTNAME_SCAN"
_scanned = os.environ.get(_SCAN)
os.environ[_SCAN] = "1"  # or the import asks the name service for this host, which may take seconds
try:
    from stomp.transport import BaseTransport
except ImportError as missing:
    raise MissingExtraError("stomp.py", "stomp") from missing
finally:
    if _scanned is None:
        del os.environ[_SCAN]
    else:
        os.environ[_SCAN] = _scanned

_CHUNK: Final = 65_536
_QUICKLY: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)
"""Of Linux; it holds for the next acknowledgements alone."""
_SHORT: Final = 1.0
"""Seconds that a writer waits at least for one who writes a sign of life, or what it was handed would be gone."""


class Wire(BaseTransport):  # type: ignore[misc]
    """One TCP connection to one broker.

    Args:
        address: of the broker.
        tls: for an encrypted one.
        connect_timeout: seconds for TCP and TLS together.
        send_timeout: seconds in which a frame must be written.
        on_frames: called with the frames that came at once, in the thread that reads; it must not block.
        on_nonsense: called, in that thread, where what came is no STOMP; it ends the connection.
        on_lost: called once, in that thread, when nothing more comes.

    Attributes:
        heard: when something was received last, by the monotonic clock.
        said: when something was sent last.
        failure: what TLS failed with after the handshake, where TLS 1.3 tells what it thinks of a certificate.
    """

    failure: ssl.SSLError | None = None

    def __init__(
        self,
        address: Address,
        tls: ssl.SSLContext | None,
        *,
        connect_timeout: float,
        send_timeout: float,
        on_frames: Callable[[list[Received]], None],
        on_nonsense: Callable[[TransportError], None],
        on_lost: Callable[[], None],
    ) -> None:
        super().__init__(auto_decode=False)
        self._address = address
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._send_timeout = send_timeout
        self._on_frames = on_frames
        self._on_nonsense = on_nonsense
        self._on_lost = on_lost
        self._writing = threading.Lock()
        # OpenSSL wants one call at a time; a plain socket reads and writes at once.
        self._calling: Any = threading.Lock() if tls is not None else contextlib.nullcontext()
        self._no_wait = 0 if tls is not None else int(getattr(socket, "MSG_DONTWAIT", 0))
        self._over = False
        self._written = 0
        self.heard = self.said = time.monotonic()
        self.override_threading(self._reader)

    def attempt_connection(self) -> None:
        """Connects; called by `start`.

        Raises:
            OSError: it cannot be reached, or it is not whom it should be (ssl.SSLError).
        """
        deadline = time.monotonic() + self._connect_timeout
        host, port = self._address.host, self._address.port
        plain = _reach(host, port, deadline)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.settimeout(max(deadline - time.monotonic(), 0.001))
            self.socket = plain if self._tls is None else self._tls.wrap_socket(plain, server_hostname=host)
            # Then reading takes one call in place of three; where a call cannot be told not to wait, none ever does.
            self.socket.setblocking(self._no_wait != 0)
            if self._over:
                raise OSError("it was closed meanwhile")
        except BaseException:
            plain.close()
            raise
        self.current_host_and_port = (host, port)
        self._readable, self._writable = selectors.DefaultSelector(), selectors.DefaultSelector()
        self._readable.register(self.socket, selectors.EVENT_READ)
        self._writable.register(self.socket, selectors.EVENT_WRITE)

    def send(self, encoded_frame: bytes, deadline: float | None = None) -> None:
        """Writes frames.

        Args:
            encoded_frame: one or more.
            deadline: by the monotonic clock, at most the send time-out from now; None: that.

        Raises:
            WriteError: not to the end: the time ran out, or the connection is lost. What was begun and not ended makes
                it of no use any more; who found another frame under way leaves that to its writer.
        """
        latest = time.monotonic() + self._send_timeout
        deadline = latest if deadline is None else min(deadline, latest)
        if not self._writing.acquire(timeout=max(deadline - time.monotonic(), _SHORT)):
            raise WriteError(f"{self._address}: another frame was not written in time; not sent")
        try:
            self._write(memoryview(encoded_frame), deadline)
        except OSError as error:
            if isinstance(error, WriteError):
                raise
            reason = error.strerror or type(error).__name__ if self.running else "the connection was lost"
            raise self._given_up(reason) from error
        except BaseException as error:  # KeyboardInterrupt: nobody's frame may go on where this one was broken off
            self.disconnect_socket()
            error.written = self._written  # type: ignore[attr-defined]
            raise
        finally:
            self._writing.release()

    def beat(self, sign: bytes) -> None:
        """Writes a sign of life, unless somebody is writing anyway, or a slow broker has left no room for it."""
        if self._writing.acquire(blocking=False):
            try:
                with contextlib.suppress(OSError, ValueError):
                    if self._writable.select(0):
                        self._write(memoryview(sign), time.monotonic())
            finally:
                self._writing.release()

    def receive(self) -> bytes:
        """Reads to the end, and hands on the frames that come; called by stomp.py in its thread.

        Nothing is logged: frames hold credentials.
        """
        reader = FrameReader()
        room = memoryview(bytearray(_CHUNK))
        while size := self._receive_into(room):
            self.heard = time.monotonic()
            try:
                frames = reader.feed(room[:size])
            except TransportError as error:
                self._on_nonsense(error)
                break
            if reader.is_inside:
                self._ask_for_the_rest()
            if frames:
                self._on_frames(frames)
        return b""

    def _receive_into(self, room: memoryview) -> int:
        """How many bytes came, waited for; 0 at the end."""
        while self.running:
            try:
                with self._calling:
                    return int(self.socket.recv_into(room))
            except (BlockingIOError, ssl.SSLWantReadError):
                self._readable.select()
            except ssl.SSLWantWriteError:
                self._writable.select()
            except (OSError, ValueError) as error:
                if isinstance(error, ssl.SSLError):
                    self.failure = error
                break
        return 0

    def _ask_for_the_rest(self) -> None:
        """Acknowledges what came of a frame at once. ActiveMQ keeps the end of one until then (Nagle), and the system
        would let it wait for 40 ms."""
        with contextlib.suppress(OSError):
            if _QUICKLY is not None:
                self.socket.setsockopt(socket.IPPROTO_TCP, _QUICKLY, 1)

    def notify(self, frame_type: str, frame: Any = None) -> None:
        """What stomp.py would tell its listeners: the end is all that counts here."""
        if frame_type == "disconnected":
            self.notified_on_disconnect = True
            self.cleanup()  # which stomp.py leaves out where the end came before its thread began
            self._on_lost()

    def is_connected(self) -> bool:
        """Whether it may still be used."""
        return bool(self.running)

    def disconnect_socket(self) -> None:
        """Ends the connection; the thread that reads comes to its end and closes the socket."""
        self._over = True
        self.running = False
        with contextlib.suppress(OSError, ValueError, AttributeError):
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)

    def cleanup(self) -> None:
        """Closes the socket; called by stomp.py at the end of its thread."""
        self.disconnect_socket()
        with self._writing:  # who waits for room there is woken by the above, and would not be by closing alone
            for selector in (self._readable, self._writable):
                selector.close()
            with contextlib.suppress(OSError):
                self.socket.close()

    def _reader(self, run: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=run, name=f"stomp-{self._address.host}", daemon=True)
        thread.start()
        return thread

    def _write(self, data: memoryview, deadline: float) -> None:
        self._written = 0
        while self._written < len(data):
            try:
                with self._calling:
                    self._written += self._send_some(data[self._written :])
                self.said = time.monotonic()
            except (BlockingIOError, ssl.SSLWantWriteError):
                if not self._writable.select(max(deadline - time.monotonic(), 0)) and time.monotonic() >= deadline:
                    raise self._given_up("the broker took nothing any more, and the time ran out") from None
            except ssl.SSLWantReadError:
                self._readable_for_writer(deadline)
            except ValueError as error:  # closed by the other thread
                raise self._given_up("the connection was lost") from error

    def _send_some(self, rest: memoryview) -> int:
        # TLS takes no flags, not even none.
        return int(self.socket.send(rest, self._no_wait) if self._no_wait else self.socket.send(rest))

    def _readable_for_writer(self, deadline: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            selector.select(max(deadline - time.monotonic(), 0))

    def _given_up(self, reason: str) -> WriteError:
        self.disconnect_socket()
        error = WriteError(f"{self._address}: {reason}")
        error.written = self._written
        return error


def _reach(host: str, port: int, deadline: float) -> socket.socket:
    """A TCP connection; the addresses of a host share the time that is left."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failure: OSError | None = None
    for number, (*_, where) in enumerate(found):
        left = max(deadline - time.monotonic(), 0.001)
        try:
            return socket.create_connection((str(where[0]), port), left / (len(found) - number))
        except OSError as error:
            failure = error
    raise failure or OSError("a host without an address")
