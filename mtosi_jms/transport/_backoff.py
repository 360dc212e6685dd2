"""How long to wait before the next attempt."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from mtosi_jms.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Backoff:
    """A pause that doubles from attempt to attempt, with jitter, so that not all consumers reconnect at once.

    Attributes:
        initial: seconds after the first failure.
        maximum: longest pause in seconds, without the jitter.
        jitter: maximum of the random seconds that are added.

    Raises:
        ConfigError: a number is below 0, or `maximum` is below `initial`.
    """

    initial: float = 0.5
    maximum: float = 30.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        if min(self.initial, self.jitter) < 0 or self.maximum < self.initial:
            raise ConfigError("back-off: initial and jitter must be at least 0, and maximum at least initial")

    def seconds(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row, at least 1."""
        try:
            doubled = math.ldexp(self.initial, failures - 1)
        except OverflowError:
            doubled = self.maximum
        return min(doubled, self.maximum) + random.uniform(0, self.jitter)
