"""What runs an action later: asked for by the interval of heartbeats, replaced in tests by a clock moved by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """Runs an action later; `ThreadTimer` is one, `mtosi_jms.testing.ManualClock`, and an asyncio event loop."""

    def call_later(self, seconds: float, action: Callable[[], object], /) -> object:
        """Have the action run when so many seconds have passed; what comes back may have a method `cancel`."""


class ThreadTimer:
    """Runs each action in a thread of its own, which does not keep the process alive."""

    def call_later(self, seconds: float, action: Callable[[], object], /) -> threading.Timer:
        """See `Timer`."""
        timer = threading.Timer(seconds, action)
        timer.daemon = True
        timer.start()
        return timer
