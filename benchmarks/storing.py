"""Outbox and inbox on this machine's disk, compared with appending to a file and syncing it equally often."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from measure import Comparison, Side, compare

from mtosi_jms.jms import Destination, JmsMessage, Queue
from mtosi_jms.spool import Inbox, Outbox

QUEUE = Queue("BENCHMARK")
BODY = b"x" * 1_000
_numbers = itertools.count()


class Provider:
    """Confirms at once."""

    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """Return the message, confirmed."""
        return message


def message() -> JmsMessage:
    """Return a message of 1 kB with an id of its own."""
    return JmsMessage(body=BODY, properties={"MTOSIX_messageId": f"id-{next(_numbers)}"})


def stored_and_confirmed(*, quick: bool) -> Comparison:
    """Messages of 1 kB through an outbox, with one sync each."""
    messages = 100 if quick else 1_000
    with tempfile.TemporaryDirectory() as folder, Outbox(Path(folder) / "outbox") as outbox:
        provider = Provider()

        def run() -> int:
            for _ in range(messages):
                outbox.send(provider, QUEUE, message())
            return messages

        sides = [
            Side("Outbox.send", "ours", run),
            Side("a file, synced once a message", "limit", _appended(Path(folder) / "file", messages, syncs=1)),
        ]
        title = f"{messages:,} messages of 1 kB stored, sent and confirmed"
        return compare("stored", title, "messages", sides, rounds=3 if quick else 5)


def landed_and_done(*, quick: bool) -> Comparison:
    """Messages of 1 kB through an inbox, with one sync when each lands and one when it is handed out."""
    messages = 100 if quick else 1_000
    with tempfile.TemporaryDirectory() as folder, Inbox(Path(folder) / "inbox") as inbox:

        def run() -> int:
            for _ in range(messages):
                inbox.land(message())
                entry = inbox.take()
                if entry is not None:
                    inbox.hand(entry.key)
                    inbox.done(entry.key)
            return messages

        sides = [
            Side("Inbox.land, take, hand, done", "ours", run),
            Side("a file, synced twice a message", "limit", _appended(Path(folder) / "file", messages, syncs=2)),
        ]
        title = f"{messages:,} messages of 1 kB landed, handed out and done"
        return compare("landed", title, "messages", sides, rounds=3 if quick else 5)


def _appended(path: Path, messages: int, *, syncs: int) -> Callable[[], int]:
    def run() -> int:
        with path.open("wb", buffering=0) as file:
            for _ in range(messages):
                for _ in range(syncs):
                    file.write(BODY)
                    os.fsync(file.fileno())
        return messages

    return run
