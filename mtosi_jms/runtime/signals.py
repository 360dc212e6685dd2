"""SIGTERM has a runtime drain. A signal handler may hold no lock and wait for nothing, so a thread does the work."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on_sigterm(action: Callable[[], object]) -> Iterator[None]:
    """Runs an action in a thread when SIGTERM comes, while the block lasts; the former handler is put back after it.

    Only the main thread can set signal handlers: in another one nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told: queue.SimpleQueue[bool] = queue.SimpleQueue()  # its put may come at any time, even within itself

    def wait() -> None:
        if told.get():
            action()

    thread = threading.Thread(target=wait, name="drain-on-sigterm", daemon=True)
    thread.start()
    former = signal.signal(signal.SIGTERM, lambda number, frame: told.put(True)) or signal.SIG_DFL
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
        told.put(False)
        thread.join()
