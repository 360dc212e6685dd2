"""How SIGINT and SIGTERM end a command.

A command that runs until it is told to stop looks at its `Stop`, and ends in order. Any other ends within a second,
wherever it is: first by KeyboardInterrupt, and if that does not get it out of a call, the process exits, after it has
ended what is to end with it (`closing.with_the_process`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Final, NoReturn, Protocol

from mtosi_jms.cli import terminal
from mtosi_jms.closing import end_with_the_process

INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit code of a command that a signal ended before it was done; `exit_code` makes 143 of it where that was SIGTERM."""
_NUDGE: Final = 0.3
"""Seconds after a signal until a command that does not look at its stop is interrupted."""
_LEFT: Final = 0.5
"""Seconds after that until the process exits."""
_FLUSH: Final = 0.1
"""Longest seconds for writing what was printed, and for ending what ends with the process."""


class Stopping(Protocol):
    """The stop of a command. `in_order` says whether the command has begun to look at it, so that it ends in order."""

    in_order: bool


_stops: Final[list[Stopping]] = []
"""The stops that signals set now: at most one in a process of its own."""


_ended: Final[list[bool]] = []
"""Of each stop that is over, whether its command ended in order."""


def in_order_from_now() -> None:
    """A command that says that it is ready ends in order: a signal may come before it looks at its stop."""
    for stop in _stops:
        stop.in_order = True


terminal.before_ready.append(in_order_from_now)


@contextlib.contextmanager
def listening(stop: Stopping) -> Iterator[None]:
    """Signals set this stop while the block runs."""
    _stops.append(stop)
    try:
        yield
    finally:
        _ended.append(stop.in_order)
        _stops.remove(stop)


def end_within_a_second() -> None:
    """From now on a signal ends the process within a second, unless its command ends in order. Nothing undoes this: the
    interpreter's own end may take long."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)
    sys.unraisablehook = _unraisable
    read, write = socket.socketpair()  # Windows wants a socket here
    write.setblocking(False)
    # A handler waits for the main thread, which may be in a call of C or Java. The socket tells at once.
    signal.set_wakeup_fd(write.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(read,), name="ending", daemon=True).start()


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """The block of which a signal makes a KeyboardInterrupt, once; also a signal that came before it."""
    global _is_interruptible
    _is_interruptible = True
    try:
        if _signals:
            raise KeyboardInterrupt
        yield
    finally:
        _is_interruptible = False


_is_interruptible = False
_signals: Final[list[int]] = []
"""The signals that came. The handler and the watching thread both note one, because either may be late."""
_is_ending: Final = threading.Event()
"""A signal came, and the command does not end in order."""
is_over: Final = threading.Event()
"""Set once the command has ended and said so; only the interpreter still has to end."""


def was_signalled() -> bool:
    return _is_ending.is_set()


def exit_code(code: int) -> int:
    """The exit code of a command that a signal may have ended: 130 for SIGINT, 143 for SIGTERM."""
    return 128 + _signals[0] if code == INTERRUPTED and _signals else code


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _is_interruptible
    _signals.append(number)
    if _is_interruptible:
        _is_interruptible = False
        raise KeyboardInterrupt


def _unraisable(what: sys.UnraisableHookArgs) -> None:
    """Python drops an interrupt that comes in a destructor or callback, and prints a traceback. `_watch` ends the
    process all the same."""
    if not isinstance(what.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(what)


def _watch(read: socket.socket) -> None:
    with read:
        is_first = True
        while number := read.recv(1):
            if number[0] in (signal.SIGINT, signal.SIGTERM):
                _signals.append(number[0])
                _end(is_first=is_first)
                is_first = False


def _end(*, is_first: bool) -> None:
    stop = _stops[-1] if _stops else None
    is_late = is_first and any(_ended)  # the command has seen the signal before this thread did
    if (stop is not None and stop.in_order) or (stop is None and is_late):
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


def leave(code: int) -> NoReturn:
    """Exits without the interpreter's own end, in which threads that return from Java would abort the process."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(exit_code(code))


def _exit() -> None:
    def tell() -> None:
        if not is_over.is_set():
            terminal.problem("interrupted")
        sys.stdout.flush()

    # Another thread may hold the stream, and a disk may hang.
    threads = [threading.Thread(target=what, name="ending", daemon=True) for what in (tell, end_with_the_process)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_FLUSH)
    os._exit(exit_code(INTERRUPTED))
