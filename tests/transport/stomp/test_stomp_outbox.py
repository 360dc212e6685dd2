"""What waits goes out with the next frame, or soon by itself; the order stays."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from mtosi_jms.transport.stomp.outbox import Outbox
from mtosi_jms.transport.stomp.wire import WriteError

SECONDS = 60
Written = queue.SimpleQueue[bytes]


@pytest.fixture
def written() -> Written:
    """What was written, write by write."""
    return queue.SimpleQueue()


@pytest.fixture
def outbox(written: Written) -> Iterator[Outbox]:
    made = Outbox(lambda data, deadline: written.put(data), "outbox")
    yield made
    made.end()


def test_a_frame_goes_out_at_once(outbox: Outbox, written: Written) -> None:
    outbox.send(b"a")
    assert written.get_nowait() == b"a"


def test_what_waits_goes_before_the_next_frame(written: Written) -> None:
    outbox = Outbox(lambda data, deadline: written.put(data), "outbox")
    with outbox._lock:  # nobody looks after it meanwhile
        outbox._waiting += [b"a", b"b"]
    outbox.send(b"c")
    assert written.get_nowait() == b"abc"
    assert written.empty()


def test_what_waits_goes_out_by_itself(outbox: Outbox, written: Written) -> None:
    """More than once: the thread that looks after it has gone to sleep in between, or has not."""
    for data in (b"a", b"b", b"c"):
        outbox.post(data)
        assert written.get(timeout=SECONDS) == data


def test_many_do_not_wait(outbox: Outbox, written: Written) -> None:
    for _ in range(2):
        outbox.post(b"x" * 600)
    sent = 0
    while sent < 1_200:
        sent += len(written.get(timeout=SECONDS))
    assert sent == 1_200


def test_nothing_waits_for_a_link_that_is_at_its_end(written: Written) -> None:
    outbox = Outbox(lambda data, deadline: written.put(data), "outbox")
    outbox.end()
    outbox.post(b"a")
    assert written.get_nowait() == b"a"


def test_the_thread_ends_with_the_link(outbox: Outbox, written: Written) -> None:
    outbox.post(b"a")
    written.get(timeout=SECONDS)
    thread = outbox._clock
    assert thread is not None
    outbox.end()
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_what_cannot_be_written_is_told_to_who_sends_it(written: Written) -> None:
    def fail(data: bytes, deadline: float | None) -> None:
        raise WriteError("lost")

    outbox = Outbox(fail, "outbox")
    with pytest.raises(WriteError, match="lost"):
        outbox.send(b"a")
    with outbox._lock:
        outbox._waiting.append(b"b")
    outbox.flush()  # whoever reads learns that the link is lost


def test_who_finds_another_one_writing_waits_until_its_deadline(
    background: Callable[[Callable[[], Any]], Future[Any]],
) -> None:
    writing, go_on = threading.Event(), threading.Event()

    def stuck(data: bytes, deadline: float | None) -> None:
        writing.set()
        assert go_on.wait(SECONDS)

    outbox = Outbox(stuck, "outbox")
    first = background(lambda: outbox.send(b"a"))
    assert writing.wait(SECONDS)
    with pytest.raises(WriteError, match="not sent"):
        outbox.send(b"b", deadline=0.0)
    go_on.set()
    first.result(SECONDS)


def test_threads_lose_nothing_and_keep_their_order(
    outbox: Outbox, written: Written, background: Callable[[Callable[[], Any]], Future[Any]]
) -> None:
    def work(name: int) -> None:
        for number in range(200):
            data = b"%d:%d\n" % (name, number)
            (outbox.post if number % 3 else outbox.send)(data)

    for done in [background(lambda name=name: work(name)) for name in range(4)]:  # type: ignore[misc]
        done.result(SECONDS)
    lines: list[bytes] = []
    while len(lines) < 800:
        lines += written.get(timeout=SECONDS).splitlines()
    for name in range(4):
        mine = [line for line in lines if line.startswith(b"%d:" % name)]
        assert mine == [b"%d:%d" % (name, number) for number in range(200)]
