"""The numbers that a consumer runtime goes by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import ConfigError
from mtosi_jms.transport import Backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeRules:
    """How a consumer runtime handles messages.

    Attributes:
        concurrency: how many handlers run at the same time.
        in_flight: how many messages are held at most, waiting ones included; None: four times the concurrency.
        attempts: how often a message is handled before it is parked.
        deadline: seconds that a handler has for one attempt; None: any time.
        max_stuck: how many handlers may be past their deadline and hold a thread beside those of `concurrency`. At
            that number no more messages are taken until one of them returns; None: four times the concurrency.
        drain: seconds that handlers have to finish when the runtime is told to drain.
        retry: waiting between the attempts for one message.
        reconnect: waiting between attempts to reach the provider.

    Raises:
        ConfigError: a number out of its range.
    """

    concurrency: int = 1
    in_flight: int | None = None
    attempts: int = BOUNDS.handling_attempts
    deadline: float | None = BOUNDS.handling
    max_stuck: int | None = None
    drain: float = 30.0
    retry: Backoff = field(default_factory=Backoff)
    reconnect: Backoff = field(default_factory=Backoff)

    def __post_init__(self) -> None:
        counts: dict[str, Any] = {"concurrency": self.concurrency, "attempts": self.attempts}
        counts |= {name: value for name in ("in_flight", "max_stuck") if (value := getattr(self, name)) is not None}
        for name, value in counts.items():
            if type(value) is not int or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, not {value!r}")
        if self.deadline is not None and not self.deadline > 0:
            raise ConfigError(f"deadline must be more than 0 seconds, or None, not {self.deadline!r}")
        if not self.drain >= 0:
            raise ConfigError(f"drain must be at least 0 seconds, not {self.drain!r}")

    @property
    def most(self) -> int:
        return self.in_flight if self.in_flight is not None else 4 * self.concurrency

    @property
    def most_stuck(self) -> int:
        return self.max_stuck if self.max_stuck is not None else 4 * self.concurrency
