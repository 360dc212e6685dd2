"""What the programs of this distribution do around their commands: exit codes, errors in one line, and signals.

Exit codes: 0 done; 1 the input or the peer is at fault; 2 wrong usage; 130 interrupted by SIGINT, 143 by SIGTERM;
141 the reader of the output has gone. A traceback is shown only where the environment sets MTOSI_JMS_DEBUG.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Final

from mtosi_jms.cli import terminal
from mtosi_jms.cli._ending import (
    INTERRUPTED,
    end_within_a_second,
    exit_code,
    interruptible,
    is_over,
    leave,
    was_signalled,
)
from mtosi_jms.closing import end_with_the_process
from mtosi_jms.errors import MtosiError

__all__ = ["AT_FAULT", "WRONG_USAGE", "run_program"]

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
