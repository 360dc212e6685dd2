"""How long to wait before the next attempt."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mtosi_jms.errors import ConfigError


class Attempt(Protocol):
    """What tenacity tells of a call that is tried again."""

    attempt_number: int


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waiting that doubles from attempt to attempt, with jitter, so that consumers do not come back all at once.

    Attributes:
        initial: seconds after the first failure.
        maximum: seconds at most, without the jitter.
        jitter: up to so many seconds more, at random.

    Raises:
        ConfigError: a number below 0, or a maximum below the initial one.
    """

    initial: float = 0.5
    maximum: float = 30.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        if min(self.initial, self.jitter) < 0 or self.maximum < self.initial:
            raise ConfigError("back-off: initial and jitter must be at least 0, and maximum at least initial")

    def seconds(self, failures: int) -> float:
        """How long to wait after so many failures in a row, 1 or more."""
        try:
            doubled = math.ldexp(self.initial, failures - 1)
        except OverflowError:
            doubled = self.maximum
        return min(doubled, self.maximum) + random.uniform(0, self.jitter)

    def strategy(self) -> Callable[[Attempt], float]:
        """The same for tenacity's `wait`."""
        return lambda attempt: self.seconds(attempt.attempt_number)
