"""How SIGINT and SIGTERM end a command.

A command that runs until it is told to stop looks at its `Stop`, and ends in order. Any other ends within a second,
wherever it is: first by KeyboardInterrupt, and if that does not get it out of a call, the process exits.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Final, Protocol

from mtosi_jms.cli import _console as console

INTERRUPTED: Final = 130
"""Exit code of a command that a signal ended before it was done."""
_NUDGE: Final = 0.3
"""Seconds after a signal until a command that does not look at its stop is interrupted."""
_LEFT: Final = 0.5
"""Seconds after that until the process exits."""
_FLUSH: Final = 0.1
"""Longest seconds for writing what was printed."""


class Stopping(Protocol):
    """The stop of a command. `in_order` says whether the command has begun to look at it, so that it ends in order."""

    in_order: bool


_stops: Final[list[Stopping]] = []
"""The stops that signals set now: at most one in a process of its own."""


def in_order_from_now() -> None:
    """A command that says that it is ready ends in order: a signal may come before it looks at its stop."""
    for stop in _stops:
        stop.in_order = True


console.before_ready.append(in_order_from_now)


@contextlib.contextmanager
def listening(stop: Stopping) -> Iterator[None]:
    """Signals set this stop while the block runs."""
    _stops.append(stop)
    try:
        yield
    finally:
        _stops.remove(stop)


@contextlib.contextmanager
def within_a_second() -> Iterator[None]:
    """A signal during the block ends the process within a second, unless its command ends in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    # A handler waits for the main thread, which may be in a call of C or Java. The pipe tells at once.
    former = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    watching = threading.Thread(target=_watch, args=(read,), name="ending", daemon=True)
    watching.start()
    try:
        yield
    finally:
        _is_over.set()
        if signal.set_wakeup_fd(former) not in (write, -1):
            signal.set_wakeup_fd(-1)
        os.close(write)  # after a signal the thread goes on: the interpreter's own end may take long
        watching.join(0 if _is_ending.is_set() else None)


_is_ending: Final = threading.Event()
"""A signal came, and the command does not end in order."""
_is_over: Final = threading.Event()
"""The command has ended and said so; only the interpreter still has to end."""


def was_signalled() -> bool:
    """Whether a signal ends the command now."""
    return _is_ending.is_set()


def _watch(read: int) -> None:
    while number := os.read(read, 1):
        if number[0] in (signal.SIGINT, signal.SIGTERM):
            _end()
    os.close(read)


def _end() -> None:
    stop = _stops[-1] if _stops else None
    if stop is not None and stop.in_order:
        return
    _is_ending.set()
    pause = threading.Event()  # never set
    pause.wait(_NUDGE)
    if stop is not None and not stop.in_order and stop in _stops:
        signal.raise_signal(signal.SIGINT)
    pause.wait(_LEFT)
    if stop is None or not stop.in_order:
        _exit()
    _is_ending.clear()


def _exit() -> None:
    """Exit, whatever the other threads do."""

    def tell() -> None:
        if not _is_over.is_set():
            console.problem("interrupted")
        sys.stdout.flush()

    telling = threading.Thread(target=tell, name="telling", daemon=True)  # another thread may hold the stream
    telling.start()
    telling.join(_FLUSH)
    os._exit(INTERRUPTED)
