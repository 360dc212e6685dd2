"""What the kill tests count, and the processes that they kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.spool import Inbox
from mtosi_jms.transport import connect

ROUNDS = int(os.environ.get("MTOSI_KILL_ROUNDS", "100"))
"""Of the long form of each test."""
PATIENCE = 120.0
"""Seconds after which something that should have happened will not."""


@dataclass
class Tally:
    """Messages by name, over all rounds of one test.

    Attributes:
        stored: what the sender has stored, and so promised.
        handed: how often each was handed to the application.
        in_doubt: what the application was told to be in doubt.
        unknown: sends whose outcome was reported as unknown.
        resent: messages that were sent again.
        removed: copies that the receiver recognised and dropped.
    """

    stored: set[str] = field(default_factory=set)
    handed: Counter[str] = field(default_factory=Counter)
    in_doubt: set[str] = field(default_factory=set)
    unknown: int = 0
    resent: int = 0
    removed: int = 0

    @property
    def lost(self) -> set[str]:
        """Stored, and neither handed out nor told to be in doubt."""
        return self.stored - set(self.handed) - self.in_doubt

    @property
    def twice(self) -> set[str]:
        """Handed out more than once."""
        return {name for name, times in self.handed.items() if times > 1}

    def write(self, path: Path, **facts: object) -> None:
        """Writes and prints the figures."""
        figures = {
            **facts,
            "sent": len(self.stored),
            "handed": len(self.handed),
            "unknown": self.unknown,
            "resent": self.resent,
            "removed": self.removed,
            "in_doubt": len(self.in_doubt),
            "lost": len(self.lost),
            "handed_twice": len(self.twice),
        }
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(figures))


def take_copies(url: str, queue: Queue, inbox: Inbox, tally: Tally) -> None:
    """Receives what is left in a queue at the end: all of it must be copies, or it is handed out as anything else."""
    with connect(url) as connection:
        connection.start()
        consumer = connection.session().consumer(queue)
        while (delivery := consumer.receive(1.0)) is not None:
            if inbox.land(delivery.message):
                tally.handed[name_of(delivery.message)] += 1
            delivery.acknowledge()
    tally.removed += inbox.duplicates


def name_of(message: JmsMessage) -> str:
    """The name that the sender gave a message."""
    return message.body.split()[0].decode()


@dataclass(frozen=True)
class Said:
    """A line of a child.

    Attributes:
        word: what it is about.
        rest: the facts.
    """

    word: str
    rest: tuple[str, ...]


class Child:
    """A process that tells what it does, line by line, and is killed in the middle of it.

    Args:
        arguments: of `delivery_process.py`.
        environment: beside ours.
    """

    def __init__(self, arguments: list[str], environment: Mapping[str, str]) -> None:
        self.lines: list[Said] = []
        self._changed = threading.Condition()
        self._ended = False
        command = [sys.executable, str(Path(__file__).with_name("delivery_process.py")), *arguments]
        self.process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._errors: list[str] = []
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._read_errors)]
        for thread in self._threads:
            thread.start()

    def until(self, word: str, count: int = 1) -> None:
        """Returns when it has said so often that it did something."""
        self.wait_for(lambda lines: sum(line.word == word for line in lines) >= count)

    def wait_for(self, condition: Callable[[list[Said]], bool]) -> None:
        """Returns when a condition on its lines holds."""
        with self._changed:
            there = self._changed.wait_for(lambda: condition(self.lines) or self._ended, PATIENCE)
            if not there or not condition(self.lines):
                self.process.kill()
                raise AssertionError(f"ended {self._ended}, last {self.lines[-3:]}, errors {''.join(self._errors)}")

    def kill(self) -> list[Said]:
        """Ends it at once; all that it has said."""
        self.process.kill()
        return self.join()

    def stop(self) -> list[Said]:
        """Has it end in good order; all that it has said."""
        self.process.terminate()
        return self.join()

    def join(self) -> list[Said]:
        """Waits for its end; all that it has said."""
        self.process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        return self.lines

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                word, *rest = line.split()
                with self._changed:
                    self.lines.append(Said(word, tuple(rest)))
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as output:
            self._errors.extend(output)


def count(tally: Tally, lines: list[Said]) -> None:
    """Adds what one child has said."""
    removed = 0
    for line in lines:
        match line.word:
            case "stored":
                tally.stored.add(line.rest[0])
            case "unknown":
                tally.unknown += int(line.rest[0])
            case "resent":
                tally.resent += int(line.rest[0])
            case "doubt":
                tally.in_doubt.add(line.rest[0])
            case "handed":
                tally.handed[line.rest[0]] += 1
                removed = int(line.rest[1])
            case "dropped":
                removed = int(line.rest[0])
    tally.removed += removed
