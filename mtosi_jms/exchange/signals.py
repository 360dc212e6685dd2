"""SIGTERM and SIGINT end a role in order. A second SIGINT tells the role to end at once.

A signal handler must not take a lock or wait, so a thread does what needs either (`aside`).
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

_listeners: Final[dict[object, Callable[[int], object]]] = {}
_former: Final[dict[int, Any]] = {}


@contextmanager
def on_signals(tell: Callable[[bool], object]) -> Iterator[None]:
    """Call a function at each SIGTERM and SIGINT during the block, of which several may be active. The former handlers
    are restored when the last one ends. Does nothing but in the main thread, which alone can set handlers.

    `tell` is called by the signal handler, so it must not take a lock. Its argument says whether this is a SIGINT after
    an earlier signal. An exception from it is raised in the main thread, wherever that is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signalled = False

    def listener(number: int) -> None:
        nonlocal signalled
        again, signalled = signalled and number == signal.SIGINT, True
        tell(again)

    mine = object()
    _listeners[mine] = listener
    try:
        if not _former:
            _former.update({number: signal.signal(number, _handle) or signal.SIG_DFL for number in _SIGNALS})
        yield
    finally:
        del _listeners[mine]
        while not _listeners and _former:
            signal.signal(*_former.popitem())


def _handle(number: int, frame: FrameType | None) -> None:
    for listener in list(_listeners.values()):
        listener(number)


@contextmanager
def aside(action: Callable[[bool], object]) -> Iterator[Callable[[bool], None]]:
    """Give a function that has a thread do an action, for a signal handler to call. The end of the block waits for the
    actions."""
    requests: queue.SimpleQueue[bool | None] = queue.SimpleQueue()  # its `put` is reentrant

    def act() -> None:
        while (again := requests.get()) is not None:
            action(again)

    thread = threading.Thread(target=act, name="ended-by-signal", daemon=True)
    thread.start()
    try:
        yield requests.put
    finally:
        requests.put(None)
        thread.join()
