"""A CORBA peer that says what a test wants: GIOP 1.2 over a socket, no ORB."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from typing import Self

HEADER = 12
FORWARD = 3


class Out:
    """Big-endian CDR that begins at a multiple of eight."""

    def __init__(self) -> None:
        self.data = b""

    def align(self, size: int) -> Out:
        self.data += bytes(-len(self.data) % size)
        return self

    def ulong(self, *numbers: int) -> Out:
        for number in numbers:
            self.align(4).data += struct.pack(">I", number & 0xFFFFFFFF)
        return self

    def octets(self, data: bytes) -> Out:
        self.ulong(len(data)).data += data
        return self

    def string(self, text: str | bytes) -> Out:
        return self.octets((text.encode() if isinstance(text, str) else text) + b"\0")

    def raw(self, data: bytes) -> Out:
        self.data += data
        return self


def reference(host: str, port: int, type_id: str = "IDL:omg.org/CORBA/Object:1.0") -> Callable[[Out], Out]:
    """Writes a reference to an object."""
    profile = Out().raw(b"\0\1\2").string(host).align(2).raw(struct.pack(">H", port)).octets(b"key").ulong(0).data
    return lambda out: out.string(type_id).ulong(1, 0).octets(profile)


def event(any: Callable[[Out], Out]) -> Callable[[Out], Out]:
    """Writes an event with one property `odd`, and that there is one."""

    def write(out: Out) -> Out:
        out.string("").string("").string("").ulong(0, 1).string("odd")
        return any(out).ulong(0).raw(b"\1")

    return write


class In:
    """A reader of CDR, from a position on; what is before it counts for the alignment, and `before` octets more."""

    def __init__(self, order: str, data: bytes, at: int = 0, before: int = 0) -> None:
        self._order, self._data, self._before = order, data, before
        self.at = at

    def align(self, size: int) -> In:
        self.at += -(self.at + self._before) % size
        return self

    def number(self, code: str = "I") -> int:
        size = struct.calcsize(code)
        self.align(size).at += size
        found: int = struct.unpack_from(f"{self._order}{code}", self._data, self.at - size)[0]
        return found

    def octets(self) -> bytes:
        length = self.number()
        self.at += length
        return self._data[self.at - length : self.at]


class Called:
    """An object of a peer's that was given as an argument: its host, port and key, to call it by."""

    def __init__(self, arguments: In) -> None:
        arguments.octets()  # the type
        arguments.number()  # how many profiles there are
        arguments.number()  # the kind of the first
        raw = arguments.octets()
        profile = In("<" if raw[0] else ">", raw, 3)
        self.host = profile.octets()[:-1].decode()
        self.port = profile.number("H")
        self.key = profile.octets()

    def call(self, operation: str, write: Callable[[Out], Out]) -> int:
        """Calls it, and returns the status of the answer: 0 is well, 2 a system exception."""
        head = Out().ulong(1).raw(b"\3\0\0\0\0\0\0\0").octets(self.key).string(operation).ulong(0)
        head.raw(bytes(-(len(head.data) + HEADER) % 8))
        body = head.data + write(Out()).data
        with socket.create_connection((self.host, self.port), 30) as client, client.makefile("rb") as stream:
            client.sendall(b"GIOP\1\2\0\0" + struct.pack(">I", len(body)) + body)
            header = stream.read(HEADER)
            order = "<" if header[6] & 1 else ">"
            answer = stream.read(struct.unpack(f"{order}I", header[8:])[0])
        status: int = struct.unpack_from(f"{order}I", answer, 4)[0]
        return status


class GiopPeer:
    """Listens on loopback, and answers operations by their names; what it does not know it answers with nothing.

    Attributes:
        port: where.
        answers: name of an operation, and what writes the answer's body. None: no answer.
        asked: names of the operations that were called.
        connections: how many there were.
        consumers: objects that were connected to it.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        self._listener = socket.create_server((host, 0))
        self.port: int = self._listener.getsockname()[1]
        self.asked: list[str] = []
        self.connections = 0
        self.consumers: list[Called] = []
        self._open: list[socket.socket] = []
        self.forward_to: tuple[str, int] | None = None
        me = reference(host, self.port)
        self.answers: dict[str, Callable[[Out], Out] | None] = {
            "_is_a": lambda out: out.raw(b"\1"),
            "_non_existent": lambda out: out.raw(b"\0"),
            "_get_default_consumer_admin": me,
            "_get_default_supplier_admin": me,
            "obtain_notification_pull_supplier": lambda out: me(out).ulong(7),
            "obtain_notification_push_supplier": lambda out: me(out).ulong(7),
            "obtain_notification_push_consumer": lambda out: me(out).ulong(7),
            "get_qos": lambda out: out.ulong(0),
            "try_pull_structured_event": event(lambda out: out.ulong(3, 5)),
        }
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"corbaloc::{self.host}:{self.port}/key"

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as stream:
            try:
                while len(header := stream.read(HEADER)) == HEADER:
                    order = "<" if header[6] & 1 else ">"
                    body = stream.read(struct.unpack(f"{order}I", header[8:])[0])
                    if header[7] == 0:
                        self._answer(client, order, body)
            except OSError:
                return

    def _answer(self, client: socket.socket, order: str, body: bytes) -> None:
        request = In(order, body, before=HEADER)
        number = request.number()
        request.at += 8  # flags, and that the target is a key
        request.octets()
        name = request.octets()[:-1].decode()
        self.asked.append(name)
        if name.startswith("connect_") and name.endswith("_push_consumer"):
            for _ in range(request.number()):  # service contexts
                request.number()
                request.octets()
            self.consumers.append(Called(request.align(8)))
        write: Callable[[Out], Out] | None = self.answers.get(name, lambda out: out)
        status = 0
        if name == "_is_a" and b"EventChannelFactory" in body:
            write = lambda out: out.raw(b"\0")  # noqa: E731
        if self.forward_to is not None and name != "_is_a":
            status, write = FORWARD, reference(*self.forward_to)
        if write is None:
            return
        reply = struct.pack(">III", number, status, 0) + bytes(0) + write(Out()).data
        client.sendall(b"GIOP\1\2\0\1" + struct.pack(">I", len(reply)) + reply)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for client in self._open:
            client.close()
