"""The options of the embedded provider."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from mtosi_jms.jms import Queue
from mtosi_jms.transport._options import COUNT, FUNCTION, PATIENCE, ConnectOptions, check, checked

Clock: TypeAlias = Callable[[], float]

SYSTEM_CLOCK: Final[Clock] = time.time
_QUEUE: Final = check(
    "an administered queue, or its name",
    lambda value: isinstance(value, str) or type(value) is Queue,
    convert=lambda value: Queue(value) if isinstance(value, str) else value,
)


@dataclass(frozen=True, kw_only=True)
class QueueLimits:
    """The limits for the messages of a provider.

    Attributes:
        capacity: maximum number of waiting messages in a queue or subscription; then senders wait. None: no limit.
        send_timeout: longest time in seconds that a sender waits for room; 0: refuse at once; None: no limit.
        max_deliveries: how often a message is delivered without being acknowledged before it goes to the dead-letter
            queue; None: no limit.
        dead_letter: the dead-letter queue.
    """

    capacity: int | None = field(default=None, metadata=COUNT)
    send_timeout: float | None = field(default=None, metadata=PATIENCE)
    max_deliveries: int | None = field(default=None, metadata=COUNT)
    dead_letter: Queue = field(default=Queue("DLQ"), metadata=_QUEUE)

    def changed(self, **given: Any) -> QueueLimits:
        """The limits with those that are given in their place; None leaves one as it is. Raises ConfigError."""
        return replace(self, **checked(QueueLimits, "memory", given))


@dataclass(frozen=True, kw_only=True)
class MemoryOptions(ConnectOptions, QueueLimits):
    """What `connect("memory:...")` takes. The limits hold for the whole provider from then on.

    Attributes:
        clock: returns seconds since 1970, for timestamps and expiry; the first connection decides, by default the
            system's.
    """

    clock: Clock | None = field(default=None, metadata=FUNCTION)
