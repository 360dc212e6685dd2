"""What the kill tests count, and the processes that they kill and interrupt."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from . import delivery_process

PROCESSES = multiprocessing.get_context("forkserver")  # nothing is imported anew for each of hundreds
PROCESSES.set_forkserver_preload([delivery_process.__name__])
PATIENCE = 120.0
"""Seconds after which something that should have happened will not."""


@dataclass
class Tally:
    """Messages by name, over all rounds of one test.

    `stored` was promised by the outbox; `wrong` was handed, or in doubt, and not as its sender made it; `counters` are
    the last words of each process."""

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

    `folder` is for outbox and inbox, `seed` of all that is random, `variables` of the processes' environment."""

    RECEIVERS = ("take", "handle")

    def __init__(self, url: str, folder: Path, seed: int, variables: Mapping[str, str]) -> None:
        self.tally = Tally()
        self.dice = random.Random(seed)
        self._folder = folder
        self._variables = {**variables, "BROKER_URL": url}
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._living: dict[str, Child] = {}

    def start(self, *parts: str) -> None:
        """Makes a process for each of these parts: send, resend, take, handle."""
        for part in parts:
            number = next(self._numbers)
            journal = self._folder / ("inbox" if part in self.RECEIVERS else "outbox")
            work = part, "kill", str(journal), f"m{number}", self._variables
            self._living[part] = Child(number, work, self._changed, self.tally.hear)

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
            assert condition(), f"ended {self._failed()}, {self.tally.figures()}, open {sorted(self.tally.lost)[:5]}"

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

    def _failed(self) -> list[str]:
        return [part for part, child in self._living.items() if child.ended and not child.over]

    def _at_work(self) -> list[Child]:
        return [child for child in self._living.values() if child.ready and not child.ended]


class Child:
    """A process that tells what it does, and is killed or interrupted in the middle of it; `hear` takes its number and
    the words. `ready`: it goes about its work, and the last Ctrl-C is behind it. `over`: it has come to its end in good
    order. `ended`: it is gone, however that came."""

    def __init__(
        self, number: int, work: tuple[object, ...], changed: threading.Condition, hear: Callable[..., None]
    ) -> None:
        self.ready = self.over = self.ended = False
        self._number = number
        self._changed = changed
        self._hear = hear
        said, saying = PROCESSES.Pipe(duplex=False)
        self._process = PROCESSES.Process(target=delivery_process.work, args=(*work, saying))
        self._process.start()
        saying.close()
        self._thread = threading.Thread(target=self._listen, args=(said,), daemon=True)
        self._thread.start()

    def interrupt(self) -> None:
        """A Ctrl-C."""
        self.ready = False
        self._signal(signal.SIGINT)

    def end(self, number: int) -> None:
        """Ends it by a signal, and has heard all that it has said."""
        with self._changed:
            if not self.ended:
                self._signal(number)
        self._thread.join(PATIENCE)
        assert self.ended

    def _signal(self, number: int) -> None:
        assert self._process.pid is not None
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def _listen(self, said: Connection) -> None:
        with said, suppress(EOFError):
            while True:
                word, *facts = said.recv()
                with self._changed:
                    self.ready = self.ready or word in ("ready", "interrupted")
                    self.over = self.over or word == "over"
                    self._hear(self._number, word, *facts)
                    self._changed.notify_all()
        with self._changed:
            self.ended = True
            self._changed.notify_all()
