"""Commands that run until SIGTERM, SIGINT or another thread stops them."""

from __future__ import annotations

import argparse
import contextlib
import select
import socket
import threading
from collections.abc import Callable, Iterator

from mtosi_jms.cli._ending import INTERRUPTED, listening
from mtosi_jms.cli.log import log_in_lines
from mtosi_jms.closing import Closeable
from mtosi_jms.exchange.signals import on_signals

__all__ = ["INTERRUPTED", "Stop", "closing_at", "until_signalled"]


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


@contextlib.contextmanager
def until_signalled(args: argparse.Namespace | None = None, *, is_prompt: bool = False) -> Iterator[Stop]:
    """A stop that SIGTERM and SIGINT set while the block runs; the SDK's log is on standard error meanwhile.

    From the first look at it, the command ends in order. Until then a signal interrupts it.

    Raises:
        KeyboardInterrupt: at a second SIGINT, and soon after the first signal if the command does not end in order.
    """
    with Stop(is_prompt=is_prompt) as stop, log_in_lines(args), listening(stop):

        def on_signal(again: bool) -> None:
            stop.set()
            if again:
                raise KeyboardInterrupt

        with on_signals(on_signal):
            yield stop


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
