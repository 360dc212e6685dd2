"""The roles of an exchange in bare stomp.py with strings: code that is written for speed only.

Every frame has the same headers and the same body as ours, made beforehand. TCP_NODELAY is set. The listener sends
answers and next requests itself, so that no thread waits for another.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
from typing import Any

os.environ.setdefault("STOMP_SKIP_HOSTNAME_SCAN", "1")
import stomp

IN_FLIGHT = 100
SECONDS = 60


class Bare(stomp.ConnectionListener):  # type: ignore[misc]
    """One connection.

    Args:
        plan: of the exchange; see `brokered.Plan`.
    """

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.connection = stomp.Connection12([("127.0.0.1", plan["port"])], auto_content_length=False)
        self.connection.set_listener("", self)
        self.connection.connect(plan["user"], plan["password"], wait=True)
        self.connection.transport.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.over = threading.Event()

    def subscribe(self, queue: str) -> None:
        """Receive from a queue; each message is acknowledged individually."""
        self.connection.subscribe(queue, 1, "client-individual", headers=self.plan["subscribing"])

    def run(self, amount: int) -> int:
        """Do the work that this role begins."""
        return amount

    def finish(self) -> None:
        """Wait until the work that has begun is done.

        Raises:
            RuntimeError: it takes too long.
        """
        if not self.over.wait(SECONDS):
            raise RuntimeError("stomp.py got no answer")
        self.over.clear()

    def on_error(self, frame: Any) -> None:
        """Handle an error of the broker."""
        os.write(2, f"{frame.headers.get('message')}\n".encode())


class Asker(Bare):
    """Keeps a number of requests in flight; each answer triggers the next request."""

    def __init__(self, plan: dict[str, Any]) -> None:
        super().__init__(plan)
        self.numbers = itertools.count()
        self.waiting: set[str] = set()
        self.left = 0
        self.subscribe(plan["replies"])

    def run(self, amount: int) -> int:
        """Make this number of exchanges."""
        self.left = amount
        first = min(IN_FLIGHT, amount)
        self.left -= first
        identifiers = [f"b-{next(self.numbers)}" for _ in range(first)]
        self.waiting.update(identifiers)
        for identifier in identifiers:
            self.ask(identifier)
        self.finish()
        return amount

    def ask(self, identifier: str) -> None:
        """Send one request."""
        request = self.plan["request"]
        self.connection.send(
            self.plan["queue"], request["body"], headers={**request["headers"], "correlation-id": identifier}
        )

    def on_message(self, frame: Any) -> None:
        """Handle an answer."""
        self.waiting.remove(frame.headers["correlation-id"])
        self.connection.ack(frame.headers["ack"])
        if self.left:
            self.left -= 1
            identifier = f"b-{next(self.numbers)}"
            self.waiting.add(identifier)
            self.ask(identifier)
        elif not self.waiting:
            self.over.set()


class Answerer(Bare):
    """Answers each request with answers that were made beforehand."""

    def __init__(self, plan: dict[str, Any]) -> None:
        super().__init__(plan)
        self.subscribe(plan["queue"])

    def on_message(self, frame: Any) -> None:
        """Handle a request."""
        identifier = frame.headers["correlation-id"]
        for answer in self.plan["answers"]:
            self.connection.send(
                self.plan["replies"], answer["body"], headers={**answer["headers"], "correlation-id": identifier}
            )
        self.connection.ack(frame.headers["ack"])


class BatchAsker(Asker):
    """One request after another, each with several answers."""

    def run(self, amount: int) -> int:
        """Make this number of exchanges."""
        for _ in range(amount):
            self.came = 0
            self.ask(f"b-{next(self.numbers)}")
            self.finish()
        return amount * len(self.plan["answers"])

    def on_message(self, frame: Any) -> None:
        """Handle a partial answer."""
        self.came += 1
        self.connection.ack(frame.headers["ack"])
        if frame.headers["MTOSI_batchSequenceEndOfReply"] == "true":
            if self.came != len(self.plan["answers"]):
                raise RuntimeError(f"{self.came} batches came")
            self.over.set()


class Source(Bare):
    """Sends persistent messages in transactions, one after the other."""

    def run(self, amount: int) -> int:
        """Send this number of messages."""
        message, size = self.plan["message"], self.plan["transaction"]
        for number in range(amount // size):
            name = self.connection.begin()
            for _ in range(size):
                self.connection.send(self.plan["queue"], message["body"], headers=message["headers"], transaction=name)
            self.connection.commit(name, receipt=str(number))
            self.finish()
        return amount

    def on_receipt(self, frame: Any) -> None:
        """Handle the receipt of a committed transaction."""
        self.over.set()


class Sink(Bare):
    """Receives the messages, in transactions if acknowledgements take part in the transactions of the broker."""

    def __init__(self, plan: dict[str, Any]) -> None:
        super().__init__(plan)
        self.came = 0
        self.done = threading.Semaphore(0)
        self.name: str | None = None
        self.subscribe(plan["queue"])

    def run(self, amount: int) -> int:
        """Receive this number of messages."""
        for _ in range(amount // self.plan["transaction"]):
            if not self.done.acquire(timeout=SECONDS):
                raise RuntimeError("stomp.py got no message")
        return amount

    def on_message(self, frame: Any) -> None:
        """Handle a message."""
        if self.name is None and self.plan["transacted_receive"]:
            self.name = self.connection.begin()
        self.connection.ack(frame.headers["ack"], transaction=self.name)
        self.came += 1
        if self.came % self.plan["transaction"]:
            return
        if self.name is None:
            self.done.release()
        else:
            self.connection.commit(self.name, receipt=self.name)
            self.name = None

    def on_receipt(self, frame: Any) -> None:
        """Handle the receipt of a committed transaction."""
        self.done.release()


ROLES = {
    "request": (Asker, Answerer),
    "batches": (BatchAsker, Answerer),
    "stream": (Source, Sink),
}
"""The roles by scenario: the one that begins, and the one that answers."""


def role(plan: dict[str, Any], scenario: str, answers: bool) -> Bare:
    """One side of an exchange."""
    return ROLES[scenario][answers](plan)
