"""Programs that tests start as processes of their own, and whose output they read line by line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Literal, Self

from .waiting import PATIENCE


class Program:
    """A program that runs until it ends, or is killed with the block that it is used in.

    Args:
        command: runs it.
        hears: the stream whose lines are kept. Standard output is read at the end where it is the other one.
        environment: variables besides those of this process.
        log: file for its standard error, whose end an error shows; None: that of the tests.
        patience: seconds that a line, or its end, may take.
        options: of `subprocess.Popen`, such as `cwd`.

    Attributes:
        process: it.
        told: the lines so far.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        hears: Literal["stdout", "stderr"] = "stdout",
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
        patience: float = PATIENCE,
        **options: Any,
    ) -> None:
        pipe, environment = subprocess.PIPE, {**os.environ, **(environment or {})}
        pipes: dict[str, Any] = {"stdin": pipe, "stdout": pipe, hears: pipe}
        with ExitStack() as stack:
            if log is not None:
                pipes["stderr"] = stack.enter_context(log.open("wb"))
            self.process = subprocess.Popen(command, env=environment, text=True, encoding="utf-8", **pipes, **options)
        self.told: list[str] = []
        self._patience = patience
        self._log = log
        self._read = 0
        self._over = False
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._hear, args=(getattr(self.process, hears),), daemon=True)
        self._reader.start()

    def _hear(self, stream: IO[str]) -> None:
        for line in stream:
            with self._changed:
                self.told.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._over, self._patience)
            assert condition(), self._failure()

    def _failure(self) -> str:
        complaints = "" if self._log is None else self._log.read_text("utf-8", "replace")[-3000:]
        return f"{self.process.args}: {self.told[-20:]} {complaints}"

    def say(self, line: str) -> None:
        """Writes a line to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def line(self) -> str:
        """The next line."""
        self._until(lambda: len(self.told) > self._read)
        self._read += 1
        return self.told[self._read - 1]

    def lines(self, count: int) -> list[str]:
        """So many next lines."""
        return [self.line() for _ in range(count)]

    def count(self, text: str) -> int:
        """How many lines hold a text."""
        with self._changed:
            return sum(text in line for line in self.told)

    def await_line(self, text: str, count: int = 1) -> None:
        """Returns when so many lines hold a text."""
        self._until(lambda: self.count(text) >= count)

    def end(self, number: int = signal.SIGTERM) -> str:
        """Ends it in order, by a signal; returns its standard output, where the lines of standard error are kept."""
        self.process.send_signal(number)
        output = ""
        if self.process.stdout is not None and self.process.stderr is not None:
            output = self.process.stdout.read()
        assert self.process.wait(self._patience) == 0, self._failure()
        self._reader.join()
        return output

    def kill(self) -> None:
        """Ends it at once, if it is still there."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def command(*words: str, environment: Mapping[str, str] | None = None) -> Program:
    """`mtosi-jms` with these words, whose standard error is heard."""
    return Program([sys.executable, "-m", "mtosi_jms", *words], hears="stderr", environment=environment)
