"""What becomes of objects that hold sockets and threads, and are dropped without `close`: they are closed, and told."""

from __future__ import annotations

import _thread
import contextlib
import logging
import threading
import warnings
from collections.abc import Callable

log = logging.getLogger(__name__)


def dropped(what: object, close: Callable[[], object]) -> None:
    """Closes an object that nobody refers to any more, and warns with a ResourceWarning; for `__del__`.

    The garbage collector may run in any thread, with any lock held. So this takes no lock, not even that of
    `threading`, and another thread closes.

    Args:
        what: the object.
        close: closes it.
    """

    def start() -> None:
        threading.Thread(target=_close, args=(close,), name="closes-dropped", daemon=True).start()

    with contextlib.suppress(RuntimeError):  # at the end of the process, with which all of it ends
        _thread.start_new_thread(start, ())
    warnings.warn(f"{what!r} was dropped without being closed", ResourceWarning, stacklevel=2, source=what)


def _close(close: Callable[[], object]) -> None:
    try:
        close()
    except Exception as error:  # noqa: BLE001 - nobody is left to be told
        log.debug("what was dropped did not close: %s", type(error).__name__)
