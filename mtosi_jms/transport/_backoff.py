"""How long to wait before the next attempt."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Final

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


_STABLE: Final = 1.0
"""Seconds for which a connection must have been up, at least, if the next attempt is to come without a pause."""


class ReconnectPauses:
    """The pauses before attempts to connect again: none before the first, then those of a `Backoff` up to 30 s."""

    def __init__(self) -> None:
        self._backoff = Backoff(initial=0.1, maximum=30.0)
        self._attempts = 0

    def after(self, lasted: float) -> None:
        """Note the loss of a connection that had lasted so many seconds."""
        # A broker may accept and drop us again and again: then the pauses go on to grow.
        if lasted >= max(_STABLE, self._backoff.seconds(self._attempts)):
            self._attempts = 0

    def next(self) -> float:
        seconds = self._backoff.seconds(self._attempts) if self._attempts else 0.0
        self._attempts += 1
        return seconds
