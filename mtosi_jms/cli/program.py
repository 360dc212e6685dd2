"""What the programs of this distribution do around their commands: exit codes, errors in one line, and signals.

Exit codes: 0 done; 1 the input or the peer is at fault; 2 wrong usage; 130 interrupted by SIGINT, 143 by SIGTERM;
141 the reader of the output has gone. A traceback is shown only where the environment sets MTOSI_JMS_DEBUG.

A command that runs until it is told to stop looks at its `Stop`, and ends in order. Any other ends within a second,
wherever it is: first by KeyboardInterrupt, and if that does not get it out of a call, the process exits, after it has
ended what is to end with it (`closing.with_the_process`)."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Final, NoReturn

from mtosi_jms.cli import terminal
from mtosi_jms.closing import Closeable, end_with_the_process
from mtosi_jms.errors import MtosiError

__all__ = ["AT_FAULT", "WRONG_USAGE", "run_program"]

INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit code of a command that a signal ended before it was done; `exit_code` makes 143 of it where that was SIGTERM."""
_NUDGE: Final = 0.3
"""Seconds after a signal until a command that does not look at its stop is interrupted."""
_LEFT: Final = 0.5
"""Seconds after that until the process exits."""
_FLUSH: Final = 0.1
"""Longest seconds for writing what was printed, and for ending what ends with the process."""


class Stop(Closeable):
    """Tells a command to end. Signal handlers may call `set`, since it takes no lock.

    Args:
        is_prompt: the command ends within a second, even if it cannot end in order by then.

    Attributes:
        in_order: whether the command has begun to look at it, and ends in order however long that takes.
    """

    def __init__(self, *, is_prompt: bool = False) -> None:
        self.in_order = False
        self._is_prompt = is_prompt
        self._read, self._write = socket.socketpair()  # on Windows `select` knows no pipes
        self._write.setblocking(False)
        self._is_set = False

    def set(self) -> None:
        """Tell the command to end, and wake it if it waits."""
        self._is_set = True
        with contextlib.suppress(OSError):  # a full buffer wakes as well
            self._write.send(b"!")

    def is_set(self) -> bool:
        self.in_order = not self._is_prompt
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for `set`, at most some seconds; return whether the command is to end."""
        self.in_order = not self._is_prompt
        if not self._is_set:
            select.select([self._read], [], [], timeout)
        return self._is_set

    def close(self) -> None:
        self._read.close()
        self._write.close()


_stops: Final[list[Stop]] = []
"""The stops that signals set now: at most one in a process of its own."""
_ended: Final[list[bool]] = []
"""Of each stop that is over, whether its command ended in order."""


def in_order_from_now() -> None:
    """A command that says that it is ready ends in order: a signal may come before it looks at its stop."""
    for stop in _stops:
        stop.in_order = True


terminal.before_ready.append(in_order_from_now)


@contextlib.contextmanager
def closing_at(stop: Stop, close: Callable[[], object]) -> Iterator[None]:
    """Call a function, in its own thread, if a stop is set while the block runs; the call wakes a receiver."""
    stop.is_set()  # from now on somebody looks at it
    done = Stop()

    def watch() -> None:
        select.select([stop._read, done._read], [], [])
        if not done.is_set():
            close()

    thread = threading.Thread(target=watch, name="stopping", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        done.close()


@contextlib.contextmanager
def listening(stop: Stop) -> Iterator[None]:
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


AT_FAULT: Final = 1
"""Exit code: the input or the peer is at fault."""
WRONG_USAGE: Final = 2
"""Exit code: the command line is."""
_PIPE_CLOSED: Final = 141
"""The exit code that a shell reports for a program whose reader has gone."""


def run_program(run: Callable[[list[str]], int], argv: Sequence[str] | None) -> int:
    """Run a program's command, and return its exit code.

    A signal ends it within a second, unless it ends in order; see `_ending`.

    Args:
        argv: the arguments without the program's name; None for those of the process. Where a program gives them, the
            signals of the process are its own.
    """
    if argv is not None:
        try:
            return _guarded(run, list(argv))
        finally:
            terminal.to_records(None)
    end_within_a_second()
    code = _guarded(run, sys.argv[1:])
    if code == INTERRUPTED:
        is_over.set()
        end_with_the_process()
        leave(code)
    is_over.set()
    return exit_code(code)


def _guarded(run: Callable[[list[str]], int], arguments: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A file name or a value that the terminal cannot show must not end the command.
            stream.reconfigure(errors="backslashreplace")
    try:
        with interruptible():
            code = run(arguments)
            if isinstance(sys.stdout, io.TextIOBase):  # the caller may have closed it
                sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return _PIPE_CLOSED
    except KeyboardInterrupt:
        return _interrupted()
    except argparse.ArgumentError as error:  # wrong usage that only the command itself can see
        terminal.problem(str(error))
        return WRONG_USAGE
    except (MtosiError, OSError) as error:
        return _report(error, _text_of(error))
    except Exception as error:  # noqa: BLE001 - the last place that can report a defect without a traceback
        # What the interrupted libraries made of it, such as a broken call of Java.
        if was_signalled() or _is_of_an_interrupt(error):
            return _interrupted()
        if isinstance(error, MemoryError):
            return _report(error, "not enough memory")
        text = " ".join(_text_of(error).split())
        return _report(error, f"internal error, please report it: {type(error).__name__}: {text}")
    return code


def _is_of_an_interrupt(error: BaseException) -> bool:
    """Whether an error arose while an interrupt was handled; the thread that watches for signals may not know yet."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return True
        cause = cause.__context__
    return False


def _interrupted() -> int:
    # Python ends itself by SIGINT where the last `exec` of a text was interrupted, as in a dataclass being made.
    exec("")  # noqa: S102 - forgets that
    terminal.problem("interrupted")
    return INTERRUPTED


def _text_of(error: Exception) -> str:
    """The error's own words; those of the system begin with the file."""
    if isinstance(error, OSError) and not isinstance(error, MtosiError):
        reason = error.strerror or str(error) or type(error).__name__
        return f"{error.filename}: {reason}" if error.filename is not None else reason
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - some foreign errors cannot say what they are; the user gets one line all the same
        return "without a message"


def _report(error: BaseException, text: str) -> int:
    try:
        sys.stdout.flush()
    except (AttributeError, OSError, ValueError):  # else the interpreter complains again at its end
        _discard_output()
    for line in text.splitlines():
        terminal.problem(line)
    if os.environ.get("MTOSI_JMS_DEBUG"):
        raise error
    return AT_FAULT


def _discard_output() -> None:
    """Redirect standard output to nothing; else the interpreter complains again when it flushes at exit."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
