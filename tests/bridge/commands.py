"""Commands in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

SOON = 60.0


class Command:
    """`mtosi-jms` in a process of its own, which can be ended or killed.

    Args:
        words: of its command line.
        environment: variables besides those of this process.

    Attributes:
        process: it.
        told: the lines of its standard error.
    """

    def __init__(self, *words: str, environment: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mtosi_jms", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self.told: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.told.append(line.rstrip())
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def count(self, word: str) -> int:
        """How many lines hold a word."""
        with self._changed:
            return sum(word in one for one in self.told)

    def await_line(self, word: str, count: int = 1) -> None:
        """Returns when so many lines hold a word."""
        self._until(lambda: self.count(word) >= count)

    def _until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: condition() or not self._reader.is_alive(), SOON)
            assert condition(), self.told

    def end(self) -> Any:
        """Ends it in order; what it says at its end."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stdout is not None
        text = self.process.stdout.read()
        assert self.process.wait(SOON) == 0, self.told
        self._reader.join()
        return json.loads(text)

    def close(self) -> None:
        """Kills it, if it is still there."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
