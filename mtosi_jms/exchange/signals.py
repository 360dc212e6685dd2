"""SIGTERM and SIGINT end a role in order: it is told once, and at a second SIGINT that it has to end at once.

A signal handler may hold no lock and wait for nothing, so whatever takes either is done by a thread (`aside`).
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

__all__ = ["aside", "on_signals"]

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_told: Final[dict[object, Callable[[int], object]]] = {}
_former: Final[dict[int, Any]] = {}


@contextmanager
def on_signals(tell: Callable[[bool], object]) -> Iterator[None]:
    """Calls a function at each SIGTERM and SIGINT while the block lasts, others that are in such a block too.

    The handlers that were set before are put back when the last block ends. Only the main thread can set signal
    handlers: in another one nothing is done.

    Args:
        tell: called by the signal handler, so that it may hold no lock; with whether it is a SIGINT after another
            signal. What it raises is raised in the main thread, wherever that is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = False

    def heard(number: int) -> None:
        nonlocal came
        again, came = came and number == signal.SIGINT, True
        tell(again)

    mine = object()
    _told[mine] = heard
    try:
        if not _former:
            _former.update({number: signal.signal(number, _hear) or signal.SIG_DFL for number in _SIGNALS})
        yield
    finally:
        del _told[mine]
        while not _told and _former:
            signal.signal(*_former.popitem())


def _hear(number: int, frame: FrameType | None) -> None:
    for heard in list(_told.values()):
        heard(number)


@contextmanager
def aside(action: Callable[[bool], object]) -> Iterator[Callable[[bool], None]]:
    """Gives a function that has an action done by a thread, and may be called by a signal handler.

    The end of the block waits for actions that were begun.
    """
    asked: queue.SimpleQueue[bool | None] = queue.SimpleQueue()  # its put may come at any time, even within itself

    def act() -> None:
        while (again := asked.get()) is not None:
            action(again)

    thread = threading.Thread(target=act, name="ended-by-signal", daemon=True)
    thread.start()
    try:
        yield asked.put
    finally:
        asked.put(None)
        thread.join()
