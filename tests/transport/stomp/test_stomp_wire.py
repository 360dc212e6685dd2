"""The socket below: signs of life to a slow broker, deadlines of writers, hosts with several addresses."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mtosi_jms.errors import WriteError
from mtosi_jms.transport.stomp import Address
from mtosi_jms.transport.stomp._wire import Wire

from ...waiting import background

LONG = 60.0
HUGE = b"x" * 32_000_000  # more than all buffers on the way


class Mute:
    """Takes connections and never reads."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.taken: list[socket.socket] = []

    def take(self) -> socket.socket:
        self._listener.settimeout(LONG)
        self.taken.append(self._listener.accept()[0])
        return self.taken[-1]

    def close(self) -> None:
        for one in (*self.taken, self._listener):
            one.close()


@pytest.fixture
def mute() -> Iterator[Mute]:
    made = Mute()
    yield made
    made.close()


@pytest.fixture
def lost() -> threading.Event:
    return threading.Event()


def _wire(
    address: Address,
    lost: threading.Event,
    on_frames: Callable[[Any], object] = lambda frames: None,
    awaits: Callable[[], bool] = lambda: False,
) -> Wire:
    return Wire(
        address,
        None,
        connect_timeout=LONG,
        send_timeout=LONG,
        on_frames=on_frames,
        on_garbage=lambda error: None,
        on_lost=lost.set,
        awaits=awaits,
    )


@pytest.fixture
def wire(mute: Mute, lost: threading.Event) -> Iterator[Wire]:
    made = _wire(Address("127.0.0.1", mute.port), lost)
    made.start()
    mute.take()
    yield made
    made.disconnect_socket()
    assert lost.wait(LONG)


def fill(wire: Wire) -> None:
    """Sends until there is no room."""
    with contextlib.suppress(BlockingIOError):
        while True:
            wire.socket.send(b"x" * 65_536, socket.MSG_DONTWAIT)


def test_a_sign_of_life_waits_for_room(wire: Wire) -> None:
    """A broker that is slow to read is not dead: there is just no room for a sign of life."""
    fill(wire)
    wire.beat(b"\n")
    assert wire.is_connected()


def test_a_writer_has_the_deadline_that_it_is_given(wire: Wire) -> None:
    fill(wire)
    with pytest.raises(WriteError, match="took nothing"):
        background(lambda: wire.send(HUGE, time.monotonic() + 0.1)).result(LONG / 2)


def test_a_writer_behind_another_gives_up_alone(wire: Wire) -> None:
    fill(wire)
    first = background(lambda: wire.send(HUGE))
    while not wire.writing.locked():
        assert not first.done()
    with pytest.raises(WriteError, match="another frame"):
        background(lambda: wire.send(HUGE, time.monotonic() + 0.1)).result(LONG / 2)
    assert wire.is_connected()
    assert not first.done()
    wire.disconnect_socket()
    with pytest.raises(WriteError):
        first.result(LONG / 2)


def test_a_writer_that_is_interrupted_ends_the_connection(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a signal, as it waits for room: the next frame would go on in the middle of this one."""

    def interrupt(seconds: float) -> Any:
        raise KeyboardInterrupt

    fill(wire)
    monkeypatch.setattr(wire.writable, "select", interrupt)
    with pytest.raises(KeyboardInterrupt):
        wire.send(HUGE)
    assert not wire.is_connected()
    with pytest.raises(WriteError):
        wire.send(b"x")


def test_a_writer_that_waits_ends_with_the_connection(wire: Wire, mute: Mute, lost: threading.Event) -> None:
    """The broker ends its side, and reads nothing: who waits for room learns of it long before the deadline."""
    fill(wire)
    writer = background(lambda: wire.send(HUGE))
    while not wire.writing.locked():
        assert not writer.done()
    mute.taken[0].shutdown(socket.SHUT_WR)
    with pytest.raises(WriteError):
        writer.result(LONG / 2)
    assert lost.wait(LONG / 2)


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux can be told to acknowledge at once")
@pytest.mark.parametrize("rest", ["frame", "receipt"])
def test_the_rest_is_asked_for(mute: Mute, lost: threading.Event, monkeypatch: pytest.MonkeyPatch, rest: str) -> None:
    """A broker without TCP_NODELAY keeps the end of a frame, or a receipt behind one, until what came before is
    acknowledged."""
    is_awaited = threading.Event()
    asked, came = threading.Semaphore(0), threading.Event()
    real = socket.socket.setsockopt

    def note(self: socket.socket, level: int, option: int, value: Any) -> None:
        real(self, level, option, value)
        if option == socket.TCP_QUICKACK:
            asked.release()

    monkeypatch.setattr(socket.socket, "setsockopt", note, raising=False)
    wire = _wire(Address("127.0.0.1", mute.port), lost, on_frames=lambda frames: came.set(), awaits=is_awaited.is_set)
    wire.start()
    broker = mute.take()
    broker.sendall(b"\nRECEIPT\nreceipt-id:1\n\n\0\n")
    assert came.wait(LONG)
    assert not asked.acquire(blocking=False)  # nothing is missing
    if rest == "receipt":
        is_awaited.set()
        broker.sendall(b"MESSAGE\nmessage-id:1\n\n\0\n")
    else:
        broker.sendall(b"MESSAGE\n")
    assert asked.acquire(timeout=LONG)
    wire.disconnect_socket()
    assert lost.wait(LONG)


def test_all_addresses_of_a_host_are_tried(mute: Mute, lost: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.create_connection
    tried: list[tuple[str, float]] = []

    def resolve(host: str, port: int, **kind: Any) -> list[Any]:
        assert (host, port) == ("broker.example", mute.port)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (where, port)) for where in ("127.0.0.2", "127.0.0.1")]

    def connect(where: tuple[str, int], timeout: float) -> socket.socket:
        tried.append((where[0], timeout))
        if where[0] == "127.0.0.2":
            raise ConnectionRefusedError
        monkeypatch.undo()  # which resolves again
        return real(where, timeout)

    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr("mtosi_jms.transport.stomp._wire.socket.getaddrinfo", resolve)
    wire = _wire(Address("broker.example", mute.port), lost)
    wire.attempt_connection()
    assert [where for where, _ in tried] == ["127.0.0.2", "127.0.0.1"]
    assert tried[0][1] <= LONG / 2 < tried[1][1]  # the first has its share of the time, the last what is left
    wire.cleanup()


def test_closed_while_it_connects(mute: Mute, lost: threading.Event) -> None:
    wire = _wire(Address("127.0.0.1", mute.port), lost)
    wire.disconnect_socket()
    with pytest.raises(OSError, match="closed meanwhile"):
        wire.attempt_connection()
