"""The socket below stomp.py, with or without TLS, which never blocks without a limit; and the combined writes on it."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from mtosi_jms.errors import MissingExtraError, TransportError, WriteError
from mtosi_jms.transport.stomp._frames import FrameReader, Received
from mtosi_jms.transport.stomp._options import Address

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
_LATEST: Final = 0.005
"""Longest time in seconds that an acknowledgement waits."""
_MOST: Final = 1_024
"""Maximum bytes of waiting acknowledgements: about twenty, so that the broker gets them before its window is full."""
_MOST_SOON: Final = 65_536
"""Maximum bytes of waiting messages."""
_STAY: Final = 4
"""Looks without a frame after which the thread goes to sleep: waking it costs as much as several of them."""
_SHORT: Final = 1.0
"""Seconds that a writer waits at least for a sign of life that is being written; else its frame would be lost."""


class Wire(BaseTransport):  # type: ignore[misc]
    """One TCP connection to one broker.

    `on_frames` gets the frames that came together, `on_garbage` an error if the data is not STOMP, and `on_lost` is
    called once at the end; all in the reading thread, which they must not block. `awaits` tells whether somebody waits
    for a confirmation. `failure`: of TLS after the handshake, when TLS 1.3 reports a refused certificate."""

    failure: ssl.SSLError | None = None

    def __init__(
        self,
        address: Address,
        tls: ssl.SSLContext | None,
        *,
        connect_timeout: float,
        send_timeout: float,
        on_frames: Callable[[list[Received]], None],
        on_garbage: Callable[[TransportError], None],
        on_lost: Callable[[], None],
        awaits: Callable[[], bool],
    ) -> None:
        super().__init__(auto_decode=False)
        self._address = address
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._send_timeout = send_timeout
        self._on_frames = on_frames
        self._on_garbage = on_garbage
        self._on_lost = on_lost
        self._awaits = awaits
        self.writing = threading.Lock()
        # OpenSSL wants one call at a time; a plain socket reads and writes at once.
        self._calling: Any = threading.Lock() if tls is not None else contextlib.nullcontext()
        self._no_wait = 0 if tls is not None else int(getattr(socket, "MSG_DONTWAIT", 0))
        self._over = False
        self._written = 0
        self.last_read = self.last_written = time.monotonic()
        self.override_threading(self._reader)

    def attempt_connection(self) -> None:
        """Connects; called by `start`. Raises OSError, of TLS too (ssl.SSLError)."""
        deadline = time.monotonic() + self._connect_timeout
        host, port = self._address.host, self._address.port
        plain = _reach(host, port, deadline)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.settimeout(max(deadline - time.monotonic(), 0.001))
            self.socket = plain if self._tls is None else self._tls.wrap_socket(plain, server_hostname=host)
            # If a single call can be made not to wait, reading takes one call instead of three. Otherwise none waits.
            self.socket.setblocking(self._no_wait != 0)
            if self._over:
                raise OSError("it was closed meanwhile")
        except BaseException:
            plain.close()
            raise
        self.current_host_and_port = (host, port)
        self._readable, self.writable = selectors.DefaultSelector(), selectors.DefaultSelector()
        self._readable.register(self.socket, selectors.EVENT_READ)
        self.writable.register(self.socket, selectors.EVENT_WRITE)

    def send(self, encoded_frame: bytes, deadline: float | None = None) -> None:
        """Writes frames by the deadline and within the send time-out. Raises WriteError: not to the end. A frame begun
        and not ended ends the connection; one that found another under way leaves that to its writer."""
        latest = time.monotonic() + self._send_timeout
        deadline = latest if deadline is None else min(deadline, latest)
        if not self.writing.acquire(timeout=max(deadline - time.monotonic(), _SHORT)):
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
            self.writing.release()

    def beat(self, sign: bytes) -> None:
        """Writes a heart-beat, unless another thread is writing or a slow broker leaves no room for it."""
        if self.writing.acquire(blocking=False):
            try:
                with contextlib.suppress(OSError, ValueError):
                    if self.writable.select(0):
                        self._write(memoryview(sign), time.monotonic())
            finally:
                self.writing.release()

    def receive(self) -> bytes:
        """Hands on the frames that come; called by stomp.py in its thread. No log: frames hold credentials."""
        reader = FrameReader()
        room = memoryview(bytearray(_CHUNK))
        while size := self._receive_into(room):
            self.last_read = time.monotonic()
            try:
                frames = reader.feed(room[:size])
            except TransportError as error:
                self._on_garbage(error)
                break
            if reader.is_inside or self._awaits():
                self._request_the_rest()
            if frames:
                self._on_frames(frames)
        return b""

    def _receive_into(self, room: memoryview) -> int:
        while self.running:
            try:
                with self._calling:
                    return int(self.socket.recv_into(room))
            except (BlockingIOError, ssl.SSLWantReadError):
                self._readable.select()
            except ssl.SSLWantWriteError:
                self.writable.select()
            except (OSError, ValueError) as error:
                if isinstance(error, ssl.SSLError):
                    self.failure = error
                break
        return 0

    def _request_the_rest(self) -> None:
        """Acknowledges what came at once. ActiveMQ keeps the end of a frame until then (Nagle), and a receipt behind a
        message; the system would let it wait for 40 ms."""
        with contextlib.suppress(OSError):
            if _QUICKLY is not None:
                self.socket.setsockopt(socket.IPPROTO_TCP, _QUICKLY, 1)

    def notify(self, frame_type: str, frame: Any = None) -> None:
        """Called by stomp.py with events for its listeners; only the end of the connection matters here."""
        if frame_type == "disconnected":
            self.notified_on_disconnect = True
            self.cleanup()  # which stomp.py leaves out where the end came before its thread began
            self._on_lost()

    def is_connected(self) -> bool:
        return bool(self.running)

    def disconnect_socket(self) -> None:
        """Ends the connection; then the reading thread ends and closes the socket."""
        self._over = True
        self.running = False
        with contextlib.suppress(OSError, ValueError, AttributeError):
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)

    def cleanup(self) -> None:
        self.disconnect_socket()
        with self.writing:  # the above wakes a writer that waits for room; closing alone would not
            for selector in (self._readable, self.writable):
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
            # The system still takes data for a peer that has ended: it would be lost without a word.
            if not self.running:
                raise self._given_up("the connection was lost")
            try:
                with self._calling:
                    self._written += self._send_some(data[self._written :])
                self.last_written = time.monotonic()
            except (BlockingIOError, ssl.SSLWantWriteError):
                if not self.writable.select(max(deadline - time.monotonic(), 0)) and time.monotonic() >= deadline:
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


class FrameWriter:
    """Writes the frames of a link in their order. A frame is written at once, together with those that waited.

    A separate write is most of a frame's cost on both sides. Nobody waits for an acknowledgement, so it goes out with
    the next frame, or after five milliseconds. Messages of `send_soon` are left to a thread, which writes all that has
    gathered; `on_unsent` gets those that the broker has surely not got, outside all locks."""

    def __init__(self, wire: Wire, name: str, on_unsent: Callable[[Sequence[bytes]], object]) -> None:
        self._wire = wire
        self._name = name
        self._on_unsent = on_unsent
        self._lock = threading.Lock()
        self.turn = threading.Lock()
        self._waiting: list[tuple[bytes, bool]] = []  # whether it is a message of `send_soon`
        self._size = self._size_soon = 0
        self._due = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None
        self._sleeps = False
        self._posted = False
        self._urgent = False
        self._ended = False

    def send(self, data: bytes, deadline: float | None = None, *, coalesced: bool = False) -> None:
        """Writes frames, after those that wait; `coalesced` ones wait too. Raises WriteError: the broker has not got
        the last one."""
        if coalesced:
            if self._can_wait(data):
                return
            data = b""  # it is among those that wait
        if not self.turn.acquire(timeout=-1 if deadline is None else max(deadline - time.monotonic(), 0)):
            raise WriteError("another frame was not written in time; not sent")
        waited: list[tuple[bytes, bool]] = []
        try:
            if self._waiting:
                waited = self._take()
                data = b"".join([*[frame for frame, _ in waited], data])
            if data:
                self._wire.send(data, deadline)
        except BaseException as error:  # a signal's too: what was not written has to go out with the next write
            self._put_back(waited, getattr(error, "written", 0))
            raise
        finally:
            self.turn.release()

    def send_soon(self, *messages: bytes, can_wait: bool = False) -> bool:
        """Leaves messages to the thread, which is not woken for those that `can_wait`. False where they were not taken:
        at the end of the link, when too much waits already, without a thread."""
        with self._lock:
            if self._ended or self._size_soon > _MOST_SOON:
                return False
            if not self._is_seen_to(wake=self._sleeps or not (can_wait or self._urgent)):
                return False
            self._posted, self._urgent = True, self._urgent or not can_wait
            self._waiting.extend((data, True) for data in messages)
            self._size_soon += sum(map(len, messages))
            return True

    def _can_wait(self, data: bytes) -> bool:
        """Enters frames that may wait; False where all that waits has to go out now."""
        with self._lock:
            self._waiting.append((data, False))
            self._size += len(data)
            self._posted = True
            return self._size <= _MOST and not self._ended and self._is_seen_to(wake=self._sleeps)

    def flush(self) -> None:
        """Writes what waits; if that fails the link has ended, and the thread that reads reports why."""
        if self._waiting:
            with contextlib.suppress(TransportError):
                self.send(b"")

    def end(self) -> None:
        """The link is at its end, so that writing fails: nothing waits any more."""
        with self.turn:  # what another thread has in hand comes back first, in its place
            with self._lock:
                self._ended = True
                self._due.notify()
            unsent = [data for data, soon in self._take() if soon]
        if unsent:
            self._on_unsent(unsent)

    def _put_back(self, frames: Sequence[tuple[bytes, bool]], written: int) -> None:
        """Has those frames wait again, in their place, that were not written to their end."""
        again: list[tuple[bytes, bool]] = []
        for data, soon in frames:
            written -= len(data)
            if written < 0:
                again.append((data, soon))
        if not again:
            return
        with self._lock:
            self._waiting[:0] = again
            self._size += sum(len(data) for data, soon in again if not soon)
            self._size_soon += sum(len(data) for data, soon in again if soon)
            self._posted = True
            self._due.notify()

    def _take(self) -> list[tuple[bytes, bool]]:
        with self._lock:
            waiting, self._waiting = self._waiting, []
            self._size = self._size_soon = 0
            self._urgent = False
            return waiting

    def _is_seen_to(self, *, wake: bool) -> bool:
        """Whether a thread runs; it is started here, which the system may refuse."""
        if self._thread is None:
            thread = threading.Thread(target=self._write_all, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
        if wake:
            self._due.notify()
        return True

    def _write_all(self) -> None:
        quiet = 0
        while True:
            with self._lock:
                if not self._urgent and not self._ended:
                    self._sleeps = quiet >= _STAY and not self._waiting
                    self._due.wait(None if self._sleeps else _LATEST)
                    self._sleeps = False
                if self._ended:
                    return
                quiet = 0 if self._posted else quiet + 1
                self._posted = False
            self.flush()
