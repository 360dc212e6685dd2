"""MQTT 3 as octets on a socket: what a client library does not do, or hides."""

from __future__ import annotations

import socket
import struct
from typing import Any, Self

from mtosi_jms.broker import BrokerProcess

PATIENCE = 20.0
LARGEST = 268_435_455
CONNACK_ACCEPTED = bytes.fromhex("20020000")


def text(value: str | bytes) -> bytes:
    """A string: its length in two octets, and itself."""
    octets = value.encode() if isinstance(value, str) else value
    return struct.pack(">H", len(octets)) + octets


def remaining_length(length: int) -> bytes:
    """Seven bits an octet, the lowest first; the eighth says that more follow."""
    octets = b""
    while True:
        length, digit = divmod(length, 128)
        octets += bytes([digit | (0x80 if length else 0)])
        if not length:
            return octets


def packet(first: int, rest: bytes = b"") -> bytes:
    """A packet: type and flags, remaining length, the rest."""
    return bytes([first]) + remaining_length(len(rest)) + rest


def publish_packet(topic: str, payload: bytes, qos: int = 0, number: int = 0, *, again: bool = False) -> bytes:
    """A PUBLISH."""
    return packet(0x30 | qos << 1 | again << 3, text(topic) + (struct.pack(">H", number) if qos else b"") + payload)


def subscribe_packet(name: str, qos: int) -> bytes:
    """A SUBSCRIBE of number 1."""
    return packet(0x82, b"\0\1" + text(name) + bytes([qos]))


def connect_packet(
    bench: Any,
    name: str,
    *,
    protocol: tuple[bytes, int] = (b"MQTT", 4),
    flags: int = 0b10,
    keep_alive: int = 60,
    will: tuple[str, bytes, int] | None = None,
    password: str | None = None,
) -> bytes:
    """A CONNECT with the login of a broker; the will is a topic, a payload and a QoS."""
    login = bench.broker.endpoints
    rest = text(name)
    if will is not None:
        flags |= 0b100 | will[2] << 3
        rest += text(will[0]) + text(will[1])
    rest += text(login.user) + text(login.password if password is None else password)
    head = text(protocol[0]) + bytes([protocol[1], flags | 0xC0]) + struct.pack(">H", keep_alive)
    return packet(0x10, head + rest)


class Wire:
    """A connection to the port of a broker where MQTT is spoken. `broker`: which one."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._socket = socket.create_connection(("127.0.0.1", broker.endpoints.ports["mqtt"]), PATIENCE)

    def send(self, octets: bytes) -> None:
        """Sends some."""
        self._socket.sendall(octets)

    def packet(self) -> bytes:
        """The next packet, its header included; empty where the broker ends the connection."""
        head = self._octets(2)
        while len(head) > 1 and head[-1] & 0x80:
            head += self._octets(1)
        if len(head) < 2:
            return b""
        length = sum((octet & 0x7F) << 7 * place for place, octet in enumerate(head[1:]))
        return head + self._octets(length)

    def _octets(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            try:
                more = self._socket.recv(count - len(found))
            except ConnectionError:
                more = b""
            if not more:
                return found
            found += more
        return found

    def disconnect(self) -> None:
        """Says DISCONNECT, and waits until the broker ends the connection."""
        self.send(packet(0xE0))
        while self.packet():
            pass
        self.close()

    def close(self) -> None:
        """Is gone without a word."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
