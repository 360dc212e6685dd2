"""Warns of objects that are dropped without `close`, and closes those that have sockets and threads."""

from __future__ import annotations

import _thread
import contextlib
import logging
import threading
import warnings
from collections.abc import Callable

log = logging.getLogger(__package__)


def is_open(session: object) -> bool:
    """Whether a session is open. A test double without `is_closed` has nothing to close."""
    return not getattr(session, "is_closed", True)


def dropped(what: str, close: Callable[[], object] | None = None) -> None:
    """Warns with a ResourceWarning of an object that nobody refers to any more. For use in `__del__`. `close` is called
    in another thread; None: what the object has open ends with its connection."""
    if close is not None:
        close_aside(close)
    warnings.warn(f"{what} was dropped without being closed", ResourceWarning, stacklevel=2)


def close_aside(close: Callable[[], object]) -> None:
    """Closes something in another thread. The garbage collector may run in any thread, with any lock held, so this
    takes no lock, not even `threading`'s."""

    def start() -> None:
        threading.Thread(target=_close, args=(close,), name="closes-dropped", daemon=True).start()

    with contextlib.suppress(RuntimeError):  # the process ends, and everything with it
        _thread.start_new_thread(start, ())


def _close(close: Callable[[], object]) -> None:
    try:
        close()
    except Exception as error:  # noqa: BLE001 - nobody is left to catch it
        log.debug("what was dropped did not close: %s", type(error).__name__)
