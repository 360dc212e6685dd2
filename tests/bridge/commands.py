"""Commands in processes of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from typing import Any as Anything

SOON = 60.0


class Command:
    """`mtosi-jms` in a process of its own.

    Attributes:
        told: the lines of its standard error.
    """

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mtosi_jms", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
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

    def await_line(self, word: str) -> None:
        """Returns when a line of standard error has a word."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(word in one for one in self.told), SOON), self.told

    def end(self) -> Anything:
        """Ends it in order, and reads the JSON that it printed."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stdout is not None
        text = self.process.stdout.read()
        assert self.process.wait(SOON) == 0, self.told
        self._reader.join()
        return json.loads(text)

    def close(self) -> None:
        """Ends it at once."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
        self._reader.join()
        self.process.stdout.close()  # type: ignore[union-attr]
        self.process.stderr.close()  # type: ignore[union-attr]
