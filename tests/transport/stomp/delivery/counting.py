"""What the kill tests count, and the processes that they kill."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
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


class Nursery:
    """Makes the processes.

    Args:
        environment: beside ours.
        folder: for what they write.
    """

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self.errors: list[str] = []
        self._folder = folder
        self._numbers = itertools.count()
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("delivery_process.py"))],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._thread = threading.Thread(target=self._read_errors)
        self._thread.start()

    def start(self, *arguments: str) -> Child:
        """A new process; see `delivery_process.py`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        output = self._folder / f"said-{next(self._numbers)}"
        os.mkfifo(output)
        self._process.stdin.write("\t".join([*arguments, str(output)]) + "\n")
        self._process.stdin.flush()
        told = self._process.stdout.readline()
        assert told, "".join(self.errors)
        return Child(int(told), output, self.errors)

    def close(self) -> None:
        """Makes no more."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._thread.join(PATIENCE)

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as output:
            self.errors.extend(output)


class Child:
    """A process that tells what it does, line by line, and is killed in the middle of it.

    Args:
        pid: of the process.
        output: what it writes to.
        errors: where its errors go, and those of others.
    """

    def __init__(self, pid: int, output: Path, errors: list[str]) -> None:
        self.lines: list[Said] = []
        self._pid = pid
        self._output = output
        self._errors = errors
        self._changed = threading.Condition()
        self._ended = False
        self._opened = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def until(self, word: str, count: int = 1) -> None:
        """Returns when it has said so often that it did something."""
        self.wait_for(lambda lines: sum(line.word == word for line in lines) >= count)

    def wait_for(self, condition: Callable[[list[Said]], bool]) -> None:
        """Returns when a condition on its lines holds."""
        with self._changed:
            self._changed.wait_for(lambda: condition(self.lines) or self._ended, PATIENCE)
            fine = condition(self.lines)
        assert fine, f"ended {self._ended}, last {self.lines[-3:]}, errors {''.join(self._errors)}"

    def kill(self) -> list[Said]:
        """Ends it at once; all that it has said."""
        return self._end(signal.SIGKILL)

    def stop(self) -> list[Said]:
        """Has it end in good order; all that it has said."""
        self.until("ready")
        return self._end(signal.SIGTERM)

    def join(self) -> list[Said]:
        """Waits for its end; all that it has said."""
        self._thread.join(PATIENCE)
        assert self._ended
        return self.lines

    def _end(self, number: int) -> list[Said]:
        if not self._ended:
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)
        while not self._opened.wait(
            0.01
        ):  # one that was killed before it came to writing will never open the other end
            with suppress(OSError):
                os.close(os.open(self._output, os.O_WRONLY | os.O_NONBLOCK))
        return self.join()

    def _read(self) -> None:
        with self._output.open(encoding="ascii") as output:
            self._opened.set()
            for line in output:
                word, *rest = line.split()
                with self._changed:
                    self.lines.append(Said(word, tuple(rest)))
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


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
