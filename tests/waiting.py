"""Actions in threads of their own, and waiting for what happens there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

PATIENCE = 60.0
"""Seconds after which what should have happened is taken to have failed; no test waits for it to pass."""


def background(action: Callable[[], Any]) -> Future[Any]:
    """Run an action in its own thread. Get the result from the future, with a time-out that reveals a hang."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(action())
        except BaseException as error:  # noqa: BLE001 - the future raises it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def until(holds: Callable[[], object], patience: float = PATIENCE) -> None:
    """Return once something holds. `patience`: seconds."""
    tick, latest = threading.Event(), time.monotonic() + patience
    while not holds():
        assert time.monotonic() < latest, "it did not come to that"
        tick.wait(0.01)


@contextmanager
def threads_end() -> Iterator[None]:
    """Every thread that is there after the block, and was not before, ends."""
    before = _threads()
    yield
    latest = time.monotonic() + PATIENCE
    while left := _threads() - before:
        assert time.monotonic() < latest, [thread.name for thread in left]
        for thread in left:
            if thread.is_alive():  # others are just being started
                thread.join(PATIENCE)


def _threads() -> set[threading.Thread]:
    """Those that run. A thread of Java's, or one that logs while it ends, leaves a dummy behind, which never goes; one
    on which Spark calls Python ends with the session."""
    running = (thread for thread in threading.enumerate() if not thread.name.startswith("Dummy-"))
    return {thread for thread in running if not _is_of_spark(thread)}


def _is_of_spark(thread: threading.Thread) -> bool:
    return str(getattr(getattr(thread, "_target", None), "__module__", "")).startswith("py4j.")
