"""Asynchronous sends compared with sends that wait, over the embedded provider: the cost of listeners and futures.

The embedded provider confirms at once, so asynchronous sends gain nothing here; they do with a distant provider.
"""

from __future__ import annotations

import queue
from collections.abc import Callable

from measure import Comparison, Side, compare

import mtosi_jms as mtosi
from mtosi_jms.jms import JmsMessage
from mtosi_jms.transport import SendWindow, Session

TOPIC = mtosi.Topic("BENCHMARK.NOBODY")
"""Nobody subscribes, so that only sending is measured, not the memory of the provider."""
MESSAGE = JmsMessage(body=b"x" * 1_000)


class Count:
    """A listener that counts."""

    def __init__(self) -> None:
        self.completed = 0

    def on_completion(self, message: JmsMessage) -> None:
        """One more."""
        self.completed += 1

    def on_exception(self, message: JmsMessage, error: Exception) -> None:
        """None may fail."""
        raise error


def asynchronous_send(*, quick: bool) -> Comparison:
    """Send messages of 1 kB one after the other, until the last one is confirmed."""
    messages = 200 if quick else 20_000
    with mtosi.connect("memory:benchmark-send") as connection:
        session = connection.session()
        sides = [
            Side("send_async, a window of 16", "ours", _windowed(session, messages)),
            Side("send with a listener", "ours", _listened(session, messages)),
            Side("send, each waited for", "ours", _waiting(session, messages)),
            Side("queue.Queue put and get", "limit", _through_queue(messages)),
        ]
        title = f"{messages:,} messages of 1 kB sent over memory:, all confirmed"
        return compare("send", title, "messages", sides, rounds=3 if quick else 7)


def _windowed(session: Session, messages: int) -> Callable[[], int]:
    def run() -> int:
        window = SendWindow(session, 16)
        for _ in range(messages):
            window.send(TOPIC, MESSAGE)
        window.settle()
        return messages

    return run


def _listened(session: Session, messages: int) -> Callable[[], int]:
    def run() -> int:
        count = Count()
        for _ in range(messages):
            session.send(TOPIC, MESSAGE, count)
        session.completions.await_told()
        return count.completed

    return run


def _waiting(session: Session, messages: int) -> Callable[[], int]:
    def run() -> int:
        for _ in range(messages):
            session.send(TOPIC, MESSAGE)
        return messages

    return run


def _through_queue(messages: int) -> Callable[[], int]:
    def run() -> int:
        waiting: queue.Queue[JmsMessage] = queue.Queue()
        for _ in range(messages):
            waiting.put(MESSAGE)
            waiting.get()
        return messages

    return run
