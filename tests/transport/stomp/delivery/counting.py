"""What the kill tests count, and the processes that they kill and interrupt."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 120.0
"""Seconds after which something that should have happened will not."""


@dataclass
class Tally:
    """Messages by name, over all rounds of one test.

    Attributes:
        stored: what the sender was told to be stored, and so was promised.
        handed: how often each was handed to the application.
        in_doubt: what the application was told to be in doubt.
        wrong: what was handed, or in doubt, and not as its sender made it.
        unknown: sends whose outcome was reported as unknown.
        interrupted: Ctrl-Cs that broke off what a process did.
        counters: of each process, by its own last word: what was sent, sent again, and removed as a copy.
    """

    stored: set[str] = field(default_factory=set)
    handed: Counter[str] = field(default_factory=Counter)
    in_doubt: set[str] = field(default_factory=set)
    wrong: set[str] = field(default_factory=set)
    unknown: int = 0
    interrupted: int = 0
    counters: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def lost(self) -> set[str]:
        """Stored, and neither handed out nor told to be in doubt."""
        return self.stored - set(self.handed) - self.in_doubt

    @property
    def twice(self) -> set[str]:
        """Handed out more than once."""
        return {name for name, times in self.handed.items() if times > 1}

    def hear(self, process: int, word: str, *facts: str) -> None:
        """Counts what a process has said."""
        match word:
            case "stored":
                self.stored.add(facts[0])
            case "handed":
                self.handed[facts[0]] += 1
            case "doubt":
                self.in_doubt.add(facts[0])
            case "wrong":
                self.wrong.add(" ".join(facts))
            case "unknown":
                self.unknown += int(facts[0])
            case "interrupted":
                self.interrupted += 1
            case "sent" | "resent" | "removed":
                self.counters[word, process] = int(facts[0])

    def figures(self) -> dict[str, int]:
        """All of it in numbers."""
        by_word = {word: sum(n for (w, _), n in self.counters.items() if w == word) for word in ("sent", "resent")}
        return {
            "stored": len(self.stored),
            **by_word,
            "handed": len(self.handed),
            "unknown": self.unknown,
            "removed": sum(n for (word, _), n in self.counters.items() if word == "removed"),
            "in_doubt": len(self.in_doubt),
            "interrupted": self.interrupted,
            "lost": len(self.lost),
            "handed_twice": len(self.twice),
            "wrong_content": len(self.wrong),
        }

    def write(self, path: Path, **facts: object) -> None:
        """Writes and prints the figures."""
        figures = {**facts, **self.figures()}
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(figures))


class Traffic:
    """One sender with an outbox, and two receivers that compete for its queue and share an inbox: processes all.

    Args:
        url: of the broker.
        root: of the checkout.
        folder: for outbox, inbox, and what the processes say.
        seed: of all that is random.

    Attributes:
        tally: what they have done.
        dice: for the caller.
    """

    RECEIVERS = ("take", "handle")

    def __init__(self, url: str, root: Path, folder: Path, seed: int) -> None:
        self.tally = Tally()
        self.dice = random.Random(seed)
        self._folder = folder
        self._changed = threading.Condition()
        self._errors: list[str] = []
        self._numbers = itertools.count()
        self._living: dict[str, Child] = {}
        self._nursery = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("delivery_process.py"))],
            env={**os.environ, "BROKER_URL": url, "PYTHONPATH": str(root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._thread = threading.Thread(target=self._read_errors)
        self._thread.start()

    def start(self, *parts: str) -> None:
        """Makes a process for each of these parts: send, resend, take, handle."""
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        for part in parts:
            number = next(self._numbers)
            output = self._folder / f"said-{number}"
            os.mkfifo(output)
            journal = self._folder / ("inbox" if part in self.RECEIVERS else "outbox")
            self._nursery.stdin.write("\t".join([part, "kill", str(journal), f"m{number}", str(output)]) + "\n")
            self._nursery.stdin.flush()
            told = self._nursery.stdout.readline()
            assert told, "".join(self._errors)
            self._living[part] = Child(number, int(told), output, self._changed, self.tally.hear)

    def after(self, *, stored: int = 0, handed: int = 0) -> None:
        """Returns when so many more messages were stored, and so many more were handed out."""
        with self._changed:
            stored += len(self.tally.stored)
            handed += self.tally.handed.total()
        self.until(lambda: len(self.tally.stored) >= stored and self.tally.handed.total() >= handed)

    def until(self, condition: Callable[[], bool]) -> None:
        """Returns when a condition holds; not when a process ended that nobody has ended."""
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._failed(), PATIENCE)
            assert condition(), (
                f"ended {self._failed()}, {self.tally.figures()}, open {sorted(self.tally.lost)[:5]}, "
                f"errors {''.join(self._errors[-50:])}"
            )

    def interrupt(self) -> threading.Thread:
        """One Ctrl-C to one of the processes, at a random moment of the next second; the thread that sees to it."""
        moment, choice = self.dice.random(), self.dice.random()

        def press() -> None:
            with self._changed:
                self._changed.wait_for(self._at_work, PATIENCE)
                at_work = self._at_work()
                if at_work:
                    at_work[int(choice * len(at_work))].interrupt()

        timer = threading.Timer(moment, press)
        timer.daemon = True
        timer.start()
        return timer

    def kill(self, part: str) -> None:
        """Ends a process at once."""
        self._living.pop(part).end(signal.SIGKILL)

    def stop(self, part: str) -> None:
        """Has a process end in good order."""
        child = self._living[part]
        self.until(lambda: child.ready)
        child.end(signal.SIGTERM)
        self.until(lambda: child.over)
        del self._living[part]

    def join(self, part: str) -> None:
        """Waits until a process has come to its end."""
        child = self._living[part]
        self.until(lambda: child.over)
        del self._living[part]

    def close(self) -> None:
        """Ends all of them."""
        for part in list(self._living):
            self.kill(part)
        self._nursery.kill()
        self._nursery.wait()
        for stream in (self._nursery.stdin, self._nursery.stdout):
            assert stream is not None
            stream.close()
        self._thread.join(PATIENCE)

    def _failed(self) -> list[str]:
        return [part for part, child in self._living.items() if child.ended and not child.over]

    def _at_work(self) -> list[Child]:
        return [child for child in self._living.values() if child.ready and not child.ended]

    def _read_errors(self) -> None:
        assert self._nursery.stderr is not None
        with self._nursery.stderr as output:
            self._errors.extend(output)


class Child:
    """A process that tells what it does, line by line, and is killed or interrupted in the middle of it.

    Args:
        number: its own.
        pid: of the process.
        output: what it writes to.
        changed: told of each line.
        hear: takes number and words of each line.

    Attributes:
        ready: whether it goes about its work, and the last Ctrl-C is behind it.
        over: whether it has come to its end in good order.
        ended: whether it is gone, however that came.
    """

    def __init__(
        self, number: int, pid: int, output: Path, changed: threading.Condition, hear: Callable[..., None]
    ) -> None:
        self.ready = self.over = self.ended = False
        self._number = number
        self._pid = pid
        self._output = output
        self._changed = changed
        self._hear = hear
        self._opened = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def interrupt(self) -> None:
        """A Ctrl-C."""
        self.ready = False
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGINT)

    def end(self, number: int) -> None:
        """Ends it by a signal, and has heard all that it has said."""
        with self._changed:
            if not self.ended:
                with suppress(ProcessLookupError):
                    os.kill(self._pid, number)
        while not self._opened.wait(0.01):  # killed before it came to writing, it will never open the other end
            with suppress(OSError):
                os.close(os.open(self._output, os.O_WRONLY | os.O_NONBLOCK))
        self._thread.join(PATIENCE)
        assert self.ended

    def _read(self) -> None:
        with self._output.open(encoding="ascii") as output:
            self._opened.set()
            for line in output:
                word, *facts = line.split()
                with self._changed:
                    self.ready = self.ready or word in ("ready", "interrupted")
                    self.over = self.over or word == "over"
                    self._hear(self._number, word, *facts)
                    self._changed.notify_all()
        with self._changed:
            self.ended = True
            self._changed.notify_all()
