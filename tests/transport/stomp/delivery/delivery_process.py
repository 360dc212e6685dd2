"""Senders and receivers in processes of their own, which the kill tests kill. They tell line by line what they do.

For each line of its standard input, `WHAT QUEUE FOLDER NAME OUTPUT` with tabs between them, this process makes another
one and tells its id; that one writes to the file OUTPUT. So nothing is imported anew for each of hundreds. The broker's
URL is in BROKER_URL.

`send` stores and sends messages NAME-0, NAME-1 ... for ever, `resend` sends what is left and ends, `receive` hands out
for ever, until SIGTERM.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import traceback
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


def work(what: str, queue: str, folder: str, name: str, output: str) -> int:
    """What the new process does; its exit code."""
    os.dup2(os.open(output, os.O_WRONLY), 1)
    tell("ready")
    try:
        if what == "receive":
            receive(Queue(queue), folder)
        else:
            send(Queue(queue), folder, name, only_resend=what == "resend")
    except BaseException:  # noqa: BLE001 - the test prints it
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody here waits for them
    for line in sys.stdin:
        made = os.fork()
        if not made:
            os._exit(work(*line.rstrip("\n").split("\t")))
        tell(made)


if __name__ == "__main__":
    main()
