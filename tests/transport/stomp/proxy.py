"""A way to a broker that tests can cut, stall, and listen in on."""

from __future__ import annotations

import contextlib
import socket
import threading


class Proxy:
    """Passes bytes between its port of loopback and another. `port`: where the bytes go. `listen_in`: whether `sent` is
    kept, which grows.

    Attributes:
        port: its own.
        sent: what clients sent, in the order in which it came.
        stalled: set when `stall_at_answer` has.
        refused: counts what `refuse` has turned away.
    """

    def __init__(self, port: int, *, listen_in: bool = True) -> None:
        self._listen_in = listen_in
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.sent = bytearray()
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._flows = {True: threading.Event(), False: threading.Event()}
        self._cut_at: bytes | None = None
        self._once_sent = b""
        self._stall_at: bytes | None = None
        self._refusing = False
        self._delay = 0.0
        self._ends = threading.Event()
        self._lone: set[socket.socket] = set()
        self.stalled = threading.Event()
        self.refused = threading.Semaphore(0)
        for flow in self._flows.values():
            flow.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self, *, to_broker: bool = False, to_client: bool = False) -> None:
        """Passes nothing on that way until `flow`; connections stay open."""
        for way, stalled in ((True, to_broker), (False, to_client)):
            if stalled:
                self._flows[way].clear()

    def slow(self, seconds: float) -> None:
        """Passes each part on so much later, until `flow`."""
        self._delay = seconds

    def flow(self) -> None:
        """Passes everything on again."""
        self._delay = 0.0
        for flow in self._flows.values():
            flow.set()

    def cut(self) -> None:
        """Breaks every connection; new ones are accepted."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def cut_at_answer(self, words: bytes, *, once_sent: bytes = b"") -> None:
        """Breaks the connections in place of passing on the next answer that holds these words; not before clients have
        sent those."""
        self._once_sent = once_sent
        self._cut_at = words

    def stall_at_answer(self, words: bytes) -> None:
        """Passes nothing more to clients, from the next answer that holds these words on."""
        self._stall_at = words

    def leave_half_open(self) -> None:
        """Breaks the connections of the clients; the broker is not told, as by a network that is down."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
            self._lone.update(broker for _, broker in pairs)
        for client, _ in pairs:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def end_half_open(self) -> None:
        """The broker is told after all."""
        with self._lock:
            lone, self._lone = self._lone, set()
        for broker in lone:
            with contextlib.suppress(OSError):
                broker.shutdown(socket.SHUT_RDWR)
            broker.close()

    def refuse(self, refusing: bool = True) -> None:
        """Ends new connections at once, as a broker that is starting or stopping, or takes them again."""
        self._refusing = refusing

    def close(self) -> None:
        """Ends it: what is stalled reaches nobody."""
        self._ends.set()
        self.end_half_open()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # or the thread that accepts keeps it open
        self._listener.close()
        self.cut()
        self.flow()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                client.close()
                self.refused.release()
                continue
            try:
                broker = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._pairs.append((client, broker))
            threading.Thread(target=self._pass, args=(client, broker, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(broker, client, False), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, to_broker: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if to_broker:
                    self.sent += data if self._listen_in else b""
                elif self._cut_at is not None and self._cut_at in data and self._once_sent in self.sent:
                    self._cut_at = None
                    break
                elif self._stall_at is not None and self._stall_at in data:
                    self._stall_at = None
                    self.stall(to_client=True)
                    self.stalled.set()
                self._flows[to_broker].wait()
                if self._delay:
                    self._ends.wait(self._delay)
                target.sendall(data)
        for end in (source, target):
            if end in self._lone:
                continue
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
