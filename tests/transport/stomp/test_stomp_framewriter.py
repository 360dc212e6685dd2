"""What waits goes out with the next frame, or soon by itself; the order stays."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from mtosi_jms.errors import WriteError
from mtosi_jms.transport.stomp._framewriter import FrameWriter

SECONDS = 60
Written = queue.SimpleQueue[bytes]


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

    def make(write: Callable[[bytes, float | None], None] = lambda data, deadline: written.put(data)) -> FrameWriter:
        made.append(FrameWriter(write, "writer", unsent.extend))
        return made[-1]

    yield make
    for writer in made:
        writer.end()


@pytest.fixture
def writer(make: Callable[..., FrameWriter]) -> FrameWriter:
    return make()


def test_a_frame_goes_out_at_once(writer: FrameWriter, written: Written) -> None:
    writer.send(b"a")
    assert written.get_nowait() == b"a"


def test_what_waits_goes_before_the_next_frame(writer: FrameWriter, written: Written) -> None:
    with writer._lock:  # nobody looks after it meanwhile
        writer._waiting += [(b"a", False), (b"b", True)]
    writer.send(b"c")
    assert written.get_nowait() == b"abc"
    assert written.empty()


def test_what_waits_goes_out_by_itself(writer: FrameWriter, written: Written) -> None:
    """More than once: the thread that looks after it has gone to sleep in between, or has not."""
    for data in (b"a", b"b", b"c"):
        writer.post(data)
        assert written.get(timeout=SECONDS) == data


def test_many_do_not_wait(writer: FrameWriter, written: Written) -> None:
    for _ in range(2):
        writer.post(b"x" * 600)
    sent = 0
    while sent < 1_200:
        sent += len(written.get(timeout=SECONDS))
    assert sent == 1_200


def test_nothing_waits_for_a_link_that_is_at_its_end(writer: FrameWriter, written: Written) -> None:
    writer.end()
    writer.post(b"a")
    assert written.get_nowait() == b"a"
    assert not writer.leave(b"b")


def test_the_thread_ends_with_the_link(writer: FrameWriter, written: Written) -> None:
    writer.post(b"a")
    written.get(timeout=SECONDS)
    thread = writer._thread
    assert thread is not None
    writer.end()
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_what_cannot_be_written_is_told_to_who_sends_it(make: Callable[..., FrameWriter]) -> None:
    def fail(data: bytes, deadline: float | None) -> None:
        raise WriteError("lost")

    writer = make(fail)
    with pytest.raises(WriteError, match="lost"):
        writer.send(b"a")
    with writer._lock:
        writer._waiting.append((b"b", False))
    writer.flush()  # whoever reads learns that the link is lost


def test_what_is_left_while_another_one_writes_goes_out_in_one_write(
    make: Callable[..., FrameWriter], written: Written, background: Callable[[Callable[[], Any]], Future[Any]]
) -> None:
    writing, go_on = threading.Event(), threading.Event()

    def slow(data: bytes, deadline: float | None) -> None:
        writing.set()
        assert go_on.wait(SECONDS)
        written.put(data)

    writer = make(slow)
    first = background(lambda: writer.send(b"a"))
    assert writing.wait(SECONDS)
    assert all(writer.leave(data) for data in (b"b", b"c", b"d"))
    go_on.set()
    first.result(SECONDS)
    assert [written.get(timeout=SECONDS) for _ in range(2)] == [b"a", b"bcd"]


@pytest.mark.parametrize("can_wait", [False, True])
def test_what_is_left_goes_out_by_itself(writer: FrameWriter, written: Written, can_wait: bool) -> None:
    """More than once: the thread that writes it has gone to sleep in between, or has not."""
    for data in (b"a", b"b", b"c"):
        assert writer.leave(data, can_wait=can_wait)
        assert written.get(timeout=SECONDS) == data


def test_what_can_wait_goes_out_with_what_cannot(writer: FrameWriter, written: Written) -> None:
    with writer._turn:  # the thread cannot write meanwhile
        assert writer.leave(b"a", can_wait=True)
        assert writer.leave(b"b")
        assert writer.leave(b"c", can_wait=True)
    assert written.get(timeout=SECONDS) == b"abc"


def test_no_more_is_left_than_there_is_room_for(make: Callable[..., FrameWriter], written: Written) -> None:
    go_on = threading.Event()

    def slow(data: bytes, deadline: float | None) -> None:
        assert go_on.wait(SECONDS)
        written.put(data)

    writer = make(slow)
    large = b"x" * 50_000
    with writer._turn:  # the thread cannot write meanwhile
        assert [writer.leave(large) for _ in range(3)] == [True, True, False]
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

    def fail(data: bytes, deadline: float | None) -> None:
        error = WriteError("lost")
        error.written = written
        raise error

    writer = make(fail)
    with writer._lock:
        writer._waiting += [(b"aa", False), (b"bb", True), (b"cc", False), (b"dd", True)]
    with pytest.raises(WriteError):
        writer.send(b"ee")
    assert not unsent  # the link may not be at its end
    writer.end()
    assert unsent == back


def test_what_waits_at_the_end_of_the_link_comes_back_in_order(
    make: Callable[..., FrameWriter], unsent: list[bytes], background: Callable[[Callable[[], Any]], Future[Any]]
) -> None:
    """Also what a thread has in hand just then, which is in front of what was left after it."""
    writing, go_on = threading.Event(), threading.Event()

    def fail(data: bytes, deadline: float | None) -> None:
        writing.set()
        assert go_on.wait(SECONDS)
        raise WriteError("lost")

    writer = make(fail)
    assert writer.leave(b"a")
    assert writing.wait(SECONDS)
    assert writer.leave(b"b", b"c")
    writer.post(b"d")
    end = background(writer.end)
    go_on.set()
    end.result(SECONDS)
    assert unsent == [b"a", b"b", b"c"]
    assert not writer.leave(b"e")


def test_what_was_not_written_waits_for_the_next_write(make: Callable[..., FrameWriter], written: Written) -> None:
    """Acknowledgements too, where the link goes on; also where it was a signal that broke the writing off."""
    failures: list[BaseException] = [WriteError("not sent"), KeyboardInterrupt()]

    def write(data: bytes, deadline: float | None) -> None:
        if failures:
            raise failures.pop()
        written.put(data)

    writer = make(write)
    with writer._lock:
        writer._waiting += [(b"a", False), (b"b", True)]
    with pytest.raises(KeyboardInterrupt):
        writer.send(b"x")
    with pytest.raises(WriteError):
        writer.send(b"y")
    writer.send(b"c")
    assert written.get_nowait() == b"abc"


def test_where_there_are_no_more_threads_nothing_waits(
    make: Callable[..., FrameWriter], written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    writer = make()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        writer.post(b"a")
        assert written.get_nowait() == b"a"
        assert not writer.leave(b"b")
    assert writer.leave(b"c")
    assert written.get(timeout=SECONDS) == b"c"


def test_who_finds_another_one_writing_waits_until_its_deadline(
    make: Callable[..., FrameWriter],
    background: Callable[[Callable[[], Any]], Future[Any]],
) -> None:
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


def test_threads_lose_nothing_and_keep_their_order(
    writer: FrameWriter, written: Written, background: Callable[[Callable[[], Any]], Future[Any]]
) -> None:
    def work(name: int) -> None:
        for number in range(200):
            data = b"%d:%d\n" % (name, number)
            if number % 3 or not writer.leave(data):
                (writer.post if number % 2 else writer.send)(data)

    for done in [background(lambda name=name: work(name)) for name in range(4)]:  # type: ignore[misc]
        done.result(SECONDS)
    lines: list[bytes] = []
    while len(lines) < 800:
        lines += written.get(timeout=SECONDS).splitlines()
    for name in range(4):
        mine = [line for line in lines if line.startswith(b"%d:" % name)]
        assert mine == [b"%d:%d" % (name, number) for number in range(200)]
