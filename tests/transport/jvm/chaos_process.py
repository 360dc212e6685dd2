"""A sender with an outbox, a consumer runtime with an inbox, and calls with time-outs, over a way that goes wrong.

Usage: chaos_process.py URL FOLDER OPTIONS, which are those of the queue, in its name. It answers each line of
standard input with a JSON object: `progress` with what is handled so far; `end` with what became of all messages and
calls, once all that was stored is handled.
"""

from __future__ import annotations

import gc
import itertools
import json
import logging
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mtosi_jms.errors import MtosiError, TransportError
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue
from mtosi_jms.runtime import Backoff, ConsumerRuntime, RuntimeRules
from mtosi_jms.spool import Inbox, Outbox
from mtosi_jms.transport import Connection, connect

PROBES, PARKING = Queue("chaos.probes"), Queue("chaos.parking")
KEYS = 5
LIMIT = 2.0
"""Seconds that each call of the prober has."""


class Sender:
    """Stores and sends numbered messages, each number for one of the keys in turn."""

    def __init__(self, url: str, folder: Path, news: Queue) -> None:
        self._news = news
        self.stored = 0
        self.ended = threading.Event()
        self._outbox = Outbox(folder / "outbox")
        self._connection = connect(url, send_timeout=LIMIT, close_timeout=1)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        session = self._connection.session()
        for number in itertools.count():
            if self.ended.wait(0.005):
                break
            message = JmsMessage(body=b"x" * (40_000 if number % 10 == 0 else 500), properties={"number": number})
            try:
                self._outbox.send(session, self._news, message)
            except TransportError:
                pass  # it is stored, and goes with the next one
            self.stored = number + 1
        while len(self._outbox):
            try:
                self._outbox.resend(session)
            except TransportError:
                self.ended.wait(0.1)
        session.close()

    def close(self) -> None:
        self._connection.close()
        self._outbox.close()


class Receiver:
    """Notes in which order the messages of each key are handed out, and how often each."""

    def __init__(self, url: str, folder: Path, news: Queue) -> None:
        self.handled: Counter[int] = Counter()
        self.order: dict[int, list[int]] = defaultdict(list)
        self.arrived: dict[int, dict[int, None]] = defaultdict(dict)
        self._inbox = Inbox(folder / "inbox")
        self._runtime = ConsumerRuntime(
            lambda: connect(url, send_timeout=LIMIT, connect_timeout=LIMIT, close_timeout=1),
            news,
            self._handle,
            key=self._key,
            inbox=self._inbox,
            parking=PARKING,
            rules=RuntimeRules(concurrency=3, reconnect=Backoff(0.1, 1.0, 0.1)),
        ).start()

    def _key(self, message: JmsMessage) -> int:
        number = int(message.properties["number"])
        self.arrived[number % KEYS].setdefault(number)
        return number % KEYS

    def _handle(self, message: JmsMessage, context: object) -> None:
        number = int(message.properties["number"])
        self.order[number % KEYS].append(number)
        self.handled[number] += 1

    def close(self) -> None:
        self._runtime.drain()
        self._inbox.close()


class Prober:
    """Makes one call after the other, each with a time-out, and notes how far each kind has overrun it."""

    def __init__(self, url: str) -> None:
        self.overrun: dict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self.ended = threading.Event()
        self._url = url
        self._connection = connect(url, send_timeout=LIMIT, close_timeout=LIMIT)
        self._connection.start()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _connect(self) -> Connection:
        made = connect(self._url, send_timeout=LIMIT, connect_timeout=LIMIT, close_timeout=LIMIT)
        made.start()
        return made

    def _timed(self, what: str, call: Callable[[], Any]) -> Any:
        begun = time.monotonic()
        try:
            return call()
        except MtosiError:
            self.calls[f"{what} failed"] += 1
        finally:
            self.calls[what] += 1
            self.overrun[what] = max(self.overrun[what], time.monotonic() - begun - LIMIT)

    def _run(self) -> None:
        message = JmsMessage(body=b"x" * 2_000, delivery_mode=DeliveryMode.PERSISTENT)
        while not self.ended.wait(0.01):
            session, other = self._connection.session(), self._connection.session(transacted=True)
            consumer = self._timed("consumer", lambda session=session: session.consumer(PROBES))
            for _ in range(5):
                self._timed("send", lambda session=session: session.send(PROBES, message, timeout=LIMIT))
                self._timed("send NON_PERSISTENT", lambda session=session: session.send(PROBES, JmsMessage()))
                if consumer is not None:
                    for _ in range(3):
                        delivery = self._timed("receive", lambda consumer=consumer: consumer.receive(LIMIT))
                        if delivery is None:
                            break
                        self._timed("acknowledge", delivery.acknowledge)
                browser = session.browser(PROBES)
                while self._timed("browse", lambda browser=browser: next(browser, None)) is not None:
                    pass
                self._timed("send in a transaction", lambda other=other: other.send(PROBES, message, timeout=LIMIT))
                self._timed("commit", other.commit)
                self._timed("temporary queue", session.temporary_queue)
            if consumer is not None:
                self._timed("close a consumer", consumer.close)
            self._timed("close a session", session.close)
            self._timed("close a session", other.close)
            one = self._timed("connect", self._connect)
            if one is not None:
                self._timed("close a connection", one.close)

    def close(self) -> None:
        self.thread.join()
        self._connection.close()


def census() -> dict[str, int]:
    """Threads, those of Java included, and sockets of this process."""
    gc.collect()
    sockets = 0
    for one in Path("/proc/self/fd").iterdir():
        try:
            sockets += str(one.readlink()).startswith("socket:")
        except OSError:
            continue
    return {"threads": len(list(Path("/proc/self/task").iterdir())), "sockets": sockets}


def inversions(many: Iterable[Iterable[int]]) -> int:
    return sum(later < earlier for one in many for earlier, later in itertools.pairwise(one))


def until(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def main(url: str, folder: str, options: str) -> None:
    logging.disable(logging.CRITICAL)
    connect(url, connect_timeout=60).close()  # Java has loaded its classes
    news = Queue(f"chaos.news{options}")
    sender, receiver, prober = Sender(url, Path(folder), news), Receiver(url, Path(folder), news), Prober(url)
    until(lambda: len(receiver.handled) > 50 and prober.calls["close a connection"] > 2)
    before, most = census(), census()
    print("ready", flush=True)
    for line in sys.stdin:
        now = census()
        most = {name: max(most[name], count) for name, count in now.items()}
        if line.strip() == "end":
            break
        print(json.dumps({"handled": len(receiver.handled), "probes": prober.calls.total()}), flush=True)
    sender.ended.set()
    sender.thread.join()
    complete = until(lambda: len(receiver.handled) == sender.stored)
    settled = until(lambda: all(census()[name] <= before[name] + 3 for name in before), 45)
    after = census()
    prober.ended.set()
    prober.close()
    for one in (receiver, sender):
        one.close()
    figures = {
        "stored": sender.stored,
        "complete": complete,
        "lost": sender.stored - len(receiver.handled),
        "twice": sum(count > 1 for count in receiver.handled.values()),
        "out of order": inversions(receiver.order.values()),
        "arrived out of order": inversions(receiver.arrived.values()),
        "calls": dict(prober.calls),
        "overrun": {what: round(seconds, 2) for what, seconds in prober.overrun.items()},
        "settled": settled,
        "before": before,
        "most": most,
        "after": after,
    }
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
