"""What waits goes out with the next frame, or soon by itself; the order stays."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from mtosi_jms.transport.stomp.framewriter import FrameWriter
from mtosi_jms.transport.stomp.wire import WriteError

SECONDS = 60
Written = queue.SimpleQueue[bytes]


@pytest.fixture
def written() -> Written:
    """What was written, write by write."""
    return queue.SimpleQueue()


@pytest.fixture
def writer(written: Written) -> Iterator[FrameWriter]:
    made = FrameWriter(lambda data, deadline: written.put(data), "writer")
    yield made
    made.end()


def test_a_frame_goes_out_at_once(writer: FrameWriter, written: Written) -> None:
    writer.send(b"a")
    assert written.get_nowait() == b"a"


def test_what_waits_goes_before_the_next_frame(written: Written) -> None:
    writer = FrameWriter(lambda data, deadline: written.put(data), "writer")
    with writer._lock:  # nobody looks after it meanwhile
        writer._waiting += [b"a", b"b"]
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


def test_nothing_waits_for_a_link_that_is_at_its_end(written: Written) -> None:
    writer = FrameWriter(lambda data, deadline: written.put(data), "writer")
    writer.end()
    writer.post(b"a")
    assert written.get_nowait() == b"a"


def test_the_thread_ends_with_the_link(writer: FrameWriter, written: Written) -> None:
    writer.post(b"a")
    written.get(timeout=SECONDS)
    thread = writer._clock
    assert thread is not None
    writer.end()
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_what_cannot_be_written_is_told_to_who_sends_it(written: Written) -> None:
    def fail(data: bytes, deadline: float | None) -> None:
        raise WriteError("lost")

    writer = FrameWriter(fail, "writer")
    with pytest.raises(WriteError, match="lost"):
        writer.send(b"a")
    with writer._lock:
        writer._waiting.append(b"b")
    writer.flush()  # whoever reads learns that the link is lost


def test_who_finds_another_one_writing_waits_until_its_deadline(
    background: Callable[[Callable[[], Any]], Future[Any]],
) -> None:
    writing, go_on = threading.Event(), threading.Event()

    def stuck(data: bytes, deadline: float | None) -> None:
        writing.set()
        assert go_on.wait(SECONDS)

    writer = FrameWriter(stuck, "writer")
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
            (writer.post if number % 3 else writer.send)(data)

    for done in [background(lambda name=name: work(name)) for name in range(4)]:  # type: ignore[misc]
        done.result(SECONDS)
    lines: list[bytes] = []
    while len(lines) < 800:
        lines += written.get(timeout=SECONDS).splitlines()
    for name in range(4):
        mine = [line for line in lines if line.startswith(b"%d:" % name)]
        assert mine == [b"%d:%d" % (name, number) for number in range(200)]
