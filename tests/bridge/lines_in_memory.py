"""The lines of docs/bridge.md in one process, in which `memory:` is: `subscribe`, `bridge` and `channel publish`.

Its arguments are the words of the three, as JSON. Each command is told to end as a shell would tell it.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading

from mtosi_jms.cli import main

SOON = 60.0


class Ready(io.TextIOBase):
    """Standard error, with a look at the lines that say `ready`."""

    def __init__(self) -> None:
        self._real = sys.stderr
        self._count = 0
        self._changed = threading.Condition()

    def write(self, text: str) -> int:
        with self._changed:
            self._count += text.count("ready: ")
            self._changed.notify_all()
        return self._real.write(text)

    def wait(self, count: int) -> None:
        """Returns when so many commands are ready."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._count >= count, SOON)


def run(subscribe: list[str], bridge: list[str], publish: list[str]) -> int:
    """What the worst of the commands returns."""
    ready = Ready()
    sys.stderr = ready
    codes: list[int] = []

    def others() -> None:
        try:
            subscriber = threading.Thread(target=lambda: codes.append(main([*subscribe, "--count", "1"])))
            ready.wait(1)
            subscriber.start()
            ready.wait(2)
            codes.append(main(publish))
            subscriber.join()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=others)
    thread.start()
    codes.append(main(bridge))
    thread.join()
    return max(codes) if len(codes) == 3 else 1


if __name__ == "__main__":
    sys.exit(run(*(json.loads(one) for one in sys.argv[1:])))
