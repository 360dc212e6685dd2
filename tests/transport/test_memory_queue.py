"""Queues with selectors: each message is looked at once for each selector, however it is read, and the order holds."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mtosi_jms.jms import Queue
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.jms.selector import parse
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider
from mtosi_jms.transport.memory._queue import Entry, MessageQueue

from ..waiting import background, until
from .conftest import until_memory_blocks

QUEUE = Queue("selected")


class Counting:
    """A selector that counts how often it is asked."""

    def __init__(self, text: str) -> None:
        self._selector = parse(text)
        self.asked = 0

    def accepts(self, message: JmsMessage) -> bool:
        self.asked += 1
        return self._selector.accepts(message)


def numbered(number: int, **fields: Any) -> Entry:
    return Entry(number, JmsMessage(properties={"n": number}, **fields))


@pytest.fixture
def queue() -> MessageQueue:
    return MessageQueue(QUEUE)


@pytest.mark.parametrize("before", [0, 500, 1000])
def test_a_message_is_looked_at_once(queue: MessageQueue, before: int) -> None:
    """Also where a thousand others wait, and whether it was there before the reader or came after."""
    rare = Counting("n >= 990")
    for number in range(before):
        queue.put(numbered(number))
    views = [queue.attach("rare", rare) for _ in range(3)]
    for number in range(before, 1000):
        queue.put(numbered(number))
    taken = [queue.take(views[number % 3], 0) for number in range(10)]
    assert [entry.sequence for entry in taken if entry] == list(range(990, 1000))
    assert [queue.take(view, 0) for view in views] == [None, None, None]
    assert rare.asked == 1000
    assert len(queue) == 990


def test_a_view_goes_with_its_last_reader(queue: MessageQueue) -> None:
    counting = Counting("n > 0")
    first, second = queue.attach("a", counting), queue.attach("a", counting)
    assert first is second
    queue.detach(first)
    queue.put(numbered(1))
    assert counting.asked == 1
    queue.detach(second)
    queue.put(numbered(2))
    assert (counting.asked, queue.readers) == (1, 0)


class Sleeper:
    def __init__(self, queue: MessageQueue, selector: str | None) -> None:
        self.view = queue.attach(selector or "", parse(selector) if selector else None)
        self.signals = 0

    def may_take(self) -> bool:
        return True

    def signal(self) -> None:
        self.signals += 1


def test_only_who_may_have_a_message_is_woken(queue: MessageQueue) -> None:
    sleepers = [Sleeper(queue, text) for text in ("n = 1", "n = 1", "n = 2", "n = 3", None, None)]
    queue.waiting = dict.fromkeys(sleepers)
    for number in (1, 2):
        queue.put(numbered(number))
    queue.wake()
    assert [sleeper.signals for sleeper in sleepers] == [1, 0, 1, 0, 1, 1]
    assert list(queue.waiting) == [sleepers[1], sleepers[3]]


@pytest.mark.parametrize("when", ["with the first", "afterwards"])
def test_a_signal_that_a_busy_session_cannot_follow_goes_on(when: str) -> None:
    """A session listens at two queues and its listener holds on to the first one's message: the second one's, which
    comes with it or afterwards, must wake the receiver that waits for it too."""
    entered, release = threading.Event(), threading.Event()

    def hold(delivery: Any) -> None:
        entered.set()
        assert release.wait(60)

    def asleep() -> bool:
        with connection.provider.lock:
            return all(connection.provider.queue(one).waiting for one in queues)

    with MemoryConnection(MemoryProvider()) as connection:
        busy, waiting, sender = (connection.session(), connection.session(), connection.session(transacted=True))
        queues = [Queue("first"), Queue("second")]
        for queue in queues:
            busy.consumer(queue).listen(hold)
        connection.start()
        until(asleep)
        future = background(waiting.consumer(queues[1]).receive)
        until_memory_blocks(waiting)
        for queue in queues:
            sender.send(queue, JmsMessage(body=queue.name.encode()))
            if when == "afterwards":
                sender.commit()
                assert entered.wait(60)
        sender.commit()
        assert entered.wait(60)
        assert future.result(60).message.body == b"second"
        release.set()
