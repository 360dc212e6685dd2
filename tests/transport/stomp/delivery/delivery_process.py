"""Senders and receivers in processes of their own, which the kill tests kill and interrupt. They tell what they do.

`send` stores and sends messages NAME-0, NAME-1 ..., `resend` sends what is left, and one message more, and ends; `take`
receives in its main thread, `handle` by a consumer runtime. SIGTERM ends them in good order. A Ctrl-C ends none: like
somebody at a notebook they go on with the objects that they have.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
from collections.abc import Callable, Mapping
from hashlib import blake2b
from multiprocessing.connection import Connection as Pipe
from typing import Any

from mtosi_jms.errors import TransportError, UnknownOutcomeError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.runtime import Backoff, ConsumerRuntime, RuntimeRules
from mtosi_jms.spool import Inbox, InboxEntry, InboxReceiver, Outbox, handed_out
from mtosi_jms.transport import Connection, connect, stomp

ID = "MTOSIX_messageId"
IMPORTED = stomp
"""By the first connection, else; Python itself cannot go on with an import that a Ctrl-C broke off."""


said: list[Pipe] = []
"""One, in a process of its own."""


def tell(*words: object) -> None:
    said[0].send(list(map(str, words)))


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def message_of(name: str) -> JmsMessage:
    """A message of some length, whose body tells its name and whether it is whole."""
    padding = random.randbytes(random.randint(0, 1_000)).hex()
    digest = blake2b(f"{name} {padding}".encode(), digest_size=16).hexdigest()
    return JmsMessage(body=f"{name} {digest} {padding}".encode(), properties={ID: name})


def name_of(message: JmsMessage) -> str:
    """The name of a message; `wrong` is told of one that is not what its sender made."""
    name, digest, padding = message.body.decode().split(" ")
    if digest != blake2b(f"{name} {padding}".encode(), digest_size=16).hexdigest() or message.properties[ID] != name:
        tell("wrong", name, message.properties[ID])
    return name


def open_connection() -> Connection:
    """Lost once it is gone for good: one that comes back by itself waits longer each time that a broker dies."""
    return connect(os.environ["BROKER_URL"], connect_timeout=5, reconnect=False)


def go_on(step: Callable[[], object]) -> None:
    """Takes one step after the other until SIGTERM; a Ctrl-C breaks off a step, no more."""
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    news = "ready"
    while not told:
        try:
            if news:
                tell(news)
                news = ""
            while not told:
                step()
        except KeyboardInterrupt:
            news = "interrupted"
        except RuntimeError as error:  # a Ctrl-C in Condition.wait, after which `with` finds no lock
            if not isinstance(error.__context__, KeyboardInterrupt):
                raise
            news = "interrupted"


class Party:
    """Has a connection, and makes another one when it is lost."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self._connection: Connection | None = None

    def drop(self) -> None:
        """Lets go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def session(self) -> Any:
        """A session of a new connection."""
        self.drop()
        self._connection = open_connection()
        self._connection.start()
        return self._connection.session()


class Sender(Party):
    """Stores and sends; what a Ctrl-C kept from being stored is stored by a second attempt, or never."""

    def __init__(self, queue: Queue, folder: str, name: str) -> None:
        super().__init__(queue)
        self.outbox = Outbox(folder)
        self._names = (f"{name}-{number}" for number in itertools.count())
        self._message: JmsMessage | None = None
        self._session: Any = None

    def step(self) -> None:
        if not self.flush():
            return
        if self._message is None or random.randrange(2):
            self._message = message_of(next(self._names))
        self.outbox.put(self._message, self.queue)
        tell("stored", self._message.properties[ID])
        self._message = None

    def flush(self) -> bool:
        """Sends what is left; whether nothing is any more."""
        try:
            self._session = self._session or self.session()
            self.outbox.resend(self._session)
        except TransportError as error:
            if isinstance(error, UnknownOutcomeError):
                tell("unknown", len(error.messages))
            self._session = None
            pause(0.1)
        tell("sent", self.outbox.sent)
        tell("resent", self.outbox.resent)
        return not len(self.outbox)


class Receiver(Party):
    """Shares an inbox with others, and writes down what is in doubt: that is how this application decides."""

    def __init__(self, queue: Queue, folder: str) -> None:
        super().__init__(queue)
        self.inbox = Inbox(folder, on_doubt=lambda entry: tell("doubt", name_of(entry.message)))
        self._source: InboxReceiver | None = None

    def take(self) -> None:
        """Receives a message."""
        self._settle()
        try:
            if self._source is None:
                session = self.session()
                self._source = InboxReceiver(session, session.consumer(self.queue), self.inbox)
            delivery = self._source.receive(0.2)
            if delivery is not None:
                with handed_out(delivery):
                    self.handle(delivery.message)
        except TransportError:
            self._source = None
            pause(0.1)

    def look(self) -> None:
        """Others receive."""
        self._settle()
        pause(0.05)

    def close(self) -> None:
        tell("removed", self.inbox.duplicates)
        self.inbox.close()

    def handle(self, message: JmsMessage, context: Any = None) -> None:
        pause(random.random() / 50)  # who is killed meanwhile has told nothing of it
        tell("handed", name_of(message))
        tell("removed", self.inbox.duplicates)

    def _settle(self) -> None:
        doubtful: list[InboxEntry] = self.inbox.in_doubt
        for entry in doubtful:
            tell("doubt", name_of(entry.message))
            self.inbox.done(entry.key)


def send(queue: Queue, folder: str, name: str) -> None:
    sender = Sender(queue, folder, name)
    go_on(sender.step)
    sender.drop()
    sender.outbox.close()


def resend(queue: Queue, folder: str, name: str) -> None:
    sender = Sender(queue, folder, name)
    while not sender.flush():
        pass
    sender.step()
    while not sender.flush():
        pass
    sender.drop()
    sender.outbox.close()


def take(queue: Queue, folder: str, name: str) -> None:
    receiver = Receiver(queue, folder)
    go_on(receiver.take)
    receiver.drop()
    receiver.close()


def handle(queue: Queue, folder: str, name: str) -> None:
    receiver = Receiver(queue, folder)
    rules = RuntimeRules(concurrency=4, reconnect=Backoff(0.1, 1.0, 0.1))
    parking = Queue(f"{queue.name}.parked")
    with ConsumerRuntime(open_connection, queue, receiver.handle, inbox=receiver.inbox, parking=parking, rules=rules):
        go_on(receiver.look)
    receiver.close()


WHAT: dict[str, Callable[[Queue, str, str], None]] = {"send": send, "resend": resend, "take": take, "handle": handle}


def work(what: str, queue: str, folder: str, name: str, variables: Mapping[str, str], saying: Pipe) -> None:
    said.append(saying)
    os.environ.update(variables)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests in the background ignores it
    random.seed(name)
    WHAT[what](Queue(queue), folder, name)
    tell("over")
