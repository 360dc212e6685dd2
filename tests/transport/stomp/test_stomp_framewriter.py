"""What waits goes out with the next frame, or soon by itself; the order stays."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

import pytest

from mtosi_jms.errors import WriteError
from mtosi_jms.transport.stomp._wire import FrameWriter

from ...waiting import background

SECONDS = 60
Written = queue.SimpleQueue[bytes]
Write = Callable[[bytes, float | None], None]


class FakeWire:
    """A wire that writes as a test says."""

    def __init__(self, write: Write) -> None:
        self.send = write


@pytest.fixture
def written() -> Written:
    """What was written, write by write."""
    return queue.SimpleQueue()


@pytest.fixture
def unsent() -> list[bytes]:
    """What was left and never went out."""
    return []


@pytest.fixture
def make(written: Written, unsent: list[bytes]) -> Iterator[Callable[..., FrameWriter]]:
    """Makes writers; they write into `written`, unless told how."""
    made: list[FrameWriter] = []

    def make(write: Write = lambda data, deadline: written.put(data)) -> FrameWriter:
        made.append(FrameWriter(FakeWire(write), "writer", unsent.extend))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for writer in made:
        writer.end()


@pytest.fixture
def writer(make: Callable[..., FrameWriter]) -> FrameWriter:
    return make()


def test_what_waits_goes_before_the_next_frame(writer: FrameWriter, written: Written) -> None:
    with writer.turn:  # nothing is written meanwhile
        writer.send(b"a", coalesced=True)
        assert writer.send_soon(b"b")
    writer.send(b"c")
    sent = b""
    while len(sent) < 3:
        sent += written.get(timeout=SECONDS)
    assert sent == b"abc"


def test_what_waits_goes_out_by_itself(writer: FrameWriter, written: Written) -> None:
    """More than once: the thread that looks after it has gone to sleep in between, or has not."""
    for data in (b"a", b"b", b"c"):
        writer.send(data, coalesced=True)
        assert written.get(timeout=SECONDS) == data


def test_nothing_waits_for_a_link_that_is_at_its_end(writer: FrameWriter, written: Written) -> None:
    writer.end()
    writer.send(b"a", coalesced=True)
    assert written.get_nowait() == b"a"
    assert not writer.send_soon(b"b")


def test_the_thread_ends_with_the_link(writer: FrameWriter, written: Written) -> None:
    writer.send(b"a", coalesced=True)
    written.get(timeout=SECONDS)
    (thread,) = [one for one in threading.enumerate() if one.name == "writer"]
    writer.end()
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_what_cannot_be_written_is_told_to_who_sends_it(make: Callable[..., FrameWriter]) -> None:
    def fail(data: bytes, deadline: float | None) -> None:
        raise WriteError("lost")

    writer = make(fail)
    with pytest.raises(WriteError, match="lost"):
        writer.send(b"a")
    writer.send(b"b", coalesced=True)
    writer.flush()  # whoever reads learns that the link is lost


def test_what_is_left_while_another_one_writes_goes_out_in_one_write(
    make: Callable[..., FrameWriter], written: Written
) -> None:
    writing, go_on = threading.Event(), threading.Event()

    def slow(data: bytes, deadline: float | None) -> None:
        writing.set()
        assert go_on.wait(SECONDS)
        written.put(data)

    writer = make(slow)
    first = background(lambda: writer.send(b"a"))
    assert writing.wait(SECONDS)
    assert all(writer.send_soon(data) for data in (b"b", b"c", b"d"))
    go_on.set()
    first.result(SECONDS)
    assert [written.get(timeout=SECONDS) for _ in range(2)] == [b"a", b"bcd"]


@pytest.mark.parametrize("can_wait", [False, True])
def test_what_is_left_goes_out_by_itself(writer: FrameWriter, written: Written, can_wait: bool) -> None:
    """More than once: the thread that writes it has gone to sleep in between, or has not."""
    for data in (b"a", b"b", b"c"):
        assert writer.send_soon(data, can_wait=can_wait)
        assert written.get(timeout=SECONDS) == data


def test_no_more_is_left_than_there_is_room_for(make: Callable[..., FrameWriter], written: Written) -> None:
    go_on = threading.Event()

    def slow(data: bytes, deadline: float | None) -> None:
        assert go_on.wait(SECONDS)
        written.put(data)

    writer = make(slow)
    large = b"x" * 50_000
    with writer.turn:  # the thread cannot write meanwhile
        assert [writer.send_soon(large) for _ in range(3)] == [True, True, False]
    go_on.set()
    assert written.get(timeout=SECONDS) == large * 2


@pytest.mark.parametrize(
    ("written", "back"),
    [(0, [b"bb", b"dd"]), (3, [b"bb", b"dd"]), (4, [b"dd"]), (6, [b"dd"]), (7, [b"dd"]), (8, [])],
)
def test_what_was_left_and_surely_not_received_comes_back(
    make: Callable[..., FrameWriter], unsent: list[bytes], written: int, back: list[bytes]
) -> None:
    """A frame of which the last byte went out may be there; an acknowledgement is of no use on another link."""

    failed, all_but_the_first = threading.Event(), 0

    def fail(data: bytes, deadline: float | None) -> None:
        error = WriteError("lost")
        error.written = all_but_the_first if failed.is_set() else written
        failed.set()
        raise error

    writer = make(fail)
    with writer.turn:  # so that all of it goes out in one write
        writer.send(b"aa", coalesced=True)
        assert writer.send_soon(b"bb")
        writer.send(b"cc", coalesced=True)
        assert writer.send_soon(b"dd")
    assert failed.wait(SECONDS)
    assert not unsent  # the link may not be at its end
    writer.end()
    assert unsent == back


def test_what_waits_at_the_end_of_the_link_comes_back_in_order(
    make: Callable[..., FrameWriter], unsent: list[bytes]
) -> None:
    """Also what a thread has in hand just then, which is in front of what was left after it."""
    writing, go_on = threading.Event(), threading.Event()

    def fail(data: bytes, deadline: float | None) -> None:
        writing.set()
        assert go_on.wait(SECONDS)
        raise WriteError("lost")

    writer = make(fail)
    assert writer.send_soon(b"a")
    assert writing.wait(SECONDS)
    assert writer.send_soon(b"b", b"c")
    writer.send(b"d", coalesced=True)
    end = background(writer.end)
    go_on.set()
    end.result(SECONDS)
    assert unsent == [b"a", b"b", b"c"]
    assert not writer.send_soon(b"e")


def test_what_was_not_written_waits_for_the_next_write(
    make: Callable[..., FrameWriter], written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Acknowledgements too, where the link goes on; also where it was a signal that broke the writing off."""
    failures: list[BaseException] = [WriteError("not sent"), KeyboardInterrupt()]

    def write(data: bytes, deadline: float | None) -> None:
        if failures:
            raise failures.pop()
        written.put(data)

    monkeypatch.setattr(threading.Thread, "start", refuse)  # or it would be the writer's thread that fails
    writer = make(write)
    with pytest.raises(KeyboardInterrupt):
        writer.send(b"a", coalesced=True)
    with pytest.raises(WriteError):
        writer.send(b"y")
    writer.send(b"c")
    assert written.get_nowait() == b"ac"


def refuse(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_where_there_are_no_more_threads_nothing_waits(
    make: Callable[..., FrameWriter], written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = make()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        writer.send(b"a", coalesced=True)
        assert written.get_nowait() == b"a"
        assert not writer.send_soon(b"b")
    assert writer.send_soon(b"c")
    assert written.get(timeout=SECONDS) == b"c"


def test_who_finds_another_one_writing_waits_until_its_deadline(make: Callable[..., FrameWriter]) -> None:
    writing, go_on = threading.Event(), threading.Event()

    def stuck(data: bytes, deadline: float | None) -> None:
        writing.set()
        assert go_on.wait(SECONDS)

    writer = make(stuck)
    first = background(lambda: writer.send(b"a"))
    assert writing.wait(SECONDS)
    with pytest.raises(WriteError, match="not sent"):
        writer.send(b"b", deadline=0.0)
    go_on.set()
    first.result(SECONDS)


def test_threads_lose_nothing_and_keep_their_order(writer: FrameWriter, written: Written) -> None:
    def work(name: int) -> None:
        for number in range(200):
            data = b"%d:%d\n" % (name, number)
            if number % 3 or not writer.send_soon(data):
                writer.send(data, coalesced=bool(number % 2))

    for done in [background(lambda name=name: work(name)) for name in range(4)]:  # type: ignore[misc]
        done.result(SECONDS)
    lines: list[bytes] = []
    while len(lines) < 800:
        lines += written.get(timeout=SECONDS).splitlines()
    for name in range(4):
        mine = [line for line in lines if line.startswith(b"%d:" % name)]
        assert mine == [b"%d:%d" % (name, number) for number in range(200)]
