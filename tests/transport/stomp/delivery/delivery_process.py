"""A sender or a receiver in a process of its own, which the kill tests kill. It tells on standard output what it does.

Usage: delivery_process.py send|resend|receive QUEUE FOLDER NAME; the broker's URL is in BROKER_URL.

`send` stores and sends messages NAME-0, NAME-1 ... for ever, `resend` sends what is left and ends, `receive` hands out
for ever, until SIGTERM.
"""

from __future__ import annotations

import itertools
import os
import sys
from typing import Any

from mtosi_jms.errors import TransportError, UnknownOutcomeError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.runtime import ConsumerRuntime, RuntimeRules
from mtosi_jms.spool import Inbox, InboxEntry, Outbox
from mtosi_jms.transport import connect

PADDING = b"x" * 1_000


def tell(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def name_of(message: JmsMessage) -> str:
    return message.body.split()[0].decode()


def flush(outbox: Outbox, session: Any) -> None:
    """Sends what is left, however often the outcome is unknown."""
    while len(outbox):
        try:
            outbox.resend(session)
        except UnknownOutcomeError as error:
            tell("unknown", len(error.messages))
        except TransportError as error:
            tell("failed", type(error).__name__)


def send(queue: Queue, folder: str, name: str, *, only_resend: bool) -> None:
    with connect(os.environ["BROKER_URL"]) as connection, Outbox(folder) as outbox:
        session = connection.session()
        tell("resent", len(outbox))
        flush(outbox, session)
        for number in itertools.count():
            if only_resend:
                break
            outbox.put(JmsMessage(body=b"%s-%d %s" % (name.encode(), number, PADDING)), queue)
            tell("stored", f"{name}-{number}")
            flush(outbox, session)
    tell("over")


def receive(queue: Queue, folder: str) -> None:
    inbox = Inbox(folder, on_doubt=lambda entry: tell("doubt", name_of(entry.message)))
    told: list[InboxEntry] = inbox.in_doubt
    for entry in told:  # the application has written it down: that is how it decides
        inbox.done(entry.key)

    def handle(message: JmsMessage, context: Any) -> None:
        tell("handed", name_of(message), inbox.duplicates)

    runtime = ConsumerRuntime(
        lambda: connect(os.environ["BROKER_URL"]),
        queue,
        handle,
        inbox=inbox,
        parking=Queue(f"{queue.name}.parked"),
        rules=RuntimeRules(concurrency=4),
    )
    runtime.run()
    tell("dropped", inbox.duplicates)
    tell("over")


if __name__ == "__main__":
    what, queue_name, where, mark = sys.argv[1:]
    if what == "receive":
        receive(Queue(queue_name), where)
    else:
        send(Queue(queue_name), where, mark, only_resend=what == "resend")
